//! The latest decisions of an event schedule: the slots that it fired or dropped, with the reasons.

use jiff::Timestamp;
use kelos_model::event::{Abort, Event};
use kelos_model::time::text;
use kelos_model::{
    Collection, EventRecord, Reason, ReasonKind, Slot, SlotEvent, SlotRef, SlotState, WorkflowEvent, WorkflowId, reason,
};
use kelos_store::{About, EventFilter, Page, PageRequest, Queries, SlotFilter, SlotRow, StoreError};
use kelos_wire::words::{Act, because};

use super::words;

/// A decision about a slot of an event schedule, or a change of the schedule itself.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The time.
    pub at: Timestamp,
    /// Position in the log of the event that settled it.
    pub seq: u64,
    /// Its kind.
    pub kind: Kind,
    /// The slot; none for a change of the schedule itself.
    pub slot: Option<SlotRef>,
    /// The present state of the slot.
    pub state: Option<SlotState>,
    /// The reason, in words.
    pub text: String,
    /// The facts that had been collected.
    pub collected: Option<Box<Collection>>,
    /// Facts that came once the trigger was met, and opened no slot of their own.
    pub absorbed: u32,
    /// The reason tree of the trigger or the constraints.
    pub explanation: Option<Reason>,
}

/// The kind of a decision.
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
    /// A misfire: cron times passed while no leader was scheduling.
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
/// The number of a slot's newest events that are read: the one that settled it is among its last, and any number of
/// collected facts may precede it.
/// before.
const LOOKED_AT: usize = 100;

