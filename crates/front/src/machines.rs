//! The processes beside this one, as a caller may see them: the nodes that share its log, and the workers that it hands runs to. The
//! leader alone hears of workers; of nodes it tells the others.

use std::time::Duration;

use axum::http::StatusCode;
use kelos::nodes::{NodeReport, load};
use kelos_store::StoreError;
use kelos_store::log::RaiseError;
use kelos_wire::{Instant, LeaderDto, NodeStateDto, NodesDto, RaisedFormDto, WorkerDto};

use crate::app::App;
use crate::fault::Fault;
use crate::scope::View;

/// Changes of leader that are listed.
const LEADERS: usize = 20;

/// The way out where a node is too old.
const STILL_LISTED: &str = "upgrade it first; a node that will not come back is forgotten ten minutes after it was heard of last, see `kelos nodes`";

/// Checks that a form is newer than the one of the log, that the leader's program writes it, and that all nodes read it.
fn check_form(found: &NodesDto, to: u32, newest: u32) -> Result<(), Fault> {
    let from = found.writes;
    let refused =
        |code, why: String| Fault::conflict(code, format!("failed to raise the form of entries to {to}: {why}"));
    if to < from {
        let why = format!("they are written in form {from}, and a form is never lowered");
        return Err(refused("form-out-of-reach", why));
    }
    if to > newest {
        let why = format!("the program of the leader writes up to form {newest}");
        return Err(refused("form-out-of-reach", why));
    }
    match found.nodes.iter().find(|node| node.reads < to) {
        Some(NodeStateDto { name, version, reads, .. }) => {
            let why = format!("the program of node {name}, version {version}, reads up to form {reads}");
            Err(refused("node-too-old", why).with_hint(STILL_LISTED))
        }
        None => Ok(()),
    }
}

impl App {
    /// The nodes that share a log, and the last changes of leader; none where this server has its own.
    ///
    /// # Errors
    /// When the changes of leader can't be read.
    pub async fn nodes(&self) -> Result<NodesDto, StoreError> {
        let Some(log) = self.node().log().cloned() else {
            return Ok(NodesDto { store: None, last_entry: 0, writes: 0, nodes: Vec::new(), leaders: Vec::new() });
        };
        let status = log.status();
        let lease = &status.lease;
        let leader = lease.holder.node.as_str();
        let is_led = lease.epoch > 0 && !lease.is_free;
        let own = NodeReport {
            address: log.address().map(str::to_owned),
            version: self.version().to_owned(),
            reads: log.form(),
            followed: status.followed,
            load: load(),
            trouble: status.trouble.clone(),
            unreached: status.unreached.clone(),
            clock_ahead: status.leads.then_some(0),
            instance: None,
        };
        let mut reports = self.node().roster().list();
        reports.retain(|(name, ..)| name != log.node());
        if is_led && leader != log.node() && !reports.iter().any(|(name, ..)| name == leader) {
            // Its lease is renewed, and it has not answered yet.
            let (address, version) = (lease.holder.address.clone(), lease.holder.program.clone());
            let followed = status.followed;
            let report =
                NodeReport { address, version, followed, load: None, trouble: None, unreached: None, ..own.clone() };
            reports.push((leader.to_owned(), NodeReport { clock_ahead: None, ..report }, log.leader_silence()));
        }
        reports.push((log.node().to_owned(), own, Duration::ZERO));
        reports.sort_by(|one, other| one.0.cmp(&other.0));
        let last_entry = reports.iter().map(|(_, report, _)| report.followed).fold(status.followed, u64::max);
        let node = |(name, report, heard): (String, NodeReport, Duration)| NodeStateDto {
            leads: is_led && name == leader && (status.leads || name != log.node()),
            behind: last_entry.saturating_sub(report.followed),
            name,
            address: report.address,
            version: report.version,
            reads: report.reads,
            followed: report.followed,
            heard_millis: u64::try_from(heard.as_millis()).unwrap_or(u64::MAX),
            load: report.load,
            trouble: report.trouble,
            unreached: report.unreached,
            clock_ahead_millis: report.clock_ahead,
        };
        let nodes = reports.into_iter().map(node).collect();
        let store = Some(log.name().to_owned());
        let reigns = tokio::task::spawn_blocking(move || log.reigns(LEADERS));
        let reigns = reigns.await.unwrap_or_else(|_| Ok(Vec::new()))?;
        let leaders = reigns.into_iter().map(|reign| LeaderDto {
            epoch: reign.epoch,
            node: reign.node,
            address: reign.address,
            since: reign.at.into(),
            reason: reign.reason,
        });
        let writes = status.lease.writes();
        Ok(NodesDto { store, last_entry, writes, nodes, leaders: leaders.collect() })
    }

