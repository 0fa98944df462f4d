//! The metrics of a server: those of its workflows, of its engine, and of what surrounds both.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kelos::Node;
use kelos::history::History;
use kelos_alerts::{AlertsStatus, Condition};
use kelos_core::{Capacity, InspectCapacity};
use kelos_engine::Status;
use kelos_executors::workers::WorkerView;
use kelos_model::history::RemovedHistory;
use kelos_model::{Actor, WorkflowId};
use kelos_sandbox::Severity;

use crate::families;
use crate::follower::Follower;
use crate::text::{Text, labels};

/// The time for which an answer of the engine about its capacity, and the size of the store, are shown again.
const REMEMBERED: Duration = Duration::from_secs(5);
/// The longest wait of the first scrape for the engine; one that takes a long turn is not waited for.
const PATIENCE: Duration = Duration::from_millis(100);

/// The metrics of a server. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    node: Node,
    version: Arc<str>,
    follower: Follower,
    /// Workers that have numbers of their own: as many as workflows.
    named: usize,
    asked: Arc<Mutex<Option<(Instant, Answers)>>>,
}

/// Answers that are asked for now and then, and not at every scrape.
#[derive(Clone, Default)]
struct Answers {
    capacity: Option<Capacity>,
    bytes: Option<u64>,
    removed: RemovedHistory,
}

/// The part of the metrics that a caller may see.
pub enum Selection {
    /// All of them.
    All,
    /// Only what is about these workflows.
    Only(Box<dyn Fn(&WorkflowId) -> bool + Send + Sync>),
}

impl Metrics {
    /// Begins to count what a node does. So many workflows have numbers of their own.
    ///
    /// # Panics
    /// Outside of a tokio runtime: the log is followed on the current one.
    #[must_use]
    pub fn start(node: Node, version: &str, workflows: usize) -> Metrics {
        let follower = Follower::new(node.reader().clone(), workflows);
        tokio::spawn(follower.clone().run(node.handle().clone()));
        Metrics { node, version: version.into(), follower, named: workflows, asked: Arc::default() }
    }

    /// The text for Prometheus, for a caller; with whether the server is ready.
    pub async fn text(&self, is_ready: bool, selection: &Selection) -> String {
        let answers = match selection {
            Selection::All => self.answers().await,
            Selection::Only(_) => Answers::default(),
        };
        let mut text = Text::default();
        self.engine(&mut text, is_ready);
        if matches!(selection, Selection::All) {
            self.surroundings(&mut text, &answers);
        }
        let now = self.node.handle().now();
        let mut ledger = self.follower.ledger();
        text.family(&families::EVENTS).add("", ledger.position());
        text.one(&families::COMPLETE, u8::from(ledger.is_complete()));
        if ledger.is_complete() {
            let sees = |id: &WorkflowId| match selection {
                Selection::All => true,
                Selection::Only(sees) => sees(id),
            };
            ledger.write(&mut text, now, &sees);
        }
        text.end()
    }

    fn leads(&self) -> bool {
        matches!(self.node.handle().status(), Status::Leading { .. })
    }

    /// The engine itself, and the log of several nodes.
    fn engine(&self, text: &mut Text, is_ready: bool) {
        text.family(&families::BUILD_INFO).add(&labels(&[("version", &self.version)]), 1);
        text.one(&families::LEADER, u8::from(self.leads()));
        text.one(&families::READY, u8::from(is_ready));
        let timings = self.node.handle().timings();
        let remaining = match self.node.log() {
            Some(log) => log.lease_remaining(),
            None => timings.lease_remaining(),
        };
        if let Some(remaining) = remaining {
            text.one(&families::LEASE_REMAINING, remaining.as_secs_f64());
        }
        if let Some(log) = self.node.log() {
            if let Some(lag) = log.lag() {
                text.one(&families::LAG, lag.as_secs_f64());
            }
            text.one(&families::LOG_ENTRY, log.status().followed);
            text.family(&families::LOG_APPLY).durations("", &log.applied());
        }
        let mut turns = text.family(&families::TURN);
        let parts = [("step", &timings.step), ("commit", &timings.commit), ("perform", &timings.perform)];
        for (part, durations) in parts {
            turns.durations(&labels(&[("part", part)]), &durations.now());
        }
    }

