//! Providers that vouch for people, and the visits of browsers to them.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::token::draw_id;

/// How long a browser may take at a provider.
const LASTS: SignedDuration = SignedDuration::from_mins(10);

/// A provider that vouches for people, who sign in there.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The address of the provider, by which sessions name it.
    fn issuer(&self) -> &str;

    /// The address to which a browser is sent for a visit.
    ///
    /// # Errors
    /// When the provider can't be asked.
    async fn entrance(&self, secrets: &VisitSecrets, now: Timestamp) -> Result<String, ProviderError>;

    /// The person for whom the provider vouches by the answer with which it sent a browser back.
    ///
    /// # Errors
    /// When it does not, or can't be asked.
    async fn person(
        &self,
        secrets: &VisitSecrets,
        answer: &ProviderAnswer,
        now: Timestamp,
    ) -> Result<Person, ProviderError>;
}

/// The error of a provider, as people read it: a fragment. It never has a token or a code in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The provider vouches for nobody, or not in a way that counts.
    #[error("{0}")]
    Refused(String),
    /// The provider can't be asked, or the settings of this server don't fit it.
    #[error("{0}")]
    Unusable(String),
}

/// The answer with which a provider sends a browser back: the parameters of the address. Other parameters don't count.
#[derive(Default, Deserialize)]
pub struct ProviderAnswer {
    /// The proof that it answers a visit that began here.
    #[serde(default)]
    pub state: String,
    /// The code that stands for the tokens.
    pub code: Option<String>,
    /// The provider that answers.
    pub iss: Option<String>,
    /// The kind of error.
    pub error: Option<String>,
    /// The error in words.
    pub error_description: Option<String>,
}

/// The person for whom a provider vouches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The name, as the provider has it.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
}

/// A visit of a browser to a provider, as it is signed in a cookie. Its secrets are made from its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderVisit {
    /// Its id.
    pub id: String,
    /// The place on this server to which the person wants to come.
    pub back: String,
    /// Its end.
    pub until: Timestamp,
}

/// The secrets of a visit. Only the server knows them before it uses them.
pub struct VisitSecrets {
    /// The proof that an answer belongs to the browser.
    pub state: String,
    /// The proof that an ID token belongs to the visit.
    pub nonce: String,
    /// The proof that whoever uses the code is who asked for it (PKCE).
    pub verifier: String,
}

impl ProviderVisit {
    /// A visit that begins now.
    ///
    /// # Errors
    /// When the machine has no randomness.
    pub fn begin(back: &str, now: Timestamp) -> Result<ProviderVisit, getrandom::Error> {
        Ok(ProviderVisit { id: draw_id()?, back: back.to_owned(), until: now.saturating_add(LASTS).unwrap_or(now) })
    }
}
