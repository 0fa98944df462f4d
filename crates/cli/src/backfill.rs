//! `kelos backfill`: opening past slots, and watching how far they are.

use kelos_model::time::Zone;
use kelos_model::workflow::VersionChoice;
use kelos_model::{BackfillId, IdError, WorkflowId};
use kelos_wire::{AFTER_CURRENT_WORK, BackfillMode, BackfillRequest, BackfillResultDto, ProgressDto, TouchedTimesDto};

use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::{BAD, Failure};
use crate::list::counts;
use crate::options::{ArgumentOptions, Because, Door, Range, ReadRange};
use crate::selection::zone_of;
use crate::text::{self as words, count, quoted};
use crate::{days, progress};

/// The existing slots that a backfill reopens.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Mode {
    /// None: only create slots that do not exist
    Missing,
    /// Slots that ended without success
    Unsuccessful,
    /// All slots that have ended
    All,
}

#[derive(clap::Args)]
pub(crate) struct BackfillArgs {
    /// Workflow to backfill
    workflow: String,
    #[command(flatten)]
    range: Range,
    /// Existing slots to run again
    #[arg(long, value_enum, default_value_t = Mode::Missing)]
    mode: Mode,
    /// Only slots that this version made: a version of the project, such as 1.4, or the number of a definition, #3. They run again
    #[arg(long, value_name = "VERSION", conflicts_with = "mode")]
    made_by: Option<VersionChoice>,
    /// Priority: larger runs first, below 0 runs after current work [default: -1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// Name of the backfill [default: made from the workflow and the range]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    arguments: ArgumentOptions,
    #[command(flatten)]
    because: Because,
    /// Preview only: change nothing
    #[arg(long)]
    dry_run: bool,
    /// Return at once instead of waiting until it is done
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    door: Door,
}

/// Times that a dry run prints of each kind.
const TIMES_SHOWN: usize = 10;

pub(crate) fn run(args: &BackfillArgs) -> Result<u8, Failure> {
    let mut client = Connection::open(&args.door)?;
    let doing = format!("backfill {}", args.workflow);
    let workflow = client.workflow(&doing, &args.workflow)?;
    let range = args.range.read(&doing, &zone_of(&workflow))?;
    let made: Reply<BackfillResultDto> =
        client.post(&doing, "/backfills", &request(args, &workflow.summary.id, &range)?)?;
    let understood = range.understood.map(|understood| format!("; {understood}")).unwrap_or_default();
    if args.dry_run {
        if args.door.form.json {
            words::json(&made);
        } else {
            tell(&made, &understood, days::zone(&workflow.summary.schedule).as_ref());
        }
        return Ok(0);
    }
    if !args.door.form.json {
        words::line(format!("backfill {}: {}{understood}", made.id, summary(&made)));
    }
    if args.no_wait {
        if args.door.form.json {
            words::json(&made);
        }
        return Ok(0);
    }
    let end = progress::follow(&mut client, &args.door, &made.id)?;
    if args.door.form.json {
        words::json(&end);
    } else {
        tell_end(&client, &end)?;
    }
    Ok(exit_code(&end))
}

/// The exit code for a backfill that has ended.
pub(crate) fn exit_code(end: &ProgressDto) -> u8 {
    let bad: u64 = ["failed", "expired", "killed"].iter().filter_map(|state| end.counts.get(*state)).sum();
    if bad > 0 { BAD } else { 0 }
}

/// Says how a backfill ended, and why slots of it failed.
fn tell_end(client: &Connection, end: &ProgressDto) -> Result<(), Failure> {
    if end.total == 0 {
        words::line("nothing to do");
        return Ok(());
    }
    words::line(format!("ended: {}", counts(&end.counts)));
    if end.failures > 0 {
        let name = &end.backfill.id;
        progress::print_causes(&*progress::causes(client, name)?, &end.backfill.workflow);
        let failures = usize::try_from(end.failures).unwrap_or(usize::MAX);
        words::line(format!(
            "{}: `kelos backfills rerun {}` runs them again",
            count(failures, "failure"),
            quoted(name)
        ));
    }
    Ok(())
}

fn request(args: &BackfillArgs, id: &str, range: &ReadRange) -> Result<BackfillRequest, Failure> {
    let usage = |error: IdError| Failure::usage(format!("backfill {}: {error}", args.workflow));
    let mode = match args.mode {
        Mode::Missing => BackfillMode::Missing,
        Mode::Unsuccessful => BackfillMode::Unsuccessful,
        Mode::All => BackfillMode::All,
    };
    Ok(BackfillRequest {
        workflow: WorkflowId::new(id).map_err(usage)?,
        from: range.from.into(),
        to: range.to.into(),
        zone: args.range.zone().cloned(),
        mode,
        priority: args.priority.unwrap_or(AFTER_CURRENT_WORK),
        made_by: args.made_by.clone(),
        arguments: args.arguments.read(&format!("backfill {}", args.workflow))?,
        name: args.name.as_deref().map(BackfillId::new).transpose().map_err(usage)?,
        reason: args.because.reason.clone(),
        dry_run: args.dry_run,
    })
}

/// The effect on slots, in words.
fn kinds(made: &BackfillResultDto) -> [(&'static str, &TouchedTimesDto); 3] {
    [("new", &made.created), ("opened again", &made.reopened), ("adopted while live", &made.adopted)]
}

fn summary(made: &BackfillResultDto) -> String {
    let mut parts: Vec<String> =
        kinds(made).iter().map(|(words, touched)| format!("{} {words}", touched.count)).collect();
    parts.push(format!("{} unchanged", made.untouched));
    parts.join(", ")
}

/// The preview of a backfill, with days where its slots are named by those of a zone.
fn tell(made: &BackfillResultDto, understood: &str, days: Option<&Zone>) {
    words::line(format!("would be backfill {}: {}{understood}", made.id, summary(made)));
    for (heading, touched) in kinds(made) {
        let total = usize::try_from(touched.count).unwrap_or(usize::MAX);
        if touched.times.is_empty() {
            continue;
        }
        words::line(format!("  {heading}"));
        for time in touched.times.iter().take(TIMES_SHOWN) {
            let day = days.and_then(|zone| days::day(zone, time.0));
            words::line(format!("    {}", day.unwrap_or_else(|| time.short())));
        }
        if total > TIMES_SHOWN {
            words::line(format!("    and {} more", total - TIMES_SHOWN));
        }
    }
    words::line("nothing was changed");
}
