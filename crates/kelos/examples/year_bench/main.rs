//! Lives through a year of the quickstart at many times its rate: `cargo run --release -p kelos --example year_bench [copies] [days] [kept days] [seed]`.
//!
//! The workflows are those of `samples/quickstart`, each so many times, and everything but the outside is real: turns of the scheduler,
//! one SQLite file with bounded history, the book of alerts and a channel that fails at times. Runs are simulated: they end after some
//! minutes, or hours, and some fail, as the seed says. Figures are of the machine they are measured on; nothing asserts them but the test
//! at the end, which lives through a month of one copy.

mod due;
mod quickstart;
mod receiver;
mod teller;
mod world;
mod year;

use std::time::{Duration, Instant};

use teller::Comparison;
use world::TROUBLE;
use year::{Month, Plan, Year};

fn main() {
    let argument = |place, usual| std::env::args().nth(place).map_or(usual, |text| text.parse().expect("a number"));
    let (copies, days, kept, seed) = (argument(1, 100), argument(2, 365), argument(3, 90), argument(4, 1));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kelos.db");
    let plan = Plan {
        copies: usize::try_from(copies).expect("a number"),
        days: usize::try_from(days).expect("a number"),
        kept: u32::try_from(kept).expect("a number"),
        seed,
        trouble: TROUBLE,
        month: 30,
        path,
    };
    println!("the quickstart {copies} times, {days} days, history of {kept} days, seed {seed}");
    let began = Instant::now();
    let year = Year::live(&plan, Box::new(print));
    println!("{} runs in {:.0?}", year.world.runs, began.elapsed());
    let Comparison { due, received, superseded, repeated, missing, unexpected, phases } = year.teller.told(year.now());
    println!(
        "{due} notices were due by the log: {received} came, {superseded} gave way to a later one, {} never came; \
         {} came that were not due, {repeated} came again; {} deaths of the sender; {phases:?}",
        missing.len(),
        unexpected.len(),
        year.teller.deaths,
    );
}

fn print(month: &Month) {
    let of = |name: &str| month.tables.get(name).copied().unwrap_or_default();
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "day {}: {:.1} MB; events {:.1} MB, runs {:.1} MB, {} rows of slots {:.1} MB, {} blocks {:.2} MB; \
         turns {}; removing {}",
        month.day,
        megabytes(month.file),
        megabytes(of("events").1),
        megabytes(of("runs").1),
        of("slots").0,
        megabytes(of("slots").1),
        of("slot_blocks").0,
        megabytes(of("slot_blocks").1),
        figures(&month.ordinary),
        figures(&month.removing),
    );
}

/// Figures of durations in order.
fn figures(spent: &[Duration]) -> String {
    let at = |share: f64| spent.get(((spent.len() as f64 * share) as usize).min(spent.len().saturating_sub(1)));
    match (at(0.5), at(0.99)) {
        (Some(half), Some(most)) => format!("p50 {half:.2?}, p99 {most:.2?} ({})", spent.len()),
        _ => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests;
