//! `kelos schedules`: the event schedules.

use crate::address::Query;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::Door;
use crate::schedule;
use crate::text::{self as words, count};

#[derive(clap::Args)]
pub(crate) struct SchedulesArgs {
    /// Only event schedules of this project
    #[arg(long)]
    project: Option<String>,
    /// Only event schedules of this program
    #[arg(long)]
    program: Option<String>,
    /// Only event schedules with this kind of trigger: time, partitions, ended, signal, and, or, ...
    #[arg(long, value_name = "KIND")]
    trigger: Option<String>,
    /// Only enabled ones
    #[arg(long, conflicts_with = "disabled")]
    enabled: bool,
    /// Only disabled ones
    #[arg(long)]
    disabled: bool,
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "all")]
    limit: usize,
    /// Show all
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    door: Door,
}

/// A kind of trigger as the server has it, from the words of lists and options.
fn kind(word: &str) -> &str {
    match word {
        "time" => "fired",
        "partition" => "partitions",
        "program-status" => "ended",
        other => other,
    }
}

pub(crate) fn run(args: &SchedulesArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let mut query = Query::new();
    query.add_some("project", args.project.as_ref());
    query.add_some("program", args.program.as_ref());
    query.add_some("trigger", args.trigger.as_deref().map(kind));
    query.add_some("enabled", (args.enabled || args.disabled).then_some(args.enabled));
    let limit = if args.all { usize::MAX } else { args.limit.max(1) };
    let (rows, more) = client.list("list the schedules", "/schedules", &query, limit)?;
    if args.door.form.json {
        words::json_rows(&rows, more);
        return Ok(0);
    }
    if rows.is_empty() {
        words::line("no schedules");
        return Ok(0);
    }
    schedule::table(&rows);
    if more {
        let told = count(rows.len(), "schedule");
        words::line(format!("the first {told} of more; --all or --limit N prints the others"));
    }
    Ok(0)
}
