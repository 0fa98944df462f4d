//! The keys with which a provider signs: RSA, and the curve P-256.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::Value;

/// A way to sign. There are no others: `none` proves nothing, and those with a shared secret would take a public key for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rs256,
    Es256,
}

impl Algorithm {
    pub(crate) fn of_name(name: &str) -> Option<Algorithm> {
        match name {
            "RS256" => Some(Algorithm::Rs256),
            "ES256" => Some(Algorithm::Es256),
            _ => None,
        }
    }
}

/// The keys of a provider that can be used here.
#[derive(Default)]
pub(crate) struct Keys(Vec<Key>);

struct Key {
    id: Option<String>,
    material: Material,
}

enum Material {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
}

/// A key as it is published (RFC 7517).
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Keys {
    /// The keys of a document; those that can't be used are passed over, as others may be for other purposes.
    ///
    /// # Errors
    /// When the document has none that can be used.
    pub(crate) fn of(document: &Value) -> Result<Keys, String> {
        let all = document.get("keys").and_then(Value::as_array).ok_or("it has no list \"keys\"")?;
        let read = |key: &Value| Jwk::deserialize(key).ok().and_then(Key::of);
        let keys: Vec<Key> = all.iter().filter_map(read).collect();
        if keys.is_empty() {
            return Err(format!("none of its {} keys is for RS256 or ES256", all.len()));
        }
        Ok(Keys(keys))
    }

    /// Whether one of these keys may have made a signature.
    pub(crate) fn have(&self, id: Option<&str>, algorithm: Algorithm) -> bool {
        self.fitting(id, algorithm).next().is_some()
    }

    /// Whether one of these keys made a signature.
    pub(crate) fn verify(&self, id: Option<&str>, algorithm: Algorithm, text: &[u8], signature: &[u8]) -> bool {
        self.fitting(id, algorithm).any(|key| key.material.verify(text, signature))
    }

    fn fitting(&self, id: Option<&str>, algorithm: Algorithm) -> impl Iterator<Item = &Key> {
        let fits = move |key: &&Key| key.material.algorithm() == algorithm && (id.is_none() || key.id.as_deref() == id);
        self.0.iter().filter(fits)
    }
}

impl Key {
    fn of(jwk: Jwk) -> Option<Key> {
        if jwk.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let bytes = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?).ok();
        let material = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => Material::Rsa { modulus: bytes(jwk.n)?, exponent: bytes(jwk.e)? },
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(jwk.x)?, bytes(jwk.y)?);
                // A point that is not compressed.
                Material::P256([&[4], x.as_slice(), y.as_slice()].concat())
            }
            _ => return None,
        };
        let fits = jwk.alg.as_deref().is_none_or(|name| Algorithm::of_name(name) == Some(material.algorithm()));
        fits.then_some(Key { id: jwk.kid, material })
    }
}

impl Material {
    fn algorithm(&self) -> Algorithm {
        match self {
            Material::Rsa { .. } => Algorithm::Rs256,
            Material::P256(_) => Algorithm::Es256,
        }
    }

    fn verify(&self, text: &[u8], signature: &[u8]) -> bool {
        let verified = match self {
            Material::Rsa { modulus, exponent } => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, text, signature)
            }
            Material::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(text, signature),
        };
        verified.is_ok()
    }
}
