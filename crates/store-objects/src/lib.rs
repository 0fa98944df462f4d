//! The log of several machines in an object store: an object for each entry, and no server to run.
//!
//! An entry is a numbered object that is written unless there is one, so that a number is given once. The lease is an object that is replaced
//! only in the version that was read. Each append reads it before, and once more where that was long ago: a deposed leader is told soon.
//! Entries that were trimmed are holes that a leader who slept could fill: the newest of them stay for a while, and what is below the first
//! entry is never read.
//!
//! A turn takes two requests of some ten milliseconds each, and waiting is asking again.

mod connection;
mod layout;
mod session;

use kelos_storage::{ConditionalObjects, StorageConfig};
use kelos_store::log::adapter::LogAddress;
use kelos_store::log::{Inbox, Log, LogError, LogStore};

use connection::Connection;

const EXAMPLE: &str = "s3://bucket/kelos";

/// The place of a log in an object store.
#[derive(Clone)]
pub struct ObjectLog {
    name: String,
    config: StorageConfig,
}

impl ObjectLog {
    /// Reads an address such as `s3://bucket/folder`. The endpoint and the credentials come from where AWS's own tools find them.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn of(url: &str) -> Result<ObjectLog, LogError> {
        let address = LogAddress::read(url, &["s3"], EXAMPLE)?;
        address.finish("none: the endpoint is that of AWS_ENDPOINT_URL_S3")?;
        if address.base().contains('@') {
            return Err(address.refuse("it has a user: credentials come from AWS_ACCESS_KEY_ID and the like"));
        }
        let config = StorageConfig::from_env();
        ConditionalObjects::open(address.base(), &config.s3, &config.trust)
            .map_err(|error| address.refuse(&error.cause()))?;
        Ok(ObjectLog { name: address.name(), config })
    }

    /// The same with another endpoint, other credentials and another trust than those of the environment.
    #[must_use]
    pub fn with_storage(self, config: StorageConfig) -> ObjectLog {
        ObjectLog { config, ..self }
    }
}

impl LogStore for ObjectLog {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn open(&self) -> Result<Box<dyn Log>, LogError> {
        Ok(Box::new(Connection::open(self)?))
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
    fn an_address_that_makes_no_sense_says_what_was_expected() {
        let refused = |url: &str| {
            let error = ObjectLog::of(url).err().expect("it makes no sense").to_string();
            assert!(!error.contains("secret"), "{error}");
            error
        };
        insta::assert_snapshot!(
            ["gs://bucket/kelos", "s3://key:secret@bucket/kelos", "s3://bucket/kelos?region=eu", "s3:///kelos"]
                .map(refused)
                .join("\n"),
            @r#"
        read the address of the log: its scheme is not s3; expected such as s3://bucket/kelos
        read the address of the log: it has a user: credentials come from AWS_ACCESS_KEY_ID and the like; expected such as s3://bucket/kelos
        read the address of the log: it has no option "region", expected none: the endpoint is that of AWS_ENDPOINT_URL_S3; expected such as s3://bucket/kelos
        read the address of the log: expected the name of a bucket, as s3://BUCKET/PATH; expected such as s3://bucket/kelos
        "#
        );
        assert_eq!(ObjectLog::of("s3://bucket/a/b").unwrap().name(), "s3://bucket/a/b");
    }
}
