//! `kelos backfill`: opening past slots, and watching how far they are.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use kelos_model::{BackfillId, IdError, WorkflowId};
use kelos_wire::{AFTER_CURRENT_WORK, BackfillMode, BackfillRequest, BackfillResultDto, ProgressDto, TouchedTimesDto};

use crate::address::{Query, escape};
use crate::client::{Client, Reply};
use crate::connection::Connection;
use crate::failure::{BAD, Failure};
use crate::list::counts;
use crate::options::{Because, Door, Range};
use crate::render;
use crate::text as words;

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
    /// Priority: larger runs first, below 0 runs after current work [default: -1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// Name of the backfill [default: made from the workflow and the range]
    #[arg(long)]
    name: Option<String>,
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

/// How often the progress is asked for.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Times that a dry run prints of each kind.
const TIMES_SHOWN: usize = 10;

pub(crate) fn run(args: &BackfillArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let doing = format!("backfill {}", args.workflow);
    let id = client.workflow(&doing, &args.workflow)?.summary.id;
    let made: Reply<BackfillResultDto> = client.post(&doing, "/backfills", &request(args, &id)?)?;
    if args.dry_run {
        if args.door.form.json {
            words::json(&made);
        } else {
            tell(&made);
        }
        return Ok(0);
    }
    if !args.door.form.json {
        words::line(format!("backfill {}: {}", made.id, summary(&made)));
    }
    if args.no_wait {
        if args.door.form.json {
            words::json(&made);
        }
        return Ok(0);
    }
    let end = watch(&client, &doing, &made.id)?;
    if args.door.form.json {
        words::json(&end);
    } else if end.total == 0 {
        words::line("nothing to do");
    } else {
        words::line(format!("ended: {}", counts(&end.counts)));
    }
    let bad: u64 = ["failed", "expired", "killed"].iter().filter_map(|state| end.counts.get(*state)).sum();
    Ok(if bad > 0 { BAD } else { 0 })
}

fn request(args: &BackfillArgs, id: &str) -> Result<BackfillRequest, Failure> {
    let usage = |error: IdError| Failure::usage(format!("backfill {}: {error}", args.workflow));
    let mode = match args.mode {
        Mode::Missing => BackfillMode::Missing,
        Mode::Unsuccessful => BackfillMode::Unsuccessful,
        Mode::All => BackfillMode::All,
    };
    Ok(BackfillRequest {
        workflow: WorkflowId::new(id).map_err(usage)?,
        from: args.range.from.into(),
        to: args.range.to.into(),
        mode,
        priority: args.priority.unwrap_or(AFTER_CURRENT_WORK),
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

/// The preview of a backfill.
fn tell(made: &BackfillResultDto) {
    words::line(format!("would be backfill {}: {}", made.id, summary(made)));
    for (heading, touched) in kinds(made) {
        let total = usize::try_from(touched.count).unwrap_or(usize::MAX);
        if touched.times.is_empty() {
            continue;
        }
        words::line(format!("  {heading}"));
        for time in touched.times.iter().take(TIMES_SHOWN) {
            words::line(format!("    {}", time.short()));
        }
        if total > TIMES_SHOWN {
            words::line(format!("    and {} more", total - TIMES_SHOWN));
        }
    }
    words::line("nothing was changed");
}

/// Waits until no slot of the backfill is live, with a bar on a terminal.
fn watch(client: &Client, doing: &str, id: &str) -> Result<Reply<ProgressDto>, Failure> {
    let path = format!("/backfills/{}", escape(id));
    let bar = ProgressBar::new(0);
    bar.set_style(style());
    loop {
        let progress: Reply<ProgressDto> = client.get(doing, &path, &Query::new())?;
        bar.set_length(progress.total);
        bar.set_position(progress.ended);
        bar.set_message(counts(&progress.counts));
        if progress.ended >= progress.total || progress.backfill.cancelled_at.is_some() {
            bar.finish_and_clear();
            return Ok(progress);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len}  {elapsed}  {msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    if render::unicode() { style.progress_chars("━╸─") } else { style.progress_chars("=>-") }
}
