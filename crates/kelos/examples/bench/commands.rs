//! Real commands through the whole node: slots planned, dispatched, run by shims, recorded on disk.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kelos::executor::{CommandExecutor, Executors};
use kelos::local::{Launcher, Limits, own_shim};
use kelos::model::SlotState;

use crate::support::{
    Moment, Outcome, Seen, Wanted, Watching, command, figures, folder, load, median, millis, runtime, workflow,
};

/// How many commands, how many of them at once, and how often it is measured.
const CASES: [(u64, u32, usize); 4] = [(40, 1, 7), (100, 100, 7), (2_000, 2_000, 3), (5_000, 5_000, 3)];

/// Threads that start the barest processes side by side. More make it no faster.
const FLOOR_THREADS: u64 = 64;

pub(crate) fn run() -> Outcome {
    for (slots, concurrency, rounds) in CASES {
        let (mut walls, mut floors, mut ratios, mut calls) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            // In pairs: the machine and its disk are not the same a minute later.
            let least = millis(floor(slots, concurrency > 1)?);
            let (wall, mut lags) = round(slots, concurrency)?;
            walls.push(millis(wall));
            floors.push(least);
            ratios.push(millis(wall) / least);
            calls.append(&mut lags);
        }
        let what = if concurrency == 1 { "in sequence" } else { "side by side" };
        println!(
            "{slots} commands {what}: median {:.0} ms, floor {:.0} ms, median ratio {:.2}; load {}",
            median(walls.clone()),
            median(floors),
            median(ratios),
            load()
        );
        let each: Vec<_> = walls.iter().map(|wall| format!("{wall:.0}")).collect();
        println!("  each {} ms; executor called → command reported started: {}", each.join(" "), figures(&mut calls));
    }
    Ok(())
}

/// The least that as many commands can take: a small file written and flushed, `true` started and waited for, another file.
fn floor(commands: u64, side_by_side: bool) -> Outcome<Duration> {
    let folder = folder()?;
    let next = AtomicU64::new(0);
    let one_after_the_other = || -> std::io::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= commands {
                return Ok(());
            }
            flushed(&folder.path().join(format!("claim-{number}")))?;
            Command::new("/bin/true").stdin(Stdio::null()).stdout(Stdio::null()).status()?;
            flushed(&folder.path().join(format!("exit-{number}")))?;
        }
    };
    let threads = if side_by_side { FLOOR_THREADS.min(commands) } else { 1 };
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(one_after_the_other)).collect();
        all.into_iter().try_for_each(|thread| thread.join().expect("a thread"))
    })?;
    Ok(begin.elapsed())
}

fn flushed(path: &Path) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(b"as long as a claim is, more or less, but for the names in it\n")?;
    file.sync_all()
}

/// From the definition's arrival until the store shows the last success.
fn round(slots: u64, concurrency: u32) -> Outcome<(Duration, Vec<Duration>)> {
    let folder = folder()?;
    let launchers = runtime()?;
    let launcher = Launcher::new(folder.path().join("runs"), own_shim(), Limits::default())?;
    let (watching, seen) = Watching::new(CommandExecutor::new(launcher, launchers.handle().clone()));
    let mut wanted = Wanted::new(&folder.path().join("kelos.db"));
    wanted.config.max_running = concurrency.max(wanted.config.max_running);
    wanted.executors = Executors::default().with("command", watching);
    let engine = wanted.start()?;
    engine.leads();
    let mut every_minute = workflow("minutely", "0 * * * * ?");
    // The times that have passed by now, and are not older than the planning window.
    let minutes = i64::try_from(slots)?;
    every_minute.start_time = Some(Timestamp::now() - SignedDuration::from_mins(minutes));
    every_minute.concurrency = concurrency;
    every_minute.job = command(&["/bin/true"]);
    let begin = Instant::now();
    engine.define(vec![every_minute]);
    engine.until(None, SlotState::Succeeded, slots)?;
    let wall = begin.elapsed();
    engine.stop();
    launchers.shutdown_timeout(Duration::from_secs(2));
    Ok((wall, start_lags(&seen)))
}

fn start_lags(seen: &Receiver<Seen>) -> Vec<Duration> {
    let mut called = HashMap::new();
    let mut lags = Vec::new();
    for Seen { run, what, at } in seen.try_iter() {
        match what {
            Moment::Called => drop(called.insert(run, at)),
            Moment::Started => lags.extend(called.get(&run).map(|called| at - *called)),
            Moment::Ended => {}
        }
    }
    lags
}
