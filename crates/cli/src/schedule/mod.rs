//! `kelos schedule`: adding, changing, enabling, firing and explaining event schedules.

mod define;
mod show;
mod when;

use kelos_model::WorkflowId;
use kelos_model::project::{Member, ProjectName};
use kelos_wire::{DecisionDto, EventScheduleDto, Instant, ScheduleRequest, SlotDto};
use serde_json::{Value, json};

use crate::address::{Query, escape};
use crate::client::{Client, Reply};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::{ArgumentOptions, Because, Door};
use crate::text as words;
use crate::{render, start, times};
use define::Definition;

pub(crate) use when::end;

#[derive(clap::Args)]
pub(crate) struct ScheduleArgs {
    #[command(subcommand)]
    what: ScheduleAction,
}

#[derive(clap::Subcommand)]
enum ScheduleAction {
    /// Create an event schedule; it starts disabled
    Add(AddArgs),
    /// Change an event schedule; its pending slots end
    Update(UpdateArgs),
    /// Show an event schedule: its trigger, pending slots and progress
    Show(OneArgs),
    /// Print whether event schedules are enabled
    Status(NamesArgs),
    /// Enable event schedules: facts count from now on
    #[command(visible_alias = "resume")]
    Enable(SwitchArgs),
    /// Disable event schedules: pending slots end, live runs continue
    #[command(visible_alias = "suspend")]
    Disable(SwitchArgs),
    /// Delete event schedules: pending slots end, live runs continue
    #[command(visible_alias = "rm")]
    Delete(SwitchArgs),
    /// Start an event schedule now, without its trigger
    Fire(FireArgs),
    /// Print what an event schedule started and dropped, and why, newest first
    Decisions(DecisionsArgs),
}

#[derive(clap::Args)]
struct AddArgs {
    /// Name, unique in its project
    name: String,
    /// Program to run: the id of a workflow
    #[arg(value_name = "for PROGRAM", required = true, num_args = 1..=3)]
    program: Vec<String>,
    /// Project of the schedule [default: that of its program]
    #[arg(long)]
    project: Option<String>,
    /// Enable it at once
    #[arg(long)]
    enabled: bool,
    #[command(flatten)]
    definition: Definition,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Args)]
struct UpdateArgs {
    /// Event schedule: its id, or its name if that is unique
    name: String,
    /// New program to run
    #[arg(long)]
    program: Option<String>,
    /// Remove constraints of these kinds
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = ["concurrency", "delay", "window", "since-last-run"])]
    without: Vec<String>,
    /// Remove an argument of its runs
    #[arg(long, value_name = "NAME")]
    without_property: Vec<String>,
    #[command(flatten)]
    definition: Definition,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Args)]
struct OneArgs {
    /// Event schedule: its id, or its name if that is unique
    name: String,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Args)]
struct NamesArgs {
    /// Event schedules: their ids, or their names if these are unique
    #[arg(required = true)]
    names: Vec<String>,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Args)]
struct SwitchArgs {
    #[command(flatten)]
    which: NamesArgs,
    #[command(flatten)]
    because: Because,
}

#[derive(clap::Args)]
struct FireArgs {
    /// Event schedule: its id, or its name if that is unique
    name: String,
    #[command(flatten)]
    arguments: ArgumentOptions,
    /// Ignore its constraints
    #[arg(long)]
    unconstrained: bool,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Args)]
struct DecisionsArgs {
    /// Event schedule: its id, or its name if that is unique
    name: String,
    /// Show at most this many slots, newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn run(args: &ScheduleArgs) -> Result<u8, Failure> {
    match &args.what {
        ScheduleAction::Add(args) => add(args),
        ScheduleAction::Update(args) => update(args),
        ScheduleAction::Show(args) => show_one(args),
        ScheduleAction::Status(args) => status(args),
        ScheduleAction::Enable(args) => each(args, "enable", "enabled"),
        ScheduleAction::Disable(args) => each(args, "disable", "disabled"),
        ScheduleAction::Delete(args) => delete(args),
        ScheduleAction::Fire(args) => fire(args),
        ScheduleAction::Decisions(args) => decisions(args),
    }
}

/// The path of an event schedule, by its id, or by its name where there is only one of that name.
fn path(client: &Client, doing: &str, name: &str) -> Result<String, Failure> {
    Ok(format!("/schedules/{}", escape(&id(client, doing, name)?)))
}

