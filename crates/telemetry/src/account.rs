//! Accounts of runs and slots: all that is stored of one that a collector is told.

use jiff::Timestamp;
use kelos_model::{Answer, Event, EventRecord, Finding, Reason, Run, SlotEvent, SlotRef, SlotState, Workflow};
use kelos_store::{Queries, StoreError};

/// Something that came to its end, or began.
pub(crate) enum Account {
    /// A run was started.
    Began(RunAccount),
    /// A run has ended.
    Ended(RunAccount),
    /// A slot came to a final state.
    Final(SlotAccount),
}

/// A run, with what its slot was opened and started by.
pub(crate) struct RunAccount {
    /// The run, as it is stored now.
    pub(crate) run: Run,
    /// When its slot was opened for it.
    pub(crate) opening: Opening,
    /// The definition with which it began, if that is known.
    pub(crate) workflow: Option<Workflow>,
    /// The answers that its trigger had.
    pub(crate) met: Option<Reason>,
    /// Of a step, the run of its flow.
    pub(crate) flow_run: Option<u32>,
}

/// A slot that came to a final state.
pub(crate) struct SlotAccount {
    /// The slot.
    pub(crate) slot: SlotRef,
    /// The state.
    pub(crate) state: SlotState,
    /// When it was opened.
    pub(crate) opening: Opening,
    /// When it came to that state.
    pub(crate) at: Timestamp,
    /// The slots that it waited for and that have succeeded.
    pub(crate) waited_for: Vec<Dependency>,
    /// Of a step, the run of its flow.
    pub(crate) flow_run: Option<u32>,
}

/// The event by which a slot was opened.
#[derive(Clone, Copy)]
pub(crate) struct Opening {
    /// Its position in the log.
    pub(crate) seq: u64,
    /// Its time.
    pub(crate) at: Timestamp,
}

/// A slot that another one waited for.
pub(crate) struct Dependency {
    pub(crate) slot: SlotRef,
    pub(crate) opening: Opening,
}

/// The history of a slot up to an event.
struct Past {
    opening: Opening,
    met: Option<Reason>,
    state: Option<SlotState>,
    flow_run: Option<u32>,
}

/// The accounts of which an event is the reason.
///
/// # Errors
/// When the store can't be read.
pub(crate) fn of_event(reader: &dyn Queries, record: &EventRecord) -> Result<Vec<Account>, StoreError> {
    let Event::Slot { slot, what } = &record.event else { return Ok(Vec::new()) };
    let (began, ended) = (started(what), ended(what));
    let may_be_final = ended.is_some() || may_end_a_slot(what);
    if began.is_none() && !may_be_final {
        return Ok(Vec::new());
    }
    let Some(past) = past(reader, slot, record.seq)? else { return Ok(Vec::new()) };
    let mut told = Vec::new();
    if let Some(run) = began.or(ended)
        && let Some(account) = of_run(reader, slot, run, &past)?
        // One that no worker fetched was no run.
        && (account.run.started_at.is_some() || !matches!(what, SlotEvent::Withdrawn { .. }))
    {
        told.push(if began.is_some() { Account::Began(account) } else { Account::Ended(account) });
    }
    if let Some(state) = past.state.filter(|state| may_be_final && state.is_final()) {
        let waited_for = past.met.as_ref().map_or(Ok(Vec::new()), |met| waited_for(reader, met))?;
        let (opening, flow_run) = (past.opening, past.flow_run);
        // The end of a run that was killed before is none of its slot.
        if !matches!(what, SlotEvent::RunEnded { .. }) {
            told.push(Account::Final(SlotAccount {
                slot: slot.clone(),
                state,
                opening,
                at: record.at,
                waited_for,
                flow_run,
            }));
        }
    }
    Ok(told)
}

/// The number of the run that an event says has started.
fn started(what: &SlotEvent) -> Option<u32> {
    if let SlotEvent::Started { run, .. } = what { Some(*run) } else { None }
}

