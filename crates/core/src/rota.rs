//! The order in which those are served who can't all be served at once.
//!
//! The next one follows from one of two rules, each of which gives out half: it is the one that has waited longest, or the one with the
//! latest time. By the first alone, a workflow that is on time would wait for a turn of all those that catch up with their past; by the
//! second alone, these would wait for ever beside one that always has something new.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

/// Those who wait to be served.
pub(crate) struct Rota<K> {
    /// Counts arrivals.
    arrivals: u64,
    by_arrival: BTreeMap<u64, K>,
    /// Those who have a time; of one time the one that has waited longest comes last.
    by_time: BTreeSet<(Timestamp, Reverse<u64>)>,
    /// Their arrivals and times.
    known: BTreeMap<K, (u64, Option<Timestamp>)>,
    /// How much more was given out to the latest than to those who had waited longest.
    lead: i64,
}

impl<K> Default for Rota<K> {
    fn default() -> Self {
        Rota { arrivals: 0, by_arrival: BTreeMap::new(), by_time: BTreeSet::new(), known: BTreeMap::new(), lead: 0 }
    }
}

impl<K: Ord + Clone> Rota<K> {
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Adds one with a time behind all others. One that waits already keeps its place.
    pub(crate) fn add(&mut self, id: &K, time: Option<Timestamp>) {
        if self.known.contains_key(id) {
            return;
        }
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.by_arrival.insert(arrival, id.clone());
        self.known.insert(id.clone(), (arrival, time));
        self.by_time.extend(time.map(|time| (time, Reverse(arrival))));
    }

    /// Adds all of these who don't wait yet, in their order.
    pub(crate) fn line_up<'k>(&mut self, all: impl Iterator<Item = &'k K>, time: impl Fn(&K) -> Option<Timestamp>)
    where
        K: 'k,
    {
        for id in all {
            if !self.known.contains_key(id) {
                self.add(id, time(id));
            }
        }
    }

    /// Takes note of the new time of one that waits.
    pub(crate) fn note_next(&mut self, id: &K, time: Option<Timestamp>) {
        let Some((arrival, known)) = self.known.get_mut(id) else { return };
        if let Some(before) = std::mem::replace(known, time) {
            self.by_time.remove(&(before, Reverse(*arrival)));
        }
        self.by_time.extend(time.map(|time| (time, Reverse(*arrival))));
    }

    /// Takes out who is served next, of those who are allowed. What they get is noted with [`Rota::charge`].
    pub(crate) fn take_next(&mut self, is_allowed: impl Fn(&K) -> bool) -> Option<K> {
        let arrival = self.next(is_allowed)?;
        let id = self.by_arrival.remove(&arrival)?;
        if let Some((_, Some(time))) = self.known.remove(&id) {
            self.by_time.remove(&(time, Reverse(arrival)));
        }
        Some(id)
    }

    /// Notes how much the last one got, so that both rules give out as much.
    pub(crate) fn charge(&mut self, cost: usize) {
        let cost = i64::try_from(cost).unwrap_or(i64::MAX);
        self.lead =
            if is_latest_next(self.lead) { self.lead.saturating_add(cost) } else { self.lead.saturating_sub(cost) };
    }

    /// Forgets everybody.
    pub(crate) fn clear(&mut self) {
        self.by_arrival.clear();
        self.by_time.clear();
        self.known.clear();
    }

    fn next(&self, is_allowed: impl Fn(&K) -> bool) -> Option<u64> {
        let mut by_time = self.by_time.iter().rev().map(|(_, Reverse(arrival))| *arrival);
        let mut latest = || by_time.find(|arrival| self.by_arrival.get(arrival).is_some_and(&is_allowed));
        let longest = || self.by_arrival.iter().find(|(_, id)| is_allowed(id)).map(|(arrival, _)| *arrival);
        if is_latest_next(self.lead) { latest().or_else(longest) } else { longest() }
    }

    /// All of them, in the order in which they are served if no other comes and each gets one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &K> {
        let mut longest = self.by_arrival.keys().copied();
        let mut latest = self.by_time.iter().rev().map(|(_, Reverse(arrival))| *arrival);
        let (mut order, mut passed, mut lead) = (Vec::new(), BTreeSet::new(), self.lead);
        loop {
            let is_latest_next = is_latest_next(lead);
            let by_time = if is_latest_next { latest.find(|arrival| !passed.contains(arrival)) } else { None };
            let next = by_time.or_else(|| longest.find(|arrival| !passed.contains(arrival)));
            let Some(next) = next else { break };
            lead += if is_latest_next { 1 } else { -1 };
            passed.insert(next);
            order.extend(self.by_arrival.get(&next));
        }
        order.into_iter()
    }
}

