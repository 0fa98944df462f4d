//! Runs of flows: steps a second, the time between steps, wide flows, and runs that wait for a signal.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use kelos_engine::executor::Executors;
use kelos_model::flow::{FLOW, SignalWait};
use kelos_model::{Flow, Job, SlotState, Step, StepName, Workflow};
use serde_json::Map;

use crate::support::{
    BenchArguments, Engine, INSTANT, Instantly, Moment, Outcome, Watching, cpu, figures, folder, load, millis, moment,
    resident_mb, workflow,
};

fn step_name(text: &str) -> StepName {
    StepName::new(text).expect("a name of a step")
}

fn step(text: &str, needs: &[&str]) -> Step {
    let needs = needs.iter().map(|name| step_name(name)).collect();
    Step { needs, ..Step::new(step_name(text), Job::new(INSTANT, Map::new())) }
}

/// A flow for each minute of the past, of which nothing is planned by itself.
fn minutely(steps: Vec<Step>, at_a_time: Option<u32>) -> Workflow {
    let mut flow = workflow("flow", "0 * * * * ?");
    flow.start_time = Some(moment("2199-01-01T00:00:00Z"));
    flow.concurrency = at_a_time;
    flow.job = Job::new(FLOW, Map::new());
    flow.flow = Some(Arc::new(Flow { steps }));
    flow
}

fn chain(steps: usize) -> Vec<Step> {
    let name = |n: usize| format!("s{n}");
    (0..steps).map(|n| if n == 0 { step(&name(0), &[]) } else { step(&name(n), &[&name(n - 1)]) }).collect()
}

/// So many runs of a flow, one for each minute from 2020 on.
fn runs(engine: &Engine, runs: usize) -> Outcome<usize> {
    let start = moment("2020-01-01T00:00:00Z");
    engine.backfill("all", "flow", start, start + SignedDuration::from_mins(i64::try_from(runs)?))
}

/// Steps a second: chains of ten, on disk.
pub(crate) fn steps(number: usize) -> Outcome {
    const LENGTH: usize = 10;
    let folder = folder()?;
    let instantly = Instantly { says_started: true, ..Instantly::default() };
    let first = instantly.first.clone();
    let path = folder.path().join("kelos.db");
    let mut wanted = BenchArguments::new(&path);
    wanted.config.max_running = 4_096;
    wanted.executors = Executors::default().with(INSTANT, instantly);
    let engine = wanted.start()?;
    engine.leads();
    engine.define(vec![minutely(chain(LENGTH), Some(1_024))]);
    let planned = runs(&engine, number / LENGTH)?;
    engine.until(None, SlotState::Succeeded, planned as u64)?;
    let spent = first.get().ok_or("nothing was dispatched")?.elapsed();
    let busy = cpu().get("kelos-engine").copied().unwrap_or_default();
    let all = (planned * LENGTH) as f64;
    let events = engine.handle.reader().last_seq()? as f64 / all;
    engine.stop();
    let bytes = std::fs::metadata(&path)?.len() as f64 / all;
    println!(
        "{all} steps in chains of {LENGTH}: {:.0} a second ({spent:.2?}; engine's thread {busy:.2?}); {events:.1} events and \
         {bytes:.0} bytes of the database for each step; {:.0} MB; load {}",
        all / spent.as_secs_f64(),
        resident_mb(),
        load()
    );
    Ok(())
}

/// The time from the end of a step to the call of the next one.
pub(crate) fn between(number: usize) -> Outcome {
    let folder = folder()?;
    let (watching, seen) = Watching::new(Instantly { says_started: true, ..Instantly::default() });
    let mut wanted = BenchArguments::new(&folder.path().join("kelos.db"));
    wanted.executors = Executors::default().with(INSTANT, watching);
    let engine = wanted.start()?;
    engine.leads();
    engine.define(vec![minutely(chain(10), Some(1))]);
    let planned = runs(&engine, number / 10)?;
    engine.until(None, SlotState::Succeeded, planned as u64)?;
    engine.stop();
    let mut ended: Option<Instant> = None;
    let mut gaps: Vec<Duration> = Vec::new();
    for one in seen.try_iter() {
        match one.what {
            Moment::Called => {
                let is_first = one.run.slot.key.step().is_some_and(|step| step.step() == "s0");
                gaps.extend(ended.take().filter(|_| !is_first).map(|ended| one.at - ended));
            }
            Moment::Started => {}
            Moment::Ended => ended = Some(one.at),
        }
    }
    println!("from the end of a step to the start of the next: {}; load {}", figures(&mut gaps), load());
    Ok(())
}

/// One run with so many steps side by side, between one before and one after them.
pub(crate) fn wide(number: usize) -> Outcome {
    let names: Vec<String> = (0..number).map(|n| format!("s{n}")).collect();
    let mut all = vec![step("first", &[])];
    all.extend(names.iter().map(|name| step(name, &["first"])));
    all.push(step("last", &names.iter().map(String::as_str).collect::<Vec<_>>()));
    let mut times = Vec::new();
    for _ in 0..5 {
        let folder = folder()?;
        let mut wanted = BenchArguments::new(&folder.path().join("kelos.db"));
        wanted.config.max_running = 4_096;
        wanted.executors = Executors::default().with(INSTANT, Instantly { says_started: true, ..Instantly::default() });
        let engine = wanted.start()?;
        engine.leads();
        engine.define(vec![minutely(all.clone(), Some(1))]);
        let begin = Instant::now();
        runs(&engine, 1)?;
        engine.until(None, SlotState::Succeeded, 1)?;
        times.push(begin.elapsed());
        engine.stop();
    }
    println!("a run of {number} steps side by side: {}; load {}", figures(&mut times), load());
    Ok(())
}

/// Runs that wait for a signal: their memory, and what they cost while nothing comes.
pub(crate) fn waiting(number: usize) -> Outcome {
    let folder = folder()?;
    let path = folder.path().join("kelos.db");
    let signal = SignalWait { name: "go".to_owned(), within_seconds: None };
    let flow = || vec![minutely(vec![Step::waiting_for(step_name("ok"), signal.clone())], None)];
    let engine = BenchArguments::new(&path).start()?;
    engine.leads();
    engine.define(flow());
    let begin = Instant::now();
    let planned = runs(&engine, number)?;
    engine.until(None, SlotState::Running, planned as u64)?;
    println!("{planned} runs of a flow begun: {:.2?}; load {}", begin.elapsed(), load());
    engine.stop();
    // A process that did not begin them has nothing but what they are.
    let before = resident_mb();
    let begin = Instant::now();
    let engine = BenchArguments::new(&path).start()?;
    engine.leads();
    engine.define(flow());
    let led = begin.elapsed();
    std::thread::sleep(Duration::from_secs(2));
    let (memory, busy) = (resident_mb() - before, spent(&cpu()));
    std::thread::sleep(Duration::from_secs(10));
    let idle = spent(&cpu()) - busy;
    println!(
        "… started again with {planned} that wait: leads after {:.0} ms, {:.0} bytes each, {:.2} ms of the engine's \
         thread in 10 s; load {}",
        millis(led),
        memory * 1e6 / planned as f64,
        millis(idle),
        load()
    );
    engine.stop();
    Ok(())
}

fn spent(threads: &BTreeMap<String, Duration>) -> Duration {
    threads.get("kelos-engine").copied().unwrap_or_default()
}
