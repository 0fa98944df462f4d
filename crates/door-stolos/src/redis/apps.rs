//! Apps that are kept in Redis, as Stolos keeps them: a hash for each app, whose names and values are written as Python
//! does.
//!
//! They are read as a whole and passed on as the text of a `tasks.json`. A thread of its own reads them again when
//! Redis reports a change, and periodically where it does not.

use std::time::Duration;

use kelos_sandbox::apps::AppsSource;
use kelos_tls::Trust;
use redis::{Connection, RedisResult};
use serde_json::{Map, Value};
use url::Url;

use super::{RedisDatabase, told};
use crate::followed::{AppsText, followed};
use crate::literal;

/// The default prefix of the names of apps.
const PREFIX: &str = "stolos/";
/// The interval of reading where no changes are reported.
const EVERY: Duration = Duration::from_secs(5);
/// Keys that are asked for at a time.
const AT_A_TIME: usize = 1000;
/// Apps that are read at most.
const MOST: usize = 100_000;

/// An error in setting up apps from Redis. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum RedisAppsError {
    /// The address can't be parsed.
    #[error("read the address of Redis: {0}; expected such as redis://localhost:6379/0?prefix=stolos/")]
    Address(String),
    /// The system refused a thread.
    #[error("start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// A place in Redis.
#[derive(Clone)]
pub struct RedisApps {
    database: RedisDatabase,
    prefix: String,
    /// The name in messages.
    name: String,
}

/// A name, and its fields with their values.
type Hash = (String, Vec<(String, String)>);

impl RedisApps {
    /// Reads an address such as `redis://host:6379/0?prefix=stolos/`, or `rediss://…` for TLS. A password comes from elsewhere, because
    /// addresses are seen by everyone.
    ///
    /// # Errors
    /// When it is none.
    pub fn new(address: &str, password: Option<&str>, trust: &Trust) -> Result<RedisApps, RedisAppsError> {
        let url = Url::parse(address).map_err(|error| RedisAppsError::Address(error.to_string()))?;
        let database = RedisDatabase::new(&url, password, trust).map_err(RedisAppsError::Address)?;
        let prefix = url.query_pairs().find(|(name, _)| name == "prefix").map(|(_, prefix)| prefix.into_owned());
        let prefix = prefix.unwrap_or_else(|| PREFIX.to_owned());
        let name = format!("redis {} {prefix}", database.name);
        Ok(RedisApps { database, prefix, name })
    }

    /// A source of apps that follows the changes in Redis; `folder` holds the identifiers and plugins, as that of a
    /// `tasks.json` does.
    ///
    /// # Errors
    /// When a thread can't be started.
    pub fn source(self, folder: &std::path::Path, template: Option<String>) -> Result<AppsSource, RedisAppsError> {
        let (name, listening) = (self.name.clone(), self.clone());
        let mut told = self.listen().ok();
        let wait = move || listening.wait(&mut told);
        Ok(followed(&name, folder, template, wait, move || self.read())?)
    }

    /// The apps as they are now.
    fn read(&self) -> AppsText {
        let hashes = self.database.connect().and_then(|mut connection| self.hashes(&mut connection));
        let hashes = hashes.map_err(|error| format!("{} can't be read: {}", self.name, told(&error)))?;
        if hashes.is_empty() {
            return Ok(None);
        }
        let mut apps = Map::new();
        for (app, fields) in hashes {
            let read = app_of(&fields).map_err(|why| format!("app {app} in {}: {why}", self.name))?;
            apps.insert(app, Value::Object(read));
        }
        serde_json::to_string_pretty(&apps).map(|text| Some(text.into())).map_err(|error| error.to_string())
    }

