//! The worker of a node of several: it runs commands for whichever node leads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kelos::{Node, local_executors};
use kelos_engine::secrets::Secrets;
use kelos_executors::http::Http;
use kelos_executors::local::OutputCopies;
use kelos_executors::workers::{Disk, Door, News, NoAnswer, RemoteLine, Worker, WorkerHome, WorkerOffer};
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
    let disk = Disk::take(&state.join(FOLDER), log.name()).map_err(|error| Failure::bad(error.to_string()))?;
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
    let line = LeaderLine { log, http: RemoteLine::client(&plan.trust), token: plan.token };
    let (_worker, mut news) = {
        let _entered = runtime.enter();
        Worker::start(name, line, executors, wanted, home)
    };
    runtime.spawn(async move {
        while let Some(told) = news.recv().await {
            match told {
                News::Useless(why) => {
                    tracing::error!("failed to {why}; this node runs no commands until it is started again")
                }
                told => tracing::debug!("the worker of this node: {told:?}"),
            }
        }
    });
    Ok(())
}

/// A line to whichever node leads.
struct LeaderLine {
    log: LogState,
    http: Http,
    token: Option<Arc<str>>,
}

impl LeaderLine {
    /// Waits until the time of a leader is over. One that stands still, or is cut off, holds its connections and never answers.
    async fn ceases(&self, epoch: u64) {
        while self.log.status().lease.epoch == epoch {
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Door for LeaderLine {
    async fn say(&self, worker: &str, offer: &OfferRequest) -> Result<AssignmentDto, NoAnswer> {
        let lease = self.log.status().lease;
        let leader = lease.holder.address.filter(|_| lease.epoch > 0 && !lease.is_free);
        let leader =
            leader.ok_or_else(|| NoAnswer::Away("reach the leader: no node leads at the moment".to_owned()))?;
        let line = RemoteLine::of(leader, self.token.clone(), self.http.clone());
        tokio::select! {
            answer = line.say(worker, offer) => answer,
            () = self.ceases(lease.epoch) => Err(NoAnswer::Away("hear from the leader: another node leads by now".to_owned())),
        }
    }
}
