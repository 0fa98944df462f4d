//! What jobs cost: one parent of many children, many parents of one child, many workflows, jobs without processes.
//! With the embedded store in a folder of its own; each turn is committed.
//!
//! `cargo run --release -p kelos --example jobs_bench`

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_core::{Command, Config, Input, Offer, SubmitRequest};
use kelos_engine::turn::Turns;
use kelos_model::jobs::{Group, JobKeys, JobTemplate, Member, ValueFilter};
use kelos_model::run::Report;
use kelos_model::workflow::{Job, Keys};
use kelos_model::{Actor, Outcome, RunId, SlotRef, Workflow, WorkflowId};
use kelos_store::Journal;
use kelos_store_sqlite::SqliteStore;

type Done<T> = Result<T, Box<dyn Error>>;

fn main() -> Done<()> {
    for (by_workers, done) in [(true, "queued"), (false, "queued and dispatched")] {
        println!("one parent succeeds, and its children are opened, {done}, and committed:");
        for children in [1, 100, 300, 1000] {
            let times = (0..20).map(|day| fan_out(children, day, by_workers)).collect::<Done<Vec<_>>>()?;
            println!("  {children:>5} children: {}", told(times));
        }
    }
    println!("all parents of one child succeed, one commit for each:");
    for parents in [100, 200, 400, 800] {
        let time = fan_in(parents)?;
        println!(
            "  {parents:>5} parents: {:.1} ms, {:.0} µs for each",
            millis(time),
            time.as_secs_f64() * 1e6 / f64::from(parents)
        );
    }
    let time = load(10_000)?;
    println!("10,000 workflows in one chain are defined and committed: {:.0} ms", millis(time));
    for batch in [1, 100] {
        let (jobs, time) = without_processes(20_000, batch)?;
        println!(
            "{jobs} jobs without processes, submitted and done {batch} at a time: {:.0} a second",
            f64::from(jobs) / time.as_secs_f64()
        );
    }
    Ok(())
}

struct World {
    turns: Turns,
    store: SqliteStore,
    now: Timestamp,
    _folder: tempfile::TempDir,
}

impl World {
    fn new(workflows: Vec<(WorkflowId, JobKeys)>) -> Done<World> {
        World::with(false, workflows)
    }

    fn with(by_workers: bool, workflows: Vec<(WorkflowId, JobKeys)>) -> Done<World> {
        let folder = tempfile::tempdir()?;
        let mut store = SqliteStore::open(folder.path().join("bench.db"))?;
        let now = Timestamp::from_second(1_700_000_000)?;
        let lease = store.lease("bench", now, 3_600_000)?.ok_or("somebody else leads")?;
        let handed = if by_workers { ["command".to_owned()].into() } else { std::collections::BTreeSet::new() };
        let config = Config { max_running: u32::MAX, by_workers: handed, ..Config::default() };
        let (turns, _) = Turns::restore(config, &mut store, lease, now)?;
        let mut world = World { turns, store, now, _folder: folder };
        let all = workflows.into_iter().map(|(id, keys)| {
            let job = Job::new("command", serde_json::Map::new());
            Arc::new(Workflow { concurrency: None, ..Workflow::keyed(id, Keys::Jobs(Box::new(keys)), job) })
        });
        let all = all.collect();
        world.turn(vec![Input::Definitions {
            provenance: kelos_model::workflow::Provenance::File,
            all,
            deployed: BTreeMap::new(),
        }])?;
        Ok(world)
    }

    /// One turn with a tick; gives the runs that it started.
    fn turn(&mut self, mut inputs: Vec<Input>) -> Done<Vec<RunId>> {
        inputs.push(Input::Woke { only: None, look_again: false });
        let acted = self.turns.turn(&mut self.store, self.now, inputs)?;
        let run = |command| if let Command::StartRun { run, .. } = command { Some(run) } else { None };
        Ok(acted.commands.into_iter().filter_map(run).collect())
    }

    fn submit(&mut self, jobs: Vec<SlotRef>) -> Done<Vec<RunId>> {
        let request =
            SubmitRequest { jobs, priority: 0, readd: false, arguments: kelos_model::Arguments::new(), reason: None };
        self.turn(vec![Input::Asked { token: 0, by: Actor::person("bench"), ask: request.into(), warrant: None }])
    }

