//! How late a workflow with a slot each second is beside thousands that catch up with their past, while the limit on all runs is reached.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kelos_engine::executor::{Executor, Executors, Reports, Start};
use kelos_model::run::Report;
use kelos_model::{RunId, Workflow};

use crate::support::{
    BenchArguments, INSTANT, Instantly, Moment, Outcome, Watching, figures, folder, load, resident_mb, workflow,
};

/// The past times of each of the others, one a minute.
const TIMES: i64 = 156;
/// Runs of the others that end in a second, one after the other, as on a machine that is busy.
const A_SECOND: u32 = 100;
const PACED: &str = "paced";
/// How long each figure is taken, and how many are.
const TAKEN: Duration = Duration::from_secs(60);
const FIGURES: usize = 3;

/// Ends runs one after the other.
#[derive(Clone, Default)]
struct Paced(Arc<RunQueue>);

/// Runs that have not ended yet.
#[derive(Default)]
struct RunQueue {
    runs: Mutex<VecDeque<(RunId, Reports)>>,
    came: Condvar,
}

impl Paced {
    fn work(&self) {
        let RunQueue { runs, came } = &*self.0;
        loop {
            let mut waiting = runs.lock().expect("a lock");
            let (run, reports) = loop {
                match waiting.pop_front() {
                    Some(next) => break next,
                    None => waiting = came.wait(waiting).expect("a lock"),
                }
            };
            drop(waiting);
            std::thread::sleep(Duration::from_secs(1) / A_SECOND);
            reports.run(&run, Report::Ended { outcome: kelos_model::Outcome::Succeeded });
        }
    }
}

impl Executor for Paced {
    fn start(&self, start: Start, reports: Reports) {
        self.0.runs.lock().expect("a lock").push_back((start.run, reports));
        self.0.came.notify_one();
    }

    fn check(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::NeverStarted);
    }

    fn cancel(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::Ended { outcome: kelos_model::Outcome::Killed });
    }
}

pub(crate) fn run(others: usize) -> Outcome {
    println!("beside {others} workflows with {TIMES} past times each, {A_SECOND} runs a second (load {})", load());
    let (folder, paced) = (folder()?, Paced::default());
    let mut wanted = BenchArguments::new(&folder.path().join("kelos.db"));
    let (instant, seen) = Watching::new(Instantly::default());
    wanted.executors = Executors::default().with(INSTANT, instant).with(PACED, paced.clone());
    let engine = wanted.start()?;
    engine.leads();
    std::thread::spawn(move || paced.work());
    let (now, began) = (Timestamp::now(), Instant::now());
    let past = now - SignedDuration::from_mins(TIMES);
    let mut all: Vec<Workflow> = (0..others)
        .map(|n| {
            let mut one = workflow(&format!("behind-{n}"), "0 * * * * ?");
            (one.start_time, one.end_time) = (Some(past), Some(now));
            one.job.executor = PACED.to_owned();
            one
        })
        .collect();
    let mut by_second = workflow("by-second", "* * * * * ?");
    by_second.start_time = Some(now);
    all.push(by_second);
    engine.define(all);
    for _ in 0..FIGURES {
        let until = Instant::now() + TAKEN;
        let mut late = Vec::new();
        while let Ok(one) = seen.recv_timeout(until.saturating_duration_since(Instant::now())) {
            let Some(due) = one.run.slot.key.time().filter(|_| one.what == Moment::Called) else { continue };
            let due = began + Duration::try_from(due.duration_since(now)).unwrap_or_default();
            late.push(one.at.saturating_duration_since(due));
        }
        println!("  from due to start: {}; {:.0} MB resident", figures(&mut late), resident_mb());
    }
    engine.stop();
    Ok(())
}
