//! The command `kelos`: arguments in, an engine or a client at work, an exit code out.
//!
//! What is *absent*: decisions about slots. Commands that change anything ask a server over HTTP, as
//! anybody else would; only `up` and `serve` have an engine inside.

mod access;
mod accounts;
mod address;
mod against;
mod agent;
mod alerts;
mod apps;
mod args;
mod backfill;
mod backfills;
mod calendar;
mod capacity;
mod change;
mod check;
mod client;
mod completions;
mod connection;
mod credential;
mod cron;
mod data;
mod days;
mod deploy;
mod doctor;
mod downstream;
mod examples;
mod export;
mod failure;
mod failures;
mod fleet;
mod flow;
mod folder;
mod graph;
mod groups;
mod host;
mod import;
mod init;
mod key;
mod list;
mod location;
mod logging;
mod login;
mod logs;
mod machine;
mod man;
mod new;
mod no_job;
mod node;
mod nodes;
mod options;
mod overview;
mod own_metrics;
mod pause;
mod plan;
mod progress;
mod queue;
mod relatives;
mod remote_worker;
mod render;
mod run_job;
mod schedule;
mod schedules;
mod schema;
mod selection;
mod serve;
mod shadow;
mod signals;
mod source;
mod sql;
mod start;
mod stolos;
mod storage;
mod store_worker;
mod stream;
mod stuck;
mod submit;
mod tell;
mod templates;
mod terminal;
mod test;
mod text;
mod times;
mod transport;
mod trust;
mod types;
mod up;
mod verify;
mod watch;
mod why;
mod worker;
mod workers;

use std::ffi::OsString;
use std::process::ExitCode;

use args::Cli;

fn main() -> ExitCode {
    // The guardians of runs are forks of this program, started again. It has to stay small: nothing before it.
    if std::env::args_os().nth(1).is_some_and(|word| word == "__shim") {
        std::process::exit(kelos_executors::local::shim_main());
    }
    let prepared = kelos_executors::local::keep_descriptors()
        .map_err(|error| format!("keep the files that it inherited from commands: {error}"))
        .and_then(|()| {
            let survived = kelos_executors::local::survive_file_limit();
            survived.map_err(|error| format!("prepare for a limit on the size of files: {error}"))
        });
    if let Err(why) = prepared {
        let failure = failure::Failure::bad(why);
        failure.print();
        return ExitCode::from(failure.code);
    }
    let words: Vec<OsString> = deploy::double_dashes(serve::double_dashes(std::env::args_os().collect()));
    let cli = match stolos::words(words).map(times::words).and_then(Cli::read) {
        Ok(cli) => cli,
        Err(error) => {
            return ExitCode::from(print_usage(&error));
        }
    };
    let done = text::check_output().and_then(|()| cli.command.run());
    match done.and_then(|code| if code == 0 { text::lost().map_or(Ok(code), Err) } else { Ok(code) }) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.code)
        }
    }
}

/// Prints what the parser of the command line says: its help, or a mistake. Gives the exit code.
fn print_usage(said: &clap::Error) -> u8 {
    match said.print() {
        _ if said.use_stderr() => failure::USAGE,
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let failure = text::unwritten(&error);
            failure.print();
            failure.code
        }
        _ => 0,
    }
}
