//! `kelos backfills`: all of them, one with its progress, and what can be done to it.

use comfy_table::Cell;
use kelos_wire::{BackfillChange, BackfillDto, CauseDto, EstimateDto, ListDto, ProgressDto};
use serde::Serialize;

use crate::address::Query;
use crate::backfill::exit_code;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::list::counts;
use crate::options::{Because, Door};
use crate::progress::{self, path};
use crate::render;
use crate::text::{self as words, count};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BackfillsArgs {
    #[command(subcommand)]
    what: Option<BackfillAction>,
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
enum BackfillAction {
    /// Show the progress of a backfill, when it will be done, and why slots of it failed
    Show(ShowArgs),
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
struct ShowArgs {
    /// Follow it until it has ended
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    one: OneArgs,
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
        Some(BackfillAction::Show(args)) => show(args),
        Some(BackfillAction::Pause(change)) => post(change, "pause"),
        Some(BackfillAction::Resume(change)) => post(change, "resume"),
        Some(BackfillAction::Rerun(change)) => post(change, "rerun"),
        Some(BackfillAction::Cancel(change)) => post(change, "cancel"),
        Some(BackfillAction::Priority(args)) => prioritise(args),
    }
}

/// A backfill with the causes of its failures, as JSON.
#[derive(Serialize)]
struct BackfillReport<'a> {
    #[serde(flatten)]
    far: &'a Reply<ProgressDto>,
    causes: &'a [CauseDto],
}

fn show(args: &ShowArgs) -> Result<u8, Failure> {
    let one = &args.one;
    let mut client = Connection::open(&one.door)?;
    let far: Result<Reply<ProgressDto>, Failure> = match args.follow {
        true => progress::follow(&mut client, &one.door, &one.name),
        false => client.get(&format!("show the backfill {}", one.name), &path(&one.name), &Query::new()),
    };
    let far = far.map_err(|failure| suggest(&client, failure, &one.name))?;
    let found = progress::causes(&client, &one.name)?;
    if one.door.form.json {
        words::json(&BackfillReport { far: &far, causes: &found.items });
    } else {
        tell(one, &far);
        progress::print_causes(&found, &far.backfill.workflow);
    }
    Ok(if args.follow { exit_code(&far) } else { 0 })
}

/// A failure to find a backfill, with the name that was probably meant.
fn suggest(client: &Connection, failure: Failure, name: &str) -> Failure {
    match failure.refusal.as_deref() {
        Some("backfill-not-found") => {
            client.suggest_of::<BackfillDto>(failure, name, "/backfills", |backfill| vec![backfill.id])
        }
        _ => failure,
    }
}

fn post(args: &ChangeArgs, verb: &str) -> Result<u8, Failure> {
    let (client, one) = (Connection::open(&args.one.door)?, &args.one);
    let doing = format!("{verb} the backfill {}", one.name);
    let after = client.post(&doing, &format!("{}/{verb}", path(&one.name)), &args.because.body());
    let after: Reply<ProgressDto> = after.map_err(|failure| suggest(&client, failure, &one.name))?;
    tell(one, &after);
    Ok(0)
}

fn prioritise(args: &PriorityArgs) -> Result<u8, Failure> {
    let one = &args.change.one;
    let client = Connection::open(&one.door)?;
    let body = BackfillChange { priority: args.priority, reason: args.change.because.reason.clone() };
    let doing = format!("change the priority of the backfill {}", one.name);
    let after = client.patch(&doing, &path(&one.name), &body);
    let after: Reply<ProgressDto> = after.map_err(|failure| suggest(&client, failure, &one.name))?;
    tell(one, &after);
    Ok(0)
}

fn list(args: &BackfillsArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let mut query = Query::new();
    let doing = "list the backfills";
    let workflow = args.workflow.as_ref().map(|name| client.workflow(doing, name)).transpose()?;
    query.add_some("workflow", workflow.map(|workflow| workflow.summary.id));
    let list: Reply<ListDto<BackfillDto>> = client.get(doing, "/backfills", &query)?;
    if args.door.form.json {
        words::json(&list);
        return Ok(0);
    }
    let all = &list.items;
    if all.is_empty() {
        words::line("no backfill has been made");
        return Ok(0);
    }
    let mut table = render::table(&["Backfill", "Workflow", "Times", "Priority", "Ended", "", "Done"]);
    for one in all.iter().take(args.limit) {
        let far = client.get::<ProgressDto>("show a backfill", &path(&one.id), &Query::new())?;
        table.add_row(row(&far));
    }
    render::print(table);
    if all.len() > args.limit {
        words::line(format!("and {} earlier ones", all.len() - args.limit));
    }
    Ok(0)
}

fn row(far: &ProgressDto) -> Vec<Cell> {
    let backfill = &far.backfill;
    let cells = [
        backfill.id.clone(),
        backfill.workflow.clone(),
        format!("{} to {}", backfill.from.short(), backfill.to.short()),
        backfill.priority.to_string(),
        format!("{} of {}", far.ended, far.total),
        standing(far).to_owned(),
        done(&far.estimate),
    ];
    cells.into_iter().map(Cell::new).collect()
}

fn standing(far: &ProgressDto) -> &'static str {
    if far.backfill.cancelled_at.is_some() {
        "cancelled"
    } else if far.ended >= far.total {
        "ended"
    } else if far.backfill.paused_at.is_some() {
        "paused"
    } else {
        "going on"
    }
}

/// When it will be done, or why nobody can tell.
fn done(estimate: &EstimateDto) -> String {
    estimate.done_at.map_or_else(|| estimate.text.clone(), |at| format!("about {}", at.short()))
}

fn tell(args: &OneArgs, far: &Reply<ProgressDto>) {
    if args.door.form.json {
        words::json(far);
        return;
    }
    let backfill = &far.backfill;
    let by = backfill.paused_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    words::line(format!("backfill {} of {}: {}{by}", backfill.id, backfill.workflow, standing(far)));
    let reason = backfill.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let (from, to) = (backfill.from.short(), backfill.to.short());
    words::line(format!("  {from} to {to}, {}, priority {}", backfill.mode, backfill.priority));
    words::line(format!("  asked for by {} at {}{reason}", backfill.by, backfill.created_at.short()));
    words::line(format!("  {} of {} ended: {}", far.ended, far.total, counts(&far.counts)));
    match far.estimate.done_at {
        Some(_) => words::line(format!("  done at {}, {}", done(&far.estimate), far.estimate.text)),
        None => words::line(format!("  {}", far.estimate.text)),
    }
    let failures = usize::try_from(far.failures).unwrap_or(usize::MAX);
    if failures > 0 {
        words::line(format!("  {}: kelos backfills rerun {}", count(failures, "failure"), backfill.id));
    }
}
