//! Prints how long it takes to list a year of slots and to read cron expressions.
//! `cargo run --release -p kelos-model --example year_of_slots`

#![allow(clippy::disallowed_types, reason = "it takes the time")]

use std::hint::black_box;
use std::time::Instant;

use jiff::Timestamp;
use kelos_model::time::{Cron, CronSchedule, Fold, Gap, Zone};

fn main() {
    for zone in ["UTC", "Europe/Berlin", "Australia/Lord_Howe"] {
        for expression in ["0 0/5 * * * ?", "0 * * * * ?", "0 30 2 * * ?", "0 0 0 30 2 ?"] {
            list_a_year(expression, zone);
        }
    }
    read_many();
}

fn list_a_year(expression: &str, zone: &str) {
    let cron = Cron::parse(expression).expect("a cron expression");
    let zone = Zone::parse(zone).expect("a zone");
    let schedule = CronSchedule::new(cron, zone, Gap::default(), Fold::default());
    let [start, end] =
        ["2016-01-01T00:00:00Z", "2017-01-01T00:00:00Z"].map(|text| text.parse::<Timestamp>().expect("an instant"));
    let (count, millis) = best_of_five(|| schedule.times(start, end).map(black_box).count());
    println!("{millis:8.3} ms  {count:6} times of {expression:?} in {}", schedule.zone());
    let (_, millis) = best_of_five(|| schedule.previous_before(start).map(black_box).iter().count());
    println!("{millis:8.3} ms  the one before them");
}

fn read_many() {
    let expressions = ["0 0/5 * * * ?", "0 0 6 ? * MON-FRI", "0 0 0 L-3W * ?", "0 15,45 8-18/2 ? * 6#3 2020-2030"];
    let read = || {
        let all = expressions.iter().cycle().take(100_000);
        all.filter(|text| black_box(Cron::parse(text)).is_ok()).count()
    };
    let (count, millis) = best_of_five(read);
    println!("{millis:8.3} ms  {count:6} expressions read");
}

fn best_of_five(work: impl Fn() -> usize) -> (usize, f64) {
    let run = || {
        let begin = Instant::now();
        let count = work();
        (count, begin.elapsed().as_secs_f64() * 1000.0)
    };
    (0..5).map(|_| run()).min_by(|a, b| a.1.total_cmp(&b.1)).expect("five runs")
}
