//! `kelos stuck`: what does not get on, the worst first.

use comfy_table::Cell;
use serde_json::Value;

use crate::client::{self, Client, Query, items, number, text};
use crate::failure::Failure;
use crate::options::Door;
use crate::render;
use crate::text::{self as words, count, short};

#[derive(clap::Args)]
pub(crate) struct StuckArgs {
    #[command(flatten)]
    door: Door,
}

pub(crate) fn run(args: &StuckArgs) -> Result<u8, Failure> {
    let client = Client::new(&args.door)?;
    let found = client.get("list stuck slots", "/stuck", &Query::new())?;
    if args.door.form.json {
        words::json(&found);
        return Ok(0);
    }
    let rows = items(&found, "items");
    if rows.is_empty() {
        words::line("nothing is stuck");
        return Ok(0);
    }
    let mut table = render::table(&["HOW", "SLOT", "STATE", "SINCE", "BEYOND", "WHY", "NEXT"]);
    for row in rows {
        table.add_row([
            Cell::new(kind(text(row, "kind"))),
            Cell::new(slot(row)),
            row["state"].as_str().map_or_else(|| Cell::new("-"), render::state),
            Cell::new(short(text(row, "since"))),
            Cell::new(beyond(row)),
            Cell::new(text(row, "reason")),
            Cell::new(row["next"].as_str().map_or_else(String::new, short)),
        ]);
    }
    render::print(table);
    if number(&found, "more") > 0 {
        words::line(format!("and {} more", number(&found, "more")));
    }
    if found["partial"] == true {
        words::line("only the oldest live slots were examined; there are more");
    }
    Ok(0)
}

/// How a slot is stuck, in words.
fn kind(name: &str) -> &str {
    match name {
        "expiring" => "about to expire",
        "backoff" => "waits for its retry",
        "long" => "running long",
        "failed" => "failed last",
        other => other,
    }
}

fn slot(row: &Value) -> String {
    let slot = client::slot(row);
    match usize::try_from(number(row, "others")).unwrap_or(usize::MAX) {
        0 => slot,
        others => format!("{slot} and {}", count(others, "later one")),
    }
}

/// How far it is beyond what is usual; nothing where that says nothing.
fn beyond(row: &Value) -> String {
    match (text(row, "kind"), row["beyondSeconds"].as_i64()) {
        ("failed" | "paused" | "frozen", _) | (_, None | Some(0)) => String::new(),
        (_, Some(seconds)) => kelos_model::time::text::span(seconds),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_names_the_oldest_and_how_many_follow() {
        let row = json!({ "workflow": "w", "time": "2016-01-01T04:00:00.000Z", "others": 2, "kind": "late", "beyondSeconds": 3960 });
        assert_eq!((slot(&row).as_str(), beyond(&row).as_str()), ("w@2016-01-01T04:00Z and 2 later ones", "1 h 6 min"));
        let failed = json!({ "workflow": "w", "time": "2016-01-01T04:00:00.000Z", "others": 0, "kind": "failed", "beyondSeconds": 60 });
        assert_eq!((slot(&failed).as_str(), beyond(&failed).as_str()), ("w@2016-01-01T04:00Z", ""));
    }
}
