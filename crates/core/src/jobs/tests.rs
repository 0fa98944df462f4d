use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::function::FunctionRef;
use kelos_model::jobs::{Group, JobKeys, JobTemplate, Member, TwoWay};
use kelos_model::{Finding, WorkflowId};

use super::*;

/// Slots with given states, and a record of what is asked of them.
#[derive(Default)]
struct Table {
    states: BTreeMap<SlotRef, SlotState>,
    /// The slots that were read from the past, or are about to be.
    read: BTreeSet<SlotRef>,
    listening: BTreeSet<(SlotRef, SlotRef)>,
    come_back: BTreeMap<SlotRef, Timestamp>,
}

impl Slots for Table {
    fn state(&self, slot: &SlotRef) -> Option<SlotState> {
        self.states.get(slot).copied()
    }

    fn is_known(&self, slot: &SlotRef) -> bool {
        self.has(slot) || self.read.contains(slot)
    }

    fn read(&mut self, slot: &SlotRef) {
        self.read.insert(slot.clone());
    }

    fn listen(&mut self, child: &SlotRef, parent: &SlotRef) -> Option<Option<SlotState>> {
        self.listening.insert((child.clone(), parent.clone()));
        let known = self.is_known(parent).then(|| self.state(parent));
        self.read(parent);
        known
    }

    fn stop_listening(&mut self, child: &SlotRef, parent: &SlotRef) {
        assert!(self.listening.remove(&(child.clone(), parent.clone())), "{child} listens to {parent}");
    }

    fn come_back(&mut self, job: &SlotRef, at: Option<Timestamp>) {
        match at {
            Some(at) => drop(self.come_back.insert(job.clone(), at)),
            None => drop(self.come_back.remove(job)),
        }
    }
}

/// Jobs with the slots around them.
#[derive(Default)]
struct World {
    jobs: Jobs,
    table: Table,
}

impl World {
    fn new(definitions: Vec<(&str, JobKeys)>) -> World {
        let mut world = World::default();
        world.define(definitions);
        world
    }

    fn define(&mut self, definitions: Vec<(&str, JobKeys)>) -> Vec<SlotRef> {
        let graph = JobGraph::new(definitions.into_iter().map(|(name, keys)| (id(name), keys)).collect());
        self.jobs.define(graph.expect("a sound graph"), &mut self.table)
    }

    /// Sets the state of a slot; returns the open jobs to be evaluated because of that.
    fn says(&mut self, slot: &SlotRef, state: SlotState) -> Vec<SlotRef> {
        self.table.states.insert(slot.clone(), state);
        if state == SlotState::Succeeded {
            self.jobs.note_success(slot);
        }
        self.tell(slot, Some(state))
    }

    fn tell(&mut self, slot: &SlotRef, state: Option<SlotState>) -> Vec<SlotRef> {
        let children = self.table.listening.iter().filter(|(_, parent)| parent == slot);
        let children = children.map(|(child, _)| child.clone()).collect();
        self.jobs.heard(slot, state, children, &self.table)
    }

    /// Answers from the past: none of the slots that were read and are not there exists.
    fn nothing_else_exists(&mut self) {
        let absent: Vec<SlotRef> = self.table.read.iter().filter(|slot| !self.table.has(slot)).cloned().collect();
        for slot in absent {
            self.tell(&slot, None);
        }
    }

    /// The candidates that became possible, each with the parent that is the cause.
    fn possible(&mut self, second: i64) -> Vec<(SlotRef, SlotRef)> {
        self.jobs.follow_successes(at(second), &mut self.table);
        let mut possible = Vec::new();
        for (job, by) in self.jobs.take_prospects() {
            if self.jobs.is_possible(&job, &by, at(second), &mut self.table) {
                possible.push((job, by));
            }
        }
        possible
    }

    fn look(&mut self, job: &SlotRef, second: i64) -> ParentsState {
        self.jobs.look_at_parents(job, at(second), &mut self.table)
    }
}

fn id(name: &str) -> WorkflowId {
    name.parse().expect("an id")
}

