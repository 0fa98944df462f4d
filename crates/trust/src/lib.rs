//! Access and its terms: rights, roles and grants; the records of users and tokens; sessions; the contract of
//! providers; limited tries.
//!
//! Everything here is a pure function of records, of secrets that were shown, and of a moment that the caller passes; only new secrets
//! are drawn from the machine's randomness. What is *absent*: HTTP, storage, and the clock.

mod account;
mod directory;
mod grant;
mod openid;
mod password;
mod provider;
mod right;
mod rules;
mod session;
mod token;
mod tries;

pub use account::{AccountName, RecordError, TokenRecord, UserRecord};
pub use directory::Directory;
pub use grant::{Grant, GrantError, Grants};
pub use kelos_model::sharing::Scope;
pub use openid::{OpenIdSettings, SecretPlace, protected};
pub use password::{PasswordError, PasswordHash};
pub use provider::{Person, Provider, ProviderAnswer, ProviderError, ProviderVisit, VisitSecrets};
pub use right::{Right, Rights, Role};
pub use rules::{AddressRule, ForwardedHeaders, Rules, RulesError};
pub use session::{Session, SessionKey};
pub use token::{Token, TokenId, same};
pub use tries::Tries;
