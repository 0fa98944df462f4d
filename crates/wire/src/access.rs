//! Users, tokens, and what is on record of who did what.

use serde::{Deserialize, Serialize};

use crate::{Code, EventDto, Instant};

/// The identity of a caller.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct IdentityDto {
    /// The name, as the log has it.
    pub name: String,
    /// The kind of actor: `person`, `token`, `worker` or `unknown`.
    pub kind: Code,
    /// The credential: the id of a token or of a session, or its kind; none where none was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// The roles: `view`, `operate@warehouse`.
    pub roles: Vec<String>,
    /// Whether the server asks for credentials at all.
    pub required: bool,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct UserDto {
    /// The name.
    pub name: String,
    /// The roles.
    pub roles: Vec<String>,
    /// Whether the user has a password; without one a proxy or a provider vouches for the user.
    pub has_password: bool,
    /// Whether the user may not come in.
    pub disabled: bool,
}

/// A change of a user, or a new one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct UserRequest {
    /// The roles, in place of those that the user has. Needed for a new user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
    /// The new password, which ends all sessions of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Whether the user may not come in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TokenDto {
    /// The id, by which it is revoked.
    pub id: String,
    /// The name, as the log has it.
    pub name: String,
    /// The roles.
    pub roles: Vec<String>,
    /// The user it belongs to, who limits its rights; none for a machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// When it was made.
    pub made_at: Instant,
    /// When it expires; none if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Instant>,
    /// When it was last used, to the hour after a restart of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Instant>,
}

/// A new token.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TokenRequest {
    /// The name.
    pub name: String,
    /// The roles: none that the caller does not have.
    pub roles: Vec<String>,
    /// Seconds until it expires; none if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A new token with its secret, which is shown this once.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewTokenDto {
    /// The whole token.
    pub secret: String,
    /// The token.
    pub token: TokenDto,
}

/// A name and a password, to be exchanged for a token.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LoginRequest {
    /// The name of the user.
    pub user: String,
    /// The password.
    pub password: String,
    /// The name of the token.
    pub name: String,
    /// Seconds until the token expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
}

/// An event with all that is known of the actor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditDto {
    /// The name of the actor.
    pub who: String,
    /// The kind of actor.
    pub kind: Code,
    /// The credential: the id of a token or of a session, or its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// The address that the request came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The event.
    pub event: EventDto,
}