    fn started(&mut self, runs: &[RunId]) -> Done<()> {
        let report = |run: &RunId| Input::RunReported {
            run: run.clone(),
            report: Report::Started { external_id: "x".to_owned() },
        };
        self.turn(runs.iter().map(report).collect()).map(|_| ())
    }
}

fn succeeded(run: &RunId) -> Input {
    Input::RunReported { run: run.clone(), report: Report::Ended { outcome: Outcome::Succeeded } }
}

fn fan_out(children: u32, day: u32, by_workers: bool) -> Done<Duration> {
    let values: Vec<Arc<str>> = (0..children).map(|value| value.to_string().into()).collect();
    let child =
        JobKeys { domains: BTreeMap::from([("x".into(), values)]), ..keys("{date}_{x}", vec![after("parent", &[])]) };
    let mut world = World::with(by_workers, vec![(id("parent"), keys("{date}", vec![])), (id("child"), child)])?;
    let offer = Offer {
        workflows: [id("parent")].into(),
        job: None,
        free: 1,
        attempts: None,
        labels: Default::default(),
        outdated: Default::default(),
    };
    world.turn(vec![Input::Offered { worker: "w".into(), offer: Some(offer) }])?;
    let runs = world.submit(vec![SlotRef::job(id("parent"), format!("{day}").into())])?;
    world.started(&runs)?;
    let begin = Instant::now();
    let opened = world.turn(runs.iter().map(succeeded).collect())?;
    let time = begin.elapsed();
    let dispatched = if by_workers { 0 } else { children as usize };
    assert_eq!(opened.len(), dispatched, "children are dispatched where no worker is needed");
    assert!(world.turns.core().live_slots() >= children as usize, "every child was opened");
    Ok(time)
}

fn fan_in(parents: u32) -> Done<Duration> {
    let values: Vec<Arc<str>> = (0..parents).map(|value| value.to_string().into()).collect();
    let parent = JobKeys { domains: BTreeMap::from([("x".into(), values.clone())]), ..keys("{date}_{x}", vec![]) };
    let child = keys("{date}", vec![after("parent", &["x"])]);
    let mut world = World::new(vec![(id("parent"), parent), (id("child"), child)])?;
    let jobs = values.iter().map(|value| SlotRef::job(id("parent"), format!("1_{value}").into())).collect();
    let runs = world.submit(jobs)?;
    world.started(&runs)?;
    let begin = Instant::now();
    let mut opened = 0;
    for run in &runs {
        opened += world.turn(vec![succeeded(run)])?.len();
    }
    assert_eq!(opened, 1, "the child was opened once");
    Ok(begin.elapsed())
}

fn load(count: u32) -> Done<Duration> {
    let name = |at: u32| format!("w{at}");
    let on = |at: u32| at.checked_sub(1).map(|before| after(&name(before), &[])).into_iter().collect();
    let workflows = (0..count).map(|at| (id(&name(at)), keys("{date}_{client}", on(at)))).collect();
    let begin = Instant::now();
    World::new(workflows)?;
    Ok(begin.elapsed())
}

fn without_processes(count: u32, batch: u32) -> Done<(u32, Duration)> {
    let mut world = World::new(vec![(id("a"), keys("{x}", vec![]))])?;
    let begin = Instant::now();
    for first in (0..count / batch).map(|at| at * batch) {
        let jobs = (first..first + batch).map(|job| SlotRef::job(id("a"), job.to_string().into()));
        let runs = world.submit(jobs.collect())?;
        world.turn(runs.iter().map(succeeded).collect())?;
    }
    Ok((count, begin.elapsed()))
}

fn keys(template: &str, depends_on: Vec<Group>) -> JobKeys {
    JobKeys { depends_on, ..JobKeys::new(JobTemplate::new(template).expect("a template")) }
}

/// A group of the jobs of one workflow, all values of some identifiers.
fn after(workflow: &str, all: &[&str]) -> Group {
    let values = all.iter().map(|name| (Arc::from(*name), ValueFilter::All)).collect();
    let members = vec![Member { workflows: vec![id(workflow)], values, job_ids: None }];
    Group { name: "default".to_owned(), members, functions: None }
}

fn id(name: &str) -> WorkflowId {
    WorkflowId::new(name).expect("a name")
}

fn told(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: usize| times.get((times.len() * share / 100).min(times.len() - 1)).copied().unwrap_or_default();
    format!("median {:.2} ms, worst {:.2} ms", millis(at(50)), millis(at(100)))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
