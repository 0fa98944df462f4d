//! New backfills, and why slots of one failed, for the API and the pages.

use jiff::Timestamp;
use kelos_core::{BackfillOutcome, SlotList};
use kelos_explain::backfill::{Cause, causes, failed_slots};
use kelos_model::backfill::Backfill;
use kelos_model::ranges::Range;
use kelos_model::time::{Zone, format_full, format_short};
use kelos_model::{Actor, BackfillId, SlotState};
use kelos_store::{BackfillFilter, StoreError};
use kelos_wire::{BackfillRequest, TimeText};

use crate::app::App;
use crate::fault::Fault;
use crate::zone;

/// A backfill that was made or, in a dry run, would be.
pub struct NewBackfill {
    /// Its name, as given or derived.
    pub id: BackfillId,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Its range.
    pub range: Range,
    /// The zone in which times without an offset were read.
    pub zone: Zone,
    /// Slots that did not exist.
    pub created: SlotList,
    /// Slots that had ended.
    pub reopened: SlotList,
    /// Live slots, which run sooner.
    pub adopted: SlotList,
    /// The number of slots in its range that stay as they are.
    pub untouched: u64,
}

/// Makes a backfill, or in a dry run shows what it would do.
///
/// # Errors
/// If its range is empty, its name is taken, or the scheduler refuses it.
pub async fn make(app: &App, by: &Actor, request: BackfillRequest) -> Result<NewBackfill, Fault> {
    let zone = match &request.zone {
        Some(zone) => zone.clone(),
        None => zone::of_workflow(app, &request.workflow).await?,
    };
    let read = |name: &str, time: &TimeText| {
        time.in_zone(&zone).map_err(|error| Fault::bad_request("bad-body", format!("`{name}`: {error}")))
    };
    let range = Range::new(read("from", &request.from)?, read("to", &request.to)?);
    if range.is_empty() {
        let (from, to) = (format_full(range.start), format_full(range.end));
        let detail = format!("`from` is {from} and `to` is {to}, expected `from` before `to`");
        return Err(Fault::bad_request("bad-body", detail));
    }
    let taken = app.read(|reader| reader.backfills(&BackfillFilter::default())).await?;
    let (id, dry_run) = (name(&request, range, &zone, &taken)?, request.dry_run);
    let ask = kelos_core::BackfillRequest {
        id: id.clone(),
        workflow: request.workflow,
        range,
        mode: request.mode.into(),
        priority: request.priority,
        made_by: request.made_by,
        arguments: request.arguments,
        reason: request.reason,
        dry_run,
    };
    let BackfillOutcome { created, reopened, adopted, untouched } = app.ask(by, ask).await?;
    Ok(NewBackfill { id, dry_run, range, zone, created, reopened, adopted, untouched })
}

/// The causes for which the latest slots of a backfill failed, the most frequent first.
///
/// # Errors
/// When the store can't be read.
pub async fn causes_of(app: &App, row: &Backfill) -> Result<Vec<Cause>, StoreError> {
    let (row, now) = (row.clone(), app.handle().now());
    let mut failed = app.read(move |reader| failed_slots(reader, &row, now)).await?;
    for slot in failed.iter_mut().filter(|slot| slot.state == SlotState::Failed) {
        if let Some(run) = &slot.run {
            slot.last_line = app.node().last_line(run).await;
        }
    }
    Ok(causes(failed))
}

/// The given name, or the first derived one that is free.
fn name(request: &BackfillRequest, range: Range, zone: &Zone, taken: &[Backfill]) -> Result<BackfillId, Fault> {
    let free = |id: &BackfillId| taken.iter().all(|known| known.id != *id);
    if let Some(name) = request.name.clone() {
        let detail = format!("a backfill named \"{name}\" exists already, expected a new name");
        return if free(&name) { Ok(name) } else { Err(Fault::conflict("name-taken", detail)) };
    }
    let stem = format!("{}-{}-{}", request.workflow, named(range.start, zone), named(range.end, zone));
    let names = (1_u32..).map(|n| if n == 1 { stem.clone() } else { format!("{stem}-{n}") });
    let names = names.map(|name| BackfillId::new(&name));
    let found = names.map(|name| name.map_err(|error| Fault::bad_request("bad-body", error.to_string())));
    found.into_iter().find(|name| name.as_ref().map_or(true, free)).unwrap_or_else(|| Err(unknown_name()))
}

/// A moment in a name: a date where it begins a day of another zone than UTC.
fn named(at: Timestamp, zone: &Zone) -> String {
    let local = at.to_zoned(zone.rules().clone());
    let begins_day = local.start_of_day().is_ok_and(|start| start.timestamp() == at);
    if begins_day && *zone != Zone::utc() { local.date().to_string() } else { format_short(at) }
}

fn unknown_name() -> Fault {
    Fault::conflict("name-taken", "all derived names are taken, expected a name")
}
