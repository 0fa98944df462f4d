//! Workloads: the definitions and requests of a simulated day or two.

mod batches;
mod calendars;
mod covers;
mod deadlines;
mod events;
mod flows;
mod jobs;
mod labels;
mod rates;
mod repeats;
mod starts;
mod versions;
mod within;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{
    Ask, BackfillRequest, CancelBackfill, Config, Deployment, DownstreamRequest, Kill, MarkSuccess, Pause,
    PauseBackfill, PrioritiseBackfill, Rerun, RerunBackfill, Resume, ResumeBackfill, Skip,
};
use kelos_model::backfill::BackfillMode;
use kelos_model::ranges::Range;
use kelos_model::retry::{Growth, OnUnknown};
use kelos_model::sharing::Shares;
use kelos_model::time::{Cron, CronSchedule, Fold, Gap, Schedule, Zone, resolve};
use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::workflow::{About, CatchUp, Job, Keys, Source, WaitStart};
use kelos_model::{BackfillId, PoolId, PoolUse, RetryPolicy, SlotRef, Trigger, Workflow, WorkflowId};

use crate::rng::Rng;

pub use events::{nth, resolved};
pub use jobs::GroupMeanings;
pub use labels::WORKED;
pub use workers::WorkerPlan;

/// The resolved schedules of a set of definitions.
#[must_use]
pub fn schedules(all: &[Arc<Workflow>]) -> BTreeMap<WorkflowId, CronSchedule> {
    let named = all.iter().filter_map(|one| Some((one.id.clone(), one.keys.schedule()?)));
    resolve(&named.collect()).into_iter().filter_map(|(id, resolved)| Some((id, resolved.ok()?))).collect()
}

/// A seed's definitions and requests.
#[derive(Debug, Clone)]
pub struct Workload {
    /// The moment at which it begins.
    pub start: Timestamp,
    /// The moment at which faults and requests end.
    pub end: Timestamp,
    /// The scheduler's tunables.
    pub config: Config,
    /// Sets of definitions and when each comes into force; the first at the start.
    pub definitions: Vec<(Timestamp, Vec<Arc<Workflow>>)>,
    /// The requests of people, with their moments.
    pub asks: Vec<(Timestamp, Ask)>,
    /// All keyed workflows of the simulation.
    pub apps: BTreeSet<WorkflowId>,
    /// The relations between jobs that functions define.
    pub meant: GroupMeanings,
    /// The workers, if workers run jobs.
    pub workers: Vec<WorkerPlan>,
    /// The moments at which a leader ends gracefully, and another process leads.
    pub shifts: Vec<Timestamp>,
    /// All event schedules of the simulation.
    pub schedules: BTreeSet<WorkflowId>,
    /// The deployments of each project, from each moment at which definitions change.
    pub deployments: Vec<(Timestamp, BTreeMap<String, Deployment>)>,
    /// Whether all runs may give outputs; otherwise only where there are event schedules.
    pub gives: bool,
}

/// The first seed in which all runs may give outputs, although no event schedule hears of it.
const FIRST_GIVING: u64 = 2_000_000;

const CRONS: [&str; 6] =
    ["0 0 * * * ?", "0 0/20 * * * ?", "0 0 0/3 * * ?", "0 30 2 * * ?", "0 15,45 6-18 * * ?", "0 0/7 5 * * ?"];

impl Workload {
    /// Whether runs ask for permits while they are live.
    #[must_use]
    pub fn has_runs_that_ask(&self) -> bool {
        self.definitions.iter().flat_map(|(_, all)| all).any(|one| {
            let steps = one.flow.iter().flat_map(|flow| &flow.steps);
            !one.within.is_empty() || steps.into_iter().any(|step| !step.within.is_empty())
        })
    }

