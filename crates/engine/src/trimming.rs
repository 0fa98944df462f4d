//! The choice of the history that goes: events of slots that ended long ago, the runs that they dispatched, facts, and records of turns.
//!
//! One look goes through what is left of the old part of the log, a portion at a time, and each portion becomes the [`Trim`] of one turn.
//! In a steady state the old part has only what is kept by number, so that a look costs as much as that and what has aged since.
//! Absent: the moment of a look, the consent to it, and the request to the scheduler.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kelos_model::history::{Retention, Term, Trim};
use kelos_model::{Event, EventRecord, Slot, SlotRef, WorkflowEvent, WorkflowId};
use kelos_store::{EventFilter, PageRequest, Queries, RunFilter, StoreError, TurnRecord};

/// Events that are looked at for one portion.
const EVENTS: usize = 500;
/// Turns by which history is opened to removal for one portion.
const TURNS: usize = 500;
/// The most pages of turns that are looked through for one that does not lie ahead.
const AHEAD_PAGES: usize = 20;
/// Runs of a flow's steps that are read at a time to find its newest runs, and the most pages of them.
const STEP_RUNS: usize = 500;
const STEP_PAGES: usize = 40;

/// A look through the old part of the log.
pub struct TrimLook<'a> {
    reader: &'a dyn Queries,
    term: &'a Term,
    now: Timestamp,
    /// The last turn that history may be removed up to: the one before the last, or the last that a signed checkpoint vouches for.
    most: u64,
    /// The turn that history is open to removal up to, and its last event; none before the first portion.
    open: Option<(u64, u64)>,
    /// The position up to which events were looked at.
    position: u64,
    bounds: BTreeMap<WorkflowId, Bounds>,
}

/// A portion of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Portion {
    /// The removal; none if all of it stays.
    pub trim: Option<Trim>,
    /// The first and the last of the turns that become incomplete by it; none if there are no further ones.
    pub turns: Option<(u64, u64)>,
    /// Whether nothing is left to look at.
    pub is_last: bool,
}

/// The bounds of a workflow's history.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// The moment before which all ends are old.
    before: Timestamp,
    /// The position of the log from which on runs are among the newest, whatever their age.
    newest: u64,
}

