//! The log of several machines in Redis: a hash with the lease and the ends of the log, a stream of its entries, and a list with the
//! parts of each snapshot.
//!
//! An append is one script that compares epoch and position, and adds to the stream. It is as durable as that server: its configuration is
//! read with each connection, and one that loses what it acknowledged is refused unless the address accepts it. The log is in
//! the memory of the server, so it is to be trimmed. A primary may be found by Sentinel; a promoted replica can lack the end of the log.
//!
//! The client is fenced here: nothing of it is part of the interface.

mod connection;
mod durability;
mod scripts;
mod session;

use kelos_store::log::adapter::LogAddress;
use kelos_store::log::{Inbox, Log, LogError, LogStore};
use kelos_tls::Trust;
use redis::{ConnectionInfo, IntoConnectionInfo};

use connection::Connection;

const EXAMPLE: &str = "redis://host:6379/0?prefix=kelos";

/// The place of a log in Redis.
#[derive(Clone)]
pub struct RedisLog {
    name: String,
    servers: Servers,
    prefix: String,
    is_relaxed: bool,
    trust: Trust,
}

/// The server, or those that know it.
#[derive(Clone)]
enum Servers {
    One(ConnectionInfo),
    /// Sentinels, as `host:port`.
    Sentinels {
        hosts: Vec<String>,
        group: String,
        server: Login,
    },
}

/// The parts of an address around the host.
#[derive(Clone)]
struct Login {
    /// `redis://user:password@`
    before: String,
    /// `/0`
    after: String,
}

impl RedisLog {
    /// Reads an address such as `redis://host:6379/0`, `rediss://` with TLS, or `redis+sentinel://host1,host2/NAME` for the primary
    /// that Sentinel knows under a name.
    ///
    /// Options are `prefix` of the keys (`kelos` unless set), and `durability=relaxed` to accept a server that may lose what it
    /// acknowledged.
    ///
    /// # Errors
    /// When it makes no sense. Its password is not part of the message.
    pub fn of(url: &str) -> Result<RedisLog, LogError> {
        let schemes = ["redis", "rediss", "redis+sentinel", "rediss+sentinel"];
        let mut address = LogAddress::read(url, &schemes, EXAMPLE)?;
        let prefix = address.option("prefix").unwrap_or_else(|| "kelos".to_owned());
        let is_relaxed = address.switch("durability", ["strict", "relaxed"])?;
        address.finish("prefix or durability")?;
        let servers = match address.base().split_once("+sentinel://") {
            Some((scheme, rest)) => sentinels(&address, scheme, rest)?,
            None => {
                let info = address.base().into_connection_info();
                Servers::One(info.map_err(|error| address.refuse(&session::words(&error)))?)
            }
        };
        let name = if prefix == "kelos" { address.name() } else { format!("{}?prefix={prefix}", address.name()) };
        Ok(RedisLog { name, servers, prefix, is_relaxed, trust: Trust::default() })
    }

    /// The same with another trust in certificates of servers. Pins are for other clients: this one knows authorities alone.
    #[must_use]
    pub fn with_trust(self, trust: Trust) -> RedisLog {
        RedisLog { trust, ..self }
    }
}

impl LogStore for RedisLog {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn open(&self) -> Result<Box<dyn Log>, LogError> {
        Ok(Box::new(Connection::open(self.clone())?))
    }

    /// A transaction of Redis can't be part of one of a user's database, so there is nothing to leave here.
    fn inbox(&self) -> Result<Option<Box<dyn Inbox>>, LogError> {
        Ok(None)
    }
}

/// Reads `user:password@host1:26379,host2/NAME/0`, without the scheme.
fn sentinels(address: &LogAddress, scheme: &str, rest: &str) -> Result<Servers, LogError> {
    let (login, rest) = rest.rsplit_once('@').map_or(("", rest), |(login, rest)| (login, rest));
    let mut path = rest.split('/');
    let hosts: Vec<String> = path
        .next()
        .unwrap_or_default()
        .split(',')
        .filter(|host| !host.is_empty())
        .map(|host| if host.contains(':') { host.to_owned() } else { format!("{host}:26379") })
        .collect();
    let group = path.next().unwrap_or_default().to_owned();
    if hosts.is_empty() || group.is_empty() {
        return Err(address.refuse("it needs hosts and the name of a primary, as in redis+sentinel://host1,host2/NAME"));
    }
    let at = if login.is_empty() { String::new() } else { format!("{login}@") };
    let server = Login { before: format!("{scheme}://{at}"), after: format!("/{}", path.next().unwrap_or("0")) };
    let sample = format!("{}host{}", server.before, server.after).into_connection_info();
    sample.map_err(|error| address.refuse(&session::words(&error)))?;
    Ok(Servers::Sentinels { hosts, group, server })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_place_without_the_password() {
        for (url, name) in [
            ("redis://:secret@h:1/2", "redis://h:1/2"),
            ("rediss://u:secret@h?prefix=etl", "rediss://u@h?prefix=etl"),
            ("redis+sentinel://u:secret@a,b:2/main", "redis+sentinel://u@a,b:2/main"),
        ] {
            assert_eq!(RedisLog::of(url).unwrap().name(), name);
        }
    }

    #[test]
    fn an_address_that_makes_no_sense_says_what_was_expected() {
        let refused = |url: &str| {
            let error = RedisLog::of(url).err().expect("it makes no sense").to_string();
            assert!(!error.contains("secret"), "{error}");
            error
        };
        insta::assert_snapshot!(
            [
                "http://u:secret@h",
                "redis://u:secret@h:port",
                "redis://u:secret@h/db",
                "redis://u:secret@h?durability=no",
                "redis://u@h?password=secret",
                "redis+sentinel://u:secret@h",
                "redis+sentinel://u:secret@h/main/db",
            ]
            .map(refused)
            .join("\n"),
            @r#"
        read the address of the log: its scheme is not redis or rediss or redis+sentinel or rediss+sentinel; expected such as redis://host:6379/0?prefix=kelos
        read the address of the log: Redis URL did not parse - InvalidClientConfig; expected such as redis://host:6379/0?prefix=kelos
        read the address of the log: Invalid database number - InvalidClientConfig; expected such as redis://host:6379/0?prefix=kelos
        read the address of the log: its option durability is "no", expected strict or relaxed; expected such as redis://host:6379/0?prefix=kelos
        read the address of the log: it has no option "password", expected prefix or durability; expected such as redis://host:6379/0?prefix=kelos
        read the address of the log: it needs hosts and the name of a primary, as in redis+sentinel://host1,host2/NAME; expected such as redis://host:6379/0?prefix=kelos
        read the address of the log: Invalid database number - InvalidClientConfig; expected such as redis://host:6379/0?prefix=kelos
        "#
        );
    }
}
