//! Figures of the whole engine. They are printed; nothing asserts them, for they are the machine's.
//!
//! ```text
//! cargo run --release -p kelos --example bench -- NAME [NUMBER]
//! ```
//!
//! `docs/benchmarks.md` says what each name measures and what came out of it.

mod behind;
mod commands;
mod dry;
mod facts;
mod fill;
mod flood;
mod floor;
mod flows;
mod idle;
mod large;
mod latency;
mod library;
mod nodes;
mod noop;
mod pages;
mod rehearse;
mod schedules;
mod schedules_past;
mod start;
mod support;
mod verify;
mod within;

use support::Outcome;

const NAMES: &str = "commands | noop [RUNS] | nodes [RUNS] [URL OF AN EMPTY LOG]… | latency [WAITING] | idle [SECONDS] | memory | \
                     large [FINISHED] [WAITING] | start [SLOTS] | pages [RUNS] | schedules [SCHEDULES] | dry-run | \
                     rehearse [WORKFLOWS] | flood [SLOTS] | behind [WORKFLOWS] | facts [FACTS] | facts-latency [WAITING] | facts-idle [SECONDS] | \
                     flow-steps [STEPS] | flow-between [STEPS] | \
                     flow-wide [STEPS] | flow-waiting [RUNS] | series [JOBS] | decade [JOBS] | backfills [JOBS] | sequence [JOBS] | within [REQUESTS] | \
                     verify [EVENTS] [SLOTS A TURN] | verify-one FILE";

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize, usual: usize| -> usize {
        let given = args.get(n).map(|text| text.replace('_', ""));
        given.map_or(usual, |text| text.parse().expect("a number"))
    };
    match args.first().map(String::as_str) {
        // The guardian of a local command is this program, executed again.
        Some("__shim") => std::process::exit(kelos_executors::local::shim_main()),
        Some("commands") => commands::run(),
        Some("noop") => noop::run(number(1, 200_000)),
        Some("nodes") => nodes::run(number(1, 100_000), args.get(2..).unwrap_or_default()),
        Some("latency") => latency::run(number(1, 100_000)),
        Some("idle") => idle::run(number(1, 60)),
        Some("memory") => idle::memory(),
        Some("large") => large::run(number(1, 10_000_000), number(2, 1_000_000)),
        Some("start") => start::run(number(1, 1_000_000)),
        Some("start-one") => start::one(&args[1]),
        Some("pages") => pages::run(number(1, 1_000_000)),
        Some("schedules") => schedules::run(number(1, 10_000)),
        Some("dry-run") => dry::run(),
        Some("facts") => facts::throughput(number(1, 1_000_000)),
        Some("facts-latency") => facts::latency(number(1, 10_000)),
        Some("flow-steps") => flows::steps(number(1, 100_000)),
        Some("flow-between") => flows::between(number(1, 10_000)),
        Some("flow-wide") => flows::wide(number(1, 1_000)),
        Some("flow-waiting") => flows::waiting(number(1, 100_000)),
        Some("series") => library::year(number(1, 100)),
        Some("decade") => library::decade(number(1, 1_000)),
        Some("backfills") => library::backfills(number(1, 120)),
        Some("sequence") => library::sequence(number(1, 40)),
        Some("within") => within::run(number(1, 1_000_000)),
        Some("facts-idle") => facts::idle(number(1, 60)),
        Some("flood") => flood::run(number(1, 600_000)),
        Some("behind") => behind::run(number(1, 5_000)),
        Some("verify") => verify::run(number(1, 10_000_000), number(2, 10)),
        Some("verify-one") => verify::one(args[1].as_ref()),
        Some("rehearse") => rehearse::run(number(1, 10)),
        _ => {
            eprintln!("expected one of: {NAMES}");
            std::process::exit(2)
        }
    }
}
