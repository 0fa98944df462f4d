//! `kelos workers`: the workers of a server.

use comfy_table::Cell;
use kelos_wire::{ListDto, WorkerDto};

use crate::address::Query;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::Door;
use crate::{render, text as words};

#[derive(clap::Args)]
pub(crate) struct WorkersArgs {
    #[command(flatten)]
    door: Door,
}

pub(crate) fn run(args: &WorkersArgs) -> Result<u8, Failure> {
    let found: Reply<ListDto<WorkerDto>> =
        Connection::open(&args.door)?.get("list the workers", "/workers", &Query::new())?;
    if args.door.form.json {
        words::json(&found);
        return Ok(0);
    }
    if found.items.is_empty() {
        words::line("No worker is connected. `kelos worker` starts one, for a server that runs with --workers.");
        return Ok(0);
    }
    let mut table = render::table(&["WORKER", "HOST", "LABELS", "RUNS", "ROOM", "VERSION", "SINCE", "STATE"]);
    for worker in &found.items {
        table.add_row([
            Cell::new(&worker.name),
            Cell::new(if worker.host.is_empty() { "–" } else { &worker.host }),
            Cell::new(if worker.labels.is_empty() { "–".to_owned() } else { worker.labels.join(", ") }),
            Cell::new(worker.runs.len()),
            Cell::new(worker.free),
            Cell::new(worker.version.as_deref().unwrap_or("–")),
            Cell::new(worker.since.as_ref().map_or_else(|| "–".to_owned(), |since| since.short())),
            Cell::new(standing(worker)),
        ]);
    }
    render::print(table);
    Ok(0)
}

fn standing(worker: &WorkerDto) -> String {
    match (&worker.away_since, worker.leaves) {
        (Some(since), _) => format!("away since {}", since.short()),
        (None, true) => "drains".to_owned(),
        (None, false) => "connected".to_owned(),
    }
}
