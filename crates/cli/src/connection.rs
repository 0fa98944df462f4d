//! The server that a command asks: the one that was named, that of the current folder, or this process itself.

use std::ops::Deref;
use std::time::Duration;

use crate::apps::Apps;
use crate::client::Client;
use crate::failure::{Failure, UNREACHABLE};
use crate::fleet::{self, Fleet};
use crate::location::{Location, PORT};
use crate::logging;
use crate::options::Door;
use crate::terminal;
use crate::trust::TrustOptions;

/// A client, with the server in this process that answers it where a folder of workers has no leader.
pub(crate) struct Connection {
    client: Client,
    trust: TrustOptions,
    /// Whether the server is that of this folder, which says itself where it is.
    is_nearby: bool,
    lead: Option<Fleet>,
}

impl Connection {
    /// A connection to the server that was named, else to that of this folder, else to the one at the usual port. In a folder
    /// that workers share there is always an answer: this process leads if no other one does.
    pub(crate) fn open(door: &Door) -> Result<Connection, Failure> {
        Connection::with(door, |fleet| fleet)
    }

    /// The same for a question that is answered at once, and changes nothing: where this process leads, it schedules nothing.
    pub(crate) fn to_read(door: &Door) -> Result<Connection, Failure> {
        Connection::with(door, Fleet::only_asking)
    }

    fn with(door: &Door, adjust: impl FnOnce(Fleet) -> Fleet) -> Result<Connection, Failure> {
        let named = door.server.as_deref().filter(|server| !server.is_empty());
        if named.is_none()
            && let Some(fleet) = fleet::of_workers_alone()?
        {
            let fleet = adjust(fleet);
            let client = Client::of(&fleet.find()?, &door.trust)?;
            return Ok(Connection { client, trust: door.trust.clone(), is_nearby: true, lead: Some(fleet) });
        }
        let nearby = Location::nearby().filter(|_| named.is_none());
        let is_nearby = nearby.is_some();
        let client = match (named, nearby) {
            (Some(server), _) => Client::at(server, &door.trust),
            (None, Some(location)) => Client::of(&location, &door.trust),
            // The server at the usual port would be that of another folder.
            (None, None) if Apps::of_environment().are_named() => Err(none_running()),
            (None, None) => Client::at(&format!("http://127.0.0.1:{PORT}"), &door.trust),
        };
        Ok(Connection { client: client?, trust: door.trust.clone(), is_nearby, lead: None })
    }

    /// Looks anew for the server of this folder, which has another address and another name once it was started again. A server that
    /// was named stays the same.
    pub(crate) fn renew(&mut self) {
        let location = match &self.lead {
            Some(fleet) => fleet.find().and_then(|known| {
                fleet.lost(&known);
                fleet.find()
            }),
            None => Location::nearby().filter(|_| self.is_nearby).ok_or_else(none_running),
        };
        if let Ok(client) = location.and_then(|location| Client::of(&location, &self.trust)) {
            self.client = client;
        }
    }
}

/// The failure to find the server of a folder, in whose place no other one will do.
fn none_running() -> Failure {
    let why = "find the server of this folder, whose apps the environment names: none is running".to_owned();
    Failure::new(UNREACHABLE, why).hint("`kelos up` starts one; --server or KELOS_SERVER names another")
}

/// A client of the server that runs for this folder, or of the one that the environment names, for a short question; none where
/// there is none. It never leads.
pub(crate) fn running(patience: Duration) -> Option<Client> {
    let named = std::env::var("KELOS_SERVER").ok().filter(|server| !server.is_empty());
    let trust = TrustOptions::of_environment().ok()?;
    let client = match (named, Location::nearby()) {
        (Some(server), _) => Client::at(&server, &trust),
        (None, Some(location)) => Client::of(&location, &trust),
        (None, None) => Client::at(&format!("http://127.0.0.1:{PORT}"), &trust),
    };
    Some(client.ok()?.patient_for(patience))
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// Whether a server is named, or one runs in this folder.
pub(crate) fn is_named(door: &Door) -> bool {
    door.server.as_ref().is_some_and(|server| !server.is_empty()) || Location::nearby().is_some()
}

/// Asks the server that was named or that of this folder about apps; where there is none, this process leads until it has answered.
pub(crate) fn ask<T>(door: &Door, apps: &[String], ask: impl Fn(&Client) -> Result<T, Failure>) -> Result<T, Failure> {
    let dir = fleet::folder_of_jobs().filter(|_| door.server.as_ref().is_none_or(String::is_empty));
    let Some(dir) = dir else {
        return Connection::open(door).and_then(|connection| ask(&connection));
    };
    let _logging = logging::start(logging::OF_COMMANDS, None)?;
    let fleet = Fleet::new(&dir, Apps::of_environment().source(&dir)?, kelos_executors::workers::LEASE)?;
    // Commands start where the definitions are.
    std::env::set_current_dir(&dir).map_err(|error| Failure::usage(format!("work in {}: {error}", dir.display())))?;
    let answer = fleet.ask(ask);
    let apps: Vec<&str> = apps.iter().map(String::as_str).collect();
    let mistakes = match &answer {
        Err(failure) if failure.code == UNREACHABLE => Vec::new(),
        _ => fleet.mistakes(&apps),
    };
    fleet.leave()?;
    match answer {
        Ok(answer) => {
            mistakes.iter().for_each(terminal::note);
            Ok(answer)
        }
        Err(failure) if failure.shown.is_empty() => Err(failure.show(mistakes)),
        Err(failure) => Err(failure),
    }
}
