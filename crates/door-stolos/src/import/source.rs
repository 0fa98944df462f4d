//! The store of a Stolos: its address, and reading all that is there.

use kelos_tls::Trust;

#[cfg(feature = "redis")]
use super::redis::RedisState;
use super::zookeeper::ZooKeeperState;
use super::{ImportError, StolosState};

/// The store of a Stolos.
pub enum StateSource {
    /// Its Redis.
    #[cfg(feature = "redis")]
    Redis(RedisState),
    /// Its ZooKeeper.
    ZooKeeper(ZooKeeperState),
}

impl StateSource {
    /// Reads an address: `redis://HOST:PORT/DATABASE` or `zookeeper://HOST:PORT,HOST:PORT/PATH`, with `rediss` and `zookeepers` for TLS,
    /// and a user before the host where there is one. The password comes from elsewhere, because addresses are seen by everyone.
    ///
    /// # Errors
    /// If it is none.
    pub fn new(address: &str, password: Option<&str>, trust: &Trust) -> Result<StateSource, ImportError> {
        let refuse = |why: &str| Err(ImportError::Address(why.to_owned()));
        let Some((scheme, rest)) = address.split_once("://") else { return refuse("it has no scheme") };
        let is_encrypted = scheme.ends_with('s');
        match scheme {
            #[cfg(feature = "redis")]
            "redis" | "rediss" => RedisState::new(address, password, trust).map(StateSource::Redis),
            #[cfg(not(feature = "redis"))]
            "redis" | "rediss" => refuse("this program was built without the client of Redis, the feature `redis`"),
            "zookeeper" | "zookeepers" => {
                ZooKeeperState::new(rest, password, is_encrypted.then_some(trust)).map(StateSource::ZooKeeper)
            }
            // The address is not repeated, because it may have a password.
            _ => refuse("its scheme is none of redis, rediss, zookeeper and zookeepers"),
        }
    }

    /// Reads all that is there, and writes nothing.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn read(&self) -> Result<StolosState, ImportError> {
        let (name, read) = match self {
            #[cfg(feature = "redis")]
            StateSource::Redis(redis) => (redis.name(), redis.read()),
            StateSource::ZooKeeper(zookeeper) => (zookeeper.name(), zookeeper.read()),
        };
        read.map_err(|why| ImportError::Source { name: name.to_owned(), why })
    }
}
