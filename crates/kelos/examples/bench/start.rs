//! How long a start takes on a database with a past: in a process of its own, as after a restart.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use jiff::Timestamp;

use crate::fill::{self, History};
use crate::latency::{self, Bench};
use crate::support::{BenchArguments, Outcome, folder, load, millis, resident_mb};

const ROUNDS: usize = 5;

pub(crate) fn run(slots: usize) -> Outcome {
    let folder = folder()?;
    let path = folder.path().join("empty.db");
    Bench::start(&path)?.stop();
    again("an empty database", &path)?;

    let path = folder.path().join("finished.db");
    fill::fill(&path, slots, Timestamp::now(), History::Whole)?;
    again(&format!("{slots} finished slots"), &path)?;

    let path = folder.path().join("waiting.db");
    let mut bench = Bench::start(&path)?;
    bench.add(latency::crowd(slots));
    latency::plan_crowd(bench.engine(), slots)?;
    bench.stop();
    again(&format!("{slots} waiting slots"), &path)
}

fn again(what: &str, path: &Path) -> Outcome {
    println!("{what}, {:.0} MB (load {}):", std::fs::metadata(path)?.len() as f64 / 1e6, load());
    for _ in 0..ROUNDS {
        let status = Command::new(std::env::current_exe()?).arg("start-one").arg(path).status()?;
        if !status.success() {
            return Err("a start failed".into());
        }
    }
    Ok(())
}

/// One start: open, restore, lead, take the definitions in.
pub(crate) fn one(path: &str) -> Outcome {
    let begin = Instant::now();
    let engine = BenchArguments::new(Path::new(path)).start()?;
    engine.leads();
    let leads = begin.elapsed();
    let rows = engine.handle.reader().workflows(None)?;
    let defined = rows.into_iter().map(|row| (*row.definition).clone());
    engine.define(defined.collect());
    engine.runtime.block_on(engine.handle.settled())?;
    println!(
        "  leads after {:.0} ms; definitions taken in and everything looked at after {:.0} ms; {:.0} MB resident",
        millis(leads),
        millis(begin.elapsed()),
        resident_mb()
    );
    engine.stop();
    Ok(())
}
