use kelos_model::event::Event;
use kelos_model::probe::Verdict;
use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::{
    Actor, Answer, Finding, Probe, Reason, ReasonKind, SlotEvent, SlotRef, SlotState, Trigger, WorkflowEvent,
    WorkflowId,
};
use kelos_store::StoredState;

use super::*;
use crate::world::{World, at, failure, missing, row};

fn world(names: &[&str]) -> World {
    World::new(names.iter().map(|name| row(name, |_| ())).collect())
}

fn roots_of(world: &World, slot: &SlotRef) -> Roots {
    read(&*world.store.reader(), slot, at(20_000, 0), true).unwrap()
}

fn sentences(world: &World, slot: &SlotRef) -> Vec<String> {
    roots_of(world, slot).rows.iter().map(Root::sentence).collect()
}

/// The answer of a trigger that waits for the success of slots.
fn all(slots: impl IntoIterator<Item = SlotRef>) -> Reason {
    let leaf = |slot| {
        let finding = Finding::UpstreamIs { slot, state: SlotState::Waiting };
        Reason::leaf(ReasonKind::Success, Answer::NotYet, finding)
    };
    let nested = slots.into_iter().map(leaf).collect();
    Reason { kind: ReasonKind::And, answer: Answer::NotYet, finding: Finding::AllOf, nested }
}

fn slot(id: &str, hour: i64) -> SlotRef {
    SlotRef::at(WorkflowId::new(id).unwrap(), at(hour, 0))
}

#[test]
fn a_chain_leads_to_the_failed_run() {
    let mut world = world(&["a", "b", "c"]);
    let a = world.fails("a", 6);
    let b = world.waits("b", 6, &a);
    let c = world.waits("c", 6, &b);
    let failed = "failed at 2016-01-01T06:04Z (run 1: exited with status 3)";
    assert_eq!(
        sentences(&world, &c),
        [format!("waits for b@2016-01-01T06:00Z, which waits for a@2016-01-01T06:00Z, which {failed}")]
    );
    let found = roots_of(&world, &c);
    assert_eq!((found.rows[0].run.as_ref().map(|run| run.number), found.rows[0].alike, found.more), (Some(1), 0, 0));
    let own = roots_of(&world, &a);
    assert_eq!((own.rows[0].sentence(), own.rows[0].way.len()), (failed.to_owned(), 1));
}

#[test]
fn nothing_is_at_the_root_of_success() {
    let mut world = world(&["a"]);
    let a = world.running("a", 6, 0);
    world.succeeds(&a, at(6, 5));
    assert_eq!(roots_of(&world, &a), Roots::default());
}

#[test]
fn several_culprits_come_with_what_a_person_has_to_repair_first() {
    let mut world = world(&["clock", "failed", "killed", "paths", "runs", "z"]);
    let failed = world.fails("failed", 6);
    let runs = world.running("runs", 6, 0);
    let killed = world.running("killed", 6, 0);
    let by = Actor::person("ann");
    world.happens(&killed, at(6, 9), SlotEvent::Killed { by, reason: Some("too late".to_owned()) });
    let paths = world.planned("paths", 6, at(6, 0));
    world.happens(&paths, at(6, 1), SlotEvent::Looked { explanation: missing(at(6, 1)) });
    let z = world.planned("z", 6, at(6, 0));
    let explanation = all([paths, runs, killed, failed, slot("clock", 6)]);
    world.happens(&z, at(6, 1), SlotEvent::Looked { explanation });
    let found: Vec<String> = roots_of(&world, &z).rows.iter().map(|root| root.cause.clone()).collect();
    let expected = [
        "failed at 2016-01-01T06:04Z (run 1: exited with status 3)",
        "was killed by ann at 2016-01-01T06:09Z (too late)",
        "does not exist: it was never planned: it lay before the planning window when its workflow was looked at; rerun it, \
         or backfill a range, to open it",
        "is under way: run 1 (x) goes on since 2016-01-01T06:00Z",
        "waits for hdfs://n/in, which is not there",
    ];
    assert_eq!(found, expected);
}

