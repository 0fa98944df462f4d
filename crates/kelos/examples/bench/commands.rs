//! Real commands through the whole node: slots planned, dispatched, run by shims, recorded on disk.

use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kelos_engine::executor::Executors;
use kelos_executors::CommandExecutor;
use kelos_executors::local::{Launcher, Limits, own_shim};
use kelos_model::SlotState;

use crate::floor::floor;
use crate::support::{
    BenchArguments, Moment, Outcome, Seen, Watching, command, figures, folder, load, median, millis, runtime, workflow,
};

/// How many commands, how many of them at once, and how often it is measured.
const CASES: [(u64, u32, usize); 4] = [(40, 1, 7), (100, 100, 7), (2_000, 2_000, 3), (5_000, 5_000, 3)];

pub(crate) fn run() -> Outcome {
    // Kept to the end: ext4 looks for inodes more slowly for some seconds after many were freed.
    let mut folders = Vec::new();
    for (slots, concurrency, rounds) in CASES {
        let (mut walls, mut floors, mut ratios, mut calls) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let folder = folder()?;
            // In pairs: the machine and its disk are not the same a minute later.
            let least = millis(floor(folder.path(), slots, concurrency > 1)?);
            let (wall, mut lags) = round(folder.path(), slots, concurrency)?;
            folders.push(folder);
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

/// From the definition's arrival until the store shows the last success.
fn round(folder: &Path, slots: u64, concurrency: u32) -> Outcome<(Duration, Vec<Duration>)> {
    let launchers = runtime()?;
    let launcher = Launcher::new(folder.join("runs"), own_shim(), Limits::default())?;
    let (watching, seen) = Watching::new(CommandExecutor::new(launcher, launchers.handle().clone()));
    let mut wanted = BenchArguments::new(&folder.join("kelos.db"));
    wanted.config.max_running = concurrency.max(wanted.config.max_running);
    wanted.executors = Executors::default().with("command", watching);
    let engine = wanted.start()?;
    engine.leads();
    let mut every_minute = workflow("minutely", "0 * * * * ?");
    // The times that have passed by now, and are not older than the planning window.
    let minutes = i64::try_from(slots)?;
    every_minute.start_time = Some(Timestamp::now() - SignedDuration::from_mins(minutes));
    every_minute.concurrency = Some(concurrency);
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