/// Reads a page of decisions, newest first: those about so many slots, and what happened to the schedule itself meanwhile.
///
/// # Errors
/// When the store can't be read, or the cursor is not one of ours.
pub fn read(
    reader: &dyn Queries,
    id: &WorkflowId,
    from: Option<&str>,
    limit: usize,
) -> Result<Page<Decision>, StoreError> {
    let (newest, cursor) = match from.map(parse).transpose()? {
        Some((newest, cursor)) => (newest, Some(cursor)),
        None => (reader.last_seq()?, None),
    };
    let filter = SlotFilter { workflow: Some(id.clone()), ..SlotFilter::default() };
    let page = reader.slots(&filter, PageRequest::newest(limit).after(cursor.as_deref()))?;
    let mut decisions = Vec::new();
    let mut oldest = newest.saturating_add(1);
    for row in page.rows {
        let latest =
            reader.events(&EventFilter::about(About::Slot(row.id.clone())), PageRequest::newest(LOOKED_AT))?.rows;
        let decision = of_slot(row, &latest);
        oldest = oldest.min(decision.seq);
        decisions.push(decision);
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

/// The changes of a schedule itself after one position of the log, up to another.
fn of_schedule(reader: &dyn Queries, id: &WorkflowId, after: u64, to: u64) -> Result<Vec<Decision>, StoreError> {
    let filter = EventFilter { about: About::WorkflowItself(id.clone()), after, until: to };
    let page = reader.events(&filter, PageRequest::newest(MOST_OF_ITSELF))?;
    Ok(page.rows.into_iter().filter_map(of_workflow).collect())
}

fn of_workflow(record: EventRecord) -> Option<Decision> {
    let Event::Workflow { what, .. } = &record.event else { return None };
    let (kind, text) = match what {
        WorkflowEvent::Missed { range, times } => {
            let (from, to) = (text::format_short(range.start), text::format_short(range.end));
            let text = match times {
                1 => format!("a misfire at {from} is not counted"),
                times => format!("{times} misfires from {from} to {to} are not counted"),
            };
            (Kind::Missed, text)
        }
        WorkflowEvent::Defined { version: version @ 2.., .. } => {
            (Kind::Schedule, format!("{}: version {version}", Act::of_schedule(what)?))
        }
        WorkflowEvent::Frozen { breach } => (Kind::Schedule, format!("frozen, as an invariant broke: {breach}")),
        WorkflowEvent::SetAside { input, .. } => (Kind::Schedule, format!("{input} was set aside")),
        WorkflowEvent::Thawed { .. } => (Kind::Schedule, Act::of_schedule(what)?.with(" after it was frozen")),
        _ => (Kind::Schedule, Act::of_schedule(what)?.to_string()),
    };
    let (at, seq) = (record.at, record.seq);
    Some(Decision { at, seq, kind, slot: None, state: None, text, collected: None, absorbed: 0, explanation: None })
}

/// The last event of a slot that settled something, and what it settled.
struct Settlement<'a> {
    record: Option<&'a EventRecord>,
    kind: Kind,
    text: String,
    explanation: Option<Reason>,
}

/// The decision about a slot with these newest events, newest first.
fn of_slot(row: SlotRow, latest: &[EventRecord]) -> Decision {
    let SlotRow { id, slot } = row;
    let settled = latest.iter().find_map(|record| settles(record, &slot));
    let settled = settled.unwrap_or_else(|| unsettled(latest.first(), &slot));
    let (at, seq) = settled.record.map_or((slot.since, slot.last_event), |record| (record.at, record.seq));
    let absorbed = absorbed(latest, &slot);
    let mut text = settled.text;
    if absorbed > 0 {
        let facts = match absorbed {
            1 => "1 more fact".to_owned(),
            some if latest.len() < LOOKED_AT => format!("{some} more facts"),
            some => format!("{some} more facts, or more of them,"),
        };
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

/// If none of these events settled it, the slot is under way, or its run is older than they are.
fn unsettled<'a>(newest: Option<&'a EventRecord>, slot: &Slot) -> Settlement<'a> {
    let since = text::format_short(slot.since);
    let (kind, text) = match slot.last_run {
        0 => (Kind::Pending, format!("{} since {since}", slot.state)),
        run => (Kind::Fired, fired_words(run, slot)),
    };
    Settlement { record: newest, kind, text, explanation: None }
}

fn settles<'a>(record: &'a EventRecord, slot: &Slot) -> Option<Settlement<'a>> {
    let Event::Slot { what, .. } = &record.event else { return None };
    let settled = |kind, text, explanation: Option<&Reason>| Settlement {
        record: Some(record),
        kind,
        text,
        explanation: explanation.cloned(),
    };
    Some(match what {
        SlotEvent::Dispatched { run, .. } => settled(Kind::Fired, fired_words(*run, slot), None),
        // Earlier events belong to another run.
        SlotEvent::Reopened { by, reason, .. } => {
            let (since, reason) = (text::format_short(slot.since), because(reason.as_deref()));
            settled(Kind::Pending, format!("run again by {by}{reason}: {} since {since}", slot.state), None)
        }
        SlotEvent::MarkedSucceeded { .. } | SlotEvent::SkippedBy { .. } => {
            settled(Kind::Skipped, Act::of_slot(what)?.to_string(), None)
        }
        SlotEvent::Skipped { explanation } if explanation.kind == ReasonKind::Constraints => {
            let text = format!("a constraint was not met: {}", words::unmet(explanation));
            settled(Kind::Aborted, text, Some(explanation))
        }
        SlotEvent::Skipped { explanation } => {
            settled(Kind::Skipped, reason::words::text(explanation), Some(explanation))
        }
        SlotEvent::Expired { timeout_seconds, explanation } => {
            let lacking = match explanation.kind {
                ReasonKind::Constraints => words::unmet(explanation),
                _ => words::waits_for(explanation),
            };
            settled(Kind::Expired, format!("waited more than {timeout_seconds} s: {lacking}"), Some(explanation))
        }
        SlotEvent::Aborted { cause, .. } => {
            let kind = match cause {
                Abort::Disabled => Kind::Disabled,
                Abort::Changed => Kind::Changed,
                Abort::Deleted => Kind::Deleted,
            };
            settled(kind, format!("the schedule was {}", Act::of_slot(what)?), None)
        }
        SlotEvent::Killed { .. } => settled(Kind::Killed, Act::of_slot(what)?.to_string(), None),
        _ => return None,
    })
}

fn fired_words(run: u32, slot: &Slot) -> String {
    let asked = slot.collected.as_ref().and_then(|collected| collected.asked.as_ref());
    let who = asked.map(|asked| asked.by.as_ref().map_or("somebody", |by| &*by.name));
    let why = who.map(|who| format!(", as {who} asked")).unwrap_or_default();
    match slot.state {
        SlotState::Dispatched => format!("run {run} was dispatched{why}"),
        SlotState::Running => format!("run {run} is live{why}"),
        SlotState::Backoff => format!("run {run} failed{why}, and will be retried"),
        // The pause after a run that failed is over.
        state if !state.is_final() => format!("run {run} failed{why}, and the next is {state}"),
        state => format!("run {run} {state}{why}"),
    }
}

/// The number of facts that a slot collected once it was held, as far as its newest events tell.
fn absorbed(latest: &[EventRecord], slot: &Slot) -> u32 {
    let mut absorbed = 0_u32;
    for record in latest {
        match &record.event {
            Event::Slot { what: SlotEvent::Held { .. }, .. } => return absorbed,
            Event::Slot { what: SlotEvent::Collected { .. }, .. } => absorbed = absorbed.saturating_add(1),
            _ => {}
        }
    }
    if slot.state == SlotState::Held { absorbed } else { 0 }
}
