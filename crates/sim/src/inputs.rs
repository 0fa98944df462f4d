//! The outputs of other slots that a run is given, by the rules that the documentation states: written anew here,
//! to compare.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use kelos_model::arguments::kept_arguments;
use kelos_model::template::KeyValues;
use kelos_model::trigger::Facts;
use kelos_model::{Arguments, Collection, SlotKey, SlotRef, SlotState, Trigger, Workflow, WorkflowId};
use serde_json::{Map, Value};

use crate::apps::Apps;

/// A run that was dispatched.
#[derive(Debug, Clone, Default)]
pub struct RunRecord {
    /// Whether it succeeded.
    pub succeeded: bool,
    /// Its outputs.
    pub outputs: Map<String, Value>,
}

/// All runs of each slot, in order.
pub type RunRecords = BTreeMap<SlotRef, Vec<RunRecord>>;

/// The knowledge with which a run is dispatched.
pub struct Dispatch<'a> {
    /// The state of each slot.
    pub state: &'a dyn Fn(&SlotRef) -> Option<SlotState>,
    /// The runs before it.
    pub runs: &'a RunRecords,
    /// The relations of jobs.
    pub apps: &'a Apps,
    /// The schedules in force.
    pub facts: &'a dyn Facts,
}

/// The slots that others depend on.
#[derive(Default)]
struct Upstream {
    /// The slots that must have succeeded.
    all: BTreeSet<SlotRef>,
    /// Groups of which one is enough.
    any: Vec<BTreeSet<SlotRef>>,
    /// The workflows of which there may be several slots.
    several: BTreeSet<WorkflowId>,
}

