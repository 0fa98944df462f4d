//! `kelos calendar`: how much of each day is done.

use comfy_table::Cell;
use jiff::civil::Date;
use kelos_model::time::Zone;
use kelos_wire::{CalendarDayDto, CalendarDto};

use crate::address::Query;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::Door;
use crate::text::{self as words, count};
use crate::{render, times};

#[derive(clap::Args)]
pub(crate) struct CalendarArgs {
    /// Only this workflow, even if it is no longer defined
    workflow: Option<String>,
    /// Only workflows of this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Only workflows with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// The first day, such as 2026-03-01; by default 90 days before the last
    #[arg(long, value_name = "DAY", value_parser = day)]
    from: Option<Date>,
    /// The last day, by default today
    #[arg(long, value_name = "DAY", value_parser = day)]
    to: Option<Date>,
    /// Time zone of the days, such as Europe/Berlin [default: that of the workflow, or else UTC]
    #[arg(long, value_name = "ZONE", value_parser = times::zone)]
    zone: Option<Zone>,
    #[command(flatten)]
    door: Door,
}

fn day(text: &str) -> Result<Date, String> {
    let read = text.parse::<Date>().ok().filter(|day| day.to_string() == text);
    read.ok_or_else(|| "expected a day such as 2026-03-29".to_owned())
}

pub(crate) fn run(args: &CalendarArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let mut query = Query::new();
    if let Some(name) = &args.workflow {
        query.add("workflow", client.workflow("count the slots", name)?.summary.id);
    }
    query.add_some("project", args.project.as_ref());
    query.add_some("tag", args.tag.as_ref());
    query.add_some("from", args.from);
    query.add_some("to", args.to);
    query.add_some("zone", args.zone.as_ref().map(Zone::name));
    let found: Reply<CalendarDto> = client.get("count the slots", "/calendar", &query)?;
    if args.door.form.json {
        words::json(&found);
        return Ok(0);
    }
    show(&found);
    Ok(0)
}

/// The days that have slots, oldest first.
fn show(found: &CalendarDto) {
    if found.days.iter().all(|day| day.total == 0) {
        words::line("no slots in these days");
        return;
    }
    let mut table = render::table(&["DAY", "DONE", "OF", "%", "NOTE"]);
    for day in found.days.iter().filter(|day| day.total > 0) {
        let worst = match (day.failed, day.stuck) {
            (0, 0) if day.done == day.total => "succeeded",
            (0, 0) => "waiting",
            (0, _) => "backoff",
            _ => "failed",
        };
        table.add_row([
            Cell::new(render::paint(&day.date, worst)),
            Cell::new(day.done),
            Cell::new(day.total),
            Cell::new(day.percent.map_or_else(String::new, |percent| percent.to_string())),
            Cell::new(note(day)),
        ]);
    }
    render::print(table);
    let days = count(found.days.len(), "day");
    words::line(format!("{}, {days} in {}", count(found.workflows, "workflow"), found.zone));
    if found.partial {
        words::line("earlier days are left out; choose a workflow, a project or a tag");
    }
}

/// The numbers of slots that are not done, in words.
fn note(day: &CalendarDayDto) -> String {
    let parts = [
        (day.failed, "failed"),
        (day.stuck, "to be retried"),
        (day.running, "running"),
        (day.to_do, "to do"),
        (day.ended, "killed or skipped"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_done_is_named() {
        let day = CalendarDayDto { total: 24, done: 20, failed: 1, to_do: 3, ..CalendarDayDto::default() };
        assert_eq!(note(&day), "1 failed, 3 to do");
        assert_eq!(note(&CalendarDayDto { total: 24, done: 24, ..CalendarDayDto::default() }), "");
    }

    #[test]
    fn days_have_one_form() {
        assert!(day("2026-03-29").is_ok());
        for wrong in ["2026-3-29", "20260329", "yesterday", "2026-02-30"] {
            assert_eq!(day(wrong), Err("expected a day such as 2026-03-29".to_owned()));
        }
    }
}
