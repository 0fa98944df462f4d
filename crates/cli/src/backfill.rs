//! `kelos backfill`: opening past slots, and watching how far they are.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::client::{Client, Query, escape, items, number, text};
use crate::failure::{BAD, Failure};
use crate::list::counts;
use crate::options::{Because, Door, Range};
use crate::render;
use crate::text::{self as words, short};

/// Which existing slots a backfill opens again.
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
    /// Which existing slots to run again
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
    let client = Client::new(&args.door)?;
    let doing = format!("backfill {}", args.workflow);
    let made = client.post(&doing, "/backfills", &request(args))?;
    if args.dry_run {
        if args.door.form.json {
            words::json(&made);
        } else {
            tell(&made);
        }
        return Ok(0);
    }
    let id = text(&made, "id");
    if !args.door.form.json {
        words::line(format!("backfill {id}: {}", summary(&made)));
    }
    if args.no_wait {
        if args.door.form.json {
            words::json(&made);
        }
        return Ok(0);
    }
    let end = watch(&client, &doing, id)?;
    if args.door.form.json {
        words::json(&end);
    } else if number(&end, "total") == 0 {
        words::line("nothing to do");
    } else {
        words::line(format!("ended: {}", counts(&end["counts"])));
    }
    let bad: u64 = ["failed", "expired", "killed"].iter().map(|state| number(&end["counts"], state)).sum();
    Ok(if bad > 0 { BAD } else { 0 })
}

fn request(args: &BackfillArgs) -> Value {
    let mode = match args.mode {
        Mode::Missing => "missing",
        Mode::Unsuccessful => "unsuccessful",
        Mode::All => "all",
    };
    let mut request = json!({
        "workflow": args.workflow,
        "from": words::wire(args.range.from),
        "to": words::wire(args.range.to),
        "mode": mode,
        "dryRun": args.dry_run,
    });
    if let Some(priority) = args.priority {
        request["priority"] = priority.into();
    }
    if let Some(reason) = &args.because.reason {
        request["reason"] = reason.as_str().into();
    }
    if let Some(name) = &args.name {
        request["name"] = name.as_str().into();
    }
    request
}

fn summary(made: &Value) -> String {
    let kinds = [("created", "new"), ("reopened", "opened again"), ("adopted", "adopted while live")];
    let mut parts: Vec<String> =
        kinds.iter().map(|(kind, words)| format!("{} {words}", number(&made[kind], "count"))).collect();
    parts.push(format!("{} unchanged", number(made, "untouched")));
    parts.join(", ")
}

/// What a backfill would do.
fn tell(made: &Value) {
    words::line(format!("would be backfill {}: {}", text(made, "id"), summary(made)));
    for (kind, heading) in [("created", "new"), ("reopened", "opened again"), ("adopted", "adopted while live")] {
        let total = usize::try_from(number(&made[kind], "count")).unwrap_or(usize::MAX);
        let times: Vec<&str> = items(&made[kind], "times").iter().filter_map(Value::as_str).collect();
        if times.is_empty() {
            continue;
        }
        words::line(format!("  {heading}"));
        for time in times.iter().take(TIMES_SHOWN) {
            words::line(format!("    {}", short(time)));
        }
        if total > TIMES_SHOWN {
            words::line(format!("    and {} more", total - TIMES_SHOWN));
        }
    }
    words::line("nothing was changed");
}

/// Waits until no slot of the backfill is live, with a bar on a terminal.
fn watch(client: &Client, doing: &str, id: &str) -> Result<Value, Failure> {
    let path = format!("/backfills/{}", escape(id));
    let bar = ProgressBar::new(0);
    bar.set_style(style());
    loop {
        let progress = client.get(doing, &path, &Query::new())?;
        let (total, ended) = (number(&progress, "total"), number(&progress, "ended"));
        bar.set_length(total);
        bar.set_position(ended);
        bar.set_message(counts(&progress["counts"]));
        let cancelled = !progress["cancelledAt"].is_null();
        if ended >= total || cancelled {
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
