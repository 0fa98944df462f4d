//! Servlets that show workflows and their slots.

use std::collections::BTreeMap;

use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use kelos_core::Refusal;
use kelos_explain::schedule;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::ranges::Range;
use kelos_model::run::shown_id;
use kelos_model::time::{ScheduleProblem, format_full};
use kelos_model::workflow::{About, WorkflowRow};
use kelos_model::{Event, Slot, SlotEvent, SlotRef, SlotState, WorkflowId};
use kelos_store::{PageRequest, Queries, SlotFilter, StoreError};
use serde::Serialize;

use super::params::Params;
use super::{as_json, status_of};

/// How long a range one request may have.
const WINDOW: SignedDuration = SignedDuration::from_hours(168);

/// How many slots are read at once.
const READ_AT_ONCE: usize = 5_000;

#[derive(Serialize)]
struct Ids {
    ids: Vec<String>,
}

pub(super) async fn list(app: App) -> Result<Response, Fault> {
    let rows = app.read(|reader| reader.workflows(None)).await?;
    let ids = rows.into_iter().filter(|row| row.present).map(|row| row.id.to_string()).collect();
    Ok(as_json(&Ids { ids }))
}

#[derive(Serialize)]
struct SlotView {
    info: Info,
    paused: bool,
    slots: Vec<ShownSlot>,
}

#[derive(Serialize)]
struct Info {
    url: Option<String>,
    contacts: Vec<ShownContact>,
}

#[derive(Serialize)]
struct ShownContact {
    email: Option<String>,
    name: Option<String>,
}

#[derive(Serialize)]
struct ShownSlot {
    time: String,
    status: &'static str,
    #[serde(rename = "externalID")]
    external_id: Option<String>,
    #[serde(rename = "retryCount")]
    retry_count: u32,
}

impl ShownSlot {
    /// A slot, or a waiting one for a time without a record.
    fn new(time: Timestamp, slot: Option<&Slot>) -> ShownSlot {
        let status = slot.map_or("WAITING", |slot| status_of(slot.state));
        // While a retry waits, the run before it is not shown any more.
        let started = !matches!(status, "WAITING" | "READY");
        ShownSlot {
            time: format_full(time),
            status,
            external_id: slot
                .and_then(|slot| slot.external_id.as_deref())
                .filter(|_| started)
                .map(|id| shown_id(id).to_owned()),
            retry_count: slot.map_or(0, |slot| slot.retries),
        }
    }
}

impl From<&About> for Info {
    fn from(about: &About) -> Info {
        let contact = |contact: &kelos_model::workflow::Contact| ShownContact {
            email: contact.email.clone(),
            name: contact.name.clone(),
        };
        Info { url: about.url.clone(), contacts: about.contacts.iter().map(contact).collect() }
    }
}

pub(super) async fn slots(app: App, params: Params) -> Result<Response, Fault> {
    let id = params.id()?;
    let end = params.time("end")?.unwrap_or_else(|| app.handle().now());
    let (row, mut slots) = slots_before(&app, id, params.time("start")?, end).await?;
    slots.reverse();
    Ok(as_json(&SlotView { info: Info::from(&row.definition.about), paused: row.paused, slots }))
}

/// The predecessor of `/workflow-slots`: an object with the times as names.
pub(super) async fn workflow(app: App, params: Params) -> Result<Response, Fault> {
    let id = params.id()?;
    let end = params.time("time")?.unwrap_or_else(|| app.handle().now());
    let (_, slots) = slots_before(&app, id, None, end).await?;
    // Times of the same length sort as texts do.
    let by_time: BTreeMap<String, ShownSlot> = slots.into_iter().map(|slot| (slot.time.clone(), slot)).collect();
    Ok(as_json(&by_time))
}

pub(super) async fn state(app: App, params: Params) -> Result<Response, Fault> {
    let slot = params.slot(&app).await?;
    let id = slot.clone();
    let found = app.read(move |reader| reader.slot(&id)).await?;
    let none = || plain::not_found(format!("Slot not found: {}", slot.workflow));
    let found = found.ok_or_else(none)?;
    if !is_recorded(&app, &slot).await? {
        return Err(none());
    }
    let time = slot.key.time().ok_or_else(none)?;
    Ok(as_json(&ShownSlot::new(time, Some(&found))))
}

