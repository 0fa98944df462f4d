// A provider of OpenID Connect for tests: `node provider.mjs FOLDER PORT SECRET`, with the packages of FOLDER. Everybody who gives a name may sign in
// with any password, and is in the groups "data" and "everyone".
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const [folder, port, secret] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(`${folder}/node_modules/oidc-provider/lib/index.js`));

const key = (kind, options, rest) => ({ ...generateKeyPairSync(kind, options).privateKey.export({ format: 'jwk' }), use: 'sig', ...rest });

const client = {
  // A native client may be sent back to any port of this machine.
  application_type: 'native',
  redirect_uris: ['http://127.0.0.1/ui/sign-in/openid/callback'],
  grant_types: ['authorization_code'],
  response_types: ['code'],
};

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    { ...client, client_id: 'kelos', client_secret: secret, token_endpoint_auth_method: 'client_secret_basic' },
    { ...client, client_id: 'kelos-public', token_endpoint_auth_method: 'none', id_token_signed_response_alg: 'ES256' },
  ],
  jwks: { keys: [key('rsa', { modulusLength: 2048 }, { alg: 'RS256', kid: 'r' }), key('ec', { namedCurve: 'P-256' }, { alg: 'ES256', kid: 'e' })] },
  claims: { openid: ['sub'], profile: ['preferred_username'], email: ['email', 'email_verified'], groups: ['groups'] },
  scopes: ['openid', 'profile', 'email', 'groups'],
  pkce: { required: () => true },
  cookies: { keys: ['for tests alone'] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, preferred_username: id, email: `${id}@example.com`, email_verified: true, groups: ['data', 'everyone'] }),
  }),
});

createServer(provider.callback()).listen(Number(port), '127.0.0.1');
