//! Connection and login: the server's key is verified first, then keys and the agent are tried.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::client::{self, Config, Handle};
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{HashAlg, PrivateKeyWithHashAlg, PublicKeyOrCertificate, load_secret_key};

use super::known_hosts::KnownKeys;
use super::settings::Target;
use crate::StorageError;

/// How long connection and login may take together.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection may be silent before it is probed; it is given up after three times this long.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The verification of the server's key during the handshake.
pub(super) struct Doorkeeper {
    known: KnownKeys,
    /// The reason why the key was refused.
    refused: Arc<Mutex<Option<String>>>,
}

impl client::Handler for Doorkeeper {
    type Error = russh::Error;

    async fn check_server_key(&mut self, offered: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        let judged = self.known.judge(&offered.public_key());
        let accepted = judged.is_ok();
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = judged.err();
        Ok(accepted)
    }
}

/// An authenticated connection.
pub(super) type Connection = Handle<Doorkeeper>;

/// Connects and authenticates.
pub(super) async fn connect(target: &Target) -> Result<Connection, StorageError> {
    let patient = tokio::time::timeout(PATIENCE, async {
        let mut connection = reach(target).await?;
        log_in(target, &mut connection).await?;
        Ok(connection)
    });
    patient.await.unwrap_or_else(|_| Err(StorageError::TimedOut { endpoint: target.endpoint.clone(), after: PATIENCE }))
}

async fn reach(target: &Target) -> Result<Connection, StorageError> {
    let known = KnownKeys::of(target);
    let mut config = Config { keepalive_interval: Some(KEEP_ALIVE), nodelay: true, ..Config::default() };
    // The server may have several keys: it should present one that is known.
    let mut kinds = config.preferred.key.to_vec();
    kinds.sort_by_key(|kind| !known.has(kind));
    config.preferred.key = kinds.into();
    let refused = Arc::new(Mutex::new(None));
    let doorkeeper = Doorkeeper { known, refused: refused.clone() };
    let connected = client::connect(Arc::new(config), (target.host.as_str(), target.port), doorkeeper).await;
    connected.map_err(|error| {
        let endpoint = target.endpoint.clone();
        match refused.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(detail) => StorageError::Login { endpoint, detail },
            None => StorageError::Unreachable { endpoint, detail: why(&error) },
        }
    })
}

/// The message of an error, in the system's words if it has some.
pub(super) fn why(error: &russh::Error) -> String {
    match error {
        russh::Error::IO(error) => error.to_string(),
        russh::Error::HUP | russh::Error::Disconnect => "the server closed the connection".to_owned(),
        russh::Error::Version => "what answers there does not speak SSH".to_owned(),
        other => other.to_string(),
    }
}

async fn log_in(target: &Target, connection: &mut Connection) -> Result<(), StorageError> {
    let hash = connection.best_supported_rsa_hash().await.ok().flatten().flatten();
    let hash = hash.or(Some(HashAlg::Sha512));
    let mut tried = Vec::new();
    let mut attempt = Attempt { target, connection, hash, tried: &mut tried };
    for key in &target.named_keys {
        if attempt.key(key).await? {
            return Ok(());
        }
    }
    if attempt.agent().await? {
        return Ok(());
    }
    for key in target.usual_keys.iter().filter(|key| key.exists()) {
        if attempt.key(key).await? {
            return Ok(());
        }
    }
    Err(nothing_fits(target, &tried))
}

fn nothing_fits(target: &Target, tried: &[String]) -> StorageError {
    let tried = if tried.is_empty() { "there is no key to try".to_owned() } else { tried.join("; ") };
    let detail = format!(
        "the user \"{}\" is not let in: {tried}. Expected a key that the server takes, in an agent (SSH_AUTH_SOCK), \
         KELOS_SSH_KEY or ~/.ssh",
        target.user
    );
    StorageError::Login { endpoint: target.endpoint.clone(), detail }
}

struct Attempt<'a> {
    target: &'a Target,
    connection: &'a mut Connection,
    /// The hash with which RSA keys sign.
    hash: Option<HashAlg>,
    /// The credentials that failed, in words.
    tried: &'a mut Vec<String>,
}

impl Attempt<'_> {
    /// Whether the key of a file is accepted.
    async fn key(&mut self, file: &Path) -> Result<bool, StorageError> {
        let key = match load_secret_key(file, None) {
            Ok(key) => key,
            Err(error) => {
                self.tried.push(unreadable(file, &error));
                return Ok(false);
            }
        };
        let key = PrivateKeyWithHashAlg::new(Arc::new(key), self.hash);
        let answer = self.connection.authenticate_publickey(self.target.user.clone(), key).await;
        let answer = answer.map_err(|error| self.broken(&error))?;
        if !answer.success() {
            self.tried.push(format!("the server refused the key {}", file.display()));
        }
        Ok(answer.success())
    }

    /// Whether a key of the agent is accepted.
    async fn agent(&mut self) -> Result<bool, StorageError> {
        let Some(socket) = &self.target.agent else { return Ok(false) };
        let mut agent = match AgentClient::connect_uds(socket).await {
            Ok(agent) => agent,
            Err(error) => {
                self.tried.push(format!("the agent at {} does not answer: {error}", socket.display()));
                return Ok(false);
            }
        };
        let keys = agent.request_identities().await.unwrap_or_default();
        self.tried.extend(keys.is_empty().then(|| "the agent has no key".to_owned()));
        for key in keys {
            let AgentIdentity::PublicKey { key, comment } = key else { continue };
            let hash = self.hash.filter(|_| key.algorithm().is_rsa());
            let user = self.target.user.clone();
            match self.connection.authenticate_publickey_with(user, key, hash, &mut agent).await {
                Ok(answer) if answer.success() => return Ok(true),
                Ok(_) => self.tried.push(format!("the server refused the agent's key \"{comment}\"")),
                Err(error) => self.tried.push(format!("the agent did not sign with \"{comment}\": {error}")),
            }
        }
        Ok(false)
    }

    fn broken(&self, error: &russh::Error) -> StorageError {
        let detail = match self.tried.is_empty() {
            true => why(error),
            false => format!("{}, after: {}", why(error), self.tried.join("; ")),
        };
        StorageError::Login { endpoint: self.target.endpoint.clone(), detail }
    }
}

fn unreadable(file: &Path, error: &russh::keys::Error) -> String {
    let shown = file.display();
    match error {
        russh::keys::Error::KeyIsEncrypted => {
            format!("the key {shown} has a passphrase, which only an agent is told: ssh-add {shown}")
        }
        russh::keys::Error::IO(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("there is no key {shown}")
        }
        other => format!("the key {shown} can't be read: {other}"),
    }
}
