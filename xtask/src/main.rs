//! Tasks of the workspace: `cargo xtask sim`, `crash`, `fuzz`, `tidy`, `package`, `release` and `dist`.

#![forbid(unsafe_code)]

mod crash;
mod dist;
mod fuzz;
mod outside;
mod packages;
mod release;
mod sim;
mod tidy;
mod workspace;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the Kelos workspace")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Kill a busy server again and again; nothing may be lost or repeated.
    Crash(crash::CrashArguments),
    /// Make what people install: tarballs, Python wheels, a container file, checksums.
    Dist(dist::DistArguments),
    /// Give random input to every parser, and keep what breaks one.
    Fuzz(fuzz::FuzzArguments),
    /// Package the crates that outsiders depend on, as for publication.
    Package(packages::PackageArguments),
    /// Set the version and close the changelog's section.
    Release(release::ReleaseArguments),
    /// Simulate seeds: workloads and faults through the real loop, judged, and compared with the full scan.
    Sim(sim::SimArguments),
    /// Check the tree against the rules of the project: rooms, licences, links, sizes.
    Tidy(tidy::TidyArguments),
}

fn main() -> std::process::ExitCode {
    match Arguments::parse().chore {
        Chore::Crash(arguments) => crash::run(&arguments),
        Chore::Dist(arguments) => dist::run(&arguments),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Package(arguments) => packages::run(&arguments),
        Chore::Release(arguments) => release::run(&arguments),
        Chore::Sim(arguments) => sim::run(&arguments),
        Chore::Tidy(arguments) => tidy::run(&arguments),
    }
}
