//! The translation of a slot's state in Celos.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::sharing::Shares;
use kelos_model::time::{CronSchedule, Schedule, format_full};
use kelos_model::workflow::{About, Job, Moments, PlanState, WorkflowRow};
use kelos_model::{SlotEvent, SlotState, Workflow, WorkflowId};

use crate::celos_db::{MARK_LIFE, Record, SlotRecord, Status, Trouble, WINDOW, WorkflowRecords};

/// The scheduler that is imported from, as events name it.
pub const FROM: &str = "celos";

/// The executor of Celos's jobs.
pub const EXECUTOR: &str = "oozie";

/// A slot to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The time of the slot.
    pub time: Timestamp,
    /// Its state after the import.
    pub state: SlotState,
    /// How many attempts have failed.
    pub retries: u32,
    /// The id of its job in Oozie.
    pub external_id: Option<String>,
    /// Whether it is marked for rerun in Celos.
    pub requested: bool,
    /// Its status in Celos, in Celos's terms.
    pub there: String,
    /// Whether Celos had forgotten it, unfinished, because of its age.
    pub forgotten: bool,
}

impl Arrival {
    /// The event that imports it.
    #[must_use]
    pub fn event(&self) -> SlotEvent {
        SlotEvent::Imported {
            from: FROM.to_owned(),
            state: self.state,
            retries: self.retries,
            external_id: self.external_id.clone(),
            requested: self.requested,
            there: self.there.clone(),
        }
    }
}

/// The slots of a workflow to import, ascending by time: its slots, and those that are only marked for rerun.
#[must_use]
pub fn takeover(kept: &WorkflowRecords, as_of: Timestamp, revive: bool) -> Vec<Arrival> {
    let mut arrivals: Vec<Arrival> = kept
        .slots
        .iter()
        .map(|(time, found)| match found {
            SlotRecord::Record(record) => {
                let left_behind = !revive && kept.is_forgotten(*time, record, as_of);
                if left_behind { forgotten(*time, record) } else { known(*time, record) }
            }
            SlotRecord::Unreadable => unreadable(*time),
        })
        .collect();
    let marked = kept.marks.keys().filter(|time| kept.is_marked(**time, as_of) && !kept.slots.contains_key(time));
    arrivals.extend(marked.map(|time| waiting(*time, 0, "marked for rerun".to_owned())));
    arrivals.sort_by_key(|arrival| arrival.time);
    for arrival in &mut arrivals {
        arrival.requested = kept.is_marked(arrival.time, as_of);
    }
    arrivals
}

impl WorkflowRecords {
    /// Whether a slot is marked for rerun, and Celos still respects the mark.
    fn is_marked(&self, time: Timestamp, as_of: Timestamp) -> bool {
        self.marks.get(&time).is_some_and(|at| !is_expired(*at, as_of))
    }

    /// Whether Celos ignores an unfinished slot: it is older than its window, and not marked. A job
    /// that was submitted is still queried.
    fn is_forgotten(&self, time: Timestamp, record: &Record, as_of: Timestamp) -> bool {
        let unfinished = matches!(record.status, Status::Waiting | Status::Ready);
        unfinished && as_of.duration_since(time) > WINDOW && !self.is_marked(time, as_of)
    }

    /// Marks that have expired; their paths are from the folder of the workflow's marks.
    pub(crate) fn troubled_marks(&self, as_of: Timestamp) -> impl Iterator<Item = Trouble> + '_ {
        let old = self.marks.iter().filter(move |(_, at)| is_expired(**at, as_of));
        old.map(|(time, at)| Trouble {
            path: format_full(*time).replacen('T', "/", 1),
            why: format!("this mark for rerun of {} is older than 14 days: not used", format_full(*at)),
        })
    }
}

fn is_expired(marked_at: Timestamp, as_of: Timestamp) -> bool {
    as_of.duration_since(marked_at) > MARK_LIFE
}

fn known(time: Timestamp, record: &Record) -> Arrival {
    let Record { status, external_id, retry_count: retries } = record.clone();
    match status.state() {
        SlotState::Waiting => waiting(time, retries, status.to_string()),
        // The outcome of a job without an id can't be queried, and a second job may do harm.
        SlotState::Running if external_id.is_none() => Arrival {
            state: SlotState::Failed,
            external_id,
            ..waiting(time, retries, format!("{status} without a job that could be asked about"))
        },
        state => Arrival { state, external_id, ..waiting(time, retries, status.to_string()) },
    }
}

fn forgotten(time: Timestamp, record: &Record) -> Arrival {
    let there = format!("{}, forgotten because it was older than 7 days", record.status);
    Arrival { state: SlotState::Expired, forgotten: true, ..waiting(time, record.retry_count, there) }
}

/// It may have run: a person has to decide whether it runs again.
fn unreadable(time: Timestamp) -> Arrival {
    Arrival { state: SlotState::Failed, ..waiting(time, 0, "unreadable".to_owned()) }
}

fn waiting(time: Timestamp, retries: u32, there: String) -> Arrival {
    Arrival { time, state: SlotState::Waiting, retries, external_id: None, requested: false, there, forgotten: false }
}

/// The row of a workflow that a script defines.
pub(super) fn defined(definition: &Arc<Workflow>) -> WorkflowRow {
    WorkflowRow {
        id: definition.id.clone(),
        definition: definition.clone(),
        version: 1,
        present: true,
        enabled: true,
        paused: false,
        planned: PlanState::default(),
        moments: Moments::default(),
    }
}

/// The row of a workflow that has state and no script: it is dormant until there is one.
pub(super) fn undefined(id: &WorkflowId) -> WorkflowRow {
    let description = "imported from Celos; no script defines it yet".to_owned();
    let definition = Arc::new(Workflow {
        project: FROM.to_owned(),
        concurrency: Some(0),
        about: About { description: Some(description), ..About::default() },
        shares: Shares::default(),
        ..Workflow::new(id.clone(), Schedule::Cron(CronSchedule::hourly()), Job::new(EXECUTOR, serde_json::Map::new()))
    });
    WorkflowRow { present: false, ..defined(&definition) }
}
