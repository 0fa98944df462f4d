//! The past: what memory no longer holds. A step reads it when it needs it, in few questions, and what was read is known
//! until the turn settles. What the turn itself changed is in memory, and newer than what is stored.
//!
//! Absent: what a slot or a fact means. A read that fails ends the step; it never passes for "there is none".

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::ranges::{Range, RangeSet};
use kelos_model::{FactKey, Slot, SlotRef, WorkflowId};

use crate::Core;
use crate::memory::Live;

/// Answers at once what memory no longer holds: as it was when the last turn was committed.
pub trait Past {
    /// Why it can't be read.
    type Error;

    /// Reads those of these slots that exist. They are named in ascending order, each once.
    ///
    /// # Errors
    /// When the past can't be read.
    fn slots(&mut self, ids: &[SlotRef]) -> Result<Vec<(SlotRef, Slot)>, Self::Error>;

    /// Reads all slots of a workflow whose times lie in a range.
    ///
    /// # Errors
    /// When the past can't be read.
    fn range(&mut self, workflow: &WorkflowId, range: Range) -> Result<Vec<(SlotRef, Slot)>, Self::Error>;

    /// Says which of these facts were told before. They are named in ascending order, each once.
    ///
    /// # Errors
    /// When the past can't be read.
    fn facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, Self::Error>;
}

/// The past as a step is given it.
pub(crate) type PastOf<'a, E> = &'a mut dyn Past<Error = E>;

/// The slots and facts that a turn has read of the past, and the slots that it is about to read.
#[derive(Default)]
pub(crate) struct PastCache {
    /// Slots that were brought into memory for this turn only.
    recalled: BTreeSet<SlotRef>,
    /// Slots that do not exist.
    absent: BTreeSet<SlotRef>,
    /// Ranges of which all slots were brought into memory.
    ranges: BTreeMap<WorkflowId, RangeSet>,
    /// Slots that somebody waits to hear of.
    wanted: BTreeSet<SlotRef>,
    /// Facts that were looked up, and whether they were told before, in this turn or earlier.
    facts: BTreeMap<FactKey, bool>,
}

impl PastCache {
    /// Whether a slot that is not in memory is known not to exist.
    pub(crate) fn is_absent(&self, slot: &SlotRef) -> bool {
        let is_covered = |at| self.ranges.get(&slot.workflow).is_some_and(|ranges| ranges.contains(at));
        self.absent.contains(slot) || slot.key.time().is_some_and(is_covered)
    }

    /// Reads slots of which nothing is known; gives those that exist.
    fn read<E>(&mut self, unknown: BTreeSet<SlotRef>, past: PastOf<'_, E>) -> Result<Vec<(SlotRef, Slot)>, E> {
        if unknown.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<SlotRef> = unknown.into_iter().collect();
        let rows = past.slots(&ids)?;
        self.absent.extend(ids);
        self.note(&rows);
        Ok(rows)
    }

    /// Reads what is not known of a range; gives the slots that exist there.
    fn read_range<E>(
        &mut self,
        workflow: &WorkflowId,
        range: Range,
        past: PastOf<'_, E>,
    ) -> Result<Vec<(SlotRef, Slot)>, E> {
        let known = self.ranges.entry(workflow.clone()).or_default();
        let mut rows = Vec::new();
        for gap in known.gaps(range) {
            rows.extend(past.range(workflow, gap)?);
            known.insert(gap);
        }
        self.note(&rows);
        Ok(rows)
    }

    fn note(&mut self, rows: &[(SlotRef, Slot)]) {
        for (id, _) in rows {
            self.absent.remove(id);
            self.recalled.insert(id.clone());
        }
    }

    /// Notes that a slot exists from now on.
    pub(crate) fn exists(&mut self, slot: &SlotRef) {
        self.absent.remove(slot);
    }

    /// Has a slot read together with all others of which somebody waits to hear.
    pub(crate) fn want(&mut self, slot: SlotRef) {
        self.wanted.insert(slot);
    }

