//! Sessions of people, and their visits to providers: signed cookies, so that every server with the key knows them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::provider::{ProviderVisit, VisitSecrets};
use crate::token::{Token, draw_id};

/// How long a session lasts: a day at work.
const LASTS: SignedDuration = SignedDuration::from_hours(12);

/// A session, as it is signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id, by which it is ended.
    pub id: String,
    /// The name of the person.
    pub user: String,
    /// The number of the user's sessions at the time: it grows with each change of the password, which ends all older sessions.
    pub epoch: u32,
    /// Its end.
    pub until: Timestamp,
    /// The provider that vouched for the person; none for a user of this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The groups that the provider named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

impl Session {
    /// A session of a user that begins now.
    ///
    /// # Errors
    /// When the machine has no randomness.
    pub fn begin(user: &str, epoch: u32, now: Timestamp) -> Result<Session, getrandom::Error> {
        Ok(Session {
            id: draw_id()?,
            user: user.to_owned(),
            epoch,
            until: now.saturating_add(LASTS).unwrap_or(now),
            provider: None,
            groups: Vec::new(),
        })
    }

    /// The same, of a person for whom a provider vouched as a member of these groups.
    #[must_use]
    pub fn of_provider(self, provider: &str, groups: Vec<String>) -> Session {
        Session { provider: Some(provider.to_owned()), groups, ..self }
    }
}

/// The key that signs sessions. It is never printed, because it can't be formatted.
#[derive(Clone)]
pub struct SessionKey([u8; 32]);

