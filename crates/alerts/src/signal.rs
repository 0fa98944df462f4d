//! Signals: what an event of the log means for alerts.

use jiff::Timestamp;
use kelos_model::event::BackfillEvent;
use kelos_model::reason::{Evidence, words};
use kelos_model::time::format_short;
use kelos_model::{
    Answer, BackfillId, Event, EventRecord, Outcome, Probe, Reason, RunId, SlotEvent, SlotRef, WorkflowEvent,
    WorkflowId,
};

use crate::condition::Condition;
use crate::rule::About;

/// A change that an event makes.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Something came into a condition.
    Began {
        /// The condition.
        condition: Condition,
        /// The name of the cause.
        cause: String,
        /// The member that came into it.
        member: String,
        /// The event, in one sentence.
        words: String,
        /// The run that ended.
        run: Option<RunId>,
        /// The slots for which it waited: if one of these failed, that is the cause.
        behind: Vec<String>,
    },
    /// Something is no longer in a condition.
    Ended {
        /// The condition.
        condition: Condition,
        /// The member that was in it.
        member: String,
    },
    /// A workflow is no longer defined: nothing of it is a failure.
    Removed,
    /// A backfill has slots to do.
    BackfillBegan(BackfillId),
    /// A backfill was cancelled: that it ends is no news.
    BackfillCancelled(BackfillId),
}

/// A change, and the workflow that it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    /// The workflow; none for a change of a backfill after its first.
    pub workflow: Option<WorkflowId>,
    /// The change.
    pub change: Change,
}

/// The signals of an event; nearly always none.
#[must_use]
pub fn signals(record: &EventRecord) -> Vec<Signal> {
    match &record.event {
        // The failure of a step is told with its run, once that has failed; that its worker was lost is told at once.
        Event::Slot { slot, what } if slot.key.step().is_some() => of_step(slot, what),
        Event::Slot { slot, what } => of_slot(slot, what),
        Event::Workflow { workflow, what } => of_workflow(workflow, what),
        Event::Backfill { backfill, what } => of_backfill(backfill, what),
        _ => Vec::new(),
    }
}

