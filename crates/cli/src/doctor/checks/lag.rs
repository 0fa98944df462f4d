//! Delays: stuck slots, nodes that are behind, and a server that is slow to answer.

use std::time::Duration;

use kelos_wire::{NodeStateDto, StuckListDto};

use super::NAMED;
use crate::doctor::diagnosis::Diagnosis;
use crate::stuck;
use crate::text::{count, grouped, operand, quoted};

const CHECK: &str = "lag";

/// The time for an answer of a server that is worth a warning.
const SLOW: Duration = Duration::from_secs(2);
/// The mean time of a turn that is worth a warning.
const SLOW_TURN: Duration = Duration::from_millis(500);
/// Turns from which a mean says something.
const TURNS: u64 = 10;
/// Entries that a node may lack without a warning.
const BEHIND: u64 = 1000;
/// Time without a report of a node that is worth a warning.
const SILENT_MILLIS: u64 = 10_000;

/// The delays of a server.
#[derive(Debug, Clone, Default)]
pub(in crate::doctor) struct Delays {
    /// The stuck slots, the worst first.
    pub(in crate::doctor) stuck: StuckListDto,
    /// The nodes that share a log.
    pub(in crate::doctor) nodes: Vec<NodeStateDto>,
    /// The time that the server took to answer.
    pub(in crate::doctor) answered_in: Duration,
    /// The turns of the server since it leads, if its metrics tell them.
    pub(in crate::doctor) turns: Option<TurnTimes>,
}

/// The turns of a server, and the time that one takes on average.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::doctor) struct TurnTimes {
    pub(in crate::doctor) count: u64,
    pub(in crate::doctor) turn: Duration,
    /// The part of it for the commit.
    pub(in crate::doctor) commit: Duration,
}

impl TurnTimes {
    /// The times by the metrics of a server; none where they have no turns.
    pub(in crate::doctor) fn read(metrics: &str) -> Option<TurnTimes> {
        let of = |what: &str, part: &str| -> Option<f64> {
            let begin = format!("kelos_turn_seconds_{what}{{part=\"{part}\"}} ");
            metrics.lines().find_map(|line| line.strip_prefix(&*begin))?.trim().parse().ok()
        };
        // Parts have counts of their own: a step without events has no commit.
        let mean = |part: &str| {
            let seconds = of("sum", part).zip(of("count", part)).map(|(sum, count)| sum / count);
            seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or_default()
        };
        let [step, commit, perform] = ["step", "commit", "perform"].map(mean);
        // A count is a whole number, which a text of metrics may write with a point.
        let count = format!("{:.0}", of("count", "commit")?).parse().ok()?;
        Some(TurnTimes { count, turn: step + commit + perform, commit })
    }
}

/// Judges the delays.
pub(in crate::doctor) fn judge(delays: &Delays) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    let rows = &delays.stuck.items;
    for row in rows.iter().take(NAMED) {
        let reason = row.reason.lines().next().unwrap_or_default();
        let words = format!("{} since {}: {reason}", stuck::title(row), row.since.short());
        let key = row.slot.to_string();
        let (workflow, key) = key.split_once('@').unwrap_or((&key, ""));
        let advice = format!("kelos why {} {}", operand(workflow), quoted(key));
        found.push(Diagnosis::warning(CHECK, words, advice.trim_end()));
    }
    let more = rows.len().saturating_sub(NAMED) + delays.stuck.more;
    if more > 0 {
        let words = format!("{more} more {} stuck", if more == 1 { "is" } else { "are" });
        found.push(Diagnosis::warning(CHECK, words, "`kelos stuck` lists them"));
    }
    found.extend(delays.nodes.iter().filter_map(node));
    if delays.answered_in > SLOW {
        let words = format!("the server took {} s to answer", delays.answered_in.as_secs());
        let advice = "look at the load and the disk of its machine; a turn waits for both";
        found.push(Diagnosis::warning(CHECK, words, advice));
    }
    found.extend(delays.turns.as_ref().and_then(turns));
    if found.is_empty() {
        let nodes = match delays.nodes.len() {
            0 => String::new(),
            nodes => format!(", and {} follow the log", count(nodes, "node")),
        };
        let millis = delays.answered_in.as_millis();
        found.push(Diagnosis::ok(CHECK, format!("nothing is stuck{nodes}; the server answered in {millis} ms")));
    }
    found
}

fn turns(&TurnTimes { count, turn, commit }: &TurnTimes) -> Option<Diagnosis> {
    let words = || format!("a turn takes {} ms on average, its commit {} ms", turn.as_millis(), commit.as_millis());
    let advice = match commit * 2 > turn {
        true => "its disk or the store of its log is slow: see the checks of disk and store",
        false => "its processors are busy: look at the load of its machine",
    };
    (count >= TURNS && turn > SLOW_TURN).then(|| Diagnosis::warning(CHECK, words(), advice))
}

