//! A year played through without running anything.

use std::sync::Arc;
use std::time::Instant;

use kelos_model::Trigger;
use kelos_rehearsal::dry_run::{DryRun, dry_run};

use crate::support::{Outcome, load, median, millis, moment, name, workflow};

pub(crate) fn run() -> Outcome {
    let suppose = DryRun::over(moment("2025-01-01T00:00:00Z"), moment("2026-01-01T00:00:00Z"));
    let mut one = workflow("one", "0 0/5 * * * ?");
    one.concurrency = Some(10);
    let mut other = workflow("other", "0 0/5 * * * ?");
    other.trigger = Trigger::Success { workflow: name("one") };
    for (what, all) in [("one workflow", vec![one.clone()]), ("two, one after the other", vec![one, other])] {
        let all: Vec<_> = all.into_iter().map(Arc::new).collect();
        let mut slots = 0;
        let times = (0..5).map(|_| {
            let begin = Instant::now();
            let forecasts = dry_run(&suppose, &all).workflows;
            slots = forecasts.values().map(|forecast| forecast.slots.len()).sum();
            millis(begin.elapsed())
        });
        let times = times.collect();
        println!(
            "a year of 5-minute slots played through, {what}: median {:.0} ms, {slots} slots; load {}",
            median(times),
            load()
        );
    }
    Ok(())
}
