//! A provider that a test plays: it answers over HTTP, signs with keys that it makes, and does what the test says.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use kelos_trust::ProviderAnswer;
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

/// An ID token before it is signed.
pub(crate) struct Token {
    pub(crate) header: Value,
    pub(crate) claims: Value,
    pub(crate) signature: Signature,
}

/// The way in which a token is signed.
pub(crate) enum Signature {
    /// By the key with this id, which need not be published.
    OfKey(&'static str),
    /// By a key that nobody knows, under the id of another.
    OfStrangerAs(&'static str),
    /// Not at all: `alg` is `none`.
    Missing,
    /// By `HS256`, with the public key as the secret.
    PublicKeyAsSecret,
    /// No token, but a text.
    NoToken,
}

pub(crate) struct Played {
    issuer: String,
    shared: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    document: Value,
    keys: BTreeMap<&'static str, EcdsaKeyPair>,
    published: Vec<&'static str>,
    /// The challenge and the token of each code that was not used yet.
    codes: BTreeMap<String, (String, String)>,
    made: usize,
    told: Value,
    asked: Vec<String>,
    is_over: bool,
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn key() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap()
}

impl Played {
    pub(crate) const SECRET: &str = "a secret: with + and %";

    pub(crate) fn start() -> Played {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let document = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize?realm=x"),
            "token_endpoint": format!("{issuer}/token"),
            "jwks_uri": format!("{issuer}/keys"),
            "userinfo_endpoint": format!("{issuer}/userinfo"),
        });
        let keys = ["first", "second", "stranger"].map(|id| (id, key())).into();
        let shared = State { document, keys, published: vec!["first"], told: json!({"sub": "1"}), ..State::default() };
        let shared = Arc::new(Mutex::new(shared));
        let served = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if served.lock().unwrap().is_over {
                    return;
                }
                answer(&served, stream.unwrap());
            }
        });
        Played { issuer, shared }
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    pub(crate) fn document(&self, change: impl FnOnce(&mut Value)) {
        change(&mut self.shared.lock().unwrap().document);
    }

    pub(crate) fn publish(&self, key: &'static str) {
        self.shared.lock().unwrap().published.push(key);
    }

    pub(crate) fn withdraw(&self, key: &'static str) {
        self.shared.lock().unwrap().published.retain(|known| *known != key);
    }

    /// Answers so to who asks about the person.
    pub(crate) fn tell(&self, claims: Value) {
        self.shared.lock().unwrap().told = claims;
    }

    pub(crate) fn asked_for(&self, path: &str) -> usize {
        self.shared.lock().unwrap().asked.iter().filter(|asked| *asked == path).count()
    }

    /// Signs the person in whose browser came by an address; the answer with which the browser is sent back.
    pub(crate) fn sign_in(&self, entrance: &str, now: Timestamp, change: impl FnOnce(&mut Token)) -> ProviderAnswer {
        let entrance = Url::parse(entrance).unwrap();
        let asked: BTreeMap<String, String> = entrance.query_pairs().into_owned().collect();
        assert_eq!((entrance.path(), asked["realm"].as_str()), ("/authorize", "x"));
        let mut token = Token {
            header: json!({"typ": "JWT"}),
            claims: json!({"iss": self.issuer, "aud": "kelos", "sub": "1", "preferred_username": "anna",
                           "iat": now.as_second(), "exp": now.as_second() + 300, "nonce": asked["nonce"]}),
            signature: Signature::OfKey("first"),
        };
        change(&mut token);
        let mut shared = self.shared.lock().unwrap();
        let token = shared.sign(token);
        shared.made += 1;
        let code = format!("code-{}", shared.made);
        shared.codes.insert(code.clone(), (asked["code_challenge"].clone(), token));
        let answer = json!({"state": asked["state"], "code": code, "session_state": "x"});
        serde_json::from_value(answer).unwrap()
    }
}

