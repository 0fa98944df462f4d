//! The worker of a node of several: it runs commands for whichever node leads.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kelos::{Node, local_executors};
use kelos_engine::secrets::Secrets;
use kelos_executors::http::Http;
use kelos_executors::local::OutputCopies;
use kelos_executors::workers::{Disk, Door, NoAnswer, RemoteLine, Worker, WorkerHome, WorkerOffer};
use kelos_model::WorkflowId;
use kelos_model::workers::Label;
use kelos_store::log::LogState;
use kelos_tls::Trust;
use kelos_wire::{AssignmentDto, OfferRequest, RemoteWorkerDto};
use tokio::runtime::Handle as Runtime;

use crate::failure::Failure;
use crate::machine::{hostname, launcher};

/// The folder of the worker of a node.
const FOLDER: &str = "worker";

/// The interval at which a worker that waits for an answer looks who leads.
const LOOK: Duration = Duration::from_millis(100);

/// The first and the longest wait after an answer that refuses the worker, as one does to a token that the leader does not know yet.
const REFUSED: Duration = Duration::from_secs(1);
const LONG_REFUSED: Duration = Duration::from_secs(60);

/// The terms of a node's worker.
pub(crate) struct NodeWorkerPlan {
    /// The number of runs at a time; 0 for a node that runs none.
    pub(crate) at_a_time: u32,
    /// The workflows whose jobs it runs; none for all.
    pub(crate) workflows: Vec<WorkflowId>,
    /// The labels.
    pub(crate) labels: Vec<Label>,
    /// The token that it shows to the leader.
    pub(crate) token: Option<Arc<str>>,
    /// The secrets that its runs may use.
    pub(crate) secrets: Secrets,
    /// The trust in the leader.
    pub(crate) trust: Trust,
}

/// The folder of the runs of the worker of a node, in its folder of state.
pub(crate) fn worker_runs(state: &Path) -> PathBuf {
    state.join(FOLDER).join("runs")
}

/// Starts the worker of a node, unless it is to run nothing. When the node ends, commands go on behind their shims for the time of the
/// lease, and a node that is started again by then has them.
pub(crate) fn start(
    plan: NodeWorkerPlan,
    node: &Node,
    state: &Path,
    copies: Option<OutputCopies>,
    runtime: &Runtime,
) -> Result<(), Failure> {
    let Some(log) = node.log().filter(|_| plan.at_a_time > 0).cloned() else { return Ok(()) };
    // Its runs are those of the log, whichever address that is reached by.
    let disk = Disk::take(&state.join(FOLDER), &[log.name()]).map_err(|error| Failure::bad(error.to_string()))?;
    let outputs = copies.as_ref().map(OutputCopies::address);
    let launcher = launcher(&disk.runs())?.with_copies(copies);
    let (version, node) = (env!("CARGO_PKG_VERSION").to_owned(), Some(log.node().to_owned()));
    let about = RemoteWorkerDto { host: hostname(), version, node, outputs };
    let executors = local_executors(&launcher, &plan.secrets, runtime);
    let name = format!("{}:{}", log.node(), disk.tail());
    let home = WorkerHome::Own(disk.with(launcher, about));
    let wanted = WorkerOffer {
        workflows: plan.workflows.into_iter().collect(),
        project: None,
        labels: plan.labels.into_iter().collect(),
        job: None,
        at_a_time: plan.at_a_time,
        in_all: None,
        attempts: None,
        held: false,
    };
    let line = LeaderLine { log, http: RemoteLine::client(&plan.trust), token: plan.token, refused: Mutex::default() };
    let (_worker, mut news) = {
        let _entered = runtime.enter();
        Worker::start(name, line, executors, wanted, home)
    };
    runtime.spawn(async move {
        while let Some(told) = news.recv().await {
            tracing::debug!("the worker of this node: {told:?}");
        }
    });
    Ok(())
}

/// A line to whichever node leads.
struct LeaderLine {
    log: LogState,
    http: Http,
    token: Option<Arc<str>>,
    refused: Mutex<Refusals>,
}

/// The answers in a row that refused the worker.
#[derive(Debug, Default)]
struct Refusals {
    count: u32,
    /// The last one that was logged.
    said: Option<String>,
}

impl Refusals {
    /// Notes another one: how long to wait before the next attempt, and whether it is to be logged.
    fn another(&mut self, why: &str) -> (Duration, bool) {
        let wait = REFUSED.saturating_mul(1 << self.count.min(6)).min(LONG_REFUSED);
        self.count += 1;
        let is_new = self.said.as_deref() != Some(why);
        self.said = Some(why.to_owned());
        (wait, is_new)
    }

    /// Notes an answer that does not refuse it; whether one did before.
    fn are_over(&mut self) -> bool {
        std::mem::take(self).count > 0
    }
}

impl LeaderLine {
    fn refused(&self) -> MutexGuard<'_, Refusals> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits after an answer that refuses the worker, until the next leader at most. A node goes on asking: the leader may be told of its
    /// token, or the next one know it.
    async fn wait_refused(&self, why: String, epoch: u64) -> NoAnswer {
        let (wait, is_new) = self.refused().another(&why);
        if is_new {
            tracing::error!("failed to {why}; this node runs no commands until it is let in, and goes on asking");
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.ceases(epoch) => {}
        }
        NoAnswer::Away(why)
    }

    /// Waits until the time of a leader is over. One that stands still, or is cut off, holds its connections and never answers.
    async fn ceases(&self, epoch: u64) {
        while self.log.status().lease.epoch == epoch {
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Door for LeaderLine {
    async fn say(&self, worker: &str, offer: &OfferRequest, patience: Duration) -> Result<AssignmentDto, NoAnswer> {
        let lease = self.log.status().lease;
        let leader = lease.holder.address.filter(|_| lease.epoch > 0 && !lease.is_free);
        let leader =
            leader.ok_or_else(|| NoAnswer::Away("reach the leader: no node leads at the moment".to_owned()))?;
        let line = RemoteLine::of(leader, self.token.clone(), self.http.clone());
        let answer = tokio::select! {
            answer = line.say(worker, offer, patience) => answer,
            () = self.ceases(lease.epoch) => Err(NoAnswer::Away("hear from the leader: another node leads by now".to_owned())),
        };
        match answer {
            Err(NoAnswer::Never(why)) => Err(self.wait_refused(why, lease.epoch).await),
            Ok(answer) => {
                if self.refused().are_over() {
                    tracing::info!("the leader takes the worker of this node");
                }
                Ok(answer)
            }
            answer => answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_refused_goes_on_asking_more_and_more_seldom_and_says_it_once() {
        let mut refusals = Refusals::default();
        let heard: Vec<_> = (0..8).map(|_| refusals.another("show a token")).collect();
        let waits: Vec<u64> = heard.iter().map(|(wait, _)| wait.as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(heard.iter().filter(|(_, is_new)| *is_new).count(), 1);
        assert!(refusals.another("work under this name").1 && refusals.are_over() && !refusals.are_over());
        assert_eq!(refusals.another("show a token"), (REFUSED, true));
    }
}
