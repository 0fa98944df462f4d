//! The provider: from a browser that goes there to the person for whom it vouches.

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use kelos_tls::Trust;
use kelos_trust::{OpenIdSettings, Person, Provider, ProviderAnswer, ProviderError, VisitSecrets};
use reqwest::StatusCode;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use crate::claims::{self, refused, shown};
use crate::client::{Answer, Client, unusable};
use crate::metadata::{Knowledge, Metadata};
use crate::signed::SignedToken;

/// A provider of OpenID Connect.
pub struct OpenId {
    settings: OpenIdSettings,
    secret: Option<String>,
    client: Client,
    known: Mutex<Knowledge>,
}

/// The tokens for a code. They are dropped once the person is known.
#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
}

impl OpenId {
    /// The provider of these settings, with the secret of this client, if it has one. It is asked nothing before somebody signs in, so
    /// that a server starts without it.
    ///
    /// # Errors
    /// When the HTTP client can't be set up. The message completes "failed to …".
    pub fn new(settings: OpenIdSettings, secret: Option<String>, trust: &Trust) -> Result<OpenId, String> {
        Ok(OpenId { settings, secret, client: Client::new(trust)?, known: Mutex::default() })
    }

    async fn metadata(&self, now: Timestamp) -> Result<Metadata, ProviderError> {
        self.known.lock().await.metadata(&self.client, &self.settings, now).await
    }

    /// The code of an answer of the provider.
    fn code<'a>(&self, metadata: &Metadata, answer: &'a ProviderAnswer) -> Result<&'a str, ProviderError> {
        // With several providers at hand, an answer of one could be passed to another (RFC 9207).
        let is_ours = answer.iss.as_ref().map_or(!metadata.names_issuer, |iss| *iss == self.settings.issuer);
        if !is_ours {
            return Err(refused(format!("the answer is of another provider than {}", self.settings.issuer)));
        }
        if let Some(error) = &answer.error {
            let words = answer.error_description.as_deref().map(|words| format!(" ({})", shown(words)));
            return Err(refused(format!("the provider answers \"{}\"{}", shown(error), words.unwrap_or_default())));
        }
        answer.code.as_deref().ok_or_else(|| refused("the provider's answer has no code"))
    }

    /// Has the provider give tokens for a code.
    async fn redeem(&self, metadata: &Metadata, code: &str, verifier: &str) -> Result<Tokens, ProviderError> {
        let (client, callback) = (self.settings.client_id.as_str(), self.settings.callback());
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", callback.as_str()),
            ("code_verifier", verifier),
        ];
        let login = match &self.secret {
            Some(secret) if !metadata.is_secret_in_form => Some((client, secret.as_str())),
            Some(secret) => {
                pairs.extend([("client_id", client), ("client_secret", secret.as_str())]);
                None
            }
            None => {
                pairs.push(("client_id", client));
                None
            }
        };
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let answer = self.client.form(&metadata.token, form, login).await?;
        if answer.status != StatusCode::OK {
            return Err(unredeemed(metadata, &answer));
        }
        let tokens = answer.json(&metadata.token)?;
        // The error of reading would have the token in it.
        Tokens::deserialize(tokens).map_err(|_| unusable(&metadata.token, "it gave no ID token".to_owned()))
    }

    /// Adds what the provider tells beside the ID token, if a claim is missing in that.
    async fn complete(
        &self,
        metadata: &Metadata,
        tokens: &Tokens,
        claims: &mut Map<String, Value>,
    ) -> Result<(), ProviderError> {
        let wanted = [&self.settings.name_claim, &self.settings.groups_claim];
        let (Some(address), Some(token)) = (&metadata.userinfo, &tokens.access_token) else { return Ok(()) };
        if wanted.iter().all(|name| claims.contains_key(name.as_str())) {
            return Ok(());
        }
        let told = self.client.told(address, token).await?;
        match told.status {
            StatusCode::OK if told.kind.starts_with("application/jwt") => {
                Err(unusable(address, "it answers with a signed token, expected JSON".to_owned()))
            }
            StatusCode::OK => claims::complete(claims, told.json(address)?),
            status => Err(unusable(address, format!("it answered {status}"))),
        }
    }
}

/// The error of a code that the provider gives no tokens for.
fn unredeemed(metadata: &Metadata, answer: &Answer) -> ProviderError {
    let told = answer.json(&metadata.token).ok().and_then(|told| Some(told.get("error")?.as_str()?.to_owned()));
    match told.as_deref() {
        Some("invalid_client" | "unauthorized_client") => {
            let why = "it does not know this server by its \"clientId\" and \"clientSecret\"";
            unusable(&metadata.token, why.to_owned())
        }
        Some("invalid_grant") => refused(
            "the provider does not take the code: it was used already, is too old, or was given for another address",
        ),
        Some(error) => refused(format!("the provider answers \"{}\" to the code", shown(error))),
        None => unusable(&metadata.token, format!("it answered {}", answer.status)),
    }
}

#[async_trait]
impl Provider for OpenId {
    fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    async fn entrance(&self, secrets: &VisitSecrets, now: Timestamp) -> Result<String, ProviderError> {
        let mut address = self.metadata(now).await?.authorization;
        let mut scopes = vec!["openid"];
        scopes.extend(self.settings.scopes.iter().map(String::as_str).filter(|scope| *scope != "openid"));
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, secrets.verifier.as_bytes()));
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", &self.settings.callback())
            .append_pair("scope", &scopes.join(" "))
            .append_pair("state", &secrets.state)
            .append_pair("nonce", &secrets.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(address.into())
    }

    async fn person(
        &self,
        secrets: &VisitSecrets,
        answer: &ProviderAnswer,
        now: Timestamp,
    ) -> Result<Person, ProviderError> {
        let metadata = self.metadata(now).await?;
        let code = self.code(&metadata, answer)?;
        let tokens = self.redeem(&metadata, code, &secrets.verifier).await?;
        let token = SignedToken::read(&tokens.id_token)?;
        let mut claims = {
            let mut known = self.known.lock().await;
            token.claims(known.keys(&self.client, &metadata, &token, now).await?)?
        };
        claims::check(&claims, &self.settings, &secrets.nonce, now)?;
        self.complete(&metadata, &tokens, &mut claims).await?;
        claims::person(&claims, &self.settings)
    }
}