    /// Looks up which of these facts were told before.
    pub(crate) fn look_up<'a, E>(
        &mut self,
        names: impl Iterator<Item = &'a FactKey>,
        past: PastOf<'_, E>,
    ) -> Result<(), E> {
        let unknown: BTreeSet<FactKey> = names.filter(|name| !self.facts.contains_key(name)).cloned().collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let names: Vec<FactKey> = unknown.into_iter().collect();
        let known = past.facts(&names)?;
        self.facts.extend(names.into_iter().map(|name| (name, false)));
        self.facts.extend(known.into_iter().map(|name| (name, true)));
        Ok(())
    }

    /// Notes that a fact that was looked up is told. Says whether it was told before.
    pub(crate) fn tell_fact(&mut self, name: &FactKey) -> bool {
        self.facts.get_mut(name).is_some_and(|told| std::mem::replace(told, true))
    }

    /// The slots that were brought into memory for this turn.
    pub(crate) fn into_recalled(self) -> BTreeSet<SlotRef> {
        self.recalled
    }
}

impl Core {
    /// Whether a slot is in memory, or certain not to exist.
    pub(crate) fn is_known(&self, slot: &SlotRef) -> bool {
        !self.tasks.contains_key(&slot.workflow) || self.live(slot).is_some() || self.turn.past.is_absent(slot)
    }

    /// Brings slots into memory, wherever they are. Those that are not there after this don't exist.
    pub(crate) fn recall<E>(&mut self, slots: impl IntoIterator<Item = SlotRef>, past: PastOf<'_, E>) -> Result<(), E> {
        let unknown = slots.into_iter().filter(|slot| !self.is_known(slot)).collect();
        let rows = self.turn.past.read(unknown, past)?;
        self.bring_back(rows);
        Ok(())
    }

    /// Brings all slots of a range into memory that exist.
    pub(crate) fn recall_range<E>(
        &mut self,
        workflow: &WorkflowId,
        range: Range,
        past: PastOf<'_, E>,
    ) -> Result<(), E> {
        if !self.tasks.contains_key(workflow) {
            return Ok(());
        }
        let rows = self.turn.past.read_range(workflow, range, past)?;
        self.bring_back(rows);
        Ok(())
    }

    /// Reads all slots of which somebody waits to hear, in one question, and says where they stand. Says whether there were any.
    pub(crate) fn recall_wanted<E>(&mut self, past: PastOf<'_, E>) -> Result<bool, E> {
        let wanted = std::mem::take(&mut self.turn.past.wanted);
        self.recall(wanted.iter().cloned(), past)?;
        for slot in &wanted {
            let state = self.live(slot).map(|live| live.slot.state);
            self.tell(slot, state);
        }
        Ok(!wanted.is_empty())
    }

    /// Puts slots of the past into memory for this turn. Those that are there are newer.
    fn bring_back(&mut self, rows: Vec<(SlotRef, Slot)>) {
        for (id, slot) in rows {
            if let Some(task) = self.tasks.get_mut(&id.workflow) {
                task.slots.entry(id.key).or_insert_with(|| Live::new(slot));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use jiff::Timestamp;
    use kelos_model::SlotState;

    use super::*;

    /// A past that notes what is read of it.
    #[derive(Default)]
    struct Noted {
        slots: BTreeMap<SlotRef, Slot>,
        facts: BTreeSet<FactKey>,
        reads: Vec<String>,
    }

    impl Past for Noted {
        type Error = Infallible;

        fn slots(&mut self, ids: &[SlotRef]) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
            self.reads.push(ids.iter().map(SlotRef::to_string).collect::<Vec<_>>().join(" "));
            Ok(ids.iter().filter_map(|id| Some((id.clone(), self.slots.get(id)?.clone()))).collect())
        }

        fn range(&mut self, workflow: &WorkflowId, range: Range) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
            self.reads.push(format!("{workflow} {}..{}", range.start.as_second(), range.end.as_second()));
            let is_inside = |id: &SlotRef| id.workflow == *workflow && range.contains(id.key.scheduled_at());
            Ok(self.slots.iter().filter(|(id, _)| is_inside(id)).map(|(id, slot)| (id.clone(), slot.clone())).collect())
        }

        fn facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, Infallible> {
            self.reads.push(format!("{} facts", names.len()));
            Ok(names.iter().filter(|name| self.facts.contains(name)).cloned().collect())
        }
    }

    /// A past that can't be read.
    struct Broken;

    impl Past for Broken {
        type Error = &'static str;

        fn slots(&mut self, _: &[SlotRef]) -> Result<Vec<(SlotRef, Slot)>, &'static str> {
            Err("the disk is gone")
        }

        fn range(&mut self, _: &WorkflowId, _: Range) -> Result<Vec<(SlotRef, Slot)>, &'static str> {
            Err("the disk is gone")
        }