    /// The capacity, workers, endpoints and problems: what is nobody's who sees only some projects.
    fn surroundings(&self, text: &mut Text, answers: &Answers) {
        if let Some(bytes) = answers.bytes {
            text.one(&families::STORE_BYTES, bytes);
        }
        text.one(&families::EVENTS_REMOVED, answers.removed.events);
        text.one(&families::HISTORY_RUNS_REMOVED, answers.removed.runs);
        if let Some(history) = self.node.history() {
            write_history(text, history);
        }
        if let Some(capacity) = &answers.capacity {
            write_capacity(text, capacity);
        }
        if self.leads() {
            let workers = self.node.desk().workers();
            write_workers(text, &workers);
            text.one(&families::WORKERS_FENCED, self.node.desk().fenced());
            write_worker_folders(text, &workers, self.named);
        }
        let endpoints: Vec<_> =
            self.node.storage().health().into_iter().map(|one| (labels(&[("endpoint", &one.endpoint)]), one)).collect();
        let mut family = text.family(&families::ENDPOINT_CALLS);
        endpoints.iter().for_each(|(labels, one)| family.add(labels, one.under_way));
        let mut family = text.family(&families::ENDPOINT_CALLS_TOTAL);
        for (labels, one) in &endpoints {
            family.add_with(labels, "result", "answered", one.answered);
            family.add_with(labels, "result", "failed", one.failed);
        }
        let mut family = text.family(&families::ENDPOINT_BROKEN);
        endpoints.iter().for_each(|(labels, one)| family.add(labels, u8::from(one.broken.is_some())));
        let problems = self.node.problems();
        let mut family = text.family(&families::PROBLEMS);
        for (name, severity) in [("error", Severity::Error), ("warning", Severity::Warning)] {
            let count = problems.iter().filter(|problem| problem.severity == severity).count();
            family.add(&labels(&[("severity", name)]), count);
        }
        if let Some(alerts) = self.node.alerts().filter(|_| self.leads()) {
            write_alerts(text, &alerts.status());
        }
    }

    /// The answers that are asked for now and then. Old ones are shown while new ones are on their way, so that a scrape never waits for
    /// a long turn; only the first one waits a little.
    async fn answers(&self) -> Answers {
        let known = self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((at, answers)) = known.filter(|(_, answers)| answers.capacity.is_some() == self.leads()) else {
            // It goes on, and is remembered, if nobody waits for it any more.
            let asked = tokio::spawn(self.clone().ask());
            return tokio::time::timeout(PATIENCE, asked).await.ok().and_then(Result::ok).unwrap_or_default();
        };
        if at.elapsed() >= REMEMBERED {
            // The next scrapes show these while the new ones come.
            self.remember(answers.clone());
            tokio::spawn(self.clone().ask());
        }
        answers
    }

    /// Asks the engine for its capacity if it leads, and the store for its size.
    async fn ask(self) -> Answers {
        let reader = self.node.reader().clone();
        let read = tokio::task::spawn_blocking(move || (reader.space(), reader.removed_history()));
        let capacity = match self.leads() {
            true => self.node.handle().ask(&Actor::system("metrics"), InspectCapacity).await.ok(),
            false => None,
        };
        let (space, removed) = read.await.ok().unzip();
        let bytes = space.and_then(Result::ok).flatten().map(|space| space.file);
        let removed = removed.and_then(Result::ok).unwrap_or_default();
        let answers = Answers { capacity, bytes, removed };
        self.remember(answers.clone());
        answers
    }

    fn remember(&self, answers: Answers) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), answers));
    }
}

fn write_history(text: &mut Text, history: &History) {
    if let Some(figures) = history.figures() {
        text.one(&families::RUN_FOLDERS, figures.all.folders);
        text.one(&families::RUN_FOLDER_BYTES, figures.all.bytes);
    }
    let removed = history.removed();
    text.one(&families::RUN_FOLDERS_REMOVED, removed.folders);
    text.one(&families::RUN_FOLDER_BYTES_REMOVED, removed.bytes);
}

fn write_alerts(text: &mut Text, status: &AlertsStatus) {
    let mut open: BTreeMap<&str, u64> = Condition::ALL.iter().map(|condition| (condition.as_str(), 0)).collect();
    for incident in &status.open {
        *open.entry(incident.condition.as_str()).or_default() += 1;
    }
    let mut family = text.family(&families::ALERTS);
    open.iter().for_each(|(condition, count)| family.add_with("", "condition", condition, count));
    let channels: Vec<_> = status.channels.iter().map(|one| (labels(&[("channel", &one.name)]), one)).collect();
    let mut family = text.family(&families::ALERT_NOTICES);
    channels.iter().for_each(|(labels, one)| family.add(labels, one.waiting));
    let mut family = text.family(&families::ALERT_NOTICES_SENT);
    for (labels, one) in &channels {
        family.add_with(labels, "result", "sent", one.sent);
        family.add_with(labels, "result", "failed", one.failed);
    }
}

