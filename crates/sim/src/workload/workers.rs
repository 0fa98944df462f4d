//! The workers of a seed: when each starts, the jobs it offers to run, and when it dies.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::workers::Label;
use kelos_model::{SlotRef, WorkflowId};

use super::{Workload, moment};
use crate::rng::Rng;

/// A worker of a workload.
#[derive(Debug, Clone)]
pub struct WorkerPlan {
    /// Its name, unique for each process.
    pub name: Arc<str>,
    /// When it starts.
    pub born: Timestamp,
    /// When its process is killed.
    pub dies: Option<Timestamp>,
    /// When it accepts nothing more, and ends once it has no runs.
    pub leaves: Option<Timestamp>,
    /// The span in which it has no connection.
    pub silent: Option<(Timestamp, Timestamp)>,
    /// The workflows whose jobs it runs.
    pub workflows: BTreeSet<WorkflowId>,
    /// Its labels.
    pub labels: BTreeSet<Label>,
    /// The only job that it runs.
    pub job: Option<SlotRef>,
    /// How many jobs it runs at a time.
    pub slots: u32,
    /// How many attempts a job gets in all.
    pub attempts: Option<u32>,
}

/// How often a crontab starts a process that runs one job, or none, and ends; each of them leads for that moment.
const EVERY: SignedDuration = SignedDuration::from_secs(120);

/// How long a crontab continues once faults have stopped: to the end, since waiting jobs start late.
const CRONTAB: SignedDuration = SignedDuration::from_hours(8);

/// One to four sequences of workers, in each of which one follows the other, and short runs beside them. Also returns when
/// leaders change gracefully.
pub(super) fn some(
    rng: &mut Rng,
    workload: &Workload,
    mut some_job: impl FnMut(&mut Rng) -> SlotRef,
) -> (Vec<WorkerPlan>, Vec<Timestamp>) {
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
    let mut shifts = Vec::new();
    for nth in 0..rng.below(4) {
        let mut at = moment(rng, workload.start, workload.end);
        for which in 0..rng.below(12) {
            at += SignedDuration::from_millis(rng.between(300, 4000));
            shifts.push(at);
            plans.push(short(rng, workload, &format!("c{nth}-{which}"), at));
        }
    }
    // No job should wait for ever: once faults have stopped one worker takes everything, or a crontab continues.
    if rng.percent(70) {
        let (workflows, name) = (workload.apps.clone(), "steady".into());
        let (born, slots) = (workload.end, 1000);
        plans.push(WorkerPlan {
            name,
            born,
            dies: None,
            leaves: None,
            silent: None,
            workflows,
            labels: BTreeSet::new(),
            job: None,
            slots,
            attempts: None,
        });
        return (plans, shifts);
    }
    let mut at = workload.end + EVERY;
    while at < workload.end + CRONTAB {
        shifts.push(at);
        plans.push(short(rng, workload, &format!("cron{at}"), at));
        at += EVERY;
    }
    (plans, shifts)
}

/// A process that runs one existing job, and ends.
fn short(rng: &mut Rng, workload: &Workload, name: &str, born: Timestamp) -> WorkerPlan {
    let leaves = born + SignedDuration::from_millis(rng.between(0, 1500));
    let workflows = workload.apps.clone();
    let name = name.into();
    WorkerPlan {
        name,
        born,
        dies: None,
        leaves: Some(leaves),
        silent: None,
        workflows,
        labels: BTreeSet::new(),
        job: None,
        slots: 1,
        attempts: None,
    }
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
    WorkerPlan {
        name: name.into(),
        born,
        dies,
        leaves: None,
        silent,
        workflows,
        labels: BTreeSet::new(),
        job,
        slots,
        attempts,
    }
}