#[test]
fn ten_thousand_alike_causes_are_one_with_a_count() {
    let mut world = world(&["up", "month"]);
    let first = world.fails("up", 0);
    let others: Vec<SlotRef> = (1..10_000).map(|hour| slot("up", hour)).collect();
    for hour in 1..4 {
        world.fails("up", hour);
    }
    let month = world.planned("month", 6, at(6, 0));
    let explanation = all(others.into_iter().chain([first]));
    world.happens(&month, at(6, 1), SlotEvent::Looked { explanation });
    let found = roots_of(&world, &month);
    let told: Vec<(&str, String, u64)> =
        found.rows.iter().map(|root| (root.kind.as_str(), root.slot.short(), root.alike)).collect();
    let expected = [("failed", "up@2016-01-01T00:00Z", 3), ("missing", "up@2016-01-01T04:00Z", 9_995)];
    assert_eq!(told, expected.map(|(kind, slot, alike)| (kind, slot.to_owned(), alike)));
    assert_eq!((found.more, found.unexamined), (0, 0));
}

#[test]
fn slots_that_wait_alike_are_sampled_and_the_rest_is_counted() {
    let mut world = world(&["down", "up", "top"]);
    let top = world.fails("top", 0);
    let ups: Vec<SlotRef> = (0..100).map(|hour| world.waits("up", hour, &top)).collect();
    let down = world.planned("down", 6, at(6, 0));
    world.happens(&down, at(6, 1), SlotEvent::Looked { explanation: all(ups) });
    let found = roots_of(&world, &down);
    assert_eq!((found.rows.len(), found.rows[0].slot.clone(), found.unexamined), (1, top, 75));
}

#[test]
fn a_long_way_is_told_by_its_ends_and_ends_where_too_much_was_examined() {
    let mut world = world(&["w"]);
    let mut last = world.fails("w", 0);
    for hour in 1..40 {
        last = world.waits("w", hour, &last);
    }
    let found = roots_of(&world, &last);
    let root = &found.rows[0];
    assert_eq!((root.slot.clone(), root.way.len(), root.left_out), (slot("w", 0), 2 * ENDS, 20));
    assert_eq!(
        root.sentence(),
        "waits for w@2016-01-02T14:00Z, which waits for w@2016-01-02T13:00Z, which waits for w@2016-01-02T12:00Z, which \
         waits, through 33 more slots, for w@2016-01-01T02:00Z, which waits for w@2016-01-01T01:00Z, which waits for \
         w@2016-01-01T00:00Z, which failed at 2016-01-01T00:04Z (run 1: exited with status 3)"
    );
    let reader = world.store.reader();
    let view = View::new(&*reader, at(20_000, 0), true);
    let cut = search::roots(&view, &last, 10).unwrap();
    assert_eq!((cut.rows.len(), cut.unexamined), (0, 1));
}

#[test]
fn a_circle_is_told_as_one() {
    let mut world = world(&["a", "b", "c"]);
    let a = world.waits("a", 6, &slot("b", 6));
    let b = world.waits("b", 6, &a);
    let c = world.waits("c", 6, &a);
    let round = "waits for itself, through b@2016-01-01T06:00Z: none of them can run first";
    assert_eq!(sentences(&world, &a), [round]);
    assert_eq!(sentences(&world, &c), [format!("waits for a@2016-01-01T06:00Z, which {round}")]);
    let own = world.waits("b", 7, &slot("b", 7));
    assert_eq!(sentences(&world, &own), ["waits for itself"]);
    assert_ne!(b, own);
}

#[test]
fn an_expired_slot_is_passed_through_to_what_failed() {
    let mut world = world(&["a", "b", "c"]);
    let a = world.fails("a", 2);
    let b = world.expires("b", 2, &a);
    let c = world.waits("c", 2, &b);
    assert_eq!(
        sentences(&world, &c),
        ["waits for b@2016-01-01T02:00Z, which expired while it waited for a@2016-01-01T02:00Z, which failed at \
          2016-01-01T02:04Z (run 1: exited with status 3)"]
    );
    world.happens(&a, at(5, 0), SlotEvent::MarkedSucceeded { by: Actor::person("ann"), reason: None });
    assert_eq!(
        sentences(&world, &c),
        [
            "waits for b@2016-01-01T02:00Z, which expired at 2016-01-01T03:00Z: timed out 1h after its time; it still waited: \
          Workflow slot a@2016-01-01T02:00Z is not ready"
        ]
    );
}

