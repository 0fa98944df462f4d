//! The references of a definition.
//!
//! A definition is taken apart here field by field, and a trigger leaf by leaf. A new field, leaf, kind of key or subject of facts
//! does not compile until it says here which references it makes.

use super::outputs::uses_outputs;
use crate::arguments::MAPPING;
use crate::constraint::{Constraint, Gate};
use crate::facts::Subject;
use crate::jobs::{Feed, JobKeys};
use crate::sharing::{Reference, Referent};
use crate::time::schedule::Schedule;
use crate::trigger::{Coverage, FactLeaf, Leaf, Trigger};
use crate::workflow::{EventKeys, Keys, Workflow};

impl Workflow {
    /// All references of the definition that may be to other projects, each once, in their order.
    #[must_use]
    pub fn references(&self) -> Vec<Reference> {
        // Every field is named, so that a new one does not compile until it is decided whether it refers to anything.
        let Workflow {
            id: _,
            project: _,
            source: _,
            keys,
            trigger,
            constraints,
            concurrency: _,
            batch: _,
            // Pools belong to no project: everybody may know their names, and shares their permits.
            pools: _,
            within: _,
            retry: _,
            start_time: _,
            end_time: _,
            catch_up: _,
            wait_timeout_seconds: _,
            wait_from: _,
            deadline: _,
            // Jobs and steps refer to others by the outputs that they use.
            job: _,
            flow: _,
            parameters: _,
            // Paths are outside: who may read them is decided there.
            writes: _,
            version: _,
            about: _,
            // A declaration gives consent, and refers to what is the project's own.
            shares: _,
        } = self;
        let mut found = of_trigger(trigger);
        found.extend(of_keys(keys));
        constraints.iter().for_each(of_constraint);
        found.extend(self.references_by_outputs(&found));
        found.sort();
        found.dedup();
        found
    }

    /// The references by what a run is given of the runs that it waits for: a mapping takes arguments and outputs, and a job may use outputs
    /// of what comes before it.
    fn references_by_outputs(&self, found: &[Reference]) -> Vec<Reference> {
        let has_mapping = self.keys.events().is_some_and(|events| events.properties.contains_key(MAPPING));
        let takes = |one: &&Reference| match one {
            Reference::End(_) => has_mapping,
            Reference::State(_) => self.keys.events().is_none(),
            _ => false,
        };
        let upstream: Vec<Reference> = found
            .iter()
            .filter(takes)
            .map(|one| one.referent())
            .filter_map(Referent::workflow)
            .map(Reference::Runs)
            .collect();
        if has_mapping || !upstream.is_empty() && uses_outputs(self) { upstream } else { Vec::new() }
    }
}

fn of_keys(keys: &Keys) -> Vec<Reference> {
    match keys {
        Keys::Schedule(schedule) => of_schedule(schedule),
        Keys::Jobs(jobs) => {
            let JobKeys {
                template: _,
                identifiers: _,
                checks: _,
                domains: _,
                depends_on: _,
                valid: _,
                feed,
                mistake: _,
            } = &**jobs;
            let fed = feed.iter().flat_map(|Feed { identifier: _, schedule }| of_schedule(schedule));
            jobs.parents().cloned().map(Reference::State).chain(fed).collect()
        }
        Keys::Events(events) => {
            let EventKeys {
                name: _,
                program,
                timeout_millis: _,
                properties: _,
                end_time: _,
                jitter_millis: _,
                catch_up: _,
                enabled: _,
            } = &**events;
            vec![Reference::Start(program.clone())]
        }
        Keys::Requests(_) => Vec::new(),
    }
}

fn of_schedule(schedule: &Schedule) -> Vec<Reference> {
    match schedule {
        Schedule::Dependent(other) => vec![Reference::Times(other.clone())],
        Schedule::Cron(_) | Schedule::Calendar(_) => Vec::new(),
    }
}

fn of_constraint(constraint: &Constraint) {
    match constraint.gate {
        // These count runs of the workflow's own program.
        Gate::Concurrency(_) | Gate::SinceLastRun(_) => {}
        Gate::Delay(_) | Gate::Window(_) => {}
    }
}

fn of_trigger(trigger: &Trigger) -> Vec<Reference> {
    let mut found = Vec::new();
    trigger.visit_leaves(&mut |leaf| match leaf {
        Leaf::Nothing | Leaf::Clock(_) | Leaf::Outside => {}
        Leaf::Slot(workflow) | Leaf::Job(workflow, _) => found.push(Reference::State(workflow.clone())),
        Leaf::Periods(Coverage { workflow, .. }) => {
            found.extend([Reference::State(workflow.clone()), Reference::Times(workflow.clone())]);
        }
        Leaf::Facts(FactLeaf { subjects, .. }) => found.extend(subjects.iter().filter_map(of_subject)),
    });
    found
}

fn of_subject(subject: &Subject) -> Option<Reference> {
    match subject {
        Subject::Partitions(dataset) => Some(Reference::Partitions(dataset.clone())),
        Subject::Ended(program, _) => Some(Reference::End(program.clone())),
        Subject::Signal(name) => Some(Reference::Signal(name.clone())),
        // A cron expression is no thing of anybody's.
        Subject::Fired(_) => None,
    }
}
