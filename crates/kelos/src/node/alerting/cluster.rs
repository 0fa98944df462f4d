//! The look at the nodes that share a log, as their leader knows them: who was not heard of, who lags, and whether another could lead.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_alerts::{About, Condition, Observation, Trouble};
use kelos_model::time::format_short;
use kelos_store::log::{LogState, NOT_HEARD_OF, Reign};

use crate::nodes::{NodeReport, Roster};

/// The silence after which a node is not there: five of its reports.
const SILENT: Duration = Duration::from_secs(10);
/// The entries by which a node may be behind.
const BEHIND: u64 = 1_000;
/// How long a node that is not heard of any more is missed.
const MISSED: SignedDuration = SignedDuration::from_hours(24);
/// How long a change of leader is news: less than the time for which one that was told is remembered.
const NEWS: SignedDuration = SignedDuration::from_mins(30);
/// The changes of leader that are read.
const REIGNS: usize = 20;

/// The memory of a leader of the other nodes.
#[derive(Default)]
pub(super) struct Cluster {
    /// When it began to look.
    began: Option<Timestamp>,
    /// When each was heard of last.
    heard: BTreeMap<String, Timestamp>,
}

/// All that is known of the nodes at a moment.
struct Sight<'a> {
    own: &'a str,
    followed: u64,
    reports: Vec<(String, NodeReport, Duration)>,
    /// The newest first.
    reigns: &'a [Reign],
}

impl Cluster {
    /// Looks at the nodes, if this one leads.
    pub(super) fn look(&mut self, log: &LogState, roster: &Roster, now: Timestamp, found: &mut Observation) {
        let status = log.status();
        if !status.leads {
            *self = Cluster::default();
            return;
        }
        let Ok(reigns) = log.reigns(REIGNS) else { return };
        let reports = roster.list();
        self.see(&Sight { own: log.node(), followed: status.followed, reports, reigns: &reigns }, now, found);
    }

    fn see(&mut self, sight: &Sight<'_>, now: Timestamp, found: &mut Observation) {
        found.troubles.extend(change_of_leader(sight.reigns, now));
        let began = *self.began.get_or_insert(now);
        for reign in sight.reigns {
            let heard = self.heard.entry(reign.node.clone()).or_insert(reign.at);
            *heard = reign.at.max(*heard);
        }
        let mut troubles: BTreeMap<String, Option<String>> = BTreeMap::new();
        for (name, report, silence) in &sight.reports {
            let since = now - SignedDuration::try_from(*silence).unwrap_or(MISSED);
            let heard = self.heard.entry(name.clone()).or_insert(since);
            *heard = since.max(*heard);
            if *silence < SILENT {
                troubles.insert(name.clone(), of_report(report, sight.followed));
            }
        }
        self.heard.retain(|name, heard| name != sight.own && now.duration_since(*heard) < MISSED);
        for (name, heard) in &self.heard {
            let silent = || Some(format!("is not heard of since {}", format_short(*heard)));
            troubles.entry(name.clone()).or_insert_with(silent);
        }
        troubles.remove(sight.own);
        if now.duration_since(began) >= MISSED {
            // Those that a leader before this one missed are given up as well.
            found.knows.insert(Condition::Nodes);
        }
        add(troubles, found);
    }
}

/// A trouble for each node; one for all of them where none could take over.
fn add(troubles: BTreeMap<String, Option<String>>, found: &mut Observation) {
    let standbys = "standbys".to_owned();
    let is_alone = !troubles.is_empty() && troubles.values().all(Option::is_some);
    if is_alone {
        let nodes = troubles.iter().map(|(name, words)| format!("{name} {}", words.as_deref().unwrap_or_default()));
        found.troubles.push(Trouble {
            condition: Condition::Nodes,
            cause: standbys,
            words: format!("no other node could take over: {}", nodes.collect::<Vec<_>>().join("; ")),
            members: troubles.into_keys().map(|name| (name, About::default())).collect(),
            concerns: Vec::new(),
            more: 0,
        });
        return;
    }
    found.well.insert((Condition::Nodes, standbys));
    for (name, words) in troubles {
        match words {
            Some(words) => {
                let words = format!("node {name} {words}");
                found.troubles.push(Trouble::new(Condition::Nodes, name, About::default(), words));
            }
            None => drop(found.well.insert((Condition::Nodes, name))),
        }
    }
}

/// The trouble of a node that is heard of.
fn of_report(report: &NodeReport, followed: u64) -> Option<String> {
    let behind = followed.saturating_sub(report.followed);
    match &report.trouble {
        Some(trouble) => Some(format!("failed to {trouble}")),
        None => (behind > BEHIND).then(|| format!("is {behind} entries behind the log")),
    }
}