    /// The workload of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Workload {
        let mut workload = Workload::timed(seed);
        jobs::add(seed, &mut workload);
        events::add(seed, &mut workload);
        starts::add(seed, &mut workload);
        flows::add(seed, &mut workload);
        repeats::add(seed, &mut workload);
        labels::choose(seed, &mut workload);
        deadlines::add(seed, &mut workload);
        // The limit of a tick may be lower than the work of one workflow.
        workload.config.frontier = *Rng::new(seed ^ 0xF207).pick(&[1, 2, 5, 1024]);
        workload.config.at_once = *Rng::new(seed ^ 0xA70E).pick(&[3, 7, 20, 1024, usize::MAX, usize::MAX]);
        workload
    }

    /// The projects that are deployed with the definitions of a moment, and changed, compared by their known
    /// digests.
    #[must_use]
    pub fn deployed(&self, at: Timestamp, known: impl Fn(&str) -> Option<String>) -> BTreeMap<String, Deployment> {
        let all = self.deployments.iter().find(|(from, _)| *from == at).map(|(_, all)| all.clone());
        let mut all = all.unwrap_or_default();
        all.retain(|project, how| known(project).is_none_or(|known| Some(known) != how.digest));
        all
    }

    /// The workflows of a seed with slots by time.
    #[must_use]
    pub fn timed(seed: u64) -> Workload {
        let mut rng = Rng::new(seed);
        let start = Timestamp::from_second(1_452_000_000 + rng.between(0, 86_400)).unwrap_or(Timestamp::UNIX_EPOCH);
        let end = start + SignedDuration::from_hours(rng.between(4, 16));
        let config = Config {
            planning_window: SignedDuration::from_hours(rng.between(3, 18)),
            max_running: u32::try_from(rng.between(1, 12)).unwrap_or(4),
            // Rarely enough that a day of waiting does not outweigh everything else.
            probe_first: SignedDuration::from_secs(rng.between(1, 60)),
            probe_longest: SignedDuration::from_secs(rng.between(300, 600)),
            ..Config::default()
        };
        let count = rng.between(1, 5);
        let names: Vec<WorkflowId> = (0..count).filter_map(|n| WorkflowId::new(&format!("w{n}")).ok()).collect();
        let mut set: Vec<_> =
            names.iter().enumerate().map(|(n, id)| Arc::new(workflow(&mut rng, id, &names, n, start))).collect();
        let mut definitions = vec![(start, set.clone())];
        for _ in 0..rng.below(3) {
            change(&mut rng, &mut set, &names, start);
            definitions.push((moment(&mut rng, start, end), set.clone()));
        }
        definitions.sort_by_key(|(at, _)| *at);
        name_pools(seed, &names, &mut definitions);
        choose_catch_up(seed, &names, &mut definitions);
        calendars::choose(seed, &names, &mut definitions);
        covers::choose(seed, &names, &mut definitions);
        rates::choose(seed, &mut definitions);
        within::choose(seed, &mut definitions);
        batches::choose(seed, &names, &mut definitions);
        let mut asks: Vec<_> = (0..rng.below(12)).map(|_| ask(&mut rng, &names, start, end)).collect();
        asks.extend(later_asks(seed, &names, start, end));
        asks.extend(backfill_asks(seed, &names, start, end));
        asks.sort_by_key(|(at, _)| *at);
        versions::choose(seed, &mut definitions, &mut asks);
        let (apps, meant, workers, shifts, schedules, deployments) = Default::default();
        let gives = seed >= FIRST_GIVING;
        Workload { start, end, config, definitions, asks, apps, meant, workers, shifts, schedules, deployments, gives }
    }
}

fn moment(rng: &mut Rng, start: Timestamp, end: Timestamp) -> Timestamp {
    let span = end.as_millisecond() - start.as_millisecond();
    start + SignedDuration::from_millis(rng.between(0, span))
}

fn change(rng: &mut Rng, set: &mut Vec<Arc<Workflow>>, names: &[WorkflowId], start: Timestamp) {
    let n = usize::try_from(rng.below(names.len() as u64)).unwrap_or(0);
    let id = &names[n];
    set.retain(|workflow| workflow.id != *id);
    if rng.percent(70) {
        set.push(Arc::new(workflow(rng, id, names, n, start)));
    }
}

