//! The log of several machines in PostgreSQL: a schema with three tables, and one more for requests of users.
//!
//! `log` has one row: the lease, the first entry that is kept, the latest snapshot. `entries` has the entries, `parts` those of
//! snapshots. An append is one statement that locks the row `FOR SHARE`, compares epoch and position, and inserts: a taking of the
//! lease, which updates the row, waits for it, and one that waits for a taking sees the new epoch. The leader counts positions, and
//! the primary key refuses a second one.
//!
//! `inbox` has what users ask for in transactions of their own, by the function `start`.
//!
//! The client is fenced here: nothing of it is part of the interface.

mod connection;
mod inbox;
mod schema;
mod session;
mod tls;

use kelos_store::log::adapter::LogAddress;
use kelos_store::log::{Inbox, Log, LogError, LogStore};
use kelos_tls::Trust;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use connection::Connection;
use inbox::PostgresInbox;
use session::CONNECTING;

const EXAMPLE: &str = "postgres://kelos@db.example/kelos?schema=kelos";
const OPTIONS: &str = "schema, notify, durability, sslmode, host, application_name, options or target_session_attrs";
/// The longest name of a schema: it is a channel of `NOTIFY`, too.
const LONGEST_SCHEMA: usize = 60;

/// The place of a log in PostgreSQL.
#[derive(Clone)]
pub struct PostgresLog {
    name: String,
    config: Config,
    schema: String,
    is_notifying: bool,
    is_relaxed: bool,
    trust: Trust,
}

impl PostgresLog {
    /// Reads an address such as `postgres://kelos@db.example/kelos`. Several hosts, separated by commas, are tried for the one that
    /// can be written to.
    ///
    /// Options are `schema` (`kelos` unless set), `notify=off` for a pooler of transactions, `sslmode` (`require` unless set, or
    /// `disable`, which is usual for this machine), `durability=relaxed` to accept a server that may lose what it acknowledged,
    /// `host` for the folder of a socket, `application_name`, and `options` of the server.
    ///
    /// # Errors
    /// When it makes no sense. Its password is not part of the message.
    pub fn of(url: &str) -> Result<PostgresLog, LogError> {
        let mut address = LogAddress::read(url, &["postgres", "postgresql"], EXAMPLE)?;
        let mut config: Config =
            address.base().parse().map_err(|error: tokio_postgres::Error| address.refuse(&session::words(&error)))?;
        if let Some(host) = address.option("host") {
            config.host(host);
        }
        if let Some(options) = address.option("options") {
            config.options(options);
        }
        config.application_name(address.option("application_name").unwrap_or_else(|| "kelos".to_owned()));
        if let Some(other) = address.option("target_session_attrs").filter(|value| value != "read-write") {
            return Err(address.refuse(&format!("its option target_session_attrs is \"{other}\", expected read-write")));
        }
        if config.get_hosts().is_empty() {
            return Err(address.refuse("it names no host"));
        }
        config.target_session_attrs(TargetSessionAttrs::ReadWrite).connect_timeout(CONNECTING);
        config.ssl_mode(ssl_mode(&mut address, config.get_hosts())?);
        let schema = address.option("schema").unwrap_or_else(|| "kelos".to_owned());
        if !is_schema(&schema) {
            let expected = format!("expected at most {LONGEST_SCHEMA} of a-z, 0-9 and _, and a letter first");
            return Err(address.refuse(&format!("its option schema is \"{schema}\", {expected}")));
        }
        let is_notifying = !address.switch("notify", ["on", "off"])?;
        let is_relaxed = address.switch("durability", ["strict", "relaxed"])?;
        address.finish(OPTIONS)?;
        let name = if schema == "kelos" { address.name() } else { format!("{}?schema={schema}", address.name()) };
        Ok(PostgresLog { name, config, schema, is_notifying, is_relaxed, trust: Trust::default() })
    }

    /// The same with another trust in certificates of servers.
    #[must_use]
    pub fn with_trust(self, trust: Trust) -> PostgresLog {
        PostgresLog { trust, ..self }
    }
}

impl LogStore for PostgresLog {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn open(&self) -> Result<Box<dyn Log>, LogError> {
        Ok(Box::new(Connection::open(self.clone())?))
    }