fn job(workflow: &str, name: &str) -> SlotRef {
    SlotRef::job(id(workflow), name.into())
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn keys(depends_on: Vec<Group>) -> JobKeys {
    JobKeys { depends_on, ..JobKeys::new(JobTemplate::new("{x}").expect("a template")) }
}

fn after(workflows: &[&str]) -> Vec<Group> {
    let member = Member { workflows: workflows.iter().map(|name| id(name)).collect(), ..Member::default() };
    vec![Group { name: "all".to_owned(), members: vec![member], functions: None }]
}

fn by_functions(workflow: &str) -> Vec<Group> {
    let function = |index| FunctionRef { file: "f.js".to_owned(), index, digest: String::new() };
    let functions = TwoWay { workflows: vec![id(workflow)], parents: function(0), children: function(1) };
    vec![Group { name: "asked".to_owned(), members: Vec::new(), functions: Some(functions) }]
}

/// `c` waits for `a` and `b`.
fn diamond() -> World {
    World::new(vec![("a", keys(Vec::new())), ("b", keys(Vec::new())), ("c", keys(after(&["a", "b"])))])
}

fn named(workflow: &str, x: &str) -> Result<NamedJobs, String> {
    Ok(vec![(id(workflow), BTreeMap::from([("x".into(), Arc::from(x))]))])
}

#[test]
fn the_success_of_the_last_parent_opens_a_job() {
    let mut world = diamond();
    world.says(&job("a", "1"), SlotState::Succeeded);
    assert_eq!(world.possible(0), Vec::new(), "the other parent is missing");
    world.nothing_else_exists();
    assert_eq!(world.possible(1), Vec::new());
    world.says(&job("b", "1"), SlotState::Running);
    assert_eq!(world.possible(2), Vec::new());
    world.says(&job("b", "1"), SlotState::Succeeded);
    assert_eq!(world.possible(3), Vec::new(), "the past may know the job");
    assert!(world.table.read.contains(&job("c", "1")));
    assert_eq!(world.possible(3), vec![(job("c", "1"), job("b", "1"))]);
    assert_eq!(world.jobs.take_breach(), None);
}

#[test]
fn a_prospect_that_exists_is_not_opened_again() {
    let mut world = diamond();
    world.says(&job("a", "1"), SlotState::Succeeded);
    world.says(&job("b", "1"), SlotState::Succeeded);
    world.table.states.insert(job("c", "1"), SlotState::Failed);
    assert_eq!(world.possible(0), Vec::new());
    assert_eq!(world.jobs.awaited.len(), 0, "what has ended counts no parents");
}

#[test]
fn an_open_job_says_which_parents_are_missing() {
    let mut world = diamond();
    let child = job("c", "1");
    world.says(&child, SlotState::Waiting);
    assert_eq!(world.look(&child, 0), ParentsState::Unknown, "the past is read first");
    world.nothing_else_exists();
    assert_eq!(world.look(&child, 0), ParentsState::Missing(vec![job("a", "1"), job("b", "1")]));
    world.says(&job("a", "1"), SlotState::Waiting);
    assert_eq!(world.look(&child, 0), ParentsState::Missing(vec![job("b", "1")]));
    world.says(&job("b", "1"), SlotState::Succeeded);
    assert_eq!(world.says(&job("a", "1"), SlotState::Failed), vec![child.clone()], "nothing leads to it any more");
    assert_eq!(world.look(&child, 0), ParentsState::Missing(Vec::new()));
    assert_eq!(world.says(&job("a", "1"), SlotState::Succeeded), vec![child.clone()]);
    assert!(matches!(world.look(&child, 0), ParentsState::Met(_)));
    world.jobs.stop_awaiting(&child, &mut world.table);
    assert_eq!(world.table.listening, BTreeSet::new());
    assert_eq!(world.jobs.take_breach(), None);
}

#[test]
fn other_definitions_have_open_jobs_looked_at_and_prospects_found_again() {
    let mut world = diamond();
    world.says(&job("c", "open"), SlotState::Waiting);
    world.look(&job("c", "open"), 0);
    world.says(&job("a", "1"), SlotState::Succeeded);
    assert_eq!(world.possible(0), Vec::new());
    let looked_at = world.define(vec![("a", keys(Vec::new())), ("c", keys(after(&["a"])))]);
    assert_eq!(looked_at, vec![job("c", "open")]);
    world.possible(0);
    assert_eq!(world.possible(0), vec![(job("c", "1"), job("a", "1"))], "it waits for one parent now");
}

#[test]
fn functions_are_asked_once_and_again_where_they_failed() {
    let mut world = World::new(vec![("a", keys(Vec::new())), ("c", keys(by_functions("a")))]);
    let child = job("c", "1");
    world.says(&child, SlotState::Waiting);
    let ParentsState::AskedFor(why, None) = world.look(&child, 0) else { panic!("a function knows") };
    assert_eq!(why.finding, Finding::ParentsAsked);
    let questions = world.jobs.take_questions();
    let [question] = &questions[..] else { panic!("one question") };
    world.look(&child, 1);
    assert_eq!(world.jobs.take_questions(), Vec::new(), "it is being asked");
    assert!(world.jobs.related(question, Err("it threw".to_owned()), at(2)));
    assert!(!world.jobs.related(question, named("a", "p"), at(2)), "nobody waits for a second answer");
    let ParentsState::AskedFor(_, again) = world.look(&child, 3) else { panic!("it failed") };
    assert_eq!(again, Some(at(2) + ASK_AGAIN));
    world.look(&child, 32);
    assert_eq!(world.jobs.take_questions(), questions);
    assert!(world.jobs.related(question, named("a", "p"), at(33)));
    assert_eq!(world.look(&child, 33), ParentsState::Unknown, "the past is read first");
    world.nothing_else_exists();
    assert_eq!(world.look(&child, 33), ParentsState::Missing(vec![job("a", "p")]));
}

#[test]
fn a_run_succeeds_once_it_is_known_what_waits_for_its_job() {
    let mut world = World::new(vec![("a", keys(Vec::new())), ("c", keys(by_functions("a")))]);
    let run = RunId { slot: job("a", "p"), number: 1 };
    let held_up = |world: &World, is_defined| {
        let why = world.jobs.why_finishing(&run.slot, is_defined).map(|why| why.finding.code().to_owned());
        why.unwrap_or_default()
    };
    assert!(!world.jobs.may_succeed(&run, false, at(0), &world.table), "the files have not been read");
    assert_eq!(held_up(&world, false), "definitions-awaited");
    assert_eq!(world.jobs.take_questions(), Vec::new());
    assert!(!world.jobs.may_succeed(&run, true, at(0), &world.table));
    assert_eq!(world.jobs.finishing(), vec![run.clone()]);
    let children = world.jobs.take_questions().remove(0);
    assert!(world.jobs.related(&children, named("c", "1"), at(1)));
    assert!(!world.jobs.may_succeed(&run, true, at(1), &world.table), "what else does the child wait for?");
    let parents = world.jobs.take_questions().remove(0);
    assert_eq!(held_up(&world, true), "children-asked");
    assert!(world.jobs.related(&parents, named("a", "p"), at(2)));
    assert!(world.jobs.may_succeed(&run, true, at(2), &world.table));
    assert_eq!((world.jobs.finishing(), world.jobs.why_finishing(&run.slot, true)), (Vec::new(), None));
    world.says(&run.slot, SlotState::Succeeded);
    world.possible(2);
    assert_eq!(world.possible(2), vec![(job("c", "1"), job("a", "p"))]);
}

#[test]
fn what_a_person_marked_is_looked_at_later_where_functions_have_to_be_asked() {
    let mut world = World::new(vec![("a", keys(Vec::new())), ("c", keys(by_functions("a")))]);
    world.says(&job("a", "p"), SlotState::Succeeded);
    assert_eq!(world.possible(0), Vec::new());
    assert_eq!(world.table.come_back, BTreeMap::from([(job("a", "p"), at(0) + ASK_AGAIN)]));
    let children = world.jobs.take_questions().remove(0);
    world.jobs.related(&children, Ok(Vec::new()), at(1));
    world.jobs.find_late_prospects(at(1), &mut world.table);
    assert_eq!(world.table.come_back, BTreeMap::new());
}

#[test]
fn news_of_one_that_is_no_parent_are_a_breach() {
    let mut world = diamond();
    let child = job("c", "1");
    world.says(&child, SlotState::Waiting);
    world.look(&child, 0);
    let children = BTreeSet::from([child.clone()]);
    assert_eq!(world.jobs.heard(&job("a", "2"), None, children, &world.table), Vec::new());
    assert_eq!(world.jobs.take_breach(), Some(Breach::of_slot(Invariant::ParentsAreCounted, &child)));
}
