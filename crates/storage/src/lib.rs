//! Local and remote file systems behind one contract.
//!
//! [`Storage`] opens what a URI names: `file:`, `hdfs:`, `webhdfs:`, `s3:`, `gs:`, `abfs:`, `http:`, `sftp:`. Each
//! *endpoint* (a scheme and the server behind it) is opened once and shared, with a limit on concurrent calls, a
//! time limit for each, and a circuit breaker that keeps calls away from a dead server.
//!
//! Each connector but that of local files is a feature: `hdfs`, `objects`, `sftp`, `web`. A URI of a connector that was left out is
//! refused, and the message names the feature.
//!
//! Absent: slots, triggers, scripts. Credentials come from the places where each system's own tools look for them;
//! never from a URI that is shown, and never from a definition.

// A program with few connectors does not need all that they share.
#![cfg_attr(
    not(all(feature = "hdfs", feature = "objects", feature = "sftp", feature = "web")),
    allow(dead_code, unused_imports, unused_variables)
)]

mod breaker;
mod entry;
mod environment;
mod error;
mod file_system;
mod guard;
mod hadoop;
#[cfg(feature = "hdfs")]
mod hdfs;
#[cfg(feature = "web")]
mod http;
mod java;
mod kerberos;
mod local;
#[cfg(feature = "objects")]
mod objects;
mod secret;
mod settings;
#[cfg(feature = "sftp")]
mod sftp;
mod storage;
mod transfer;
mod uri;
#[cfg(feature = "web")]
mod web;
#[cfg(feature = "web")]
mod webhdfs;

pub use entry::{Entry, Kind};
pub use error::StorageError;
pub use file_system::{FileSystem, MOST_ENTRIES};
pub use guard::{BrokenState, CALLS, CHANGE, Health, LOOK, READ, TRANSFERS};
pub use hadoop::HadoopConf;
pub use kerberos::Kerberos;
pub use local::LocalFiles;
#[cfg(feature = "objects")]
pub use objects::{
    AzureSettings, ConditionalObjects, GcsSettings, ObjectName, ObjectVersion, S3Keys, S3Settings, WriteAnswer,
};
pub use secret::Secret;
pub use settings::StorageConfig;
#[cfg(feature = "sftp")]
pub use sftp::SshSettings;
pub use storage::{Place, Storage};
