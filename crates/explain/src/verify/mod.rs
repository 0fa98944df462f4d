//! Verification of what is stored: turns against their events, and the fold of the log against the slots.
//!
//! The log is read from its beginning, a page at a time, once for the digests and beside it once for the slots. Only slots with events to
//! come are in memory.

mod chain;
mod fold;
mod registers;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;

use kelos_model::history::RemovedHistory;
use kelos_model::{EventRecord, SlotRef};
use kelos_store::{Digest, EventFilter, Page, PageRequest, Queries, SlotFilter, SlotRow, StoreError, TurnRecord};

use chain::Chain;
use fold::Fold;
use registers::Registers;

/// Events and turns that are read at a time.
const AT_ONCE: usize = 1_000;

/// The result: how much was checked, and the disagreements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// The number of verified turns.
    pub turns: u64,
    /// The number of their events.
    pub events: u64,
    /// Slots to which the log folds as they are in the table.
    pub slots: u64,
    /// The first turn at which the chain of digests breaks: it, or a turn after it, is not what was committed.
    pub broken_at: Option<u64>,
    /// The disagreements; no more than were asked for.
    pub disagreements: Vec<Disagreement>,
}

/// Something that does not agree, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disagreement {
    /// In which turn.
    pub turn: Option<u64>,
    /// At which position of the log.
    pub event: Option<u64>,
    /// About which slot.
    pub slot: Option<SlotRef>,
    /// The difference, in words.
    pub what: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turn = self.turn.map(|turn| format!("turn {turn}"));
        let event = self.event.map(|event| format!("event {event}"));
        let places: Vec<String> =
            [turn, event, self.slot.as_ref().map(SlotRef::to_string)].into_iter().flatten().collect();
        match places.is_empty() {
            true => f.write_str(&self.what),
            false => write!(f, "{}: {}", places.join(", "), self.what),
        }
    }
}

/// Verifies everything that a store has now, while others may continue to write; returns at most `limit` disagreements. The turns are
/// verified beside the slots, in a thread of their own.
///
/// # Errors
/// When the medium fails. Damaged rows that can't be read are a disagreement.
pub fn verify(reader: &dyn Queries, limit: usize) -> Result<Verification, StoreError> {
    let (of_slots, of_turns) = (reader.frozen()?, reader.frozen()?);
    // The turns are read from the later snapshot, which has all that the other one has.
    let last = read(of_slots.turns(PageRequest::newest(1)))?.ok().and_then(|page| page.rows.into_iter().next());
    let last = last.map_or(u64::MAX, |last| last.turn);
    let (chain, walk) = std::thread::scope(|scope| {
        let chain = scope.spawn(|| Chain::verify(&*of_turns, last, limit));
        let walk = Walk::through(&*of_slots, limit);
        (chain.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), walk)
    });
    let (chain, mut verified) = (chain?, walk?);
    (verified.turns, verified.events, verified.broken_at) = (chain.turns, chain.events, chain.broken_at);
    verified.disagreements.splice(0..0, chain.disagreements);
    verified.disagreements.sort_by_key(|one| one.turn.unwrap_or(u64::MAX));
    verified.disagreements.truncate(limit);
    Ok(verified)
}

/// Verifies the last turns only, so many of them, and no slots: a look that costs little, however long the log is. Returns at most `limit`
/// disagreements.
///
/// # Errors
/// When the medium fails. Damaged rows that can't be read are a disagreement.
pub fn verify_last_turns(reader: &dyn Queries, turns: usize, limit: usize) -> Result<Verification, StoreError> {
    let chain = Chain::verify_newest(&*reader.frozen()?, turns, limit)?;
    let (turns, events, broken_at) = (chain.turns, chain.events, chain.broken_at);
    Ok(Verification { turns, events, slots: 0, broken_at, disagreements: chain.disagreements })
}

/// How many turns have their events read together: so many events, or one turn.
fn some_turns(turns: &[TurnRecord]) -> usize {
    let mut events = 0_u64;
    let fitting = turns.iter().take_while(|turn| {
        events = events.saturating_add(turn.events);
        events <= AT_ONCE as u64
    });
    fitting.count().max(1)
}

/// The rows that were read, or in words what is damaged.
fn read<T>(outcome: Result<T, StoreError>) -> Result<Result<T, String>, StoreError> {
    match outcome {
        Ok(read) => Ok(Ok(read)),
        Err(StoreError::Corrupt { what, .. }) => Ok(Err(what)),
        Err(other) => Err(other),
    }
}