impl<'a> TrimLook<'a> {
    /// Begins a look at this moment. History is removed up to a turn at most.
    #[must_use]
    pub fn new(reader: &'a dyn Queries, term: &'a Term, now: Timestamp, most: u64) -> TrimLook<'a> {
        TrimLook { reader, term, now, most, open: None, position: 0, bounds: BTreeMap::new() }
    }

    /// The next portion, whether or not what an earlier one removes is committed.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn portion(&mut self) -> Result<Portion, StoreError> {
        let (before, event) = match self.open {
            Some(open) => open,
            None => self.reader.removed_history().map(|trimmed| (trimmed.turn, trimmed.event))?,
        };
        let (mut until, mut turns, mut has_more) = ((before, event), None, false);
        if self.position >= event {
            let opened = self.next_turns(before)?;
            turns = opened.first().zip(opened.last()).map(|(first, last)| (first.turn, last.turn));
            if let Some(last) = opened.last() {
                until = (last.turn, last.last_event());
            }
            has_more = opened.len() >= TURNS;
        }
        self.open = Some(until);
        let filter = EventFilter { until: until.1, ..EventFilter::after(self.position) };
        let page = self.reader.events(&filter, PageRequest::oldest(EVENTS))?;
        self.position = if page.next.is_none() { until.1 } else { page.rows.last().map_or(until.1, |last| last.seq) };
        let mut going = Vec::new();
        for record in &page.rows {
            self.judge(record, &mut going)?;
        }
        let is_empty = going.is_empty() && until.0 == before;
        let trim = (!is_empty).then(|| Trim::of(until.0, going));
        // What was open already is looked at to its end before further turns are opened.
        let has_more = has_more || page.next.is_some() || (turns.is_none() && !self.next_turns(until.0)?.is_empty());
        Ok(Portion { trim, turns, is_last: !has_more })
    }

    /// The next turns that history is opened to removal by: old ones, and never the last, by which the log continues. A turn that lies ahead
    /// of this look was made by a clock that was wrong, and counts as of the time of the next one that does not.
    fn next_turns(&self, after: u64) -> Result<Vec<TurnRecord>, StoreError> {
        let before = self.cutoff(self.shortest());
        let mut turns = self.turns_after(after)?;
        // Of all that there are the last one stays; of a full page it is only the first of the next one.
        turns.pop();
        let candidates = turns.iter().take_while(|turn| turn.turn <= self.most).count();
        turns.truncate(candidates);
        let mut known = turns.iter().enumerate().filter(|(_, turn)| turn.at <= self.now);
        let old = match known.find(|(_, turn)| turn.at >= before) {
            Some((young, _)) => turns[..young].iter().rposition(|turn| turn.at < before).map_or(0, |last| last + 1),
            None if self.ends_before(turns.last(), before)? => turns.len(),
            None => turns.iter().rposition(|turn| turn.at < before).map_or(0, |last| last + 1),
        };
        turns.truncate(old);
        Ok(turns)
    }

    /// Whether the time of a turn, or of the next one that does not lie ahead, is before a moment.
    fn ends_before(&self, last: Option<&TurnRecord>, before: Timestamp) -> Result<bool, StoreError> {
        let Some(last) = last else { return Ok(false) };
        let mut next = vec![*last];
        for _ in 0..AHEAD_PAGES {
            let Some(end) = next.last().map(|turn| turn.turn) else { break };
            if let Some(known) = next.iter().find(|turn| turn.at <= self.now) {
                return Ok(known.at < before);
            }
            next = self.turns_after(end)?;
        }
        Ok(false)
    }

    fn turns_after(&self, turn: u64) -> Result<Vec<TurnRecord>, StoreError> {
        let (after, paging) = (turn.to_string(), PageRequest::oldest(TURNS + 1));
        Ok(self.reader.turns(paging.after(Some(&after)))?.rows)
    }

    /// Adds the positions that go because of an event: its own, or all of a slot whose last one it is.
    fn judge(&mut self, record: &EventRecord, going: &mut Vec<u64>) -> Result<(), StoreError> {
        match &record.event {
            Event::Slot { slot, .. } => {
                let Some(row) = self.reader.slot(slot)?.filter(|row| row.last_event == record.seq) else {
                    return Ok(());
                };
                if self.goes(slot, &row, record.at)? {
                    going.extend(self.reader.history(slot)?.iter().map(|record| record.seq));
                }
            }
            Event::Workflow { workflow, what: WorkflowEvent::Planned { .. } | WorkflowEvent::Missed { .. } } => {
                if record.at < self.bounds(workflow)?.before {
                    going.push(record.seq);
                }
            }
            // The others are few, and say what a workflow and a backfill are.
            Event::Workflow { .. } | Event::Backfill { .. } => {}
            Event::Register { .. } | Event::Fact { .. } | Event::Access { .. } => {
                if record.at < self.cutoff(self.longest()) {
                    going.push(record.seq);
                }
            }
        }
        Ok(())
    }

    /// Whether the history of a slot goes, whose last event was at a moment.
    fn goes(&mut self, id: &SlotRef, row: &Slot, at: Timestamp) -> Result<bool, StoreError> {
        if row.is_live() || !self.is_past(id, row, at)? {
            return Ok(false);
        }
        if id.key.step().is_none() {
            return Ok(true);
        }
        // A step stays as long as the run of its flow.
        let run = SlotRef::new(id.workflow.clone(), id.key.of_run());
        let Some(row) = self.reader.slot(&run)?.filter(|row| !row.is_live()) else { return Ok(false) };
        self.is_past(&run, &row, row.since)
    }

    /// Whether a slot is old, and not one of the newest of its workflow.
    fn is_past(&mut self, id: &SlotRef, row: &Slot, at: Timestamp) -> Result<bool, StoreError> {
        let bounds = self.bounds(&id.workflow)?;
        let has_run = row.last_run > 0 || row.run_of_flow().is_some();
        Ok(at < bounds.before && (!has_run || row.last_event < bounds.newest))
    }

    fn bounds(&mut self, id: &WorkflowId) -> Result<Bounds, StoreError> {
        if let Some(known) = self.bounds.get(id) {
            return Ok(*known);
        }
        let row = self.reader.workflow(id)?;
        let is_flow = row.as_ref().is_some_and(|row| row.definition.flow.is_some());
        let keeping = row.map_or(self.longest(), |row| self.term.of(&row.definition.project));
        let newest = match (keeping.runs, is_flow) {
            (0, _) => u64::MAX,
            (runs, false) => self.newest_runs(id, runs)?,
            (runs, true) => self.newest_flow_runs(id, runs)?,
        };
        let bounds = Bounds { before: self.cutoff(keeping), newest };
        self.bounds.insert(id.clone(), bounds);
        Ok(bounds)
    }

    /// The position from which on a workflow's newest runs were dispatched, so many of them; 0 if it has no more.
    fn newest_runs(&self, id: &WorkflowId, runs: u32) -> Result<u64, StoreError> {
        let runs = usize::try_from(runs).unwrap_or(usize::MAX);
        let filter = RunFilter { workflow: Some(id.clone()), ..RunFilter::default() };
        let page = self.reader.runs(&filter, PageRequest::newest(runs))?;
        Ok(page.rows.last().filter(|_| page.rows.len() >= runs).map_or(0, |run| run.seq))
    }

    /// The same of the runs of a flow, which are known by those of their steps.
    fn newest_flow_runs(&self, id: &WorkflowId, runs: u32) -> Result<u64, StoreError> {
        let filter = RunFilter { workflow: Some(id.clone()), with_steps: true, ..RunFilter::default() };
        let (mut found, mut from) = (BTreeMap::new(), None);
        let runs = usize::try_from(runs).unwrap_or(usize::MAX);
        for _ in 0..STEP_PAGES {
            let page = self.reader.runs(&filter, PageRequest::newest(STEP_RUNS).after(from.as_deref()))?;
            for run in page.rows {
                let key = run.id.slot.key.of_run();
                if found.len() >= runs && !found.contains_key(&key) {
                    return Ok(found.into_values().min().unwrap_or(0));
                }
                found.insert(key, run.seq);
            }
            from = page.next;
            if from.is_none() {
                return Ok(0);
            }
        }
        Ok(found.into_values().min().unwrap_or(0))
    }

    fn cutoff(&self, keeping: Retention) -> Timestamp {
        let kept = SignedDuration::from_hours(i64::from(keeping.days) * 24);
        self.now.checked_sub(kept).unwrap_or(Timestamp::MIN)
    }

    /// The shortest terms of all projects.
    fn shortest(&self) -> Retention {
        let all = self.term.projects.values().chain([&self.term.usual]);
        all.copied().min_by_key(|keeping| keeping.days).unwrap_or(self.term.usual)
    }

    /// The longest terms of all projects, which hold for all that belongs to none.
    fn longest(&self) -> Retention {
        let all = self.term.projects.values().chain([&self.term.usual]);
        all.copied().max_by_key(|keeping| keeping.days).unwrap_or(self.term.usual)
    }
}

