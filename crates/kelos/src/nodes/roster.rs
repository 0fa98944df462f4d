//! The nodes that the leader has heard of: in memory, because they tell it again all the time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The interval at which a node tells the leader of itself.
pub const REPORT_EVERY: Duration = Duration::from_secs(1);

/// How long a node is silent before another process may have its name.
const GONE: Duration = Duration::from_secs(3);

/// How long a report says what the clock of a node shows.
const RECENT: Duration = Duration::from_secs(10);

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
    /// The reason for which it does not reach the leader, if it does not.
    pub unreached: Option<String>,
    /// By how many milliseconds its clock is ahead of the leader's, as of its report.
    pub clock_ahead: Option<i64>,
    /// A word that differs from process to process; none of a program that does not say it.
    pub instance: Option<String>,
}

/// The nodes that the leader has heard of. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Roster(Arc<Mutex<BTreeMap<String, (NodeReport, Instant)>>>);

impl Roster {
    /// Takes the report of a node, unless another process of its name is alive: its address is the error then.
    ///
    /// # Errors
    /// When another process has the name.
    pub fn note(&self, node: &str, report: NodeReport) -> Result<(), Option<String>> {
        let mut nodes = self.nodes();
        nodes.retain(|_, (_, heard)| heard.elapsed() < LISTED);
        if let Some((known, heard)) = nodes.get(node)
            && heard.elapsed() < GONE
            && known.instance.is_some()
            && known.instance != report.instance
        {
            return Err(known.address.clone());
        }
        if nodes.len() < MOST || nodes.contains_key(node) {
            nodes.insert(node.to_owned(), (report, Instant::now()));
        }
        Ok(())
    }

    /// Takes what the leader has told of a node, which it heard of so long ago. Its clock was compared with the leader's, which says nothing
    /// once another one leads.
    pub fn learn(&self, node: &str, report: NodeReport, heard: Duration) {
        let Some(heard) = Instant::now().checked_sub(heard) else { return };
        let mut nodes = self.nodes();
        if nodes.len() < MOST || nodes.contains_key(node) {
            nodes.insert(node.to_owned(), (NodeReport { clock_ahead: None, ..report }, heard));
        }
    }

    /// By how many milliseconds the clocks of the others are ahead of that of this process, to which they have reported since a moment, and
    /// not long ago.
    #[must_use]
    pub fn clocks(&self, since: Instant) -> Vec<i64> {
        let nodes = self.nodes();
        nodes
            .values()
            .filter(|(_, heard)| *heard >= since && heard.elapsed() < RECENT)
            .filter_map(|(report, _)| report.clock_ahead)
            .collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn report(instance: &str) -> NodeReport {
        NodeReport {
            address: Some(format!("http://{instance}")),
            version: "1".to_owned(),
            reads: 1,
            followed: 1,
            load: None,
            trouble: None,
            unreached: None,
            clock_ahead: Some(3),
            instance: Some(instance.to_owned()),
        }
    }

    #[test]
    fn the_second_process_of_a_name_is_refused_while_the_first_is_alive() {
        let (roster, began) = (Roster::default(), Instant::now());
        assert_eq!(roster.note("n", report("one")), Ok(()));
        assert_eq!(roster.note("n", report("two")), Err(Some("http://one".to_owned())));
        assert_eq!(roster.note("n", report("one")), Ok(()));
        let silent = NodeReport { instance: None, ..report("two") };
        assert_eq!(roster.note("n", silent), Err(Some("http://one".to_owned())), "one that does not say is another");
        // It ended a while ago.
        roster.learn("n", report("one"), GONE);
        assert_eq!(roster.note("n", report("two")), Ok(()));
        assert_eq!(roster.clocks(began), [3]);
        assert!(roster.clocks(Instant::now()).is_empty(), "another node may have led since");
        roster.learn("n", report("two"), Duration::ZERO);
        assert!(roster.clocks(began).is_empty(), "that was compared with another clock");
    }
}
