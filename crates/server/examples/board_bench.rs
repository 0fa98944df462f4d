//! What the board, the graph and the timeline cost the server: `cargo run --release -p kelos-server --example board_bench [finished slots]`.
//!
//! 500 hourly workflows with a long past in SQLite. Figures are of the machine they are measured on; nothing asserts them.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use jiff::{SignedDuration, Timestamp};
use kelos::{Node, NodeConfig};
use kelos_engine::Pace;
use kelos_explain::graph::GraphQuery;
use kelos_explain::graph::layout::{Size, lay_out};
use kelos_front::App;
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::time::schedule::Schedule;
use kelos_model::time::{Cron, CronSchedule};
use kelos_model::workflow::{Job, Moments, PlanState, WorkflowRow};
use kelos_model::{
    Actor, Event, EventRecord, Outcome, Run, RunId, RunState, Slot, SlotEvent, SlotRef, SlotState, Trigger, Workflow,
    WorkflowId,
};
use kelos_server::router;
use kelos_store::{Columns, Commit, Journal, Queries, SlotRow};
use kelos_store_sqlite::SqliteStore;
use tower::ServiceExt;

type Answer<T = ()> = Result<T, Box<dyn Error>>;

const WORKFLOWS: usize = 500;
const ROUNDS: usize = 50;
const NOW: i64 = 1_763_730_000;
/// Now, long ago, wide, and of one workflow.
const TIMELINES: [&str; 7] = [
    "/ui/timeline",
    "/ui/timeline?hours=24",
    "/ui/timeline?hours=168",
    "/ui/timeline?from=2025-10-01T00:00Z&to=2025-10-01T06:00Z",
    "/ui/timeline?hours=168&find=workflow-007",
    "/ui/timeline?hours=24&as=table",
    "/api/v1/runs?from=2025-10-01T00:00Z&to=2025-10-01T06:00Z",
];

#[tokio::main]
async fn main() -> Answer {
    let finished = std::env::args().nth(1).map_or(Ok(1_000_000), |count| count.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("kelos.db");
    fill(&path, finished)?;
    let mut config = NodeConfig::new(folder.path().join("runs"), Vec::new());
    std::fs::create_dir(folder.path().join("runs"))?;
    config.pace = Pace::Stepped;
    config.clock = Arc::new(|| Timestamp::from_second(NOW).unwrap_or_default());
    let node = Node::start(config, Box::new(SqliteStore::open(&path)?), tokio::runtime::Handle::current())?;
    let reader = node.reader().clone();
    let hours = |count| Columns { start: ago(count), width: 3_600_000, count };
    let one = id(7);
    time("tallies of 500 workflows x 48 hours", || Ok(reader.slot_tallies(&hours(48), None)?.len()))?;
    time("tallies of one workflow x 48 hours", || Ok(reader.slot_tallies(&hours(48), Some(&one))?.len()))?;
    let router = router(App::new(node.clone(), "bench"));
    for uri in ["/ui", "/ui?zoom=15", "/ui?zoom=1440", "/ui?zoom=10080", "/ui?zoom=43200", "/ui?time=2025-11-01T00:00Z"]
    {
        page(&router, uri).await?;
    }
    places(&*reader)?;
    for uri in ["/ui/graph", "/ui/graph?focus=workflow-250", "/ui/graph?as=list", "/ui/graph/nodes?of=workflow-250"] {
        page(&router, uri).await?;
    }
    for uri in TIMELINES {
        page(&router, uri).await?;
    }
    node.stop().await;
    Ok(())
}

fn id(number: usize) -> WorkflowId {
    WorkflowId::new(&format!("workflow-{number:03}")).expect("a name")
}

fn ago(hours: u32) -> Timestamp {
    Timestamp::from_second(NOW / 3_600 * 3_600).unwrap_or_default() - SignedDuration::from_hours(i64::from(hours))
}

/// Prints the median and the worst of some rounds.
fn tell(what: &str, mut taken: Vec<Duration>, size: usize) {
    taken.sort();
    println!("{what:<40} p50 {:>9.2?}  worst {:>9.2?}  {size}", taken[taken.len() / 2], taken[taken.len() - 1]);
}

fn time(what: &str, ask: impl Fn() -> Answer<usize>) -> Answer {
    let mut taken = Vec::new();
    let mut size = 0;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        size = ask()?;
        taken.push(begun.elapsed());
    }
    tell(what, taken, size);
    Ok(())
}

async fn page(router: &Router, uri: &str) -> Answer {
    let mut taken = Vec::new();
    let mut size = 0;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let response = router.clone().oneshot(Request::get(uri).body(Body::empty())?).await?;
        assert!(response.status().is_success());
        size = to_bytes(response.into_body(), usize::MAX).await?.len();
        taken.push(begun.elapsed());
    }
    tell(uri, taken, size);
    Ok(())
}

