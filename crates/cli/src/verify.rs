//! `kelos verify`: what is stored, held against itself, its check values and its checkpoints, and taken as it is where people say so.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_checkpoints::Comparison;
use kelos_explain::verify::{Disagreement, Verification, verify};
use kelos_model::history::RemovedHistory;
use kelos_store::{Queries, StoredState, UnreadableRow};
use kelos_store_sqlite::SqliteStore;
use kelos_wire::Instant;
use serde_json::{Value, json};

use crate::against;
use crate::data::{self, Place};
use crate::failure::{DAMAGED, Failure};
use crate::options::Form;
use crate::text;

#[derive(clap::Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    place: Place,
    /// Compare the log with the checkpoints there: a folder or its URI, a file, the log of a server
    #[arg(long, value_name = "PLACE", value_hint = clap::ValueHint::AnyPath, conflicts_with = "accept")]
    against: Option<String>,
    /// File of the public key with which the checkpoints must be signed; may be repeated [default: that of the key in the
    /// folder of state]
    #[arg(long, value_name = "FILE", requires = "against", value_hint = clap::ValueHint::FilePath)]
    public_key: Vec<PathBuf>,
    /// Accept the database as it is, with its present rows and without those that are missing; only while no server
    /// runs
    #[arg(long)]
    accept: bool,
    #[command(flatten)]
    form: Form,
}

/// Damage and disagreements that are named.
const NAMED: usize = 100;

/// All that was found.
struct Findings {
    damage: Vec<String>,
    unreadable: Vec<UnreadableRow>,
    verified: Verification,
    trimmed: RemovedHistory,
    against: Option<Comparison>,
}

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
    // Before the log is read, which takes longer.
    let checkpoints = args.against.as_deref().map(|place| against::read(place, &args.public_key, &data)).transpose()?;
    let opened = if args.accept { SqliteStore::open(&database) } else { SqliteStore::look(&database) };
    let mut store = opened.map_err(|error| Failure::of_store(&error))?;
    if args.accept {
        let accepted = store.accept().map_err(|error| Failure::of_store(&error))?;
        accepted.ok_or_else(|| data.in_use("accept the database"))?;
    }
    let reader: Arc<dyn Queries> = store.reader();
    let (damage, verified) = std::thread::scope(|scope| {
        let verified = scope.spawn(|| verify(&*reader, NAMED));
        let damage = store.damage(NAMED);
        (damage, verified.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let damage = damage.map_err(|error| Failure::of_store(&error))?;
    let verified = verified.map_err(|error| Failure::of_store(&error))?;
    let compared = checkpoints.map(|evidence| evidence.compare(&*reader, verified.broken_at)).transpose();
    let trimmed = reader.removed_history().map_err(|error| Failure::of_store(&error))?;
    let unreadable = reader.unreadable(NAMED).map_err(|error| Failure::of_store(&error))?;
    let found = Findings {
        damage,
        unreadable,
        verified,
        trimmed,
        against: compared.map_err(|error| Failure::of_store(&error))?,
    };
    if args.form.json {
        text::json(&found.written(args));
    } else {
        found.print(args, &database.display().to_string());
    }
    Ok(if found.is_sound(args) { 0 } else { DAMAGED })
}

impl Findings {
    fn is_sound(&self, args: &VerifyArgs) -> bool {
        let agrees = self.verified.disagreements.is_empty() && self.unreadable.is_empty();
        let is_whole = self.damage.is_empty() && (args.accept || agrees);
        is_whole && self.against.as_ref().is_none_or(|compared| compared.contradictions.is_empty())
    }

    fn written(&self, args: &VerifyArgs) -> Value {
        let place = |one: &Disagreement| {
            let slot = one.slot.as_ref().map(ToString::to_string);
            json!({ "turn": one.turn, "event": one.event, "slot": slot, "what": one.what })
        };
        let Verification { turns, events, slots, broken_at: _, disagreements } = &self.verified;
        let mut written = json!({
            "accepted": args.accept,
            "turns": turns,
            "events": events,
            "slots": slots,
            "damage": self.damage,
            "unreadable": self.unreadable.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "disagreements": disagreements.iter().map(place).collect::<Vec<_>>(),
        });
        if let Some(until) = self.trimmed.at {
            let RemovedHistory { turn, events, runs, .. } = self.trimmed;
            written["removed"] = json!({ "turn": turn, "until": Instant(until), "events": events, "runs": runs });
        }
        if let Some(compared) = &self.against {
            written["checkpoints"] = against::written(compared);
        }
        written
    }

    fn print(&self, args: &VerifyArgs, database: &str) {
        self.damage.iter().for_each(text::line);
        self.unreadable.iter().map(ToString::to_string).for_each(text::line);
        self.verified.disagreements.iter().map(ToString::to_string).for_each(text::line);
        text::line(gone_through(&self.verified));
        if let Some(until) = self.trimmed.at {
            let RemovedHistory { turn, events, runs, .. } = self.trimmed;
            let (events, runs, until) = (counted(events, "event"), counted(runs, "run"), Instant(until).short());
            text::line(format!("{events} and {runs} up to turn {turn}, {until}, were removed as history"));
        }
        if let Some(compared) = &self.against {
            against::print(compared);
        }
        let is_whole = self.damage.is_empty() && self.verified.disagreements.is_empty();
        text::line(match (self.is_sound(args), args.accept) {
            (true, false) => format!("{database} matches its checksums, and no commit is missing"),
            (true, true) => format!("{database} is accepted as it is; a server can use it again"),
            (false, false) if is_whole && !self.unreadable.is_empty() => {
                format!(
                    "{database} matches its checksums, and the rows above can't be read: their workflows are frozen, and \
                     resumed they go on without what can't be read; a new definition replaces one that can't be"
                )
            }
            (false, false) if is_whole => {
                format!("{database} agrees with itself, and not with the checkpoints: restore a backup that does")
            }
            (false, false) => {
                format!("{database} is damaged; restore a backup, or accept it as it is: kelos verify --accept")
            }
            (false, true) => format!("{database} can't be accepted as it is: restore a backup"),
        });
    }
}

fn counted(count: u64, one: &str) -> String {
    format!("{} {one}{}", text::grouped(count), if count == 1 { "" } else { "s" })
}

/// The counts of what was checked, and the findings.
fn gone_through(verified: &Verification) -> String {
    let (turns, events) = (counted(verified.turns, "turn"), counted(verified.events, "event"));
    let slots = counted(verified.slots, "slot");
    match verified.disagreements.len() {
        0 => format!("{turns}, {events}, {slots}: all agree"),
        NAMED.. => format!("{turns}, {events}; {slots} agree with the log, and {NAMED} things or more do not agree"),
        1 => format!("{turns}, {events}; {slots} agree with the log, and one thing does not agree"),
        count => format!("{turns}, {events}; {slots} agree with the log, and {count} things do not agree"),
    }
}
