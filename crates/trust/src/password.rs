//! Passwords, which are stored as hashes that are slow to guess.

use argon2::password_hash::phc::PasswordHash as Phc;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};
use serde::{Deserialize, Serialize};

/// Fewest letters of a password. Length counts; rules about its letters only make people write it down.
const SHORTEST: usize = 10;
/// Most bytes: a longer one would only cost time.
const LONGEST: usize = 1024;

/// The hash of a password, by Argon2id with the cost that OWASP's cheat sheet on the storage of passwords names first: 19 MiB, two
/// passes, one lane.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(String);

/// The error of a password that can't be taken. Completes "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// It is too short.
    #[error(
        "take the password: it has {0} characters, expected {SHORTEST} at least; several words are easy to remember"
    )]
    Short(usize),
    /// It is too long.
    #[error("take the password: it has {0} bytes, expected {LONGEST} at most")]
    Long(usize),
    /// The hash could not be made.
    #[error("hash the password: {0}")]
    Hash(String),
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(19 * 1024, 2, 1, None).unwrap_or(Params::DEFAULT);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

impl PasswordHash {
    /// The hash of a new password, with a salt of its own. Takes tens of milliseconds.
    ///
    /// # Errors
    /// When the password is too short or too long.
    pub fn of(password: &str) -> Result<PasswordHash, PasswordError> {
        match (password.chars().count(), password.len()) {
            (letters, _) if letters < SHORTEST => return Err(PasswordError::Short(letters)),
            (_, bytes) if bytes > LONGEST => return Err(PasswordError::Long(bytes)),
            _ => {}
        }
        let fail = |error: &dyn std::fmt::Display| PasswordError::Hash(error.to_string());
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).map_err(|error| fail(&error))?;
        let hash = argon2().hash_password_with_salt(password.as_bytes(), &salt).map_err(|error| fail(&error))?;
        Ok(PasswordHash(hash.to_string()))
    }

    /// Whether a password is the one that was hashed. Takes tens of milliseconds, also if the hash can't be read.
    #[must_use]
    pub fn is_of(&self, password: &str) -> bool {
        if password.len() > LONGEST {
            return false;
        }
        match Phc::new(&self.0) {
            Ok(hash) => argon2().verify_password(password.as_bytes(), &hash).is_ok(),
            Err(_) => {
                Self::waste(password);
                false
            }
        }
    }

    /// Takes as long as a check of a password does, for names that nobody has: otherwise the time would tell which exist.
    pub fn waste(password: &str) {
        let password = if password.len() > LONGEST { "" } else { password };
        let _ = argon2().hash_password_with_salt(password.as_bytes(), b"a salt of nobody");
    }
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("PasswordHash")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_again_by_its_hash() {
        let hash = PasswordHash::of("correct horse battery").expect("a hash");
        assert!(hash.is_of("correct horse battery") && !hash.is_of("correct horse batterY") && !hash.is_of(""));
        let stored = serde_json::to_string(&hash).expect("JSON");
        assert!(stored.starts_with("\"$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        assert_eq!(format!("{hash:?}"), "PasswordHash");
        assert!(!PasswordHash("nonsense".to_owned()).is_of("x"));
    }

    #[test]
    fn short_and_endless_passwords_are_refused() {
        assert_eq!(PasswordHash::of("short"), Err(PasswordError::Short(5)));
        assert_eq!(PasswordHash::of(&"x".repeat(2000)), Err(PasswordError::Long(2000)));
    }
}
