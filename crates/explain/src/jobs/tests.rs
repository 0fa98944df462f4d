use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use kelos_model::jobs::{Group, JobKeys, JobTemplate, Member};
use kelos_model::workflow::{Job, Keys, Moments, PlanState, WorkflowRow};
use kelos_model::{SlotRef, SlotState, Workflow, WorkflowId};
use proptest::prelude::*;
use serde_json::Map;

use super::outlook::look;
use super::*;

fn id(name: &str) -> WorkflowId {
    WorkflowId::new(name).unwrap()
}

fn job(name: &str, id_: &str) -> SlotRef {
    SlotRef::job(id(name), id_.into())
}

fn group(name: &str, parents: &[&str]) -> Group {
    let member = Member { workflows: parents.iter().map(|parent| id(parent)).collect(), ..Member::default() };
    Group { name: name.to_owned(), members: vec![member], functions: None }
}

fn row(name: &str, groups: Vec<Group>) -> WorkflowRow {
    let keys = JobKeys { depends_on: groups, ..JobKeys::new(JobTemplate::new("{n}").unwrap()) };
    row_of(name, keys)
}

fn row_of(name: &str, keys: JobKeys) -> WorkflowRow {
    let definition = Workflow::keyed(id(name), Keys::Jobs(Box::new(keys)), Job::new("command", Map::new()));
    WorkflowRow {
        id: id(name),
        definition: Arc::new(definition),
        version: 1,
        present: true,
        enabled: true,
        paused: false,
        planned: PlanState::default(),
        moments: Moments::default(),
    }
}

/// The forecast, a line for each job: `a~1 runs`.
fn told(rows: &[WorkflowRow], states: &[(&str, SlotState)], asked: &[&str], readd: bool) -> Vec<String> {
    let states: BTreeMap<&str, SlotState> = states.iter().copied().collect();
    let asked = JobQuery { jobs: asked.iter().map(|name| job(name, "1")).collect(), readd };
    let mut state = |job: &SlotRef| Ok::<_, Infallible>(states.get(job.workflow.as_str()).copied());
    let outlook = look(&Jobs::of(rows), &asked, &mut state).unwrap();
    let line = |one: &JobForecast| {
        let by: Vec<String> = one.blocked_by.iter().map(|by| by.workflow.to_string()).collect();
        let by = if by.is_empty() { String::new() } else { format!(" by {}", by.join(",")) };
        format!("{} {} {}{by}", one.job.workflow, one.role.as_str(), one.fate.as_str())
    };
    outlook.jobs.iter().map(line).collect()
}

/// `a` and `b`, then `c` for both, then `d`.
fn diamond() -> Vec<WorkflowRow> {
    vec![
        row("a", vec![]),
        row("b", vec![]),
        row("c", vec![group("g", &["a", "b"])]),
        row("d", vec![group("g", &["c"])]),
    ]
}

#[test]
fn a_job_comes_after_its_missing_ancestors_and_before_what_becomes_possible() {
    let all = ["a ancestor runs", "b ancestor runs", "c asked runs", "d descendant runs"];
    assert_eq!(told(&diamond(), &[], &["c"], false), all);
    let one = ["a ancestor ended", "b ancestor runs", "c asked runs", "d descendant runs"];
    assert_eq!(told(&diamond(), &[("a", SlotState::Succeeded)], &["c"], false), one);
    assert_eq!(told(&diamond(), &[], &["a"], false), ["a asked runs"], "b is missing, and nobody asks for it");
    let pushed = ["a asked runs", "c descendant runs", "d descendant runs"];
    assert_eq!(told(&diamond(), &[("b", SlotState::Running)], &["a"], false), pushed);
    assert_eq!(told(&diamond(), &[("a", SlotState::Succeeded)], &["a"], false), ["a asked ended"]);
}

#[test]
fn what_failed_blocks_all_that_waits_for_it_and_another_group_is_a_way_around() {
    let failed = [("a", SlotState::Failed)];
    assert_eq!(told(&diamond(), &failed, &["d"], false), ["c ancestor blocked by a", "d asked blocked by c"]);
    let mut rows = diamond();
    rows[2] = row("c", vec![group("g", &["a"]), group("h", &["b"])]);
    let around = ["b ancestor runs", "c ancestor runs", "d asked runs"];
    assert_eq!(told(&rows, &failed, &["d"], false), around);
    assert_eq!(told(&rows, &[("b", SlotState::Succeeded)], &["c"], false), ["c asked runs", "d descendant runs"]);
}

