//! The time zone that a request means where its times have no offset: that of the workflow which it is about.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_explain::schedule::resolved;
use kelos_model::WorkflowId;
use kelos_model::time::Zone;
use kelos_model::time::schedule::Schedule;
use kelos_model::workflow::WorkflowRow;
use kelos_store::{Queries, StoreError};
use kelos_wire::TimeText;

use crate::app::App;
use crate::fault::Fault;

/// The time zone of a workflow's times, also of those that it borrows; none where it has none.
///
/// # Errors
/// When the store can't be read.
pub fn of_row(reader: &dyn Queries, row: &WorkflowRow) -> Result<Option<Zone>, StoreError> {
    match row.definition.keys.schedule() {
        Some(Schedule::Dependent(_)) => Ok(resolved(reader, row)?.ok().map(|schedule| schedule.zone().clone())),
        _ => Ok(row.definition.zone().cloned()),
    }
}

/// The time zone in which a request about a workflow means its times: UTC where the workflow has none, or is unknown.
///
/// # Errors
/// When the store can't be read.
pub async fn of_workflow(app: &App, id: &WorkflowId) -> Result<Zone, StoreError> {
    let id = id.clone();
    app.read(move |reader| match reader.workflow(&id)? {
        Some(row) => Ok(of_row(reader, &row)?.unwrap_or_default()),
        None => Ok(Zone::utc()),
    })
    .await
}

/// The zone of a view of days: the one that is named, else that of the workflow that it is of, else UTC.
///
/// # Errors
/// When the store can't be read.
pub async fn of_view(app: &App, workflow: Option<&WorkflowId>, named: Option<Zone>) -> Result<Zone, StoreError> {
    match (named, workflow) {
        (Some(zone), _) => Ok(zone),
        (None, Some(id)) => of_workflow(app, id).await,
        (None, None) => Ok(Zone::utc()),
    }
}

/// Each time zone of the workflows that are defined, with one of them.
async fn of_all(app: &App) -> Result<BTreeMap<String, (Zone, WorkflowId)>, StoreError> {
    app.read(|reader| {
        let mut zones = BTreeMap::new();
        for row in reader.workflows(None)?.into_iter().filter(|row| row.present) {
            if let Some(zone) = of_row(reader, &row)? {
                zones.entry(zone.name().to_owned()).or_insert((zone, row.id));
            }
        }
        Ok(zones)
    })
    .await
}

/// Two times of a query as moments. Without an offset they are those of the zone, if one is given, else of the workflow, if it is about one,
/// else of all workflows, which must have one zone in common.
///
/// # Errors
/// When the zone leaves a time out or has it twice, when workflows have several zones, or when the store can't be read.
pub async fn moments(
    app: &App,
    workflow: Option<&WorkflowId>,
    zone: Option<Zone>,
    times: [(&str, Option<&TimeText>); 2],
) -> Result<[Option<Timestamp>; 2], Fault> {
    let local = times.iter().find_map(|(name, time)| Some((*name, time.filter(|time| time.is_local())?)));
    let zone = match (local, zone, workflow) {
        (None, ..) => Zone::utc(),
        (Some(_), Some(zone), _) => zone,
        (Some(_), None, Some(id)) => of_workflow(app, id).await?,
        (Some((name, time)), None, None) => in_common(&of_all(app).await?, name, time)?,
    };
    let read = |(name, time): (&str, Option<&TimeText>)| time.map(|time| moment(name, time, &zone)).transpose();
    let [from, to] = times;
    Ok([read(from)?, read(to)?])
}

/// A time of a query as a moment, in a zone.
///
/// # Errors
/// When the zone leaves it out or has it twice.
pub fn moment(name: &str, time: &TimeText, zone: &Zone) -> Result<Timestamp, Fault> {
    time.in_zone(zone).map_err(|error| Fault::bad_request("bad-query", format!("{name}: {error}")))
}

/// The zone of all workflows, for a time that depends on it.
fn in_common(zones: &BTreeMap<String, (Zone, WorkflowId)>, name: &str, time: &TimeText) -> Result<Zone, Fault> {
    let mut all = zones.values();
    match (all.next(), all.next()) {
        (None, _) => Ok(Zone::utc()),
        (Some((zone, _)), None) => Ok(zone.clone()),
        (Some((one, of_one)), Some((other, of_other))) => {
            let detail =
                format!("`{name}` is {time}, which is another moment in {one} ({of_one}) than in {other} ({of_other})");
            let hint = "give it an offset, such as 2026-10-01T00:00+02:00, or name a `zone` or a `workflow`";
            Err(Fault::bad_request("bad-query", detail).with_hint(hint))
        }
    }
}