/// Whether the next one is the one with the latest time.
fn is_latest_next(lead: i64) -> bool {
    lead < 0
}

/// The first and the last of these, as many as there may be: they are in the order of their moments, so that these are the ones that have
/// waited longest, and the latest.
pub(crate) fn both_ends<T>(mut in_order: Vec<T>, most: usize) -> Vec<T> {
    if in_order.len() > most {
        let last = most / 2;
        in_order.drain(most - last..in_order.len() - last);
    }
    in_order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rota(all: &[(&str, Option<i64>)]) -> Rota<String> {
        let mut rota = Rota::default();
        for (name, time) in all {
            rota.add(&(*name).to_owned(), time.map(|second| Timestamp::from_second(second).unwrap()));
        }
        rota
    }

    fn served(mut rota: Rota<String>) -> String {
        let told: Vec<String> = rota.iter().cloned().collect();
        let next = || {
            let next = rota.take_next(|_| true);
            rota.charge(1);
            next
        };
        let taken: Vec<String> = std::iter::from_fn(next).collect();
        assert_eq!(told, taken);
        assert!(rota.is_empty() && rota.by_time.is_empty() && rota.by_arrival.is_empty());
        taken.concat()
    }

    #[test]
    fn places_go_in_turn_to_who_waits_longest_and_to_the_latest_time() {
        assert_eq!(served(rota(&[("a", Some(1)), ("b", Some(2)), ("c", Some(3)), ("d", Some(9))])), "adbc");
        assert_eq!(served(rota(&[("a", Some(5)), ("b", Some(5)), ("c", Some(5))])), "abc", "of one time in order");
        assert_eq!(served(rota(&[("a", None), ("b", None), ("c", Some(1)), ("d", None)])), "acbd");
    }

    #[test]
    fn the_latest_are_served_until_they_got_as_much_as_who_waited_longest() {
        let mut rota = rota(&[("a", Some(1)), ("b", Some(2)), ("x", Some(7)), ("y", Some(8)), ("z", Some(9))]);
        let mut served = String::new();
        for cost in [3, 1, 0, 1, 1] {
            served.extend(rota.take_next(|_| true));
            rota.charge(cost);
        }
        assert_eq!(served, "azyxb");
    }

    #[test]
    fn one_that_waits_keeps_its_place_and_its_next_time_counts() {
        let mut all = rota(&[("a", Some(1)), ("b", Some(2)), ("c", Some(3)), ("d", Some(4))]);
        all.line_up(["b".to_owned(), "e".to_owned()].iter(), |_| Some(Timestamp::MAX));
        all.note_next(&"d".to_owned(), None);
        all.note_next(&"b".to_owned(), Some(Timestamp::MAX));
        all.note_next(&"x".to_owned(), Some(Timestamp::MAX));
        assert_eq!(served(all), "abced");
    }

    #[test]
    fn those_that_are_not_allowed_stay() {
        let mut all = rota(&[("a", Some(1)), ("b", Some(2))]);
        assert_eq!(all.take_next(|id| id == "b").as_deref(), Some("b"));
        assert_eq!(all.take_next(|id| id == "b"), None);
        assert_eq!(served(all), "a");
    }

    #[test]
    fn of_too_many_the_first_and_the_last_are_served() {
        assert_eq!(both_ends(vec![1, 2, 3, 4, 5, 6], 3), [1, 2, 6]);
        assert_eq!(both_ends(vec![1, 2, 3], 1), [1]);
        assert_eq!(both_ends(vec![1, 2, 3], 3), [1, 2, 3]);
    }
}
