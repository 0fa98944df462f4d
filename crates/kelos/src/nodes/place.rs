//! The place of a log: its address, and that of its snapshots.

use std::path::PathBuf;
use std::sync::Arc;

use kelos_storage::StorageConfig;
use kelos_store::StoreError;
use kelos_store::log::{LogError, LogStore};
use kelos_store_sqlite::SharedLogStore;
use kelos_tls::Trust;

use super::snapshots::SnapshotFolder;

/// The place of a log that several nodes share.
#[derive(Debug, Clone)]
pub struct LogPlace {
    /// The address of the log: `postgres://`, `redis://`, `zookeeper://`, `s3://`, or `file:FOLDER`.
    pub address: String,
    /// The storage URL of the folder for its snapshots; none for a log that has them itself.
    pub snapshots: Option<String>,
    /// The trust in servers that speak TLS.
    pub trust: Trust,
}

impl LogPlace {
    /// The log at an address, which has its snapshots itself.
    #[must_use]
    pub fn new(address: &str, trust: &Trust) -> LogPlace {
        LogPlace { address: address.to_owned(), snapshots: None, trust: trust.clone() }
    }

    /// The log at this place. Nothing is contacted yet.
    ///
    /// # Errors
    /// When an address is not one that this program knows.
    pub fn store(&self) -> Result<Arc<dyn LogStore>, StoreError> {
        let storage = StorageConfig { trust: self.trust.clone(), ..StorageConfig::from_env() };
        let folder = SnapshotFolder::new(store_at(&self.address, &self.trust)?, self.snapshots.as_deref(), storage);
        Ok(Arc::new(folder.map_err(|error| refused(error.to_string()))?))
    }
}

fn refused(cause: String) -> StoreError {
    StoreError::Medium { doing: "use the address of the log".to_owned(), cause }
}

fn store_at(address: &str, trust: &Trust) -> Result<Arc<dyn LogStore>, StoreError> {
    let of = |error: LogError| refused(error.to_string());
    let scheme = address.split_once(':').map_or("", |(scheme, _)| scheme);
    // Without adapters there is nothing to trust.
    let _ = (&trust, &of);
    match scheme {
        "file" => {
            let folder = address.trim_start_matches("file:");
            let folder = folder.strip_prefix("//").unwrap_or(folder);
            if folder.is_empty() {
                return Err(refused("expected a folder after file:, such as file:/var/lib/kelos/log".to_owned()));
            }
            let folder = PathBuf::from(folder);
            std::fs::create_dir_all(&folder).map_err(|error| refused(format!("make {}: {error}", folder.display())))?;
            Ok(Arc::new(SharedLogStore::new(&folder)))
        }
        #[cfg(feature = "log-postgres")]
        "postgres" | "postgresql" => {
            Ok(Arc::new(kelos_store_postgres::PostgresLog::of(address).map_err(of)?.with_trust(trust.clone())))
        }
        #[cfg(feature = "log-redis")]
        "redis" | "rediss" | "redis+sentinel" | "rediss+sentinel" => {
            Ok(Arc::new(kelos_store_redis::RedisLog::of(address).map_err(of)?.with_trust(trust.clone())))
        }
        #[cfg(feature = "log-zookeeper")]
        "zookeeper" | "zookeepers" => {
            Ok(Arc::new(kelos_store_zookeeper::ZooKeeperLog::of(address).map_err(of)?.with_trust(trust.clone())))
        }
        #[cfg(feature = "log-objects")]
        "s3" => {
            let storage = StorageConfig { trust: trust.clone(), ..StorageConfig::from_env() };
            Ok(Arc::new(kelos_store_objects::ObjectLog::of(address).map_err(of)?.with_storage(storage)))
        }
        #[allow(unreachable_patterns, reason = "with all adapters each of these is known above")]
        "postgres" | "postgresql" | "redis" | "rediss" | "zookeeper" | "zookeepers" | "s3" => {
            Err(refused(format!("this program was built without {scheme}:, which needs the feature `logs`")))
        }
        // The address may have a password, and is not repeated.
        _ => {
            let known = "postgres://, redis://, rediss://, zookeeper://, zookeepers://, s3:// or file:FOLDER";
            Err(refused(format!("expected one that begins with {known}")))
        }
    }
}