    fn inbox(&self) -> Result<Option<Box<dyn Inbox>>, LogError> {
        Ok(Some(Box::new(PostgresInbox::open(self.clone())?)))
    }
}

/// Servers of this machine are asked without TLS unless it is demanded. What is encrypted is verified, too.
fn ssl_mode(address: &mut LogAddress, hosts: &[Host]) -> Result<SslMode, LogError> {
    let is_here = |host: &Host| match host {
        Host::Tcp(name) => ["localhost", "127.0.0.1", "::1"].contains(&name.as_str()),
        Host::Unix(_) => true,
    };
    match address.option("sslmode").as_deref() {
        Some("disable") => Ok(SslMode::Disable),
        Some("require" | "verify-full") => Ok(SslMode::Require),
        None if hosts.iter().all(is_here) => Ok(SslMode::Disable),
        None => Ok(SslMode::Require),
        Some(other) => {
            Err(address.refuse(&format!("its option sslmode is \"{other}\", expected disable, require or verify-full")))
        }
    }
}

fn is_schema(name: &str) -> bool {
    name.len() <= LONGEST_SCHEMA
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_place_without_the_password() {
        for (url, name) in [
            ("postgres://kelos:secret@db.example:5433/kelos", "postgres://kelos@db.example:5433/kelos"),
            ("postgresql://u@a:1,b:2/db?schema=etl&sslmode=verify-full", "postgresql://u@a:1,b:2/db?schema=etl"),
            ("postgres:///kelos?host=/run/postgresql", "postgres:///kelos"),
        ] {
            assert_eq!(PostgresLog::of(url).unwrap().name(), name);
        }
    }

    #[test]
    fn tls_is_usual_except_on_this_machine() {
        let mode = |url: &str| PostgresLog::of(url).unwrap().config.get_ssl_mode();
        assert_eq!(mode("postgres://localhost/kelos"), SslMode::Disable);
        assert_eq!(mode("postgres:///kelos?host=/run/postgresql"), SslMode::Disable);
        assert_eq!(mode("postgres://localhost,db.example/kelos"), SslMode::Require);
        assert_eq!(mode("postgres://db.example/kelos?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://127.0.0.1/kelos?sslmode=require"), SslMode::Require);
    }

    #[test]
    fn an_address_that_makes_no_sense_says_what_was_expected() {
        let refused = |url: &str| {
            let error = PostgresLog::of(url).err().expect("it makes no sense").to_string();
            assert!(!error.contains("secret"), "{error}");
            error
        };
        insta::assert_snapshot!(
            [
                "mysql://u:secret@h/db",
                "postgres://u:secret@h:port/db",
                "postgres:///kelos",
                "postgres://u:secret@h/db?schema=My-Schema",
                "postgres://u:secret@h/db?notify=no",
                "postgres://u:secret@h/db?sslmode=prefer",
                "postgres://u:secret@h/db?target_session_attrs=any",
                "postgres://u@h/db?password=secret",
            ]
            .map(refused)
            .join("\n"),
            @r#"
        read the address of the log: its scheme is not postgres or postgresql; expected such as postgres://kelos@db.example/kelos?schema=kelos
        read the address of the log: invalid connection string: invalid value for option `port`; expected such as postgres://kelos@db.example/kelos?schema=kelos
        read the address of the log: it names no host; expected such as postgres://kelos@db.example/kelos?schema=kelos
        read the address of the log: its option schema is "My-Schema", expected at most 60 of a-z, 0-9 and _, and a letter first; expected such as postgres://kelos@db.example/kelos?schema=kelos
        read the address of the log: its option notify is "no", expected on or off; expected such as postgres://kelos@db.example/kelos?schema=kelos
        read the address of the log: its option sslmode is "prefer", expected disable, require or verify-full; expected such as postgres://kelos@db.example/kelos?schema=kelos
        read the address of the log: its option target_session_attrs is "any", expected read-write; expected such as postgres://kelos@db.example/kelos?schema=kelos
        read the address of the log: it has no option "password", expected schema, notify, durability, sslmode, host, application_name, options or target_session_attrs; expected such as postgres://kelos@db.example/kelos?schema=kelos
        "#
        );
    }
}
