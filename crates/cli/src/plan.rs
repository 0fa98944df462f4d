//! `kelos plan`: a range played through over a clock of its own.

mod assumptions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use comfy_table::{Cell, CellAlignment};
use jiff::{SignedDuration, Timestamp};
use kelos_model::time::{Zone, resolve};
use kelos_model::{Workflow, WorkflowId};
use kelos_rehearsal::dry_run::{DryRun, Forecast, Forecasts, SlotForecast, dry_run};
use kelos_sandbox::{Limits, check};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::options::{Form, Range, ReadRange, Scripts};
use crate::selection::{in_full, suggest};
use crate::text::{self, count, to_the_second};
use crate::{apps, folder, render, terminal, times};

#[derive(clap::Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    scripts: Scripts,
    #[command(flatten)]
    range: Range,
    /// Only print these workflows
    #[arg(long, value_name = "ID")]
    workflow: Vec<String>,
    /// Assume that paths with this prefix do not exist
    #[arg(long, value_name = "PATH-PREFIX")]
    without: Vec<String>,
    /// Assume that each run takes this long
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = text::duration)]
    run_time: SignedDuration,
    /// Print every state change of every slot, with its time
    #[arg(long)]
    slots: bool,
    /// Maximum number of concurrent runs of all workflows
    #[arg(long, value_name = "N", default_value_t = 256)]
    max_running: u32,
    #[command(flatten)]
    form: Form,
}

pub(crate) fn run(args: &PlanArgs) -> Result<u8, Failure> {
    let (workflows, chosen) = definitions(args)?;
    let range = range(args, &workflows, &chosen)?;
    let suppose = DryRun {
        run_time: args.run_time,
        without: args.without.clone(),
        max_running: args.max_running,
        ..DryRun::over(range.from, range.to)
    };
    let begin = Instant::now();
    let Forecasts { workflows: mut forecasts, assumed } = dry_run(&suppose, &workflows);
    let millis = begin.elapsed().as_millis();
    if !chosen.is_empty() {
        forecasts.retain(|id, _| chosen.iter().any(|one| one == id.as_str()));
    }
    if args.form.json {
        let mut told = as_json(args, &range, &forecasts, millis);
        told["assumed"] = assumptions::as_json(&assumed, &suppose);
        text::json(&told);
        return Ok(0);
    }
    range.understood.iter().for_each(text::note);
    print_table(&forecasts);
    if args.slots {
        print_slots(&forecasts);
    }
    assumptions::print(&assumed, &suppose);
    let slots = forecasts.values().map(|forecast| forecast.slots.len()).sum();
    text::line(format!(
        "{} of {} in {millis} ms; nothing was run",
        count(slots, "slot"),
        count(forecasts.len(), "workflow")
    ));
    Ok(0)
}

/// The range in the zone that is named, else in that of the workflows that are printed.
fn range(args: &PlanArgs, workflows: &[Arc<Workflow>], chosen: &[String]) -> Result<ReadRange, Failure> {
    let usual = match (args.range.zone(), args.range.local()) {
        (None, Some(time)) => {
            let schedules = workflows.iter().filter_map(|one| Some((one.id.clone(), one.keys.schedule()?)));
            let resolved = resolve(&schedules.collect());
            let is_printed = |one: &&Arc<Workflow>| chosen.is_empty() || chosen.iter().any(|id| id == one.id.as_str());
            let zones = workflows.iter().filter(is_printed).filter_map(|one| {
                let borrowed = || resolved.get(&one.id)?.as_ref().ok().map(|schedule| schedule.zone().clone());
                Some((one.id.as_str(), one.zone().cloned().or_else(borrowed)?))
            });
            times::in_common("plan", time, zones)?
        }
        _ => Zone::utc(),
    };
    let range = args.range.read("plan", &usual)?;
    if range.from >= range.to {
        let (from, to) = (to_the_second(range.from), to_the_second(range.to));
        return Err(Failure::usage(format!("plan from {from} to {to}: the range is empty")));
    }
    Ok(range)
}