/// Whether Celos would have a record of a slot: it has none of a slot that was planned and never changed.
pub(super) async fn is_recorded(app: &App, slot: &SlotRef) -> Result<bool, Fault> {
    let id = slot.clone();
    let read = move |reader: &dyn Queries| {
        let Some(slot) = reader.slot(&id)? else { return Ok(false) };
        if slot.state != SlotState::Waiting || slot.retries > 0 || slot.last_run > 0 {
            return Ok(true);
        }
        let history = reader.history(&id)?;
        Ok(history.iter().any(|record| moves(&record.event)) || reader.lacks_history(&id, &history)?)
    };
    Ok(app.read(read).await?)
}

/// Whether Celos writes a record for an event.
fn moves(event: &Event) -> bool {
    let Event::Slot { what, .. } = event else { return false };
    !matches!(
        what,
        SlotEvent::Planned { .. }
            | SlotEvent::Looked { .. }
            | SlotEvent::Collected { .. }
            | SlotEvent::Prioritised { .. }
            | SlotEvent::Requested { .. }
            | SlotEvent::FiredBy { .. }
            | SlotEvent::ArgumentsSet { .. }
    )
}

/// Refuses a time that is not in the schedule of a defined workflow.
pub(super) async fn check_time(app: &App, slot: &SlotRef) -> Result<(), Fault> {
    let id = slot.clone();
    let read = move |reader: &dyn Queries| -> Result<Result<(), Fault>, StoreError> {
        let Some(row) = schedule::defined(reader, &id.workflow)? else {
            return Ok(Err(plain::not_found(format!("Workflow not found: {}", id.workflow))));
        };
        if row.definition.keys.schedule().is_none() {
            return Ok(Ok(()));
        }
        Ok(match schedule::resolved(reader, &row)? {
            Ok(schedule) if schedule.has(&id.key) => Ok(()),
            Ok(_) => Err(Refusal::NotInSchedule(id).into()),
            Err(problem) => Err(no_schedule(&problem)),
        })
    };
    app.read(read).await?
}

type SlotRows = Result<(WorkflowRow, Vec<ShownSlot>), Fault>;

/// The slots of a range, oldest first; without a start those of the window before the end.
async fn slots_before(app: &App, id: WorkflowId, start: Option<Timestamp>, end: Timestamp) -> SlotRows {
    let read = move |reader: &dyn Queries| -> Result<SlotRows, StoreError> {
        let Some(row) = schedule::defined(reader, &id)? else {
            return Ok(Err(plain::not_found(format!("Workflow not found: {id}"))));
        };
        let begun = row.definition.start_time.unwrap_or(Timestamp::MIN);
        let window = end.checked_sub(WINDOW).unwrap_or(Timestamp::MIN);
        let range = Range::new(start.unwrap_or_else(|| window.max(begun)), end);
        if range.start < window {
            let hours = WINDOW.as_hours();
            let message = format!("Time interval between start and end is limited to: {hours} hours");
            return Ok(Err(plain::bad_request(message)));
        }
        let times: Vec<Timestamp> = match schedule::resolved(reader, &row)? {
            Ok(schedule) => schedule.times(range.start, range.end).collect(),
            Err(problem) => return Ok(Err(no_schedule(&problem))),
        };
        let stored = stored(reader, &row.id, range)?;
        let shown = times.into_iter().map(|time| ShownSlot::new(time, stored.get(&time))).collect();
        Ok(Ok((row, shown)))
    };
    app.read(read).await?
}

fn stored(reader: &dyn Queries, id: &WorkflowId, range: Range) -> Result<BTreeMap<Timestamp, Slot>, StoreError> {
    let filter = SlotFilter { workflow: Some(id.clone()), range: Some(range), ..SlotFilter::default() };
    let mut slots = BTreeMap::new();
    let mut from = None;
    loop {
        let page = reader.slots(&filter, PageRequest::newest(READ_AT_ONCE).after(from.as_deref()))?;
        slots.extend(page.rows.into_iter().filter_map(|row| Some((row.id.key.scheduled()?, row.slot))));
        match page.next {
            Some(next) => from = Some(next),
            None => return Ok(slots),
        }
    }
}

fn no_schedule(problem: &ScheduleProblem) -> Fault {
    match problem {
        ScheduleProblem::Unknown { on } => plain::bad_request(format!("Workflow {on} doesn't exist.")),
        cycle => plain::bad_request(cycle.to_string()),
    }
}
