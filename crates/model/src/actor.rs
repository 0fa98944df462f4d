//! Actors: who asked for something, for the log and for the audit.
//!
//! Absent: secrets, and whether the actor may do what it asks for. A credential is named here, never shown.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// An actor: a person or a program that asked for a change. Its text is its name, which is what people read.
///
/// As JSON an actor of whom nothing but the name is known is that name, which is all that was kept at first; any other is an
/// object. Both forms are read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "ActorForm", into = "ActorForm")]
pub struct Actor {
    /// The kind: person, program, worker, or a part of Kelos.
    pub kind: ActorKind,
    /// Its name, as people read it.
    pub name: Arc<str>,
    /// The id of the token or the session that it came with; never a secret.
    pub credential: Option<Arc<str>>,
    /// The address that it came from.
    pub address: Option<IpAddr>,
}

/// The kinds of actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActorKind {
    /// A person, by the name that was given.
    Person,
    /// A program, by the token that was made for it.
    Token,
    /// A worker.
    Worker,
    /// A part of Kelos itself.
    System,
    /// An actor that did not say: the name is that of the door, or that of a record from before kinds were kept.
    Unknown,
}

impl ActorKind {
    /// Its name, as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ActorKind::Person => "person",
            ActorKind::Token => "token",
            ActorKind::Worker => "worker",
            ActorKind::System => "system",
            ActorKind::Unknown => "unknown",
        }
    }
}

impl Actor {
    /// An actor of a kind, of whom nothing but the name is known.
    #[must_use]
    pub fn new(kind: ActorKind, name: impl Into<Arc<str>>) -> Actor {
        Actor { kind, name: name.into(), credential: None, address: None }
    }

    /// A person of a name.
    #[must_use]
    pub fn person(name: impl Into<Arc<str>>) -> Actor {
        Actor::new(ActorKind::Person, name)
    }

    /// A part of Kelos itself: what it does on its own account.
    #[must_use]
    pub fn system(part: impl Into<Arc<str>>) -> Actor {
        Actor::new(ActorKind::System, part)
    }

    /// An unknown person, under the name of the door.
    #[must_use]
    pub fn unknown(name: impl Into<Arc<str>>) -> Actor {
        Actor::new(ActorKind::Unknown, name)
    }

    /// The same, coming from an address.
    #[must_use]
    pub fn with_address(self, address: Option<IpAddr>) -> Actor {
        Actor { address, ..self }
    }

    /// The name, where nothing else is known. One that looks like an object of JSON is none: where a text may be either, it
    /// would be taken for one.
    #[must_use]
    pub fn bare_name(&self) -> Option<&str> {
        let is_bare = self.kind == ActorKind::Unknown && self.credential.is_none() && self.address.is_none();
        (is_bare && !self.name.starts_with('{')).then_some(&*self.name)
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// An actor as JSON has it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ActorForm {
    Name(Arc<str>),
    Whole {
        kind: ActorKind,
        name: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        credential: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<IpAddr>,
    },
}

impl From<ActorForm> for Actor {
    fn from(stored: ActorForm) -> Actor {
        match stored {
            ActorForm::Name(name) => Actor::unknown(name),
            ActorForm::Whole { kind, name, credential, address } => Actor { kind, name, credential, address },
        }
    }
}

impl From<Actor> for ActorForm {
    fn from(actor: Actor) -> ActorForm {
        if actor.bare_name().is_some() {
            return ActorForm::Name(actor.name);
        }
        let Actor { kind, name, credential, address } = actor;
        ActorForm::Whole { kind, name, credential, address }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(actor: &Actor) -> String {
        serde_json::to_string(actor).expect("json")
    }

    #[test]
    fn what_is_not_known_takes_no_room() {
        assert_eq!(json(&Actor::unknown("web")), r#""web""#);
        assert_eq!(json(&Actor::person("anna")), r#"{"kind":"person","name":"anna"}"#);
        let whole = Actor { credential: Some("t7".into()), ..Actor::new(ActorKind::Token, "nightly") }
            .with_address("10.0.0.7".parse().ok());
        let text = r#"{"kind":"token","name":"nightly","credential":"t7","address":"10.0.0.7"}"#;
        assert_eq!(json(&whole), text);
        assert_eq!(serde_json::from_str::<Actor>(text).expect("an actor"), whole);
    }

    #[test]
    fn a_name_alone_is_somebody_of_whom_nothing_else_is_known() {
        let actor: Actor = serde_json::from_str(r#""anna""#).expect("an actor");
        assert_eq!((actor.kind, actor.to_string()), (ActorKind::Unknown, "anna".to_owned()));
    }
}
