//! What an event schedule decided lately: what it fired, what it dropped and why.

use jiff::Timestamp;
use kelos_model::event::{Abort, Event};
use kelos_model::time::text;
use kelos_model::trigger::TriggerKind;
use kelos_model::{
    Collected, EventRecord, Explanation, Slot, SlotEvent, SlotRef, SlotState, WorkflowEvent, WorkflowId,
};
use kelos_store::{Page, Reader, SlotFilter, SlotRow, StoreError};

use super::words;

/// What became of something that an event schedule was to do, or what happened to itself.
#[derive(Debug, Clone)]
pub struct Decision {
    /// When.
    pub at: Timestamp,
    /// Position in the log of the event that settled it.
    pub seq: u64,
    /// What kind of decision it is.
    pub kind: Kind,
    /// What it is about; none for what happened to the schedule itself.
    pub slot: Option<SlotRef>,
    /// Where that stands now.
    pub state: Option<SlotState>,
    /// Why, in words.
    pub text: String,
    /// What had been collected.
    pub collected: Option<Box<Collected>>,
    /// Facts that came once the trigger was met, and opened no slot of their own.
    pub absorbed: u32,
    /// What the trigger or the constraints said.
    pub explanation: Option<Explanation>,
}

/// What kind of decision something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is not settled yet: it collects, is held, or is queued.
    Pending,
    /// A run was started.
    Fired,
    /// A constraint that was not met ended it.
    Aborted,
    /// It waited too long.
    Expired,
    /// The schedule was disabled meanwhile.
    Disabled,
    /// The schedule was changed meanwhile.
    Changed,
    /// The schedule was deleted meanwhile.
    Deleted,
    /// Its trigger can never be met, or a person had it passed over.
    Skipped,
    /// A person ended it.
    Killed,
    /// Cron times passed while nobody scheduled.
    Missed,
    /// Something happened to the schedule itself: it was defined, changed, enabled, disabled or deleted.
    Schedule,
}

impl Kind {
    /// Its name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Pending => "pending",
            Kind::Fired => "fired",
            Kind::Aborted => "aborted",
            Kind::Expired => "expired",
            Kind::Disabled => "disabled",
            Kind::Changed => "changed",
            Kind::Deleted => "deleted",
            Kind::Skipped => "skipped",
            Kind::Killed => "killed",
            Kind::Missed => "missed",
            Kind::Schedule => "schedule",
        }
    }
}

/// So many things that happened to a schedule itself are on a page at the most.
const MOST_OF_ITSELF: usize = 1000;

/// Reads a page of decisions, newest first: those about so many slots, and what happened to the schedule itself meanwhile.
///
/// # Errors
/// When the store can't be read, or the cursor is not one of ours.
pub fn read(
    reader: &dyn Reader,
    id: &WorkflowId,
    from: Option<&str>,
    limit: usize,
) -> Result<Page<Decision>, StoreError> {
    let (newest, cursor) = match from.map(parse).transpose()? {
        Some((newest, cursor)) => (newest, Some(cursor)),
        None => (reader.last_seq()?, None),
    };
    let filter = SlotFilter { workflow: Some(id.clone()), ..SlotFilter::default() };
    let page = reader.slots(&filter, cursor.as_deref(), limit)?;
    let mut decisions = Vec::new();
    let mut oldest = newest.saturating_add(1);
    for row in page.rows {
        let history = reader.history(&row.id)?;
        oldest = history.first().map_or(oldest, |first| first.seq.min(oldest));
        decisions.push(of_slot(row, &history));
    }
    let oldest = if page.next.is_none() { 0 } else { oldest.saturating_sub(1) };
    decisions.extend(of_schedule(reader, id, oldest, newest)?);
    decisions.sort_by_key(|one| std::cmp::Reverse(one.seq));
    let next = page.next.map(|next| format!("{oldest}-{next}"));
    Ok(Page { rows: decisions, next })
}

fn parse(cursor: &str) -> Result<(u64, String), StoreError> {
    let parsed = cursor.split_once('-').and_then(|(seq, rest)| Some((seq.parse().ok()?, rest.to_owned())));
    parsed.ok_or_else(|| StoreError::Cursor { cursor: cursor.to_owned() })
}

/// What happened to a schedule itself after one position of the log, up to another.
fn of_schedule(reader: &dyn Reader, id: &WorkflowId, after: u64, to: u64) -> Result<Vec<Decision>, StoreError> {
    let before = to.saturating_add(1).to_string();
    let page = reader.workflow_events(id, Some(&before), MOST_OF_ITSELF)?;
    let meanwhile = page.rows.into_iter().take_while(|record| record.seq > after);
    Ok(meanwhile.filter_map(of_workflow).collect())
}

