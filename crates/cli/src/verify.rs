//! `kelos verify`: what is stored, held against itself and its check values, and taken as it is where people say so.

use jiff::Timestamp;
use kelos_explain::verify::{Disagreement, Verification, verify};
use kelos_store::Journal;
use kelos_store_sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::data::{self, Place};
use crate::failure::{DAMAGED, Failure};
use crate::options::Form;
use crate::text;

#[derive(clap::Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    place: Place,
    /// Accept the database as it is, with its present rows and without those that are missing; only while no server
    /// runs
    #[arg(long)]
    accept: bool,
    #[command(flatten)]
    form: Form,
}

/// Damage and disagreements that are named.
const NAMED: usize = 100;

pub(crate) fn run(args: &VerifyArgs) -> Result<u8, Failure> {
    let data = data::find(&args.place)?;
    let database = data.database();
    if !database.exists() {
        let failure = Failure::usage(format!("verify {}: there is no such database", database.display()));
        return Err(failure.hint("name the folder of `kelos up` with --dir, or that of `kelos serve` with --db"));
    }
    if args.accept && SqliteStore::is_led(&database, Timestamp::now()) {
        return Err(data.in_use("accept the database"));
    }
    let opened = if args.accept { SqliteStore::open(&database) } else { SqliteStore::look(&database) };
    let mut store = opened.map_err(|error| Failure::of_store(&error))?;
    if args.accept {
        let accepted = store.accept().map_err(|error| Failure::of_store(&error))?;
        accepted.ok_or_else(|| data.in_use("accept the database"))?;
    }
    let damage = store.damage(NAMED).map_err(|error| Failure::of_store(&error))?;
    let verified = verify(&*store.reader(), NAMED).map_err(|error| Failure::of_store(&error))?;
    let sound = damage.is_empty() && (args.accept || verified.disagreements.is_empty());
    if args.form.json {
        text::json(&written(args, &damage, &verified));
    } else {
        print(args, &damage, &verified, sound, &database.display().to_string());
    }
    Ok(if sound { 0 } else { DAMAGED })
}

fn written(args: &VerifyArgs, damage: &[String], verified: &Verification) -> Value {
    let place = |one: &Disagreement| {
        let slot = one.slot.as_ref().map(ToString::to_string);
        json!({ "turn": one.turn, "event": one.event, "slot": slot, "what": one.what })
    };
    let Verification { turns, events, slots, disagreements } = verified;
    json!({
        "accepted": args.accept,
        "turns": turns,
        "events": events,
        "slots": slots,
        "damage": damage,
        "disagreements": disagreements.iter().map(place).collect::<Vec<_>>(),
    })
}

fn print(args: &VerifyArgs, damage: &[String], verified: &Verification, sound: bool, database: &str) {
    damage.iter().for_each(text::line);
    verified.disagreements.iter().map(ToString::to_string).for_each(text::line);
    text::line(gone_through(verified));
    text::line(match (sound, args.accept) {
        (true, false) => format!("{database} matches its checksums, and no commit is missing"),
        (true, true) => format!("{database} is accepted as it is; a server can use it again"),
        (false, false) => {
            format!("{database} is damaged; restore a backup, or accept it as it is: kelos verify --accept")
        }
        (false, true) => format!("{database} can't be accepted as it is: restore a backup"),
    });
}

/// The counts of what was checked, and the findings.
fn gone_through(verified: &Verification) -> String {
    let counted =
        |count: u64, one: &str| format!("{} {one}{}", text::grouped(count), if count == 1 { "" } else { "s" });
    let (turns, events) = (counted(verified.turns, "turn"), counted(verified.events, "event"));
    let slots = counted(verified.slots, "slot");
    match verified.disagreements.len() {
        0 => format!("{turns}, {events}, {slots}: all agree"),
        NAMED.. => format!("{turns}, {events}; {slots} agree with the log, and {NAMED} things or more do not agree"),
        1 => format!("{turns}, {events}; {slots} agree with the log, and one thing does not agree"),
        count => format!("{turns}, {events}; {slots} agree with the log, and {count} things do not agree"),
    }
}
