//! `kelos verify`: what is stored, held against its check values, and taken as it is where people say so.

use jiff::Timestamp;
use kelos::store::SqliteStore;
use serde_json::json;

use crate::data::{self, Place};
use crate::failure::{DAMAGED, Failure};
use crate::options::Form;
use crate::text;

#[derive(clap::Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    place: Place,
    /// Go on with what is there: rows as they are now, and without what is missing; while no server runs
    #[arg(long)]
    accept: bool,
    #[command(flatten)]
    form: Form,
}

/// Damage that is named.
const NAMED: usize = 100;

pub(crate) fn run(args: &VerifyArgs) -> Result<u8, Failure> {
    let data = data::find(&args.place)?;
    let database = data.database();
    if !database.exists() {
        let failure = Failure::usage(format!("verify {}: there is no such database", database.display()));
        return Err(failure.hint("name the folder of `kelos up` with --dir, or that of `kelos serve` with --db"));
    }
    if args.accept && SqliteStore::is_led(&database, Timestamp::now()) {
        return Err(data.in_use("accept what is there"));
    }
    let mut store = SqliteStore::open(&database).map_err(|error| Failure::of_store(&error))?;
    if args.accept {
        let accepted = store.accept().map_err(|error| Failure::of_store(&error))?;
        accepted.ok_or_else(|| data.in_use("accept what is there"))?;
    }
    let damage = store.damage(NAMED).map_err(|error| Failure::of_store(&error))?;
    if args.form.json {
        text::json(&json!({ "accepted": args.accept, "damage": damage }));
    } else {
        print(args, &damage, &database.display().to_string());
    }
    Ok(if damage.is_empty() { 0 } else { DAMAGED })
}

fn print(args: &VerifyArgs, damage: &[String], database: &str) {
    for what in damage {
        text::line(what);
    }
    text::line(match (damage.len(), args.accept) {
        (0, false) => format!("{database} agrees with its check values, and nothing is missing that was committed"),
        (0, true) => format!("{database} is taken as it is; a server goes on with it"),
        (_, false) => {
            format!(
                "{database} is damaged; put a backup in its place, or go on with what is there: kelos verify --accept"
            )
        }
        (_, true) => format!("{database} can't be taken as it is: put a backup in its place"),
    });
}
