//! The actor behind a request, determined once for each: by the given name, or else by the door.
//!
//! Absent: authentication and authorisation.

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use kelos_model::Actor;
use kelos_model::id::is_invisible;

use crate::address::ClientAddress;

/// Longest name of a person, in bytes.
const LONGEST_NAME: usize = 200;

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
    /// The name of an actor who comes through it and gives none.
    fn name(self) -> &'static str {
        match self {
            Door::Api => "api",
            Door::Web => "web",
            Door::Celos => "celos-api",
            Door::Cdap => "cdap-api",
        }
    }
}

/// Names that clients send without knowing a person's: the scripts of the pages, and the command line.
const NOBODY: [&str; 2] = ["web", "cli"];

/// The actor behind a request: a person by the header `Kelos-User`, or else an unknown one through a door.
pub fn actor(headers: &HeaderMap, extensions: &Extensions, door: Door) -> Result<Actor, String> {
    let actor = match name(headers)? {
        Some(name) if NOBODY.contains(&name) => Actor::unknown(name),
        Some(name) => Actor::person(name),
        None => Actor::unknown(door.name()),
    };
    Ok(actor.with_address(address(extensions)))
}

/// The same, from a request without its body.
pub fn of_parts(parts: &Parts, door: Door) -> Result<Actor, String> {
    actor(&parts.headers, &parts.extensions, door)
}

fn name(headers: &HeaderMap) -> Result<Option<&str>, String> {
    let Some(value) = headers.get("kelos-user") else { return Ok(None) };
    let name = std::str::from_utf8(value.as_bytes()).unwrap_or_default().trim();
    if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(is_invisible) {
        return Err(format!(
            "the header `Kelos-User` must be a name of 1 to {LONGEST_NAME} bytes in UTF-8, without invisible characters"
        ));
    }
    Ok(Some(name))
}

/// The other end of the request; none if there is no connection.
fn address(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<ClientAddress>().map(|client| client.ip)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use kelos_model::ActorKind;

    use super::*;

    fn seen(name: Option<&str>, peer: Option<&str>) -> Actor {
        let mut request = Request::new(());
        name.map(|name| request.headers_mut().insert("kelos-user", name.parse().unwrap()));
        peer.map(|peer| request.extensions_mut().insert(ClientAddress::direct(peer.parse().unwrap(), false)));
        of_parts(&request.into_parts().0, Door::Celos).unwrap()
    }

    #[test]
    fn a_name_is_a_persons_and_a_door_is_nobodys() {
        assert_eq!(seen(Some("anna"), None), Actor::person("anna"));
        assert_eq!(seen(Some("web"), None), Actor::unknown("web"));
        assert_eq!(seen(None, None), Actor::unknown("celos-api"));
    }

    #[test]
    fn the_address_is_that_of_the_connection() {
        let there = seen(None, Some("::ffff:10.0.0.7"));
        assert_eq!((there.kind, there.address), (ActorKind::Unknown, "10.0.0.7".parse().ok()));
    }
}
