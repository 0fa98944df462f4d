//! What is kept in memory of a workflow, beside its slots.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::time::format_short;
use kelos_model::time::schedule::CronSchedule;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Actor, BackfillId, Slot, SlotKey, SlotState, Subject};

/// A workflow: its row, and what is derived from it.
pub(crate) struct Task {
    pub(crate) row: WorkflowRow,
    /// Its schedule after following what it depends on, or why that can't be done.
    pub(crate) schedule: Result<CronSchedule, String>,
    /// Whether its jobs make sense together with those of others, and why not; none where its slots are no jobs.
    pub(crate) jobs: Option<Result<(), String>>,
    /// The schedule that opens its jobs.
    pub(crate) feed: Option<CronSchedule>,
    /// Its backfills that are paused, and who paused them.
    pub(crate) pauses: BTreeMap<BackfillId, Actor>,
    /// What its trigger waits for among facts.
    pub(crate) subjects: BTreeSet<Subject>,
    /// The slot of an event schedule that collects, while there is one.
    pub(crate) collecting: Option<SlotKey>,
}

/// Why a slot is left alone whose workflow begins later.
fn not_begun(start: Timestamp) -> String {
    let start = format_short(start);
    format!("its workflow starts later, at {start}, and nobody asked for it: rerun it to have it go all the same")
}

impl Task {
    pub(crate) fn new(row: WorkflowRow) -> Task {
        Task {
            subjects: BTreeSet::new(),
            collecting: None,
            row,
            schedule: Err("it has not been loaded yet".to_owned()),
            jobs: None,
            feed: None,
            pauses: BTreeMap::new(),
        }
    }

    /// Why the scheduler leaves a slot alone, in words; none when it doesn't.
    pub(crate) fn dormant(&self, key: &SlotKey, slot: Option<&Slot>) -> Option<String> {
        if self.is_frozen() {
            let why = "its workflow is frozen: the scheduler found something wrong in itself about it, see Problems";
            return Some(why.to_owned());
        }
        if self.is_off() {
            return Some("its workflow is paused".to_owned());
        }
        if !self.row.present {
            return Some("its workflow is not defined any more".to_owned());
        }
        if let Some((backfill, by)) = slot.and_then(|slot| self.pause_of(slot)) {
            return Some(format!("its backfill {backfill} is paused by {by}"));
        }
        match key {
            SlotKey::Time(at) => match &self.schedule {
                Err(why) => Some(why.clone()),
                Ok(schedule) if schedule.contains(*at) => self.before_start(key, slot).map(not_begun),
                Ok(_) => Some("its time is not in the workflow's schedule any more".to_owned()),
            },
            SlotKey::Job(id) => self.no_job(id),
            SlotKey::Moment(_) if self.row.definition.keys.are_moments() => None,
            SlotKey::Moment(_) => Some("its workflow has slots by time now".to_owned()),
            SlotKey::Flow(_) => Some("its workflow is no flow".to_owned()),
        }
    }

    /// When its workflow begins, where a slot by time lies before that and nobody asked for it.
    pub(crate) fn before_start(&self, key: &SlotKey, slot: Option<&Slot>) -> Option<Timestamp> {
        self.row.definition.starts_after(key, slot)
    }

    /// Whether an invariant of it broke, and nobody has resumed it.
    pub(crate) fn is_frozen(&self) -> bool {
        self.row.moments.frozen.is_some()
    }

    /// Whether it is paused. An event schedule that is disabled has ended what it had pending, and all else goes on.
    pub(crate) fn is_off(&self) -> bool {
        self.row.paused && self.row.definition.keys.events().is_none()
    }

    /// What yields times: its schedule, or what opens its jobs.
    pub(crate) fn ticks(&self) -> Option<&CronSchedule> {
        self.feed.as_ref().or(self.schedule.as_ref().ok())
    }

    /// Why a text is no job of this workflow, in words; none where it is one.
    pub(crate) fn no_job(&self, id: &str) -> Option<String> {
        match (&self.jobs, self.row.definition.keys.jobs()) {
            (Some(Ok(())), Some(jobs)) => match jobs.normal(id) {
                Ok(normal) if *normal == *id => None,
                Ok(normal) => Some(format!("its job id is written {normal} now")),
                Err(error) => Some(error.to_string()),
            },
            (Some(Err(why)), _) => Some(why.clone()),
            (None, Some(_)) => Some("it has not been loaded yet".to_owned()),
            (_, None) => Some("its workflow has no job ids".to_owned()),
        }
    }

    /// The paused backfill that a slot belongs to, and who paused it. What has a run goes on.
    fn pause_of(&self, slot: &Slot) -> Option<(&BackfillId, &Actor)> {
        let backfill = slot.backfill.as_ref().filter(|_| slot.state.is_idle())?;
        self.pauses.get_key_value(backfill)
    }

    /// Whether a slot stands in the queue. Those of a paused backfill don't, so that passing over them costs nothing.
    pub(crate) fn is_in_line(&self, slot: &Slot) -> bool {
        slot.state == SlotState::Queued && self.pause_of(slot).is_none()
    }
}
