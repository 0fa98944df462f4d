//! `kelos ls` and `kelos slots`.

use comfy_table::Cell;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::client::{Client, Query, escape, items, key, number, text};
use crate::failure::Failure;
use crate::options::Door;
use crate::render;
use crate::text::{self as words, count, short};

#[derive(clap::Args)]
pub(crate) struct LsArgs {
    /// Only workflows with this tag
    #[arg(long)]
    tag: Option<String>,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Args)]
pub(crate) struct SlotsArgs {
    /// Only slots of this workflow
    workflow: Option<String>,
    /// Only slots in these states
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state_parser())]
    state: Vec<String>,
    /// Only slots from this time on
    #[arg(long, value_name = "TIME", value_parser = words::time)]
    from: Option<Timestamp>,
    /// Only slots before this time
    #[arg(long, value_name = "TIME", value_parser = words::time)]
    to: Option<Timestamp>,
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 50, conflicts_with = "all")]
    limit: usize,
    /// Show all
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    door: Door,
}

fn state_parser() -> clap::builder::PossibleValuesParser {
    kelos_model::SlotState::ALL.map(kelos_model::SlotState::as_str).into()
}

/// Workflows whose counts are asked for; a longer list goes without.
const DETAILED: usize = 200;

pub(crate) fn workflows(args: &LsArgs) -> Result<u8, Failure> {
    let client = Client::new(&args.door)?;
    let mut query = Query::new();
    query.add_some("tag", args.tag.as_ref());
    let list = client.get("list the workflows", "/workflows", &query)?;
    if args.door.form.json {
        words::json(&list);
        return Ok(0);
    }
    let rows = items(&list, "items");
    if rows.is_empty() {
        words::line("no workflows");
    } else {
        let mut table = render::table(&["WORKFLOW", "SCHEDULE", "NEXT", "SLOTS", "NOTE"]);
        for row in rows {
            let detail = if rows.len() <= DETAILED { detail(&client, row) } else { Value::Null };
            table.add_row(cells(row, &detail));
        }
        render::print(table);
    }
    say_problems(&client);
    Ok(0)
}

/// What the list leaves out; a workflow that went away meanwhile has nothing.
fn detail(client: &Client, row: &Value) -> Value {
    let path = format!("/workflows/{}", escape(text(row, "id")));
    client.get("read a workflow", &path, &Query::new()).unwrap_or_default()
}

fn cells(row: &Value, detail: &Value) -> [Cell; 5] {
    let is_disabled = row["enabled"] == false;
    let next = items(detail, "nextTimes").first().filter(|_| !is_disabled).and_then(Value::as_str).map(short);
    let mut notes = Vec::new();
    if let Some(code) = row["frozen"]["code"].as_str() {
        notes.push(format!("frozen: {code}"));
    }
    let off = [(is_disabled, "disabled"), (row["paused"] == true, "paused")];
    notes.extend(off.iter().filter(|(is_off, _)| *is_off).map(|(_, off)| (*off).to_owned()));
    match text(&row["source"], "provenance") {
        "api" => notes.push("defined through the API".to_owned()),
        "code" => notes.push("defined by the program".to_owned()),
        _ => {}
    }
    notes.extend(detail["scheduleProblem"].as_str().map(str::to_owned));
    let problems = items(detail, "problems").len();
    if problems > 0 {
        notes.push(count(problems, "problem"));
    }
    notes.extend(row["description"].as_str().map(str::to_owned));
    [
        Cell::new(text(row, "id")),
        Cell::new(schedule(&row["schedule"])),
        Cell::new(next.unwrap_or_else(|| "-".to_owned())),
        Cell::new(counts(&detail["counts"])),
        Cell::new(notes.join("; ")),
    ]
}

fn schedule(schedule: &Value) -> String {
    if let Some(on) = schedule["dependsOn"].as_str() {
        return format!("as {on}");
    }
    if let Some(template) = schedule["jobId"].as_str() {
        return format!("jobs {template}");
    }
    if let Some(program) = schedule["runs"].as_str() {
        return format!("runs {program}");
    }
    if schedule["onRequest"] == true {
        return "on request".to_owned();
    }
    match schedule["zone"].as_str() {
        Some(zone) if zone != "UTC" => format!("{} {zone}", text(schedule, "cron")),
        _ => text(schedule, "cron").to_owned(),
    }
}

