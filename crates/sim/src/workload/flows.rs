//! Flows: workflows whose jobs are graphs of steps, the requests about their runs, and definitions that change meanwhile.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{
    Ask, DownstreamRequest, FireRequest, Kill, MarkSuccess, Pause, Rerun, Resume, ResumeFlow, SignalFlow, Skip,
};
use kelos_model::flow::{FLOW, ItemList, SignalWait};
use kelos_model::retry::{Growth, OnUnknown};
use kelos_model::time::Schedule;
use kelos_model::workflow::{Keys, Program};
use kelos_model::{
    Flow, Job, PoolId, PoolUse, RetryPolicy, RunName, SlotKey, SlotRef, Step, StepKey, StepName, Trigger, Workflow,
    WorkflowId,
};
use serde_json::{Map, Value, json};

use super::jobs::{Sets, merged};
use super::{Workload, cron, moment, nth, retry};
use crate::rng::Rng;

/// The seeds from here on have flows. Those before it were there before flows were, and mean what they did.
const FIRST: u64 = 800_000;

/// The names of steps: some belong to a group.
pub(super) const STEPS: [&str; 8] = ["s0", "s1", "g-s2", "g-s3", "s4", "s5", "h-s6", "s7"];

/// The signals that steps wait for.
const SIGNALS: [&str; 2] = ["approval", "go-on"];

/// Gives a seed flows.
pub(super) fn add(seed: u64, workload: &mut Workload) {
    if seed < FIRST {
        return;
    }
    let mut rng = Rng::new(seed ^ 0xF10A);
    let terms = terms(&mut rng, workload);
    let count = rng.between(1, 3);
    let names: Vec<WorkflowId> = (0..count).filter_map(|n| WorkflowId::new(&format!("f{n}")).ok()).collect();
    let sets = sets(&mut rng, &names, &terms, workload);
    let before = std::mem::take(&mut workload.definitions);
    workload.definitions = merged(&before, &sets);
    deploy_again(workload);
    for _ in 0..rng.between(4, 30) {
        let at = moment(&mut rng, workload.start, workload.end);
        let flow = rng.pick(&names).clone();
        ask(&mut rng, workload, at, flow);
    }
    workload.asks.sort_by_key(|(at, _)| *at);
}

/// Repeats the last deployment of projects where only flows change.
fn deploy_again(workload: &mut Workload) {
    let known = std::mem::take(&mut workload.deployments);
    let at = |now: Timestamp| known.iter().take_while(|(at, _)| *at <= now).last().map(|(_, all)| all.clone());
    workload.deployments = workload.definitions.iter().filter_map(|(now, _)| Some((*now, at(*now)?))).collect();
}

/// The pools of other workflows, and one of the steps alone.
fn terms(rng: &mut Rng, workload: &Workload) -> Vec<PoolUse> {
    let mut terms: Vec<PoolUse> = Vec::new();
    let all = workload.definitions.iter().flat_map(|(_, set)| set);
    for one in all.flat_map(|one| one.pools.iter().chain(&one.within)) {
        if !terms.iter().any(|other| other.pool == one.pool) {
            terms.push(PoolUse { permits: 1, ..one.clone() });
        }
    }
    if let Ok(pool) = PoolId::new("p4") {
        terms.push(PoolUse { pool, size: u32::try_from(rng.between(1, 3)).unwrap_or(1), permits: 1, rate: None });
    }
    terms.sort_by(|a, b| a.pool.cmp(&b.pool));
    terms
}

fn sets(rng: &mut Rng, names: &[WorkflowId], terms: &[PoolUse], workload: &Workload) -> Sets {
    let mut set: Vec<Arc<Workflow>> = names.iter().map(|id| Arc::new(flow(rng, id, terms))).collect();
    // A workflow with a schedule keeps it, and people go on to start those that they started.
    let keys: Vec<Keys> = set.iter().map(|one| one.keys.clone()).collect();
    let mut sets = vec![(workload.start, set.clone())];
    for _ in 0..rng.below(4) {
        let (id, keys) = rng.pick(&names.iter().zip(&keys).collect::<Vec<_>>()).to_owned();
        set.retain(|one| one.id != *id);
        if rng.percent(80) {
            set.push(Arc::new(Workflow { keys: keys.clone(), ..flow(rng, id, terms) }));
        }
        sets.push((moment(rng, workload.start, workload.end), set.clone()));
    }
    sets.sort_by_key(|(at, _)| *at);
    sets
}