fn workflow(rng: &mut Rng, id: &WorkflowId, names: &[WorkflowId], n: usize, start: Timestamp) -> Workflow {
    // Only on earlier ones, so that there is no cycle.
    let schedule = if n > 0 && rng.percent(30) {
        Schedule::Dependent(rng.pick(&names[..n]).clone())
    } else {
        Schedule::Cron(cron(rng))
    };
    let plain = Workflow {
        id: id.clone(),
        project: "sim".to_owned(),
        source: Source::file("sim.js", 1),
        keys: Keys::Schedule(schedule),
        trigger: trigger(rng, names, 0),
        constraints: Vec::new(),
        concurrency: Some(if rng.percent(5) { 0 } else { u32::try_from(rng.between(1, 4)).unwrap_or(1) }),
        batch: None,
        flow: None,
        pools: Vec::new(),
        within: Vec::new(),
        parameters: Vec::new(),
        retry: retry(rng),
        start_time: rng.percent(20).then(|| start - SignedDuration::from_hours(rng.between(-3, 12))),
        end_time: None,
        catch_up: None,
        wait_timeout_seconds: rng.percent(40).then(|| rng.below(20_000)),
        wait_from: WaitStart::Time,
        deadline: None,
        job: Job::new("fake", serde_json::Map::new()),
        // Of every other one, by its number: a draw would change what follows.
        writes: n.is_multiple_of(2).then(|| timed_path(n as u64 % 3)).into_iter().collect(),
        version: None,
        about: About::default(),
        shares: Shares::default(),
    };
    // Decided by what was drawn before, so that the kept seeds mean what they did.
    let is_odd = plain.wait_timeout_seconds.is_some_and(|seconds| seconds % 2 == 1);
    Workflow { wait_from: if is_odd { WaitStart::Opening } else { WaitStart::Time }, ..plain }
}

/// A path of each moment in one of the folders.
fn timed_path(folder: u64) -> String {
    format!("/d{folder}/${{year}}-${{month}}-${{day}}T${{hour}}:${{minute}}:${{second}}Z")
}

fn cron(rng: &mut Rng) -> CronSchedule {
    let text: &str = rng.pick::<&str>(&CRONS);
    let cron = Cron::parse(text).unwrap_or_else(|error| panic!("a constant expression: {error}"));
    let zone = if rng.percent(70) { Zone::utc() } else { Zone::parse("Europe/Berlin").unwrap_or_else(|_| Zone::utc()) };
    CronSchedule::new(cron, zone, Gap::default(), Fold::default())
}

fn retry(rng: &mut Rng) -> RetryPolicy {
    RetryPolicy {
        count: u32::try_from(rng.between(0, 3)).unwrap_or(0),
        delay_seconds: if rng.percent(50) { 0 } else { rng.below(900) },
        growth: if rng.percent(50) { Growth::Fixed } else { Growth::Exponential },
        cap_seconds: rng.percent(50).then_some(1200),
        jitter_percent: if rng.percent(50) { 0 } else { 30 },
        on_unknown: *rng.pick(&[OnUnknown::Retry, OnUnknown::Fail, OnUnknown::Again]),
    }
}

fn trigger(rng: &mut Rng, names: &[WorkflowId], depth: u32) -> Trigger {
    let leaf = depth >= 3 || rng.percent(50);
    let many = |rng: &mut Rng| (0..rng.below(4)).map(|_| trigger(rng, names, depth + 1)).collect();
    match (leaf, rng.below(4)) {
        (true, 0) => Trigger::Always,
        (true, 1) => Trigger::Delay { seconds: rng.between(-600, 7200) },
        (true, 2) => Trigger::Success { workflow: rng.pick(names).clone() },
        (true, _) => Trigger::Path(PathCheck::new(FileSystem::Local, &timed_path(rng.below(3)), "file:")),
        (false, 0) => Trigger::And { triggers: many(rng) },
        (false, 1) => Trigger::Or { triggers: many(rng) },
        (false, 2) => Trigger::Not { trigger: Box::new(trigger(rng, names, depth + 1)) },
        (false, _) => {
            Trigger::Offset { seconds: rng.between(-2, 2) * 3600, trigger: Box::new(trigger(rng, names, depth + 1)) }
        }
    }
}