#[test]
fn a_pause_counts_now_and_at_the_moment_at_which_it_held() {
    let mut paused = row("a", |_| ());
    paused.paused = true;
    let mut world = World::new(vec![paused, row("b", |_| ())]);
    let a = world.planned("a", 2, at(2, 0));
    let b = world.waits("b", 2, &a);
    let change = |what| Event::Workflow { workflow: a.workflow.clone(), what };
    let by = Actor::person("ann");
    world.logs(at(3, 0), change(WorkflowEvent::Paused { by: by.clone(), reason: None }));
    world.logs(at(4, 0), change(WorkflowEvent::Resumed { by: by.clone(), reason: None }));
    world.logs(at(5, 0), change(WorkflowEvent::Paused { by, reason: None }));
    let reader = world.store.reader();
    let then = |hour, minute| read(&*reader, &b, at(hour, minute), false).unwrap().rows.remove(0).kind.as_str();
    assert_eq!([then(2, 30), then(3, 30), then(4, 30), then(5, 30)], ["trigger", "paused", "trigger", "paused"]);
    assert_eq!(sentences(&world, &b), ["waits for a@2016-01-01T02:00Z, which waits, and its workflow is paused"]);
}

#[test]
fn the_past_is_told_as_it_was() {
    let mut world = world(&["a", "b"]);
    let a = world.running("a", 2, 0);
    let b = world.waits("b", 2, &a);
    world.happens(&a, at(2, 30), SlotEvent::Failed { run: 1, outcome: failure() });
    world.happens(&a, at(3, 0), SlotEvent::MarkedSucceeded { by: Actor::person("ann"), reason: None });
    let reader = world.store.reader();
    let then = |hour, minute| -> Vec<String> {
        read(&*reader, &b, at(hour, minute), false)
            .unwrap()
            .rows
            .iter()
            .map(|root| root.kind.as_str().to_owned())
            .collect()
    };
    assert_eq!([then(2, 10), then(2, 40)], [["under-way"], ["failed"]]);
    assert_eq!(then(3, 10), ["trigger"]);
}

/// An hourly workflow that writes a path of each hour.
fn writer(id: &str) -> kelos_model::workflow::WorkflowRow {
    row(id, |workflow| workflow.writes = vec!["/out/${year}${month}${day}${hour}".to_owned()])
}

/// An hourly workflow that waits for a path of each hour.
fn reader(id: &str) -> kelos_model::workflow::WorkflowRow {
    let check = PathCheck::new(FileSystem::Local, "/out/${year}${month}${day}${hour}", "file:///");
    row(id, move |workflow| workflow.trigger = Trigger::Path(check.clone()))
}

/// A slot that waits for a path that is not there.
fn waits_for_path(world: &mut World, id: &str, hour: i64, path: &str) -> SlotRef {
    let slot = world.planned(id, hour, at(hour, 0));
    let (probe, detail, looked_at) = (Probe::path(format!("file://{path}")), String::new(), at(hour, 1));
    let finding = Finding::ProbeAnswered { probe, verdict: Verdict::No, detail, looked_at };
    let explanation = Reason::leaf(ReasonKind::LocalPath, Answer::NotYet, finding);
    world.happens(&slot, at(hour, 1), SlotEvent::Looked { explanation });
    slot
}

