//! Keyed workflows, for two seeds in five: a small graph of jobs that changes while they run, slots by time that wait
//! for jobs, jobs that wait for slots by time, and requests of people. All of it is generated separately, so that the other random
//! numbers of a seed are what they were before there were jobs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Ask, DownstreamRequest, Kill, MarkSuccess, Pause, Rerun, Resume, Skip, SubmitRequest};
use kelos_model::function::FunctionRef;
use kelos_model::jobs::{
    DateForm, Feed, Group, JobGraph, JobKeys, JobTemplate, Kind, Member, TwoWay, Validity, ValueFilter,
};
use kelos_model::time::{Cron, CronSchedule, Fold, Gap, Schedule, Zone};
use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::workflow::{CatchUp, Job, Keys};
use kelos_model::{PoolId, SlotRef, Trigger, Workflow, WorkflowId};

use super::{Workload, moment, pool_uses, retry};
use crate::rng::Rng;

/// In the last ones `y` can't contain an underscore, which others allow: some of their jobs have no id.
const TEMPLATES: [&str; 8] = ["{date}", "{date}_{x}", "{x}", "{x}_{y}", "{y}", "{date}_{y}", "{y}_{x}", "{y}_{date}"];

/// Sets of definitions, and the moment at which each comes into force.
pub(super) type Sets = Vec<(Timestamp, Vec<Arc<Workflow>>)>;

/// The groups that functions return, by their digest.
pub type GroupMeanings = BTreeMap<String, Group>;

/// The values of identifiers in this seed, and the relations that its functions know.
struct Values {
    date: Vec<Arc<str>>,
    x: Vec<Arc<str>>,
    y: Vec<Arc<str>>,
    meant: RefCell<GroupMeanings>,
}

impl Values {
    fn new(start: Timestamp) -> Values {
        let day = |n: i64| {
            let at = start + SignedDuration::from_hours(24 * n);
            DateForm::Compact.write(at.to_zoned(jiff::tz::TimeZone::UTC).date()).into()
        };
        let texts = |all: &[&str]| all.iter().map(|text| Arc::from(*text)).collect();
        let (x, y) = (texts(&["1", "2", "3"]), texts(&["u", "v", "u_v"]));
        Values { date: (-1..=1).map(day).collect(), x, y, meant: RefCell::default() }
    }

    fn of(&self, name: &str) -> &[Arc<str>] {
        match name {
            "date" => &self.date,
            "x" => &self.x,
            _ => &self.y,
        }
    }

    /// The same group, known by functions only.
    fn hidden(&self, group: &Group) -> Group {
        let mut meant = self.meant.borrow_mut();
        let digest = format!("r{}", meant.len());
        meant.insert(digest.clone(), group.clone());
        let function = |index| FunctionRef { file: "sim.js".to_owned(), index, digest: digest.clone() };
        let named = group.members.iter().flat_map(|member| &member.workflows);
        let workflows: BTreeSet<WorkflowId> = named.cloned().collect();
        let functions =
            TwoWay { workflows: workflows.into_iter().collect(), parents: function(1), children: function(2) };
        Group { name: group.name.clone(), members: Vec::new(), functions: Some(functions) }
    }

    fn some(&self, rng: &mut Rng, name: &str) -> Vec<Arc<str>> {
        let all = self.of(name);
        let first = usize::try_from(rng.below(all.len() as u64)).unwrap_or(0);
        let count = usize::try_from(rng.between(1, 2)).unwrap_or(1);
        all.iter().cycle().skip(first).take(count.min(all.len())).cloned().collect()
    }

    /// Every job id of a workflow.
    fn ids(&self, keys: &JobKeys) -> Vec<Arc<str>> {
        let mut all: Vec<Vec<Arc<str>>> = vec![Vec::new()];
        for name in keys.template.identifiers() {
            let longer = |one: &Vec<Arc<str>>, value: &Arc<str>| one.iter().chain([value]).cloned().collect();
            all = all.iter().flat_map(|one| self.of(name).iter().map(move |value| longer(one, value))).collect();
        }
        all.iter().map(|values| keys.template.fill(values)).collect()
    }
}