/// Pools that workflows share, for two seeds in three, generated separately like [`later_asks`]. Most definitions agree on the size;
/// some runs need more than there is.
fn name_pools(seed: u64, names: &[WorkflowId], definitions: &mut [(Timestamp, Vec<Arc<Workflow>>)]) {
    let mut rng = Rng::new(seed ^ 0x9001);
    if rng.percent(33) {
        return;
    }
    let pools: Vec<_> = ["p0", "p1", "p2"].into_iter().filter_map(|name| PoolId::new(name).ok()).collect();
    let sizes: Vec<u32> = pools.iter().map(|_| u32::try_from(rng.between(1, 5)).unwrap_or(1)).collect();
    let mut uses: Vec<_> = names.iter().map(|_| pool_uses(&mut rng, &pools, &sizes)).collect();
    for (_, set) in definitions {
        for workflow in set {
            let Some(n) = names.iter().position(|id| *id == workflow.id) else { continue };
            if rng.percent(20) {
                uses[n] = pool_uses(&mut rng, &pools, &sizes);
            }
            if uses[n] != workflow.pools {
                Arc::make_mut(workflow).pools.clone_from(&uses[n]);
            }
        }
    }
}

/// Policies for misfires, for two seeds in three, generated separately like [`later_asks`]. Some change while a schedule stays.
fn choose_catch_up(seed: u64, names: &[WorkflowId], definitions: &mut [(Timestamp, Vec<Arc<Workflow>>)]) {
    let mut rng = Rng::new(seed ^ 0xCA7C);
    if rng.percent(33) {
        return;
    }
    let policy = |rng: &mut Rng| *rng.pick(&[None, Some(CatchUp::All), Some(CatchUp::Latest), Some(CatchUp::Skip)]);
    let mut policies: Vec<_> = names.iter().map(|_| policy(&mut rng)).collect();
    for (_, set) in definitions {
        for workflow in set {
            let Some(n) = names.iter().position(|id| *id == workflow.id) else { continue };
            if rng.percent(20) {
                policies[n] = policy(&mut rng);
            }
            if policies[n] != workflow.catch_up {
                Arc::make_mut(workflow).catch_up = policies[n];
            }
        }
    }
}

fn pool_uses(rng: &mut Rng, pools: &[PoolId], sizes: &[u32]) -> Vec<PoolUse> {
    let mut uses = Vec::new();
    for (pool, size) in pools.iter().zip(sizes) {
        if rng.percent(50) {
            let size = if rng.percent(10) { size + 1 } else { *size };
            let permits = u32::try_from(rng.between(1, i64::from(size))).unwrap_or(1);
            uses.push(PoolUse { pool: pool.clone(), size, permits, rate: None });
        }
    }
    uses
}

/// Marks, skips and reruns of whole trees, for two seeds in three. They are generated separately: the other random numbers of a seed,
/// and all of the third, are as they were before these requests existed.
fn later_asks(seed: u64, names: &[WorkflowId], start: Timestamp, end: Timestamp) -> Vec<(Timestamp, Ask)> {
    let mut rng = Rng::new(seed ^ 0xD03A);
    let count = if rng.percent(67) { rng.between(1, 10) } else { 0 };
    (0..count).map(|_| later_ask(&mut rng, names, start, end)).collect()
}

fn later_ask(rng: &mut Rng, names: &[WorkflowId], start: Timestamp, end: Timestamp) -> (Timestamp, Ask) {
    let (at, slot) = some_slot(rng, names, start, end);
    let ask = match rng.below(5) {
        0 => Ask::MarkSuccess(MarkSuccess { slot, reason: None }),
        1 => Ask::Skip(Skip { slot, reason: None }),
        _ => Ask::RerunDownstream(DownstreamRequest {
            slot,
            arguments: kelos_model::Arguments::new(),
            reason: None,
            kill_live: rng.percent(60),
            dry_run: rng.percent(10),
        }),
    };
    (at, ask)
}

