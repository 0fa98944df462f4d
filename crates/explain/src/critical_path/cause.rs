//! The last condition that a slot waited for, or the one that it still waits for.

use jiff::Timestamp;
use kelos_model::probe::Verdict;
use kelos_model::reason::{Evidence, words};
use kelos_model::{Answer, Reason, ReasonKind, SlotEvent, SlotRef};
use kelos_store::{Queries, StoreError};

use super::life::{Life, Phase};
use super::moment::{Moment, succeeded};
use super::parents::Relation;

/// The cause of a wait.
#[derive(Debug)]
pub(super) struct Cause {
    /// Until when it was waited for.
    pub(super) at: Timestamp,
    /// The cause in words.
    pub(super) words: String,
    /// The slot that it was, if it was one, and how far its log counts.
    pub(super) slot: Option<(SlotRef, Moment)>,
    /// Further obstacles.
    pub(super) besides: Vec<String>,
}

/// The cause of a phase of waiting. `to` is the position from which the path comes.
pub(super) fn of(
    reader: &dyn Queries,
    relation: &Relation,
    life: &Life,
    phase: &Phase,
    to: Moment,
) -> Result<Cause, StoreError> {
    let looks = Looks::of(relation, life, phase);
    let until = phase.until.unwrap_or(to.at);
    let moment = Moment { at: until, ..to };
    match (looks.met(), looks.said.last()) {
        (Some(met), _) => {
            let mut cause = looks.last_to_come(reader, met, &mut Vec::new(), moment)?;
            cause.at = cause.at.clamp(phase.from, until.max(phase.from));
            // A condition that was met when the wait began did not prolong it.
            let at = cause.at;
            cause.slot = cause.slot.filter(|_| at > phase.from).map(|(slot, moment)| (slot, Moment { at, ..moment }));
            Ok(cause)
        }
        (None, Some((_, explanation))) => {
            let worst = if waits_for_parents(explanation) { relation.worst(reader, &life.slot)? } else { None };
            let now = || (*explanation).clone().as_of(until, Some(&life.collected()));
            Ok(worst.map_or_else(|| blocking(&now(), moment), |(parent, others)| of_parent(parent, others, moment)))
        }
        (None, None) => Ok(Cause::words(until, "to be evaluated")),
    }
}

impl Cause {
    fn words(at: Timestamp, words: &str) -> Cause {
        Cause { at, words: words.to_owned(), slot: None, besides: Vec::new() }
    }
}

/// The evaluations of the trigger in a phase, oldest first.
struct Looks<'a> {
    relation: &'a Relation,
    slot: &'a SlotRef,
    began: Timestamp,
    said: Vec<(Timestamp, &'a Reason)>,
}

impl<'a> Looks<'a> {
    fn of(relation: &'a Relation, life: &'a Life, phase: &Phase) -> Looks<'a> {
        // The event that ends the phase has the last evaluation.
        let events = life.events.get(phase.events.start..).unwrap_or_default();
        let events = events.iter().take(phase.events.len() + 1);
        let said = events.filter_map(|(at, event)| Some((*at, explanation(event)?))).collect();
        Looks { relation, slot: &life.slot, began: phase.from, said }
    }

    /// The tree that let the slot go.
    fn met(&self) -> Option<&'a Reason> {
        self.said.last().map(|(_, said)| *said).filter(|said| said.answer == Answer::Met)
    }

    /// The last condition below a node that is met: of several that are required, the latest; of alternatives, the
    /// earliest.
    fn last_to_come(
        &self,
        reader: &dyn Queries,
        node: &Reason,
        place: &mut Vec<usize>,
        to: Moment,
    ) -> Result<Cause, StoreError> {
        match node.kind {
            ReasonKind::And | ReasonKind::Or | ReasonKind::Offset if !node.nested.is_empty() => {
                let mut found: Option<Cause> = None;
                for (index, nested) in node.nested.iter().enumerate().filter(|(_, nested)| nested.answer == Answer::Met)
                {
                    place.push(index);
                    let cause = self.last_to_come(reader, nested, place, to)?;
                    place.pop();
                    let earlier_counts = node.kind == ReasonKind::Or;
                    if found
                        .as_ref()
                        .is_none_or(|found| (cause.at < found.at) == earlier_counts && cause.at != found.at)
                    {
                        found = Some(cause);
                    }
                }
                Ok(found.unwrap_or_else(|| self.turned(place)))
            }
            ReasonKind::Always => Ok(Cause::words(self.began, "")),
            ReasonKind::Parents => Ok(match self.relation.last(reader, self.slot, to)? {
                Some((parent, moment)) => {
                    Cause { slot: Some((parent, moment)), ..Cause::words(moment.at, "its parents") }
                }
                None => Cause::words(self.began, ""),
            }),
            _ => self.leaf(reader, node, place, to),
        }
    }

    fn leaf(&self, reader: &dyn Queries, leaf: &Reason, place: &[usize], to: Moment) -> Result<Cause, StoreError> {
        Ok(match leaf.evidence() {
            Some(Evidence::Clock { until, .. }) => Cause { at: until, ..self.turned(place) },
            Some(Evidence::Slot { slot, .. }) => match succeeded(reader, slot, to)? {
                Some(moment) => Cause { at: moment.at, slot: Some((slot.clone(), moment)), ..self.turned(place) },
                None => self.turned(place),
            },
            _ => self.turned(place),
        })
    }

    /// When the node at a place was found to be met, and what it said before.
    fn turned(&self, place: &[usize]) -> Cause {
        let mut at = self.began;
        for (index, (moment, said)) in self.said.iter().enumerate().rev() {
            match node_at(said, place) {
                Some(node) if node.answer == Answer::Met => at = if index == 0 { self.began } else { *moment },
                Some(node) => return Cause::words(at, &words::text(node)),
                None => break,
            }
        }
        Cause::words(at, "")
    }
}