fn flow(rng: &mut Rng, id: &WorkflowId, terms: &[PoolUse]) -> Workflow {
    let keys = match rng.percent(35) {
        true => Keys::Schedule(Schedule::Cron(cron(rng))),
        false => Keys::Requests(Box::new(Program { name: id.to_string(), kind: None })),
    };
    let mut steps: Vec<Step> = Vec::new();
    for name in STEPS.iter().take(usize::try_from(rng.between(1, 8)).unwrap_or(1)) {
        let Ok(name) = StepName::new(name) else { continue };
        let step = step(rng, name, &steps, terms);
        steps.push(step);
    }
    Workflow {
        project: "sim".to_owned(),
        concurrency: rng.percent(60).then(|| u32::try_from(rng.between(1, 4)).unwrap_or(1)),
        trigger: if rng.percent(20) { Trigger::Delay { seconds: rng.between(0, 3600) } } else { Trigger::Always },
        retry: if rng.percent(25) { retry(rng) } else { RetryPolicy::default() },
        flow: Some(Arc::new(Flow { steps })),
        ..Workflow::keyed(id.clone(), keys, Job::new(FLOW, Map::new()))
    }
}

fn step(rng: &mut Rng, name: StepName, before: &[Step], terms: &[PoolUse]) -> Step {
    let signal = rng.percent(14).then(|| SignalWait {
        name: (*rng.pick(&SIGNALS)).to_owned(),
        within_seconds: rng.percent(60).then(|| rng.below(9000)),
    });
    let mut step = match signal {
        Some(signal) => Step::waiting_for(name, signal),
        None => Step::new(name, Job::new("fake", Map::new())),
    };
    let some =
        |rng: &mut Rng| -> Vec<StepName> { (0..rng.between(1, 3)).map(|_| rng.pick(before).name.clone()).collect() };
    if !before.is_empty() && rng.percent(80) {
        if rng.percent(25) {
            step.handles = some(rng);
            step.at_once = rng.percent(40);
        } else {
            step.needs = some(rng);
        }
    }
    if rng.percent(30) {
        step.inputs = inputs(rng);
    }
    if step.signal.is_none() && rng.percent(25) {
        let concurrency = rng.percent(40).then(|| u32::try_from(rng.between(1, 2)).unwrap_or(1));
        step.for_each = Some(ItemList { input: "items".to_owned(), most: 3, concurrency });
        if rng.percent(50) {
            step.inputs.insert("items".to_owned(), json!([1, "two"]));
        }
    }
    if step.signal.is_none() {
        step.retry = if rng.percent(60) { hasty(rng) } else { RetryPolicy::default() };
        step.pools = uses(rng, terms, 25);
        step.within = terms.iter().filter(|_| rng.percent(20)).cloned().collect();
    }
    step
}

fn inputs(rng: &mut Rng) -> Map<String, Value> {
    let one = *rng.pick(&["rows", "items", "day", "x.y", "item"]);
    let value = rng.pick(&[json!(0), json!([]), json!([1, 2]), json!({"a-b": {"c.d": 1}}), json!("text")]).clone();
    [(one.to_owned(), value)].into_iter().collect()
}

/// A policy whose delays let a flow come to its end.
fn hasty(rng: &mut Rng) -> RetryPolicy {
    RetryPolicy {
        count: u32::try_from(rng.between(0, 2)).unwrap_or(0),
        delay_seconds: if rng.percent(50) { 0 } else { rng.below(300) },
        growth: Growth::Fixed,
        cap_seconds: None,
        jitter_percent: 0,
        on_unknown: *rng.pick(&[OnUnknown::Retry, OnUnknown::Fail, OnUnknown::Again]),
    }
}

fn uses(rng: &mut Rng, terms: &[PoolUse], often: u64) -> Vec<PoolUse> {
    let mut uses: Vec<PoolUse> = terms.iter().filter(|_| rng.percent(often)).cloned().collect();
    for one in &mut uses {
        let most = one.rate.map_or(one.size, |rate| rate.burst).clamp(1, 4);
        one.permits = u32::try_from(rng.between(1, i64::from(most))).unwrap_or(1);
    }
    uses
}

