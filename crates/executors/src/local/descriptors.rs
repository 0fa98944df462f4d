//! File descriptors that a process inherited from whoever started it: locks and pipes of start scripts, for example.
//!
//! A shim outlives the server. Were it to keep such a lock, the next server could not be started while an old command runs.

use std::{fs, io};

use nix::libc;

/// The first descriptor that is not a standard stream.
const FIRST: libc::c_int = 3;

/// Keeps the descriptors that this process inherited from the processes that it starts.
///
/// A program that runs an engine, a worker or runs of commands calls it first thing in its `main`: it treats every descriptor
/// that is open by then as inherited.
///
/// # Errors
/// When the system refuses it, or doesn't tell which descriptors there are.
#[allow(unsafe_code)]
pub fn keep_descriptors() -> io::Result<()> {
    // SAFETY: the flag of a descriptor is changed, which is none of the concern of its owner.
    of_each(libc::CLOSE_RANGE_CLOEXEC, |file| unsafe { libc::fcntl(file, libc::F_SETFD, libc::FD_CLOEXEC) })
}

/// Closes the descriptors that this process inherited. To be called before it has opened any itself.
#[allow(unsafe_code)]
pub(crate) fn close_inherited() -> io::Result<()> {
    // SAFETY: this process has opened none of them, so that nothing in it owns one.
    of_each(0, |file| unsafe { libc::close(file) })
}

/// Does something to each inherited descriptor: at once where the system can, and one by one before Linux 5.11.
#[allow(unsafe_code)]
fn of_each(flags: libc::c_uint, one: impl Fn(libc::c_int) -> libc::c_int) -> io::Result<()> {
    // SAFETY: the call has no pointers; the callers say why their descriptors may be changed.
    if unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, flags) } == 0 {
        return Ok(());
    }
    // The folder is closed again before its own descriptor, which it lists, is looked at.
    let names: Vec<_> = fs::read_dir("/proc/self/fd")?.flatten().map(|entry| entry.file_name()).collect();
    let files = names.iter().filter_map(|name| name.to_str()?.parse().ok());
    files.filter(|file| *file >= FIRST).for_each(|file| {
        one(file);
    });
    Ok(())
}
