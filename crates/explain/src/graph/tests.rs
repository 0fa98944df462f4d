use std::sync::Arc;

use kelos_model::probe::Verdict;
use kelos_model::time::{Cron, CronSchedule, parse_instant};
use kelos_model::workflow::{About, Job, Keys, Moments, PlanState, Workflow};
use kelos_model::{Answer, Event, EventRecord, Finding, Probe, Reason, ReasonKind, SlotEvent, Trigger, slot};
use kelos_store::{Commit, Journal, MemoryStore, SlotRow, StoredState};

use super::*;

const NOON: &str = "2026-01-01T12:00Z";

fn at(text: &str) -> Timestamp {
    parse_instant(text).unwrap()
}

fn id(name: &str) -> WorkflowId {
    WorkflowId::new(name).unwrap()
}

fn noon(name: &str) -> SlotRef {
    SlotRef::at(id(name), at(NOON))
}

fn success(of: &str) -> Trigger {
    Trigger::Success { workflow: id(of) }
}

fn all(triggers: impl IntoIterator<Item = Trigger>) -> Trigger {
    Trigger::And { triggers: triggers.into_iter().collect() }
}

fn row(name: &str, trigger: Trigger) -> WorkflowRow {
    let hourly = Schedule::Cron(CronSchedule::utc(Cron::parse("0 0 * * * ?").unwrap()));
    let definition = Workflow {
        project: format!("project-{}", &name[..1]),
        trigger,
        about: About { tags: vec![format!("tag-{name}")], ..About::default() },
        ..Workflow::new(id(name), hourly, Job::new("command", serde_json::Map::new()))
    };
    let definition = Arc::new(definition);
    let (planned, moments) = (PlanState::default(), Moments::default());
    WorkflowRow { id: id(name), definition, version: 1, present: true, enabled: true, paused: false, planned, moments }
}

/// A store with the events of a test.
struct World {
    store: MemoryStore,
    commit: Commit,
}

impl World {
    fn new(workflows: Vec<WorkflowRow>) -> World {
        World { store: MemoryStore::new(), commit: Commit { workflows, ..Commit::default() } }
    }

    /// The noon slot of a workflow in a state.
    fn slot(mut self, name: &str, state: SlotState) -> World {
        let what = SlotEvent::Imported {
            from: "elsewhere".to_owned(),
            state,
            retries: 0,
            external_id: None,
            requested: false,
            there: state.to_string(),
        };
        self.happen(name, what);
        self
    }

    /// A waiting noon slot, whose trigger gave this answer.
    fn waiting(self, name: &str, explanation: Reason) -> World {
        let mut world = self.slot(name, SlotState::Waiting);
        world.happen(name, SlotEvent::Looked { explanation });
        world
    }

    fn happen(&mut self, name: &str, what: SlotEvent) {
        let (seq, slot) = (self.commit.events.len() as u64 + 1, noon(name));
        let before = self.commit.slots.iter().rev().find(|row| row.id == slot).map(|row| row.slot.clone());
        let after = slot::apply(before, &what, at(NOON), seq).expect("something that can happen");
        self.commit.slots.push(SlotRow { id: slot.clone(), slot: after });
        self.commit.events.push(EventRecord { seq, at: at(NOON), previous: 0, event: Event::Slot { slot, what } });
    }

    fn reader(mut self) -> Arc<dyn Queries> {
        let lease = self.store.lease("test", at(NOON), 1000).unwrap().unwrap();
        // `previous` chains a slot's events.
        let mut last: BTreeMap<SlotRef, u64> = BTreeMap::new();
        for record in &mut self.commit.events {
            if let Event::Slot { slot, .. } = &record.event {
                record.previous = last.insert(slot.clone(), record.seq).unwrap_or(0);
            }
        }
        self.store.commit(lease, &self.commit).unwrap();
        self.store.reader()
    }
}

fn looked_at(name: &str) -> Reason {
    let finding = Finding::UpstreamIs { slot: noon(name), state: SlotState::Waiting };
    Reason::leaf(ReasonKind::Success, Answer::NotYet, finding)
}

fn and(nested: Vec<Reason>) -> Reason {
    Reason { kind: ReasonKind::And, answer: Answer::NotYet, finding: Finding::AllOf, nested }
}

fn path(uri: &str) -> Reason {
    let (probe, verdict, detail, looked_at) = (Probe::path(uri), Verdict::No, String::new(), at(NOON));
    let finding = Finding::ProbeAnswered { probe, verdict, detail, looked_at };
    Reason::leaf(ReasonKind::LocalPath, Answer::NotYet, finding)
}