#[test]
fn what_is_not_worth_running_is_skipped_and_is_no_way() {
    let keys = |groups| {
        let valid =
            kelos_model::jobs::Validity { values: BTreeMap::from([("n".into(), vec!["7".into()])]), function: None };
        JobKeys { depends_on: groups, valid: Some(valid), ..JobKeys::new(JobTemplate::new("{n}").unwrap()) }
    };
    let mut rows = diamond();
    rows[0] = row_of("a", keys(vec![]));
    assert_eq!(
        told(&rows, &[], &["c"], false),
        ["a ancestor skipped", "c asked blocked by a"],
        "b would not be opened by a job that can't go on"
    );
    rows[3] = row_of("d", keys(vec![group("g", &["c"])]));
    let skipped = ["c asked runs", "d descendant skipped"];
    let done = [("a", SlotState::Succeeded), ("b", SlotState::Succeeded)];
    assert_eq!(told(&rows, &done, &["c"], false), skipped);
}

#[test]
fn what_waits_for_jobs_without_names_is_opened_by_the_others_and_stays_blocked() {
    // No id of `e` is short enough.
    let mut keys = JobKeys::new(JobTemplate::new("{n}_{y}").unwrap());
    keys.domains.insert("y".into(), vec!["l".repeat(512).into()]);
    let mut hopeless = group("g", &["a"]);
    let values = BTreeMap::from([("y".into(), kelos_model::jobs::ValueFilter::All)]);
    hopeless.members.push(Member { workflows: vec![id("e")], values, ..Member::default() });
    let mut rows = diamond();
    rows.push(row_of("e", keys));
    rows[2] = row("c", vec![hopeless.clone()]);
    assert_eq!(told(&rows, &[], &["a"], false), ["a asked runs", "c descendant blocked"]);
    rows[2] = row("c", vec![hopeless, group("h", &["b"])]);
    assert_eq!(told(&rows, &[], &["a"], false), ["a asked runs"], "another way is open to it, which nobody asks for");
    assert_eq!(told(&rows, &[], &["b"], false), ["b asked runs", "c descendant runs", "d descendant runs"]);
}

#[test]
fn what_is_paused_stays_and_is_in_the_way() {
    let mut rows = diamond();
    rows[0].paused = true;
    let blocked = ["a ancestor paused", "b ancestor runs", "c ancestor blocked by a", "d asked blocked by c"];
    assert_eq!(told(&rows, &[], &["d"], false), blocked);
    assert_eq!(told(&rows, &[("a", SlotState::Queued)], &["b"], false), ["b asked runs"]);
    let goes_on = ["a ancestor under-way", "b ancestor runs", "c asked runs", "d descendant runs"];
    assert_eq!(told(&rows, &[("a", SlotState::Running)], &["c"], false), goes_on);
    rows[0].paused = false;
    rows[3].paused = true;
    let last = ["a ancestor runs", "b ancestor runs", "c asked runs", "d descendant paused"];
    assert_eq!(told(&rows, &[], &["c"], false), last);
}

#[test]
fn what_is_opened_again_takes_along_what_has_ended_of_its_descendants() {
    let ended =
        [("a", SlotState::Succeeded), ("b", SlotState::Succeeded), ("c", SlotState::Failed), ("d", SlotState::Skipped)];
    let again = ["a asked runs", "c descendant runs", "d descendant runs"];
    assert_eq!(told(&diamond(), &ended, &["a"], true), again);
    let blocked = [("a", SlotState::Succeeded), ("b", SlotState::Failed), ("c", SlotState::Succeeded)];
    assert_eq!(told(&diamond(), &blocked, &["a"], true), ["a asked runs", "c descendant blocked"]);
}

#[test]
fn workflows_that_make_no_sense_are_left_out() {
    let rows = vec![row("a", vec![group("g", &["b"])]), row("b", vec![group("g", &["a"])]), row("c", vec![])];
    let jobs = Jobs::of(&rows);
    assert!(jobs.faulty.values().next().unwrap().contains("it waits for itself"), "{:?}", jobs.faulty);
    assert!(jobs.graph.job(&id("c"), "1").is_ok());
}

