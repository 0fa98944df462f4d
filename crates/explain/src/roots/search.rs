//! The search for roots: level by level, so that the nearest are found first. Slots of a level that are in the same state and of
//! the same workflow are alike: only some of them are examined, and the others are counted with them.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::{RunId, SlotRef, SlotState, WorkflowId};
use kelos_store::StoreError;

use super::{ENDS, MOST_ROOTS, Root, Roots, WayStep, cause};
use crate::graph::{Look, Obstacle, ObstacleKind, View, Wait};

/// Slots that are alike and lead on, of which so many are examined on each level.
const ALIKE: usize = 25;
/// Obstacles of one kind and one slot that are told apart.
const APART: usize = 10;

/// Finds the roots of a slot's wait, and examines so many slots at most.
pub(super) fn roots(view: &View<'_>, slot: &SlotRef, most: usize) -> Result<Roots, StoreError> {
    let mut search = RootSearch::new(view, most);
    let mut level = vec![(Wait { slot: slot.clone(), path: None, state: view.state(slot)? }, None)];
    while !level.is_empty() {
        level = search.level(level)?;
    }
    Ok(search.close())
}

/// A slot to examine, and the number of the visit that leads to it.
type Lead = (Wait, Option<usize>);

/// A slot that was examined.
struct Visit {
    step: WayStep,
    from: Option<usize>,
    /// The slots that it waits for.
    waits_for: Vec<SlotRef>,
}

/// The roots that are alike: of one kind, of one workflow, and the same one of their slots' obstacles.
type Likeness = (ObstacleKind, WorkflowId, usize);

/// A root as it was found.
struct RootFinding {
    visit: usize,
    step: WayStep,
    cause: String,
    obstacle: Obstacle,
    run: Option<RunId>,
    count: u64,
    order: usize,
    /// Whether its slot waits for others, too.
    leads_on: bool,
}

struct RootSearch<'a> {
    view: &'a View<'a>,
    most: usize,
    seen: BTreeSet<SlotRef>,
    visits: Vec<Visit>,
    found: BTreeMap<Likeness, RootFinding>,
    unexamined: usize,
}

