//! The identity behind a request: the actor, what they may do, and by which credential they came in. Made once for each request.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, StatusCode};
use kelos_model::Actor;
use kelos_model::id::is_invisible;
use kelos_trust::{Grants, Session, TokenId};

use crate::fault::{Fault, is_native};

/// Longest name of a person, in bytes.
const LONGEST_NAME: usize = 200;

/// The identity behind a request.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The actor, as the log names it.
    pub actor: Actor,
    /// The grants at the time of the request.
    pub grants: Grants,
    /// The credential that was shown.
    pub credential: Credential,
}

/// The credential of a request.
#[derive(Debug, Clone)]
pub enum Credential {
    /// None is needed, because the server asks for none.
    Open,
    /// None was shown, and one is needed for almost everything.
    Missing,
    /// The token in the folder of the server's state: whoever can read it owns the server.
    Owner,
    /// The token of workers on the same machine.
    Worker,
    /// The token of the nodes that share a log and a key of sessions.
    Node,
    /// A token.
    Token(TokenId),
    /// The session of a person, with the proof that its forms carry.
    Session {
        /// The session.
        session: Box<Session>,
        /// The proof.
        proof: String,
    },
    /// The word of a trusted proxy.
    Proxy,
    /// A client certificate.
    Certificate,
    /// An address for which there is a rule.
    Address,
}

impl Credential {
    /// The id of the session or token, or the kind of credential, as the log has it.
    #[must_use]
    pub fn name(&self) -> Option<Arc<str>> {
        Some(match self {
            Credential::Open | Credential::Missing => return None,
            Credential::Owner => "owner".into(),
            Credential::Worker => "worker".into(),
            Credential::Node => "node".into(),
            Credential::Token(id) => id.as_str().into(),
            // The rest of the id would be enough to end the session.
            Credential::Session { session, .. } => {
                format!("session {}", session.id.get(..8).unwrap_or_default()).into()
            }
            Credential::Proxy => "proxy".into(),
            Credential::Certificate => "certificate".into(),
            Credential::Address => "address".into(),
        })
    }
}

impl Identity {
    /// Whether it may speak for a node: others send tokens and commands to the address that a node tells of itself.
    #[must_use]
    pub fn is_of_node(&self) -> bool {
        matches!(self.credential, Credential::Node | Credential::Owner | Credential::Open)
    }

    /// An identity that came in by a credential, from an address.
    #[must_use]
    pub fn new(actor: Actor, grants: Grants, credential: Credential, address: Option<IpAddr>) -> Identity {
        let actor = Actor { credential: credential.name(), address, ..actor };
        Identity { actor, grants, credential }
    }

    /// Whether somebody is known who could sign out.
    #[must_use]
    pub fn session(&self) -> Option<(&Session, &str)> {
        match &self.credential {
            Credential::Session { session, proof } => Some((session, proof)),
            _ => None,
        }
    }
}

/// The door by which a request comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// The native API.
    Api,
    /// The pages.
    Web,
    /// The dialect of Celos.
    Celos,
    /// The dialect of CDAP.
    Cdap,
}

impl Door {
    /// The door to a path.
    #[must_use]
    pub fn of(path: &str) -> Door {
        let is_below =
            |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        match path {
            path if is_native(path) => Door::Api,
            _ if is_below("/ui") => Door::Web,
            _ if is_below("/v3") => Door::Cdap,
            _ => Door::Celos,
        }
    }

    /// The name of an actor who comes through it and gives none.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Door::Api => "api",
            Door::Web => "web",
            Door::Celos => "celos-api",
            Door::Cdap => "cdap-api",
        }
    }
}

/// Names that clients send without knowing a person's: the scripts of the pages, and the command line.
const NAMELESS: [&str; 2] = ["web", "cli"];

/// The actor of a request that shows no credential: a person by the header `Kelos-User`, or else an unknown one through a door.
pub(crate) fn claimed(headers: &HeaderMap, door: Door) -> Result<Actor, Fault> {
    Ok(match claimed_name(headers)? {
        Some(name) if NAMELESS.contains(&name) => Actor::unknown(name),
        Some(name) => Actor::person(name),
        None => Actor::unknown(door.name()),
    })
}

fn claimed_name(headers: &HeaderMap) -> Result<Option<&str>, Fault> {
    let Some(value) = headers.get("kelos-user") else { return Ok(None) };
    let name = std::str::from_utf8(value.as_bytes()).unwrap_or_default().trim();
    if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(is_invisible) {
        let what = format!(
            "the header `Kelos-User` must be a name of 1 to {LONGEST_NAME} bytes in UTF-8, without invisible characters"
        );
        return Err(Fault::bad_request("bad-header", what));
    }
    Ok(Some(name))
}

/// The identity of a request that has passed the front.
pub fn of_request(extensions: &Extensions) -> Result<Arc<Identity>, Fault> {
    extensions.get::<Arc<Identity>>().cloned().ok_or_else(|| {
        let what = "the request did not pass the front of the server; this is a bug in the server";
        Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "bug", what)
    })
}

/// The actor of a request, as an argument of a route.
pub struct Caller(pub Actor);

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Fault> {
        Ok(Caller(of_request(&parts.extensions)?.actor.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_persons_and_a_door_is_an_unknown_ones() {
        let seen = |name: Option<&str>| {
            let mut headers = HeaderMap::new();
            name.map(|name| headers.insert("kelos-user", name.parse().unwrap()));
            claimed(&headers, Door::Celos)
        };
        assert_eq!(seen(Some("anna")).unwrap(), Actor::person("anna"));
        assert_eq!(seen(Some("web")).unwrap(), Actor::unknown("web"));
        assert_eq!(seen(None).unwrap(), Actor::unknown("celos-api"));
        assert!(seen(Some(" ")).is_err());
    }

    #[test]
    fn doors_are_told_by_paths() {
        let doors = ["/api/v1/x", "/ui", "/ui/x", "/v3/namespaces", "/uix", "/rerun", "/"].map(Door::of);
        use Door::{Api, Cdap, Celos, Web};
        assert_eq!(doors, [Api, Web, Web, Cdap, Celos, Celos, Celos]);
    }

    #[test]
    fn a_request_that_did_not_pass_the_front_is_a_bug() {
        assert_eq!(of_request(&Extensions::new()).unwrap_err().code, "bug");
    }
}