/// Gives two seeds in five keyed workflows, and two in five of those workers.
pub(super) fn add(seed: u64, workload: &mut Workload) {
    let mut rng = Rng::new(seed ^ 0x10B5);
    if !rng.percent(40) {
        return;
    }
    let values = Values::new(workload.start);
    let mut sets = sets(&mut rng, &values, workload);
    choose_catch_up(seed, &mut sets);
    let every = sets.iter().flat_map(|(_, set)| set);
    let apps: BTreeMap<WorkflowId, JobKeys> =
        every.filter_map(|one| Some((one.id.clone(), one.keys.jobs()?.clone()))).collect();
    workload.definitions = merged(&workload.definitions, &sets);
    let asks = rng.between(4, 50);
    for _ in 0..asks {
        let at = moment(&mut rng, workload.start, workload.end);
        let ask = ask(&mut rng, &values, &apps);
        workload.asks.push((at, ask));
    }
    workload.asks.sort_by_key(|(at, _)| *at);
    workload.apps = apps.keys().cloned().collect();
    workload.meant = values.meant.borrow().clone();
    if rng.percent(40) {
        (workload.workers, workload.shifts) =
            super::workers::some(&mut rng, workload, |rng| some_job(rng, &values, &apps));
    }
}

/// Policies for the misfires of feeds, generated separately: the other random numbers of a seed are as they were before. Some change
/// while a feed stays.
fn choose_catch_up(seed: u64, sets: &mut Sets) {
    let mut rng = Rng::new(seed ^ 0xFEED);
    let mut policies: BTreeMap<WorkflowId, Option<CatchUp>> = BTreeMap::new();
    for workflow in sets.iter_mut().flat_map(|(_, set)| set) {
        let policy = |rng: &mut Rng| *rng.pick(&[None, Some(CatchUp::All), Some(CatchUp::Latest), Some(CatchUp::Skip)]);
        let chosen = policies.entry(workflow.id.clone()).or_insert_with(|| policy(&mut rng));
        if rng.percent(20) {
            *chosen = policy(&mut rng);
        }
        if workflow.keys.jobs().is_some_and(|jobs| jobs.feed.is_some()) {
            Arc::make_mut(workflow).catch_up = *chosen;
        }
    }
}

/// The definitions of both kinds, one set for each moment at which either changes.
pub(super) fn merged(timed: &Sets, keyed: &Sets) -> Sets {
    let moments: BTreeSet<Timestamp> = timed.iter().chain(keyed).map(|(at, _)| *at).collect();
    let at = |sets: &Sets, now: Timestamp| {
        sets.iter().take_while(|(at, _)| *at <= now).last().map(|(_, set)| set.clone()).unwrap_or_default()
    };
    moments.into_iter().map(|now| (now, [at(timed, now), at(keyed, now)].concat())).collect()
}

fn sets(rng: &mut Rng, values: &Values, workload: &Workload) -> Sets {
    let mut set: Vec<Arc<Workflow>> = Vec::new();
    for n in 0..usize::try_from(rng.between(2, 7)).unwrap_or(2) {
        let keys = keys(rng, values, &set, n);
        set.push(Arc::new(app(rng, values, &set, n, keys)));
    }
    let apps = set.len();
    set.push(Arc::new(timed("daily", "0 0 0 * * ?", Trigger::Always)));
    let trigger = job_trigger(rng, values, &set[..apps], &["date"]);
    set.push(Arc::new(timed("looker", "0 0 0/2 * * ?", trigger)));
    let mut sets = vec![(workload.start, set.clone())];
    for _ in 0..rng.below(5) {
        let before = set.clone();
        let is_passing = edit(rng, values, &mut set);
        let at = moment(rng, workload.start, workload.end);
        sets.push((at, set.clone()));
        if is_passing {
            set = before;
            sets.push((at + SignedDuration::from_secs(rng.between(60, 9000)), set.clone()));
        }
    }
    sets.sort_by_key(|(at, _)| *at);
    sets.retain(|(at, _)| *at <= workload.end);
    sets
}

