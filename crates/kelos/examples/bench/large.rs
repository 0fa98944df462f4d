//! One slot's way beside millions of others: finished ones on the disk, waiting ones in memory.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::fill::{self, History};
use crate::latency::{self, Bench};
use crate::support::{Outcome, folder, load, resident_mb};

pub(crate) fn run(finished: usize, waiting: usize) -> Outcome {
    println!("beside nothing (load {})", load());
    let folder = folder()?;
    Bench::start(&folder.path().join("kelos.db"))?.samples()?;
    drop(folder);

    let folder = self::folder()?;
    let path = folder.path().join("kelos.db");
    let begin = Instant::now();
    fill::fill(&path, finished, Timestamp::now(), History::LastEvent)?;
    let size = std::fs::metadata(&path)?.len() as f64 / 1e9;
    println!("beside {finished} finished slots, written in {:.0?}, {size:.1} GB", begin.elapsed());
    let begin = Instant::now();
    let mut bench = Bench::start(&path)?;
    bench.add(fill::workflows());
    bench.settle()?;
    println!("  up after {:.0?}, {:.0} MB resident", begin.elapsed(), resident_mb());
    bench.samples()?;

    let begin = Instant::now();
    bench.add(latency::crowd(waiting));
    latency::plan_crowd(bench.engine(), waiting)?;
    println!("and beside {waiting} waiting slots, planned by backfills in {:.0?}", begin.elapsed());
    std::thread::sleep(Duration::from_secs(2));
    println!("  {:.0} MB resident (load {})", resident_mb(), load());
    bench.samples()?;
    println!("  {:.0} MB resident", resident_mb());
    bench.stop();
    Ok(())
}
