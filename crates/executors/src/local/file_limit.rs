//! What the limit on the size of files (`ulimit -f`) does to this process: a write fails, and nobody dies of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::libc::SIGXFSZ;

/// Makes a write beyond the limit on the size of files fail as on a full disk, where the system would end the process.
///
/// A program that runs an engine, a worker or runs of commands calls it first thing in its `main`. The signal has a handler
/// and is not ignored, because commands would inherit that: what they start from is the system's own answer.
///
/// # Errors
/// Where the system refuses the handler.
pub fn survive_file_limit() -> io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).map(drop)
}
