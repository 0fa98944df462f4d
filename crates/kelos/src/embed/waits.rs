//! Mistakes that only the jobs of a project together show: what they wait for is not there, never is at their times, or has no times; and
//! platforms of one name that differ.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::mistakes::deadlocks;
use kelos_model::time::format_short;
use kelos_model::workflow::{EndlessWait, EndlessWaits, WaitCause, WaitExtent};
use kelos_model::{PoolId, PoolUse, Workflow, WorkflowId};

use super::draft::JobDraft;
use super::mistakes::Mistake;

/// The definitions of a project, and the jobs they were made of.
pub(super) struct JobsTogether<'p> {
    pub(super) jobs: &'p [JobDraft],
    pub(super) workflows: &'p [Workflow],
    /// Whether there are no other workflows, as on a server.
    pub(super) is_alone: bool,
}

impl JobsTogether<'_> {
    fn job(&self, id: &WorkflowId) -> Option<&JobDraft> {
        self.jobs.iter().find(|job| job.id == id.as_str())
    }

    /// Jobs that wait for slots or periods that nothing has.
    pub(super) fn without_slots(&self) -> Vec<Mistake> {
        let timed: BTreeMap<&WorkflowId, bool> =
            self.workflows.iter().map(|one| (&one.id, one.keys.schedule().is_some())).collect();
        let ids: BTreeSet<&str> = self.jobs.iter().map(|job| job.id.as_str()).collect();
        let mut mistakes = Vec::new();
        for workflow in self.workflows {
            let Some(job) = self.job(&workflow.id) else { continue };
            let covered: BTreeSet<&WorkflowId> = workflow.trigger.covered().iter().map(|one| one.workflow).collect();
            if !covered.is_empty() && workflow.keys.schedule().is_none() {
                let words = "it has no schedule, so that it has no period in which to wait for others";
                mistakes.push(job.mistake(words).hint("give it `.every(&calendar)` or `.cron(\"0 6 * * *\")`"));
            }
            for id in workflow.trigger.upstream().into_iter().collect::<BTreeSet<_>>() {
                let what = if covered.contains(id) { "periods" } else { "slots" };
                // A job with mistakes of its own is known all the same.
                match timed.get(id) {
                    Some(true) => {}
                    Some(false) => {
                        let words = format!("it waits for {what} of \"{id}\", which has no schedule");
                        mistakes.push(job.mistake(words));
                    }
                    None if !self.is_alone || ids.contains(id.as_str()) => {}
                    None => {
                        let words = format!("it waits for {what} of \"{id}\", which is not in the project");
                        mistakes.push(job.mistake(words).hint("add that job to the project, or correct the id"));
                    }
                }
            }
        }
        mistakes
    }

    /// Jobs that wait for slots of others that will never be, as far as their times tell. What depends on the moment of the first start is
    /// no mistake.
    pub(super) fn endless(&self, window: SignedDuration, now: Timestamp) -> Vec<Mistake> {
        let all: Vec<Arc<Workflow>> = self.workflows.iter().cloned().map(Arc::new).collect();
        let circles = deadlocks(self.workflows);
        let circling: BTreeSet<&WorkflowId> = circles.iter().flat_map(|one| &one.circle).map(|(id, _)| id).collect();
        let found = EndlessWaits::of(&all, &[], window, now).waits;
        let is_so = |wait: &&EndlessWait| {
            wait.is_mistake
                && wait.workflow != wait.upstream
                && matches!(wait.cause, WaitCause::NoSuchTime | WaitCause::Ended)
                && !circling.contains(&wait.workflow)
        };
        found.iter().filter(is_so).filter_map(|wait| self.endless_wait(wait)).collect()
    }

    fn endless_wait(&self, wait: &EndlessWait) -> Option<Mistake> {
        let (slot, other, awaited) = (format_short(wait.slot), &wait.upstream, format_short(wait.awaited));
        let who = match wait.extent {
            WaitExtent::All => "it can never run".to_owned(),
            WaitExtent::First { slots: 1, .. } => format!("its first slot, {slot}, can never run"),
            WaitExtent::First { slots, last, .. } => {
                format!("its first {slots} slots, {slot} to {}, can never run", format_short(last))
            }
            WaitExtent::Rest => format!("it can't run from {slot} on"),
            WaitExtent::Some { slots } => format!("{slots} of its next {} slots can never run", wait.looked_at),
        };
        let (never, hint) = match wait.cause {
            WaitCause::Ended => {
                let end = self.workflows.iter().find(|one| one.id == *other).and_then(|one| one.end_time);
                let end = end.map(format_short).unwrap_or_default();
                (format!("but \"{other}\" ends at {end}"), "end both at the same time".to_owned())
            }
            _ => (
                format!("a time that \"{other}\" does not have"),
                format!(
                    "give both the same times, or wait for all periods that its own intersects: `.covers(\"{other}\")`"
                ),
            ),
        };
        let words = format!("{who}: its slot {slot} waits for {other}@{awaited}, {never}");
        Some(self.job(&wait.workflow)?.mistake(words).hint(hint))
    }

    /// Platforms to which jobs give one name, and different sizes or rates.
    pub(super) fn disputed(&self) -> Vec<Mistake> {
        let mut first: BTreeMap<&PoolId, (&WorkflowId, &PoolUse)> = BTreeMap::new();
        let mut mistakes = Vec::new();
        for workflow in self.workflows {
            let steps = workflow.flow.iter().flat_map(|flow| &flow.steps);
            let of_steps = steps.flat_map(|step| step.pools.iter().chain(&step.within));
            for one in workflow.pools.iter().chain(&workflow.within).chain(of_steps) {
                let (of, known) = *first.entry(&one.pool).or_insert((&workflow.id, one));
                if (known.size, known.rate) == (one.size, one.rate) {
                    continue;
                }
                let words = format!("\"{}\" is {} here, and {} in \"{of}\"", one.pool, extent(one), extent(known));
                let hint = "make it once, and give it to all of them: they share what has the same name";
                mistakes.extend(self.job(&workflow.id).map(|job| job.mistake(words).hint(hint)));
                break;
            }
        }
        mistakes
    }
}

/// The size and the rate of a platform.
fn extent(one: &PoolUse) -> String {
    let places = match one.size {
        PoolUse::BOUNDLESS => None,
        1 => Some("1 place".to_owned()),
        size => Some(format!("{size} places")),
    };
    let rate = one.rate.map(|rate| format!("a rate of {rate}"));
    places.into_iter().chain(rate).collect::<Vec<_>>().join(" with ")
}
