//! The speed of a log, beside that of the bare writes of its store.

use std::time::{Duration, Instant};

use crate::log::{Holder, LogStore};

/// The writes that alternate: what the machine does beside them hits both.
const TOGETHER: usize = 50;

/// Appends entries of 1 kB and of 10 kB one by one to an empty log, for a time each, and prints a row of a table for them and for the bare
/// writes of the store, which alternate with them.
///
/// # Panics
/// If the store fails.
pub fn measure_log(name: &str, store: &dyn LogStore, time: Duration, bare: &mut dyn FnMut(u64, &[u8])) {
    let mut log = store.open().expect("the store is there");
    let seen = log.lease().expect("a lease");
    let held = log.take(&seen, 1, &Holder::default()).expect("the store answers").expect("the lease is not taken");
    println!("| store | entry | writes | a second | p50 | p99 |");
    println!("|---|---|---|---|---|---|");
    let mut position = 0;
    for bytes in [1_000, 10_000] {
        let body: Vec<u8> = (0..bytes).map(|n| (n * 31 % 251) as u8).collect();
        let (mut appends, mut writes) = (Vec::new(), Vec::new());
        let began = Instant::now();
        while began.elapsed() < time {
            for _ in 0..TOGETHER {
                position += 1;
                appends.push(timed(|| log.append(held.epoch, position, &body).expect("it is appended")));
            }
            for number in 0..TOGETHER {
                let number = position * 1000 + number as u64;
                writes.push(timed(|| bare(number, &body)));
            }
        }
        row(&format!("{name}, appended"), bytes, appends);
        row(&format!("{name}, bare write"), bytes, writes);
    }
}

fn timed(doing: impl FnOnce()) -> Duration {
    let began = Instant::now();
    doing();
    began.elapsed()
}

fn row(name: &str, bytes: usize, mut times: Vec<Duration>) {
    let all: Duration = times.iter().sum();
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1000.0;
    let rate = times.len() as f64 / all.as_secs_f64();
    println!("| {name} | {bytes} bytes | {} | {rate:.0} | {:.2} ms | {:.2} ms |", times.len(), at(50), at(99));
}