fn node(node: &NodeStateDto) -> Option<Diagnosis> {
    if let Some(trouble) = node.trouble.as_ref().or(node.unreached.as_ref()) {
        let words = format!("the node {} failed to {trouble}", node.name);
        return Some(Diagnosis::wrong(CHECK, words, "run `kelos doctor --state DIR` on its machine"));
    }
    if node.heard_millis > SILENT_MILLIS {
        let words = format!("the leader has not heard of the node {} for {} s", node.name, node.heard_millis / 1000);
        return Some(Diagnosis::warning(CHECK, words, "look at its machine, and at the network between them"));
    }
    let words = || format!("the node {} lacks {} entries of the log", node.name, grouped(node.behind));
    (node.behind > BEHIND)
        .then(|| Diagnosis::warning(CHECK, words(), "it catches up, or its disk and its network are slow"))
}

#[cfg(test)]
mod tests {
    use kelos_wire::StuckDto;
    use serde_json::json;

    use super::*;

    fn told(delays: &Delays) -> Vec<String> {
        let line =
            |one: &Diagnosis| format!("{:?} {} / {}", one.level, one.found, one.advice.as_deref().unwrap_or("-"));
        judge(delays).iter().map(line).collect()
    }

    fn row(kind: &'static str) -> StuckDto {
        let slot = serde_json::from_value(json!({ "workflow": "w", "time": "2016-01-01T04:00:00.000Z" }));
        let reason = "the path is not there".to_owned();
        StuckDto { slot: slot.expect("a name"), kind: kind.into(), reason, ..StuckDto::default() }
    }

    #[test]
    fn the_worst_three_stuck_slots_are_named() {
        assert_eq!(told(&Delays::default()), ["Ok nothing is stuck; the server answered in 0 ms / -"]);
        let items = vec![row("late"), row("failed"), row("long"), row("paused")];
        let told = told(&Delays { stuck: StuckListDto { items, more: 1, partial: false }, ..Delays::default() });
        assert!(told[0].starts_with("Warning w@2016-01-01T04:00Z: late since "), "{told:?}");
        assert!(told[0].ends_with(": the path is not there / kelos why w 2016-01-01T04:00Z"), "{told:?}");
        assert_eq!(told[3], "Warning 2 more are stuck / `kelos stuck` lists them");
        assert_eq!(told.len(), 4);
    }

    #[test]
    fn turns_that_take_long_are_named_with_their_commits() {
        let metrics = "# TYPE kelos_turn_seconds histogram\n\
            kelos_turn_seconds_sum{part=\"step\"} 4\n\
            kelos_turn_seconds_count{part=\"step\"} 40\n\
            kelos_turn_seconds_sum{part=\"commit\"} 12\n\
            kelos_turn_seconds_count{part=\"commit\"} 20\n";
        let turns = TurnTimes::read(metrics).expect("turns");
        assert_eq!((turns.count, turns.turn.as_millis(), turns.commit.as_millis()), (20, 700, 600));
        let found = told(&Delays { turns: Some(turns), ..Delays::default() });
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("Warning a turn takes 700 ms on average, its commit 600 ms / its disk"),
            "{found:?}"
        );
        let few = TurnTimes { count: 9, ..turns };
        assert!(told(&Delays { turns: Some(few), ..Delays::default() })[0].starts_with("Ok"));
        assert_eq!(TurnTimes::read(""), None);
    }

    #[test]
    fn nodes_that_do_not_follow_are_named() {
        let node = |change: fn(&mut NodeStateDto)| {
            let json =
                json!({ "name": "n", "version": "1", "leads": false, "followed": 1, "behind": 0, "heardMillis": 1 });
            let mut node: NodeStateDto = serde_json::from_value(json).expect("a node");
            change(&mut node);
            node
        };
        let nodes = vec![
            node(|node| node.trouble = Some("read the log".to_owned())),
            node(|node| node.heard_millis = 60_000),
            node(|node| node.behind = 4321),
            node(|_| {}),
        ];
        let told = told(&Delays { nodes, answered_in: Duration::from_secs(3), ..Delays::default() });
        assert!(told[0].starts_with("Wrong the node n failed to read the log"), "{told:?}");
        assert!(told[1].starts_with("Warning the leader has not heard of the node n for 60 s"), "{told:?}");
        assert!(told[2].starts_with("Warning the node n lacks 4,321 entries of the log"), "{told:?}");
        assert!(told[3].starts_with("Warning the server took 3 s to answer"), "{told:?}");
        assert_eq!(told.len(), 4);
    }
}
