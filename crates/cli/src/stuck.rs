//! `kelos stuck`: what does not get on, the worst first.

use comfy_table::Cell;
use kelos_wire::{Instant, StuckDto, StuckListDto};

use crate::address::Query;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::Door;
use crate::render;
use crate::text::{self as words, count};
use crate::times;

#[derive(clap::Args)]
pub(crate) struct StuckArgs {
    #[command(flatten)]
    door: Door,
}

pub(crate) fn run(args: &StuckArgs) -> Result<u8, Failure> {
    let client = Connection::to_read(&args.door)?;
    let found: Reply<StuckListDto> = client.get("list stuck slots", "/stuck", &Query::new())?;
    if args.door.form.json {
        words::json(&found);
        return Ok(0);
    }
    if found.items.is_empty() {
        words::line("nothing is stuck");
        return Ok(0);
    }
    let mut table = render::table(&["HOW", "SLOT", "STATE", "SINCE", "BEYOND", "WHY", "NEXT"]);
    for row in &found.items {
        table.add_row([
            Cell::new(kind(row.kind.as_str())),
            Cell::new(slot(row)),
            row.state.as_ref().map_or_else(|| Cell::new("-"), |state| render::state(state.as_str())),
            Cell::new(times::since(row.since)),
            Cell::new(beyond(row)),
            Cell::new(&row.reason),
            Cell::new(row.next.map(Instant::short).unwrap_or_default()),
        ]);
    }
    render::print(table);
    if found.more > 0 {
        words::line(format!("and {} more", found.more));
    }
    if found.partial {
        words::line("there are more live slots or failures than were examined");
    }
    Ok(0)
}

/// The way in which a slot is stuck, in words.
fn kind(name: &str) -> &str {
    match name {
        "expiring" => "about to expire",
        "overdue" => "missed its deadline",
        "backoff" => "waits for its retry",
        "long" => "running long",
        other => other,
    }
}

/// A stuck slot with the way in which it is stuck: `w@2016-01-01T04:00Z and 2 later ones: late`.
pub(crate) fn title(row: &StuckDto) -> String {
    format!("{}: {}", slot(row), kind(row.kind.as_str()))
}

fn slot(row: &StuckDto) -> String {
    let others = (row.others > 0).then(|| format!(" and {}", count(row.others, "later one")));
    let followers = (row.followers > 0).then(|| format!("; {} behind it", count(row.followers, "slot")));
    format!("{}{}{}", row.slot, others.unwrap_or_default(), followers.unwrap_or_default())
}

/// How far it is beyond what is usual; nothing where that says nothing.
fn beyond(row: &StuckDto) -> String {
    match (row.kind.as_str(), row.beyond_seconds) {
        ("failed" | "paused" | "frozen", _) | (_, 0) => String::new(),
        (_, seconds) => kelos_model::time::text::span(seconds),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_names_the_oldest_and_how_many_follow() {
        let slot_name = json!({ "workflow": "w", "time": "2016-01-01T04:00:00.000Z" });
        let slot_name = serde_json::from_value(slot_name).expect("a name");
        let row =
            StuckDto { slot: slot_name, others: 2, kind: "late".into(), beyond_seconds: 3960, ..StuckDto::default() };
        assert_eq!((slot(&row).as_str(), beyond(&row).as_str()), ("w@2016-01-01T04:00Z and 2 later ones", "1 h 6 min"));
        let failed = StuckDto { others: 0, kind: "failed".into(), beyond_seconds: 60, ..row };
        assert_eq!((slot(&failed).as_str(), beyond(&failed).as_str()), ("w@2016-01-01T04:00Z", ""));
        let followed = StuckDto { others: 1, followers: 4, ..failed };
        assert_eq!(slot(&followed), "w@2016-01-01T04:00Z and 1 later one; 4 slots behind it");
    }
}