/// On the way through the log.
struct Walk<'a> {
    reader: &'a dyn Queries,
    limit: usize,
    /// The part of the history that was removed.
    removed: RemovedHistory,
    /// None once an event can't be read.
    fold: Option<Fold<'a>>,
    registers: Registers,
    verified: Verification,
}

impl<'a> Walk<'a> {
    /// Folds the whole log beside the slots.
    fn through(reader: &'a dyn Queries, limit: usize) -> Result<Verification, StoreError> {
        let removed = reader.removed_history()?;
        let (fold, registers) = (Some(Fold::new(reader, removed)), Registers::default());
        let mut walk = Walk { reader, limit, removed, fold, registers, verified: Verification::default() };
        let last = walk.turns()?;
        walk.end(last)?;
        Ok(walk.verified)
    }

    fn tell(&mut self, disagreement: Disagreement) {
        if self.verified.disagreements.len() < self.limit {
            self.verified.disagreements.push(disagreement);
        }
    }

    /// Folds all turns; returns the last one that can be read.
    fn turns(&mut self) -> Result<Option<TurnRecord>, StoreError> {
        let mut before: Option<TurnRecord> = None;
        let mut from = None;
        loop {
            let paging = PageRequest::oldest(AT_ONCE).after(from.as_deref());
            let Ok(Page { rows, next }) = read(self.reader.turns(paging))? else { return Ok(before) };
            let mut digest = before.map_or_else(Digest::default, |before| before.digest);
            let rows: Vec<TurnRecord> = rows.into_iter().filter_map(|turn| self.left(turn)).collect();
            let mut rest = &rows[..];
            while !rest.is_empty() {
                let (together, after) = rest.split_at(some_turns(rest));
                digest = self.fold_turns(together, digest)?;
                rest = after;
            }
            before = rows.last().copied().or(before);
            from = next;
            if from.is_none() {
                return Ok(before);
            }
        }
    }

    /// A turn with the events that are to be folded with it: what is left of the history that was removed is folded with the last of its
    /// turns, and their records are passed over.
    fn left(&self, turn: TurnRecord) -> Option<TurnRecord> {
        match turn.turn.cmp(&self.removed.turn) {
            Ordering::Less => None,
            Ordering::Equal => Some(TurnRecord { first_event: 1, events: turn.last_event(), ..turn }),
            Ordering::Greater => Some(turn),
        }
    }

    /// Folds some turns, whose events are read together; returns the digest of the last one. If one of the events can't be read, each turn is
    /// read by itself.
    fn fold_turns(&mut self, turns: &[TurnRecord], before: Digest) -> Result<Digest, StoreError> {
        let (Some(first), Some(last)) = (turns.first(), turns.last()) else { return Ok(before) };
        let after = first.first_event.saturating_sub(1);
        let events = EventFilter { until: last.last_event(), ..EventFilter::after(after) };
        let is_large = turns.len() == 1;
        let page = if is_large { None } else { read(self.reader.events(&events, PageRequest::oldest(AT_ONCE)))?.ok() };
        let mut digest = before;
        let mut records = page.as_ref().map(|page| page.rows.iter().peekable());
        for turn in turns {
            match &mut records {
                Some(records) => {
                    while let Some(record) = records.next_if(|record| record.seq <= turn.last_event()) {
                        self.take(record, turn)?;
                    }
                }
                None => self.fold_turn(turn)?,
            }
            self.delete(turn, &digest)?;
            digest = turn.digest;
        }
        Ok(digest)
    }

    /// Folds an event of a turn.
    fn take(&mut self, record: &EventRecord, turn: &TurnRecord) -> Result<(), StoreError> {
        let Some(fold) = &mut self.fold else { return Ok(()) };
        self.registers.take(record);
        let found = fold.take(record, turn)?;
        found.into_iter().for_each(|disagreement| self.tell(disagreement));
        Ok(())
    }

    /// Takes what a turn deletes, if its body is what it was.
    fn delete(&mut self, turn: &TurnRecord, before: &Digest) -> Result<(), StoreError> {
        if turn.deletes()
            && let Ok(counted) = read(self.reader.recount(turn, before))?
            && counted.missing.is_none()
            && counted.digest == turn.digest
        {
            self.registers.delete(counted.deletions, turn.turn);
        }
        Ok(())
    }

