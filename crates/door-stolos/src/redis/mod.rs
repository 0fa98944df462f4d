//! Redis as Stolos uses it: a server, and the apps that are kept there.

mod apps;

use std::time::Duration;

use kelos_tls::Trust;
use redis::{Client, Connection, ConnectionInfo, IntoConnectionInfo, RedisError, RedisResult, TlsCertificates};
use url::Url;

pub use apps::{RedisApps, RedisAppsError};

/// Patience with a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A database of a Redis server.
#[derive(Clone)]
pub(crate) struct RedisDatabase {
    client: Client,
    pub(crate) number: i64,
    /// The name in messages, such as `localhost:6379/0`.
    pub(crate) name: String,
}

impl RedisDatabase {
    /// Reads an address such as `redis://host:6379/0`, or `rediss://…` for TLS. A password comes from elsewhere, because addresses are
    /// seen by everyone. The query of the address is left alone.
    ///
    /// # Errors
    /// In words, when it is none.
    pub(crate) fn new(url: &Url, password: Option<&str>, trust: &Trust) -> Result<RedisDatabase, String> {
        if url.password().is_some() {
            return Err("a password in it would be seen by everyone".to_owned());
        }
        if !["redis", "rediss"].contains(&url.scheme()) {
            return Err("its scheme is neither redis nor rediss".to_owned());
        }
        let mut url = url.clone();
        url.set_query(None);
        let info: ConnectionInfo = url.as_str().into_connection_info().map_err(|error| error.to_string())?;
        let settings = info.redis_settings().clone();
        let number = settings.db();
        let settings = match password {
            Some(password) => settings.set_password(password),
            None => settings,
        };
        let name = format!("{}/{number}", info.addr());
        let info = info.set_redis_settings(settings);
        let client = if url.scheme() == "rediss" {
            let root_cert = trust.authorities().map(String::into_bytes);
            Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert })
        } else {
            Client::open(info)
        };
        Ok(RedisDatabase { client: client.map_err(|error| told(&error))?, number, name })
    }

    pub(crate) fn connect(&self) -> RedisResult<Connection> {
        let connection = self.client.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;
        Ok(connection)
    }
}

/// An error without what the address may hold.
pub(crate) fn told(error: &RedisError) -> String {
    error.detail().map_or_else(|| error.to_string(), |detail| format!("{} ({detail})", error.category()))
}
