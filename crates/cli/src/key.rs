//! `kelos key show`: the public key by which checkpoints are verified.

use std::path::PathBuf;

use kelos_checkpoints::PublicKey;
use serde_json::json;

use crate::data::{self, Place};
use crate::failure::Failure;
use crate::options::Form;
use crate::text;

#[derive(clap::Args)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(clap::Subcommand)]
enum KeyCommand {
    /// Print the public key by which the checkpoints of a server are verified
    Show(ShowArgs),
}

#[derive(clap::Args)]
struct ShowArgs {
    #[command(flatten)]
    place: Place,
    /// File of the key, if the settings of the server name one
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
}

pub(crate) fn run(args: &KeyArgs) -> Result<u8, Failure> {
    let KeyCommand::Show(args) = &args.command;
    let file = match &args.file {
        Some(file) => file.clone(),
        None => data::find(&args.place)?.checkpoint_key(),
    };
    let key = PublicKey::open(&file).map_err(Failure::usage);
    let key =
        key.map_err(|failure| failure.hint("a server makes it with its first checkpoint; --file names another one"))?;
    if args.form.json {
        text::json(&json!({ "algorithm": "ed25519", "key": key.to_string(), "pem": key.pem() }));
    } else {
        text::print(&key.pem());
    }
    Ok(0)
}
