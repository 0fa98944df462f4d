//! The least that a number of commands can take, to be measured beside what they take.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Threads that start processes side by side. More make it no faster.
const THREADS: u64 = 64;

/// For each command a small file written and flushed, `true` started and waited for, another file.
pub(crate) fn floor(folder: &Path, commands: u64, side_by_side: bool) -> io::Result<Duration> {
    let next = AtomicU64::new(0);
    let one_after_the_other = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= commands {
            return Ok::<_, io::Error>(());
        }
        flushed(&folder.join(format!("claim-{number}")))?;
        Command::new("/bin/true").stdin(Stdio::null()).stdout(Stdio::null()).status()?;
        flushed(&folder.join(format!("exit-{number}")))?;
    };
    let threads = if side_by_side { THREADS.min(commands) } else { 1 };
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(one_after_the_other)).collect();
        all.into_iter().try_for_each(|thread| thread.join().expect("a thread"))
    })?;
    Ok(begin.elapsed())
}

fn flushed(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(b"as long as a claim is, more or less, but for the names in it\n")?;
    file.sync_all()
}
