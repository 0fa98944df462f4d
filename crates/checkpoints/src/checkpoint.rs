//! A checkpoint: what is signed, and how it is written.

use std::fmt;

use jiff::Timestamp;
use kelos_model::time::{format_full, parse_instant};
use kelos_store::{Digest, TurnRecord};
use serde_json::{Value, json};

use crate::key::{PrivateKey, PublicKey, Signature, hex, unhex};

/// The version of what is signed.
const VERSION: u64 = 1;

/// The longest name of an instance, in bytes.
pub(crate) const LONGEST_INSTANCE: usize = 200;

/// The digest of a turn, and with it of all turns before, signed at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The name of the instance whose log it is.
    pub instance: String,
    /// The number of the turn.
    pub turn: u64,
    /// The fencing token of the leader that wrote the turn.
    pub epoch: u64,
    /// When it was signed, in whole milliseconds.
    pub at: Timestamp,
    /// The digest of the turn.
    pub digest: Digest,
    /// The public half of the key that signed it.
    pub key: PublicKey,
    /// The signature.
    signature: Signature,
}

/// The reason for which something is no checkpoint. Messages complete "it is no checkpoint: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointProblem {
    /// It is no JSON.
    #[error("it is no JSON: {0}")]
    Json(String),
    /// A field is missing, or has another form.
    #[error("its `{field}` is {found}, expected {expected}")]
    Field {
        /// The name of the field.
        field: &'static str,
        /// Its value.
        found: String,
        /// The values that it may have.
        expected: &'static str,
    },
    /// The signature is not that of its key over what it says.
    #[error("its signature does not agree with what it says: somebody changed it, or never had the key")]
    Signature,
}

impl Checkpoint {
    /// Signs a turn.
    #[must_use]
    pub fn sign(key: &PrivateKey, instance: &str, turn: &TurnRecord, at: Timestamp) -> Checkpoint {
        let at = Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at);
        let TurnRecord { turn, epoch, digest, .. } = *turn;
        let signed = signed_text(instance, turn, epoch, at, &digest, &key.public());
        let signature = key.sign(signed.as_bytes());
        Checkpoint { instance: instance.to_owned(), turn, epoch, at, digest, key: key.public(), signature }
    }

    /// Reads one from JSON, and checks that it is signed with the key that it names.
    ///
    /// # Errors
    /// When it has another form, or its signature is wrong.
    pub fn read(text: &str) -> Result<Checkpoint, CheckpointProblem> {
        let value = serde_json::from_str(text).map_err(|error| CheckpointProblem::Json(error.to_string()))?;
        Checkpoint::of_json(&value)
    }

    /// The same of a value.
    pub(crate) fn of_json(value: &Value) -> Result<Checkpoint, CheckpointProblem> {
        let field = |name: &'static str| value.get(name).unwrap_or(&Value::Null);
        let wrong = |name: &'static str, expected| CheckpointProblem::Field {
            field: name,
            found: shortened(field(name)),
            expected,
        };
        let number = |name| field(name).as_u64().ok_or_else(|| wrong(name, "a number"));
        let text = |name, expected| field(name).as_str().ok_or_else(|| wrong(name, expected));
        let bytes = |name, expected| unhex(text(name, expected)?).ok_or_else(|| wrong(name, expected));
        if number("checkpoint")? != VERSION {
            return Err(wrong("checkpoint", "1, the only version that this program knows"));
        }
        const MOMENT: &str = "a moment such as 2026-01-31T00:00:00.000Z";
        const KEY: &str = "a public key of 64 hexadecimal digits";
        let instance = text("instance", "a text")?;
        let instance = named(instance).map_err(|_| wrong("instance", "a name without control characters"))?;
        let at = parse_instant(text("at", MOMENT)?).map_err(|_| wrong("at", MOMENT))?;
        let digest = bytes("digest", "64 hexadecimal digits")?;
        let digest = Digest::from_bytes(&digest).ok_or_else(|| wrong("digest", "64 hexadecimal digits"))?;
        let key = PublicKey::read(text("key", KEY)?).map_err(|_| wrong("key", KEY))?;
        let signature = bytes("signature", "128 hexadecimal digits")?;
        let signature = signature.try_into().map_err(|_| wrong("signature", "128 hexadecimal digits"))?;
        let (turn, epoch) = (number("turn")?, number("epoch")?);
        let checkpoint = Checkpoint { instance, turn, epoch, at, digest, key, signature };
        if checkpoint.is_genuine() { Ok(checkpoint) } else { Err(CheckpointProblem::Signature) }
    }

    /// Whether its signature is that of its key over what it says.
    fn is_genuine(&self) -> bool {
        let Checkpoint { instance, turn, epoch, at, digest, key, signature } = self;
        let signed = signed_text(instance, *turn, *epoch, *at, digest, key);
        key.has_signed(signed.as_bytes(), signature)
    }

    /// The JSON as which it is sent and kept.
    #[must_use]
    pub fn json(&self) -> Value {
        let Checkpoint { instance, turn, epoch, at, digest, key, signature } = self;
        json!({
            "checkpoint": VERSION,
            "instance": instance,
            "turn": turn,
            "epoch": epoch,
            "at": format_full(*at),
            "digest": digest.to_string(),
            "key": key.to_string(),
            "signature": hex(signature),
        })
    }

    /// The name of its object: those of one log sort by their turns, and another digest of the same turn has another name.
    #[must_use]
    pub fn object_name(&self) -> String {
        let digest = self.digest.to_string();
        format!("checkpoint-{:020}-{:010}-{}.json", self.turn, self.epoch, digest.get(..16).unwrap_or_default())
    }
}

