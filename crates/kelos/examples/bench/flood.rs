//! How late workflows are beside one that has a slot for each second of the last week, and waits for all of them.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kelos_core::Config;
use kelos_engine::executor::Executors;
use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::{Trigger, Workflow};

use crate::support::{
    BenchArguments, Engine, INSTANT, Instantly, Moment, Outcome, Seen, Watching, figures, folder, load, resident_mb,
    workflow,
};

/// How many workflows are beside it, each with a slot each second.
const OTHERS: usize = 10;

/// How long each figure is taken.
const TAKEN: Duration = Duration::from_secs(60);

/// How many figures are taken: first while the flood is planned.
const TIMES: usize = 3;

pub(crate) fn run(slots: usize) -> Outcome {
    for at_once in [usize::MAX, Config::default().at_once] {
        let bound = if at_once == usize::MAX { "without a bound".to_owned() } else { format!("{at_once} at once") };
        println!("beside {slots} waiting slots, {bound} (load {})", load());
        let folder = folder()?;
        let mut wanted = BenchArguments::new(&folder.path().join("kelos.db"));
        let (instant, seen) = Watching::new(Instantly::default());
        wanted.executors = Executors::default().with(INSTANT, instant);
        wanted.config.at_once = at_once;
        let engine = wanted.start()?;
        engine.leads();
        measure(&engine, slots, &seen);
        engine.stop();
    }
    Ok(())
}

fn measure(engine: &Engine, slots: usize, seen: &Receiver<Seen>) {
    let (now, began) = (Timestamp::now(), Instant::now());
    let mut all: Vec<Workflow> =
        (0..OTHERS).map(|n| starting(workflow(&format!("beside-{n}"), "* * * * * ?"), now)).collect();
    let week = SignedDuration::from_secs(i64::try_from(slots).unwrap_or(i64::MAX));
    let mut flood = starting(workflow("flood", "* * * * * ?"), now - week);
    let uri = "/kelos-bench-nowhere/${year}-${month}-${day}-${hour}-${minute}-${second}";
    flood.trigger = Trigger::Path(PathCheck::new(FileSystem::Local, uri, "file:///"));
    all.push(flood);
    engine.define(all);
    for _ in 0..TIMES {
        let until = Instant::now() + TAKEN;
        let mut late = Vec::new();
        while let Ok(one) = seen.recv_timeout(until.saturating_duration_since(Instant::now())) {
            let Some(due) = one.run.slot.key.time().filter(|_| one.what == Moment::Called) else { continue };
            let due = began + Duration::try_from(due.duration_since(now)).unwrap_or_default();
            late.push(one.at.saturating_duration_since(due));
        }
        println!("  from due to start: {}; {:.0} MB resident", figures(&mut late), resident_mb());
    }
}

fn starting(mut workflow: Workflow, at: Timestamp) -> Workflow {
    workflow.start_time = Some(at);
    workflow
}
