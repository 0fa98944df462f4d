//! Signed tokens (RFC 7515) as providers write them: three parts, of which the last signs the others.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kelos_trust::ProviderError;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::claims::{refused, shown};
use crate::keys::{Algorithm, Keys};

/// A token whose signature is not verified yet, so that nothing is known of what it claims.
pub(crate) struct SignedToken<'a> {
    algorithm: Algorithm,
    key: Option<String>,
    text: &'a str,
    body: &'a str,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

impl<'a> SignedToken<'a> {
    /// The token that a text is.
    ///
    /// # Errors
    /// When it is none, or is signed in a way that proves nothing here.
    pub(crate) fn read(token: &'a str) -> Result<SignedToken<'a>, ProviderError> {
        let broken = || refused("the ID token is no signed token");
        let (text, signature) = token.rsplit_once('.').ok_or_else(broken)?;
        let (head, body) = text.split_once('.').filter(|(_, body)| !body.contains('.')).ok_or_else(broken)?;
        let header = URL_SAFE_NO_PAD.decode(head).ok().and_then(|head| serde_json::from_slice::<Header>(&head).ok());
        let header = header.ok_or_else(broken)?;
        let algorithm = Algorithm::of_name(&header.alg).ok_or_else(|| {
            refused(format!("the ID token is signed by \"{}\", expected RS256 or ES256", shown(&header.alg)))
        })?;
        if header.crit.is_some() {
            return Err(refused("the ID token asks for extensions (\"crit\"), expected none"));
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| broken())?;
        Ok(SignedToken { algorithm, key: header.kid, text, body, signature })
    }

    /// Whether these keys have the one that is said to have signed it.
    pub(crate) fn is_known(&self, keys: &Keys) -> bool {
        keys.have(self.key.as_deref(), self.algorithm)
    }

    /// The claims of the token, once its signature is verified.
    ///
    /// # Errors
    /// When none of the keys signed it.
    pub(crate) fn claims(&self, keys: &Keys) -> Result<Map<String, Value>, ProviderError> {
        if !self.is_known(keys) {
            return Err(refused("the ID token is signed by a key that the provider does not publish"));
        }
        if !keys.verify(self.key.as_deref(), self.algorithm, self.text.as_bytes(), &self.signature) {
            return Err(refused("the signature of the ID token is wrong"));
        }
        let claims = URL_SAFE_NO_PAD.decode(self.body).ok().and_then(|body| serde_json::from_slice(&body).ok());
        claims.ok_or_else(|| refused("the ID token claims nothing that can be read"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The modulus of a key whose other half was thrown away.
    const MODULUS: &str = "4VRpTql31Gj8dTNNMvOrbh2BIiZxk8LJ0S8G3d9yBvA-DpKhxqbgAydrB2z6ko_Z1SpYNURewmlfhZgLAcSckZFwcKFyoB7WrPOMGeCMGYJ8qmklAzvJ7y7V0Q5inn_izwtmdRB2Nfmg7i8KrZQK1zRZ_lOyHQiqek9PIyEeIVFUwTCzbnbcqFhfWuCFREcHVsaGUSpiBxdmrWK8uaeNsdWFJOgFNKloPicBRzGmRcAFhEUFmlg978aYS2mgZEzrZmkLGu3uiriotkb5nm9xuDXxjK2VW82EzgmDJAA7rR8dt1L48oneNFz-Itvlluix0n5zJvbxtl1_dvuqcVowhw";
    /// `{"sub":"anna"}`, signed by it.
    const TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InIxIiwidHlwIjoiSldUIn0.eyJzdWIiOiJhbm5hIn0.y9q1lytsmJORjp_nw2flMoilpNd95uzQMcDPyg6ezZaDc1bYjZ_VlTImbgPy1Du7LO5lwjLvKDxldyyZcv0bH0wE7aJ_8phaIuqF63aF_Vps5ZCxfSxQF2sK4GpMmRhrk91DTsXKyVZc1ufzzGrBtwzRNf8eibHaAEIDRIN9kcqW9VFG7Xnt74ivpKUpX3_4NM3lJM-AvBrBmDsznl65zce-MW_2YRAXXMbYZHiy5NUFTOtub8ejxSSkKfWDAWphv3_TrbkwPo0qKUq3U7kuXXYz5CneEJ-bSIRNFtM1sA5cgPrYKR26TaEMWmRnF17kju5HeM7mcy5VnraAqfoAtQ";

    fn keys(changes: &[(&str, &str)]) -> Result<Keys, String> {
        let mut key = json!({"kty": "RSA", "kid": "r1", "n": MODULUS, "e": "AQAB"});
        for (name, value) in changes {
            key[*name] = json!(value);
        }
        Keys::of(&json!({"keys": [{"kty": "oct", "k": "AAAA"}, {"kty": "EC", "crv": "P-521"}, key]}))
    }

    #[test]
    fn rsa_signs_by_sha_256() {
        let token = SignedToken::read(TOKEN).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(token.claims(&keys(&[]).unwrap()).unwrap()["sub"], "anna");
        assert!(token.is_known(&keys(&[("alg", "RS256"), ("use", "sig")]).unwrap()));
        let other = token.claims(&keys(&[("kid", "r2")]).unwrap()).unwrap_err().to_string();
        assert_eq!(other, "the ID token is signed by a key that the provider does not publish");
        let (text, signature) = TOKEN.rsplit_once('.').unwrap();
        let (head, _) = text.split_once('.').unwrap();
        let forged = format!("{head}.{}.{signature}", URL_SAFE_NO_PAD.encode(r#"{"sub":"root"}"#));
        let told = SignedToken::read(&forged).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(told.claims(&keys(&[]).unwrap()).unwrap_err().to_string(), "the signature of the ID token is wrong");
    }

    #[test]
    fn keys_for_other_purposes_are_passed_over() {
        for changes in [[("use", "enc")], [("alg", "RSA-OAEP")], [("alg", "RS512")], [("n", "+")]] {
            let told = keys(&changes).err();
            assert_eq!(told.as_deref(), Some("none of its 3 keys is for RS256 or ES256"), "{changes:?}");
        }
        assert_eq!(Keys::of(&json!({})).err().as_deref(), Some("it has no list \"keys\""));
    }

    #[test]
    fn broken_tokens_are_refused_and_not_repeated() {
        for text in ["", ".", "..", "a.b", "a.b.c", "a.b.c.d.e", &TOKEN[..40], &format!("{TOKEN}=")] {
            let told = SignedToken::read(text).err().map(|error| error.to_string());
            assert_eq!(told.as_deref(), Some("the ID token is no signed token"), "{text}");
        }
    }
}