    /// Each app with its fields, in a fixed order.
    fn hashes(&self, connection: &mut Connection) -> RedisResult<Vec<Hash>> {
        let mut keys: Vec<String> = Vec::new();
        let mut cursor = 0_u64;
        loop {
            let (next, some): (u64, Vec<String>) = redis::cmd("SCAN")
                .arg(cursor)
                .arg("MATCH")
                .arg(format!("{}*", globbed(&self.prefix)))
                .arg("COUNT")
                .arg(AT_A_TIME)
                .arg("TYPE")
                .arg("hash")
                .query(connection)?;
            keys.extend(some);
            cursor = next;
            if cursor == 0 || keys.len() > MOST {
                break;
            }
        }
        keys.sort();
        keys.dedup();
        let mut hashes = Vec::with_capacity(keys.len());
        for some in keys.chunks(AT_A_TIME) {
            let mut all = redis::pipe();
            for key in some {
                all.cmd("HGETALL").arg(key);
            }
            let fields: Vec<Vec<(String, String)>> = all.query(connection)?;
            let named = some.iter().map(|key| key.strip_prefix(&self.prefix).unwrap_or(key).to_owned());
            hashes.extend(named.zip(fields).map(|(app, mut fields)| {
                fields.sort();
                (app, fields)
            }));
        }
        Ok(hashes)
    }

    /// Waits for a change, or for the interval of reading without one.
    fn wait(&self, told: &mut Option<Connection>) {
        match told.as_mut().map(heard) {
            Some(Ok(())) => {}
            Some(Err(_)) => *told = None,
            None => {
                std::thread::sleep(EVERY);
                *told = self.listen().ok();
            }
        }
    }

    /// Subscribes to changes; a server that reports none is no error.
    fn listen(&self) -> RedisResult<Connection> {
        let mut connection = self.database.connect()?;
        connection.as_pubsub().psubscribe(format!(
            "__keyspace@{}__:{}*",
            self.database.number,
            globbed(&self.prefix)
        ))?;
        connection.set_read_timeout(Some(EVERY))?;
        Ok(connection)
    }
}

/// Waits for a report of a change, or for the interval of reading without one.
fn heard(told: &mut Connection) -> RedisResult<()> {
    match told.as_pubsub().get_message() {
        Err(error) if !error.is_timeout() => Err(error),
        _ => Ok(()),
    }
}

/// A text that a pattern of Redis takes as it is.
fn globbed(text: &str) -> String {
    text.chars().flat_map(|letter| "*?[]^\\".contains(letter).then_some('\\').into_iter().chain([letter])).collect()
}

/// An app of its fields. A name may be written as Python does, or plainly.
fn app_of(fields: &[(String, String)]) -> Result<Map<String, Value>, String> {
    let mut app = Map::new();
    for (name, value) in fields {
        let plain = || Value::String(name.clone());
        let Value::String(name) = literal(name).ok().filter(Value::is_string).unwrap_or_else(plain) else { continue };
        let value = literal(value).map_err(|why| format!("{name}: {why}"))?;
        app.insert(name, value);
    }
    Ok(app)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_python_does_or_plainly() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let fields = [field("'job_id'", "'{date}'"), field("bash_cmd", "\"true\""), field("u'uris'", "['a']")];
        let app = app_of(&fields).unwrap();
        assert_eq!(Value::Object(app), serde_json::json!({"job_id": "{date}", "bash_cmd": "true", "uris": ["a"]}));
        let told = app_of(&[field("'uris'", "open('x')")]).unwrap_err();
        assert_eq!(told, "uris: expected a value at character 1, not 'o'");
    }

    #[test]
    fn addresses_have_no_password_and_a_prefix() {
        let told =
            |address: &str| RedisApps::new(address, None, &Trust::default()).err().map(|error| error.to_string());
        let apps = RedisApps::new("redis://localhost:7000/2?prefix=x*/", Some("secret"), &Trust::default()).unwrap();
        assert_eq!((apps.name.as_str(), apps.database.number), ("redis localhost:7000/2 x*/", 2));
        assert_eq!(globbed(&apps.prefix), "x\\*/");
        assert_eq!(RedisApps::new("rediss://localhost", None, &Trust::default()).unwrap().prefix, "stolos/");
        assert!(told("redis://:secret@localhost").unwrap().contains("would be seen by everyone"));
        assert!(!told("redis://:secret@localhost").unwrap().contains("secret@"));
        assert!(told("http://localhost").unwrap().contains("its scheme is neither redis nor rediss"));
        assert!(told("localhost").is_some());
    }
}