fn write_capacity(text: &mut Text, capacity: &Capacity) {
    text.one(&families::RUNS_LIMIT, capacity.limit);
    text.one(&families::RUNS_LIVE, capacity.running);
    text.one(&families::RUNS_QUEUED, capacity.queued);
    let pools: Vec<_> = capacity.pools.iter().map(|pool| (labels(&[("pool", pool.pool.as_str())]), pool)).collect();
    let mut family = text.family(&families::POOL_PERMITS);
    for (labels, pool) in &pools {
        if let Some(size) = pool.size {
            family.add(labels, size);
        }
    }
    let mut family = text.family(&families::POOL_HELD);
    pools.iter().for_each(|(labels, pool)| family.add(labels, pool.held));
    let mut family = text.family(&families::POOL_QUEUED);
    pools.iter().for_each(|(labels, pool)| family.add(labels, pool.queued));
}

/// The folders of workers on other machines; those after so many are added up.
fn write_worker_folders(text: &mut Text, workers: &[WorkerView], named: usize) {
    let told = workers.iter().filter_map(|worker| Some((&*worker.name, worker.folders.as_ref()?)));
    let mut rows: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for (place, (name, folders)) in told.enumerate() {
        let name = if place < named { name } else { "other" };
        let counts = [folders.all.folders, folders.all.bytes, folders.removed.folders];
        let row = rows.entry(labels(&[("worker", name)])).or_default();
        row.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
    }
    let of = [&families::WORKER_FOLDERS, &families::WORKER_FOLDER_BYTES, &families::WORKER_FOLDERS_REMOVED];
    for (place, family) in of.into_iter().enumerate() {
        let mut family = text.family(family);
        rows.iter().for_each(|(labels, row)| family.add(labels, row[place]));
    }
}

fn write_workers(text: &mut Text, workers: &[WorkerView]) {
    let mut states = BTreeMap::from([("away", 0_u64), ("leaving", 0), ("working", 0)]);
    for worker in workers {
        let state = match worker {
            WorkerView { away_since: Some(_), .. } => "away",
            WorkerView { leaves: true, .. } => "leaving",
            _ => "working",
        };
        *states.entry(state).or_default() += 1;
    }
    let mut family = text.family(&families::WORKERS);
    states.iter().for_each(|(state, count)| family.add_with("", "state", state, count));
    text.one(&families::WORKERS_USED, workers.iter().map(|worker| worker.runs.len()).sum::<usize>());
    text.one(&families::WORKERS_FREE, workers.iter().map(|worker| u64::from(worker.free)).sum::<u64>());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A worker on another machine with so many folders.
    fn worker(name: &str, folders: u64) -> WorkerView {
        let told = json!({
            "lookedAt": "2026-03-01T00:00:00Z",
            "all": {"folders": folders, "bytes": folders * 10},
            "oldestAt": null,
            "removed": {"folders": folders * 100, "bytes": 0},
        });
        WorkerView {
            name: name.into(),
            workflows: Default::default(),
            project: None,
            labels: Default::default(),
            free: 0,
            runs: Vec::new(),
            remote: None,
            folders: Some(serde_json::from_value(told).expect("folders")),
            since: "2026-03-01T00:00:00Z".parse().expect("a time"),
            leaves: false,
            away_since: None,
        }
    }

    #[test]
    fn workers_beyond_the_cap_are_added_up() {
        let silent = WorkerView { folders: None, ..worker("a-silent", 0) };
        let mut text = Text::default();
        write_worker_folders(&mut text, &[silent, worker("b", 1), worker("c", 2), worker("d", 4), worker("e", 8)], 2);
        let text = text.end();
        let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [("", [1, 2, 12]), ("_bytes", [10, 20, 120]), ("_removed_total", [100, 200, 1200])];
        let row =
            |name: &str, worker: &str, count| format!("kelos_workers_run_folders{name}{{worker=\"{worker}\"}} {count}");
        let expected = expected
            .iter()
            .flat_map(|(name, [b, c, other])| [row(name, "b", *b), row(name, "c", *c), row(name, "other", *other)]);
        assert_eq!(rows, expected.collect::<Vec<_>>());
    }
}
