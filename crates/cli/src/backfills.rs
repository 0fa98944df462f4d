//! `kelos backfills`: all of them, one with its progress, and what can be done to it.

use comfy_table::Cell;
use serde_json::{Value, json};

use crate::client::{Client, Query, escape, items, number, text};
use crate::failure::Failure;
use crate::list::counts;
use crate::options::{Because, Door};
use crate::render;
use crate::text::{self as words, count, short};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BackfillsArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// Only backfills of this workflow
    #[arg(long)]
    workflow: Option<String>,
    /// Show at most this many, newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Subcommand)]
enum What {
    /// Show the progress of a backfill and when it will be done
    Show(OneArgs),
    /// Hold back its slots that have no run yet; live runs continue
    Pause(ChangeArgs),
    /// Resume a paused backfill
    Resume(ChangeArgs),
    /// Change its priority and that of its unfinished slots
    Priority(PriorityArgs),
    /// Rerun its failed and expired slots
    Rerun(ChangeArgs),
    /// Kill its waiting slots; live runs continue
    Cancel(ChangeArgs),
}

#[derive(clap::Args)]
struct OneArgs {
    /// Name of the backfill
    name: String,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Args)]
struct ChangeArgs {
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    one: OneArgs,
}

#[derive(clap::Args)]
struct PriorityArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// Priority: larger runs first, below 0 runs after current work
    #[arg(allow_negative_numbers = true)]
    priority: i32,
}

pub(crate) fn run(args: &BackfillsArgs) -> Result<u8, Failure> {
    match &args.what {
        None => list(args),
        Some(What::Show(one)) => {
            let client = Client::new(&one.door)?;
            let found = client.get(&format!("show the backfill {}", one.name), &path(&one.name), &Query::new())?;
            tell(one, &found);
            Ok(0)
        }
        Some(What::Pause(change)) => post(change, "pause"),
        Some(What::Resume(change)) => post(change, "resume"),
        Some(What::Rerun(change)) => post(change, "rerun"),
        Some(What::Cancel(change)) => post(change, "cancel"),
        Some(What::Priority(args)) => prioritise(args),
    }
}

fn path(name: &str) -> String {
    format!("/backfills/{}", escape(name))
}

fn post(args: &ChangeArgs, verb: &str) -> Result<u8, Failure> {
    let (client, one) = (Client::new(&args.one.door)?, &args.one);
    let doing = format!("{verb} the backfill {}", one.name);
    let after = client.post(&doing, &format!("{}/{verb}", path(&one.name)), &body(&args.because))?;
    tell(one, &after);
    Ok(0)
}

fn prioritise(args: &PriorityArgs) -> Result<u8, Failure> {
    let one = &args.change.one;
    let client = Client::new(&one.door)?;
    let mut body = body(&args.change.because);
    body["priority"] = args.priority.into();
    let doing = format!("change the priority of the backfill {}", one.name);
    let after = client.patch(&doing, &path(&one.name), &body)?;
    tell(one, &after);
    Ok(0)
}

fn body(because: &Because) -> Value {
    because.reason.as_ref().map_or_else(|| json!({}), |reason| json!({ "reason": reason }))
}

fn list(args: &BackfillsArgs) -> Result<u8, Failure> {
    let client = Client::new(&args.door)?;
    let mut query = Query::new();
    query.add_some("workflow", args.workflow.as_ref());
    let list = client.get("list the backfills", "/backfills", &query)?;
    if args.door.form.json {
        words::json(&list);
        return Ok(0);
    }
    let all = items(&list, "items");
    if all.is_empty() {
        words::line("no backfill has been made");
        return Ok(0);
    }
    let mut table = render::table(&["Backfill", "Workflow", "Times", "Priority", "Ended", "", "Done"]);
    for one in all.iter().take(args.limit) {
        let far = client.get("show a backfill", &path(text(one, "id")), &Query::new())?;
        table.add_row(row(&far));
    }
    render::print(table);
    if all.len() > args.limit {
        words::line(format!("and {} earlier ones", all.len() - args.limit));
    }
    Ok(0)
}

fn row(far: &Value) -> Vec<Cell> {
    let times = format!("{} to {}", short(text(far, "from")), short(text(far, "to")));
    let ended = format!("{} of {}", number(far, "ended"), number(far, "total"));
    let cells = [
        text(far, "id").to_owned(),
        text(far, "workflow").to_owned(),
        times,
        far["priority"].to_string(),
        ended,
        standing(far).to_owned(),
        done(far),
    ];
    cells.into_iter().map(Cell::new).collect()
}

fn standing(far: &Value) -> &'static str {
    if !far["cancelledAt"].is_null() {
        "cancelled"
    } else if number(far, "ended") >= number(far, "total") {
        "ended"
    } else if !far["pausedAt"].is_null() {
        "paused"
    } else {
        "going on"
    }
}

/// When it will be done, or why nobody can tell.
fn done(far: &Value) -> String {
    let estimate = &far["estimate"];
    match estimate["doneAt"].as_str() {
        Some(at) => format!("about {}", short(at)),
        None => text(estimate, "text").to_owned(),
    }
}

fn tell(args: &OneArgs, far: &Value) {
    if args.door.form.json {
        words::json(far);
        return;
    }
    let by = far["pausedBy"].as_str().map(|by| format!(" by {by}")).unwrap_or_default();
    words::line(format!("backfill {} of {}: {}{by}", text(far, "id"), text(far, "workflow"), standing(far)));
    let reason = far["reason"].as_str().map(|reason| format!(": {reason}")).unwrap_or_default();
    let (from, to) = (short(text(far, "from")), short(text(far, "to")));
    words::line(format!("  {from} to {to}, {}, priority {}", text(far, "mode"), far["priority"]));
    words::line(format!("  asked for by {} at {}{reason}", text(far, "by"), short(text(far, "createdAt"))));
    let states = counts(&far["counts"]);
    let states = if states.is_empty() { states } else { format!(": {states}") };
    words::line(format!("  {} of {} ended{states}", number(far, "ended"), number(far, "total")));
    match far["estimate"]["doneAt"].as_str() {
        Some(_) => words::line(format!("  done at {}, {}", done(far), text(&far["estimate"], "text"))),
        None => words::line(format!("  {}", text(&far["estimate"], "text"))),
    }
    let failures = usize::try_from(number(far, "failures")).unwrap_or(usize::MAX);
    if failures > 0 {
        words::line(format!("  {}: kelos backfills rerun {}", count(failures, "failure"), text(far, "id")));
    }
}
