//! The log, folded beside the slots that it is to give.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::history::RemovedHistory;
use kelos_model::{Event, EventRecord, Slot, SlotRef, SlotState, slot};
use kelos_store::{Queries, StoreError, TurnRecord};
use serde_json::Value;

use super::{Disagreement, read};

/// A log on its way to its slots.
pub(super) struct Fold<'a> {
    reader: &'a dyn Queries,
    removed: RemovedHistory,
    /// Slots of which there are events to come.
    open: BTreeMap<SlotRef, Open>,
    /// Slots that were found not to agree, and are left alone from there on.
    set_aside: BTreeSet<SlotRef>,
    agreed: u64,
    /// The number of slots in the table that have events in the log, without steps.
    known: u64,
    /// The number of those that are steps, which no count of slots has.
    steps: u64,
}

/// A slot on its way.
struct Open {
    folded: Option<Slot>,
    /// The position of its last event by the table.
    last: u64,
    /// Whether it was there before turns were recorded.
    is_old: bool,
    /// Whether its first events were removed, so that what it was before the others is not known.
    is_torn: bool,
}

/// The slot of the event.
pub(super) fn slot_of(record: &EventRecord) -> Option<&SlotRef> {
    match &record.event {
        Event::Slot { slot, .. } => Some(slot),
        _ => None,
    }
}

impl<'a> Fold<'a> {
    pub(super) fn new(reader: &'a dyn Queries, removed: RemovedHistory) -> Self {
        Self { reader, removed, open: BTreeMap::new(), set_aside: BTreeSet::new(), agreed: 0, known: 0, steps: 0 }
    }

    /// The number of slots that agree with the log.
    pub(super) fn agreed(&self) -> u64 {
        self.agreed
    }

    /// The number of slots in the table that have events in the log, without steps.
    pub(super) fn known(&self) -> u64 {
        self.known
    }

    /// The number of steps in the table that have events in the log.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Takes the next event of the log, which is a turn's.
    pub(super) fn take(&mut self, record: &EventRecord, turn: &TurnRecord) -> Result<Option<Disagreement>, StoreError> {
        let Some(id) = slot_of(record).filter(|id| !self.set_aside.contains(*id)) else { return Ok(None) };
        let Err(what) = self.happened(id, record, turn)? else { return Ok(None) };
        self.set_aside.insert(id.clone());
        Ok(Some(Disagreement { turn: Some(turn.turn), event: Some(record.seq), slot: Some(id.clone()), what }))
    }

    /// Takes an event of a slot; what does not agree comes back in words.
    fn happened(
        &mut self,
        id: &SlotRef,
        record: &EventRecord,
        turn: &TurnRecord,
    ) -> Result<Result<(), String>, StoreError> {
        let mut open = match self.open.remove(id) {
            Some(open) => open,
            None => match self.begin(id, turn)? {
                Ok(open) => open,
                Err(what) => return Ok(Err(what)),
            },
        };
        if let Err(what) = open.step(record, &self.removed) {
            return Ok(Err(what));
        }
        if record.seq < open.last {
            self.open.insert(id.clone(), open);
            return Ok(Ok(()));
        }
        let row = read(self.reader.slot(id))?;
        let compared = row.and_then(|row| differences(open, row));
        self.agreed += u64::from(compared.is_ok());
        Ok(compared)
    }

    fn begin(&mut self, id: &SlotRef, turn: &TurnRecord) -> Result<Result<Open, String>, StoreError> {
        let row = read(self.reader.slot(id))?;
        Ok(match row.map(|row| row.filter(|row| !row.is_only_planned())) {
            Err(what) => {
                self.count(id);
                Err(what)
            }
            Ok(None) => Err("it happened to a slot that the table does not have".to_owned()),
            Ok(Some(row)) => {
                self.count(id);
                Ok(Open { folded: None, last: row.last_event, is_old: turn.is_opening(), is_torn: false })
            }
        })
    }

    fn count(&mut self, id: &SlotRef) {
        match id.key.step() {
            Some(_) => self.steps += 1,
            None => self.known += 1,
        }
    }

    /// The slots that are left once the log has ended.
    pub(super) fn end(self) -> impl Iterator<Item = Disagreement> {
        self.open.into_iter().map(|(id, open)| {
            let event = open.folded.map(|slot| slot.last_event);
            let what = format!("it is its last event in the log, and event {} is in the table", open.last);
            Disagreement { event, slot: Some(id), what, ..Disagreement::default() }
        })
    }
}

impl Open {
    fn step(&mut self, record: &EventRecord, removed: &RemovedHistory) -> Result<(), String> {
        let Event::Slot { what, .. } = &record.event else { return Ok(()) };
        if record.seq > self.last {
            return Err(format!("it happened after event {}, the last one by the table", self.last));
        }
        if self.folded.is_none() && record.previous > 0 && removed.covers(record.previous) {
            self.is_torn = true;
            self.folded = Some(Slot { last_event: record.previous, ..Slot::new(SlotState::Killed, record.at) });
        }
        let before = self.folded.as_ref().map_or(0, |slot| slot.last_event);
        if before != record.previous {
            return Err(format!("it names event {} as the one before it, and that is event {before}", record.previous));
        }
        if let Some(folded) = self.folded.as_mut().filter(|_| self.is_torn) {
            folded.last_event = record.seq;
            return Ok(());
        }
        let state = self.folded.as_ref().map(|slot| slot.state);
        self.folded = slot::apply(self.folded.take(), what, record.at, record.seq);
        match (&self.folded, state) {
            (Some(_), _) => Ok(()),
            (None, Some(state)) => Err(format!("it can't happen to a slot that is {state}")),
            (None, None) => Err("it can't be the first that happens to a slot".to_owned()),
        }
    }
}

/// Compares a slot that was folded from the log with its row.
fn differences(open: Open, row: Option<Slot>) -> Result<(), String> {
    let (Some(mut folded), Some(mut row)) = (open.folded, row) else {
        return Err("the table does not have it any more".to_owned());
    };
    (folded.due, row.due) = (folded.due.map(in_millis), row.due.map(in_millis));
    if open.is_torn {
        return Ok(());
    }
    if open.is_old {
        forget_what_was_not_kept(&mut folded, &row);
    }
    if folded == row {
        return Ok(());
    }
    let differing = fields(&folded, &row).join("; ");
    Err(format!("the slot that the log ends with is not that of the table: {differing}"))
}

/// Programs of before kept less of a slot; what they did not write down is not missed in the row.
fn forget_what_was_not_kept(folded: &mut Slot, row: &Slot) {
    folded.said = row.said;
    folded.requested &= row.requested;
    folded.asked_at = folded.asked_at.filter(|_| row.asked_at.is_some());
}

fn in_millis(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}

/// The fields that differ, with both values.
fn fields(folded: &Slot, row: &Slot) -> Vec<String> {
    let of = |slot: &Slot| serde_json::to_value(slot).unwrap_or_default();
    let (folded, row) = (of(folded), of(row));
    let names = |value: &Value| value.as_object().map(|fields| fields.keys().cloned().collect::<BTreeSet<_>>());
    let names = names(&folded).unwrap_or_default().into_iter().chain(names(&row).unwrap_or_default());
    let value = |of: &Value, name: &str| of.get(name).cloned().unwrap_or_default();
    let pairs =
        names.collect::<BTreeSet<_>>().into_iter().map(|name| (value(&folded, &name), value(&row, &name), name));
    let differing = pairs.filter(|(folded, row, _)| folded != row);
    differing.map(|(folded, row, name)| format!("{name} is {folded} by the log, {row} in the table")).collect()
}
