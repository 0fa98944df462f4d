//! `kelos import`: take over the state of another scheduler.

mod celos;
mod stolos;

use kelos_store::{Journal, MemoryStore};
use kelos_store_sqlite::SqliteStore;

use crate::data::Data;
use crate::failure::Failure;

#[derive(clap::Args)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    command: ImportCommand,
}

#[derive(clap::Subcommand)]
enum ImportCommand {
    /// Import slots, pauses and registers from the state database of Celos; only while no server runs
    Celos(celos::CelosArgs),
    /// Import jobs from the Redis or the ZooKeeper of Stolos; only while no server and no runner runs
    Stolos(stolos::StolosArgs),
}

pub(crate) fn run(args: &ImportArgs) -> Result<u8, Failure> {
    match &args.command {
        ImportCommand::Celos(args) => celos::run(args),
        ImportCommand::Stolos(args) => stolos::run(args),
    }
}

/// The data; in a dry run nothing is made of it that is not there.
fn store(data: &Data, dry_run: bool) -> Result<Box<dyn Journal>, Failure> {
    if dry_run && !data.database().exists() {
        return Ok(Box::new(MemoryStore::new()));
    }
    data.make()?;
    let store = SqliteStore::open(data.database()).map_err(|error| Failure::of_store(&error))?;
    Ok(Box::new(store))
}