fn timed(name: &str, cron: &str, trigger: Trigger) -> Workflow {
    let job = Job::new("fake", serde_json::Map::new());
    Workflow { project: "sim".to_owned(), trigger, ..Workflow::new(id_of(name), Schedule::Cron(cron_of(cron)), job) }
}

fn id_of(name: &str) -> WorkflowId {
    WorkflowId::new(name).unwrap_or_else(|_| unreachable!("a plain name"))
}

fn cron_of(text: &str) -> CronSchedule {
    let cron = Cron::parse(text).unwrap_or_else(|error| panic!("a constant expression: {error}"));
    CronSchedule::new(cron, Zone::utc(), Gap::default(), Fold::default())
}

/// Changes the definitions. Returns whether the change is to be undone soon: an app that is gone for a while, or an invalid one.
fn edit(rng: &mut Rng, values: &Values, set: &mut Vec<Arc<Workflow>>) -> bool {
    let apps = set.iter().filter(|one| one.keys.jobs().is_some()).count();
    let n = usize::try_from(rng.below(apps as u64)).unwrap_or(0);
    match rng.below(10) {
        0..=2 => {
            set.remove(n);
            return true;
        }
        3 => {
            let nobody = Member { workflows: vec![id_of("nobody")], ..Member::default() };
            let jobs = jobs_of(Arc::make_mut(&mut set[n]));
            jobs.depends_on = vec![Group { name: "odd".to_owned(), members: vec![nobody], functions: None }];
            return true;
        }
        4 => Arc::make_mut(&mut set[n]).trigger = some_trigger(rng, values, &set.clone()[..n], n),
        5 => jobs_of(Arc::make_mut(&mut set[n])).valid = validity(rng, values, n),
        6 => Arc::make_mut(&mut set[n]).concurrency = Some(concurrency(rng)),
        _ => {
            let (before, bare) = (set[..n].to_vec(), bare(&set[n]));
            jobs_of(Arc::make_mut(&mut set[n])).depends_on = groups(rng, values, &before, n, bare);
        }
    }
    false
}

fn jobs_of(workflow: &mut Workflow) -> &mut JobKeys {
    match &mut workflow.keys {
        Keys::Jobs(jobs) => jobs,
        _ => unreachable!("only keyed workflows are edited"),
    }
}

fn bare(workflow: &Workflow) -> JobKeys {
    let keys = workflow.keys.jobs().cloned();
    let keys = keys.unwrap_or_else(|| unreachable!("only keyed workflows are edited"));
    JobKeys { depends_on: Vec::new(), ..keys }
}

fn app(rng: &mut Rng, values: &Values, before: &[Arc<Workflow>], n: usize, keys: JobKeys) -> Workflow {
    let job = Job::new("fake", serde_json::Map::new());
    let pools: Vec<_> = ["p0", "pk"].into_iter().filter_map(|name| PoolId::new(name).ok()).collect();
    Workflow {
        project: "sim".to_owned(),
        trigger: some_trigger(rng, values, before, n),
        concurrency: Some(concurrency(rng)),
        pools: if rng.percent(35) { pool_uses(rng, &pools, &[3, 1]) } else { Vec::new() },
        retry: retry(rng),
        ..Workflow::keyed(id_of(&format!("k{n}")), Keys::Jobs(Box::new(keys)), job)
    }
}

fn concurrency(rng: &mut Rng) -> u32 {
    if rng.percent(50) { 50 } else { u32::try_from(rng.between(1, 3)).unwrap_or(1) }
}