#[cfg(test)]
mod tests {
    use kelos_store::{Commit, Journal, MemoryStore, StoredState};

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// A store with so many turns at each of these moments.
    fn store(turns: &[(&str, usize)]) -> MemoryStore {
        let mut store = MemoryStore::new();
        let lease = store.lease("node", Timestamp::UNIX_EPOCH, 1000).unwrap().unwrap();
        for (moment, count) in turns {
            for n in 0..*count {
                let registers = vec![("b".to_owned(), "k".to_owned(), Some(serde_json::json!(n)))];
                store.commit(lease, &Commit { at: at(moment), registers, ..Commit::default() }).unwrap();
            }
        }
        store
    }

    /// The turn up to which looks at a moment let history go; 0 if none goes.
    fn opened(store: &MemoryStore, now: &str) -> u64 {
        let (reader, term) = (store.reader(), Term::default());
        let mut look = TrimLook::new(&*reader, &term, at(now), u64::MAX);
        let mut until = 0;
        loop {
            let portion = look.portion().unwrap();
            until = portion.trim.map_or(until, |trim| trim.until);
            if portion.is_last {
                return until;
            }
        }
    }

    const FIRST: &str = "2026-01-01T00:00:00Z";
    const AHEAD: &str = "2038-01-01T00:00:00Z";

    #[test]
    fn a_turn_of_a_clock_that_was_ahead_holds_up_nothing_after_it() {
        let log = store(&[(FIRST, 3), (AHEAD, 1), ("2026-01-02T00:00:00Z", 3), ("2026-12-31T00:00:00Z", 1)]);
        assert_eq!(opened(&log, "2027-01-01T00:00:00Z"), 7);
        assert_eq!(opened(&log, "2026-02-01T00:00:00Z"), 0, "nothing is old");
        let many = store(&[(FIRST, 3), (AHEAD, 2 * TURNS + 7), ("2026-01-02T00:00:00Z", 3), (FIRST, 1)]);
        assert_eq!(opened(&many, "2027-01-01T00:00:00Z"), 2 * TURNS as u64 + 13);
    }

    #[test]
    fn a_turn_that_lies_ahead_goes_only_with_an_old_one_after_it() {
        let log = store(&[(FIRST, 3), (AHEAD, 2), ("2026-12-31T00:00:00Z", 2)]);
        assert_eq!(opened(&log, "2027-01-01T00:00:00Z"), 3);
        let end = store(&[(FIRST, 3), (AHEAD, 2)]);
        assert_eq!(opened(&end, "2027-01-01T00:00:00Z"), 3);
        // The clock of the look is the one that is wrong.
        assert_eq!(opened(&log, "1970-01-01T00:00:00Z"), 0);
    }
}
