//! The workers of a seed: when each comes, what it offers to do, and when it dies.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::{SlotRef, WorkflowId};

use super::{Workload, moment};
use crate::rng::Rng;

/// A worker of a workload.
#[derive(Debug, Clone)]
pub struct WorkerPlan {
    /// Its name, of its own for each process.
    pub name: Arc<str>,
    /// When it begins.
    pub born: Timestamp,
    /// When its process is killed.
    pub dies: Option<Timestamp>,
    /// When nobody can hear it, nor it anybody.
    pub silent: Option<(Timestamp, Timestamp)>,
    /// Whose jobs it does.
    pub workflows: BTreeSet<WorkflowId>,
    /// The only job that it does.
    pub job: Option<SlotRef>,
    /// How many at a time.
    pub slots: u32,
    /// How often a job is attempted in all.
    pub attempts: Option<u32>,
}

/// One to four places for workers; in each one comes after the other.
pub(super) fn some(
    rng: &mut Rng,
    workload: &Workload,
    mut some_job: impl FnMut(&mut Rng) -> SlotRef,
) -> Vec<WorkerPlan> {
    let mut plans = Vec::new();
    for place in 0..rng.between(1, 4) {
        let mut born = workload.start;
        for nth in 0..4 {
            if rng.percent(30) {
                born = moment(rng, born, workload.end);
            }
            let dies = rng.percent(60).then(|| moment(rng, born, workload.end));
            let job = rng.percent(25).then(|| some_job(rng));
            plans.push(one(rng, workload, &format!("w{place}-{nth}"), (born, dies), job));
            let Some(end) = dies else { break };
            born = end;
        }
    }
    // Nobody is to wait for ever: once faults have stopped one takes everything.
    plans.push(WorkerPlan {
        name: "steady".into(),
        born: workload.end,
        dies: None,
        silent: None,
        workflows: workload.apps.clone(),
        job: None,
        slots: 1000,
        attempts: None,
    });
    plans
}

fn one(
    rng: &mut Rng,
    workload: &Workload,
    name: &str,
    (born, dies): (Timestamp, Option<Timestamp>),
    job: Option<SlotRef>,
) -> WorkerPlan {
    let mut workflows: BTreeSet<WorkflowId> = workload.apps.iter().filter(|_| rng.percent(70)).cloned().collect();
    workflows.extend(job.as_ref().map(|job| job.workflow.clone()));
    let silent = rng.percent(25).then(|| {
        let from = moment(rng, born, dies.unwrap_or(workload.end));
        (from, from + SignedDuration::from_secs(rng.between(10, 1500)))
    });
    let slots = if job.is_some() { 1 } else { u32::try_from(rng.between(1, 3)).unwrap_or(1) };
    let attempts = rng.percent(20).then(|| u32::try_from(rng.between(1, 3)).unwrap_or(1));
    WorkerPlan { name: name.into(), born, dies, silent, workflows, job, slots, attempts }
}
