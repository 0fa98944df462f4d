//! The limit on the size of files (`ulimit -f`): a write fails, and the process survives.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::libc::SIGXFSZ;

/// Makes a write beyond the limit on the size of files fail as on a full disk; by default, the system would kill the
/// process.
///
/// A program that runs an engine, a worker or runs of commands calls it first thing in its `main`. The signal has a
/// handler and is not ignored, because commands would inherit that: they start with the default action.
///
/// # Errors
/// When the system refuses the handler.
pub fn survive_file_limit() -> io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).map(drop)
}
