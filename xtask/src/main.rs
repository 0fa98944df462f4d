//! Chores of the workspace: `cargo xtask sim`, `cargo xtask crash`, `cargo xtask tidy`.

#![forbid(unsafe_code)]

mod crash;
mod sim;
mod tidy;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the Kelos workspace")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Kill a busy server again and again; nothing may be lost or doubled.
    Crash(crash::Arguments),
    /// Simulate seeds: workloads and faults through the real loop, judged, and compared with the full scan.
    Sim(sim::Arguments),
    /// Hold the tree to the rules of the house: floors, licences, links, sizes.
    Tidy(tidy::Arguments),
}

fn main() -> std::process::ExitCode {
    match Arguments::parse().chore {
        Chore::Crash(arguments) => crash::run(&arguments),
        Chore::Sim(arguments) => sim::run(&arguments),
        Chore::Tidy(arguments) => tidy::run(&arguments),
    }
}
