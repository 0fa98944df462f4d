use serde_json::Map;

use super::*;
use crate::time::{Cron, Schedule};
use crate::workflow::Job;

fn id(name: &str) -> WorkflowId {
    WorkflowId::new(name).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn slot(name: &str, time: &str) -> SlotRef {
    SlotRef::at(id(name), at(time))
}

fn local(path: &str) -> Trigger {
    Trigger::Path(PathCheck::new(FileSystem::Local, path, "file:///"))
}

fn earlier(seconds: i64, trigger: Trigger) -> Trigger {
    Trigger::Offset { seconds: -seconds, trigger: Box::new(trigger) }
}

/// A workflow at the times of a cron expression.
fn workflow(name: &str, cron: &str, writes: &[&str], trigger: Trigger) -> Arc<Workflow> {
    let schedule = Schedule::Cron(CronSchedule::utc(Cron::parse(cron).unwrap()));
    let writes = writes.iter().map(|path| (*path).to_owned()).collect();
    Arc::new(Workflow { writes, trigger, ..Workflow::new(id(name), schedule, Job::new("command", Map::new())) })
}

fn graph(workflows: &[Arc<Workflow>]) -> PathGraph {
    PathGraph::of(workflows.iter().map(|one| {
        let Some(Schedule::Cron(schedule)) = one.keys.schedule() else { panic!("a cron schedule") };
        (one.clone(), Some(schedule.clone()))
    }))
}

const HOURLY: &str = "0 0 * * * ?";
const DAILY: &str = "0 0 0 * * ?";
const HOUR: &str = "/in/${year}-${month}-${day}/${hour}";
const DAY: &str = "/day/${year}-${month}-${day}";

fn names(found: &BTreeSet<SlotRef>) -> Vec<String> {
    found.iter().map(SlotRef::short).collect()
}

#[test]
fn the_slot_of_the_same_time_writes_what_its_reader_waits_for() {
    let graph = graph(&[workflow("r", HOURLY, &[], local(HOUR)), workflow("w", HOURLY, &[HOUR], Trigger::Always)]);
    assert_eq!(graph.edges(), BTreeSet::from([(&id("w"), &id("r"))]));
    let found = graph.writers(&id("r"), "file:///in/2026-11-21/05", None);
    assert_eq!((names(&found.slots), found.others.len()), (vec!["w@2026-11-21T05:00Z".to_owned()], 0));
    assert_eq!(names(&graph.readers(&slot("w", "2026-11-21T05:00:00Z"))), ["r@2026-11-21T05:00Z"]);
    assert!(graph.writers(&id("r"), "file:///elsewhere/2026-11-21/05", None).slots.is_empty());
    assert!(graph.writers(&id("r"), "file:///in/2026-13-41/05", None).slots.is_empty(), "no such day");
}

#[test]
fn periods_may_differ_and_offsets_count() {
    let day = Trigger::And { triggers: (0..24).map(|n| earlier(n * 3600, local(HOUR))).collect() };
    let graph = graph(&[workflow("r", DAILY, &[], day), workflow("w", HOURLY, &[HOUR], Trigger::Always)]);
    let readers = |time: &str| names(&graph.readers(&slot("w", time)));
    assert_eq!(readers("2026-11-21T05:00:00Z"), ["r@2026-11-22T00:00Z"]);
    assert_eq!(readers("2026-11-21T00:00:00Z"), ["r@2026-11-21T00:00Z"]);
    let of_day = [workflow("r", HOURLY, &[], local(DAY)), workflow("w", DAILY, &[DAY], Trigger::Always)];
    let graph = super::tests::graph(&of_day);
    assert_eq!(graph.readers(&slot("w", "2026-11-21T00:00:00Z")).len(), 24);
    let found = graph.writers(&id("r"), "file:///day/2026-11-21", None);
    assert_eq!(names(&found.slots), ["w@2026-11-21T00:00Z"]);
}

#[test]
fn who_writes_a_folder_writes_what_is_in_it_and_paths_are_told_apart_by_meaning() {
    let reader = workflow("r", HOURLY, &[], local("/in/./${year}-${month}-${day}//${hour}/_READY"));
    let graph =
        graph(&[reader, workflow("w", HOURLY, &["file:/in/x/../${year}-${month}-${day}/${hour}/"], Trigger::Always)]);
    let found = graph.writers(&id("r"), "file:///in/./2026-11-21//05/_READY", None);
    assert_eq!(names(&found.slots), ["w@2026-11-21T05:00Z"]);
    let near = workflow("n", HOURLY, &["/in/${year}-${month}-${day}/${hour}/_REA"], Trigger::Always);
    assert!(
        super::tests::graph(&[near, workflow("r", HOURLY, &[], local(&format!("{HOUR}/_READY")))]).edges().is_empty()
    );
}

#[test]
fn other_systems_are_compared_as_they_are_asked() {
    let hdfs = Trigger::Path(PathCheck::new(FileSystem::Hdfs, "/logs/${year}${month}${day}", "hdfs://nn"));
    let object = Trigger::Path(PathCheck::new(FileSystem::Any, "s3://b/${year}/x", ""));
    let both = Trigger::Or { triggers: vec![hdfs, Trigger::Not { trigger: Box::new(object) }] };
    let writes = ["hdfs://nn/logs/${year}${month}${day}", "s3://other/${year}/x", "/logs/${year}${month}${day}"];
    let graph = graph(&[workflow("r", DAILY, &[], both), workflow("w", DAILY, &writes, Trigger::Always)]);
    assert_eq!(names(&graph.readers(&slot("w", "2026-11-21T00:00:00Z"))), ["r@2026-11-21T00:00Z"]);
    assert_eq!(names(&graph.writers(&id("r"), "hdfs://nn/logs/20261121", None).slots), ["w@2026-11-21T00:00Z"]);
    assert!(graph.writers(&id("r"), "s3://b/2026/x", None).slots.is_empty());
}

#[test]
fn a_path_without_a_time_is_written_by_the_newest_slot() {
    let graph =
        graph(&[workflow("r", HOURLY, &[], local("/latest")), workflow("w", HOURLY, &["/latest"], Trigger::Always)]);
    let found = graph.writers(&id("r"), "file:///latest", Some(at("2026-11-21T05:30:00Z")));
    assert_eq!(names(&found.slots), ["w@2026-11-21T05:00Z"]);
    assert_eq!(graph.writers(&id("r"), "file:///latest", None).others, BTreeSet::from([id("w")]));
    assert!(graph.readers(&slot("w", "2026-11-21T05:00:00Z")).is_empty(), "all of them are no answer");
}

#[test]
fn a_template_that_never_matches_joins_nothing() {
    let swapped = "/in/${year}-${day}-${month}/${hour}";
    for writes in [swapped, "/in/${year}-${month}-${day}", "/in/${yaer}-${month}-${day}/${hour}", "/in", "${year}"] {
        let graph =
            graph(&[workflow("r", HOURLY, &[], local(HOUR)), workflow("w", HOURLY, &[writes], Trigger::Always)]);
        let found = graph.writers(&id("r"), "file:///in/2026-11-21/05", None);
        let is_folder = writes == "/in" || writes == "/in/${year}-${month}-${day}";
        assert_eq!(!graph.edges().is_empty(), is_folder, "{writes}");
        assert_eq!(found.slots.len() + found.others.len() > 0, is_folder, "{writes}");
    }
    let never = [
        workflow("r", HOURLY, &[], local(HOUR)),
        workflow("w", "0 30 12 * * ?", &["/in/${year}-${month}-${day}/${minute}"], Trigger::Always),
    ];
    assert!(graph(&never).edges().is_empty());
    let other_hour = [workflow("r", HOURLY, &[], local(HOUR)), workflow("w", "0 0 12 * * ?", &[HOUR], Trigger::Always)];
    let found = graph(&other_hour).writers(&id("r"), "file:///in/2026-11-21/05", None);
    assert_eq!((found.slots.len(), found.others), (0, BTreeSet::from([id("w")])));
}

#[test]
fn a_reader_of_what_it_writes_and_a_circle_are_joined_and_end() {
    let own = workflow("w", HOURLY, &[HOUR], earlier(3600, local(HOUR)));
    let graph = graph(&[own]);
    assert_eq!(names(&graph.readers(&slot("w", "2026-11-21T05:00:00Z"))), ["w@2026-11-21T06:00Z"]);
    let same = super::tests::graph(&[workflow("w", HOURLY, &[HOUR], local(HOUR))]);
    assert!(same.readers(&slot("w", "2026-11-21T05:00:00Z")).is_empty());
    let round = [workflow("a", DAILY, &[DAY], local(HOUR)), workflow("b", HOURLY, &[HOUR], local(DAY))];
    assert_eq!(super::tests::graph(&round).edges().len(), 2);
}

#[test]
fn two_writers_of_one_path_are_both_found_and_reported() {
    let workflows = [
        workflow("a", HOURLY, &[HOUR], Trigger::Always),
        workflow("b", HOURLY, &["/out", "file:///in/${year}-${month}-${day}/${hour}"], Trigger::Always),
        workflow("r", HOURLY, &[], local(HOUR)),
    ];
    let found = graph(&workflows).writers(&id("r"), "file:///in/2026-11-21/05", None);
    assert_eq!(names(&found.slots), ["a@2026-11-21T05:00Z", "b@2026-11-21T05:00Z"]);
    let shared = shared_paths(workflows.iter().map(|one| &**one));
    assert_eq!(shared.len(), 1);
    assert_eq!((shared[0].first.clone(), shared[0].second.clone()), (id("a"), id("b")));
}

/// A slot is a writer of another one exactly when that one is a reader of it.
#[test]
fn both_directions_agree() {
    let crons = [HOURLY, DAILY, "0 30 0/6 * * ?"];
    let paths = [
        HOUR,
        DAY,
        "/in/${year}-${month}-${day}/${hour}/x",
        "/in/${year}-${month}-${day}/00",
        "/in/${year}-${month}-${day}",
    ];
    for (writes, reads) in paths.iter().flat_map(|writes| paths.iter().map(move |reads| (writes, reads))) {
        for (of_writer, of_reader) in crons.iter().flat_map(|one| crons.iter().map(move |other| (one, other))) {
            for offset in [0, 3600, -7200] {
                let reader = workflow("r", of_reader, &[], earlier(offset, local(reads)));
                let graph = graph(&[reader.clone(), workflow("w", of_writer, &[writes], Trigger::Always)]);
                let times = |name: &str, cron: &str| -> Vec<SlotRef> {
                    let schedule = CronSchedule::utc(Cron::parse(cron).unwrap());
                    let times = schedule.times(at("2026-11-20T21:00:00Z"), at("2026-11-22T01:00:00Z"));
                    times.map(|time| SlotRef::at(id(name), time)).collect()
                };
                let readers: BTreeMap<SlotRef, _> =
                    times("w", of_writer).into_iter().map(|writer| (writer.clone(), graph.readers(&writer))).collect();
                for reader in times("r", of_reader) {
                    let values = KeyValues::at(reader.key.time().unwrap()).offset(-offset).unwrap();
                    let uri = PathCheck::new(FileSystem::Local, reads, "file:///").uri(&values);
                    let writers = graph.writers(&reader.workflow, &uri, None).slots;
                    for (writer, readers) in &readers {
                        let is_reader = readers.contains(&reader);
                        assert_eq!(writers.contains(writer), is_reader, "{writes} {reads} {writer} {reader}");
                    }
                }
            }
        }
    }
}
