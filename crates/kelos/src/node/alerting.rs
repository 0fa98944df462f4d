//! The alerts of a node: what of it is looked at, and its channels among its problems.

#[cfg(feature = "nodes")]
mod cluster;

use std::path::PathBuf;
use std::time::Duration;

use kelos_alerts::{About, AlertParts, Alerts, Condition, Lookout, Observation, Settings, Trouble};
use kelos_engine::sources::Sources;
use kelos_executors::local::DiskSpace;
use kelos_model::history::size_text;
use kelos_sandbox::{Problem, ProblemCode, Severity};
use kelos_scripts::ScriptFolder;
use kelos_storage::Storage;
use kelos_tls::Trust;
use tokio::runtime::Handle as Runtime;

use super::Node;

/// How long nobody asks for anything of an endpoint that is away before it is no trouble any more.
const NOT_ASKED: Duration = Duration::from_secs(3_600);
#[cfg(feature = "nodes")]
use cluster::Cluster;

/// Starts the alerts of a node, by their settings, the address of its server in links, and the position at which the log ended before its
/// engine was started; none without settings.
pub(super) fn start(
    config: Option<(Settings, Option<String>)>,
    since: u64,
    trust: Trust,
    node: &Node,
    runtime: &Runtime,
) -> Option<Alerts> {
    let (settings, url) = config?;
    let disk = RunsDisk::of(node);
    let lookout = lookout(node.scripts.clone(), node.sources.clone(), node.storage.clone(), disk);
    #[cfg(feature = "nodes")]
    let lookout = with_nodes(lookout, node);
    let (handle, hub) = (node.handle.clone(), node.desk.clone());
    Some(Alerts::start(AlertParts { settings, url, handle, since, trust, hub, lookout }, runtime))
}

/// The look at what is wrong with a node and in no event: files of definitions, endpoints of storage, sources of facts, and the disk of the
/// folder of runs.
fn lookout(scripts: Option<ScriptFolder>, sources: Sources, storage: Storage, disk: RunsDisk) -> Lookout {
    Box::new(move || {
        let mut found = Observation { knows: [Condition::Script].into(), ..Observation::default() };
        let problems = scripts.as_ref().map(ScriptFolder::problems).unwrap_or_default();
        found.troubles.extend(problems.iter().filter(|problem| problem.severity == Severity::Error).map(script));
        for health in storage.health() {
            let cause = health.endpoint;
            match health.broken {
                // Nothing asks for it any more, and so nothing would ever say that it is well.
                Some(broken) if broken.idle >= NOT_ASKED => drop(found.well.insert((Condition::Endpoint, cause))),
                Some(broken) => {
                    let words = format!("{cause} does not answer since {}: {}", broken.since, broken.last_error);
                    found.troubles.push(Trouble::new(Condition::Endpoint, cause, About::default(), words));
                }
                None => drop(found.well.insert((Condition::Endpoint, cause))),
            }
        }
        for source in sources.standings() {
            let cause = source.name.to_string();
            match source.problem {
                Some(problem) => {
                    let words = format!("facts from {cause} stay away: failed to {problem}");
                    found.troubles.push(Trouble::new(Condition::Endpoint, cause, About::default(), words));
                }
                None => drop(found.well.insert((Condition::Endpoint, cause))),
            }
        }
        disk.look(&mut found);
        found
    })
}

/// The same, and at the nodes that share a log, where there are some.
#[cfg(feature = "nodes")]
fn with_nodes(lookout: Lookout, node: &Node) -> Lookout {
    let Some(log) = node.log.clone() else { return lookout };
    let (roster, handle, cluster) = (node.roster.clone(), node.handle.clone(), std::sync::Mutex::<Cluster>::default());
    Box::new(move || {
        let mut found = lookout();
        let mut cluster = cluster.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        cluster.look(&log, &roster, handle.now(), &mut found);
        found
    })
}

/// The disk of the folder of runs.
struct RunsDisk {
    runs: PathBuf,
    /// Its name in alerts. Nodes that share a log have a disk each.
    name: String,
}

impl RunsDisk {
    fn of(node: &Node) -> RunsDisk {
        let runs = node.launcher.dirs().root().to_owned();
        let name = format!("the disk of {}{}", runs.display(), place(node));
        RunsDisk { runs, name }
    }

    fn look(&self, found: &mut Observation) {
        let Some(space) = DiskSpace::of(&self.runs) else { return };
        let cause = self.name.clone();
        if !space.is_low() {
            found.well.insert((Condition::Disk, cause));
            return;
        }
        let words = format!(
            "{cause} is nearly full: {} of {} are free; kelos storage says what takes how much",
            size_text(space.free),
            size_text(space.total)
        );
        found.troubles.push(Trouble::new(Condition::Disk, cause, About::default(), words));
    }
}

/// The node among others that share a log, in words; nothing where there is no log.
#[cfg(feature = "nodes")]
fn place(node: &Node) -> String {
    node.log.as_ref().map(|log| format!(" on {}", log.node())).unwrap_or_default()
}

#[cfg(not(feature = "nodes"))]
fn place(_: &Node) -> String {
    String::new()
}

fn script(problem: &Problem) -> Trouble {
    let place = if problem.line > 0 { format!(":{}", problem.line) } else { String::new() };
    let kept = if problem.kept_last_good { "; its last good version is in use" } else { "" };
    let about = About { workflow: problem.workflow.clone(), ..About::default() };
    let words = format!("{}{place} is broken: {}{kept}", problem.file, problem.message);
    Trouble::new(Condition::Script, problem.file.clone(), about, words)
}

/// The problems of alerts, which have no file.
pub(super) fn problems(alerts: &Alerts) -> Vec<Problem> {
    let of = |name: &str, problem: &str, hint: String| Problem {
        hint: Some(hint),
        ..Problem::error(name, ProblemCode::AlertFails, format!("failed to {problem}"))
    };
    let status = alerts.status();
    let own = status.problem.iter().map(|problem| of("alerts", problem, "it is tried again".to_owned()));
    let away = status.channels.iter().filter_map(|channel| {
        let waiting = match channel.waiting {
            0 => "no alert waits for it".to_owned(),
            1 => "1 alert waits for it; it is tried again, and gets it then".to_owned(),
            count => format!("{count} alerts wait for it; it is tried again, and gets them then"),
        };
        let hint = format!("{waiting}; try it with `kelos alerts test {}`", channel.name);
        Some(of(&channel.name, channel.problem.as_ref()?, hint))
    });
    own.chain(away).collect()
}

#[cfg(test)]
mod tests;