    /// Raises the form in which this leader writes entries: to the one that is given, or to the newest that it can write. With
    /// `is_dry_run` it only says what would be done.
    ///
    /// # Errors
    /// When this server is no node of several or does not lead, or a node that it has heard of can't read that form.
    pub async fn raise_form(&self, form: Option<u32>, is_dry_run: bool) -> Result<RaisedFormDto, Fault> {
        let Some(log) = self.node().log().cloned() else {
            return Err(Fault::conflict(
                "no-nodes",
                "failed to raise the form of entries: this server is no node of several",
            ));
        };
        let found = self.nodes().await?;
        let (from, to) = (found.writes, form.unwrap_or(log.form()));
        let nodes = u32::try_from(found.nodes.len()).unwrap_or(u32::MAX);
        if to == from {
            return Ok(RaisedFormDto { from, to, nodes, is_raised: false });
        }
        check_form(&found, to, log.form())?;
        if !is_dry_run {
            let raised = tokio::task::spawn_blocking(move || log.raise(to)).await;
            let raised = raised.unwrap_or(Err(RaiseError::Unknown));
            raised.map_err(|error| {
                Fault::new(StatusCode::SERVICE_UNAVAILABLE, "store-unavailable", format!("failed to {error}"))
            })?;
        }
        Ok(RaisedFormDto { from, to, nodes, is_raised: !is_dry_run })
    }

    /// The workers that are there. A caller who sees some projects sees the workers that run those alone.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn workers(&self) -> Result<Vec<WorkerDto>, StoreError> {
        let view = self.view().await?;
        let mut workers = self.node().desk().workers();
        workers.retain(|worker| {
            let is_within =
                |view: &View| !worker.workflows.is_empty() && worker.workflows.iter().all(|id| view.has(id));
            view.as_deref().is_none_or(is_within)
        });
        let workers = workers.into_iter().map(|seen| WorkerDto {
            name: seen.name.to_string(),
            workflows: seen.workflows.iter().map(ToString::to_string).collect(),
            labels: seen.labels.iter().map(ToString::to_string).collect(),
            project: seen.project.map(|project| project.name),
            free: seen.free,
            runs: seen.runs.iter().map(|run| format!("{}#{}", run.slot.short(), run.number)).collect(),
            remote: seen.remote.is_some(),
            version: seen.remote.as_ref().map(|remote| remote.version.clone()),
            outputs: seen.remote.as_ref().and_then(|remote| remote.outputs.clone()),
            // The name of a worker of the server's folder begins with that of its machine.
            host: match seen.remote {
                Some(remote) => remote.host,
                None => seen.name.split(':').next().unwrap_or_default().to_owned(),
            },
            since: Some(Instant(seen.since)),
            leaves: seen.leaves,
            away_since: seen.away_since.map(Instant),
        });
        Ok(workers.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, reads: u32) -> NodeStateDto {
        NodeStateDto {
            name: name.to_owned(),
            address: None,
            version: format!("0.{reads}.0"),
            leads: false,
            reads,
            followed: 4,
            behind: 0,
            heard_millis: 0,
            load: None,
            trouble: None,
            unreached: None,
            clock_ahead_millis: None,
        }
    }

    fn check(reads: [u32; 3], to: u32) -> Result<(), String> {
        let nodes = ["a", "b", "c"].into_iter().zip(reads).map(|(name, reads)| node(name, reads)).collect();
        let found = NodesDto { store: None, last_entry: 4, writes: 2, nodes, leaders: Vec::new() };
        check_form(&found, to, 3).map_err(|fault| format!("{} {}", fault.code, fault.what))
    }

    #[test]
    fn the_form_is_raised_only_to_what_all_nodes_read() {
        let refused =
            |code: &str, to: u32, why: &str| Err(format!("{code} failed to raise the form of entries to {to}: {why}"));
        assert_eq!(check([3, 3, 3], 3), Ok(()));
        let too_old = "the program of node b, version 0.2.0, reads up to form 2";
        assert_eq!(check([3, 2, 3], 3), refused("node-too-old", 3, too_old));
        let of_leader = "the program of the leader writes up to form 3";
        assert_eq!(check([4, 4, 4], 4), refused("form-out-of-reach", 4, of_leader));
        let lower = "they are written in form 2, and a form is never lowered";
        assert_eq!(check([3, 3, 3], 1), refused("form-out-of-reach", 1, lower));
    }
}
