//! Verification of what is stored: turns against their events, and the fold of the log against the slots.
//!
//! The log is read once, from its beginning, a page at a time. Only slots with events to come are in memory.

mod fold;
mod registers;
#[cfg(test)]
mod tests;

use std::fmt;

use kelos_model::{EventRecord, SlotRef};
use kelos_store::{
    Deletions, Digest, EventFilter, Page, PageRequest, Queries, SlotFilter, SlotRow, StoreError, TurnRecord,
};

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

/// Verifies everything that a store has now, while others may continue to write; returns at most `limit` disagreements.
///
/// # Errors
/// When the medium fails. Damaged rows that can't be read are a disagreement.
pub fn verify(reader: &dyn Queries, limit: usize) -> Result<Verification, StoreError> {
    let reader = &*reader.frozen()?;
    let (fold, registers) = (Some(Fold::new(reader)), Registers::default());
    let mut walk = Walk { reader, limit, fold, registers, verified: Verification::default() };
    let last = walk.turns()?;
    walk.end(last)?;
    Ok(walk.verified)
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
    /// None once an event can't be read.
    fold: Option<Fold<'a>>,
    registers: Registers,
    verified: Verification,
}

impl Walk<'_> {
    /// Tells that the chain breaks at a turn.
    fn breaks(&mut self, disagreement: Disagreement, turn: u64) {
        self.verified.broken_at.get_or_insert(turn);
        self.tell(disagreement);
    }

    fn tell(&mut self, disagreement: Disagreement) {
        if self.verified.disagreements.len() < self.limit {
            self.verified.disagreements.push(disagreement);
        }
    }

    /// Reads all turns; returns the last one.
    fn turns(&mut self) -> Result<Option<TurnRecord>, StoreError> {
        let mut before: Option<TurnRecord> = None;
        let mut from = None;
        loop {
            let Page { rows, next } =
                match read(self.reader.turns(PageRequest::oldest(AT_ONCE).after(from.as_deref())))? {
                    Ok(page) => page,
                    Err(what) => {
                        let next = before.map_or(1, |before| before.turn + 1);
                        self.breaks(Disagreement { what, ..Disagreement::default() }, next);
                        return Ok(before);
                    }
                };
            for turn in rows {
                self.turn(&turn, before.as_ref())?;
                before = Some(turn);
            }
            from = next;
            if from.is_none() {
                return Ok(before);
            }
        }
    }

    fn turn(&mut self, turn: &TurnRecord, before: Option<&TurnRecord>) -> Result<(), StoreError> {
        self.verified.turns += 1;
        self.verified.events = self.verified.events.saturating_add(turn.events);
        let at = |what: String| Disagreement { turn: Some(turn.turn), what, ..Disagreement::default() };
        if !turn.follows(before) {
            let next = before.map_or(1, |before| before.turn + 1);
            self.breaks(at(out_of_order(turn, before)), next.min(turn.turn));
        }
        let digest = before.map_or_else(Digest::default, |before| before.digest);
        let mut deletions = Deletions::default();
        match read(self.reader.recount(turn, &digest))? {
            Err(what) => self.breaks(at(what), turn.turn),
            Ok(counted) => match counted.missing {
                Some(event) => {
                    let missing = Disagreement { event: Some(event), ..at("it is missing".to_owned()) };
                    self.breaks(missing, turn.turn);
                }
                None if counted.digest != turn.digest => self.breaks(at(changed(turn)), turn.turn),
                None => deletions = counted.deletions,
            },
        }
        self.fold_turn(turn)?;
        self.registers.delete(deletions, turn.turn);
        Ok(())
    }

    /// Folds the events of a turn.
    fn fold_turn(&mut self, turn: &TurnRecord) -> Result<(), StoreError> {
        let first = turn.first_event.saturating_sub(1);
        let events = EventFilter { until: turn.last_event(), ..EventFilter::after(first) };
        let mut from = None;
        loop {
            let Some(fold) = &mut self.fold else { return Ok(()) };
            let mut found = Vec::new();
            match read(self.reader.events(&events, PageRequest::oldest(AT_ONCE).after(from.as_deref())))? {
                Ok(page) => {
                    for record in &page.rows {
                        self.registers.take(record);
                        found.extend(fold.take(record, turn)?);
                    }
                    from = page.next;
                }
                Err(what) => {
                    (self.fold, from) = (None, None);
                    let what = format!("{what}; slots are not compared from here on");
                    found.push(Disagreement { turn: Some(turn.turn), what, ..Disagreement::default() });
                }
            }
            found.into_iter().for_each(|disagreement| self.tell(disagreement));
            if from.is_none() {
                return Ok(());
            }
        }
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
        let (reader, mut found) = (self.reader, Vec::new());
        let damaged = each_slot(reader, |row| {
            if row.slot.is_only_planned() {
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

/// The reason for which a turn can't follow another one.
fn out_of_order(turn: &TurnRecord, before: Option<&TurnRecord>) -> String {
    let (number, last) = before.map_or((0, 0), |before| (before.turn, before.last_event()));
    if turn.turn != number + 1 && !turn.is_opening() {
        return match turn.turn - number {
            2 => format!("turn {} before it is missing", number + 1),
            _ => format!("turns {} to {} before it are missing", number + 1, turn.turn - 1),
        };
    }
    if turn.is_opening() && before.is_some() {
        return "it stands for all that was before, and is not the first".to_owned();
    }
    format!("it begins with event {}, and event {last} is the last one before it", turn.first_event)
}

fn changed(turn: &TurnRecord) -> String {
    match turn.events {
        0 => "it does not agree with its digest".to_owned(),
        1 => format!("it does not agree with its digest: event {} is not what it was", turn.first_event),
        _ => format!(
            "it does not agree with its digest: one of the events {} to {} is not what it was",
            turn.first_event,
            turn.last_event()
        ),
    }
}