        fn facts(&mut self, _: &[FactKey]) -> Result<Vec<FactKey>, &'static str> {
            Err("the disk is gone")
        }
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn workflow() -> WorkflowId {
        WorkflowId::new("wf").unwrap()
    }

    fn slot(at: i64) -> SlotRef {
        SlotRef::at(workflow(), second(at))
    }

    fn job(id: &str) -> SlotRef {
        SlotRef::job(workflow(), id.into())
    }

    fn fact(key: &str) -> FactKey {
        FactKey { source: "s".into(), about: "a".into(), key: key.into() }
    }

    fn past(slots: &[SlotRef]) -> Noted {
        let ended = |id: &SlotRef| (id.clone(), Slot::new(SlotState::Succeeded, second(0)));
        Noted { slots: slots.iter().map(ended).collect(), ..Noted::default() }
    }

    fn names(rows: &[(SlotRef, Slot)]) -> Vec<SlotRef> {
        rows.iter().map(|(id, _)| id.clone()).collect()
    }

    #[test]
    fn many_slots_are_one_read_and_what_is_not_there_is_known() {
        let (mut past, mut cache) = (past(&[slot(1)]), PastCache::default());
        let Ok(rows) = cache.read(BTreeSet::from([slot(2), slot(1), job("a")]), &mut past);
        assert_eq!(names(&rows), [slot(1)]);
        assert_eq!(past.reads, [format!("{} {} {}", slot(1), slot(2), job("a"))]);
        assert!(!cache.is_absent(&slot(1)));
        assert!(cache.is_absent(&slot(2)));
        assert!(cache.is_absent(&job("a")));
        assert!(!cache.is_absent(&slot(3)), "nobody has read it");
        cache.exists(&slot(2));
        assert!(!cache.is_absent(&slot(2)), "it came to be in the turn");
        assert_eq!(cache.into_recalled(), BTreeSet::from([slot(1)]));
    }

    #[test]
    fn nothing_to_read_is_no_read() {
        let (mut past, mut cache) = (past(&[]), PastCache::default());
        let Ok(_) = cache.read(BTreeSet::new(), &mut past);
        let Ok(_) = cache.read_range(&workflow(), Range::new(second(5), second(5)), &mut past);
        let Ok(()) = cache.look_up([].into_iter(), &mut past);
        assert!(past.reads.is_empty(), "{:?}", past.reads);
    }

    #[test]
    fn of_a_range_only_what_was_not_read_is_read() {
        let (mut past, mut cache) = (past(&[slot(1), slot(4), slot(9)]), PastCache::default());
        let Ok(rows) = cache.read_range(&workflow(), Range::new(second(2), second(5)), &mut past);
        assert_eq!(names(&rows), [slot(4)]);
        let Ok(rows) = cache.read_range(&workflow(), Range::new(second(0), second(10)), &mut past);
        assert_eq!(names(&rows), [slot(1), slot(9)]);
        let Ok(rows) = cache.read_range(&workflow(), Range::new(second(1), second(9)), &mut past);
        assert_eq!(names(&rows), []);
        assert_eq!(past.reads, ["wf 2..5", "wf 0..2", "wf 5..10"]);
        assert!(cache.is_absent(&slot(3)), "all of the range that is there was read");
        assert!(!cache.is_absent(&job("a")), "a job lies in no range");
    }

    #[test]
    fn a_fact_is_told_once_in_a_turn_too() {
        let mut past = Noted { facts: BTreeSet::from([fact("old")]), ..Noted::default() };
        let mut cache = PastCache::default();
        let Ok(()) = cache.look_up([&fact("new"), &fact("old"), &fact("new")].into_iter(), &mut past);
        assert!(cache.tell_fact(&fact("old")));
        assert!(!cache.tell_fact(&fact("new")));
        assert!(cache.tell_fact(&fact("new")));
        let Ok(()) = cache.look_up([&fact("new")].into_iter(), &mut past);
        assert!(cache.tell_fact(&fact("new")), "the turn told it");
        assert_eq!(past.reads, ["2 facts"]);
    }

    #[test]
    fn a_past_that_cannot_be_read_is_no_absence() {
        let mut cache = PastCache::default();
        assert_eq!(cache.read(BTreeSet::from([slot(1)]), &mut Broken), Err("the disk is gone"));
        let range = Range::new(second(0), second(5));
        assert_eq!(cache.read_range(&workflow(), range, &mut Broken), Err("the disk is gone"));
        assert_eq!(cache.look_up([&fact("a")].into_iter(), &mut Broken), Err("the disk is gone"));
        assert!(!cache.is_absent(&slot(1)));
    }
}