/// Backfills that are paused, resumed, prioritised, rerun and cancelled, for two seeds in three; generated separately, too.
fn backfill_asks(seed: u64, names: &[WorkflowId], start: Timestamp, end: Timestamp) -> Vec<(Timestamp, Ask)> {
    let mut rng = Rng::new(seed ^ 0xBAC4);
    let count = if rng.percent(67) { rng.between(1, 3) } else { 0 };
    let mut asks = Vec::new();
    for number in 0..count {
        let (at, request) = backfill_of(&mut rng, number, names, start, end);
        let id = request.id.clone();
        asks.push((at, Ask::Backfill(request)));
        let changes = rng.between(1, 6);
        asks.extend((0..changes).map(|_| (moment(&mut rng, at, end), change_of(&mut rng, id.clone()))));
    }
    asks
}

fn backfill_of(
    rng: &mut Rng,
    number: i64,
    names: &[WorkflowId],
    start: Timestamp,
    end: Timestamp,
) -> (Timestamp, BackfillRequest) {
    let (at, slot) = some_slot(rng, names, start, end);
    let from = slot.key.time().unwrap_or(at) - SignedDuration::from_hours(rng.between(0, 12));
    let request = BackfillRequest {
        id: BackfillId::new(&format!("c{number}")).unwrap_or_else(|_| unreachable!("a plain name")),
        workflow: slot.workflow,
        range: Range::new(from, from + SignedDuration::from_hours(rng.between(2, 12))),
        mode: *rng.pick(&[BackfillMode::Missing, BackfillMode::Unsuccessful, BackfillMode::All]),
        priority: i32::try_from(rng.between(-2, 2)).unwrap_or(0),
        made_by: None,
        arguments: kelos_model::Arguments::new(),
        reason: None,
        dry_run: false,
    };
    (at, request)
}

fn change_of(rng: &mut Rng, backfill: BackfillId) -> Ask {
    let reason = None;
    match rng.below(12) {
        0..=4 => Ask::PauseBackfill(PauseBackfill { backfill, reason }),
        5..=7 => Ask::ResumeBackfill(ResumeBackfill { backfill, reason }),
        8 | 9 => {
            let priority = i32::try_from(rng.between(-3, 3)).unwrap_or(0);
            Ask::PrioritiseBackfill(PrioritiseBackfill { backfill, priority, reason })
        }
        10 => Ask::RerunBackfill(RerunBackfill { backfill, reason }),
        _ => Ask::CancelBackfill(CancelBackfill { backfill, reason }),
    }
}

/// A moment, and a slot around it, on the hour, which most schedules have.
fn some_slot(rng: &mut Rng, names: &[WorkflowId], start: Timestamp, end: Timestamp) -> (Timestamp, SlotRef) {
    let at = moment(rng, start, end);
    let workflow = rng.pick(names).clone();
    let hour = at.as_second() / 3600 * 3600 + rng.between(-20, 2) * 3600;
    (at, SlotRef::at(workflow, Timestamp::from_second(hour).unwrap_or(at)))
}

fn ask(rng: &mut Rng, names: &[WorkflowId], start: Timestamp, end: Timestamp) -> (Timestamp, Ask) {
    let (at, slot) = some_slot(rng, names, start, end);
    let (workflow, time) = (slot.workflow.clone(), slot.key.time().unwrap_or(at));
    let ask = match rng.below(8) {
        0..=2 => Ask::Rerun(Rerun::of(slot)),
        3 | 4 => Ask::Kill(Kill { slot, reason: None }),
        5 => Ask::Pause(Pause { workflow, reason: None }),
        6 => Ask::Resume(Resume { workflow, reason: None }),
        _ => Ask::Backfill(BackfillRequest {
            id: BackfillId::new(&format!("b{}", rng.below(1000))).unwrap_or_else(|_| unreachable!("a plain name")),
            workflow,
            range: Range::new(time, time + SignedDuration::from_hours(rng.between(1, 8))),
            mode: *rng.pick(&[BackfillMode::Missing, BackfillMode::Unsuccessful, BackfillMode::All]),
            priority: i32::try_from(rng.between(-2, 2)).unwrap_or(0),
            dry_run: rng.percent(20),
            made_by: None,
            arguments: kelos_model::Arguments::new(),
            reason: None,
        }),
    };
    (at, ask)
}