/// The change of leader that nobody planned, while it is news.
fn change_of_leader(reigns: &[Reign], now: Timestamp) -> Option<Trouble> {
    let (newest, before) = (reigns.first()?, reigns.get(1)?);
    if newest.reason != NOT_HEARD_OF || now.duration_since(newest.at) >= NEWS {
        return None;
    }
    let (node, since) = (&newest.node, format_short(newest.at));
    let words = match &before.node {
        same if same == node => {
            format!("node {node} leads again since {since}: it had ended without giving the lead back")
        }
        other => format!("node {node} leads since {since}: {other}, which led before, was not heard of"),
    };
    Some(Trouble::new(Condition::Leader, format!("epoch {}", newest.epoch), About::default(), words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).unwrap()
    }

    fn reign(epoch: u64, node: &str, minute: i64, reason: &str) -> Reign {
        Reign { epoch, node: node.to_owned(), address: None, at: at(minute), reason: reason.to_owned() }
    }

    fn report(name: &str, followed: u64, silence: u64) -> (String, NodeReport, Duration) {
        let report = NodeReport {
            address: None,
            version: "0.1.0".to_owned(),
            reads: 1,
            followed,
            load: None,
            trouble: None,
            unreached: None,
            clock_ahead: None,
            instance: None,
        };
        (name.to_owned(), report, Duration::from_secs(silence))
    }

    fn see(
        cluster: &mut Cluster,
        minute: i64,
        reports: Vec<(String, NodeReport, Duration)>,
        reigns: &[Reign],
    ) -> Observation {
        let mut found = Observation::default();
        cluster.see(&Sight { own: "b", followed: 5_000, reports, reigns }, at(minute), &mut found);
        found
    }

    fn words(found: &Observation) -> Vec<&str> {
        found.troubles.iter().map(|one| one.words.as_str()).collect()
    }

    #[test]
    fn a_change_of_leader_that_nobody_planned_is_news_for_a_while() {
        let reigns = [reign(2, "b", 60, NOT_HEARD_OF), reign(1, "a", 0, "the first leader")];
        let found = see(&mut Cluster::default(), 61, vec![report("c", 5_000, 1)], &reigns);
        let told = [
            "node b leads since 1970-01-01T01:00Z: a, which led before, was not heard of",
            "node a is not heard of since 1970-01-01T00:00Z",
        ];
        assert_eq!(words(&found), told);
        assert_eq!(found.troubles[0].condition, Condition::Leader);
        let later = see(&mut Cluster::default(), 90, vec![report("c", 5_000, 1)], &reigns);
        assert_eq!(words(&later), &told[1..]);
        let planned = [reign(2, "b", 60, "the leader before gave the lead back"), reigns[1].clone()];
        assert_eq!(see(&mut Cluster::default(), 61, Vec::new(), &planned).troubles[0].condition, Condition::Nodes);
        let again = [reign(2, "b", 60, NOT_HEARD_OF), reign(1, "b", 0, "the first leader")];
        let told = "node b leads again since 1970-01-01T01:00Z: it had ended without giving the lead back";
        assert_eq!(words(&see(&mut Cluster::default(), 61, Vec::new(), &again)), [told]);
    }

    #[test]
    fn nodes_that_are_silent_or_behind_are_told_and_all_of_them_at_once() {
        let (mut cluster, reigns) = (Cluster::default(), [reign(1, "b", 0, "the first leader")]);
        let found = see(&mut cluster, 1, vec![report("c", 4_000, 0), report("d", 3_999, 0)], &reigns);
        assert_eq!(words(&found), ["node d is 1001 entries behind the log"]);
        assert!(found.well.contains(&(Condition::Nodes, "c".to_owned())));
        // The roster forgets it after ten minutes, and it is missed for a day.
        let found = see(&mut cluster, 20, vec![report("d", 5_000, 0)], &reigns);
        assert_eq!(words(&found), ["node c is not heard of since 1970-01-01T00:01Z"]);
        let found = see(&mut cluster, 30, Vec::new(), &reigns);
        let alone = "no other node could take over: c is not heard of since 1970-01-01T00:01Z; \
                     d is not heard of since 1970-01-01T00:20Z";
        assert_eq!(words(&found), [alone]);
        let found = see(&mut cluster, 25 * 60, Vec::new(), &reigns);
        assert_eq!(words(&found), [] as [&str; 0]);
        assert!(found.knows.contains(&Condition::Nodes), "those that others missed are over, too");
    }

    #[test]
    fn the_only_node_of_a_log_misses_nobody() {
        let found = see(&mut Cluster::default(), 1, Vec::new(), &[reign(1, "b", 0, "the first leader")]);
        assert_eq!(found.troubles, []);
    }
}