/// The number of the run that an event ends.
fn ended(what: &SlotEvent) -> Option<u32> {
    match what {
        SlotEvent::Succeeded { run }
        | SlotEvent::BackedOff { run, .. }
        | SlotEvent::Failed { run, .. }
        | SlotEvent::Recovered { run, .. }
        | SlotEvent::Withdrawn { run }
        | SlotEvent::RunEnded { run, .. } => Some(*run),
        _ => None,
    }
}

fn may_end_a_slot(what: &SlotEvent) -> bool {
    matches!(
        what,
        SlotEvent::Expired { .. }
            | SlotEvent::Skipped { .. }
            | SlotEvent::SkippedBy { .. }
            | SlotEvent::Aborted { .. }
            | SlotEvent::Killed { .. }
            | SlotEvent::MarkedSucceeded { .. }
    )
}

/// Reads the history of a slot up to a position; none if nothing is left of it. A history whose beginning was removed begins with the event
/// that opened the slot again, or that marked it.
fn past(reader: &dyn Queries, id: &SlotRef, until: u64) -> Result<Option<Past>, StoreError> {
    let (mut state, mut past): (Option<SlotState>, Option<Past>) = (None, None);
    for record in reader.history(id)?.into_iter().take_while(|record| record.seq <= until) {
        let Event::Slot { what, .. } = &record.event else { continue };
        let was_final = state.is_some_and(SlotState::is_final);
        let opens = past.is_none() || matches!(what, SlotEvent::Reopened { .. }) || was_final && opens_a_step(what);
        if opens {
            let opening = Opening { seq: record.seq, at: record.at };
            past = Some(Past { opening, met: None, state: None, flow_run: None });
        }
        state = SlotState::following(state, what).or(state);
        let Some(past) = &mut past else { continue };
        past.state = state;
        match what {
            SlotEvent::TriggerMet { explanation } | SlotEvent::Held { explanation, .. } => {
                past.met = Some(explanation.clone());
            }
            SlotEvent::StepOpened { run, .. } => past.flow_run = Some(*run),
            _ => {}
        }
    }
    Ok(past)
}

fn opens_a_step(what: &SlotEvent) -> bool {
    matches!(what, SlotEvent::StepOpened { .. } | SlotEvent::Resumed { .. })
}

fn of_run(reader: &dyn Queries, slot: &SlotRef, number: u32, past: &Past) -> Result<Option<RunAccount>, StoreError> {
    let Some(run) = reader.slot_runs(slot)?.into_iter().find(|run| run.id.number == number) else { return Ok(None) };
    let version = reader.run_versions(std::slice::from_ref(&run))?.pop().flatten();
    let definition = version.map(|version| reader.definitions(&slot.workflow, Some(version.number))).transpose()?;
    let workflow = definition.and_then(|mut past| past.pop()).map(|past| past.definition);
    Ok(Some(RunAccount { run, opening: past.opening, workflow, met: past.met.clone(), flow_run: past.flow_run }))
}

/// The most slots that are linked with one.
const MOST_LINKS: usize = 32;

fn waited_for(reader: &dyn Queries, met: &Reason) -> Result<Vec<Dependency>, StoreError> {
    let mut slots = Vec::new();
    each_met(met, &mut |finding| match finding {
        Finding::UpstreamIs { slot, state: SlotState::Succeeded }
        | Finding::ParentIs { slot, state: SlotState::Succeeded, .. }
            if slots.len() < MOST_LINKS && !slots.contains(slot) =>
        {
            slots.push(slot.clone());
        }
        _ => {}
    });
    let mut waited = Vec::new();
    for slot in slots {
        if let Some(past) = past(reader, &slot, u64::MAX)? {
            waited.push(Dependency { slot, opening: past.opening });
        }
    }
    Ok(waited)
}

/// Calls a function with each finding of a reason that is met, and that made it so.
pub(crate) fn each_met<'a>(reason: &'a Reason, call: &mut impl FnMut(&'a Finding)) {
    if reason.answer != Answer::Met || matches!(reason.finding, Finding::NoneOf) {
        return;
    }
    call(&reason.finding);
    reason.nested.iter().for_each(|nested| each_met(nested, call));
}

#[cfg(test)]
mod tests;
