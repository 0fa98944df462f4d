//! `kelos rerun`, `kill`, `skip` and `mark`: asking for changes.

use kelos_model::SlotState;
use kelos_model::time::{Zone, parse_instant};
use kelos_wire::{DownstreamDto, MarkRequest, MarkedState, RerunRequest, SlotDto, WorkflowDetailDto};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::address::slot_path;
use crate::client::{Client, Reply};
use crate::connection::Connection;
use crate::failure::{BAD, Failure};
use crate::options::{ArgumentOptions, Because, Door};
use crate::selection::{self, SlotChoice, zone_of};
use crate::text::{self as words, count};
use crate::times::Moment;
use crate::{downstream, render, times};

#[derive(clap::Args)]
pub(crate) struct ChangeArgs {
    /// Workflow of the slots
    workflow: String,
    /// Slots: their times or job ids [default: the newest that the command applies to]
    #[arg(value_name = "TIME|JOB_ID", value_parser = selection::key, allow_negative_numbers = true, conflicts_with_all = ["from", "to"])]
    keys: Vec<String>,
    #[command(flatten)]
    span: Span,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

// The newest slot that has not ended is often one that shall still run, so that a skip names its slots.
#[derive(clap::Args)]
#[command(mut_arg("keys", |keys| keys.required_unless_present_all(["from", "to"]).help("Slots: their times or job ids")))]
pub(crate) struct SkipArgs {
    #[command(flatten)]
    change: ChangeArgs,
}

/// A range instead of single slots.
#[derive(clap::Args)]
struct Span {
    /// All existing slots from this time on that the command applies to
    #[arg(long, value_name = "TIME", value_parser = times::moment, requires = "to")]
    from: Option<Moment>,
    /// All existing slots before this time that the command applies to
    #[arg(long, value_name = "TIME", value_parser = times::moment, requires = "from")]
    to: Option<Moment>,
    /// Time zone of --from and --to, such as Europe/Berlin [default: that of the workflow's schedule]
    #[arg(long, value_name = "ZONE", value_parser = times::zone, requires = "from")]
    zone: Option<Zone>,
}

#[derive(clap::Args)]
pub(crate) struct RerunArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// Also rerun every slot downstream of them
    #[arg(long)]
    downstream: bool,
    /// Preview only: change nothing
    #[arg(long, requires = "downstream")]
    dry_run: bool,
    /// Kill dispatched and running slots first; without it they block the rerun
    #[arg(long, requires = "downstream")]
    kill_live: bool,
    #[command(flatten)]
    arguments: ArgumentOptions,
    /// All slots that failed or expired and were not repaired since; with --from and --to, those of the range
    #[arg(long, conflicts_with = "keys")]
    failed: bool,
}

/// The state that a slot can be marked with.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum MarkOutcome {
    /// The work of the slot is done
    Succeeded,
}

#[derive(clap::Args)]
pub(crate) struct MarkArgs {
    /// Workflow of the slots
    workflow: String,
    /// Slots: their times or job ids
    #[arg(value_name = "TIME|JOB_ID", value_parser = selection::key, allow_negative_numbers = true, required = true, num_args = 1..)]
    keys: Vec<String>,
    /// State to record
    #[arg(value_enum)]
    state: MarkOutcome,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

/// A change of a slot.
struct Change {
    verb: &'static str,
    /// The states of the slots that it can be done to.
    states: Vec<SlotState>,
    /// The same in words, as in `the newest slot that has ended`.
    which: &'static str,
}

/// The answers of the server, slot by slot.
struct Answers<T> {
    done: Vec<Reply<T>>,
    refused: Vec<(String, Failure)>,
}

pub(crate) fn rerun(args: &RerunArgs) -> Result<u8, Failure> {
    let (client, change) = (Connection::open(&args.change.door)?, Change::of_ended("rerun"));
    let doing = format!("rerun {}", args.change.workflow);
    let workflow = client.workflow(&doing, &args.change.workflow)?;
    let keys = if args.failed {
        let states = [SlotState::Failed, SlotState::Expired];
        in_range(&client, &workflow, &states, &doing, &args.change.span)?
    } else {
        chosen(&client, &workflow, (&args.change.keys, &args.change.span), &change, &doing)?
    };
    let slots = (workflow.summary.id.as_str(), keys.as_slice());
    let body = RerunRequest {
        reason: args.change.because.reason.clone(),
        arguments: args.arguments.read(&doing)?,
        downstream: args.downstream,
        dry_run: args.dry_run,
        kill_live: args.kill_live,
    };
    if !args.downstream {
        return Ok(ask::<SlotDto>(&client, &doing, slots, change.verb, &body)?.tell(&args.change.door, change.verb));
    }
    let answers = ask::<DownstreamDto>(&client, &doing, slots, change.verb, &body)?;
    if args.change.door.form.json {
        return Ok(answers.json());
    }
    answers.done.iter().for_each(|done| downstream::tell(done, args.kill_live));
    Ok(answers.close())
}

pub(crate) fn kill(args: &ChangeArgs) -> Result<u8, Failure> {
    end(args, &Change::of_live("kill"))
}

pub(crate) fn skip(args: &SkipArgs) -> Result<u8, Failure> {
    end(&args.change, &Change::of_live("skip"))
}

pub(crate) fn mark(args: &MarkArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let state = match args.state {
        MarkOutcome::Succeeded => MarkedState::Succeeded,
    };
    let body = MarkRequest { state, reason: args.because.reason.clone() };
    let doing = format!("mark {}", args.workflow);
    let workflow = client.workflow(&doing, &args.workflow)?;
    let keys = client.keys(&doing, &workflow, &args.keys)?;
    let answers = ask::<SlotDto>(&client, &doing, (&workflow.summary.id, &keys), "mark", &body)?;
    Ok(answers.tell(&args.door, "mark"))
}

/// Ends slots that have not ended.
fn end(args: &ChangeArgs, change: &Change) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let doing = format!("{} {}", change.verb, args.workflow);
    let workflow = client.workflow(&doing, &args.workflow)?;
    let keys = chosen(&client, &workflow, (&args.keys, &args.span), change, &doing)?;
    let answers = ask::<SlotDto>(&client, &doing, (&workflow.summary.id, &keys), change.verb, &args.because.body())?;
    Ok(answers.tell(&args.door, change.verb))
}