fn id(client: &Client, doing: &str, name: &str) -> Result<String, Failure> {
    let mut query = Query::new();
    query.add("name", name);
    let (found, _) = client.list::<EventScheduleDto>(doing, "/schedules", &query, 10)?;
    let mut ids: Vec<&str> = found.iter().map(|one| one.id.as_str()).collect();
    // An id has its project before the name, and a name may look like one.
    let is_id =
        || client.get::<EventScheduleDto>(doing, &format!("/schedules/{}", escape(name)), &Query::new()).is_ok();
    if !ids.is_empty() && name.contains('.') && is_id() {
        ids.push(name);
    }
    match ids[..] {
        [] => match client.get::<EventScheduleDto>(doing, &format!("/schedules/{}", escape(name)), &Query::new()) {
            Err(failure) if failure.refusal.as_deref() == Some("schedule-not-found") => {
                Err(client.suggest_of::<EventScheduleDto>(failure, name, "/schedules", |one| vec![one.id, one.name]))
            }
            _ => Ok(name.to_owned()),
        },
        [one] => Ok(one.to_owned()),
        _ => Err(Failure::usage(format!("{doing}: \"{name}\" could be {}", ids.join(", ")))
            .hint("name one of them with its project")),
    }
}

/// The program after the words that may stand before it.
fn program(words: &[String]) -> Result<&str, Failure> {
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["for", "workflow", program] | ["for", program] => Ok(program),
        [program] if program != "for" => Ok(program),
        _ => Err(Failure::usage("add the schedule: expected a program, such as `for Purchase.History`")),
    }
}

/// A name without the project before it, with which every other command takes it.
fn bare(name: &str, project: Option<&str>, program: &str) -> String {
    let read = |id: &str| WorkflowId::new(id).ok().and_then(|id| Member::read(&id));
    let own = project.map(ProjectName::read).or_else(|| Some(read(program)?.project));
    let of_own = read(name).filter(|member| Some(&member.project) == own.as_ref() && member.kind.is_none());
    of_own.map(|member| member.name).filter(|rest| !rest.is_empty()).unwrap_or_else(|| name.to_owned())
}

fn add(args: &AddArgs) -> Result<u8, Failure> {
    let program = program(&args.program)?;
    let request = ScheduleRequest {
        name: Some(bare(&args.name, args.project.as_deref(), program)),
        program: Some(program.to_owned()),
        project: args.project.clone(),
        enabled: args.enabled.then_some(true),
        ..args.definition.request()?
    };
    if request.trigger.is_none() {
        return Err(Failure::usage("add the schedule: no trigger is given")
            .hint("give one with --time, --partitions, --program-status, --signal or --when"));
    }
    let client = Connection::open(&args.door)?;
    let path = args.because.path("/schedules");
    let made: Reply<EventScheduleDto> = client.post(&format!("add the schedule {}", args.name), &path, &request)?;
    if args.door.form.json {
        words::json(&made);
        return Ok(0);
    }
    let id = &made.id;
    words::line(match made.enabled {
        true => format!("{id} was added, and is enabled"),
        false => format!("{id} was added; it is disabled until `kelos schedule enable {}`", words::operand(id)),
    });
    warn(&made);
    Ok(0)
}

fn update(args: &UpdateArgs) -> Result<u8, Failure> {
    let doing = format!("update the schedule {}", args.name);
    let request = args.definition.request()?;
    let client = Connection::open(&args.door)?;
    let path = path(&client, &doing, &args.name)?;
    let now: Reply<EventScheduleDto> = client.get(&doing, &path, &Query::new())?;
    let mut request = define::merge(request, &args.without, &now);
    define::remove_properties(&mut request, &args.without_property, &now);
    request.program.clone_from(&args.program);
    if request == ScheduleRequest::default() {
        return Err(Failure::usage(format!("{doing}: no change is given"))
            .hint("`kelos schedule update --help` lists the options"));
    }
    let changed: Reply<EventScheduleDto> = client.patch(&doing, &args.because.path(&path), &request)?;
    if args.door.form.json {
        words::json(&changed);
        return Ok(0);
    }
    let what = if changed.version == now.version { "is unchanged" } else { "was changed" };
    words::line(format!("{} {what}", changed.id));
    show::told(&changed).iter().for_each(words::line);
    warn(&changed);
    Ok(0)
}

/// Says what looks as if it were not meant.
fn warn(schedule: &EventScheduleDto) {
    schedule.warnings.iter().for_each(|warning| words::note(format!("warning: {}: {warning}", schedule.id)));
}

fn show_one(args: &OneArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let doing = format!("show the schedule {}", args.name);
    let found: Reply<EventScheduleDto> = client.get(&doing, &path(&client, &doing, &args.name)?, &Query::new())?;
    if args.door.form.json {
        words::json(&found);
        return Ok(0);
    }
    words::line(format!("{}  {}", found.id, show::status(&found)));
    show::told(&found).iter().for_each(words::line);
    warn(&found);
    Ok(0)
}