fn of_workflow(record: EventRecord) -> Option<Decision> {
    let Event::Workflow { what, .. } = &record.event else { return None };
    let (kind, text) = match what {
        WorkflowEvent::Missed { range, times } => {
            let (from, to) = (text::format_short(range.start), text::format_short(range.end));
            let text = match times {
                1 => format!("a time passed at {from} while nobody scheduled, and does not count"),
                times => format!("{times} times passed from {from} to {to} while nobody scheduled, and don't count"),
            };
            (Kind::Missed, text)
        }
        WorkflowEvent::Defined { version: 1, by } => (Kind::Schedule, format!("created{}", by_words(by.as_deref()))),
        WorkflowEvent::Defined { version, by } => {
            (Kind::Schedule, format!("defined, version {version}{}", by_words(by.as_deref())))
        }
        WorkflowEvent::Removed { by } => (Kind::Schedule, format!("deleted{}", by_words(by.as_deref()))),
        WorkflowEvent::Paused { by } => (Kind::Schedule, format!("disabled by {by}")),
        WorkflowEvent::Resumed { by } => (Kind::Schedule, format!("enabled by {by}")),
        WorkflowEvent::Planned { .. } | WorkflowEvent::Replanned { .. } | WorkflowEvent::Imported { .. } => {
            return None;
        }
    };
    let (at, seq) = (record.at, record.seq);
    Some(Decision { at, seq, kind, slot: None, state: None, text, collected: None, absorbed: 0, explanation: None })
}

/// The last event of a slot that settled something, and what it settled.
struct Settled<'a> {
    record: Option<&'a EventRecord>,
    kind: Kind,
    text: String,
    explanation: Option<Explanation>,
}

fn of_slot(row: SlotRow, history: &[EventRecord]) -> Decision {
    let SlotRow { id, slot } = row;
    let settled = history.iter().rev().find_map(|record| settles(record, &slot));
    let settled = settled.unwrap_or_else(|| Settled {
        record: history.last(),
        kind: Kind::Pending,
        text: format!("{} since {}", slot.state, text::format_short(slot.since)),
        explanation: None,
    });
    let (at, seq) = settled.record.map_or((slot.since, slot.last_event), |record| (record.at, record.seq));
    let absorbed = absorbed(history);
    let mut text = settled.text;
    if absorbed > 0 {
        let facts = if absorbed == 1 { "1 more fact".to_owned() } else { format!("{absorbed} more facts") };
        text.push_str(&format!("; {facts} came while it was held"));
    }
    Decision {
        at,
        seq,
        kind: settled.kind,
        slot: Some(id),
        state: Some(slot.state),
        text,
        collected: slot.collected,
        absorbed,
        explanation: settled.explanation,
    }
}

fn settles<'a>(record: &'a EventRecord, slot: &Slot) -> Option<Settled<'a>> {
    let Event::Slot { what, .. } = &record.event else { return None };
    let settled = |kind, text, explanation: Option<&Explanation>| Settled {
        record: Some(record),
        kind,
        text,
        explanation: explanation.cloned(),
    };
    Some(match what {
        SlotEvent::Dispatched { run, .. } => settled(Kind::Fired, fired_words(*run, slot), None),
        SlotEvent::Skipped { explanation } if explanation.kind == TriggerKind::Constraints => {
            let text = format!("a constraint was not met: {}", words::unmet(explanation));
            settled(Kind::Aborted, text, Some(explanation))
        }
        SlotEvent::Skipped { explanation } => settled(Kind::Skipped, explanation.text.clone(), Some(explanation)),
        SlotEvent::Expired { timeout_seconds, explanation } => {
            let lacking = match explanation.kind {
                TriggerKind::Constraints => words::unmet(explanation),
                _ => words::waits_for(explanation),
            };
            settled(Kind::Expired, format!("waited more than {timeout_seconds} s: {lacking}"), Some(explanation))
        }
        SlotEvent::Aborted { cause, by } => {
            let (kind, verb) = match cause {
                Abort::Disabled => (Kind::Disabled, "disabled"),
                Abort::Changed => (Kind::Changed, "changed"),
                Abort::Deleted => (Kind::Deleted, "deleted"),
            };
            settled(kind, format!("the schedule was {verb}{}", by_words(by.as_deref())), None)
        }
        SlotEvent::SkippedBy { by, reason } => {
            settled(Kind::Skipped, format!("passed over by {by}{}", reason_words(reason.as_deref())), None)
        }
        SlotEvent::Killed { by, reason } => {
            settled(Kind::Killed, format!("killed by {by}{}", reason_words(reason.as_deref())), None)
        }
        _ => return None,
    })
}

fn fired_words(run: u32, slot: &Slot) -> String {
    let asked = slot.collected.as_ref().is_some_and(|collected| collected.asked.is_some());
    let why = if asked { ", as somebody asked" } else { "" };
    match slot.state {
        SlotState::Dispatched => format!("run {run} was dispatched{why}"),
        SlotState::Running => format!("run {run} goes on{why}"),
        SlotState::Backoff => format!("run {run} failed{why}, and is tried again"),
        state => format!("run {run} {state}{why}"),
    }
}

/// Facts that a slot collected once it was held.
fn absorbed(history: &[EventRecord]) -> u32 {
    let mut held = false;
    let mut absorbed = 0_u32;
    for record in history {
        match &record.event {
            Event::Slot { what: SlotEvent::Held { .. }, .. } => held = true,
            Event::Slot { what: SlotEvent::Collected { .. }, .. } if held => absorbed = absorbed.saturating_add(1),
            _ => {}
        }
    }
    absorbed
}

fn by_words(by: Option<&str>) -> String {
    by.map(|by| format!(" by {by}")).unwrap_or_default()
}

fn reason_words(reason: Option<&str>) -> String {
    reason.map(|reason| format!(" ({reason})")).unwrap_or_default()
}
