//! File systems near and far behind one contract.
//!
//! [`Storage`] opens what a URI names: `file:`, `hdfs:`, `webhdfs:`, `s3:`, `gs:`, `abfs:`, `http:`, `sftp:`. Each
//! *endpoint* (a scheme and the server behind it) is opened once and shared, with a limit on the calls under way, a
//! time limit on each, and a breaker that spares a dead server, and those who wait for it, further calls.
//!
//! Absent: slots, triggers, scripts. Credentials come from the places where each system's own tools look for them;
//! never from a URI that is shown, and never from a definition.

mod entry;
mod error;
mod file_system;
mod local;
mod sftp;
mod storage;

pub use entry::{Entry, Kind};
pub use error::StorageError;
pub use file_system::FileSystem;
pub use local::LocalFiles;
pub use sftp::SshSettings;
pub use storage::{Place, Storage, StorageConfig};
