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
//! - *The outcome is written once* (`exit.json`), by the shim, or by the server when the shim is
//!   gone. Where nobody can know it, it says so: [`Outcome::Unknown`].
//! - *A process is only signalled after its start time was compared* through a pidfd, so a recycled
//!   process id is never hit.
//! - *A run is over when its command is over.* Whatever the command leaves running in the
//!   background gets a fifth of a second to finish its output, is then told to end, and is then
//!   killed.
//!
//! The files of a run: `spec.json` (what to run), `claim` (who looks after it, and the command's
//! process), `log` and `log.tail.*` (its output), `outputs.json` (what it gives, written by the command),
//! `exit.json` (its outcome), `shim.err` (what went wrong around the command). Few on purpose, and each only when there is something to say.
//!
//! A supervisor that ends the server must leave its other processes alone (`KillMode=process` for
//! systemd): a shim that is told to end, ends its run as killed.
//!
//! Linux only: it leans on `/proc`, pidfds and child subreapers.

mod blocking;
mod error;
mod file_limit;
mod fork_server;
mod heard;
mod launcher;
mod log;
mod outputs;
mod paths;
mod procs;
mod records;
mod shim;
mod spawner;
mod state;
mod supervise;

pub use error::{LocalError, StartError};
pub use file_limit::survive_file_limit;
pub use fork_server::shim_main;
pub(crate) use launcher::gone;
pub use launcher::{Launcher, Limits, ShimRun, own_shim};
pub use log::{LogChunk, log_len, read_log};
pub use paths::fnv1a_128;
pub use paths::{RunDirs, RunRef};
pub use procs::ProcessId;
pub(crate) use procs::{host, unique};
pub use records::{Exit, Outcome, RunSpec};
pub use state::Check;