fn of_step(slot: &SlotRef, what: &SlotEvent) -> Vec<Signal> {
    match what {
        SlotEvent::Failed { run, outcome }
        | SlotEvent::BackedOff { run, outcome, .. }
        | SlotEvent::RunEnded { run, outcome } => lost(slot, *run, outcome).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The loss of a worker by which a run ended, if it did.
fn lost(slot: &SlotRef, run: u32, outcome: &Outcome) -> Option<Signal> {
    let (Outcome::Lost { reason } | Outcome::Unknown { reason }) = outcome else { return None };
    let run = RunId { slot: slot.clone(), number: run };
    let change = Change::Began {
        condition: Condition::Worker,
        // The worker is in the event that dispatched the run.
        cause: String::new(),
        member: slot.to_string(),
        words: format!("the outcome of run {} of {slot} is unknown: {reason}", run.number),
        run: Some(run),
        behind: Vec::new(),
    };
    Some(Signal { workflow: Some(slot.workflow.clone()), change })
}

fn of_slot(slot: &SlotRef, what: &SlotEvent) -> Vec<Signal> {
    let signal = |change| Signal { workflow: Some(slot.workflow.clone()), change };
    match what {
        SlotEvent::Failed { run, outcome } => {
            let failed = Change::Began {
                condition: Condition::Failed,
                cause: slot.workflow.to_string(),
                member: slot.to_string(),
                words: format!("{slot} failed (run {run}: {outcome})"),
                run: Some(RunId { slot: slot.clone(), number: *run }),
                behind: Vec::new(),
            };
            [signal(failed), signal(late_no_more(slot))].into_iter().chain(lost(slot, *run, outcome)).collect()
        }
        SlotEvent::BackedOff { run, outcome, .. } | SlotEvent::RunEnded { run, outcome } => {
            lost(slot, *run, outcome).into_iter().collect()
        }
        SlotEvent::Expired { explanation, .. } => vec![signal(expired(slot, explanation)), signal(late_no_more(slot))],
        SlotEvent::Late { deadline } => vec![signal(late(slot, *deadline))],
        SlotEvent::Succeeded { .. }
        | SlotEvent::Recovered { .. }
        | SlotEvent::MarkedSucceeded { .. }
        | SlotEvent::SkippedBy { .. }
        | SlotEvent::Skipped { .. }
        | SlotEvent::Killed { .. }
        | SlotEvent::Aborted { .. } => {
            let repaired = Change::Ended { condition: Condition::Failed, member: slot.to_string() };
            vec![signal(repaired), signal(late_no_more(slot))]
        }
        _ => Vec::new(),
    }
}

fn late(slot: &SlotRef, deadline: Timestamp) -> Change {
    Change::Began {
        condition: Condition::Late,
        cause: slot.workflow.to_string(),
        member: slot.to_string(),
        words: format!("{slot} is late: its deadline was {}", format_short(deadline)),
        run: None,
        behind: Vec::new(),
    }
}

/// A slot that has ended is late no more: if it failed, that is told.
fn late_no_more(slot: &SlotRef) -> Change {
    Change::Ended { condition: Condition::Late, member: slot.to_string() }
}

fn expired(slot: &SlotRef, explanation: &Reason) -> Change {
    let obstacles = words::blockers(explanation);
    let why = if obstacles.is_empty() { String::new() } else { format!(", waiting: {}", obstacles.join("; ")) };
    let mut behind = Vec::new();
    let mut path = None;
    look(explanation, &mut behind, &mut path);
    Change::Began {
        condition: Condition::Failed,
        cause: path.filter(|_| behind.is_empty()).map_or_else(|| slot.workflow.to_string(), |path| path.cause()),
        member: slot.to_string(),
        words: format!("{slot} expired{why}"),
        run: None,
        behind,
    }
}

/// A path that is not there, or could not be looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathInTheWay {
    /// The path.
    pub(crate) uri: String,
    /// Its endpoint.
    pub(crate) endpoint: String,
    /// Whether it could not be looked for.
    pub(crate) is_away: bool,
}

impl PathInTheWay {
    /// Its name as a cause: the endpoint where that is away, else the path.
    pub(crate) fn cause(&self) -> String {
        if self.is_away { format!("paths on {}", self.endpoint) } else { format!("path {}", self.uri) }
    }
}

/// The first path that is in the way by a reason.
pub(crate) fn place_of(reason: &Reason) -> Option<PathInTheWay> {
    let mut path = None;
    look(reason, &mut Vec::new(), &mut path);
    path
}

/// Looks through a reason for what is in the way: other slots, or else a path, or the endpoint on which it could not be looked for.
fn look(reason: &Reason, behind: &mut Vec<String>, path: &mut Option<PathInTheWay>) {
    if reason.answer != Answer::NotYet {
        return;
    }
    match reason.evidence() {
        Some(Evidence::Slot { slot, .. }) => behind.push(slot.to_string()),
        Some(Evidence::Probe { probe: Probe::Path { uri, .. }, verdict, .. }) => {
            let is_away = verdict == kelos_model::probe::Verdict::Failed;
            let endpoint = || endpoint(uri).to_owned();
            path.get_or_insert_with(|| PathInTheWay { uri: uri.clone(), endpoint: endpoint(), is_away });
        }
        _ => {}
    }
    reason.nested.iter().for_each(|nested| look(nested, behind, path));
}

/// The scheme and the host of a URI.
fn endpoint(uri: &str) -> &str {
    let Some((scheme, rest)) = uri.split_once("://") else { return "this machine" };
    let host = rest.split('/').next().unwrap_or_default();
    uri.get(..scheme.len() + "://".len() + host.len()).unwrap_or(uri)
}

fn of_workflow(workflow: &WorkflowId, what: &WorkflowEvent) -> Vec<Signal> {
    let signal = |change| vec![Signal { workflow: Some(workflow.clone()), change }];
    let began = |condition, words| {
        let (cause, member) = (workflow.to_string(), workflow.to_string());
        signal(Change::Began { condition, cause, member, words, run: None, behind: Vec::new() })
    };
    let ended = |condition| signal(Change::Ended { condition, member: workflow.to_string() });
    let because = |reason: &Option<String>| reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    match what {
        WorkflowEvent::Paused { by, reason } => {
            began(Condition::Paused, format!("{workflow} is paused by {by}{}", because(reason)))
        }
        WorkflowEvent::Disabled { by, reason } => {
            began(Condition::Paused, format!("{workflow} is disabled by {by}{}", because(reason)))
        }
        WorkflowEvent::Resumed { .. } | WorkflowEvent::Enabled { .. } => ended(Condition::Paused),
        WorkflowEvent::Frozen { breach } => {
            began(Condition::Frozen, format!("{workflow} is frozen until somebody resumes it: {breach}"))
        }
        WorkflowEvent::Thawed { .. } => ended(Condition::Frozen),
        WorkflowEvent::Removed { .. } => signal(Change::Removed),
        _ => Vec::new(),
    }
}

fn of_backfill(backfill: &BackfillId, what: &BackfillEvent) -> Vec<Signal> {
    let signal = |workflow: Option<&WorkflowId>, change| vec![Signal { workflow: workflow.cloned(), change }];
    match what {
        BackfillEvent::Created { workflow, .. } => signal(Some(workflow), Change::BackfillBegan(backfill.clone())),
        BackfillEvent::Reopened { .. } => signal(None, Change::BackfillBegan(backfill.clone())),
        BackfillEvent::Cancelled { .. } => signal(None, Change::BackfillCancelled(backfill.clone())),
        _ => Vec::new(),
    }
}

/// The knowledge that alerts need of the definitions, and of what lies further back in the log.
pub trait Directory {
    /// The project and the tags of a workflow.
    fn about(&self, workflow: &WorkflowId) -> About;

    /// Whether it is defined now: nothing of one that was removed is a failure.
    fn is_defined(&self, workflow: &WorkflowId) -> bool;

    /// The workflow of a backfill.
    fn workflow_of(&self, backfill: &BackfillId) -> Option<WorkflowId>;

    /// The worker that a run was given to; none if it was for no worker.
    fn worker_of(&self, run: &RunId) -> Option<String>;
}

#[cfg(test)]
mod tests {
    use kelos_model::SlotKey;

    use super::*;
    use crate::book::Book;
    use crate::phase::Phase;
    use crate::rule::Rule;
    use crate::settings::Settings;

    struct Nobody;

    impl Directory for Nobody {
        fn about(&self, workflow: &WorkflowId) -> About {
            About { workflow: Some(workflow.clone()), ..About::default() }
        }

        fn is_defined(&self, _: &WorkflowId) -> bool {
            true
        }

        fn workflow_of(&self, _: &BackfillId) -> Option<WorkflowId> {
            None
        }

        fn worker_of(&self, _: &RunId) -> Option<String> {
            None
        }
    }

    fn rules() -> Vec<Rule> {
        let text =
            r#"{"alerts": {"channels": {"c": {"command": ["true"]}}, "rules": [{"to": ["c"], "when": ["late"]}]}}"#;
        Settings::parse(text).unwrap().rules
    }

    #[test]
    fn late_slots_of_a_workflow_are_one_alert_until_all_have_ended() {
        let moment = |minute: i64| Timestamp::from_second(minute * 60).unwrap();
        let slot = |hour: i64| SlotRef::new(WorkflowId::new("w").unwrap(), SlotKey::Time(moment(hour * 60)));
        let mut book = Book::new(rules(), 0, moment(0));
        let mut seq = 0;
        let mut happens = |book: &mut Book, minute: i64, hour: i64, what: SlotEvent| {
            seq += 1;
            let event = Event::Slot { slot: slot(hour), what };
            book.read(&EventRecord { seq, at: moment(minute), previous: 0, event }, &Nobody);
            book.advance(moment(minute));
        };
        happens(&mut book, 60, 0, SlotEvent::Late { deadline: moment(60) });
        happens(&mut book, 120, 1, SlotEvent::Late { deadline: moment(120) });
        let told: Vec<_> = book.notices().map(|notice| (notice.phase, notice.words.clone())).collect();
        let words = "w@1970-01-01T01:00:00.000Z is late: its deadline was 1970-01-01T02:00Z".to_owned();
        assert_eq!(told.last(), Some(&(Phase::Again, words)));
        happens(&mut book, 130, 0, SlotEvent::Succeeded { run: 1 });
        let late = |book: &Book| book.incidents().filter(|one| one.condition == Condition::Late).count();
        assert_eq!(late(&book), 1, "the other one is still late");
        happens(&mut book, 140, 1, SlotEvent::Failed { run: 1, outcome: Outcome::Killed });
        assert_eq!(late(&book), 0, "what failed is told by another alert");
        assert_eq!(book.notices().last().map(|notice| notice.phase), Some(Phase::Over));
    }
}
