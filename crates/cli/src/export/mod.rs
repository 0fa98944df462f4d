//! `kelos export`: the state for another scheduler, and the log for whoever verifies it without Kelos.

mod celos;
mod log;

use crate::failure::Failure;

#[derive(clap::Args)]
pub(crate) struct ExportArgs {
    #[command(subcommand)]
    command: ExportCommand,
}

#[derive(clap::Subcommand)]
enum ExportCommand {
    /// Export the state for Celos, so that it can continue; only while no server runs
    Celos(celos::CelosArgs),
    /// Export the log as JSON lines of the stored bytes with their turn records, from which the digests can be recomputed
    Log(log::LogArgs),
}

pub(crate) fn run(args: &ExportArgs) -> Result<u8, Failure> {
    match &args.command {
        ExportCommand::Celos(args) => celos::run(args),
        ExportCommand::Log(args) => log::run(args),
    }
}
