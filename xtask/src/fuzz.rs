//! `cargo xtask fuzz`: gives random input to every parser. It builds the program of its own that has them all; this one stays small.

use std::process::{Command, ExitCode};

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct FuzzArguments {
    /// The arguments of the program: --target NAME, --seconds S, --seed N, --list, --help.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(arguments: &FuzzArguments) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--locked", "--package", "kelos-fuzz", "--"]).args(&arguments.arguments);
    match command.status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("error: failed to start cargo: {error}");
            ExitCode::FAILURE
        }
    }
}
