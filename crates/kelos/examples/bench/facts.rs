//! Facts: from one that is told to the run that it triggers, how many are taken in, and what schedules cost that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use kelos_core::{FactTally, Tell};
use kelos_engine::executor::Executors;
use kelos_executors::CommandExecutor;
use kelos_executors::local::{Launcher, Limits, own_shim};
use kelos_model::workflow::{EventKeys, Job, Keys, Program};
use kelos_model::{Actor, Fact, Occurrence, SlotState, Trigger, Workflow};
use kelos_store::SlotFilter;
use serde_json::Map;

use crate::idle;
use crate::support::{
    BenchArguments, Engine, INSTANT, Instantly, Moment, Outcome, Seen, Watching, command, cpu, figures, folder, load,
    name, resident_mb, runtime, workflow,
};

const SAMPLES: usize = 1_000;
const SCHEDULES: usize = 10_000;
/// How many clients tell facts at a time.
const TELLERS: u32 = 4;

fn program(id: &str, job: Job) -> Workflow {
    let keys = Keys::Requests(Box::new(Program { name: id.to_owned(), kind: None }));
    Workflow { keys, job, concurrency: None, ..workflow(id, "0 0 * * * ?") }
}

/// A schedule that runs a program once a dataset has so many new partitions.
fn schedule(id: &str, program: &str, dataset: &str, count: u32) -> Workflow {
    let events = EventKeys { enabled: true, ..EventKeys::new(id, name(program)) };
    let trigger = Trigger::Partitions { dataset: dataset.into(), count };
    Workflow { keys: Keys::Events(Box::new(events)), trigger, ..workflow(id, "0 0 * * * ?") }
}

fn fact(dataset: &str, key: Option<String>) -> Fact {
    let what = Occurrence::Partitions { dataset: dataset.into(), count: 1, keys: Vec::new() };
    Fact { source: "bench".into(), key: key.map(Into::into), what }
}

fn tell(engine: &Engine, facts: Vec<Fact>) -> Outcome<FactTally> {
    Ok(engine.runtime.block_on(engine.handle.ask(&Actor::person("bench"), Tell::of(facts)))?)
}

/// From the moment at which a client tells a fact to the executor's call, and to the process.
pub(crate) fn latency(waiting: usize) -> Outcome {
    let (folder, launchers) = (folder()?, runtime()?);
    let launcher = Launcher::new(folder.path().join("runs"), own_shim(), Limits::default())?;
    let (command_executor, commands) = Watching::new(CommandExecutor::new(launcher, launchers.handle().clone()));
    let (instant, instantly) = Watching::new(Instantly::default());
    let mut wanted = BenchArguments::new(&folder.path().join("kelos.db"));
    wanted.executors = Executors::default().with("command", command_executor).with(INSTANT, instant);
    let engine = wanted.start()?;
    engine.leads();
    let mut all = crowd(waiting, u32::MAX);
    all.push(program("nothing", Job::new(INSTANT, Map::new())));
    all.push(program("true", command(&["/bin/true"])));
    all.push(schedule("on-nothing", "nothing", "nothing", 1));
    all.push(schedule("on-true", "true", "true", 1));
    engine.define(all);
    pend(&engine, waiting)?;
    println!("beside {waiting} schedules that collect (load {})", load());
    samples(&engine, "nothing", &instantly)?;
    samples(&engine, "true", &commands)?;
    engine.stop();
    launchers.shutdown_timeout(Duration::from_secs(2));
    Ok(())
}

fn samples(engine: &Engine, dataset: &str, seen: &Receiver<Seen>) -> Outcome {
    let (mut told, mut called, mut started) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..SAMPLES {
        std::thread::sleep(Duration::from_micros(1_000 + (n as u64 * 7_919) % 5_000));
        let begin = Instant::now();
        tell(engine, vec![fact(dataset, Some(format!("{dataset}/{n}")))])?;
        told.push(begin.elapsed());
        loop {
            let Seen { what, at, .. } = seen.recv_timeout(Duration::from_secs(30))?;
            let lag = at.saturating_duration_since(begin);
            match what {
                Moment::Called => called.push(lag),
                Moment::Started => started.push(lag),
                Moment::Ended => break,
            }
        }
    }
    println!("  a fact of {dataset} is told: stored and answered after {}", figures(&mut told));
    println!("  … executor called after {}", figures(&mut called));
    if !started.is_empty() {
        println!("  … process started after {}", figures(&mut started));
    }
    Ok(())
}

