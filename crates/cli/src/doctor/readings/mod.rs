//! The readings of an installation, for the checks: of the machine, of the folder of state, of the scripts and of the server. Nothing
//! is changed, and whatever can't be read is a result itself.

mod data;
mod machine;
mod remote;
mod scripts;

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_wire::{ClockLeapDto, NodesDto, StuckListDto, WorkerDto};

use super::checks::clock::Clocks;
use super::checks::disk::DiskUsage;
use super::checks::lag::Delays;
use super::checks::permissions::Rights;
use super::checks::scripts::{ProblemLine, ScriptProblems};
use super::checks::server::Server;
use super::checks::store::SharedLog;
use super::checks::versions::Versions;
use super::checks::workers::LabelNeed;
use super::checks::{
    clock, disk, endpoints, lag, permissions, scripts as script_check, server, store, versions, workers,
};
use super::diagnosis::Diagnosis;
use super::installation::Installation;
use crate::times;

pub(super) use data::DataReading;
pub(super) use remote::Answers;

/// The code of problems whose message is what a script said.
pub(super) const THROWN: &str = "script-threw";

/// All that was read.
pub(super) struct Readings {
    /// The answers of the server, as far as it gave any.
    pub(super) answers: Answers,
    /// The folder of state and its database.
    pub(super) data: Option<DataReading>,
    server: Server,
    clocks: Clocks,
    disk: Option<DiskUsage>,
    rights: Option<Rights>,
    log: Option<SharedLog>,
    scripts: ScriptProblems,
}

impl Readings {
    /// Reads everything.
    pub(super) fn take(installation: &Installation) -> Readings {
        let answers = installation.server.as_ref().map(Answers::ask).unwrap_or_default();
        let now = Timestamp::now();
        let data = installation.state.as_deref().map(|state| DataReading::take(state, now));
        let server = match (&answers.health, &installation.server, &answers.silence) {
            (Some(health), Some(client), _) => {
                Server::Up { address: client.address().to_owned(), health: Box::new((**health).clone()) }
            }
            (_, _, Some(failure)) => Server::Silent { reason: failure.message.clone(), hint: failure.hint.clone() },
            _ => Server::NotRecorded {
                leader: data.as_ref().and_then(DataReading::leader),
                start: installation.start.clone(),
            },
        };
        let newest_turn = data.as_ref().and_then(|data| data.newest_turn);
        let disk =
            installation.state.as_deref().map(|state| machine::disk(state, data.as_ref(), answers.health.is_some()));
        let rights = installation.state.as_deref().map(|state| machine::rights(state, installation));
        let log = installation.log.as_ref().map(data::shared_log);
        let store = match &log {
            Some(SharedLog::Reached(log)) => log.clock,
            _ => None,
        };
        let leap = answers.storage.as_ref().and_then(|found| found.clock_leap.as_ref()).map(ClockLeapDto::words);
        let clocks = Clocks { now, server: answers.clock, store, newest_turn, leap, zone: times::zone_name() };
        let folder = installation.scripts.as_ref().map(|scripts| scripts::problems(scripts, installation));
        let served = answers.problem_lines().map(|lines| of_kind(lines, false));
        let scripts = ScriptProblems { folder, server: served };
        Readings { answers, data, server, clocks, disk, rights, log, scripts }
    }

    /// The results of all checks of what was read.
    pub(super) fn judge(&self) -> Vec<Diagnosis> {
        self.judge_with(self.answers.stuck.as_deref().cloned(), &self.scripts)
    }

    /// The same without words that jobs and scripts said: a line of output may be in the reason for which a slot is stuck, and anything
    /// in an error that a script threw.
    pub(super) fn judge_without_foreign_words(&self) -> Vec<Diagnosis> {
        let gap = || "(left out)".to_owned();
        let mut stuck = self.answers.stuck.as_deref().cloned();
        stuck.iter_mut().flat_map(|found| &mut found.items).for_each(|row| row.reason = gap());
        let mut scripts = self.scripts.clone();
        let folder = scripts.folder.iter_mut().flatten().flat_map(|folder| &mut folder.problems);
        let all = folder.chain(scripts.server.iter_mut().flatten());
        all.filter(|problem| problem.code == THROWN).for_each(|problem| problem.message = gap());
        self.judge_with(stuck, &scripts)
    }

    fn judge_with(&self, stuck: Option<StuckListDto>, scripts: &ScriptProblems) -> Vec<Diagnosis> {
        let mut found = server::judge(&self.server);
        found.extend(self.answers.refusals.iter().cloned());
        found.extend(clock::judge(&self.clocks));
        found.extend(self.disk.iter().flat_map(disk::judge));
        found.extend(self.rights.iter().flat_map(permissions::judge));
        found.extend(store::judge(self.data.as_ref().map(|data| &data.database), self.log.as_ref()));
        found.extend(versions::judge(&self.versions()));
        found.extend(script_check::judge(scripts));
        if let Some(seen) = &self.answers.endpoints {
            let problems = self.answers.problem_lines().map(|lines| of_kind(lines, true)).unwrap_or_default();
            found.extend(endpoints::judge(&seen.items, &problems));
        }
        if let Some(connected) = &self.answers.workers {
            found.extend(workers::judge(&connected.items, self.needs()));
        }
        if let Some(stuck) = stuck {
            let nodes = self.answers.nodes.as_ref().map(|found| found.nodes.clone()).unwrap_or_default();
            let delays = Delays { stuck, nodes, answered_in: self.answers.took, turns: self.answers.turns };
            found.extend(lag::judge(&delays));
        }
        found
    }

    fn needs(&self) -> &[LabelNeed] {
        self.data.as_ref().map_or(&[], |data| &data.needs)
    }

    /// The versions of all processes that are known.
    pub(super) fn versions(&self) -> Versions {
        let nodes = self.answers.nodes.iter().flat_map(|found| &found.nodes);
        let nodes = nodes.map(|node| (format!("node {}", node.name), node.version.clone()));
        let workers = self.answers.workers.iter().flat_map(|found| &found.items);
        let versioned = |worker: &WorkerDto| Some((format!("worker {}", worker.name), worker.version.clone()?));
        let others: BTreeSet<(String, String)> = nodes.chain(workers.filter_map(versioned)).collect();
        // Before its first leader, a node does not know in which form entries are written.
        let has_leader = |found: &NodesDto| found.store.is_some() && found.nodes.iter().any(|node| node.leads);
        let forms = self.answers.nodes.as_ref().filter(|found| has_leader(found)).and_then(|found| {
            let reads = found.nodes.iter().map(|node| node.reads).min()?;
            Some([found.writes, reads])
        });
        Versions {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            server: self.answers.version.as_ref().map(|found| found.version.clone()),
            others: others.into_iter().collect(),
            forms,
        }
    }
}

/// The problems with services outside, or all others.
fn of_kind(lines: Vec<ProblemLine>, are_outside: bool) -> Vec<ProblemLine> {
    lines.into_iter().filter(|one| endpoints::is_outside(&one.code) == are_outside).collect()
}