impl SessionKey {
    /// A new one.
    ///
    /// # Errors
    /// When the machine has no randomness.
    pub fn draw() -> Result<SessionKey, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(SessionKey(key))
    }

    /// The key with these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> SessionKey {
        SessionKey(bytes)
    }

    /// Its bytes, to be kept.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn mac(&self, purpose: &str, text: &str) -> Hmac<Sha256> {
        // A key of any length is taken, so the fallback never signs anything.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|_| Hmac::new(&Default::default()));
        for part in [purpose, "\n", text] {
            mac.update(part.as_bytes());
        }
        mac
    }

    /// The text of a session, for a cookie.
    #[must_use]
    pub fn sign(&self, session: &Session) -> String {
        self.seal("session", session)
    }

    /// The session that a text is, if this key signed it and it has not ended.
    #[must_use]
    pub fn read(&self, text: &str, now: Timestamp) -> Option<Session> {
        self.unseal("session", text).filter(|session: &Session| now < session.until)
    }

    /// The text of a visit to a provider, for a cookie.
    #[must_use]
    pub fn sign_visit(&self, visit: &ProviderVisit) -> String {
        self.seal("visit", visit)
    }

    /// The visit that a text is, if this key signed it and it has not ended.
    #[must_use]
    pub fn read_visit(&self, text: &str, now: Timestamp) -> Option<ProviderVisit> {
        self.unseal("visit", text).filter(|visit: &ProviderVisit| now < visit.until)
    }

    /// The secrets of a visit, which every server with the key makes in the same way.
    #[must_use]
    pub fn secrets_of(&self, visit: &ProviderVisit) -> VisitSecrets {
        let secret = |purpose| URL_SAFE_NO_PAD.encode(self.mac(purpose, &visit.id).finalize().into_bytes());
        VisitSecrets {
            state: secret("state of a visit"),
            nonce: secret("nonce of a visit"),
            verifier: secret("verifier of a visit"),
        }
    }

    /// A signed text for others with the key: what it is for, which must be said again to read it, and what it says.
    #[must_use]
    pub fn seal<T: Serialize>(&self, purpose: &str, what: &T) -> String {
        let body = URL_SAFE_NO_PAD.encode(serde_json::to_vec(what).unwrap_or_default());
        let mac = URL_SAFE_NO_PAD.encode(self.mac(purpose, &body).finalize().into_bytes());
        format!("{body}.{mac}")
    }

    /// The content of a text, if this key signed it for this purpose.
    #[must_use]
    pub fn unseal<T: DeserializeOwned>(&self, purpose: &str, text: &str) -> Option<T> {
        let (body, mac) = text.split_once('.')?;
        let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
        self.mac(purpose, body).verify_slice(&mac).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).ok()?).ok()
    }

    /// The token for a purpose, which every server with the key derives in the same way.
    #[must_use]
    pub fn token(&self, purpose: &str) -> Token {
        let id = self.mac("id of a token", purpose).finalize().into_bytes();
        Token::of_bytes(&self.mac("token", purpose).finalize().into_bytes().into(), &id)
    }

    /// The proof that a form came from a page of this session: a foreign page can send the cookie, but can't read this.
    #[must_use]
    pub fn proof(&self, session: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.mac("form", session).finalize().into_bytes())
    }

    /// Whether a text is the proof of a session.
    #[must_use]
    pub fn proves(&self, session: &str, proof: &str) -> bool {
        URL_SAFE_NO_PAD.decode(proof).is_ok_and(|mac| self.mac("form", session).verify_slice(&mac).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_holds_until_its_end_and_only_with_its_key() {
        let (key, other) = (SessionKey::draw().expect("a key"), SessionKey::draw().expect("a key"));
        let now: Timestamp = "2026-11-26T08:00:00Z".parse().expect("a time");
        let session = Session::begin("anna", 3, now).expect("a session");
        let text = key.sign(&session);
        assert_eq!(key.read(&text, now).as_ref(), Some(&session));
        assert_eq!(key.read(&text, session.until), None);
        assert_eq!(other.read(&text, now), None);
        let forged = URL_SAFE_NO_PAD.encode(r#"{"id":"x","user":"root","epoch":0,"until":"2999-01-01T00:00:00Z"}"#);
        let (_, mac) = text.split_once('.').expect("two parts");
        for bad in ["", ".", &format!("{forged}.{mac}"), &format!("{forged}."), &text[..text.len() - 2]] {
            assert_eq!(key.read(bad, now), None, "{bad}");
        }
    }

    #[test]
    fn a_token_of_the_key_is_the_same_wherever_the_key_is() {
        let key = SessionKey::draw().expect("a key");
        let copy = SessionKey::from_bytes(*key.bytes());
        assert_eq!(key.token("node").reveal(), copy.token("node").reveal());
        assert!(Token::read(key.token("node").reveal()).is_some(), "it has the form of a token");
        let others = [key.token("owner"), SessionKey::draw().expect("another").token("node")];
        assert!(others.iter().all(|other| other.id() != key.token("node").id()));
    }

    #[test]
    fn a_visit_is_no_session_and_has_secrets_of_its_own() {
        let key = SessionKey::draw().expect("a key");
        let now: Timestamp = "2026-11-26T08:00:00Z".parse().expect("a time");
        let visit = ProviderVisit::begin("/ui/stuck", now).expect("a visit");
        let text = key.sign_visit(&visit);
        assert_eq!(key.read_visit(&text, now).as_ref(), Some(&visit));
        assert_eq!(key.read_visit(&text, visit.until), None);
        assert_eq!(key.read(&text, now), None);
        let (first, again) = (key.secrets_of(&visit), key.secrets_of(&visit));
        assert_eq!((first.state.len(), &first.nonce), (43, &again.nonce));
        let other = key.secrets_of(&ProviderVisit::begin("/ui", now).expect("a visit"));
        let all = [first.state, first.nonce, first.verifier, other.state, other.nonce, other.verifier];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 6);
        assert!(all.iter().all(|secret| !text.contains(secret.as_str())));
    }

    #[test]
    fn a_proof_belongs_to_one_session() {
        let key = SessionKey::draw().expect("a key");
        let proof = key.proof("one");
        assert!(key.proves("one", &proof) && !key.proves("two", &proof) && !key.proves("one", ""));
    }
}
