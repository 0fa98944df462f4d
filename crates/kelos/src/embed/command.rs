//! Programs that a function runs.

use std::io;
use std::process::{ExitStatus, Stdio};

use kelos_executors::local::Stream;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::cancel::Cancel;
use super::requests::PlatformError;
use super::run_output::RunOutput;

/// A program that did not do its work. Messages complete "failed to …".
///
/// ```
/// # use kelos::embed::Context;
/// use kelos::embed::CommandError;
///
/// async fn compare(context: Context, _: (), _: ()) -> Result<bool, CommandError> {
///     match context.command("cmp", ["a.csv", "b.csv"]).await {
///         Ok(()) => Ok(true),
///         // They differ.
///         Err(CommandError::Status { status, .. }) if status.code() == Some(1) => Ok(false),
///         Err(error) => Err(error),
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It can't be started.
    #[error("start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The reason.
        source: io::Error,
    },
    /// It exited with another status than 0, or a signal ended it.
    #[error("run {program}: {status}")]
    Status {
        /// The program.
        program: String,
        /// The status.
        status: ExitStatus,
    },
    /// It may not run now, because of [`Processes`](super::Processes).
    #[error("run {program}: failed to {source}")]
    Platform {
        /// The program.
        program: String,
        /// The reason.
        source: PlatformError,
    },
    /// The run was to end.
    #[error("run {program}: it was ended with its run")]
    Ended {
        /// The program.
        program: String,
    },
}

/// Ends a process group when it is dropped.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.0 {
            // It may have ended.
            let _ = kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Runs a program in a process group of its own, and waits for its end.
pub(super) async fn run(
    program: &str,
    arguments: Vec<&str>,
    log: &RunOutput,
    cancel: &Cancel,
) -> Result<(), CommandError> {
    let mut command = Command::new(program);
    command.args(arguments).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |source| CommandError::Start { program: program.to_owned(), source };
    let mut child = command.spawn().map_err(failed)?;
    let mut group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let work = async {
        tokio::join!(copy(stdout, log, Stream::Stdout), copy(stderr, log, Stream::Stderr));
        child.wait().await
    };
    tokio::pin!(work);
    let ended = tokio::select! {
        ended = &mut work => ended,
        () = cancel.asked() => {
            group.signal(Signal::TERM);
            // Who is asked politely and does not end is killed when the function is dropped.
            let _ = work.await;
            return Err(CommandError::Ended { program: program.to_owned() });
        }
    };
    let status = ended.map_err(failed)?;
    group.0 = None;
    if status.success() { Ok(()) } else { Err(CommandError::Status { program: program.to_owned(), status }) }
}

async fn copy(stream: Option<impl AsyncRead + Unpin>, log: &RunOutput, name: Stream) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        log.write(name, &buffer[..read]);
    }
}