/// Its name for people: its turn, and when it was signed.
impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the checkpoint of turn {}, signed at {}", self.turn, format_full(self.at))
    }
}

/// The text that is signed. It never changes for a version that was ever signed.
fn signed_text(instance: &str, turn: u64, epoch: u64, at: Timestamp, digest: &Digest, key: &PublicKey) -> String {
    format!("kelos checkpoint {VERSION}\n{instance}\n{turn}\n{epoch}\n{}\n{digest}\n{key}\n", format_full(at))
}

/// A text as the name of an instance; a line break in it would move what is signed.
pub(crate) fn named(text: &str) -> Result<String, String> {
    let is_name = !text.trim().is_empty() && text.len() <= LONGEST_INSTANCE && !text.chars().any(char::is_control);
    let expected = || format!("expected a name of at most {LONGEST_INSTANCE} bytes without control characters");
    is_name.then(|| text.to_owned()).ok_or_else(expected)
}

/// A value for a message.
fn shortened(value: &Value) -> String {
    let text = match value {
        Value::Null => return "missing".to_owned(),
        value => value.to_string(),
    };
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed() -> Checkpoint {
        let turn = TurnRecord {
            turn: 812,
            epoch: 3,
            at: Timestamp::UNIX_EPOCH,
            first_event: 7,
            events: 1,
            body: 2,
            digest: Digest::from_bytes(&[0xab; 32]).unwrap(),
        };
        Checkpoint::sign(&PrivateKey::of_seed([7; 32]), "shop", &turn, Timestamp::from_millisecond(1).unwrap())
    }

    #[test]
    fn it_is_read_as_it_was_written_and_stays_what_it_is() {
        let checkpoint = signed();
        assert_eq!(Checkpoint::read(&checkpoint.json().to_string()), Ok(checkpoint.clone()));
        insta::assert_snapshot!(checkpoint.json(), @r#"{"checkpoint":1,"instance":"shop","turn":812,"epoch":3,"at":"1970-01-01T00:00:00.001Z","digest":"abababababababababababababababababababababababababababababababab","key":"ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c","signature":"12707da97b3ba6515010b9f5927f96248a861d7b2865486eee078e122593ce827cba6c9aa32afeff893d99644a08033d90c8a2d3449f42df8b27af4597f4f30c"}"#);
        assert_eq!(checkpoint.object_name(), "checkpoint-00000000000000000812-0000000003-abababababababab.json");
        assert_eq!(checkpoint.to_string(), "the checkpoint of turn 812, signed at 1970-01-01T00:00:00.001Z");
    }

    #[test]
    fn each_change_breaks_the_signature_or_the_form() {
        let written = signed().json();
        for (field, other) in [
            ("instance", json!("shop2")),
            ("turn", json!(813)),
            ("epoch", json!(4)),
            ("at", json!("1970-01-01T00:00:00.002Z")),
            ("digest", json!("ac".repeat(32))),
            ("key", json!(PrivateKey::of_seed([8; 32]).public().to_string())),
            ("signature", json!("00".repeat(64))),
        ] {
            let mut changed = written.clone();
            changed[field] = other;
            assert_eq!(Checkpoint::of_json(&changed), Err(CheckpointProblem::Signature), "{field}");
        }
        for (field, other, words) in [
            ("checkpoint", json!(2), "its `checkpoint` is 2, expected 1, the only version that this program knows"),
            ("instance", json!("a\nb"), "its `instance` is \"a\\nb\", expected a name without control characters"),
            ("turn", json!(-1), "its `turn` is -1, expected a number"),
            ("at", json!("soon"), "its `at` is \"soon\", expected a moment such as 2026-01-31T00:00:00.000Z"),
            ("digest", json!("ab"), "its `digest` is \"ab\", expected 64 hexadecimal digits"),
            ("key", json!("zz"), "its `key` is \"zz\", expected a public key of 64 hexadecimal digits"),
            ("signature", Value::Null, "its `signature` is missing, expected 128 hexadecimal digits"),
        ] {
            let mut changed = written.clone();
            changed[field] = other;
            assert_eq!(Checkpoint::of_json(&changed).unwrap_err().to_string(), words);
        }
        assert!(Checkpoint::read("{").unwrap_err().to_string().starts_with("it is no JSON: "));
    }
}