/// Random groups among workflows, each of which depends on earlier ones; and how far some of their jobs are.
fn world() -> impl Strategy<Value = (Vec<WorkflowRow>, BTreeMap<usize, SlotState>, usize)> {
    let groups = proptest::collection::vec(proptest::collection::vec(any::<prop::sample::Index>(), 1..4), 0..3);
    let states = proptest::sample::select(SlotState::ALL.to_vec());
    let states = proptest::option::weighted(0.3, states);
    (proptest::collection::vec((groups, states), 1..9), any::<prop::sample::Index>()).prop_map(|(all, asked)| {
        let name = |at: usize| format!("w{at}");
        let mut rows = Vec::new();
        for (at, (groups, _)) in all.iter().enumerate() {
            let parents = |group: &Vec<prop::sample::Index>| -> Vec<String> {
                let some: BTreeSet<usize> = group.iter().map(|index| index.index(at)).collect();
                some.into_iter().map(name).collect()
            };
            let groups = groups.iter().take(if at == 0 { 0 } else { 3 }).enumerate().map(|(number, one)| {
                let parents = parents(one);
                let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
                group(&format!("g{number}"), &parents)
            });
            rows.push(row(&name(at), groups.collect()));
        }
        let states = all.iter().enumerate().filter_map(|(at, (_, state))| Some((at, (*state)?))).collect();
        (rows, states, asked.index(all.len()))
    })
}

proptest! {
    /// Every job appears once and after those that it needs; and a job that runs has all parents of some group.
    #[test]
    fn an_outlook_holds_together((rows, states, asked) in world()) {
        let jobs = Jobs::of(&rows);
        let asked = JobQuery { jobs: vec![job(rows[asked].id.as_str(), "1")], readd: false };
        let mut reads: BTreeMap<SlotRef, u32> = BTreeMap::new();
        let mut state = |job: &SlotRef| {
            *reads.entry(job.clone()).or_default() += 1;
            Ok::<_, Infallible>(states.get(&job.workflow.as_str()[1..].parse().unwrap()).copied())
        };
        let outlook = look(&jobs, &asked, &mut state).unwrap();
        prop_assert!(reads.values().all(|reads| *reads == 1), "each job is read once: {:?}", reads);
        let mut goes: BTreeSet<SlotRef> = BTreeSet::new();
        let mut listed: BTreeSet<SlotRef> = BTreeSet::new();
        for one in &outlook.jobs {
            prop_assert!(listed.insert(one.job.clone()), "twice: {:?}", one.job);
            let counts = |parent: &SlotRef| {
                let stored = states.get(&parent.workflow.as_str()[1..].parse().unwrap());
                goes.contains(parent) || stored.is_some_and(|state| *state == SlotState::Succeeded || !state.is_final())
            };
            let groups = jobs.groups(&one.job);
            let may = groups.is_empty() || groups.iter().any(|group| group.jobs.iter().all(counts));
            prop_assert!(one.fate != Fate::Runs || may, "{:?} of {:?}", one, outlook.jobs);
            if matches!(one.fate, Fate::Runs | Fate::UnderWay) {
                goes.insert(one.job.clone());
            }
        }
        prop_assert!(listed.contains(&asked.jobs[0]));
    }
}

#[test]
fn a_family_is_cut_where_it_is_too_large_and_says_so() {
    use kelos_model::jobs::ValueFilter;
    use kelos_store::{Commit, Journal, MemoryStore, StoredState};

    let values = |from: u32, to: u32| (from..to).map(|n| Arc::from(n.to_string())).collect::<Vec<Arc<str>>>();
    let parts = JobKeys {
        domains: BTreeMap::from([("part".into(), values(0, 50))]),
        ..JobKeys::new(JobTemplate::new("{n}_{part}").unwrap())
    };
    let all = Member {
        workflows: vec![id("part")],
        values: BTreeMap::from([("part".into(), ValueFilter::All)]),
        ..Member::default()
    };
    let whole = JobKeys {
        depends_on: vec![Group { name: "g".to_owned(), members: vec![all], functions: None }],
        ..JobKeys::new(JobTemplate::new("{n}").unwrap())
    };
    let mut store = MemoryStore::new();
    let lease = store.lease("n", jiff::Timestamp::UNIX_EPOCH, 1000).unwrap().unwrap();
    store
        .commit(lease, &Commit { workflows: vec![row_of("part", parts), row_of("whole", whole)], ..Commit::default() })
        .unwrap();
    let reader = store.reader();
    let jobs = Jobs::read(&*reader).unwrap();
    let reach = |most| Reach { up: 9, down: 9, most };
    let told = |family: &Family| (family.members.len(), family.edges.len(), family.left_out);
    let up = family(&jobs, &*reader, &job("whole", "1"), reach(20)).unwrap();
    assert_eq!(told(&up), (20, 19, 31));
    assert_eq!(told(&family(&jobs, &*reader, &job("whole", "1"), reach(99)).unwrap()), (51, 50, 0));
    let down = family(&jobs, &*reader, &job("part", "1_7"), reach(99)).unwrap();
    assert_eq!((told(&down), &down.members[1].job), ((2, 1, 0), &job("whole", "1")));
}
