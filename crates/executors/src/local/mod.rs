//! Local commands that outlive the server.
//!
//! A run of a command is one folder on disk and one small guardian process, the *shim*: a fork of the
//! *fork server*, which is this same program executed again with a hidden subcommand, once for each
//! server. The shim takes the run's claim, starts the
//! command in a process group of its own, keeps its output within a size limit, ends the whole tree
//! when it has to, and writes the outcome. The server only reads the folder and watches the shim,
//! so a server that restarts, or dies, loses nothing: [`Launcher::check`] and [`Launcher::wait`]
//! adopt whatever is there.
//!
//! What holds, and why:
//!
//! - *Nothing is run twice.* Before a command starts, its shim creates the file `claim`, which only
//!   one process can ever create. A second shim for the same run ends at once. The claim is on disk
//!   before the command starts.
//! - *The outcome is written once* (`exit.json`), by the shim, or by the server when the shim is gone. If it can't be
//!   known, it says so: [`Outcome::Unknown`].
//! - *A process is only signalled after its start time was compared* through a pidfd, so a recycled
//!   process id is never hit.
//! - *A run is over when its command is over.* Processes that the command leaves in the background get a fifth of a
//!   second to finish their output, then SIGTERM, and then SIGKILL.
//! - *A run does not outlive its folder.* When the folder is removed or moved, the shim ends the command, and the outcome
//!   is unknown.
//!
//! The files of a run: `spec.json` (the command), `claim` (the shim, and the process of the command), `log` and
//! `log.tail.*` (the output), `*.marks` beside them (its times and streams), `outputs.json` (the outputs for triggered runs, written by the command), `exit.json` (the
//! outcome), `shim.err` (errors around the command). Few on purpose, and each only when it has content.
//!
//! A command that is given secrets gets them from its shim, which is handed them in memory and hides them in the output. Its
//! outputs are written to `outputs.unmasked` first. A command of another user writes them to a folder of its own outside, because
//! the folders of runs are the server's alone.
//!
//! A supervisor that stops the server must leave its other processes alone (`KillMode=process` for systemd): a shim
//! that gets SIGTERM ends its run as killed.
//!
//! Linux only: it leans on `/proc`, pidfds and child subreapers.

mod blocking;
mod copies;
mod descriptors;
mod error;
mod fence;
mod file_limit;
mod folder;
mod folder_watch;
mod fork_server;
mod heard;
mod kept;
mod launcher;
mod lines;
mod log;
mod marks;
mod outputs;
mod own;
mod paths;
mod procs;
mod records;
mod run_secrets;
mod shim;
mod space;
mod spawner;
mod state;
mod streams;
mod supervise;
mod user;

pub use copies::OutputCopies;
pub use descriptors::keep_descriptors;
pub use error::{LocalError, StartError};
#[cfg(test)]
pub(crate) use fence::fenced;
pub(crate) use fence::is_fenced;
pub use fence::{BootMoment, FENCE_GRACE, LeaseFile, OwnFence, surely_over};
pub use file_limit::survive_file_limit;
pub use folder::OutputFolder;
pub use fork_server::shim_main;
pub use kept::{FoundRun, RemovedRuns, WalkEntry, finish_removal, is_new, mark_new, remove_kept, walk};
pub(crate) use launcher::gone;
pub use launcher::{Launcher, Limits, ShimRun, own_shim};
pub use lines::{LogLine, LogLines, last_lines, read_lines, unfinished_char};
pub use log::{LogChunk, last_line, log_len, read_log};
pub use marks::Stream;
pub use own::OwnLog;
pub use paths::fnv1a_128;
pub use paths::{RunDirs, RunRef};
pub use procs::ProcessId;
pub(crate) use procs::{host, unique};
pub use records::{Exit, Outcome, RunSpec};
pub use run_secrets::RunSecrets;
pub use space::{DiskSpace, FULL, LOW, LOW_PART};
pub use state::Check;
