//! The reader of the log: it fills the ledger with what is stored, and then counts each event.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kelos_engine::{Handle, Status};
use kelos_model::{Event, EventRecord, Run, RunState, SlotEvent, SlotRef, SlotState, WorkflowId};
use kelos_store::{About, Columns, EventFilter, PageRequest, Queries, RunFilter, SlotRow, StoreError, Tally};

use crate::ledger::Ledger;
use crate::reasons;
use crate::workflow::LiveSlot;

/// Events that are read and counted at a time.
const AT_ONCE: usize = 500;
/// Newest events of a waiting slot that are read for its reason.
const LOOKED_AT: usize = 8;
/// The least time between two looks at the log: a busy leader commits hundreds of turns in it, which are read together.
const PAUSE: Duration = Duration::from_millis(100);
/// The time after which an error of the store is met again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// A ledger that a reader of the log keeps up to date.
#[derive(Clone)]
pub(crate) struct Follower {
    ledger: Arc<Mutex<Ledger>>,
    reader: Arc<dyn Queries>,
}

impl Follower {
    pub(crate) fn new(reader: Arc<dyn Queries>, most: usize) -> Follower {
        Follower { ledger: Arc::new(Mutex::new(Ledger::new(most))), reader }
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the commits of an engine, or of the leader whose standby it is, until it has ended.
    pub(crate) async fn run(self, handle: Handle) {
        let (mut commits, mut status) = (handle.watch_commits(), handle.watch_status());
        loop {
            let follower = self.clone();
            let read = tokio::task::spawn_blocking(move || follower.catch_up()).await;
            match read {
                Ok(Ok(())) => tokio::time::sleep(PAUSE).await,
                Ok(Err(error)) => {
                    tracing::debug!("failed to {error}; counting goes on once the store can be read");
                    tokio::time::sleep(TRY_AGAIN).await;
                    if *status.borrow() == Status::Stopped {
                        return;
                    }
                    continue;
                }
                Err(_) => return,
            }
            tokio::select! {
                changed = commits.changed() => if changed.is_err() { return },
                _ = status.wait_for(|status| *status == Status::Stopped) => return,
            }
        }
    }

    /// Counts all that is stored and not counted yet. Blocks.
    fn catch_up(&self) -> Result<(), StoreError> {
        if !self.ledger().is_complete() {
            self.fill()?;
        }
        loop {
            let position = self.ledger().position();
            let page = self.reader.events(&EventFilter::after(position), PageRequest::oldest(AT_ONCE))?;
            let Some(first) = page.rows.first() else { break };
            if first.seq != position + 1 {
                // The state was replaced by a newer one.
                self.fill()?;
                continue;
            }
            let mut ledger = self.ledger();
            count(&mut ledger, &*self.reader, &page.rows)?;
            if page.rows.len() < AT_ONCE {
                // Nobody sees the numbers in between.
                self.settle(&mut ledger)?;
            }
        }
        self.settle(&mut self.ledger())
    }

    /// Counts the ended slots of some workflows anew: one of them was opened again or marked, and its history was removed with the state in
    /// which it had ended. So they are counted in one state of the store, once the events up to it are counted.
    fn settle(&self, ledger: &mut Ledger) -> Result<(), StoreError> {
        if ledger.unsure().is_empty() {
            return Ok(());
        }
        let frozen = self.reader.frozen()?;
        loop {
            let position = ledger.position();
            let page = frozen.events(&EventFilter::after(position), PageRequest::oldest(AT_ONCE))?;
            match page.rows.first() {
                None => break,
                // The next look counts all anew.
                Some(first) if first.seq != position + 1 => return Ok(()),
                Some(_) => count(ledger, &*frozen, &page.rows)?,
            }
        }
        for id in ledger.unsure().clone() {
            let (row, tallies) = (frozen.workflow(&id)?, frozen.slot_tallies(&all_times(), Some(&id))?);
            row.into_iter().for_each(|row| ledger.set(row));
            ledger.forget_ended(&id);
            add_ended(ledger, tallies);
        }
        Ok(())
    }

    /// Counts all that is stored anew; numbers that only grow go on.
    fn fill(&self) -> Result<(), StoreError> {
        let frozen = self.reader.frozen()?;
        let mut filled = self.ledger().emptied();
        frozen.workflows(None)?.into_iter().for_each(|row| filled.set(row));
        add_ended(&mut filled, frozen.slot_tallies(&all_times(), None)?);
        add_live(&mut filled, &*frozen)?;
        filled.complete(frozen.last_seq()?);
        *self.ledger() = filled;
        Ok(())
    }
}

/// Counts events that follow those which are counted.
fn count(ledger: &mut Ledger, reader: &dyn Queries, events: &[EventRecord]) -> Result<(), StoreError> {
    for id in ledger.to_read(events) {
        reader.workflow(&id)?.into_iter().for_each(|row| ledger.set(row));
    }
    events.iter().try_for_each(|record| ledger.count(record, |slot| ended(reader, slot, record.seq)))
}

/// The state before an event of a slot that had ended, from its history; none if that was removed.
fn ended(reader: &dyn Queries, id: &SlotRef, seq: u64) -> Result<Option<SlotState>, StoreError> {
    let before = EventFilter { until: seq - 1, ..EventFilter::about(About::Slot(id.clone())) };
    let history = reader.events(&before, PageRequest::oldest(usize::MAX))?.rows;
    Ok(history.iter().fold(None, |state, record| match &record.event {
        Event::Slot { what, .. } => SlotState::following(state, what).or(state),
        _ => state,
    }))
}

/// All time as one column.
fn all_times() -> Columns {
    let start = Timestamp::MIN;
    Columns { start, width: Timestamp::MAX.as_millisecond().saturating_sub(start.as_millisecond()), count: 1 }
}

/// Adds the slots that have ended, which are counted by the store.
fn add_ended(ledger: &mut Ledger, tallies: BTreeMap<WorkflowId, Vec<Tally>>) {
    for (id, tallies) in tallies {
        for tally in tallies.iter().filter(|tally| tally.state.is_final()) {
            let of_backlog = match tally.state {
                SlotState::Killed => ledger.killed_of_backlog(&id),
                _ => 0,
            };
            ledger.add_ended(&id, tally.state, u64::from(tally.count).saturating_sub(of_backlog));
        }
    }
}

/// Adds the live slots, with what they wait for and when their runs began.
fn add_live(ledger: &mut Ledger, reader: &dyn Queries) -> Result<(), StoreError> {
    for row in reader.live_slots()?.into_iter().filter(|row| row.id.key.step().is_none()) {
        let SlotRow { id, slot } = row;
        let mut live = LiveSlot::new(slot.state, &mut ledger.reasons);
        live.run_alive = slot.run_alive;
        live.backfill.clone_from(&slot.backfill);
        if matches!(slot.state, SlotState::Waiting | SlotState::Held)
            && let Some(code) = explained(reader, &id)?
        {
            live.reason = ledger.reasons.id(&code);
        }
        if slot.run_alive {
            live.began = Some(slot.since);
        }
        ledger.add_live(id, live);
    }
    let open = RunFilter { states: vec![RunState::Dispatched, RunState::Running], ..RunFilter::default() };
    for run in reader.runs(&open, PageRequest::oldest(usize::MAX))?.rows {
        let Run { id, dispatched_at, started_at, .. } = run;
        ledger.began(&id.slot, started_at.unwrap_or(dispatched_at));
    }
    Ok(())
}

/// The code of what a waiting slot was found to wait for last, since it began to wait.
fn explained(reader: &dyn Queries, id: &SlotRef) -> Result<Option<String>, StoreError> {
    let newest = reader.events(&EventFilter::about(About::Slot(id.clone())), PageRequest::newest(LOOKED_AT))?;
    for record in newest.rows {
        let Event::Slot { what, .. } = record.event else { continue };
        match what {
            SlotEvent::Looked { explanation } => return Ok(Some(reasons::of_explanation(&explanation).to_owned())),
            SlotEvent::Planned { .. } | SlotEvent::Held { .. } | SlotEvent::Reopened { .. } => return Ok(None),
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
