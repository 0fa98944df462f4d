//! From the moment at which a trigger becomes true to the start of the run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Input, SetRegister};
use kelos_engine::clock::{Clock, whole_millis};
use kelos_engine::executor::Executors;
use kelos_executors::CommandExecutor;
use kelos_executors::local::{Launcher, Limits, own_shim};
use kelos_model::probe::Verdict;
use kelos_model::template::KeyValues;
use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::{Actor, Probe, ProbeAnswer, SlotState, Trigger, Workflow};

use crate::support::{
    BenchArguments, Engine, INSTANT, Instantly, Moment, Outcome, Seen, Watching, command, figures, folder, load,
    moment, resident_mb, runtime, workflow,
};

const SAMPLES: usize = 400;

pub(crate) fn run(waiting: usize) -> Outcome {
    for others in [0, waiting] {
        println!("beside {others} other waiting slots (load {})", load());
        let folder = folder()?;
        let mut bench = Bench::start(&folder.path().join("kelos.db"))?;
        bench.add(crowd(others));
        plan_crowd(bench.engine(), others)?;
        bench.samples()?;
        println!("  {:.0} MB resident", resident_mb());
        bench.stop();
    }
    Ok(())
}

/// An engine with executors that note when they are called.
pub(crate) struct Bench {
    engine: Engine,
    launchers: tokio::runtime::Runtime,
    defined: Vec<Workflow>,
    clock: Skipping,
    instantly: Receiver<Seen>,
    commands: Receiver<Seen>,
    _runs: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn start(path: &Path) -> Outcome<Bench> {
        let (runs, launchers) = (folder()?, runtime()?);
        let launcher = Launcher::new(runs.path(), own_shim(), Limits::default())?;
        let command = CommandExecutor::new(launcher, launchers.handle().clone());
        let (command, commands) = Watching::new(command);
        let (instant, instantly) = Watching::new(Instantly::default());
        let clock = Skipping::default();
        let mut wanted = BenchArguments::new(path);
        wanted.executors = Executors::default().with("command", command).with(INSTANT, instant);
        wanted.clock = clock.clock();
        // Answers are pushed here; nobody asks twice.
        wanted.config.probe_first = SignedDuration::from_hours(24);
        wanted.config.probe_longest = SignedDuration::from_hours(24);
        let engine = wanted.start()?;
        engine.leads();
        Ok(Bench { engine, launchers, defined: Vec::new(), clock, instantly, commands, _runs: runs })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Defines more workflows.
    pub(crate) fn add(&mut self, more: Vec<Workflow>) {
        self.defined.extend(more);
        self.engine.define(self.defined.clone());
    }

    /// Waits until everything that was said before is done.
    pub(crate) fn settle(&self) -> Outcome {
        self.turn(0)?;
        Ok(())
    }

    /// One turn with a commit, as somebody outside sees it.
    fn turn(&self, n: usize) -> Outcome<Duration> {
        let ask = SetRegister { bucket: "bench".to_owned(), key: "n".to_owned(), value: Some(n.into()), reason: None };
        let begin = Instant::now();
        self.engine.runtime.block_on(self.engine.handle.ask(&Actor::person("bench"), ask))?;
        Ok(begin.elapsed())
    }

    /// Prints how long it takes from a trigger that is met to a start.
    pub(crate) fn samples(&mut self) -> Outcome {
        let mut turns = Vec::new();
        for n in 0..SAMPLES {
            pause(n);
            turns.push(self.turn(n)?);
        }
        println!("  a turn with its commit, asked and answered: {}", figures(&mut turns));
        let Bench { engine, defined, clock, .. } = self;
        for (job, seen) in [("none", &self.instantly), ("command", &self.commands)] {
            pushed(engine, defined, job, seen, clock)?;
            by_clock(engine, defined, job, seen, clock)?;
        }
        Ok(())
    }

    pub(crate) fn stop(self) {
        self.engine.stop();
        self.launchers.shutdown_timeout(Duration::from_secs(2));
    }
}

/// Workflows whose slots wait all the while: for the clock, and for other slots.
pub(crate) fn crowd(others: usize) -> Vec<Workflow> {
    if others == 0 {
        return Vec::new();
    }
    let patient = |id: &str, trigger| {
        let mut patient = workflow(id, "0 * * * * ?");
        patient.start_time = Some(moment("2199-01-01T00:00:00Z"));
        patient.trigger = trigger;
        patient
    };
    let decades = Trigger::Delay { seconds: 40 * 366 * 86_400 };
    let success = Trigger::Success { workflow: crate::support::name("for-the-clock") };
    vec![patient("for-the-clock", decades), patient("for-others", success)]
}

/// Plans the slots of the crowd, in parts that one request may have.
pub(crate) fn plan_crowd(engine: &Engine, others: usize) -> Outcome<usize> {
    const PART: usize = 100_000;
    let mut planned = 0;
    let first = moment("2020-01-01T00:00:00Z");
    let minutes = |n: usize| SignedDuration::from_mins(i64::try_from(n).unwrap_or(i64::MAX));
    for (whose, id) in ["for-the-clock", "for-others"].into_iter().enumerate() {
        let own = others / 2 + others % 2 * whose;
        for from in (0..own).step_by(PART) {
            let until = (from + PART).min(own);
            let backfill = format!("{id}-{from}");
            planned += engine.backfill(&backfill, id, first + minutes(from), first + minutes(until))?;
        }
    }
    Ok(planned)
}

/// A pushed answer to what a slot waits for.
fn pushed(engine: &Engine, all: &mut Vec<Workflow>, job: &str, seen: &Receiver<Seen>, clock: &Skipping) -> Outcome {
    let id = format!("pushed-{job}");
    let mut pushed = with_job(workflow(&id, "* * * * * ?"), job);
    let last = clock.now();
    let first = last - SignedDuration::from_secs(i64::try_from(SAMPLES)?);
    pushed.start_time = Some(first);
    pushed.trigger = Trigger::Path(PathCheck::new(
        FileSystem::Local,
        "/nowhere/${year}-${month}-${day}-${hour}-${minute}-${second}",
        "file:///",
    ));
    let Trigger::Path(check) = pushed.trigger.clone() else {
        return Ok(());
    };
    all.push(pushed);
    engine.define(all.clone());
    engine.until(Some(&id), SlotState::Waiting, SAMPLES as u64)?;
    // The first looks are answered by themselves; let that be over.
    std::thread::sleep(Duration::from_millis(500));
    while seen.try_recv().is_ok() {}
    let mut samples = Samples::default();
    for n in 1..=SAMPLES {
        let at = first.as_second() + i64::try_from(n)?;
        let uri = check.uri(&KeyValues::at(Timestamp::from_second(at)?));
        let answer = ProbeAnswer { verdict: Verdict::Yes, detail: String::new(), at: clock.now() };
        pause(n);
        let begin = Instant::now();
        let probe = Probe::path(uri);
        engine.handle.deliver(Input::ProbeAnswered { probe, answer })?;
        samples.take(at, begin, seen, job)?;
    }
    all.pop();
    engine.define(all.clone());
    samples.print(&format!("answer pushed, job: {job}"));
    Ok(())
}

/// A slot of every second, held back for a minute: the clock alone makes it go. What lies between two seconds
/// is skipped.
fn by_clock(engine: &Engine, all: &mut Vec<Workflow>, job: &str, seen: &Receiver<Seen>, clock: &Skipping) -> Outcome {
    let mut delayed = with_job(workflow(&format!("delayed-{job}"), "* * * * * ?"), job);
    delayed.start_time = Some(clock.now());
    delayed.trigger = Trigger::Delay { seconds: 60 };
    all.push(delayed);
    engine.define(all.clone());
    let mut samples = Samples::default();
    for n in 0..SAMPLES + 62 {
        let (second, due) = clock.skip_to_just_before_a_second(n);
        // Nobody asks this; the engine looks at its clock again.
        let uri = "file:///nowhere".to_owned();
        let answer = ProbeAnswer { verdict: Verdict::No, detail: String::new(), at: clock.now() };
        let probe = Probe::path(uri);
        engine.handle.deliver(Input::ProbeAnswered { probe, answer })?;
        if n < 62 {
            std::thread::sleep(due.saturating_duration_since(Instant::now()) + Duration::from_millis(5));
            while seen.try_recv().is_ok() {}
            continue;
        }
        samples.take(second - 60, due, seen, job)?;
    }
    all.pop();
    engine.define(all.clone());
    samples.print(&format!("due by clock, job: {job}"));
    Ok(())
}

fn with_job(mut workflow: Workflow, job: &str) -> Workflow {
    workflow.concurrency = Some(1_000);
    if job == "command" {
        workflow.job = command(&["/bin/true"]);
    }
    workflow
}

/// Between two samples: not in step with anything.
fn pause(n: usize) {
    std::thread::sleep(Duration::from_micros(1_000 + (n as u64 * 7_919) % 5_000));
}

#[derive(Default)]
struct Samples {
    called: Vec<Duration>,
    started: Vec<Duration>,
}

impl Samples {
    /// Waits for the run of the slot of a second; its end is waited for, too, so that it is not in the way of
    /// the next one. Runs of other slots are passed over.
    fn take(&mut self, second: i64, begin: Instant, seen: &Receiver<Seen>, job: &str) -> Outcome {
        loop {
            let Seen { run, what, at } = seen.recv_timeout(Duration::from_secs(30))?;
            if run.slot.key.time().is_none_or(|at| at.as_second() != second) {
                continue;
            }
            let lag = at.saturating_duration_since(begin);
            match what {
                Moment::Called => self.called.push(lag),
                Moment::Started => self.started.push(lag),
                Moment::Ended => break,
            }
        }
        if job == "command" {
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    fn print(mut self, what: &str) {
        println!("  {what}: executor called after {}", figures(&mut self.called));
        if !self.started.is_empty() {
            println!("  {what}: process started after {}", figures(&mut self.started));
        }
    }
}

/// The machine's clock, put forward by whatever was skipped so far.
#[derive(Clone, Default)]
struct Skipping {
    skipped_millis: Arc<AtomicI64>,
}

impl Skipping {
    fn now(&self) -> Timestamp {
        Timestamp::now() + SignedDuration::from_millis(self.skipped_millis.load(Ordering::SeqCst))
    }

    fn clock(&self) -> Clock {
        let this = self.clone();
        Arc::new(move || whole_millis(this.now()))
    }

    /// Puts the clock to some 20 ms before the next full second; gives that second, and its moment.
    fn skip_to_just_before_a_second(&self, n: usize) -> (i64, Instant) {
        let now = self.now();
        let before = 15 + i64::try_from(n * 7 % 13).unwrap_or(0);
        let into = now.as_millisecond().rem_euclid(1_000);
        let skip = (1_000 - before - into).rem_euclid(1_000);
        self.skipped_millis.fetch_add(skip, Ordering::SeqCst);
        let (instant, now) = (Instant::now(), self.now());
        let left = 1_000_000_000 - i64::from(now.subsec_nanosecond());
        let moment = instant + Duration::from_nanos(left.unsigned_abs());
        (now.as_second() + 1, moment)
    }
}