impl Drop for Played {
    /// Has the thread end: it sees a last connection, and closes the listener.
    fn drop(&mut self) {
        self.shared.lock().unwrap().is_over = true;
        let Ok(mut last) = TcpStream::connect(self.issuer.trim_start_matches("http://")) else { return };
        let _ = last.read(&mut [0]);
    }
}

impl State {
    fn sign(&self, token: Token) -> String {
        let Token { mut header, claims, signature } = token;
        let (algorithm, id, signer) = match signature {
            Signature::OfKey(id) => ("ES256", id, id),
            Signature::OfStrangerAs(id) => ("ES256", id, "stranger"),
            Signature::Missing => ("none", "first", ""),
            Signature::PublicKeyAsSecret => ("HS256", "first", ""),
            Signature::NoToken => return "no token".to_owned(),
        };
        header["alg"] = json!(algorithm);
        header["kid"] = json!(id);
        let text = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
        let signature = match algorithm {
            "ES256" => self.keys[signer].sign(&SystemRandom::new(), text.as_bytes()).unwrap().as_ref().to_vec(),
            "HS256" => {
                let secret = hmac::Key::new(hmac::HMAC_SHA256, self.keys["first"].public_key().as_ref());
                hmac::sign(&secret, text.as_bytes()).as_ref().to_vec()
            }
            _ => Vec::new(),
        };
        format!("{text}.{}", encoded(signature))
    }

    fn jwks(&self) -> Value {
        let jwk = |id: &&'static str| {
            let point = self.keys[id].public_key().as_ref();
            json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": id,
                   "x": encoded(&point[1..33]), "y": encoded(&point[33..])})
        };
        json!({"keys": self.published.iter().map(jwk).collect::<Vec<_>>()})
    }

    /// Gives tokens for a code, once, to who knows the secret and the verifier.
    fn redeem(&mut self, login: &str, body: &[u8]) -> (u16, Value) {
        let name_and_secret = STANDARD.decode(login.trim_start_matches("Basic ")).unwrap();
        let known: String = form_urlencoded::byte_serialize(Played::SECRET.as_bytes()).collect();
        if name_and_secret != format!("kelos:{known}").as_bytes() {
            return (401, json!({"error": "invalid_client"}));
        }
        let form: BTreeMap<String, String> = form_urlencoded::parse(body).into_owned().collect();
        let is_right = form["grant_type"] == "authorization_code"
            && form["redirect_uri"] == "http://localhost:7437/ui/sign-in/openid/callback";
        let challenge = encoded(digest(&SHA256, form["code_verifier"].as_bytes()));
        match self.codes.remove(&form["code"]) {
            Some((expected, token)) if is_right && expected == challenge => {
                (200, json!({"token_type": "Bearer", "access_token": "at", "id_token": token}))
            }
            _ => (400, json!({"error": "invalid_grant"})),
        }
    }
}

fn answer(shared: &Mutex<State>, mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 || line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let header = |name: &str| {
        let named =
            |line: &String| Some(line.split_once(": ").filter(|(of, _)| of.eq_ignore_ascii_case(name))?.1.to_owned());
        lines.iter().find_map(named).unwrap_or_default()
    };
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let path = lines.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
    let mut shared = shared.lock().unwrap();
    shared.asked.push(path.clone());
    let (status, value) = match path.as_str() {
        "/.well-known/openid-configuration" => (200, shared.document.clone()),
        "/keys" => (200, shared.jwks()),
        "/token" => shared.redeem(&header("authorization"), &body),
        "/userinfo" if header("authorization") == "Bearer at" => (200, shared.told.clone()),
        _ => (404, json!({})),
    };
    let text = value.to_string();
    let head = "content-type: application/json\r\nconnection: close";
    let _ = write!(stream, "HTTP/1.1 {status} X\r\n{head}\r\ncontent-length: {}\r\n\r\n{text}", text.len());
}