/// The workflows of the folder, and the ids of those that were named.
fn definitions(args: &PlanArgs) -> Result<(Vec<Arc<Workflow>>, Vec<String>), Failure> {
    let dir = folder::existing("folder of scripts", &args.scripts.dir)?;
    let folders = folder::folders(&dir, args.scripts.defaults.as_deref());
    let loaded = check(folders, Limits::default(), apps::format(), None)
        .map_err(|error| Failure::bad(format!("start a thread: {error}")))?;
    for problem in &loaded.problems {
        text::note(terminal::shown_line(&problem.to_string()));
    }
    let known: Vec<String> = loaded.workflows.iter().map(|one| one.id.to_string()).collect();
    let id = |name: &String| {
        if known.contains(name) {
            return Ok(name.clone());
        }
        let unknown = Failure::usage(format!("plan \"{name}\": there is no such workflow"));
        let unknown = unknown.hint(format!("there are: {}", known.join(", ")));
        in_full("plan", name, &known)?.map(str::to_owned).ok_or_else(|| suggest(unknown, name, &known))
    };
    let chosen = args.workflow.iter().map(id).collect::<Result<Vec<_>, _>>()?;
    Ok((loaded.workflows, chosen))
}

fn print_table(forecasts: &BTreeMap<WorkflowId, Forecast>) {
    let mut table = render::table(&["WORKFLOW", "SLOTS", "FIRST", "LAST", "IN THE END", "AT ONCE"]);
    for (id, forecast) in forecasts {
        let (first, last) = ends(forecast);
        let states: Vec<String> =
            forecast.states().into_iter().map(|(state, slots)| format!("{slots} {state}")).collect();
        let states = forecast.problem.clone().unwrap_or_else(|| states.join(", "));
        let right = |number: usize| Cell::new(number).set_alignment(CellAlignment::Right);
        table.add_row([
            Cell::new(id),
            right(forecast.slots.len()),
            Cell::new(first.map_or("-".to_owned(), to_the_second)),
            Cell::new(last.map_or("-".to_owned(), to_the_second)),
            Cell::new(states),
            right(usize::try_from(forecast.most_at_once).unwrap_or(usize::MAX)),
        ]);
    }
    render::print(table);
}

fn ends(forecast: &Forecast) -> (Option<Timestamp>, Option<Timestamp>) {
    (forecast.slots.keys().next().copied(), forecast.slots.keys().next_back().copied())
}

fn print_slots(forecasts: &BTreeMap<WorkflowId, Forecast>) {
    for (id, forecast) in forecasts {
        let mut lines = format!("\n{id}\n");
        for (at, slot) in &forecast.slots {
            lines.push_str(&format!("  {}  {}\n", to_the_second(*at), moves(*at, slot)));
        }
        text::print(&lines);
    }
    text::line("");
}

/// The states a slot goes through, each with its moment where that is another one than before.
fn moves(at: Timestamp, slot: &SlotForecast) -> String {
    let mut shown = to_the_second(at);
    let mut words = Vec::new();
    for (at, state) in &slot.moves {
        let moment = to_the_second(*at);
        words.push(if moment == shown { state.to_string() } else { format!("{state} at {moment}") });
        shown = moment;
    }
    let arrow = if render::unicode() { " → " } else { " -> " };
    let waits = if slot.waits_for.is_empty() { String::new() } else { format!(": {}", slot.waits_for.join("; ")) };
    format!("{}{waits}", words.join(arrow))
}

fn as_json(args: &PlanArgs, range: &ReadRange, forecasts: &BTreeMap<WorkflowId, Forecast>, millis: u128) -> Value {
    let workflows: Vec<Value> = forecasts
        .iter()
        .map(|(id, forecast)| {
            let (first, last) = ends(forecast);
            let states: Map<String, Value> =
                forecast.states().into_iter().map(|(state, slots)| (state.to_string(), slots.into())).collect();
            let mut workflow = json!({
                "id": id,
                "slots": forecast.slots.len(),
                "first": first.map(text::wire),
                "last": last.map(text::wire),
                "states": states,
                "mostAtOnce": forecast.most_at_once,
                "problem": forecast.problem,
            });
            if args.slots {
                workflow["list"] = forecast.slots.iter().map(|(at, slot)| slot_json(*at, slot)).collect();
            }
            workflow
        })
        .collect();
    let millis = u64::try_from(millis).unwrap_or(u64::MAX);
    json!({ "from": text::wire(range.from), "to": text::wire(range.to), "millis": millis, "workflows": workflows })
}

fn slot_json(at: Timestamp, slot: &SlotForecast) -> Value {
    let moves: Vec<Value> =
        slot.moves.iter().map(|(at, state)| json!({ "at": text::wire(*at), "state": state })).collect();
    json!({ "time": text::wire(at), "state": slot.state, "moves": moves, "waitsFor": slot.waits_for })
}
