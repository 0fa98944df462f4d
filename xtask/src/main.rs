//! Chores of the workspace: `cargo xtask sim`, `cargo xtask tidy`.

mod sim;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the Kelos workspace")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Simulate seeds: workloads and faults through the real loop, judged, and compared with the full scan.
    Sim(sim::Arguments),
}

fn main() -> std::process::ExitCode {
    match Arguments::parse().chore {
        Chore::Sim(arguments) => sim::run(&arguments),
    }
}
