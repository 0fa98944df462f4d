//! File systems near and far behind one contract.
//!
//! [`Storage`] opens what a URI names: `file:`, `hdfs:`, `webhdfs:`, `s3:`, `gs:`, `abfs:`, `http:`, `sftp:`. Each
//! *endpoint* (a scheme and the server behind it) is opened once and shared, with a limit on the calls under way, a
//! time limit on each, and a breaker that spares a dead server, and those who wait for it, further calls.
//!
//! Absent: slots, triggers, scripts. Credentials come from the places where each system's own tools look for them;
//! never from a URI that is shown, and never from a definition.

mod breaker;
mod entry;
mod environment;
mod error;
mod file_system;
mod guard;
mod hadoop;
mod hdfs;
mod http;
mod java;
mod kerberos;
mod local;
mod objects;
mod settings;
mod sftp;
mod storage;
mod transfer;
mod uri;
mod web;
mod webhdfs;

pub use entry::{Entry, Kind};
pub use error::StorageError;
pub use file_system::{FileSystem, MOST_ENTRIES};
pub use guard::{BrokenState, CALLS, CHANGE, Health, LOOK, READ, TRANSFERS};
pub use hadoop::HadoopConf;
pub use kerberos::Kerberos;
pub use local::LocalFiles;
pub use objects::{AzureSettings, GcsSettings, S3Keys, S3Settings, Secret};
pub use settings::StorageConfig;
pub use sftp::SshSettings;
pub use storage::{Place, Storage};