/// Schedules that wait for so many partitions of a dataset of their own.
fn crowd(schedules: usize, count: u32) -> Vec<Workflow> {
    let all = (0..schedules).map(|n| schedule(&format!("s{n:05}"), "p", &format!("ds{n:05}"), count));
    all.chain([program("p", Job::new(INSTANT, Map::new()))]).collect()
}

/// Has each schedule of a crowd collect one fact.
fn pend(engine: &Engine, schedules: usize) -> Outcome {
    let facts: Vec<Fact> = (0..schedules).map(|n| fact(&format!("ds{n:05}"), None)).collect();
    for together in facts.chunks(1_000) {
        tell(engine, together.to_vec())?;
    }
    Ok(())
}

/// How many facts a second are taken in, so many together, for 10,000 schedules that each go after a hundred.
pub(crate) fn throughput(facts: usize) -> Outcome {
    for (together, keyed) in [(500, true), (1_000, true), (500, false), (1_000, false)] {
        round(facts, together, keyed)?;
    }
    Ok(())
}

fn round(facts: usize, together: usize, keyed: bool) -> Outcome {
    let folder = folder()?;
    let mut wanted = BenchArguments::new(&folder.path().join("kelos.db"));
    wanted.config.max_running = 4_096;
    let engine = wanted.start()?;
    engine.leads();
    let begin = Instant::now();
    engine.define(crowd(SCHEDULES, 100));
    tell(&engine, Vec::new())?;
    println!("{SCHEDULES} schedules defined in {:.2?}", begin.elapsed());
    let (begin, next) = (Instant::now(), Arc::new(AtomicU32::new(0)));
    let requests = u32::try_from(facts / together)?;
    let (runtime, mut tellers) = (runtime()?, Vec::new());
    for _ in 0..TELLERS {
        let (handle, next) = (engine.handle.clone(), next.clone());
        tellers.push(runtime.spawn(async move {
            loop {
                let request = next.fetch_add(1, Ordering::SeqCst) as usize;
                if request >= requests as usize {
                    return Ok(());
                }
                let made = (request * together..(request + 1) * together).map(|n| {
                    // Neighbours in a request are of different datasets, as of many writers at once.
                    fact(&format!("ds{:05}", n * 7 % SCHEDULES), keyed.then(|| format!("p{}/{n}", n % 12)))
                });
                handle.ask(&Actor::person("bench"), Tell::of(made.collect())).await?;
            }
        }));
    }
    for teller in tellers {
        runtime.block_on(teller)?.map_err(|error: kelos_engine::AskError| error.to_string())?;
    }
    let spent = begin.elapsed();
    // Every schedule gets as many.
    let expected = facts / SCHEDULES / 100 * SCHEDULES;
    let succeeded = engine.handle.reader().slot_counts(&SlotFilter::default())?.get(&SlotState::Succeeded).copied();
    println!(
        "{facts} facts by {together}, {} names: {:.0} a second; {} of {expected} runs done by then; {:.0} MB; load {}; {:.2?}",
        if keyed { "with" } else { "without" },
        facts as f64 / spent.as_secs_f64(),
        succeeded.unwrap_or(0),
        resident_mb(),
        load(),
        cpu(),
    );
    engine.stop();
    runtime.shutdown_timeout(Duration::from_secs(2));
    Ok(())
}

/// What 10,000 schedules cost that have collected something, and wait.
pub(crate) fn idle(seconds: usize) -> Outcome {
    let folder = folder()?;
    let engine = BenchArguments::new(&folder.path().join("kelos.db")).start()?;
    engine.leads();
    engine.define(crowd(SCHEDULES, 100));
    pend(&engine, SCHEDULES)?;
    engine.until(None, SlotState::Waiting, SCHEDULES as u64)?;
    idle::measure(&format!("{SCHEDULES} schedules pending"), seconds);
    engine.stop();
    Ok(())
}
