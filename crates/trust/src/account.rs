//! The records of users and tokens: registers of one bucket, so that the log has each change, and who made it.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::grant::Grant;
use crate::password::PasswordHash;
use crate::token::TokenId;

/// Longest name of a user or token.
const LONGEST_NAME: usize = 64;

/// The name of a user or a token, as people type it: letters, digits and `. _ - @ +`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AccountName(Arc<str>);

/// The error of a name or a record. Completes "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The text is no name.
    #[error("take \"{}\" as a name: expected 1 to {LONGEST_NAME} letters, digits and . _ - @ +", .0.escape_debug())]
    Name(String),
    /// A stored record can't be read.
    #[error("read the record \"{key}\" of access: {why}")]
    Record {
        /// Its key.
        key: String,
        /// The reason.
        why: String,
    },
}

impl AccountName {
    /// The name that a text is.
    ///
    /// # Errors
    /// When it has other letters, or too many.
    pub fn new(text: &str) -> Result<AccountName, RecordError> {
        let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-' | '@' | '+');
        match (1..=LONGEST_NAME).contains(&text.chars().count()) && text.chars().all(fits) {
            true => Ok(AccountName(text.into())),
            false => Err(RecordError::Name(text.to_owned())),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AccountName {
    type Error = RecordError;

    fn try_from(text: String) -> Result<AccountName, RecordError> {
        AccountName::new(&text)
    }
}

impl From<AccountName> for String {
    fn from(name: AccountName) -> String {
        name.0.to_string()
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

/// The record of a user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserRecord {
    /// The roles.
    pub roles: Vec<Grant>,
    /// The hash of the password; none for people whom a proxy or a provider vouches for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<PasswordHash>,
    /// Whether the user may not come in.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disabled: bool,
    /// The number of the user's sessions: it grows with each change of the password, which ends all older sessions.
    #[serde(default)]
    pub epoch: u32,
}

/// The record of a token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenRecord {
    /// Its name, which the log shows as the actor.
    pub name: AccountName,
    /// The digest of the token.
    pub digest: String,
    /// Its roles.
    pub roles: Vec<Grant>,
    /// The user who made it for themselves: it never has more rights than that user has at the time of use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<AccountName>,
    /// When it was made.
    pub made_at: Timestamp,
    /// When it expires; none if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl UserRecord {
    /// The key of the register of a user.
    #[must_use]
    pub fn key(name: &AccountName) -> String {
        format!("user/{name}")
    }
}

impl TokenRecord {
    /// The key of the register of a token.
    #[must_use]
    pub fn key(id: &TokenId) -> String {
        format!("token/{id}")
    }

    /// Whether it has expired.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// A stored record, by its key.
pub(crate) fn read<T: for<'de> Deserialize<'de>>(key: &str, value: &Value) -> Result<T, RecordError> {
    T::deserialize(value).map_err(|error| RecordError::Record { key: key.to_owned(), why: error.to_string() })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(is: &bool) -> bool {
    !is
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_people_type() {
        for name in ["anna", "anna@example.com", "Jürgen", "ci-1.x"] {
            assert_eq!(AccountName::new(name).expect(name).as_str(), name);
        }
        for name in ["", "a b", "a/b", "a\n", "<b>", &"x".repeat(65), "a\u{202e}b", "a:b"] {
            let error = AccountName::new(name).expect_err(name).to_string();
            assert!(error.contains("expected 1 to 64 letters") && !error.contains('\n'), "{error}");
        }
    }
}
