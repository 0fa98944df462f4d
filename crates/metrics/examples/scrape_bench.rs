//! The time of a scrape, and of counting. Figures are printed; nothing asserts them, for they are the machine's.
//!
//! ```text
//! cargo run --release -p kelos-metrics --example scrape_bench -- [WORKFLOWS] [NAMED] [SLOTS OF EACH]
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use kelos::{
    Executor, Executors, Job, Node, NodeConfig, Outcome, Report, Reports, RunId, SqliteStore, Start, Workflow,
};
use kelos_engine::Status;
use kelos_metrics::{Metrics, Selection};
use kelos_model::WorkflowId;
use kelos_model::time::{Cron, CronSchedule, Schedule};
use serde_json::Map;

/// The scrapes that are measured.
const SCRAPES: usize = 200;

/// Ends each run at once.
struct Instantly;

impl Executor for Instantly {
    fn start(&self, start: Start, reports: Reports) {
        reports.run(&start.run, Report::Ended { outcome: Outcome::Succeeded });
    }

    fn check(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::NeverStarted);
    }

    fn cancel(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::Ended { outcome: Outcome::Killed });
    }
}

fn hourly(n: usize) -> Arc<Workflow> {
    let cron = Cron::parse("0 0 * * * ?").expect("a cron expression");
    let id = WorkflowId::new(&format!("workflow-{n:05}")).expect("a name");
    Arc::new(Workflow::new(id, Schedule::Cron(CronSchedule::utc(cron)), Job::new("instantly", Map::new())))
}

fn number(at: usize, usual: usize) -> usize {
    let given = std::env::args().nth(at).map(|text| text.replace('_', ""));
    given.map_or(usual, |text| text.parse().expect("a number"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (workflows, named, slots) = (number(1, 10_000), number(2, 1_000), number(3, 24));
    let folder = tempfile::tempdir()?;
    let runs = folder.path().join("runs");
    std::fs::create_dir(&runs)?;
    let mut config = NodeConfig::new(runs, Vec::new());
    config.executors = Executors::default().with("instantly", Instantly);
    config.core.planning_window = jiff::SignedDuration::from_hours(i64::try_from(slots)?);
    let store = SqliteStore::open(folder.path().join("kelos.db"))?;
    let node = Node::start(config, Box::new(store), tokio::runtime::Handle::current())?;
    node.handle().watch_status().wait_for(|status| matches!(status, Status::Leading { .. })).await?;
    let metrics = Metrics::start(node.clone(), "bench", named);
    let began = Instant::now();
    node.handle().define((0..workflows).map(hourly).collect(), std::collections::BTreeMap::new())?;
    let all = Selection::All;
    let position = |text: &str| -> u64 {
        let line = text.lines().find(|line| line.starts_with("kelos_events_total ")).unwrap_or("0 0");
        line.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    let (mut last, mut busy) = (0, Vec::new());
    loop {
        let scraped = Instant::now();
        let text = metrics.text(true, &all).await;
        busy.push(scraped.elapsed());
        let now = position(&text);
        if now == last && now > 0 && now == node.reader().last_seq()? {
            break;
        }
        last = now;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    println!("{workflows} workflows, {named} named: {last} events in {:.1?}", began.elapsed());
    told("scrapes while slots were planned and run", &mut busy);
    let (mut idle, mut bytes, mut lines, before) = (Vec::new(), 0, 0, processor_time()?);
    for _ in 0..SCRAPES {
        let scraped = Instant::now();
        let text = metrics.text(true, &all).await;
        idle.push(scraped.elapsed());
        (bytes, lines) = (text.len(), text.lines().count());
    }
    told("scrapes while nothing happened", &mut idle);
    let each = (processor_time()? - before) / u32::try_from(SCRAPES)?;
    println!("processor time of each of these: {each:.1?}");
    println!("a scrape has {lines} lines, {} kB", bytes / 1000);
    let again = Instant::now();
    let later = Metrics::start(node.clone(), "bench", named);
    while position(&later.text(true, &all).await) < last {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("what is stored was counted within {:.1?}", again.elapsed());
    node.stop().await;
    Ok(())
}

/// The processor time of this process, in hundredths of a second.
fn processor_time() -> Result<Duration, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<_, _>>()?;
    Ok(Duration::from_millis(ticks * 10))
}

fn told(what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    println!("{what}: {} in all, p50 {:.1?}, p99 {:.1?}, longest {:.1?}", times.len(), at(50), at(99), at(100));
}
