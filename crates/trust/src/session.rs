//! Sessions of people: signed cookies, so that every server with the key knows them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

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
        let mut id = [0; 16];
        getrandom::fill(&mut id)?;
        Ok(Session {
            id: URL_SAFE_NO_PAD.encode(id),
            user: user.to_owned(),
            epoch,
            until: now.saturating_add(LASTS).unwrap_or(now),
            provider: None,
            groups: Vec::new(),
        })
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
        let body = URL_SAFE_NO_PAD.encode(serde_json::to_vec(session).unwrap_or_default());
        let mac = URL_SAFE_NO_PAD.encode(self.mac("session", &body).finalize().into_bytes());
        format!("{body}.{mac}")
    }

    /// The session that a text is, if this key signed it and it has not ended.
    #[must_use]
    pub fn read(&self, text: &str, now: Timestamp) -> Option<Session> {
        let (body, mac) = text.split_once('.')?;
        let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
        self.mac("session", body).verify_slice(&mac).ok()?;
        let session: Session = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).ok()?).ok()?;
        (now < session.until).then_some(session)
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
    fn a_proof_belongs_to_one_session() {
        let key = SessionKey::draw().expect("a key");
        let proof = key.proof("one");
        assert!(key.proves("one", &proof) && !key.proves("two", &proof) && !key.proves("one", ""));
    }
}