#[test]
fn a_missing_path_leads_to_who_writes_it() {
    let mut world = World::new(vec![
        writer("w"),
        reader("r"),
        row("last", |workflow| workflow.trigger = Trigger::Success { workflow: WorkflowId::new("r").unwrap() }),
    ]);
    let w = world.fails("w", 2);
    let r = waits_for_path(&mut world, "r", 2, "/out/2016010102");
    let last = world.waits("last", 2, &r);
    let told = "waits for /out/2016010102, which is not there; w@2016-01-01T02:00Z writes it, and it failed at \
                2016-01-01T02:04Z (run 1: exited with status 3)";
    assert_eq!(sentences(&world, &r), [told]);
    assert_eq!(sentences(&world, &last), [format!("waits for r@2016-01-01T02:00Z, which {told}")]);
    let failures = crate::failures::find(&*world.store.reader(), at(9, 0)).unwrap();
    let followers: Vec<&SlotRef> = failures.followers().map(|follower| &follower.slot).collect();
    assert_eq!((failures.rows.len(), followers), (1, vec![&r, &last]));
    world.happens(&w, at(5, 0), SlotEvent::MarkedSucceeded { by: Actor::person("ann"), reason: None });
    assert_eq!(
        sentences(&world, &r),
        ["waits: File /out/2016010102 is not ready; w@2016-01-01T02:00Z writes it, and has succeeded"]
    );
}

#[test]
fn a_path_of_nobody_stays_a_path_and_one_that_a_slot_writes_itself_is_no_circle() {
    let both = row("both", |workflow| {
        workflow.writes = vec!["/own/${year}/${month}${day}/${hour}".to_owned()];
        workflow.trigger =
            Trigger::Path(PathCheck::new(FileSystem::Local, "/own/${year}/${month}${day}/${hour}", "file:///"));
    });
    let mut world = World::new(vec![writer("w"), reader("r"), both]);
    let r = waits_for_path(&mut world, "r", 2, "/elsewhere");
    assert_eq!(sentences(&world, &r), ["waits for /elsewhere, which is not there"]);
    let own = waits_for_path(&mut world, "both", 2, "/own/2016/0101/02");
    let rows = roots_of(&world, &own).rows;
    let (own_kind, way) = (rows[0].kind.as_str(), rows[0].way.len());
    assert_eq!((own_kind, way), ("outside", 1));
}

#[test]
fn a_circle_through_paths_ends() {
    let round = |id: &str, reads: &'static str, writes: &'static str| {
        row(id, move |workflow| {
            workflow.writes = vec![writes.to_owned()];
            workflow.trigger = Trigger::Path(PathCheck::new(FileSystem::Local, reads, "file:///"));
        })
    };
    let mut world = World::new(vec![
        round("a", "/b/${year}${month}${day}${hour}", "/a/${year}${month}${day}${hour}"),
        round("b", "/a/${year}${month}${day}${hour}", "/b/${year}${month}${day}${hour}"),
    ]);
    let a = waits_for_path(&mut world, "a", 2, "/b/2016010102");
    waits_for_path(&mut world, "b", 2, "/a/2016010102");
    let found = roots_of(&world, &a);
    assert_eq!((found.rows.len(), found.unexamined), (1, 0), "{found:?}");
    assert_eq!(found.rows[0].kind.as_str(), "circle");
    let graph = crate::graph::read(&*world.store.reader(), &crate::graph::GraphQuery::default(), at(9, 0), 24).unwrap();
    let edges: Vec<String> =
        graph.edges.iter().map(|edge| format!("{} {:?} {}", edge.from, edge.kind, edge.to)).collect();
    assert_eq!(edges, ["a Paths b", "b Paths a"]);
}

#[test]
fn of_many_writers_of_a_path_those_count_that_there_are() {
    let day = "/day/${year}${month}${day}";
    let writer = row("w", move |workflow| workflow.writes = vec![day.to_owned()]);
    let reader = row("r", move |workflow| {
        workflow.trigger = Trigger::Path(PathCheck::new(FileSystem::Local, day, "file:///"));
    });
    let mut world = World::new(vec![writer, reader]);
    let r = waits_for_path(&mut world, "r", 0, "/day/20160101");
    assert_eq!(roots_of(&world, &r).rows[0].alike, 23, "none of the day is there");
    world.fails("w", 3);
    world.fails("w", 4);
    let found = roots_of(&world, &r);
    let told: Vec<(&str, u64)> = found.rows.iter().map(|root| (root.kind.as_str(), root.alike)).collect();
    assert_eq!(told, [("failed", 1)]);
}
