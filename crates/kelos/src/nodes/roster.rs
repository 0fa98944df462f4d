//! The nodes that the leader has heard of: in memory, because they tell it again all the time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The interval at which a node tells the leader of itself.
pub const REPORT_EVERY: Duration = Duration::from_secs(2);

/// How long a node that is silent is listed.
const LISTED: Duration = Duration::from_secs(600);

/// The most nodes that are listed.
const MOST: usize = 1000;

/// A report of a node about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeReport {
    /// The address at which it is reached.
    pub address: Option<String>,
    /// The version of its program.
    pub version: String,
    /// The newest form of entries that it reads and writes.
    pub reads: u32,
    /// The last entry of the log that it has followed.
    pub followed: u64,
    /// The load of its machine, in the last minute.
    pub load: Option<f64>,
    /// The reason for which it does not follow, if it does not.
    pub trouble: Option<String>,
}

/// The nodes that the leader has heard of. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Roster(Arc<Mutex<BTreeMap<String, (NodeReport, Instant)>>>);

impl Roster {
    /// Takes the report of a node.
    pub fn note(&self, node: &str, report: NodeReport) {
        let mut nodes = self.nodes();
        nodes.retain(|_, (_, heard)| heard.elapsed() < LISTED);
        if nodes.len() < MOST || nodes.contains_key(node) {
            nodes.insert(node.to_owned(), (report, Instant::now()));
        }
    }

    /// The nodes by name, with their last reports and the time since then.
    #[must_use]
    pub fn list(&self) -> Vec<(String, NodeReport, Duration)> {
        let listed = |(name, (report, heard)): (&String, &(NodeReport, Instant))| {
            let since = heard.elapsed();
            (since < LISTED).then(|| (name.clone(), report.clone(), since))
        };
        self.nodes().iter().filter_map(listed).collect()
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<String, (NodeReport, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The load of this machine in the last minute; none where the system does not say.
#[must_use]
pub fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
