//! A session with ZooKeeper: nodes are read, watched, and written together. The part of its protocol that Kelos needs, over TCP or TLS.
//!
//! A session is a connection that one thread owns, and it ends with an error: the caller opens another one. There are no ephemeral nodes, so
//! that nothing depends on the life of a session, and no thread of its own. An error says whether a request may have been done.

mod error;
mod frames;
mod session;
mod wire;

use std::time::Duration;

use kelos_tls::Trust;

pub use error::{Code, ZooKeeperError};
pub use session::Session;

/// Patience with a server, for a connection and for each answer.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The servers, and the way in.
#[derive(Clone)]
pub struct Access {
    /// Names and ports. They are tried in this order.
    pub hosts: Vec<(String, u16)>,
    /// The trust in their certificates; none for connections without TLS.
    pub trust: Option<Trust>,
    /// The user of its scheme `digest`; none for nodes that everybody may use.
    pub login: Option<Login>,
    /// Whether a server will do that has lost the others, and only reads.
    pub is_reading: bool,
}

/// A user and a password.
#[derive(Clone)]
pub struct Login {
    /// The name of the user.
    pub user: String,
    /// The password.
    pub password: String,
}

impl Access {
    /// Reads `user:password@host1:2181,host2/path`, for writing, and gives the path, too: empty, or with a slash first.
    ///
    /// # Errors
    /// When it names no host, or a port is no number. The message has no password.
    pub fn read(text: &str, trust: Option<Trust>) -> Result<(Access, String), String> {
        let (login, rest) = text.rsplit_once('@').map_or((None, text), |(login, rest)| (Some(login), rest));
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let login = match login {
            None => None,
            Some(login) => {
                let (user, password) = login.split_once(':').ok_or("its user has no password")?;
                Some(Login { user: user.to_owned(), password: password.to_owned() })
            }
        };
        let hosts: Result<Vec<_>, _> = hosts.split(',').filter(|host| !host.is_empty()).map(host_of).collect();
        let hosts = hosts?;
        if hosts.is_empty() {
            return Err("it names no host".to_owned());
        }
        let path = path.trim_end_matches('/');
        let path = if path.is_empty() { String::new() } else { format!("/{path}") };
        Ok((Access { hosts, trust, login, is_reading: false }, path))
    }
}

fn host_of(text: &str) -> Result<(String, u16), String> {
    let number = |port: &str| port.parse().map_err(|_| "a port is no number below 65536".to_owned());
    match text.rsplit_once(':') {
        // An address of IPv6 without a port ends with its bracket.
        Some((host, port)) if !port.ends_with(']') => Ok((host.to_owned(), number(port)?)),
        _ => Ok((text.to_owned(), 2181)),
    }
}

/// A write. Those that are sent together are all done, or none.
#[derive(Debug, Clone)]
pub enum Write<'a> {
    /// The node has this version.
    Check {
        /// Its path.
        path: &'a str,
        /// Its version.
        version: i32,
    },
    /// Creates a node.
    Create {
        /// Its path.
        path: &'a str,
        /// Its content.
        data: &'a [u8],
    },
    /// Replaces the content of a node that has a version.
    Set {
        /// Its path.
        path: &'a str,
        /// Its new content.
        data: &'a [u8],
        /// The version that it must have.
        version: i32,
    },
    /// Deletes a node, whatever its version.
    Delete {
        /// Its path.
        path: &'a str,
    },
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its content.
    pub data: Vec<u8>,
    /// The number of changes of its content.
    pub version: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_hosts_a_login_and_a_path() {
        let read = |text: &str| {
            let (access, path) = Access::read(text, None)?;
            let user = access.login.map(|login| format!("{}:{}", login.user, login.password));
            Ok::<_, String>((access.hosts, user, path))
        };
        let host = |name: &str, port| (name.to_owned(), port);
        assert_eq!(
            read("a,b:2182/kelos/etl/"),
            Ok((vec![host("a", 2181), host("b", 2182)], None, "/kelos/etl".to_owned()))
        );
        assert_eq!(read("u:p:@@[::1]:1"), Ok((vec![host("[::1]", 1)], Some("u:p:@".to_owned()), String::new())));
        assert_eq!(read("[::1]"), Ok((vec![host("[::1]", 2181)], None, String::new())));
        assert_eq!(read("/kelos"), Err("it names no host".to_owned()));
        assert_eq!(read("u:secret@a:b"), Err("a port is no number below 65536".to_owned()));
        assert_eq!(read("u@a"), Err("its user has no password".to_owned()));
    }
}
