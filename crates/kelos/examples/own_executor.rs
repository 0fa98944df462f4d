//! An executor of one's own, whole: runs are done by whoever looks into a folder.
//!
//!     cargo run -p kelos --example own_executor
//!
//! A start puts the file `RUN.json` into an outbox. Somebody else, of whom Kelos knows nothing, does the work and leaves
//! `RUN.done` or `RUN.failed` beside it. docs/executors.md goes through this file part by part.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use kelos::{
    CronSchedule, Executor, Executors, Job, MemoryStore, Node, NodeConfig, Outcome, PageRequest, Report, Reports,
    RetryPolicy, RunId, Schedule, SlotFilter, Start, Workflow, WorkflowId, own_shim,
};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

/// How often answers are looked for.
const EVERY: Duration = Duration::from_millis(100);

/// Puts runs into a folder and waits for answers there.
#[derive(Clone)]
struct Outbox {
    folder: PathBuf,
    runtime: Handle,
}

/// What the folder says about a run.
enum OutboxEntry {
    Nothing,
    Waiting,
    Ended(Outcome),
}

impl Outbox {
    /// A file of a run. Its name is the run's, so that a run has one file, however often it is started.
    fn file(&self, run: &RunId, kind: &str) -> PathBuf {
        self.folder.join(format!("{}.{kind}", run.to_string().replace('/', "_")))
    }

    /// Puts the run into the outbox; where it is there already, that is as good.
    fn put(&self, start: &Start) -> io::Result<()> {
        let order = json!({"run": start.run.to_string(), "settings": start.settings});
        let (draft, order_file) = (self.file(&start.run, "draft"), self.file(&start.run, "json"));
        if order_file.exists() {
            return Ok(());
        }
        // Whole or not at all: nobody sees a half-written order.
        fs::write(&draft, order.to_string())?;
        fs::rename(&draft, &order_file)
    }

    fn find(&self, run: &RunId) -> OutboxEntry {
        if self.file(run, "done").exists() {
            return OutboxEntry::Ended(Outcome::Succeeded);
        }
        if let Ok(reason) = fs::read_to_string(self.file(run, "failed")) {
            return OutboxEntry::Ended(Outcome::Failed { reason, exit_status: None, code: None });
        }
        if self.file(run, "killed").exists() {
            return OutboxEntry::Ended(Outcome::Killed);
        }
        if self.file(run, "json").exists() { OutboxEntry::Waiting } else { OutboxEntry::Nothing }
    }

    /// Says that a run goes on, waits for its end, and says that too. Twice at a time does no harm: the scheduler takes
    /// the first end that it hears of.
    fn watch(&self, run: RunId, reports: Reports) {
        let this = self.clone();
        reports.run(&run, Report::Started { external_id: this.file(&run, "json").display().to_string() });
        self.runtime.spawn(async move {
            loop {
                match this.find(&run) {
                    OutboxEntry::Ended(outcome) => return reports.run(&run, Report::Ended { outcome }),
                    OutboxEntry::Nothing => return reports.run(&run, Report::Ended { outcome: gone() }),
                    OutboxEntry::Waiting => tokio::time::sleep(EVERY).await,
                }
            }
        });
    }
}

/// How it ended can't be known, so it isn't reported as failed, and the service that took the order may still be working on it.
fn gone() -> Outcome {
    Outcome::Lost { reason: "its order is gone from the outbox, and there is no answer".to_owned() }
}

impl Executor for Outbox {
    fn start(&self, start: Start, reports: Reports) {
        if !start.settings.contains_key("task") {
            // Trying again would not help: the definition is wrong.
            let reason = "it has no `task`, expected what is to be done".to_owned();
            return reports.run(&start.run, Report::Ended { outcome: Outcome::refused(reason) });
        }
        match self.put(&start) {
            Ok(()) => self.watch(start.run, reports),
            // The disk may be full now and not later: the run keeps its place and is asked for again.
            Err(error) => {
                reports.run(&start.run, Report::Deferred { reason: format!("failed to write its order: {error}") })
            }
        }
    }

    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        match (self.find(run), external_id) {
            (OutboxEntry::Waiting, _) => self.watch(run.clone(), reports),
            (OutboxEntry::Ended(outcome), _) => reports.run(run, Report::Ended { outcome }),
            // The intent was stored, and the start got lost: it will be asked for again.
            (OutboxEntry::Nothing, None) => reports.run(run, Report::NeverStarted),
            (OutboxEntry::Nothing, Some(_)) => reports.run(run, Report::Ended { outcome: gone() }),
        }
    }

    fn cancel(&self, run: &RunId, _external_id: Option<&str>, reports: Reports) {
        let outcome = match self.find(run) {
            OutboxEntry::Ended(outcome) => outcome,
            // The mark is for whoever works on it. Where it can't be left, this is asked for again.
            OutboxEntry::Waiting | OutboxEntry::Nothing => match fs::write(self.file(run, "killed"), "") {
                Ok(()) => Outcome::Killed,
                Err(_) => return,
            },
        };
        reports.run(run, Report::Ended { outcome });
    }
}

/// A workflow as a program defines it; a script would say celos.externalService({executor: "outbox", settings: {…}}).
fn hourly() -> Result<Workflow, Box<dyn Error>> {
    Ok(Workflow {
        concurrency: Some(2),
        retry: RetryPolicy::immediate(1),
        start_time: Some(kelos::system_clock()() - Duration::from_secs(4 * 3600)),
        ..Workflow::new(
            WorkflowId::new("letters")?,
            Schedule::Cron(CronSchedule::hourly()),
            Job::new("outbox", Map::from_iter([("task".to_owned(), Value::from("write for ${hour}:00"))])),
        )
    })
}

/// Somebody who does the work.
fn work(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "json") {
            println!("doing {}", fs::read_to_string(&path)?);
            fs::write(path.with_extension("done"), "")?;
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("kelos-outbox-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let outbox = Outbox { folder: folder.clone(), runtime: Handle::current() };
    let mut config = NodeConfig::new(folder.join("runs"), own_shim());
    config.executors = Executors::default().with("outbox", outbox);
    let node = Node::start(config, Box::new(MemoryStore::new()), Handle::current())?;
    node.handle().define(vec![Arc::new(hourly()?)], BTreeMap::new())?;
    let mut commits = node.handle().watch_commits();
    loop {
        let slots = node.reader().slots(&SlotFilter::default(), PageRequest::newest(10))?.rows;
        if slots.len() >= 4 && slots.iter().all(|row| row.slot.state.is_final()) {
            slots.iter().for_each(|row| println!("{} {}", row.id, row.slot.state.as_str()));
            break;
        }
        work(&folder)?;
        let _ = tokio::time::timeout(EVERY, commits.changed()).await;
    }
    node.stop().await;
    fs::remove_dir_all(&folder)?;
    Ok(())
}
