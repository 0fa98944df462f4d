//! The slots that write the paths that others wait for. Workflows say what they write; triggers ask for paths.
//!
//! It is one relation with two directions: a slot is a writer of another one exactly when that one is a reader of it. Paths are
//! compared as they are filled in for the slots, so that a daily workflow may read what an hourly one writes. Who writes a folder
//! writes everything in it. What is *absent*: whether a path is there. A trigger goes by the path alone, whoever wrote it.

mod pattern;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::id::WorkflowId;
use crate::key::{SlotKey, SlotRef};
use crate::ranges::Range;
use crate::template::KeyValues;
use crate::time::CronSchedule;
use crate::trigger::{FileSystem, Node, PathCheck, Trigger};
use crate::workflow::Workflow;
use pattern::{Captures, Pattern, canonical};

/// The most times of a workflow that are compared with one path.
const MOST_TIMES: usize = 2_000;

/// The writers and the readers of paths, among some workflows.
#[derive(Debug, Clone, Default)]
pub struct PathGraph {
    workflows: BTreeMap<WorkflowId, PathUser>,
    edges: Vec<Edge>,
}

/// A workflow that reads or writes paths.
#[derive(Debug, Clone)]
struct PathUser {
    definition: Arc<Workflow>,
    /// Its times, where it has any.
    schedule: Option<CronSchedule>,
}

/// A path of a workflow.
#[derive(Debug, Clone)]
struct Spot {
    workflow: WorkflowId,
    check: PathCheck,
    pattern: Pattern,
    /// How many seconds later than its slot's own time it asks; 0 for what is written.
    later: i64,
}

/// A path that a workflow may write for another.
#[derive(Debug, Clone)]
struct Edge {
    writer: Arc<Spot>,
    reader: Arc<Spot>,
}

/// The workflows that write a path that a slot waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathWriters {
    /// Their slots that write it, ascending.
    pub slots: BTreeSet<SlotRef>,
    /// Those of the workflows whose slots can't be told from the path, or none of whose slots writes it.
    pub others: BTreeSet<WorkflowId>,
}

impl Workflow {
    /// The paths that its slots write, as questions for them.
    pub fn written(&self) -> impl Iterator<Item = PathCheck> + '_ {
        self.writes.iter().map(|path| written(path))
    }
}

/// A path that is written, as a trigger asks for it.
fn written(path: &str) -> PathCheck {
    let scheme = path.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    let system = match scheme.as_deref() {
        Some("hdfs") => FileSystem::Hdfs,
        Some("file") | None => FileSystem::Local,
        Some(_) => FileSystem::Any,
    };
    PathCheck::new(system, path, if system == FileSystem::Local { "file:///" } else { "" })
}