/// The graph as lines: nodes, then edges.
fn told(graph: &Graph) -> Vec<String> {
    let nodes = graph.nodes.iter().map(|node| node.id.to_string());
    let edges = graph.edges.iter().map(|edge| match edge.kind {
        EdgeKind::Success { later_seconds: 0 } => format!("{} > {}", edge.from, edge.to),
        EdgeKind::Success { later_seconds } => format!("{} > {} {later_seconds}", edge.from, edge.to),
        EdgeKind::Jobs => format!("{} : {}", edge.from, edge.to),
        EdgeKind::Periods => format!("{} > {} periods", edge.from, edge.to),
        EdgeKind::Schedule => format!("{} ~ {}", edge.from, edge.to),
        EdgeKind::Ended => format!("{} | {}", edge.from, edge.to),
        EdgeKind::Runs => format!("{} runs {}", edge.from, edge.to),
        EdgeKind::Paths => format!("{} writes for {}", edge.from, edge.to),
    });
    nodes.chain(edges).collect()
}

fn whole(world: World, wanted: &GraphQuery) -> Graph {
    read(&*world.reader(), wanted, at("2026-01-01T12:30Z"), 24).unwrap()
}

fn chain() -> World {
    let earlier = Trigger::Offset { seconds: -3600, trigger: Box::new(success("c")) };
    World::new(vec![
        row("a", Trigger::Always),
        row("b", success("a")),
        row("c", all([success("b"), success("b"), Trigger::Not { trigger: Box::new(earlier) }])),
        row("d", success("c")),
        row("e", success("gone")),
    ])
}

#[test]
fn edges_are_what_definitions_mention() {
    let mut world = chain();
    let mut borrows = row("f", Trigger::Always);
    Arc::make_mut(&mut borrows.definition).keys = Keys::Schedule(Schedule::Dependent(id("a")));
    world.commit.workflows.push(borrows);
    let mut old = row("old", success("a"));
    old.present = false;
    world.commit.workflows.push(old);
    let graph = whole(world, &GraphQuery::default());
    let expected =
        ["a", "b", "c", "d", "e", "f", "gone", "a > b", "a ~ f", "b > c", "c > c -3600", "c > d", "gone > e"];
    assert_eq!(told(&graph), expected);
    assert_eq!(graph.nodes[6].kind, NodeKind::Missing);
}

#[test]
fn a_focus_cuts_levels_and_counts_what_it_hides() {
    let focus = |up, down| GraphQuery { focus: Some(Focus { on: id("b"), up, down }), ..GraphQuery::default() };
    let near = whole(chain(), &focus(1, 1));
    assert_eq!(told(&near), ["a", "b", "c", "a > b", "b > c", "c > c -3600"]);
    let hidden: Vec<_> = near.nodes.iter().map(|node| (node.hidden_up, node.hidden_down)).collect();
    assert_eq!(hidden, [(0, 0), (0, 0), (0, 1)]);
    assert_eq!(told(&whole(chain(), &focus(0, 0))), ["b"]);
    assert_eq!(told(&whole(chain(), &focus(0, 9)))[..3], ["b", "c", "d"]);
    let nobody = GraphQuery { focus: Some(Focus { on: id("z"), up: 1, down: 1 }), ..GraphQuery::default() };
    assert!(told(&whole(chain(), &nobody)).is_empty());
}

#[test]
fn filters_go_by_project_tag_and_words() {
    let by_project = GraphQuery { project: Some("project-a".to_owned()), ..GraphQuery::default() };
    let by_tag = GraphQuery { tag: Some("tag-b".to_owned()), ..GraphQuery::default() };
    let by_words = GraphQuery { words: vec!["TAG".to_owned(), "-d".to_owned()], ..GraphQuery::default() };
    assert_eq!(told(&whole(chain(), &by_project)), ["a"]);
    assert_eq!(told(&whole(chain(), &by_tag)), ["b"]);
    assert_eq!(told(&whole(chain(), &by_words)), ["d"]);
    let also = GraphQuery { also: BTreeSet::from([id("a")]), ..by_words };
    assert_eq!(told(&whole(chain(), &also)), ["a", "d"]);
}

