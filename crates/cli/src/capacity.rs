//! `kelos capacity`: who holds what runs need, and who waits for it.

use serde_json::Value;

use crate::client::{Client, Query, items, slot, text};
use crate::failure::Failure;
use crate::options::Door;
use crate::{render, text as words};

#[derive(clap::Args)]
pub(crate) struct CapacityArgs {
    #[command(flatten)]
    door: Door,
}

/// Holders and waiters that are named in a row.
const NAMED: usize = 3;

pub(crate) fn run(args: &CapacityArgs) -> Result<u8, Failure> {
    let found = Client::new(&args.door)?.get("read the capacity", "/capacity", &Query::new())?;
    if args.door.form.json {
        words::json(&found);
        return Ok(0);
    }
    let mut table = render::table(&["WHAT", "HELD", "OF", "QUEUED", "HELD BY", "NEXT"]);
    let runs = &found["runs"];
    table.add_row([
        "all runs".to_owned(),
        number(runs, "held"),
        number(runs, "limit"),
        number(runs, "queued"),
        named(items(runs, "holders"), runs["moreHolders"].as_u64(), workflow_runs),
        named(items(runs, "first"), None, waiter),
    ]);
    for pool in items(&found, "pools") {
        let disputed = if pool["disputed"].as_bool() == Some(true) { " (sizes differ)" } else { "" };
        table.add_row([
            format!("pool {}{disputed}", text(pool, "name")),
            number(pool, "held"),
            number(pool, "size"),
            number(pool, "queued"),
            named(items(pool, "holders"), pool["moreHolders"].as_u64(), holder),
            named(items(pool, "first"), None, waiter),
        ]);
    }
    for full in items(&found, "workflows") {
        table.add_row([
            format!("workflow {}", text(full, "workflow")),
            number(full, "held"),
            number(full, "concurrency"),
            number(full, "queued"),
            String::new(),
            waiter(&full["first"]),
        ]);
    }
    render::print(table);
    if let Some(more) = found["moreWorkflows"].as_u64().filter(|more| *more > 0) {
        words::line(format!("and {more} more workflows at their limit"));
    }
    Ok(0)
}

fn number(of: &Value, field: &str) -> String {
    of[field].as_u64().map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// The first few, and how many more there are.
fn named(of: &[Value], more: Option<u64>, name: impl Fn(&Value) -> String) -> String {
    let named: Vec<String> = of.iter().take(NAMED).map(name).collect();
    let more = more.unwrap_or(0) + of.len().saturating_sub(NAMED) as u64;
    if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
}

fn workflow_runs(one: &Value) -> String {
    format!("{} ({})", text(one, "workflow"), number(one, "runs"))
}

fn holder(one: &Value) -> String {
    let slot = slot(one);
    if one["permits"].as_u64() == Some(1) { slot } else { format!("{slot} ({})", number(one, "permits")) }
}

fn waiter(one: &Value) -> String {
    let behind = one["behind"].as_u64().filter(|behind| *behind > 0);
    let behind = behind.map(|behind| format!(" +{behind}")).unwrap_or_default();
    holder(one) + &behind
}
