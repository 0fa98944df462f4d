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

/// A client, with the server in this process that answers it where a folder of workers has no leader.
pub(crate) struct Connection {
    client: Client,
    _lead: Option<Fleet>,
}

impl Connection {
    /// A connection to the server that was named, else to that of this folder, else to the one at the usual port. In a folder
    /// that workers share there is always an answer: this process leads if no other one does.
    pub(crate) fn open(door: &Door) -> Result<Connection, Failure> {
        let named = door.server.as_deref().filter(|server| !server.is_empty());
        if named.is_none()
            && let Some(fleet) = fleet::of_workers_alone()?
        {
            let client = Client::of(&fleet.find()?)?;
            return Ok(Connection { client, _lead: Some(fleet) });
        }
        let client = match (named, Location::nearby()) {
            (Some(server), _) => Client::at(server),
            (None, Some(location)) => Client::of(&location),
            // The server at the usual port would be that of another folder.
            (None, None) if Apps::of_environment().are_named() => {
                let why =
                    "find the server of this folder, whose apps the environment names: none is running".to_owned();
                Err(Failure::new(UNREACHABLE, why)
                    .hint("`kelos up` starts one; --server or KELOS_SERVER names another"))
            }
            (None, None) => Client::at(&format!("http://127.0.0.1:{PORT}")),
        };
        Ok(Connection { client: client?, _lead: None })
    }
}

/// A client of the server that runs for this folder, or of the one that the environment names, for a short question; none where
/// there is none. It never leads.
pub(crate) fn running(patience: Duration) -> Option<Client> {
    let named = std::env::var("KELOS_SERVER").ok().filter(|server| !server.is_empty());
    let client = match (named, Location::nearby()) {
        (Some(server), _) => Client::at(&server),
        (None, Some(location)) => Client::of(&location),
        (None, None) => Client::at(&format!("http://127.0.0.1:{PORT}")),
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

/// Asks the server that was named or that of this folder; where there is none, this process leads until it has answered.
pub(crate) fn ask<T>(door: &Door, ask: impl Fn(&Client) -> Result<T, Failure>) -> Result<T, Failure> {
    let dir = fleet::folder_of_jobs().filter(|_| door.server.as_ref().is_none_or(String::is_empty));
    let Some(dir) = dir else {
        return Connection::open(door).and_then(|connection| ask(&connection));
    };
    let _logging = logging::start(logging::USUAL, None)?;
    let fleet = Fleet::new(&dir, Apps::of_environment().source(&dir)?, kelos_executors::workers::LEASE)?;
    // Commands start where the definitions are.
    std::env::set_current_dir(&dir).map_err(|error| Failure::usage(format!("work in {}: {error}", dir.display())))?;
    let answer = fleet.ask(ask)?;
    fleet.leave()?;
    Ok(answer)
}
