//! Starts of projects that fail.

use std::io;
use std::path::PathBuf;

use kelos_engine::AskError;
use kelos_store::StoreError;

use super::changes::Changes;
use super::mistakes::Mistakes;
use super::request_error::RequestError;
use crate::node::NodeError;

/// A project that can't be started. Messages complete "failed to …".
///
/// ```
/// # use kelos::embed::{Context, Project, job};
/// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
/// use kelos::embed::StartError;
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let started = Project::new("none", "1.0").add(job("", work).with(()).once()).start().await;
/// assert!(matches!(started, Err(StartError::Mistakes(_))));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The definitions have mistakes.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// The store can't be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder can't be used.
    #[error("use the folder {folder}: {source}")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The engine can't be started.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// There is no Tokio runtime.
    #[error("find a Tokio runtime: start the project inside of one")]
    Runtime,
    /// More slots of the past would run than need no confirmation.
    #[error(
        "start the project: {} slots of the past would run, expected at most {limit}; let `catch_up` leave them out, or raise \
         `confirm_above`\n{changes}", changes.past.opened()
    )]
    Unconfirmed {
        /// The limit.
        limit: u64,
        /// The changes that the start would bring.
        changes: Box<Changes>,
    },
    /// Another program, or another project of this one, works in the folder.
    #[error("use the folder {folder}: {} works in it; stop that, or use another folder", whose(holder))]
    Taken {
        /// The folder.
        folder: PathBuf,
        /// The process and the machine of the other one: `4711@host`. Empty where it is not known.
        holder: String,
    },
    /// The stored jobs are those of another project, and would be removed.
    #[error(
        "start the project \"{project}\": what is stored has the jobs of \"{other}\", which would be removed; use another folder, or let it \
         take their place: `.replaces(\"{other}\")`"
    )]
    Other {
        /// The name of this one.
        project: String,
        /// The name of the other one.
        other: String,
    },
    /// The engine does not answer.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// The words for the process that has a folder.
fn whose(holder: &str) -> String {
    match holder.split_once('@').map(|(pid, _)| pid) {
        Some(pid) if pid == std::process::id().to_string() => "another project of this program".to_owned(),
        Some(pid) if !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("another program (pid {pid})")
        }
        _ => "another program".to_owned(),
    }
}

impl From<AskError> for StartError {
    fn from(error: AskError) -> Self {
        StartError::Request(error.into())
    }
}