    /// Folds the events of one turn, a page at a time.
    fn fold_turn(&mut self, turn: &TurnRecord) -> Result<(), StoreError> {
        let first = turn.first_event.saturating_sub(1);
        let events = EventFilter { until: turn.last_event(), ..EventFilter::after(first) };
        let mut from = None;
        while self.fold.is_some() {
            match read(self.reader.events(&events, PageRequest::oldest(AT_ONCE).after(from.as_deref())))? {
                Ok(page) => {
                    page.rows.iter().try_for_each(|record| self.take(record, turn))?;
                    from = page.next;
                    if from.is_none() {
                        return Ok(());
                    }
                }
                Err(what) => {
                    self.fold = None;
                    let what = format!("{what}; slots are not compared from here on");
                    self.tell(Disagreement { turn: Some(turn.turn), what, ..Disagreement::default() });
                }
            }
        }
        Ok(())
    }

    /// Events beyond the last turn, and slots that no event leads to.
    fn end(&mut self, last: Option<TurnRecord>) -> Result<(), StoreError> {
        let recorded = last.map_or(0, |turn| turn.last_event());
        let last_event = self.reader.last_seq()?;
        if last_event > recorded {
            let what = format!("no turn has it, nor the events from number {} on", recorded + 1);
            self.tell(Disagreement { event: Some(last_event), what, ..Disagreement::default() });
        }
        let Some(fold) = self.fold.take() else { return Ok(()) };
        self.verified.slots = fold.agreed();
        let (known, steps) = (fold.known(), fold.steps());
        for disagreement in fold.end() {
            self.tell(disagreement);
        }
        for disagreement in std::mem::take(&mut self.registers).end(self.reader)? {
            self.tell(disagreement);
        }
        let counted = self.reader.slot_counts(&SlotFilter::default())?.values().sum::<u64>();
        let planned = self.reader.workflows(None)?.iter().map(|row| row.planned.in_backlog()).sum::<u64>();
        let is_all = counted == known + planned && (steps == 0 || self.steps()? == steps);
        if is_all { Ok(()) } else { self.strangers() }
    }

    /// The number of steps in the table. Costs a read of all slots.
    fn steps(&self) -> Result<u64, StoreError> {
        let mut steps = 0;
        each_slot(self.reader, |row| {
            steps += u64::from(row.id.key.step().is_some());
            Ok(())
        })?;
        Ok(steps)
    }

    /// Names the slots of which the log knows nothing.
    fn strangers(&mut self) -> Result<(), StoreError> {
        let (reader, removed, mut found) = (self.reader, self.removed, Vec::new());
        let damaged = each_slot(reader, |row| {
            if row.slot.is_only_planned() || removed.covers(row.slot.last_event) {
                return Ok(());
            }
            let after = EventFilter::after(row.slot.last_event.saturating_sub(1));
            let last = read(reader.events(&after, PageRequest::oldest(1)))?;
            let about = |record: &EventRecord| fold::slot_of(record) == Some(&row.id);
            if last.is_ok_and(|page| !page.rows.iter().any(about)) {
                let what = "the table has it, and the log knows nothing of it".to_owned();
                found.push(Disagreement { slot: Some(row.id), what, ..Disagreement::default() });
            }
            Ok(())
        })?;
        found.extend(damaged.map(|what| Disagreement { what, ..Disagreement::default() }));
        found.into_iter().for_each(|disagreement| self.tell(disagreement));
        Ok(())
    }
}

/// Reads all slots, each run of a flow after its steps, up to a row that is damaged, which comes back in words.
fn each_slot(
    reader: &dyn Queries,
    mut each: impl FnMut(SlotRow) -> Result<(), StoreError>,
) -> Result<Option<String>, StoreError> {
    let mut of_steps = None;
    let of_slots = each_of(
        |paging| reader.slots(&SlotFilter::default(), paging),
        |row| {
            if row.slot.run_of_flow().is_some() && of_steps.is_none() {
                of_steps = each_of(|paging| reader.steps(&row.id, paging), &mut each)?;
            }
            each(row)
        },
    )?;
    Ok(of_slots.or(of_steps))
}

/// The same of one list.
fn each_of(
    list: impl Fn(PageRequest<'_>) -> Result<Page<SlotRow>, StoreError>,
    mut each: impl FnMut(SlotRow) -> Result<(), StoreError>,
) -> Result<Option<String>, StoreError> {
    let mut from = None;
    loop {
        let Page { rows, next } = match read(list(PageRequest::newest(AT_ONCE).after(from.as_deref())))? {
            Ok(page) => page,
            Err(what) => return Ok(Some(what)),
        };
        rows.into_iter().try_for_each(&mut each)?;
        from = next;
        if from.is_none() {
            return Ok(None);
        }
    }
}
