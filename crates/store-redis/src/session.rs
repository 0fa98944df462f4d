//! A connection to the server: made when it is needed, with patience that ends.

use std::error::Error as _;
use std::time::{Duration, Instant};

use kelos_store::log::LogError;
use kelos_store::log::adapter::Action;
use kelos_tls::Trust;
use redis::{
    Client, Connection, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisError, RedisResult,
};
use redis::{ServerErrorKind, TlsCertificates, Value};

use crate::durability::Durability;
use crate::{RedisLog, Servers};

/// Patience with a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// A connection that was idle for longer is tried before it is used: an answer that is lost leaves doubt, and a closed connection none.
const IDLE: Duration = Duration::from_secs(3);

pub(crate) struct Session {
    pub(crate) place: RedisLog,
    connected: Option<Connection>,
    used: Instant,
}

impl Session {
    pub(crate) fn new(place: RedisLog) -> Session {
        Session { place, connected: None, used: Instant::now() }
    }

    /// Asks the server. Its refusals say that nothing was done.
    pub(crate) fn ask<T>(
        &mut self,
        action: Action<'_>,
        question: impl FnOnce(&mut Connection) -> RedisResult<T>,
    ) -> Result<T, LogError> {
        if self.used.elapsed() > IDLE {
            self.connected.take_if(|connection| !is_alive(connection));
        }
        let connection = match &mut self.connected {
            Some(connection) => connection,
            none => none.insert(
                open(&self.place).map_err(|why| action.failed(format!("{} can't be used: {why}", self.place.name)))?,
            ),
        };
        let answer = question(connection);
        self.used = Instant::now();
        answer.map_err(|error| match error.kind() {
            // It was demoted: the primary is another one.
            ErrorKind::Server(ServerErrorKind::ReadOnly) => {
                self.connected = None;
                action.failed(words(&error))
            }
            ErrorKind::Server(_) | ErrorKind::Extension => action.failed(words(&error)),
            _ => {
                self.connected = None;
                action.lost(words(&error))
            }
        })
    }
}

fn is_alive(connection: &mut Connection) -> bool {
    redis::cmd("PING").exec(connection).is_ok()
}

fn open(place: &RedisLog) -> Result<Connection, String> {
    let mut connection = match &place.servers {
        Servers::One(info) => connect(info.clone(), &place.trust).map_err(|error| words(&error))?,
        Servers::Sentinels { hosts, group, server } => {
            let primary = primary(hosts, group)?;
            let info = format!("{}{primary}{}", server.before, server.after).into_connection_info();
            let connected = info.and_then(|info| connect(info, &place.trust));
            connected.map_err(|error| format!("the primary {primary}: {}", words(&error)))?
        }
    };
    // A server that was demoted answers, and Sentinel may not know it yet. Where the question is forbidden, writes will be refused.
    let role: RedisResult<Vec<Value>> = redis::cmd("ROLE").query(&mut connection);
    if role.is_ok_and(|role| role.first().is_none_or(|role| *role != Value::BulkString(b"master".to_vec()))) {
        return Err("it is a replica, expected the primary".to_owned());
    }
    match Durability::read(&mut connection) {
        _ if place.is_relaxed => {}
        Some(durability) => durability.objection().map_or(Ok(()), Err)?,
        None => tracing::warn!(
            log = place.name,
            "Redis does not tell its configuration: whether it keeps what it acknowledges depends on appendonly yes, appendfsync always and \
             maxmemory-policy noeviction"
        ),
    }
    Ok(connection)
}

fn connect(info: ConnectionInfo, trust: &Trust) -> RedisResult<Connection> {
    let authorities = trust.authorities().filter(|_| matches!(info.addr(), ConnectionAddr::TcpTls { .. }));
    let client = match authorities {
        Some(all) => {
            Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: Some(all.into_bytes()) })?
        }
        None => Client::open(info)?,
    };
    let connection = client.get_connection_with_timeout(PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    Ok(connection)
}

/// The address of the primary, from the first sentinel that knows it.
fn primary(hosts: &[String], group: &str) -> Result<String, String> {
    let mut problems = Vec::new();
    for host in hosts {
        let asked = format!("redis://{host}").into_connection_info().and_then(|info| {
            let mut connection = connect(info, &Trust::default())?;
            redis::cmd("SENTINEL")
                .arg("get-master-addr-by-name")
                .arg(group)
                .query::<Option<(String, u16)>>(&mut connection)
        });
        match asked {
            Ok(Some((host, port))) if host.contains(':') => return Ok(format!("[{host}]:{port}")),
            Ok(Some((host, port))) => return Ok(format!("{host}:{port}")),
            Ok(None) => problems.push(format!("{host} knows no primary \"{group}\"")),
            Err(error) => problems.push(format!("{host}: {}", words(&error))),
        }
    }
    Err(format!("no sentinel tells the primary: {}", problems.join(", ")))
}

/// The cause of an error.
pub(crate) fn words(error: &RedisError) -> String {
    if error.is_timeout() {
        return format!("no answer within {} s", PATIENCE.as_secs());
    }
    if let (Some(code), Some(detail)) = (error.code(), error.detail()) {
        return format!("{code} {detail}");
    }
    let all = match error.source() {
        Some(cause) if !error.to_string().contains(&cause.to_string()) => format!("{error}: {cause}"),
        _ => error.to_string(),
    };
    let is_distrust = all.contains("invalid peer certificate");
    if is_distrust { format!("{all}; trust its authority with --ca FILE or KELOS_CA") } else { all }
}