fn keys(rng: &mut Rng, values: &Values, before: &[Arc<Workflow>], n: usize) -> JobKeys {
    let text: &str = rng.pick::<&str>(&TEMPLATES);
    let template = JobTemplate::new(text).unwrap_or_else(|error| panic!("a constant template: {error}"));
    let mut keys = JobKeys::new(template.clone());
    for name in template.identifiers() {
        let often = if &**name == "date" { 20 } else { 75 };
        if rng.percent(often) {
            let whole = rng.percent(80);
            let mut domain = if whole { values.of(name).to_vec() } else { values.some(rng, name) };
            domain.retain(|value| template.position(name).is_some_and(|at| template.flaw(at, value).is_none()));
            keys.domains.insert(name.clone(), domain);
        }
        match &**name {
            "date" => drop(keys.identifiers.insert(name.clone(), Kind::Date { form: DateForm::Compact })),
            "x" => drop(keys.identifiers.insert(name.clone(), Kind::Integer { min: None, max: None })),
            _ => {}
        }
    }
    keys.depends_on = groups(rng, values, before, n, keys.clone());
    keys.valid = validity(rng, values, n);
    let mut others = template.identifiers().filter(|name| &***name != "date");
    let is_whole = template.position("date").is_some() && others.all(|name| keys.domains.contains_key(name));
    if is_whole && rng.percent(35) {
        let cron = *rng.pick(&["0 0 0/6 * * ?", "0 30 2 * * ?", "0 0 0 * * ?"]);
        keys.feed = Some(Feed { identifier: "date".into(), schedule: Schedule::Cron(cron_of(cron)) });
    }
    keys
}

fn validity(rng: &mut Rng, values: &Values, n: usize) -> Option<Validity> {
    if rng.percent(85) {
        return None;
    }
    let mut valid = Validity::default();
    if rng.percent(60) {
        let name = *rng.pick(&["x", "y"]);
        valid.values.insert(name.into(), values.some(rng, name));
    }
    let index = u32::try_from(n).unwrap_or(0);
    let function = FunctionRef { file: "sim.js".to_owned(), index, digest: "d".to_owned() };
    valid.function = rng.percent(60).then_some(function);
    Some(valid)
}

/// Groups that are valid together with the apps before: invalid ones are generated again a few times.
fn groups(rng: &mut Rng, values: &Values, before: &[Arc<Workflow>], n: usize, bare: JobKeys) -> Vec<Group> {
    let apps: Vec<(WorkflowId, JobKeys)> =
        before.iter().filter_map(|one| Some((one.id.clone(), one.keys.jobs()?.clone()))).collect();
    if apps.is_empty() {
        return Vec::new();
    }
    let mut kept = bare;
    let wanted = *rng.pick(&[0, 1, 1, 1, 2, 2]);
    for _ in 0..8 {
        if kept.depends_on.len() == wanted {
            break;
        }
        let members = (0..rng.between(1, 2)).map(|_| member(rng, values, &apps, &kept)).collect();
        kept.depends_on.push(Group { name: format!("g{}", kept.depends_on.len()), members, functions: None });
        let mut all = apps.clone();
        all.push((id_of(&format!("k{n}")), kept.clone()));
        if JobGraph::new(all).is_err() {
            kept.depends_on.pop();
        } else if rng.percent(15) {
            let hidden = kept.depends_on.pop().map(|group| values.hidden(&group));
            kept.depends_on.extend(hidden);
        }
    }
    kept.depends_on
}

fn member(rng: &mut Rng, values: &Values, apps: &[(WorkflowId, JobKeys)], child: &JobKeys) -> Member {
    let (id, parent) = rng.pick(apps);
    let mut member = Member { workflows: vec![id.clone()], ..Member::default() };
    let alike = apps.iter().find(|(other, keys)| other != id && keys.template == parent.template);
    if let Some((other, _)) = alike.filter(|_| rng.percent(40)) {
        member.workflows.push(other.clone());
    }
    for name in ["date", "x", "y"] {
        let (theirs, ours) = (parent.template.position(name).is_some(), child.template.position(name).is_some());
        let wanted = match (theirs, ours) {
            (true, true) if rng.percent(25) => ValueFilter::Of(values.some(rng, name)),
            (true, false) if rng.percent(50) => ValueFilter::All,
            (true, false) => ValueFilter::Of(values.some(rng, name)),
            (false, true) if !child.domains.contains_key(name) || rng.percent(30) => {
                ValueFilter::Of(values.some(rng, name))
            }
            _ => continue,
        };
        member.values.insert(name.into(), wanted);
    }
    if rng.percent(8) {
        member.job_ids = Some(vec![rng.pick(&values.ids(parent)).clone()]);
    }
    member
}

