//! Slots at rest: those that wait and have never run, of which there may be millions. Properties that nearly all of
//! them share are not stored.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kelos_model::{BackfillId, Slot, SlotState};

use super::Live;
use crate::moments::{millis, moment};

/// A slot as the table stores it.
pub(super) enum TableEntry {
    Resting(CompactSlot),
    Whole(Box<Live>),
}

/// A slot that waits and has never run.
#[derive(Debug, Clone)]
pub(super) struct CompactSlot {
    since: i64,
    last_event: u64,
    said: u32,
    priority: i32,
    /// The number of its backfill in the names, from 1; 0 if it has none.
    backfill: u32,
    requested: bool,
    /// Whether it was opened by a request, at the moment since which it waits.
    is_asked_for: bool,
    valid: bool,
}

/// The names of backfills, numbered from 1. They are never removed, as backfills are not.
#[derive(Default)]
pub(super) struct Names {
    numbers: BTreeMap<BackfillId, u32>,
    named: Vec<BackfillId>,
}

impl Names {
    fn number(&mut self, name: Option<&BackfillId>) -> Option<u32> {
        let Some(name) = name else { return Some(0) };
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        self.named.push(name.clone());
        let number = u32::try_from(self.named.len()).ok()?;
        self.numbers.insert(name.clone(), number);
        Some(number)
    }

    fn name(&self, number: u32) -> Option<&BackfillId> {
        self.named.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }
}

impl TableEntry {
    /// Stores a slot as compactly as possible.
    pub(super) fn new(live: Live, names: &mut Names) -> TableEntry {
        CompactSlot::of(&live, names).map_or_else(|| TableEntry::Whole(Box::new(live)), TableEntry::Resting)
    }

    /// The slot as other modules see it.
    pub(super) fn live(&self, names: &Names) -> Cow<'_, Live> {
        match self {
            TableEntry::Whole(live) => Cow::Borrowed(live),
            TableEntry::Resting(resting) => Cow::Owned(resting.live(names)),
        }
    }

    /// The slot without the details of its run.
    pub(super) fn slot(&self, names: &Names) -> Slot {
        match self {
            TableEntry::Whole(live) => live.slot.clone(),
            TableEntry::Resting(resting) => resting.live(names).slot,
        }
    }

    /// The backfill of the slot.
    pub(super) fn backfill<'a>(&'a self, names: &'a Names) -> Option<&'a BackfillId> {
        match self {
            TableEntry::Whole(live) => live.slot.backfill.as_ref(),
            TableEntry::Resting(resting) => names.name(resting.backfill),
        }
    }

    pub(super) fn state(&self) -> SlotState {
        match self {
            TableEntry::Whole(live) => live.slot.state,
            TableEntry::Resting(_) => SlotState::Waiting,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        match self {
            TableEntry::Whole(live) => live.slot.is_live(),
            TableEntry::Resting(_) => true,
        }
    }

    pub(super) fn set_valid(&mut self, valid: bool) {
        match self {
            TableEntry::Whole(live) => live.valid = valid,
            TableEntry::Resting(resting) => resting.valid = valid,
        }
    }
}

impl CompactSlot {
    /// The compact form of a slot; none if it would lose anything.
    fn of(live: &Live, names: &mut Names) -> Option<CompactSlot> {
        // All fields are listed, so that none added later is forgotten.
        let Slot {
            state: SlotState::Waiting,
            since,
            retries: 0,
            again: 0,
            last_run: 0,
            last_run_seq: 0,
            run_alive: false,
            external_id: None,
            priority,
            backfill,
            requested,
            due: None,
            said,
            last_event,
            collected: None,
            asked_at,
            held,
            late: None,
            flow: None,
        } = &live.slot
        else {
            return None;
        };
        if live.run.is_some() || !held.is_empty() || asked_at.is_some_and(|at| at != *since) {
            return None;
        }
        Some(CompactSlot {
            since: millis(*since)?,
            last_event: *last_event,
            said: *said,
            priority: *priority,
            backfill: names.number(backfill.as_ref())?,
            requested: *requested,
            is_asked_for: asked_at.is_some(),
            valid: live.valid,
        })
    }

    fn live(&self, names: &Names) -> Live {
        let slot = Slot {
            priority: self.priority,
            backfill: names.name(self.backfill).cloned(),
            requested: self.requested,
            said: self.said,
            last_event: self.last_event,
            asked_at: self.is_asked_for.then(|| moment(self.since)),
            ..Slot::new(SlotState::Waiting, moment(self.since))
        };
        Live { slot, valid: self.valid, run: None }
    }
}
