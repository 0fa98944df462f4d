//! The log of several machines in ZooKeeper: a node for each entry.
//!
//! An append is several writes that are done together: the node of the epoch has the version that it had when the leader took the lease, the
//! last position is raised, and the node of the entry is created. Renewals are in a node of their own, so that the version of the epoch
//! changes only with takings. ZooKeeper takes requests of at most 1 MB: larger entries are in pieces that are written before, and snapshots
//! of more than a few MB belong on a storage URL.

mod connection;
mod layout;
mod session;

use kelos_store::log::adapter::LogAddress;
use kelos_store::log::{Inbox, Log, LogError, LogStore};
use kelos_tls::Trust;
use kelos_zookeeper::Access;

use connection::Connection;

const EXAMPLE: &str = "zookeeper://host1:2181,host2:2181/kelos";

/// The place of a log in ZooKeeper.
#[derive(Clone)]
pub struct ZooKeeperLog {
    name: String,
    access: Access,
    /// The path of the node that has all others.
    root: String,
}

impl ZooKeeperLog {
    /// Reads an address such as `zookeeper://host1:2181,host2:2181/kelos`, or `zookeepers://` with TLS. The path is `/kelos` unless it
    /// is given; a user and a password before the hosts are those of the scheme `digest`.
    ///
    /// # Errors
    /// When it makes no sense. Its password is not part of the message.
    pub fn of(url: &str) -> Result<ZooKeeperLog, LogError> {
        let address = LogAddress::read(url, &["zookeeper", "zookeepers"], EXAMPLE)?;
        address.finish("none")?;
        let (scheme, rest) = address.base().split_once("://").unwrap_or_default();
        let trust = (scheme == "zookeepers").then(Trust::default);
        let (access, path) = Access::read(rest, trust).map_err(|why| address.refuse(&why))?;
        let root = if path.is_empty() { "/kelos".to_owned() } else { path };
        if root.split('/').skip(1).any(|name| name.is_empty() || name == "." || name == ".." || name.contains('\0')) {
            return Err(address.refuse("its path has an empty name, . or .."));
        }
        Ok(ZooKeeperLog { name: address.name(), access, root })
    }

    /// The same with another trust in certificates of servers.
    #[must_use]
    pub fn with_trust(mut self, trust: Trust) -> ZooKeeperLog {
        self.access.trust = self.access.trust.map(|_| trust);
        self
    }
}

impl LogStore for ZooKeeperLog {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn open(&self) -> Result<Box<dyn Log>, LogError> {
        Ok(Box::new(Connection::open(self.clone())?))
    }

    /// Users have no transactions of their own here.
    fn inbox(&self) -> Result<Option<Box<dyn Inbox>>, LogError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_place_without_the_password() {
        let log = ZooKeeperLog::of("zookeepers://u:secret@a:1,b/etl/kelos").unwrap();
        assert_eq!((log.name().as_str(), log.root.as_str()), ("zookeepers://u@a:1,b/etl/kelos", "/etl/kelos"));
        assert!(log.access.trust.is_some());
        assert_eq!(ZooKeeperLog::of("zookeeper://a").unwrap().root, "/kelos");
    }

    #[test]
    fn an_address_that_makes_no_sense_says_what_was_expected() {
        let refused = |url: &str| {
            let error = ZooKeeperLog::of(url).err().expect("it makes no sense").to_string();
            assert!(!error.contains("secret"), "{error}");
            error
        };
        insta::assert_snapshot!(
            [
                "zk://u:secret@h",
                "zookeeper://u:secret@/kelos",
                "zookeeper://u:secret@h:port",
                "zookeeper://secret@h",
                "zookeeper://u:secret@h/a//b",
                "zookeeper://u:secret@h?tls=on",
            ]
            .map(refused)
            .join("\n"),
            @r#"
        read the address of the log: its scheme is not zookeeper or zookeepers; expected such as zookeeper://host1:2181,host2:2181/kelos
        read the address of the log: it names no host; expected such as zookeeper://host1:2181,host2:2181/kelos
        read the address of the log: a port is no number below 65536; expected such as zookeeper://host1:2181,host2:2181/kelos
        read the address of the log: its user has no password; expected such as zookeeper://host1:2181,host2:2181/kelos
        read the address of the log: its path has an empty name, . or ..; expected such as zookeeper://host1:2181,host2:2181/kelos
        read the address of the log: it has no option "tls", expected none; expected such as zookeeper://host1:2181,host2:2181/kelos
        "#
        );
    }
}