impl PathGraph {
    /// Puts together who writes and who reads, with the times of each.
    #[must_use]
    pub fn of(workflows: impl IntoIterator<Item = (Arc<Workflow>, Option<CronSchedule>)>) -> PathGraph {
        let (mut writers, mut readers, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for (definition, schedule) in workflows {
            let spot = |check: PathCheck, later| Spot::new(&definition, check, later);
            writers.extend(definition.written().map(|check| Arc::new(spot(check, 0))));
            readers.extend(asked(&definition.trigger).into_iter().map(|(check, later)| spot(check.clone(), later)));
            all.push((definition, schedule));
        }
        let mut graph = PathGraph::default();
        for reader in readers.into_iter().map(Arc::new) {
            let reads = |writer: &&Arc<Spot>| {
                writer.pattern.len() <= reader.pattern.len() && writer.pattern.may_meet(&reader.pattern)
            };
            let edge = |writer: &Arc<Spot>| Edge { writer: writer.clone(), reader: reader.clone() };
            graph.edges.extend(writers.iter().filter(reads).map(edge));
        }
        let is_in =
            |id: &WorkflowId| graph.edges.iter().any(|edge| edge.writer.workflow == *id || edge.reader.workflow == *id);
        all.retain(|(definition, _)| is_in(&definition.id));
        let member =
            |(definition, schedule): (Arc<Workflow>, _)| (definition.id.clone(), PathUser { definition, schedule });
        graph.workflows = all.into_iter().map(member).collect();
        graph
    }

    /// The pairs of a writer and a reader, ascending.
    #[must_use]
    pub fn edges(&self) -> BTreeSet<(&WorkflowId, &WorkflowId)> {
        self.edges.iter().map(|edge| (&edge.writer.workflow, &edge.reader.workflow)).collect()
    }

    /// The slots that write a path that a slot of a workflow asks for. Of writers of which each slot writes the same path, whatever its
    /// time, it is the newest one up to `at`.
    #[must_use]
    pub fn writers(&self, reader: &WorkflowId, uri: &str, at: Option<Timestamp>) -> PathWriters {
        let path = canonical(uri);
        let mut found = PathWriters::default();
        for edge in self.edges.iter().filter(|edge| edge.reader.workflow == *reader) {
            let Some(captures) = edge.reader.pattern.captures(&path).and_then(|_| edge.writer.pattern.captures(&path))
            else {
                continue;
            };
            let before = found.slots.len();
            let id = &edge.writer.workflow;
            found.slots.extend(self.keys(&edge.writer, &captures, at).into_iter().filter_map(|key| {
                let slot = SlotRef::new(id.clone(), key);
                self.path(&edge.writer, &slot).is_some_and(|written| covers(&written, &path)).then_some(slot)
            }));
            if found.slots.len() == before && !found.slots.iter().any(|slot| slot.workflow == *id) {
                found.others.insert(id.clone());
            }
        }
        found.others.retain(|id| !found.slots.iter().any(|slot| slot.workflow == *id));
        found
    }

    /// The slots that write what a slot asks for, as far as the paths tell them.
    #[must_use]
    pub fn writers_for(&self, reader: &SlotRef) -> BTreeSet<SlotRef> {
        let own = self.edges.iter().filter(|edge| edge.reader.workflow == reader.workflow);
        let paths: BTreeSet<String> = own.filter_map(|edge| self.path(&edge.reader, reader)).collect();
        let slots = paths.iter().flat_map(|path| self.writers(&reader.workflow, path, reader.key.time()).slots);
        slots.filter(|slot| slot != reader).collect()
    }

    /// The slots that ask for a path that a slot writes, as far as the path tells them.
    #[must_use]
    pub fn readers(&self, writer: &SlotRef) -> BTreeSet<SlotRef> {
        let mut found = BTreeSet::new();
        for edge in self.edges.iter().filter(|edge| edge.writer.workflow == writer.workflow) {
            let is_told = edge.writer.pattern.has_year() || writer.key.job().is_some();
            let Some(path) = self.path(&edge.writer, writer).filter(|_| is_told) else { continue };
            let Some(captures) = edge.reader.pattern.captures(&path) else { continue };
            let keys = self.keys(&edge.reader, &captures, None).into_iter();
            let slots = keys.map(|key| SlotRef::new(edge.reader.workflow.clone(), key));
            found.extend(slots.filter(|slot| {
                slot != writer && self.path(&edge.reader, slot).is_some_and(|read| covers(&path, &read))
            }));
        }
        found
    }

    /// The keys of a workflow of which a path may be: those that the path names, or the newest one where it names no time.
    fn keys(&self, spot: &Spot, captures: &Captures, at: Option<Timestamp>) -> Vec<SlotKey> {
        let Some(member) = self.workflows.get(&spot.workflow) else { return Vec::new() };
        if let Some(jobs) = member.definition.keys.jobs() {
            let values: Option<Vec<Arc<str>>> =
                jobs.template.identifiers().map(|name| captures.of(name).map(Arc::from)).collect();
            let id = values.map(|values| jobs.template.fill(&values));
            return id.and_then(|id| member.definition.keys.read(&id).ok()).into_iter().collect();
        }
        let schedule = member.schedule.as_ref().filter(|_| member.definition.keys.schedule().is_some());
        let Some(schedule) = schedule else { return Vec::new() };
        match captures.range() {
            Some(range) => {
                let earlier = |at: Timestamp| at.checked_sub(SignedDuration::from_secs(spot.later)).ok();
                let range = earlier(range.start).zip(earlier(range.end)).map(|(start, end)| Range::new(start, end));
                // Parts of a time that are named in a zone are less than a day from those in UTC.
                let range = if schedule.is_of_periods() { range.and_then(a_day_around) } else { range };
                let times = range.into_iter().flat_map(|range| schedule.times(range.start, range.end).take(MOST_TIMES));
                times.map(SlotKey::Time).collect()
            }
            None if spot.pattern.has_year() => Vec::new(),
            None => at.and_then(|at| schedule.previous_before(at)).map(SlotKey::Time).into_iter().collect(),
        }
    }

    /// The path of a slot in its canonical form.
    fn path(&self, spot: &Spot, slot: &SlotRef) -> Option<String> {
        let member = self.workflows.get(&spot.workflow)?;
        let values = KeyValues::of(&member.definition.keys, &slot.key);
        let values = if spot.later == 0 { values } else { values.offset(spot.later)? };
        Some(canonical(&spot.check.uri(&values)))
    }
}

/// A path that two workflows say they write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPath {
    /// The path as the second one has it.
    pub path: String,
    /// The first one, by name.
    pub first: WorkflowId,
    /// The other one.
    pub second: WorkflowId,
}