fn status(args: &NamesArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let mut found = Vec::new();
    for name in &args.names {
        let doing = format!("read the status of {name}");
        found.push(client.get::<EventScheduleDto>(&doing, &path(&client, &doing, name)?, &Query::new())?);
    }
    if args.door.form.json {
        let items: Vec<Value> = found.iter().map(|one| json!({ "id": one.id, "enabled": one.enabled })).collect();
        words::json_items(&items);
        return Ok(0);
    }
    found.iter().for_each(|one| words::line(format!("{} is {}", one.id, show::status(one))));
    Ok(0)
}

fn each(args: &SwitchArgs, verb: &str, past: &str) -> Result<u8, Failure> {
    changed(&args.which, past, |client, name| {
        let doing = format!("{verb} {name}");
        client.post(&doing, &format!("{}/{verb}", path(client, &doing, name)?), &args.because.body())
    })
}

fn delete(args: &SwitchArgs) -> Result<u8, Failure> {
    let mut query = Query::new();
    query.add_some("reason", args.because.reason.as_deref());
    changed(&args.which, "deleted", |client, name| {
        let doing = format!("delete {name}");
        client.delete(&doing, &path(client, &doing, name)?, &query)
    })
}

/// Does something to each, and says so.
fn changed(
    args: &NamesArgs,
    past: &str,
    change: impl Fn(&Client, &str) -> Result<Reply<EventScheduleDto>, Failure>,
) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let mut done = Vec::new();
    for name in &args.names {
        let answer = change(&client, name)?;
        if !args.door.form.json {
            words::line(format!("{} is {past}", answer.id));
        }
        done.push(answer);
    }
    if args.door.form.json {
        words::json_items(&done);
    }
    Ok(0)
}

fn fire(args: &FireArgs) -> Result<u8, Failure> {
    let doing = format!("fire {}", args.name);
    let body = start::body(&doing, &args.arguments, args.unconstrained, &args.because)?;
    let client = Connection::open(&args.door)?;
    let slot: Reply<SlotDto> = client.post(&doing, &format!("{}/fire", path(&client, &doing, &args.name)?), &body)?;
    start::tell(&args.door, &slot);
    Ok(0)
}

fn decisions(args: &DecisionsArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let doing = format!("read the decisions of {}", args.name);
    let path = format!("{}/decisions", path(&client, &doing, &args.name)?);
    let (rows, more) = client.list::<Reply<DecisionDto>>(&doing, &path, &Query::new(), args.limit.max(1))?;
    if args.door.form.json {
        words::json_rows(&rows, more);
        return Ok(0);
    }
    if rows.is_empty() {
        words::line("no decisions yet");
        return Ok(0);
    }
    let mut table = render::table(&["AT", "WHAT", "SLOT", "COLLECTED", "WHY"]);
    for row in &rows {
        let slot = row.slot.as_ref().and_then(|slot| slot.key.time).map(Instant::exact).unwrap_or_default();
        table.add_row([
            comfy_table::Cell::new(times::since(row.at)),
            comfy_table::Cell::new(&row.kind),
            comfy_table::Cell::new(slot),
            comfy_table::Cell::new(row.collected.join(", ")),
            comfy_table::Cell::new(&row.text),
        ]);
    }
    render::print(table);
    if more {
        words::line("and more; --limit N prints the others");
    }
    Ok(0)
}

/// The schedules of an answer as a table.
pub(crate) fn table(rows: &[Reply<EventScheduleDto>]) {
    let mut table = render::table(&["SCHEDULE", "STATUS", "RUNS", "WHEN", "NEXT", "STANDING"]);
    for row in rows {
        table.add_row([
            row.id.clone(),
            show::status(row).to_owned(),
            row.program.clone(),
            row.trigger.line(),
            row.next.as_ref().map_or_else(|| "-".to_owned(), |next| next.time.short()),
            show::standing(row),
        ]);
    }
    render::print(table);
}

#[cfg(test)]
mod tests {
    use super::bare;

    #[test]
    fn a_new_schedule_may_be_named_by_its_id() {
        for (name, project, program, expected) in [
            ("nightly", None, "Purchase.History", "nightly"),
            ("Purchase.nightly", None, "Purchase.History", "nightly"),
            ("prod:Load~1.2.nightly", None, "prod:Load~1.2.Loader", "nightly"),
            ("Other.nightly", Some("Other"), "Purchase.History", "nightly"),
            ("Other.nightly", None, "Purchase.History", "Other.nightly"),
            ("Purchase.", None, "Purchase.History", "Purchase."),
            ("a.b", None, "words", "a.b"),
        ] {
            assert_eq!(bare(name, project, program), expected, "{name} of {project:?} for {program}");
        }
    }
}
