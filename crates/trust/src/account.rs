//! The records of users and tokens: registers of one bucket, so that the log has each change, and who made it.

use std::collections::BTreeSet;
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

/// Names under which the log has what nobody in particular did.
const RESERVED: [&str; 4] = ["owner", "cli", "server", "kelos"];

/// The script of a letter, as far as letters of different ones look alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Script {
    Latin,
    Greek,
    Cyrillic,
    Armenian,
    Cherokee,
    /// A letter in another form than its own: wide, mathematical, in a circle.
    Form,
    Other,
}

impl Script {
    fn of(letter: char) -> Script {
        match letter {
            '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Script::Latin,
            '\u{250}'..='\u{2af}' | '\u{1d00}'..='\u{1dbf}' | '\u{2100}'..='\u{214f}' | '\u{2460}'..='\u{24ff}' => {
                Script::Form
            }
            '\u{a720}'..='\u{a7ff}' | '\u{fb00}'..='\u{fb4f}' | '\u{ff00}'..='\u{ffef}' => Script::Form,
            '\u{1d400}'..='\u{1d7ff}' | '\u{1f100}'..='\u{1f1ff}' => Script::Form,
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Script::Greek,
            '\u{400}'..='\u{52f}' | '\u{1c80}'..='\u{1c8f}' | '\u{2de0}'..='\u{2dff}' | '\u{a640}'..='\u{a69f}' => {
                Script::Cyrillic
            }
            '\u{530}'..='\u{58f}' => Script::Armenian,
            '\u{13a0}'..='\u{13ff}' | '\u{ab70}'..='\u{abbf}' => Script::Cherokee,
            _ => Script::Other,
        }
    }
}

/// The error of a name or a record. Completes "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The text is no name.
    #[error("take \"{}\" as a name: expected 1 to {LONGEST_NAME} letters, digits and . _ - @ +", .0.escape_debug())]
    Name(String),
    /// The name looks like another one: it mixes scripts, or has letters in another form.
    #[error(
        "take \"{0}\" as a name: it can be mistaken for another one, expected letters of one script in their usual form"
    )]
    LookAlike(String),
    /// The name is one that Kelos uses itself.
    #[error("take \"{0}\" as a name: the log has it for Kelos itself, expected another one")]
    Reserved(String),
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

    /// The same for a name that somebody is about to be given: it must not be mistaken for another one. Names from before this was asked
    /// stay as they are.
    ///
    /// # Errors
    /// When it mixes scripts, has letters in another form, or is one that the log has for Kelos itself.
    pub fn given(text: &str) -> Result<AccountName, RecordError> {
        let name = AccountName::new(text)?;
        if RESERVED.contains(&text.to_lowercase().as_str()) {
            return Err(RecordError::Reserved(text.to_owned()));
        }
        let scripts: BTreeSet<Script> = text.chars().filter(|letter| letter.is_alphabetic()).map(Script::of).collect();
        match scripts.len() > 1 || scripts.contains(&Script::Form) {
            true => Err(RecordError::LookAlike(text.to_owned())),
            false => Ok(name),
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

    #[test]
    fn a_new_name_is_not_mistaken_for_another_one() {
        for name in ["anna", "Jürgen", "анна", "Ελένη", "美咲", "ci-1.x"] {
            assert_eq!(AccountName::given(name).expect(name).as_str(), name);
        }
        for name in ["ａnn", "ａｎｎ", "\u{430}nna", "ann\u{3bf}", "\u{1d41a}nn", "owner", "Owner", "cli"] {
            AccountName::given(name).expect_err(name);
            AccountName::new(name).expect("stored names stay readable");
        }
    }
}