/// Paths that more than one workflow writes, each with the workflow before it that does.
pub fn shared_paths<'w>(workflows: impl IntoIterator<Item = &'w Workflow>) -> Vec<SharedPath> {
    let mut seen: Vec<Spot> = Vec::new();
    let mut found = Vec::new();
    for workflow in workflows {
        let own: Vec<Spot> = workflow.written().map(|check| Spot::new(workflow, check, 0)).collect();
        for spot in &own {
            let is_same = |one: &&Spot| one.pattern.len() == spot.pattern.len() && one.pattern.may_meet(&spot.pattern);
            let first = seen.iter().find(is_same).map(|one| one.workflow.clone());
            found.extend(first.map(|first| SharedPath {
                path: spot.check.path.clone(),
                first,
                second: workflow.id.clone(),
            }));
        }
        seen.extend(own);
    }
    found
}

impl Spot {
    fn new(definition: &Workflow, check: PathCheck, later: i64) -> Spot {
        let identifiers: Vec<Arc<str>> =
            definition.keys.jobs().into_iter().flat_map(|jobs| jobs.template.identifiers().cloned()).collect();
        let pattern = Pattern::new(&check.template(), &identifiers);
        Spot { workflow: definition.id.clone(), check, pattern, later }
    }
}

/// The paths that a trigger asks for, and how many seconds later than the slot's own time.
fn asked(trigger: &Trigger) -> Vec<(&PathCheck, i64)> {
    match (trigger, trigger.node()) {
        (Trigger::Path(check), _) => vec![(check, 0)],
        (_, Node::Later(seconds, nested)) => {
            let nested = asked(nested).into_iter();
            nested.filter_map(|(check, later)| Some((check, later.checked_add(seconds)?))).collect()
        }
        _ => trigger.nested().iter().flat_map(asked).collect(),
    }
}

fn a_day_around(range: Range) -> Option<Range> {
    let day = SignedDuration::from_hours(24);
    Some(Range::new(range.start.checked_sub(day).ok()?, range.end.checked_add(day).ok()?))
}

/// Whether who writes one path writes another one with it: the same, or one in it.
fn covers(written: &str, read: &str) -> bool {
    read.strip_prefix(written).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