/// The slots that were named, or those of the range, or else the newest that it can be done to.
fn chosen(
    client: &Client,
    workflow: &WorkflowDetailDto,
    (keys, span): (&[String], &Span),
    change: &Change,
    doing: &str,
) -> Result<Vec<String>, Failure> {
    let id = &workflow.summary.id;
    if span.from.is_some() {
        return in_range(client, workflow, &change.states, doing, span);
    }
    if keys.is_empty() { Ok(vec![newest(client, id, change, doing)?]) } else { client.keys(doing, workflow, keys) }
}

/// The newest slot of a workflow that it can be done to.
fn newest(client: &Client, id: &str, change: &Change, doing: &str) -> Result<String, Failure> {
    let which = change.which;
    let found = client.newest(doing, id, &SlotChoice { states: &change.states, ..SlotChoice::default() })?;
    let slot = found.ok_or_else(|| Failure::bad(format!("{doing}: {id} has no slot that {which}")))?;
    words::note(format!("{} is the newest slot that {which}", slot.slot));
    Ok(slot.slot.key.to_string())
}

impl Change {
    /// A change of slots that have ended.
    fn of_ended(verb: &'static str) -> Change {
        let states = SlotState::ALL.into_iter().filter(|state| state.is_final()).collect();
        Change { verb, states, which: "has ended" }
    }

    /// A change of slots that have not ended.
    fn of_live(verb: &'static str) -> Change {
        let states = SlotState::ALL.into_iter().filter(|state| !state.is_final()).collect();
        Change { verb, states, which: "has not ended" }
    }
}

/// Asks for the same of each slot. What is refused for one does not keep it from the others.
fn ask<T: DeserializeOwned>(
    client: &Client,
    doing: &str,
    (workflow, keys): (&str, &[String]),
    verb: &str,
    body: &impl Serialize,
) -> Result<Answers<T>, Failure> {
    let mut answers = Answers { done: Vec::new(), refused: Vec::new() };
    for key in keys {
        match client.post(doing, &format!("{}/{verb}", slot_path(workflow, key)), body) {
            Ok(slot) => answers.done.push(slot),
            Err(failure) if failure.code == BAD => answers.refused.push((key.clone(), failure)),
            Err(failure) => return Err(failure),
        }
    }
    Ok(answers)
}

impl Answers<SlotDto> {
    fn tell(self, door: &Door, verb: &str) -> u8 {
        if door.form.json {
            return self.json();
        }
        for slot in &self.done {
            let state = slot.state.as_str();
            words::line(format!("{} is {}", slot.slot, render::paint(state, state)));
        }
        if self.done.is_empty() && self.refused.is_empty() {
            words::line(format!("no slot to {verb}"));
        } else if self.done.len() > 1 {
            words::line(count(self.done.len(), "slot"));
        }
        self.close()
    }
}

impl<T> Answers<T> {
    fn json(&self) -> u8 {
        let refused = self.refused.iter();
        let refused: Vec<Value> = refused.map(|(key, failure)| refusal(key, failure)).collect();
        words::json(&json!({ "items": self.done, "refused": refused }));
        self.code()
    }

    /// Prints what was refused.
    fn close(self) -> u8 {
        self.refused.iter().for_each(|(_, failure)| failure.print());
        self.code()
    }

    fn code(&self) -> u8 {
        if self.refused.is_empty() { 0 } else { BAD }
    }
}

/// The refusal for a slot by time, or for a job.
fn refusal(key: &str, failure: &Failure) -> Value {
    match parse_instant(key) {
        Ok(time) => json!({ "time": words::wire(time), "error": failure.message }),
        Err(_) => json!({ "job": key, "error": failure.message }),
    }
}

/// The existing slots of a range in one of these states, oldest first; all of them where the range has no ends.
fn in_range(
    client: &Client,
    workflow: &WorkflowDetailDto,
    states: &[SlotState],
    doing: &str,
    span: &Span,
) -> Result<Vec<String>, Failure> {
    let zone = span.zone.clone().unwrap_or_else(|| zone_of(workflow));
    let ([from, before], understood) = times::range(doing, &zone, [span.from.as_ref(), span.to.as_ref()])?;
    understood.into_iter().for_each(words::note);
    let mut query = SlotChoice { states, before }.query(&workflow.summary.id);
    query.add_some("from", from.map(words::wire));
    let (rows, _) = client.list::<SlotDto>(doing, "/slots", &query, usize::MAX)?;
    Ok(rows.iter().rev().map(|row| row.slot.key.to_string()).collect())
}
