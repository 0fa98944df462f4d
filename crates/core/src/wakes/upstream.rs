//! The slots that others wait for: their states, as far as they are known, and the slots that wait for them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::{Breach, Invariant, SlotRef, SlotState};

use super::bonds::{Bonds, Distances};
use crate::breaches::Breaches;
use crate::keyed::SlotMap;
use crate::moments::moment;

/// The state of an upstream slot, as far as it is known.
struct UpstreamState {
    /// Its state, with an inner none if it does not exist; an outer none until the past has been read.
    state: Option<Option<SlotState>>,
    /// The moment since which it is in that state, in whole milliseconds.
    since: i64,
}

/// The slots to which a change of a slot is announced.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Audience {
    /// The slots whose triggers refer to it.
    pub(crate) lookers: BTreeSet<SlotRef>,
    /// The jobs that have it as a parent.
    pub(crate) children: BTreeSet<SlotRef>,
}

/// All slots that others wait for.
#[derive(Default)]
pub(crate) struct Upstream {
    known: SlotMap<UpstreamState>,
    distances: Distances,
    /// For each slot, those whose triggers refer to it.
    lookers: Bonds,
    /// For each slot, those that its trigger refers to.
    looked_at: Bonds,
    /// For each slot, the jobs that have it as a parent.
    children: BTreeMap<SlotRef, BTreeSet<SlotRef>>,
    breaches: Breaches,
}

impl Upstream {
    /// Whether any slot waits for this one.
    pub(crate) fn has(&self, slot: &SlotRef) -> bool {
        self.known.get(slot).is_some()
    }

    /// The state of an upstream slot, with an inner none if it does not exist; none if that is not known.
    pub(crate) fn known(&self, slot: &SlotRef) -> Option<Option<SlotState>> {
        self.known.get(slot)?.state
    }

    /// The moment since which a slot is in its known state.
    pub(crate) fn since(&self, slot: &SlotRef) -> Option<Timestamp> {
        let known = self.known.get(slot)?;
        known.state.flatten().map(|_| moment(known.since))
    }

    /// Sets the slots that a trigger refers to. Returns those that have to be read from the past because they are not
    /// in memory.
    pub(crate) fn look_at(
        &mut self,
        looker: &SlotRef,
        upstream: BTreeSet<SlotRef>,
        in_memory: impl Fn(&SlotRef) -> Option<(SlotState, Timestamp)>,
    ) -> Vec<SlotRef> {
        if upstream.is_empty() && !self.looked_at.has_any(looker) {
            return Vec::new();
        }
        let before = self.other_ends(self.looked_at.of(looker, &self.distances), looker);
        for slot in before.difference(&upstream) {
            let is_looked_at = self.lookers.remove(slot, looker, &mut self.distances);
            let looks = self.looked_at.remove(looker, slot, &mut self.distances);
            self.breaches.check_slot(is_looked_at && looks, Invariant::BondsGoBothWays, looker);
            self.forget_if_idle(slot);
        }
        let mut unread = Vec::new();
        for slot in upstream.difference(&before) {
            self.lookers.insert(slot, looker, &mut self.distances);
            self.looked_at.insert(looker, slot, &mut self.distances);
            if self.watch(slot, in_memory(slot)) {
                unread.push(slot.clone());
            }
        }
        unread
    }

    /// Subscribes a job to a parent. Returns whether the parent has to be read from the past.
    pub(crate) fn await_parent(
        &mut self,
        child: &SlotRef,
        parent: &SlotRef,
        in_memory: Option<(SlotState, Timestamp)>,
    ) -> bool {
        self.children.entry(parent.clone()).or_default().insert(child.clone());
        self.watch(parent, in_memory)
    }

    /// Unsubscribes a job from a parent.
    pub(crate) fn stop_awaiting(&mut self, child: &SlotRef, parent: &SlotRef) {
        let children = self.children.get_mut(parent);
        let is_last = children.and_then(|children| children.remove(child).then_some(children.is_empty()));
        self.breaches.check_slot(is_last.is_some(), Invariant::BondsGoBothWays, child);
        if is_last == Some(true) {
            self.children.remove(parent);
            self.forget_if_idle(parent);
        }
    }

    /// Returns whether the state is not known and has to be read from the past.
    fn watch(&mut self, slot: &SlotRef, in_memory: Option<(SlotState, Timestamp)>) -> bool {
        if let Some((state, since)) = in_memory {
            self.known.insert(slot, UpstreamState::new(Some(state), Some(since)));
        } else if self.known.get(slot).is_none() {
            self.known.insert(slot, UpstreamState { state: None, since: 0 });
        }
        self.known(slot).is_none()
    }

    fn forget_if_idle(&mut self, slot: &SlotRef) {
        if !self.lookers.has_any(slot) && !self.children.contains_key(slot) {
            let was_known = self.known.remove(slot).is_some();
            self.breaches.check_slot(was_known, Invariant::BondsGoBothWays, slot);
        }
    }

