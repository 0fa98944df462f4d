//! Passwords, which are stored as hashes that are slow to guess.

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash as Phc, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use serde::{Deserialize, Serialize};

use crate::token::same;

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

/// The blocks of memory that are asked for, of which a hash touches the first: glibc gives an allocation of more than 32 MiB back to the system
/// when it is freed, and would keep smaller ones for each thread that ever hashed a password.
const BLOCKS: usize = 33 * 1024;

fn usual() -> Params {
    Params::new(19 * 1024, 2, 1, None).unwrap_or(Params::DEFAULT)
}

/// The hash of a password.
fn digest(password: &str, salt: &[u8], (version, params): (Version, &Params)) -> Result<Output, String> {
    let mut memory = Vec::with_capacity(params.block_count().max(BLOCKS));
    memory.resize(params.block_count(), Block::default());
    let mut out = [0; Output::MAX_LENGTH];
    let length = params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
    let out = out.get_mut(..length).ok_or("the hash is too long")?;
    let argon2 = Argon2::new(Algorithm::Argon2id, version, params.clone());
    let made = argon2.hash_password_into_with_memory(password.as_bytes(), salt, out, &mut memory[..]);
    made.map_err(|error| error.to_string())?;
    Output::new(out).map_err(|error| error.to_string())
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
        let (version, params) = (Version::V0x13, usual());
        let hash = digest(password, &salt, (version, &params)).map_err(|error| fail(&error))?;
        let hash = Phc {
            algorithm: Algorithm::Argon2id.ident(),
            version: Some(version.into()),
            params: ParamsString::try_from(&params).map_err(|error| fail(&error))?,
            salt: Some(Salt::new(&salt).map_err(|error| fail(&error))?),
            hash: Some(hash),
        };
        Ok(PasswordHash(hash.to_string()))
    }

    /// Whether a password is the one that was hashed. Takes tens of milliseconds, also if the hash can't be read.
    #[must_use]
    pub fn is_of(&self, password: &str) -> bool {
        if password.len() > LONGEST {
            return false;
        }
        let Some((hash, salt, version, params)) = self.parts() else {
            Self::waste(password);
            return false;
        };
        digest(password, &salt, (version, &params)).is_ok_and(|made| same(made.as_ref(), hash.as_ref()))
    }

    /// The hash, its salt, and the cost with which it was made; none if it can't be read.
    fn parts(&self) -> Option<(Output, Salt, Version, Params)> {
        let phc = Phc::new(&self.0).ok().filter(|phc| phc.algorithm == Algorithm::Argon2id.ident())?;
        let version = Version::try_from(phc.version?).ok()?;
        Some((phc.hash?, phc.salt?, version, Params::try_from(&phc).ok()?))
    }

    /// Takes as long as a check of a password does, for names that nobody has: otherwise the time would tell which exist.
    pub fn waste(password: &str) {
        let password = if password.len() > LONGEST { "" } else { password };
        let _ = digest(password, b"a salt of nobody", (Version::V0x13, &usual()));
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
    fn hashes_are_those_of_the_library() {
        use argon2::{Argon2, PasswordHasher, PasswordVerifier};
        let own = PasswordHash::of("correct horse battery").expect("a hash");
        let read = Phc::new(&own.0).expect("a hash in its text form");
        assert!(Argon2::default().verify_password(b"correct horse battery", &read).is_ok());
        let params = Params::new(64, 1, 1, Some(24)).expect("a cost");
        let cheap = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let stored = cheap.hash_password_with_salt(b"another password", b"salt and pepper").expect("a hash");
        let stored = PasswordHash(stored.to_string());
        assert!(stored.is_of("another password") && !stored.is_of("another passwore"));
    }

    #[test]
    fn short_and_endless_passwords_are_refused() {
        assert_eq!(PasswordHash::of("short"), Err(PasswordError::Short(5)));
        assert_eq!(PasswordHash::of(&"x".repeat(2000)), Err(PasswordError::Long(2000)));
    }
}