/// The slot of a run: one that has a name, or any that exists.
fn run(rng: &mut Rng, flow: WorkflowId) -> SlotRef {
    match rng.percent(60) {
        true => SlotRef::new(flow, SlotKey::Named(name(rng))),
        false => nth(flow, rng.between(0, 200)),
    }
}

/// The name of a run.
pub(super) fn name(rng: &mut Rng) -> RunName {
    let text = format!("r{}", rng.below(4));
    RunName::new(&text).unwrap_or_else(|_| unreachable!("a plain name"))
}

/// The slot of a run, of one of its steps, or of an item of a list.
fn part(rng: &mut Rng, flow: WorkflowId, steps: u64) -> SlotRef {
    let run = run(rng, flow);
    if !rng.percent(steps) {
        return run;
    }
    let step = StepName::new(rng.pick::<&str>(&STEPS)).ok().and_then(|step| StepKey::new(&run.key, &step));
    let Some(step) = step else { return run };
    let step = if rng.percent(20) { step.item(u32::try_from(rng.below(3)).unwrap_or(0)) } else { step };
    SlotRef::new(run.workflow, SlotKey::Step(step))
}

fn ask(rng: &mut Rng, workload: &mut Workload, at: Timestamp, flow: WorkflowId) {
    let reason = None;
    let soon = |rng: &mut Rng| at + SignedDuration::from_secs(rng.between(0, 1200));
    let one = match rng.below(100) {
        0..=32 => {
            let key = rng.percent(80).then(|| name(rng));
            if rng.percent(25) {
                let again = start(rng, flow.clone(), key.clone());
                workload.asks.push((soon(rng), again));
            }
            start(rng, flow, key)
        }
        33..=52 => {
            let signal = (*rng.pick(&["approval", "go-on", "approval", "go-on", "nobody"])).to_owned();
            let payload =
                rng.pick(&[json!(null), json!("yes"), json!({"rows": 2, "a.b": 1}), json!([1, 2]), json!({})]).clone();
            let signal = SignalFlow { run: run(rng, flow), signal, payload, reason };
            if rng.percent(30) {
                workload.asks.push((soon(rng), Ask::SignalFlow(signal.clone())));
            }
            Ask::SignalFlow(signal)
        }
        53..=66 => {
            let from = rng.percent(40).then(|| StepName::new(rng.pick::<&str>(&STEPS)).ok()).flatten();
            Ask::ResumeFlow(ResumeFlow { run: run(rng, flow), from, reason })
        }
        67..=74 => Ask::Kill(Kill { slot: part(rng, flow, 60), reason }),
        75..=80 => Ask::MarkSuccess(MarkSuccess { slot: part(rng, flow, 80), reason }),
        81..=85 => Ask::Skip(Skip { slot: part(rng, flow, 70), reason }),
        86..=93 => Ask::Rerun(Rerun { slot: part(rng, flow, 40), arguments: Default::default(), reason }),
        94 | 95 => {
            let kill_live = rng.percent(70);
            Ask::RerunDownstream(DownstreamRequest {
                slot: run(rng, flow),
                arguments: Default::default(),
                reason,
                kill_live,
                dry_run: false,
            })
        }
        _ => {
            workload.asks.push((soon(rng), Ask::Resume(Resume { workflow: flow.clone(), reason: None })));
            Ask::Pause(Pause { workflow: flow, reason })
        }
    };
    workload.asks.push((at, one));
}

fn start(rng: &mut Rng, workflow: WorkflowId, key: Option<RunName>) -> Ask {
    let arguments = [("day", "monday"), ("rows", "7"), ("items", "none")];
    let arguments = arguments.into_iter().filter(|_| rng.percent(20));
    let arguments = arguments.map(|(name, value)| (name.to_owned(), value.into())).collect();
    let priority = i32::try_from(rng.between(-1, 1)).unwrap_or(0);
    Ask::Fire(FireRequest { workflow, arguments, key, priority, unconstrained: false, reason: None })
}
