//! `cargo xtask sim`: simulates seeds on all cores, and prints each failure with the seed that reproduces it.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kelos_sim::{Figures, check_seed};

#[derive(clap::Args)]
pub(crate) struct SimArguments {
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds, one after the other.
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// Start no further seed after this many seconds.
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// Print each seed before it runs.
    #[arg(long)]
    verbose: bool,
}

/// How many failures are printed; the rest is counted.
const SHOWN: usize = 20;

pub(crate) fn run(arguments: &SimArguments) -> ExitCode {
    let began = Instant::now();
    let next = AtomicU64::new(arguments.seed);
    let end = arguments.seed.saturating_add(arguments.count);
    let until = arguments.seconds.and_then(|seconds| began.checked_add(Duration::from_secs(seconds)));
    let in_time = || until.is_none_or(|until| Instant::now() < until);
    let ran = AtomicU64::new(0);
    let total = Mutex::new((Figures::default(), Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while in_time()
                    && let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < end)
                {
                    ran.fetch_add(1, Ordering::Relaxed);
                    if arguments.verbose {
                        eprintln!("seed {seed}");
                    }
                    let result = std::panic::catch_unwind(|| check_seed(seed));
                    let result = result.unwrap_or_else(|_| Err(format!("seed {seed}: it panicked")));
                    let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                    match result {
                        Ok(figures) => total.0 += figures,
                        Err(wrong) => total.1.push(wrong),
                    }
                }
            });
        }
    });
    let (figures, failures) = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    report(arguments.seed, ran.into_inner(), &figures, &failures, began)
}

fn report(first: u64, ran: u64, figures: &Figures, failures: &[String], began: Instant) -> ExitCode {
    for failure in failures.iter().take(SHOWN) {
        eprintln!("{failure}");
    }
    println!(
        "{} seeds from {} in {:.1} s: {} turns, {} events, {} runs, {} grants within them, {} recoveries, {} slot states compared with the full scan",
        ran,
        first,
        began.elapsed().as_secs_f64(),
        figures.turns,
        figures.events,
        figures.runs,
        figures.granted,
        figures.recoveries,
        figures.compared,
    );
    if figures.reigns > 0 {
        println!(
            "nodes led {} times over logs of {} entries, stored {} snapshots, and were to raise the form of entries {} times",
            figures.reigns, figures.entries, figures.snapshots, figures.raised,
        );
    }
    if figures.removed > 0 {
        println!("{} events were removed from logs, and the same turns kept whole beside them", figures.removed);
    }
    if failures.is_empty() {
        println!("all held");
        return ExitCode::SUCCESS;
    }
    println!("{} failed; repeat one with: cargo xtask sim --seed N", failures.len());
    ExitCode::FAILURE
}