#[test]
fn nodes_tell_of_their_slots() {
    let world = chain().slot("a", SlotState::Failed).slot("b", SlotState::Waiting);
    let graph = read(&*world.reader(), &GraphQuery::default(), at("2026-01-03T00:00Z"), 40).unwrap();
    assert_eq!(graph.nodes[0].counts, BTreeMap::from([(SlotState::Failed, 1)]));
    let world = chain().slot("a", SlotState::Failed);
    let graph = read(&*world.reader(), &GraphQuery::default(), at("2026-01-03T00:00Z"), 24).unwrap();
    assert!(graph.nodes[0].counts.is_empty(), "noon was longer ago");
    assert_eq!(graph.nodes[0].newest, Some((noon("a"), SlotState::Failed)));
    assert_eq!(graph.nodes[0].failure, Some(SlotState::Failed), "however long ago, it was not repaired");
    assert!(graph.nodes[1..].iter().all(|node| node.failure.is_none()));
}

/// The obstacles of a slot, as lines: level, slot, state, obstacles.
fn way(world: World, name: &str) -> Vec<String> {
    let found = upstream(&*world.reader(), &noon(name), at("2026-01-01T12:30Z")).unwrap();
    let line = |step: &Step| {
        let waits: Vec<_> = step.waits_for.iter().map(|slot| slot.workflow.to_string()).collect();
        let kinds: Vec<_> = step.obstacles.iter().map(|one| one.kind.as_str()).collect();
        format!("{} {} [{}] {}", step.level, step.slot.workflow, waits.join(" "), kinds.join(" "))
    };
    found.steps.iter().map(line).collect()
}

#[test]
fn a_path_leads_to_what_failed() {
    let world = chain().slot("a", SlotState::Failed).waiting("b", looked_at("a")).waiting("c", looked_at("b"));
    assert_eq!(way(world.waiting("d", looked_at("c")), "d"), ["0 d [c] ", "1 c [b] ", "2 b [a] ", "3 a [] failed"]);
}

#[test]
fn it_leads_to_everything_that_is_in_the_way_and_to_nothing_else() {
    let mut unmet = looked_at("a");
    unmet.answer = Answer::Met;
    let trigger = and(vec![unmet, path("/data/in"), looked_at("b"), looked_at("gone")]);
    let world = chain().waiting("c", trigger).slot("b", SlotState::Skipped);
    assert_eq!(way(world, "c"), ["0 c [b gone] outside", "1 b [] skipped", "1 gone [] missing"]);
}

#[test]
fn what_has_succeeded_since_is_not_in_the_way() {
    let world = chain().slot("a", SlotState::Succeeded).waiting("b", looked_at("a"));
    assert_eq!(way(world, "b"), ["0 b [] trigger"]);
    assert_eq!(way(chain().slot("a", SlotState::Succeeded), "a"), ["0 a [] "]);
}

#[test]
fn a_trigger_that_never_answered_is_read_from_the_definition() {
    assert_eq!(way(chain().slot("b", SlotState::Waiting), "b"), ["0 b [a] ", "1 a [] missing"]);
}

#[test]
fn pauses_and_workflows_that_are_gone_are_obstacles() {
    let mut world = chain();
    world.commit.workflows[0].paused = true;
    world.commit.workflows[1].present = false;
    let world = world.waiting("b", looked_at("a")).waiting("a", path("/x"));
    assert_eq!(way(world, "b"), ["0 b [a] undefined", "1 a [] paused outside"]);
}

#[test]
fn a_slot_that_expired_is_an_obstacle_with_what_it_waited_for() {
    let mut world = chain().waiting("b", looked_at("a")).slot("a", SlotState::Killed);
    let explanation = and(vec![looked_at("a"), path("/x")]);
    world.happen("b", SlotEvent::Expired { timeout_seconds: 60, explanation });
    assert_eq!(way(world, "b"), ["0 b [a] expired", "1 a [] killed"]);
}

#[test]
fn a_circle_ends_where_it_began() {
    let world = World::new(vec![row("a", success("b")), row("b", success("a"))]);
    let world = world.waiting("a", looked_at("b")).waiting("b", looked_at("a"));
    assert_eq!(way(world, "a"), ["0 a [b] ", "1 b [a] "]);
}

#[test]
fn a_path_has_an_end() {
    let names: Vec<String> = (0..MOST_STEPS + 5).map(|n| format!("w{n}")).collect();
    let mut world = World::new(names.iter().map(|name| row(name, Trigger::Always)).collect());
    for pair in names.windows(2) {
        world = world.waiting(&pair[0], looked_at(&pair[1]));
    }
    let found = upstream(&*world.reader(), &noon("w0"), at(NOON)).unwrap();
    assert!(found.is_cut && found.steps.len() == MOST_STEPS);
}
