//! Prints what was expected of recorded runs beside how long they took: `cargo run -p kelos --example calibration -- FOLDER WORKFLOW`.
//! The expectation of a run is made from the runs before it alone, as `kelos why` makes it of a live slot.

use std::error::Error;

use jiff::SignedDuration;
use kelos::{SqliteStore, WorkflowId};
use kelos_explain::forecast::{PastExpectation, calibration};
use kelos_store::StoredState;

/// The most runs that are compared.
const MOST: usize = 1000;
/// The runs that are printed one by one, the latest.
const PRINTED: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "expected the folder of a server and the name of a workflow";
    let (folder, workflow) = arguments.next().zip(arguments.next()).ok_or(usage)?;
    let store = SqliteStore::open(std::path::Path::new(&folder).join("kelos.db"))?;
    let past = calibration(&*store.reader(), &WorkflowId::new(&workflow)?, MOST)?;
    println!("{:<44} {:>10} {:>12} {:>10}", "slot", "expected", "one in ten", "took");
    for one in past.iter().skip(past.len().saturating_sub(PRINTED)) {
        let [expected, high, took] = [one.expected.median, one.expected.high, one.took].map(seconds);
        println!("{:<44} {expected:>8.1} s {high:>10.1} s {took:>8.1} s", one.slot.short());
    }
    println!("{}", summary(&past));
    Ok(())
}

fn seconds(length: SignedDuration) -> f64 {
    length.as_secs_f64()
}

/// How far expectations were from what happened.
fn summary(past: &[PastExpectation]) -> String {
    let within = past.iter().filter(|one| one.took <= one.expected.high).count();
    let mut errors: Vec<f64> =
        past.iter().map(|one| (seconds(one.took) - seconds(one.expected.median)).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let median = errors.get(errors.len() / 2).copied().unwrap_or_default();
    let share = if past.is_empty() { 0.0 } else { 100.0 * within as f64 / past.len() as f64 };
    format!(
        "{} runs: half of them within {median:.1} s of what was expected, {share:.0} % no longer than one in ten",
        past.len()
    )
}
