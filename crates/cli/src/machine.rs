//! This machine, as a worker uses it.

use std::path::Path;

use kelos_executors::local::{self, Launcher};

use crate::failure::Failure;
use crate::folder;

/// The number of jobs at a time of a worker that is not told.
pub(crate) fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1))
}

/// The name of this machine.
pub(crate) fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}

/// Starts commands whose files are in a folder.
pub(crate) fn launcher(runs: &Path) -> Result<Launcher, Failure> {
    folder::make_private(runs).map_err(|error| Failure::bad(format!("make {}: {error}", runs.display())))?;
    let launcher = Launcher::new(runs, local::own_shim(), local::Limits::default());
    launcher.map_err(|error| Failure::bad(error.to_string()))
}