impl<'a> RootSearch<'a> {
    fn new(view: &'a View<'a>, most: usize) -> RootSearch<'a> {
        let (visits, found) = (Vec::new(), BTreeMap::new());
        RootSearch { view, most, seen: BTreeSet::new(), visits, found, unexamined: 0 }
    }

    /// Examines a level, and returns the next one.
    fn level(&mut self, level: Vec<Lead>) -> Result<Vec<Lead>, StoreError> {
        let mut groups: BTreeMap<(WorkflowId, Option<SlotState>), Vec<Lead>> = BTreeMap::new();
        for (wait, from) in level {
            if self.seen.insert(wait.slot.clone()) {
                groups.entry((wait.slot.workflow.clone(), wait.state)).or_default().push((wait, from));
            }
        }
        let mut next = Vec::new();
        for ((_, state), mut group) in groups {
            group.sort_by(|(a, _), (b, _)| a.slot.key.cmp(&b.slot.key));
            let examined = if leads_on(state) { ALIKE } else { 1 };
            let rest = group.split_off(examined.min(group.len()));
            let alike = if leads_on(state) { 0 } else { rest.len() };
            for (wait, from) in group {
                if self.visits.len() >= self.most {
                    self.unexamined += 1 + alike;
                    continue;
                }
                next.extend(self.visit(wait, from, alike as u64)?);
            }
            self.unexamined += rest.len() - alike;
        }
        Ok(next)
    }

    fn visit(&mut self, wait: Wait, from: Option<usize>, alike: u64) -> Result<Vec<Lead>, StoreError> {
        let Look { why, waits_for, obstacles } = self.view.look(&wait.slot, None)?;
        let visit = self.visits.len();
        let mut numbers: BTreeMap<ObstacleKind, usize> = BTreeMap::new();
        let leads_on = !waits_for.is_empty();
        let step = WayStep { slot: wait.slot, state: why.state, writes: wait.path };
        for obstacle in obstacles {
            let number = numbers.entry(obstacle.kind).and_modify(|number| *number += 1).or_default();
            let likeness = (obstacle.kind, step.slot.workflow.clone(), (*number).min(APART));
            let order = self.found.len();
            let ended = matches!(obstacle.kind, ObstacleKind::Failed | ObstacleKind::Backoff);
            let run = why.runs.last().filter(|_| ended).map(kelos_model::Run::leader);
            let found = || {
                let cause = cause::words(&why, &obstacle);
                let (step, obstacle, count) = (step.clone(), obstacle.clone(), 1 + alike);
                RootFinding { visit, step, cause, obstacle, run, count, order, leads_on }
            };
            self.found.entry(likeness).and_modify(|known| known.count += 1 + alike).or_insert_with(found);
        }
        self.visits.push(Visit { step, from, waits_for: waits_for.iter().map(|wait| wait.slot.clone()).collect() });
        Ok(waits_for.into_iter().map(|wait| (wait, Some(visit))).collect())
    }

    /// The numbers of the visits on the way to one, the first one first.
    fn way(&self, visit: usize) -> Vec<usize> {
        let from = |visit: &usize| self.visits.get(*visit).and_then(|visit| visit.from);
        let mut way: Vec<usize> = std::iter::successors(Some(visit), from).collect();
        way.reverse();
        way
    }

    fn root(&self, found: &RootFinding) -> Root {
        let visits = self.way(found.visit);
        let left_out = visits.len().saturating_sub(2 * ENDS);
        let is_named = |n: usize| left_out == 0 || n < ENDS || n >= visits.len() - ENDS;
        let named = visits.iter().enumerate().filter(|(n, _)| is_named(*n));
        let way = named.filter_map(|(_, visit)| Some(self.visits.get(*visit)?.step.clone())).collect();
        let WayStep { slot, state, .. } = found.step.clone();
        let (kind, path) = (found.obstacle.kind, found.obstacle.path.clone());
        let (cause, run, alike) = (found.cause.clone(), found.run.clone(), found.count - 1);
        Root { slot, state, kind, way, left_out, cause, path, run, alike }
    }

    /// Whether a slot that ended while it waited did so for another root, which is to be repaired first.
    fn is_follower(&self, of: &RootFinding) -> bool {
        let ended = matches!(of.obstacle.kind, ObstacleKind::Expired | ObstacleKind::Skipped);
        let leads_there = |other: &RootFinding| {
            other.visit != of.visit && needs_a_person(other.obstacle.kind) && self.way(other.visit).contains(&of.visit)
        };
        ended && of.leads_on && self.found.values().any(leads_there)
    }

    fn close(self) -> Roots {
        let mut found: Vec<&RootFinding> = self.found.values().filter(|found| !self.is_follower(found)).collect();
        found.sort_by_key(|found| (found.obstacle.kind, found.order));
        let mut rows: Vec<Root> = found.iter().take(MOST_ROOTS).map(|found| self.root(found)).collect();
        let more = found.len().saturating_sub(MOST_ROOTS);
        if rows.is_empty() && self.unexamined == 0 {
            rows.extend(self.circle());
        }
        Roots { rows, more, unexamined: self.unexamined }
    }

    /// The circle in which slots wait for each other, if they wait for nothing else.
    fn circle(&self) -> Option<Root> {
        let number = |slot: &SlotRef| self.visits.iter().position(|visit| visit.step.slot == *slot);
        let (mut way, mut at) = (Vec::new(), 0);
        while !way.contains(&at) {
            way.push(at);
            at = number(self.visits.get(at)?.waits_for.first()?)?;
        }
        let begin = way.iter().position(|visit| *visit == at)?;
        let steps = |visits: &[usize]| -> Vec<WayStep> {
            visits.iter().filter_map(|visit| Some(self.visits.get(*visit)?.step.clone())).collect()
        };
        let (before, round) = way.split_at(begin);
        let others: Vec<String> = steps(round).iter().skip(1).take(ENDS).map(|step| step.slot.short()).collect();
        let cause = match &others[..] {
            [] => "waits for itself".to_owned(),
            others => format!("waits for itself, through {}: none of them can run first", others.join(" and ")),
        };
        let way = [steps(before), steps(&[at])].concat();
        let WayStep { slot, state, .. } = way.last()?.clone();
        let (kind, left_out) = (ObstacleKind::Circle, 0);
        Some(Root { slot, state, kind, way, left_out, cause, path: None, run: None, alike: 0 })
    }
}

/// Whether a slot in a state may wait for others.
const fn leads_on(state: Option<SlotState>) -> bool {
    matches!(state, Some(SlotState::Waiting | SlotState::Expired | SlotState::Skipped))
}

/// Whether an obstacle stays until somebody does something about it.
fn needs_a_person(kind: ObstacleKind) -> bool {
    kind <= ObstacleKind::Undefined
}
