//! The command `kelos`: arguments in, an engine or a client at work, an exit code out.
//!
//! What is *absent*: decisions about slots. Commands that change anything ask a server over HTTP, as
//! anybody else would; only `up` and `serve` have an engine inside.

mod args;
mod backfill;
mod change;
mod check;
mod client;
mod cron;
mod data;
mod deploy;
mod downstream;
mod export;
mod failure;
mod folder;
mod host;
mod import;
mod list;
mod logging;
mod logs;
mod plan;
mod render;
mod serve;
mod shadow;
mod stream;
mod test;
mod text;
mod up;
mod watch;
mod why;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Command, DeployMode};
use failure::Failure;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    // A run's guardian is this program again. It has to start fast, and to stay small: nothing before it.
    if words.nth(1).is_some_and(|word| word == "__shim") {
        let Some(folder) = words.next() else {
            return ExitCode::from(failure::USAGE);
        };
        std::process::exit(kelos::local::shim_main(std::path::Path::new(&folder)));
    }
    let words: Vec<OsString> = deploy::double_dashes(serve::double_dashes(std::env::args_os().collect()));
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { failure::USAGE } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match run(cli.command) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.code)
        }
    }
}

/// The exit code of a command that was carried out.
fn run(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Up(args) => up::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Cron(args) => cron::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Deploy(args) => deploy::run(&args, DeployMode::Deploy),
        Command::Undeploy(args) => deploy::run(&args, DeployMode::Undeploy),
        Command::Ci(args) => deploy::ci(&args),
        Command::Ls(args) => list::workflows(&args),
        Command::Slots(args) => list::slots(&args),
        Command::Why(args) => why::run(&args),
        Command::Logs(args) => logs::run(&args),
        Command::Rerun(args) => change::rerun(&args),
        Command::Kill(args) => change::kill(&args),
        Command::Skip(args) => change::skip(&args),
        Command::Mark(args) => change::mark(&args),
        Command::Pause(args) => change::pause(&args, true),
        Command::Resume(args) => change::pause(&args, false),
        Command::Backfill(args) => backfill::run(&args),
        Command::Events(args) => watch::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Shadow(args) => shadow::run(&args),
        Command::Types => {
            text::print(kelos::script::TYPES);
            Ok(0)
        }
        Command::Completions { shell } => {
            let mut out = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "kelos", &mut out);
            text::print(&String::from_utf8_lossy(&out));
            Ok(0)
        }
    }
}
