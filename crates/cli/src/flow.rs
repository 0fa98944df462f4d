//! Runs of flows: `kelos steps`, `kelos signal`, going on with one, and waiting for the end of a run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use comfy_table::Cell;
use kelos_wire::{FlowRunDto, FlowStepDto, ItemDto, ResumeRequest, SignalRequest, SlotDto};
use serde_json::Value;

use crate::address::{Query, slot_path};
use crate::client::{Client, Reply};
use crate::connection::Connection;
use crate::failure::{BAD, Failure, UNREACHABLE};
use crate::no_job::is_final;
use crate::options::{Because, Door};
use crate::selection::{self, SlotChoice};
use crate::text::{self as words, count, operand};
use crate::{render, times};

/// The least time between two looks at a run.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// A request may take this many times as long as it took before it is made again.
const SHARE: u32 = 10;
/// The longest time that a server may be away while its run is waited for.
const PATIENCE: Duration = Duration::from_secs(600);
/// Steps of a page.
const PAGE: usize = 1_000;

#[derive(clap::Args)]
pub(crate) struct StepsArgs {
    /// Workflow of the run
    workflow: String,
    /// Run of the flow: its name, its time or its job id [default: the newest]
    #[arg(value_name = "RUN", value_parser = selection::key, allow_negative_numbers = true)]
    run: Option<String>,
    /// List the items of this step, which is done for each item of a list
    #[arg(long, value_name = "STEP")]
    items: Option<String>,
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Args)]
pub(crate) struct SignalArgs {
    /// Workflow of the run
    workflow: String,
    /// Run of the flow: its name, its time or its job id
    #[arg(value_name = "RUN", value_parser = selection::key, allow_negative_numbers = true)]
    run: String,
    /// Name of the signal
    signal: String,
    /// Payload of the signal: the output of the step that waits for it
    #[arg(long, value_name = "JSON", value_parser = json, default_value = "null", hide_default_value = true)]
    payload: Value,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

/// Reads JSON of the command line.
fn json(text: &str) -> Result<Value, String> {
    kelos_model::json::value(text.as_bytes())
        .map_err(|error| format!("{error}; expected JSON such as true or '{{\"by\": \"Ann\"}}'"))
}

pub(crate) fn steps(args: &StepsArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let doing = format!("list the steps of {}", args.workflow);
    let workflow = client.workflow(&doing, &args.workflow)?;
    let id = &workflow.summary.id;
    let run = match &args.run {
        Some(text) => client.key(&doing, &workflow, text)?,
        None => {
            let newest = client.newest(&doing, id, &SlotChoice::default())?;
            newest.map(|row| row.slot.key.to_string()).ok_or_else(|| {
                let start = format!("`kelos start {}` starts it", operand(id));
                Failure::bad(format!("{doing}: it has no run yet")).hint(start)
            })?
        }
    };
    if let Some(step) = &args.items {
        return items(&client, &doing, (id, &format!("{run}.{step}")), args);
    }
    let mut query = Query::new();
    query.add("limit", args.limit.clamp(1, PAGE));
    let found: Reply<FlowRunDto> = client.get(&doing, &format!("{}/flow", slot_path(id, &run)), &query)?;
    if args.door.form.json {
        words::json(&found);
        return Ok(0);
    }
    show(&found);
    Ok(0)
}

/// `succeeded (recovered)`
fn state_of(run: &FlowRunDto) -> String {
    let state = run.slot.state.as_str();
    if run.recovered.is_empty() { state.to_owned() } else { format!("{state} (recovered)") }
}

/// Prints a run and its steps.
fn show(run: &FlowRunDto) {
    let state = state_of(run);
    let state = render::paint(&state, run.slot.state.as_str());
    words::line(format!("{}  {state}  definition {}", run.slot.slot, run.definition_version));
    run.repeats.iter().for_each(|step| words::line(format!("  does {step} again, and nothing else")));
    if let Some(last) = &run.run {
        let ended = last.ended_at.map(|end| format!(", ended {}", end.short())).unwrap_or_default();
        words::line(format!("  run {} began {}{ended}", last.number, last.dispatched_at.short()));
        let outcome = last.outcome.as_ref().map(|outcome| outcome.text.as_str());
        let told = outcome.filter(|text| *text != run.slot.state.as_str());
        told.map(|text| format!("  {text}")).iter().for_each(words::line);
        let arguments = (!last.arguments.is_empty()).then(|| serde_json::json!(last.arguments));
        arguments.map(|all| format!("  arguments {all}")).iter().for_each(words::line);
        last.outputs
            .as_ref()
            .map(|all| format!("  outputs {}", Value::Object(all.clone())))
            .iter()
            .for_each(words::line);
    }
    for (signal, payload) in &run.signals {
        words::line(format!("  signal {signal} {payload}"));
    }
    words::line("");
    let mut table = render::table(&["STEP", "STATE", "TOOK", "RUNS", "NOTE"]);
    for step in &run.steps {
        let took = step.opened.zip(step.ended).map(|(from, to)| kelos_model::time::text::took(from.0, to.0));
        table.add_row([
            Cell::new(&step.step),
            render::state(step.state.as_str()),
            Cell::new(took.unwrap_or_default()),
            Cell::new(step.attempts),
            Cell::new(&step.text),
        ]);
    }
    render::print(table);
    if run.next.is_some() {
        let all: u64 = run.counts.values().sum();
        words::line(format!("the first {} of {all}; --limit N prints more", count(run.steps.len(), "step")));
    }
    path(run);
}

/// Prints the steps that determined when the run ended.
fn path(run: &FlowRunDto) {
    let Some(path) = &run.path else { return };
    let own = run.slot.slot.key.to_string();
    let of_steps = path.links.iter().filter(|link| link.slot.key.to_string() != own);
    let told: Vec<String> = of_steps
        .map(|link| {
            let key = link.slot.key.to_string();
            let took = kelos_model::time::text::took(link.from.0, link.until.0);
            format!("{} {took}", key.rsplit('.').next().unwrap_or(&key))
        })
        .collect();
    if !told.is_empty() {
        let total = kelos_model::time::text::took(path.from.0, path.until.0);
        words::line(format!("\ncritical path  {} (of {total})", told.join(", ")));
    }
}

fn items(client: &Client, doing: &str, (id, step): (&str, &str), args: &StepsArgs) -> Result<u8, Failure> {
    let path = format!("{}/items", slot_path(id, step));
    let (rows, more) = client.list::<Reply<ItemDto>>(doing, &path, &Query::new(), args.limit.max(1))?;
    if args.door.form.json {
        words::json_rows(&rows, more);
        return Ok(0);
    }
    let mut table = render::table(&["ITEM", "STATE", "SINCE", "RUNS", "NOTE"]);
    for row in &rows {
        let outcome = row.run.as_ref().and_then(|run| run.outcome.as_ref()).map(|outcome| outcome.text.clone());
        table.add_row([
            Cell::new(row.item),
            render::state(row.slot.state.as_str()),
            Cell::new(times::since(row.slot.since)),
            Cell::new(row.slot.last_run),
            Cell::new(outcome.filter(|text| *text != row.slot.state.as_str()).unwrap_or_default()),
        ]);
    }
    render::print(table);
    if more {
        words::line(format!("the first {}; --limit N prints more", count(rows.len(), "item")));
    }
    Ok(0)
}

pub(crate) fn signal(args: &SignalArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let doing = format!("signal {}", args.workflow);
    let workflow = client.workflow(&doing, &args.workflow)?;
    let run = client.key(&doing, &workflow, &args.run)?;
    let (signal, payload, reason) = (args.signal.clone(), args.payload.clone(), args.because.reason.clone());
    let body = SignalRequest { signal, payload, reason };
    let path = format!("{}/signal", slot_path(&workflow.summary.id, &run));
    let slot: Reply<SlotDto> = client.post(&doing, &path, &body)?;
    if args.door.form.json {
        words::json(&slot);
    } else {
        words::line(format!("{} has the signal {}", slot.slot, args.signal));
    }
    Ok(0)
}

/// Resumes a run of a flow.
pub(crate) fn resume(
    workflow: &str,
    (run, from): (&str, Option<&String>),
    because: &Because,
    door: &Door,
) -> Result<u8, Failure> {
    let client = Connection::open(door)?;
    let doing = format!("resume a run of {workflow}");
    let workflow = client.workflow(&doing, workflow)?;
    let run = client.key(&doing, &workflow, run)?;
    let body = ResumeRequest { from: from.cloned(), reason: because.reason.clone() };
    let path = format!("{}/resume", slot_path(&workflow.summary.id, &run));
    let slot: Reply<SlotDto> = client.post(&doing, &path, &body)?;
    if door.form.json {
        words::json(&slot);
    } else {
        let state = slot.state.as_str();
        words::line(format!("{} is {}", slot.slot, render::paint(state, state)));
    }
    Ok(0)
}

/// Waits until a run has ended, and prints its steps as they end. The exit code is the outcome.
pub(crate) fn follow(connection: &mut Connection, door: &Door, id: &str, key: &str) -> Result<u8, Failure> {
    let doing = format!("follow {id}@{key}");
    let (path, mut said) = (slot_path(id, key), BTreeMap::new());
    loop {
        let asked = Instant::now();
        let slot: Reply<SlotDto> = patiently(connection, |one| one.get(&doing, &path, &Query::new()))?;
        let is_over = is_final(&slot.state) && !slot.run_alive;
        let flow = patiently(connection, |one| whole(one, &doing, &path))?;
        if !door.form.json {
            flow.iter().flat_map(|run| &run.steps).for_each(|step| tell(step, &mut said));
        }
        if is_over {
            match (&flow, door.form.json) {
                (Some(run), true) => words::json(run),
                (None, true) => words::json(&slot),
                (Some(run), false) => {
                    let outcome = run.run.as_ref().and_then(|run| run.outcome.as_ref());
                    let why = outcome.filter(|outcome| outcome.result != "succeeded");
                    let why = why.map(|outcome| format!(": {}", outcome.text)).unwrap_or_default();
                    words::line(format!(
                        "{} is {}{why}",
                        slot.slot,
                        render::paint(&state_of(run), slot.state.as_str())
                    ));
                }
                (None, false) => {
                    let state = slot.state.as_str();
                    words::line(format!("{} is {}", slot.slot, render::paint(state, state)));
                }
            }
            return Ok(if slot.state == "succeeded" { 0 } else { BAD });
        }
        std::thread::sleep(LOOK_EVERY.max(asked.elapsed() * SHARE));
    }
}

/// A run with all its steps; none where it is no run of a flow.
fn whole(client: &Client, doing: &str, path: &str) -> Result<Option<Reply<FlowRunDto>>, Failure> {
    let mut query = Query::new();
    query.add("limit", PAGE);
    match client.get(doing, &format!("{path}/flow"), &query) {
        Err(failure) if failure.refusal.as_deref() == Some("no-flow") => Ok(None),
        found => found.map(Some),
    }
}

/// Asks, also a server that is gone for a while.
fn patiently<T>(connection: &mut Connection, ask: impl Fn(&Client) -> Result<T, Failure>) -> Result<T, Failure> {
    let since = Instant::now();
    loop {
        match ask(connection) {
            Err(failure) if failure.code == UNREACHABLE && since.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_secs(1));
                connection.renew();
            }
            Err(failure) if failure.code == UNREACHABLE => {
                return Err(failure.hint("the run goes on with its server; `kelos steps` shows it then"));
            }
            answer => return answer,
        }
    }
}

/// Prints a step when it has ended, or waits for a signal, once.
fn tell(step: &FlowStepDto, said: &mut BTreeMap<String, String>) {
    let state = step.state.as_str();
    if !is_final(&step.state) && state != "awaits-signal" {
        return;
    }
    let before = said.insert(step.step.clone(), format!("{state} {}", step.attempts));
    if before.as_ref() != said.get(&step.step) {
        words::line(format!("{}  {}", step.step, render::paint(&step.text, state)));
    }
}