fn node_at<'a>(tree: &'a Reason, place: &[usize]) -> Option<&'a Reason> {
    place.iter().try_fold(tree, |node, index| node.nested.get(*index))
}

fn explanation(event: &SlotEvent) -> Option<&Reason> {
    match event {
        SlotEvent::Looked { explanation }
        | SlotEvent::TriggerMet { explanation }
        | SlotEvent::Skipped { explanation }
        | SlotEvent::Expired { explanation, .. } => Some(explanation),
        _ => None,
    }
}

/// Whether a job waits for its parents.
fn waits_for_parents(explanation: &Reason) -> bool {
    match explanation.kind {
        ReasonKind::Parents => explanation.answer != Answer::Met,
        ReasonKind::And => explanation.nested.first().is_some_and(waits_for_parents),
        _ => false,
    }
}

/// A parent that keeps a job waiting.
fn of_parent(parent: SlotRef, others: usize, to: Moment) -> Cause {
    let besides = match others {
        0 => Vec::new(),
        1 => vec!["1 other parent has not succeeded".to_owned()],
        others => vec![format!("{others} other parents have not succeeded")],
    };
    Cause { slot: Some((parent, to)), besides, ..Cause::words(to.at, "its parents") }
}

/// The main obstacle of a slot whose trigger is not met.
fn blocking(explanation: &Reason, to: Moment) -> Cause {
    let leaf = heaviest(explanation);
    let own = words::text(leaf);
    let besides = words::blockers(explanation).into_iter().filter(|words| *words != own).collect();
    let slot = match leaf.evidence() {
        Some(Evidence::Slot { slot, .. }) if matches!(leaf.kind, ReasonKind::Success | ReasonKind::Job) => {
            Some((slot.clone(), to))
        }
        _ => None,
    };
    Cause { at: to.at, words: own, slot, besides }
}

/// The worst obstacle below a node: of several conditions that are required, the worst; of alternatives, the least bad.
/// Nodes of other kinds count as a whole.
fn heaviest(node: &Reason) -> &Reason {
    let unmet = node.nested.iter().filter(|nested| nested.answer != Answer::Met).map(heaviest);
    let found = match node.kind {
        ReasonKind::And | ReasonKind::Offset => unmet.max_by_key(|leaf| weight(leaf)),
        ReasonKind::Or => unmet.min_by_key(|leaf| weight(leaf)),
        _ => None,
    };
    found.unwrap_or(node)
}

/// How bad it is that a leaf is not met: a condition that needs a person is worse than one in progress, and that than
/// the clock.
fn weight(leaf: &Reason) -> u8 {
    match leaf.evidence() {
        _ if leaf.answer == Answer::Never => 6,
        Some(Evidence::Slot { state: Some(state), .. }) if state.is_final() => 5,
        Some(Evidence::Slot { state: None, .. }) => 4,
        Some(Evidence::Probe { verdict: Verdict::Failed, .. }) => 4,
        Some(Evidence::Slot { .. }) => 3,
        Some(Evidence::Clock { .. }) => 1,
        _ => 2,
    }
}