/// `164 succeeded, 2 waiting`, in the order of a slot's life.
pub(crate) fn counts(counts: &Value) -> String {
    let known = kelos_model::SlotState::ALL.map(kelos_model::SlotState::as_str);
    let told = known.iter().filter(|state| number(counts, state) > 0);
    let told: Vec<String> =
        told.map(|state| render::paint(&format!("{} {state}", number(counts, state)), state)).collect();
    if told.is_empty() { "-".to_owned() } else { told.join(", ") }
}

/// A list of workflows that lacks some is worth a word.
fn say_problems(client: &Client) {
    let Ok(problems) = client.get("list the problems", "/problems", &Query::new()) else {
        return;
    };
    for problem in items(&problems, "items") {
        let severity = if text(problem, "severity") == "warning" { "warning: " } else { "" };
        let (line, column) = (number(problem, "line"), number(problem, "column"));
        let place = if line > 0 { format!(":{line}:{column}") } else { String::new() };
        let hint = problem["hint"].as_str().map(|hint| format!(" ({hint})")).unwrap_or_default();
        eprintln!("{}{place}: {severity}{}{hint}", text(problem, "file"), text(problem, "message"));
    }
}

pub(crate) fn slots(args: &SlotsArgs) -> Result<u8, Failure> {
    let client = Client::new(&args.door)?;
    let mut query = Query::new();
    if let Some(id) = &args.workflow {
        // A filter that names nothing finds nothing; a name that is mistyped deserves an error.
        client.get("list the slots", &format!("/workflows/{}", escape(id)), &Query::new())?;
        query.add("workflow", id);
    }
    if !args.state.is_empty() {
        query.add("state", args.state.join(","));
    }
    query.add_some("from", args.from.map(words::wire));
    query.add_some("to", args.to.map(words::wire));
    let limit = if args.all { usize::MAX } else { args.limit.max(1) };
    let (rows, more) = client.list("list the slots", "/slots", &query, limit)?;
    if args.door.form.json {
        words::json(&json!({ "items": rows, "more": more }));
        return Ok(0);
    }
    if rows.is_empty() {
        words::line("no slots");
        return Ok(0);
    }
    let is_job = |row: &Value| row["job"].is_string();
    let which = if rows.iter().all(is_job) { "JOB" } else { "TIME" };
    let mut table = render::table(&["WORKFLOW", which, "STATE", "SINCE", "RUNS", "NOTE"]);
    for row in &rows {
        table.add_row([
            Cell::new(text(row, "workflow")),
            Cell::new(key(row)),
            render::state(text(row, "state")),
            Cell::new(short(text(row, "since"))),
            Cell::new(number(row, "lastRun")),
            Cell::new(note(row)),
        ]);
    }
    render::print(table);
    if more {
        words::line(format!("the newest {} of more; --all or --limit N prints the others", count(rows.len(), "slot")));
    }
    Ok(0)
}

fn note(row: &Value) -> String {
    let mut notes = Vec::new();
    notes.extend(row["due"].as_str().map(|due| format!("retry {} at {}", number(row, "retries"), short(due))));
    if row["due"].is_null() && number(row, "retries") > 0 {
        notes.push(format!("after {}", count(usize::try_from(number(row, "retries")).unwrap_or(0), "failed attempt")));
    }
    notes.extend(row["backfill"].as_str().map(|name| format!("backfill {name}")));
    notes.extend(items(&row["collected"], "words").iter().filter_map(Value::as_str).map(str::to_owned));
    if let Some(asked) = row["collected"]["asked"].as_object() {
        notes.push(format!("asked by {}", asked.get("by").and_then(Value::as_str).unwrap_or("somebody")));
    }
    let priority = row["priority"].as_i64().unwrap_or_default();
    if priority != 0 {
        notes.push(format!("priority {priority}"));
    }
    notes.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_says_why_it_is() {
        let asked =
            json!({ "collected": { "words": [], "asked": { "arguments": {}, "unconstrained": false, "by": "ann" } } });
        assert_eq!(note(&asked), "asked by ann");
        let before = json!({ "collected": { "words": ["1 partition of ds"], "asked": { "arguments": {} } } });
        assert_eq!(note(&before), "1 partition of ds; asked by somebody");
        assert_eq!(note(&json!({ "retries": 1, "backfill": "b" })), "after 1 failed attempt; backfill b");
    }
}
