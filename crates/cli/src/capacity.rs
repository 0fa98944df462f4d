//! `kelos capacity`: who holds what runs need, and who waits for it.

use kelos_wire::{CapacityDto, PoolDto, SlotNameDto, WaiterDto};

use crate::address::Query;
use crate::client::Reply;
use crate::connection::Connection;
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
    let found: Reply<CapacityDto> =
        Connection::to_read(&args.door)?.get("read the capacity", "/capacity", &Query::new())?;
    if args.door.form.json {
        words::json(&found);
        return Ok(0);
    }
    let mut table = render::table(&["WHAT", "HELD", "OF", "QUEUED", "HELD BY", "NEXT"]);
    let runs = &found.runs;
    table.add_row([
        "all runs".to_owned(),
        runs.held.to_string(),
        runs.limit.to_string(),
        runs.queued.to_string(),
        named(&runs.holders, runs.more_holders, |one| format!("{} ({})", one.workflow, one.runs)),
        named(&runs.first, 0, waiter),
    ]);
    for pool in &found.pools {
        let disputed = if pool.disputed { " (sizes differ)" } else { "" };
        let more = usize::try_from(pool.more_holders).unwrap_or(usize::MAX);
        table.add_row([
            format!("pool {}{disputed}", pool.name),
            pool.held.to_string(),
            limit(pool),
            pool.queued.to_string(),
            named(&pool.holders, more, |one| holder(&one.slot, one.permits) + within(one.within)),
            named(&pool.first, 0, waiter),
        ]);
    }
    for full in &found.workflows {
        table.add_row([
            format!("workflow {}", full.workflow),
            full.held.to_string(),
            full.concurrency.to_string(),
            full.queued.to_string(),
            String::new(),
            waiter(&full.first),
        ]);
    }
    render::print(table);
    if found.more_workflows > 0 {
        words::line(format!("and {} more workflows at their limit", found.more_workflows));
    }
    Ok(0)
}

/// The first few, and how many more there are.
fn named<T>(of: &[T], more: usize, name: impl Fn(&T) -> String) -> String {
    let named: Vec<String> = of.iter().take(NAMED).map(name).collect();
    let more = more + of.len().saturating_sub(NAMED);
    if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
}

/// The size of a pool, and its rate: `4, 60 in 60 s (next token 2026-11-23T12:00:01Z)`.
fn limit(pool: &PoolDto) -> String {
    let size = pool.size.map(|size| size.to_string());
    let rate = pool.rate.as_ref().map(|state| {
        let tokens = match (state.left, &state.next) {
            (0, Some(next)) => format!("next token {}", next.0),
            (left, _) => format!("{left} left"),
        };
        format!("{} ({tokens})", state.rate)
    });
    let limits: Vec<String> = size.into_iter().chain(rate).collect();
    if limits.is_empty() { "-".to_owned() } else { limits.join(", ") }
}

fn holder(slot: &SlotNameDto, permits: u32) -> String {
    if permits == 1 { slot.to_string() } else { format!("{slot} ({permits})") }
}

fn waiter(one: &WaiterDto) -> String {
    let behind = if one.behind > 0 { format!(" +{}", one.behind) } else { String::new() };
    holder(&one.slot, one.permits) + within(one.within) + &behind
}

/// A mark of a run that takes permits while it is live.
fn within(is_within: bool) -> &'static str {
    if is_within { " within its run" } else { "" }
}