/// Places for the nodes of the graph by themselves.
fn places(reader: &dyn Queries) -> Answer {
    let now = Timestamp::from_second(NOW)?;
    let graph = kelos_explain::graph::read(reader, &GraphQuery::default(), now, 24)?;
    let number = |id: &WorkflowId| graph.nodes.iter().position(|node| node.id == *id);
    let pairs: Vec<(usize, usize)> =
        graph.edges.iter().filter_map(|edge| Some((number(&edge.from)?, number(&edge.to)?))).collect();
    let sizes = vec![Size { width: 150.0, height: 40.0 }; graph.nodes.len()];
    time("the graph read", || Ok(kelos_explain::graph::read(reader, &GraphQuery::default(), now, 24)?.nodes.len()))?;
    time(&format!("places for them and {} edges", pairs.len()), || Ok(lay_out(&sizes, &pairs).places.len()))
}

/// What a workflow waits for: one or two of the sixty before it, nine times in ten.
fn waits(number: usize) -> Trigger {
    let drawn = (0..1 + number % 2).map(|n| number * (n * 7 + 5) * 2_654_435_761 % 4_294_967_296 / 65_536);
    let before = drawn.filter(|drawn| drawn % 10 > 0).filter_map(|drawn| number.checked_sub(1 + drawn % 60));
    Trigger::And { triggers: before.map(|on| Trigger::Success { workflow: id(on) }).collect() }
}

/// The run of a slot, which takes some minutes; of some workflows hours.
fn run(slot: &SlotRef, seq: u64, number: usize, failed: bool) -> Run {
    let later = |seconds: usize| slot.key.time().unwrap_or_default() + SignedDuration::from_secs(seconds as i64);
    let (begun, takes) = (number * 7, if number.is_multiple_of(50) { 10_000 } else { 20 + number * 37 % 600 });
    Run {
        id: RunId { slot: slot.clone(), number: 1 },
        seq,
        previous: 0,
        state: if failed { RunState::Killed } else { RunState::Succeeded },
        executor: "command".to_owned(),
        external_id: Some(format!("{seq}")),
        dispatched_at: later(begun),
        started_at: Some(later(begun + 1)),
        ended_at: Some(later(begun + takes)),
        outcome: Some(if failed { Outcome::Killed } else { Outcome::Succeeded }),
        arguments: Default::default(),
        outputs: None,
        batch: None,
    }
}

/// Writes a past that ends now, with a run and one line of history for each slot. One in a hundred was killed.
fn fill(path: &Path, finished: usize) -> Answer {
    let mut store = SqliteStore::open(path)?;
    let lease = store.lease("bench", Timestamp::UNIX_EPOCH, 60_000)?.ok_or("somebody else leads")?;
    let hours = u32::try_from(finished / WORKFLOWS)?;
    let mut commit = Commit { workflows: (0..WORKFLOWS).map(row).collect(), ..Commit::default() };
    let mut seq = 0;
    for hour in (1..=hours).rev() {
        for number in 0..WORKFLOWS {
            seq += 1;
            let slot = SlotRef::at(id(number), ago(hour));
            let (state, what) = match seq % 100 {
                0 => (SlotState::Killed, SlotEvent::Killed { by: Actor::person("bench"), reason: None }),
                _ => (SlotState::Succeeded, SlotEvent::Succeeded { run: 1 }),
            };
            let own = Slot { last_event: seq, last_run: 1, last_run_seq: seq, ..Slot::new(state, ago(hour)) };
            commit.slots.push(SlotRow { id: slot.clone(), slot: own });
            commit.runs.push(run(&slot, seq, number, state == SlotState::Killed));
            commit.events.push(EventRecord { seq, at: ago(hour), previous: 0, event: Event::Slot { slot, what } });
        }
        if commit.slots.len() >= 20_000 || hour == 1 {
            store.commit(lease, &std::mem::take(&mut commit))?;
        }
    }
    store.release(lease)?;
    Ok(())
}

fn row(number: usize) -> WorkflowRow {
    let schedule = Schedule::Cron(CronSchedule::utc(Cron::parse("0 0 * * * ?").expect("a cron expression")));
    let mut ranges = RangeSet::default();
    ranges.insert(Range::new(ago(24 * 8), Timestamp::from_second(NOW).unwrap_or_default()));
    let planned = PlanState { ranges, ..PlanState::default() };
    let definition = Workflow {
        project: format!("project-{}", number / 50),
        trigger: waits(number),
        ..Workflow::new(id(number), schedule, Job::new("command", serde_json::Map::new()))
    };
    let (definition, moments) = (definition.into(), Moments::default());
    WorkflowRow {
        id: id(number),
        definition,
        version: 1,
        present: true,
        enabled: true,
        paused: false,
        planned,
        moments,
    }
}
