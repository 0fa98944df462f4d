//! The engine over a log of several machines, beside the one with its own database.

use std::path::Path;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use kelos::nodes::{self, LogConfig, LogPlace};
use kelos_core::SetRegister;
use kelos_model::Actor;
use kelos_model::workflow::Job;
use kelos_tls::{Trust, TrustSettings};
use serde_json::Map;

use crate::noop;
use crate::support::{
    BenchArguments, Engine, Instantly, Moment, Outcome, Watching, figures, folder, load, moment, workflow,
};

/// The name of an executor that notes when it is called.
const WATCHED: &str = "watched";

const SAMPLES: usize = 300;

/// How long a follower may take for an entry.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures the embedded database, a log in a folder, and these logs, which are empty.
pub(crate) fn run(runs: usize, logs: &[String]) -> Outcome {
    let shared = folder()?;
    let file = format!("file:{}", shared.path().join("log").display());
    for log in [None, Some(&file)].into_iter().chain(logs.iter().map(Some)) {
        // The address may have a password.
        let scheme = log.map_or("embedded", |log| log.split(':').next().unwrap_or_default());
        println!("{scheme}: (load {})", load());
        one(runs, log.map(String::as_str))?;
    }
    Ok(())
}

fn config(store: &str, state: &Path, node: &str) -> Outcome<LogConfig> {
    std::fs::create_dir_all(state)?;
    Ok(LogConfig {
        log: LogPlace::new(store, &Trust::new(TrustSettings::default())?),
        state: state.to_owned(),
        node: node.to_owned(),
        address: None,
    })
}

fn one(runs: usize, log: Option<&str>) -> Outcome {
    let folder = folder()?;
    let node = |name: &str| log.map(|log| config(log, &folder.path().join(name), name)).transpose();
    let mut wanted = BenchArguments::new(&folder.path().join("kelos.db"));
    wanted.log = node("leader")?;
    wanted.config.max_running = 4_096;
    let (watched, called) = Watching::new(Instantly::default());
    wanted.executors = wanted.executors.with(WATCHED, watched);
    let (engine, _) = noop::rate(wanted, runs, false)?;
    let began = Instant::now();
    let follower = node("new")?.map(|new| nodes::open(&new)).transpose()?;
    if follower.is_some() {
        println!("  a new node has {runs} finished slots after {:.2?}", began.elapsed());
    }
    let mut commits = Vec::new();
    let mut lags = Vec::new();
    for number in 0..SAMPLES {
        let began = Instant::now();
        set(&engine, number)?;
        commits.push(began.elapsed());
        if let (Some((_, follower)), Some(last)) = (&follower, engine.log.as_ref().map(|log| log.status().followed)) {
            let _ = follower.wait_for(last, PATIENCE);
            lags.push(began.elapsed());
        }
    }
    println!("  a change is asked for → acknowledged: {}", figures(&mut commits));
    if follower.is_some() {
        println!("  … → a standby has it: {}", figures(&mut lags));
    }
    let mut secondly = workflow("secondly", "* * * * * ?");
    secondly.start_time = Some(moment("2199-01-01T00:00:00Z"));
    secondly.job = Job::new(WATCHED, Map::new());
    engine.define(vec![secondly]);
    let mut starts = Vec::new();
    for number in 0..SAMPLES {
        let at = moment("2021-01-01T00:00:00Z") + SignedDuration::from_secs(i64::try_from(number)?);
        let began = Instant::now();
        engine.backfill(&format!("one-{number}"), "secondly", at, at + SignedDuration::from_secs(1))?;
        while called.recv()?.what != Moment::Called {}
        starts.push(began.elapsed());
    }
    println!("  a slot is asked for → its executor is called: {}", figures(&mut starts));
    engine.stop();
    Ok(())
}

fn set(engine: &Engine, number: usize) -> Outcome {
    let (bucket, key) = ("bench".to_owned(), "key".to_owned());
    let value = Some(number.into());
    let by = Actor::person("bench");
    Ok(engine.runtime.block_on(engine.handle.ask(&by, SetRegister { bucket, key, value, reason: None }))?)
}
