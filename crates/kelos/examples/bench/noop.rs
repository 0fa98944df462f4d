//! Runs that do nothing, each recorded on disk: what the engine and the store cost.

use std::time::Instant;

use jiff::SignedDuration;
use kelos_model::SlotState;

use crate::support::{
    BenchArguments, Engine, INSTANT, Instantly, Outcome, cpu, folder, load, median, moment, resident_mb, workflow,
};

const ROUNDS: usize = 3;

pub(crate) fn run(runs: usize) -> Outcome {
    for (says_started, max_running) in [(false, 4_096), (true, 4_096), (true, 256)] {
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            rates.push(round(runs, says_started, max_running)?);
        }
        let events = if says_started { "dispatched, started, succeeded" } else { "dispatched, succeeded" };
        println!(
            "{runs} runs, {max_running} at a time, each {events}: median {:.0} a second; load {}",
            median(rates),
            load()
        );
    }
    Ok(())
}

/// Runs a second, from the first dispatch until the store shows the last success.
fn round(runs: usize, says_started: bool, max_running: u32) -> Outcome<f64> {
    let folder = folder()?;
    let path = folder.path().join("kelos.db");
    let mut wanted = BenchArguments::new(&path);
    wanted.config.max_running = max_running;
    let (engine, rate) = rate(wanted, runs, says_started)?;
    let events = engine.handle.reader().last_seq()? as f64 / runs as f64;
    engine.stop();
    // With the engine gone its write-ahead log is in the file.
    let bytes = std::fs::metadata(&path)?.len() as f64 / runs as f64;
    println!("  {events:.2} events and {bytes:.0} bytes of the database for each run");
    Ok(rate)
}

/// The same, of an engine with these arguments, which goes on.
pub(crate) fn rate(mut wanted: BenchArguments, runs: usize, says_started: bool) -> Outcome<(Engine, f64)> {
    let instantly = Instantly { says_started, ..Instantly::default() };
    let first = instantly.first.clone();
    let max_running = wanted.config.max_running;
    wanted.executors = wanted.executors.with(INSTANT, instantly);
    let engine = wanted.start()?;
    engine.leads();
    let start = moment("2020-01-01T00:00:00Z");
    let mut minutely = workflow("minutely", "0 * * * * ?");
    // Nothing but the backfill is planned.
    minutely.start_time = Some(moment("2199-01-01T00:00:00Z"));
    minutely.concurrency = Some(max_running);
    engine.define(vec![minutely]);
    let begin = Instant::now();
    let end = start + SignedDuration::from_mins(i64::try_from(runs)?);
    let planned = engine.backfill("all", "minutely", start, end)?;
    engine.until(None, SlotState::Succeeded, runs as u64)?;
    let done = Instant::now();
    let cpu = cpu();
    let busy = cpu.get("kelos-engine").copied().unwrap_or_default();
    let first = *first.get().ok_or("nothing was dispatched")?;
    let spent = done - first;
    let rate = planned as f64 / spent.as_secs_f64();
    println!(
        "  {rate:.0} runs a second ({:.2?} from first dispatch to last success; {:.2?} before it to plan and look; \
         engine's thread {busy:.2?}; {:.0} MB)",
        spent,
        first - begin,
        resident_mb()
    );
    Ok((engine, rate))
}