    /// The other ends of a slot's dependencies; that they can be computed is an invariant.
    fn other_ends(&mut self, ends: Option<BTreeSet<SlotRef>>, of: &SlotRef) -> BTreeSet<SlotRef> {
        self.breaches.check_slot(ends.is_some(), Invariant::BondsGoBothWays, of);
        ends.unwrap_or_default()
    }

    /// The slots whose triggers refer to a job that does not exist.
    pub(crate) fn lookers_for_nothing(&mut self) -> BTreeSet<SlotRef> {
        let absent = self.known.iter().filter(|(slot, one)| slot.key.job().is_some() && one.state == Some(None));
        let absent: Vec<SlotRef> = absent.map(|(slot, _)| slot).collect();
        let lookers = absent.iter().flat_map(|slot| self.other_ends(self.lookers.of(slot, &self.distances), slot));
        lookers.collect()
    }

    /// Notes the state of a slot and its moment. Returns the slots to which the change is announced.
    pub(crate) fn learn(&mut self, slot: &SlotRef, state: Option<SlotState>, since: Option<Timestamp>) -> Audience {
        match self.known.get_mut(slot) {
            Some(known) if known.state != Some(state) => *known = UpstreamState::new(state, since),
            _ => return Audience::default(),
        }
        Audience {
            lookers: self.other_ends(self.lookers.of(slot, &self.distances), slot),
            children: self.children.get(slot).cloned().unwrap_or_default(),
        }
    }

    /// Takes the first breach out, if there is one.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }
}

impl UpstreamState {
    fn new(state: Option<SlotState>, since: Option<Timestamp>) -> UpstreamState {
        UpstreamState { state: Some(state), since: since.map_or(0, Timestamp::as_millisecond) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> SlotRef {
        SlotRef::at("up".parse().expect("an id"), Timestamp::from_second(second).expect("a time"))
    }

    fn looker(second: i64) -> SlotRef {
        SlotRef::at("down".parse().expect("an id"), Timestamp::from_second(second).expect("a time"))
    }

    fn job(id: &str) -> SlotRef {
        SlotRef::job("jobs".parse().expect("an id"), id.into())
    }

    fn unread(_: &SlotRef) -> Option<(SlotState, Timestamp)> {
        None
    }

    #[test]
    fn news_reach_those_who_look_and_once() {
        let mut upstream = Upstream::default();
        let looked_at = BTreeSet::from([at(0), at(60), job("a")]);
        assert_eq!(upstream.look_at(&looker(60), looked_at.clone(), unread).len(), 3);
        assert_eq!(upstream.known(&at(0)), None, "nobody has read it");
        for slot in &looked_at {
            assert_eq!(upstream.learn(slot, None, None).lookers, BTreeSet::from([looker(60)]));
            assert_eq!(upstream.learn(slot, None, None), Audience::default(), "that is no news");
        }
        assert_eq!(upstream.lookers_for_nothing(), BTreeSet::from([looker(60)]), "a job may be opened");
        assert_eq!(upstream.learn(&looker(60), None, None), Audience::default(), "at this nobody looks");
    }

    #[test]
    fn a_bond_that_is_known_from_one_end_is_a_breach() {
        let mut upstream = Upstream::default();
        upstream.look_at(&looker(60), BTreeSet::from([at(0)]), unread);
        upstream.lookers = Bonds::default();
        upstream.look_at(&looker(60), BTreeSet::new(), unread);
        assert_eq!(upstream.take_breach(), Some(Breach::of_slot(Invariant::BondsGoBothWays, &looker(60))));
        upstream.stop_awaiting(&job("b"), &job("a"));
        assert_eq!(upstream.take_breach(), Some(Breach::of_slot(Invariant::BondsGoBothWays, &job("b"))));
        assert_eq!(upstream.take_breach(), None);
    }

    #[test]
    fn what_nobody_looks_at_is_forgotten() {
        let mut upstream = Upstream::default();
        let since = Timestamp::from_second(7).expect("a time");
        let in_memory = |_: &SlotRef| Some((SlotState::Running, since));
        assert!(upstream.look_at(&looker(0), BTreeSet::from([at(0)]), in_memory).is_empty(), "memory has it");
        assert_eq!((upstream.known(&at(0)), upstream.since(&at(0))), (Some(Some(SlotState::Running)), Some(since)));
        assert!(upstream.await_parent(&job("b"), &job("a"), None));
        assert_eq!(upstream.learn(&job("a"), Some(SlotState::Waiting), None).children, BTreeSet::from([job("b")]));
        upstream.look_at(&looker(0), BTreeSet::new(), unread);
        upstream.stop_awaiting(&job("b"), &job("a"));
        assert_eq!((upstream.known(&at(0)), upstream.known(&job("a"))), (None, None));
        assert_eq!(upstream.learn(&at(0), None, None), Audience::default());
        assert_eq!(upstream.take_breach(), None);
    }
}