fn some_trigger(rng: &mut Rng, values: &Values, before: &[Arc<Workflow>], n: usize) -> Trigger {
    let daily = || Trigger::Success { workflow: id_of("daily") };
    let names = ["x", "y", "date"];
    match rng.below(20) {
        0..=12 => Trigger::Always,
        13 | 14 => daily(),
        15 => Trigger::Offset { seconds: 86_400 * rng.between(-1, 1), trigger: Box::new(daily()) },
        16 if !before.is_empty() => job_trigger(rng, values, before, &names),
        17 => Trigger::Delay { seconds: rng.between(-600, 40_000) },
        18 => Trigger::Path(PathCheck::new(FileSystem::Local, &format!("/k{n}/${{x}}${{y}}"), "file:")),
        19 => {
            let late = Trigger::Delay { seconds: rng.between(0, 40_000) };
            let triggers = vec![late, job_trigger(rng, values, before, &names)];
            if rng.percent(50) { Trigger::And { triggers } } else { Trigger::Or { triggers } }
        }
        _ => Trigger::Always,
    }
}

/// A trigger that waits for a job: identifiers that the waiting slot does not have get some value.
fn job_trigger(rng: &mut Rng, values: &Values, apps: &[Arc<Workflow>], known: &[&str]) -> Trigger {
    let Some(app) = apps.get(usize::try_from(rng.below(apps.len().max(1) as u64)).unwrap_or(0)) else {
        return Trigger::Always;
    };
    let Some(keys) = app.keys.jobs() else { return Trigger::Always };
    let mut job = keys.template.as_str().to_owned();
    for name in keys.template.identifiers() {
        let value = match &**name {
            "date" if known.contains(&"date") => "${year}${month}${day}".to_owned(),
            other if known.contains(&other) && rng.percent(50) => format!("${{{other}}}"),
            other => rng.pick(values.of(other)).to_string(),
        };
        job = job.replace(&format!("{{{name}}}"), &value);
    }
    Trigger::Job { workflow: app.id.clone(), job }
}

fn some_job(rng: &mut Rng, values: &Values, apps: &BTreeMap<WorkflowId, JobKeys>) -> SlotRef {
    let all: Vec<_> = apps.iter().collect();
    let (id, keys) = *rng.pick(&all);
    let job = if rng.percent(1) { "nonsense".into() } else { rng.pick(&values.ids(keys)).clone() };
    SlotRef::job(id.clone(), job)
}

fn ask(rng: &mut Rng, values: &Values, apps: &BTreeMap<WorkflowId, JobKeys>) -> Ask {
    let slot = some_job(rng, values, apps);
    let reason = None;
    match rng.below(24) {
        0..=1 => Ask::Rerun(Rerun { slot, arguments: kelos_model::Arguments::new(), reason }),
        2..=3 => Ask::Kill(Kill { slot, reason }),
        4 => Ask::MarkSuccess(MarkSuccess { slot, reason }),
        5 => Ask::Skip(Skip { slot, reason }),
        6 => Ask::Pause(Pause { workflow: slot.workflow, reason: None }),
        7..=8 => Ask::Resume(Resume { workflow: slot.workflow, reason: None }),
        9..=10 => Ask::RerunDownstream(DownstreamRequest {
            slot,
            arguments: kelos_model::Arguments::new(),
            reason,
            kill_live: rng.percent(60),
            dry_run: false,
        }),
        _ => {
            let more = rng.below(4);
            let jobs = [slot].into_iter().chain((0..more).map(|_| some_job(rng, values, apps))).collect();
            let priority = i32::try_from(rng.between(-2, 2)).unwrap_or(0);
            Ask::Submit(SubmitRequest {
                jobs,
                priority,
                readd: rng.percent(30),
                arguments: kelos_model::Arguments::new(),
                reason,
            })
        }
    }
}
