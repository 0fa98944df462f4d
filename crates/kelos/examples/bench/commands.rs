//! Real commands through the whole node: slots planned, dispatched, run by shims, recorded on disk.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kelos::executor::{CommandExecutor, Executors};
use kelos::local::{Launcher, Limits, own_shim};
use kelos::model::SlotState;

use crate::support::{
    Moment, Outcome, Seen, Wanted, Watching, command, figures, folder, load, median, millis, runtime, workflow,
};

const ROUNDS: usize = 7;

pub(crate) fn run() -> Outcome {
    for (what, slots, concurrency) in [("in sequence", 40, 1), ("side by side", 100, 100)] {
        let mut walls = Vec::new();
        let mut calls = Vec::new();
        for _ in 0..ROUNDS {
            let (wall, mut lags) = round(slots, concurrency)?;
            walls.push(millis(wall));
            calls.append(&mut lags);
        }
        let each: Vec<_> = walls.iter().map(|wall| format!("{wall:.0}")).collect();
        println!(
            "{slots} commands {what}: median {:.0} ms, each {} ms; load {}",
            median(walls),
            each.join(" "),
            load()
        );
        println!("  executor called → command reported started: {}", figures(&mut calls));
    }
    Ok(())
}

/// From the definition's arrival until the store shows the last success.
fn round(slots: u64, concurrency: u32) -> Outcome<(Duration, Vec<Duration>)> {
    let folder = folder()?;
    let launchers = runtime()?;
    let launcher = Launcher::new(folder.path().join("runs"), own_shim(), Limits::default())?;
    let (watching, seen) = Watching::new(CommandExecutor::new(launcher, launchers.handle().clone()));
    let mut wanted = Wanted::new(&folder.path().join("kelos.db"));
    wanted.executors = Executors::default().with("command", watching);
    let engine = wanted.start()?;
    engine.leads();
    let mut hourly = workflow("hourly", "0 0 * * * ?");
    // The times that have passed by now, and are not older than the planning window.
    let hours = i64::try_from(slots)?;
    hourly.start_time = Some(Timestamp::now() - SignedDuration::from_hours(hours));
    hourly.concurrency = concurrency;
    hourly.job = command(&["/bin/true"]);
    let begin = Instant::now();
    engine.define(vec![hourly]);
    engine.until(None, SlotState::Succeeded, slots)?;
    let wall = begin.elapsed();
    engine.stop();
    launchers.shutdown_timeout(Duration::from_secs(2));
    Ok((wall, start_lags(&seen)))
}

fn start_lags(seen: &Receiver<Seen>) -> Vec<Duration> {
    let all: Vec<_> = seen.try_iter().collect();
    let called = all.iter().filter(|seen| seen.what == Moment::Called);
    let lag = |call: &Seen| {
        let mut started = all.iter().filter(|seen| seen.what == Moment::Started);
        let started = started.find(|seen| seen.run == call.run)?;
        Some(started.at - call.at)
    };
    called.filter_map(lag).collect()
}
