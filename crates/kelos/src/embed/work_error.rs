//! The reasons for which a program does not work for a server.

use std::path::PathBuf;

use kelos_executors::local::LocalError;
use kelos_executors::workers::{AddressError, DiskError};
use kelos_model::workers::LabelError;

use super::mistakes::Mistakes;

/// A project that is not deployed to a server, or a program that can't work for it any more. Messages complete "failed to …".
///
/// ```
/// # use kelos::embed::Project;
/// use kelos::embed::WorkError;
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let started = Project::new("shop", "1.0").work_for("ftp://kelos").start().await;
/// assert!(matches!(started, Err(WorkError::Address(_))));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The definitions have mistakes.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// The address of the server is none.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A label is none.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// It would take no run.
    #[error("work for {0} with `at_a_time(0)`, which takes no run: expected at least 1")]
    NothingAtATime(String),
    /// The folder of runs can't be used.
    #[error("{0}\n  hint: `.folder(path)` names another one: each program that works for a server needs its own")]
    Disk(#[from] DiskError),
    /// Files of runs can't be written.
    #[error(transparent)]
    Runs(#[from] LocalError),
    /// Neither the program nor the environment says where files of runs may be.
    #[error("find a folder for runs: neither XDG_STATE_HOME nor HOME is set\n  hint: name one: `.folder(path)`")]
    NoFolder,
    /// The program shows no token to a server that requires one.
    #[error(
        "work for {server} without a token: expected `.token(…)`, `.token_file(…)`, KELOS_TOKEN_FILE or KELOS_TOKEN\n  hint: \
         `kelos token add NAME --role worker --role author@{project}` makes one on the server"
    )]
    NoToken {
        /// The server.
        server: String,
        /// The project.
        project: String,
    },
    /// The file of the token can't be read.
    #[error("read the token in {}: {source}", .file.display())]
    TokenFile {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The certificates or pins that were given can't be used.
    #[error("{0}")]
    Trust(String),
    /// The server takes the program no more.
    #[error("{0}")]
    Ended(String),
    /// Signals can't be received.
    #[error("listen for signals: {0}")]
    Signals(std::io::Error),
    /// There is no Tokio runtime.
    #[error("find a Tokio runtime: start the project inside of one")]
    Runtime,
    /// The server refuses the project or the program.
    #[error("{doing} {server}: {reason}{}", advice(.hint.as_deref()))]
    Refused {
        /// The request that was refused, with a preposition: "deploy the project shop to".
        doing: String,
        /// The server.
        server: String,
        /// The reason.
        reason: String,
        /// The advice, where there is some.
        hint: Option<String>,
    },
    /// The server knows nothing of programs that work for it.
    #[error(
        "deploy the project {project} to {server}: it is older than this program, and takes no functions of programs\n  hint: upgrade \
         the server, or build the program with the version of Kelos that the server has"
    )]
    OldServer {
        /// The server.
        server: String,
        /// The project.
        project: String,
    },
    /// The answer of the server is not understood.
    #[error("understand the server at {server}: {reason}")]
    Answer {
        /// The server.
        server: String,
        /// The reason.
        reason: String,
    },
    /// More slots of the past would run than need no confirmation.
    #[error(
        "deploy the project {project} to {server}: {slots} slots of the past would run, expected at most {limit}\n  hint: let \
         `catch_up` leave them out, or raise `confirm_above`"
    )]
    Unconfirmed {
        /// The server.
        server: String,
        /// The project.
        project: String,
        /// The number of slots that would run.
        slots: u64,
        /// The limit.
        limit: u64,
    },
}

fn advice(hint: Option<&str>) -> String {
    hint.map(|hint| format!("\n  hint: {hint}")).unwrap_or_default()
}