impl Dispatch<'_> {
    /// The inputs of a run of these slots of a workflow, of which the first has collected this; none where they are just its arguments.
    #[must_use]
    pub fn inputs(&self, workflow: &Workflow, slots: &[SlotRef], collected: Option<&Collection>) -> Option<Arguments> {
        let mut upstream = Upstream::default();
        for slot in slots {
            if !matches!(slot.key, SlotKey::Time(_) | SlotKey::Job(_)) {
                return None;
            }
            self.wait_for(&workflow.trigger, slot, &KeyValues::of(&workflow.keys, &slot.key), None, &mut upstream);
            self.parents(workflow, slot, &mut upstream);
        }
        let named: Vec<&SlotRef> = upstream.all.iter().chain(upstream.any.iter().flatten()).collect();
        if workflow.batch.is_some() {
            upstream.several.extend(named.iter().map(|slot| slot.workflow.clone()));
        }
        let different: BTreeSet<&&SlotRef> = named.iter().collect();
        for slot in &different {
            if different.iter().filter(|other| other.workflow == slot.workflow).count() > 1 {
                upstream.several.insert(slot.workflow.clone());
            }
        }
        let succeeded = |slot: &SlotRef| (self.state)(slot) == Some(SlotState::Succeeded);
        let enough = upstream.any.iter().filter(|group| group.iter().all(succeeded)).flatten();
        let givers: BTreeSet<SlotRef> = upstream.all.iter().chain(enough).cloned().collect();
        let given = self.merged(&givers, &upstream.several);
        let mut with = collected.cloned().unwrap_or_else(|| Collection::new(jiff::Timestamp::UNIX_EPOCH));
        let is_plain = given.is_empty();
        with.arguments.extend(given);
        let all = if collected.is_none() && workflow.parameters.is_empty() {
            with.arguments
        } else {
            kept_arguments(workflow, Some(&with), &slots.first()?.key).ok()?
        };
        (!is_plain).then_some(all)
    }

    /// The outputs of slots, under the names under which they are given.
    fn merged(&self, givers: &BTreeSet<SlotRef>, several: &BTreeSet<WorkflowId>) -> Map<String, Value> {
        let workflows: BTreeSet<&WorkflowId> = givers.iter().map(|slot| &slot.workflow).collect();
        let mut by_name: BTreeMap<String, Vec<(String, Value)>> = BTreeMap::new();
        for id in workflows {
            let mine = givers.iter().filter(|slot| slot.workflow == *id);
            let outputs: Vec<Map<String, Value>> = mine.filter_map(|slot| self.outputs(slot)).collect();
            let name = id.as_str().replace(['-', '.'], "_");
            if outputs.iter().all(Map::is_empty) {
                continue;
            }
            if several.contains(id) {
                let of_slot = |outputs: Map<String, Value>| match outputs.get(&name) {
                    Some(only) if outputs.len() == 1 => only.clone(),
                    _ => Value::Object(outputs),
                };
                let list = outputs.into_iter().map(of_slot).collect();
                by_name.entry(name.clone()).or_default().push((name, list));
            } else {
                for (output, value) in outputs.into_iter().flatten() {
                    by_name.entry(output).or_default().push((name.clone(), value));
                }
            }
        }
        let value = |mut all: Vec<(String, Value)>| match all.len() {
            1 => all.remove(0).1,
            _ => Value::Object(all.into_iter().collect()),
        };
        by_name.into_iter().map(|(name, all)| (name, value(all))).collect()
    }

    /// The outputs of a slot: of its latest run, or where it was opened again of the latest that succeeded. None where it has never succeeded.
    fn outputs(&self, slot: &SlotRef) -> Option<Map<String, Value>> {
        let runs = self.runs.get(slot).map_or(&[][..], Vec::as_slice);
        if (self.state)(slot) == Some(SlotState::Succeeded) {
            let last = runs.last().filter(|run| run.succeeded);
            return Some(last.map(|run| run.outputs.clone()).unwrap_or_default());
        }
        runs.iter().rfind(|run| run.succeeded).map(|run| run.outputs.clone())
    }

    fn wait_for(
        &self,
        trigger: &Trigger,
        slot: &SlotRef,
        key: &KeyValues,
        group: Option<usize>,
        upstream: &mut Upstream,
    ) {
        let mut add = |slots: Vec<SlotRef>| match group {
            Some(group) => upstream.any[group].extend(slots),
            None => upstream.all.extend(slots),
        };
        match trigger {
            Trigger::And { triggers } => {
                triggers.iter().for_each(|one| self.wait_for(one, slot, key, group, upstream));
            }
            Trigger::Or { triggers } if triggers.len() == 1 => {
                self.wait_for(&triggers[0], slot, key, group, upstream);
            }
            Trigger::Or { triggers } => {
                for one in triggers {
                    upstream.any.push(BTreeSet::new());
                    let own = upstream.any.len() - 1;
                    self.wait_for(one, slot, key, Some(own), upstream);
                }
            }
            Trigger::Offset { seconds, trigger } => {
                if let Some(later) = key.offset(*seconds) {
                    self.wait_for(trigger, slot, &later, group, upstream);
                }
            }
            Trigger::Success { workflow } => add(vec![match key.time() {
                Some(time) => SlotRef::at(workflow.clone(), time),
                None => SlotRef::new(workflow.clone(), slot.key.clone()),
            }]),
            Trigger::Job { workflow, job } => {
                let id = key.fill(job);
                if !id.is_empty() {
                    add(vec![SlotRef::job(workflow.clone(), (*id).into())]);
                }
            }
            Trigger::Covers { workflow, from, to } => {
                let period = key.time().and_then(|time| match slot.key {
                    SlotKey::Time(_) => self.facts.period(&slot.workflow, time),
                    _ => Some(kelos_model::ranges::Range::new(time, time + SignedDuration::from_hours(24))),
                });
                let covered = period.and_then(|period| {
                    let coverage = kelos_model::trigger::Coverage { workflow, later: 0, from: *from, to: *to };
                    self.facts.slots_in(workflow, coverage.interval(&slot.workflow, period))
                });
                add(covered.into_iter().flatten().map(|time| SlotRef::at(workflow.clone(), time)).collect());
                upstream.several.insert(workflow.clone());
            }
            _ => {}
        }
    }

    /// The parents of a job that definitions name. A function may name others, which may be enough.
    fn parents(&self, workflow: &Workflow, slot: &SlotRef, upstream: &mut Upstream) {
        let Some(jobs) = workflow.keys.jobs() else { return };
        let groups = self.apps.parents(slot).unwrap_or_default();
        let written = groups.into_iter().filter(|group| !self.apps.is_asked(slot, group));
        let mut written: Vec<BTreeSet<SlotRef>> = written
            .filter(|group| group.unwritable.is_empty())
            .map(|group| group.jobs.into_iter().map(|job| SlotRef::job(job.workflow, job.id)).collect())
            .collect();
        let is_alone = written.len() == 1 && jobs.depends_on.iter().all(|group| group.functions.is_none());
        if is_alone {
            upstream.all.extend(written.remove(0));
        } else {
            upstream.any.extend(written);
        }
    }
}
