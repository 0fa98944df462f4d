//! Random input for every parser: `cargo xtask fuzz [--target NAME]… [--seconds S] [--seed N]`.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use kelos_fuzz::{Finding, fuzz, targets};

#[derive(Parser)]
#[command(name = "cargo xtask fuzz", about = "Give random input to every parser")]
struct Arguments {
    /// Only these targets.
    #[arg(long, value_name = "NAME")]
    target: Vec<String>,
    /// Seconds for all targets together.
    #[arg(long, value_name = "S", default_value_t = 60)]
    seconds: u64,
    /// The seed: with the same one, each target gets the same input in the same order.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// List the targets.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let all = targets();
    if arguments.list {
        all.iter().for_each(|target| println!("{}", target.name));
        return ExitCode::SUCCESS;
    }
    if let Some(unknown) = arguments.target.iter().find(|name| !all.iter().any(|target| target.name == name.as_str())) {
        eprintln!("error: failed to find the target {unknown}; --list prints all");
        return ExitCode::from(2);
    }
    let is_chosen = |name: &str| arguments.target.is_empty() || arguments.target.iter().any(|one| one == name);
    let chosen: Vec<_> = all.into_iter().filter(|target| is_chosen(target.name)).collect();
    let each = Duration::from_secs(arguments.seconds) / u32::try_from(chosen.len().max(1)).unwrap_or(1);
    let (mut inputs, mut findings) = (0, Vec::new());
    for target in &chosen {
        let fuzzed = fuzz(target, arguments.seed, each);
        println!("{:<16} {:>9} inputs, {} findings", target.name, fuzzed.inputs, fuzzed.findings.len());
        inputs += fuzzed.inputs;
        findings.extend(fuzzed.findings);
    }
    findings.iter().for_each(print);
    println!("{inputs} inputs from seed {}, {} findings", arguments.seed, findings.len());
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(finding: &Finding) {
    println!("{}: {}", finding.target, finding.what);
    println!("  input: {:?}", String::from_utf8_lossy(&finding.input));
    println!("  kept in {}", finding.file.display());
}
