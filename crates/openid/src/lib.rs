//! Sign-in at a provider of OpenID Connect: the authorization code flow with PKCE, and ID tokens that are verified here.
//!
//! A visit begins with [`Provider::entrance`] and ends with [`Provider::person`]; what lies between is the browser's. What is
//! *absent*: routes, cookies, sessions, roles, and tokens that outlive the call in which they were got.

mod claims;
mod client;
mod keys;
mod metadata;
mod provider;
mod signed;

pub use provider::OpenId;
