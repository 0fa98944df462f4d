//! A generated history that remembers what it wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cursor::SlotPlace;
use crate::{Commit, Journal, Lease, SlotRow};
use jiff::Timestamp;
use kelos_model::retry::scramble;
use kelos_model::slot::apply;
use kelos_model::time::{CronSchedule, Schedule};
use kelos_model::workflow::{Job, Moments, PlanState, Source, Workflow, WorkflowRow};
use kelos_model::{
    Answer, Event, EventRecord, Finding, Outcome, Reason, ReasonKind, RetryPolicy, Run, RunId, RunState, Slot,
    SlotEvent, SlotKey, SlotRef, StepKey, StepName, Trigger, WorkflowEvent, WorkflowId,
};

/// A random number generator; the same seed gives the same numbers.
#[derive(Debug, Clone)]
pub(super) struct Draw(u64);

impl Draw {
    /// A generator with a seed.
    #[must_use]
    pub(super) fn new(seed: u64) -> Self {
        Self(scramble(seed))
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (scramble(self.0) % (end as u64)) as usize
    }

    /// One of these values.
    pub(super) fn of<T: Clone>(&mut self, some: &[T]) -> T {
        some[self.below(some.len())].clone()
    }
}

/// The expected state, and the unfinished turn.
#[derive(Debug, Clone, Default)]
pub(super) struct World {
    /// The slots as they are.
    pub(super) slots: BTreeMap<SlotRef, Slot>,
    /// The runs as they are.
    pub(super) runs: BTreeMap<u64, Run>,
    /// The whole log.
    pub(super) events: Vec<EventRecord>,
    /// The positions of the events that were removed.
    pub(super) gone: BTreeSet<u64>,
    /// Workflows that were named already.
    pub(super) met: BTreeSet<WorkflowId>,
    /// The unfinished turn, without slots and runs.
    pub(super) turn: Commit,
    /// The time of the clock, if it does not follow the log.
    pub(super) clock: Option<Timestamp>,
    changed_slots: BTreeSet<SlotRef>,
    changed_runs: BTreeSet<u64>,
}

/// A moment, in hours since 2015-09-13T00:00Z.
#[must_use]
pub(super) fn hour(hours: i64) -> Timestamp {
    Timestamp::from_second(1_442_102_400 + hours * 3600).expect("a moment in time")
}

/// A workflow's name.
#[must_use]
pub(super) fn named(name: &str) -> WorkflowId {
    WorkflowId::new(name).expect("a good name")
}

/// A slot's name.
#[must_use]
pub(super) fn slot_at(name: &str, hours: i64) -> SlotRef {
    SlotRef::at(named(name), hour(hours))
}

/// The name of a step of a run, or of an item of its list.
#[must_use]
pub(super) fn step_of(run: &SlotRef, name: &str, item: Option<u32>) -> SlotRef {
    let name = StepName::new(name).expect("a good name");
    let step = StepKey::new(&run.key, &name).expect("the key of a run");
    SlotRef::new(run.workflow.clone(), SlotKey::Step(item.map_or(step.clone(), |number| step.item(number))))
}

/// A reason as a trigger gives it.
#[must_use]
pub(super) fn explanation(text: &str) -> Reason {
    let finding = Finding::Text { text: text.to_owned(), about: None };
    Reason::leaf(ReasonKind::Always, Answer::Met, finding)
}

/// A definition.
#[must_use]
pub(super) fn definition(name: &str, version: u32) -> Workflow {
    Workflow {
        source: Source::file(format!("{name}.js"), version),
        trigger: Trigger::Delay { seconds: i64::from(version) },
        concurrency: Some(3),
        retry: RetryPolicy::immediate(version),
        start_time: Some(hour(-7)),
        ..Workflow::new(
            named(name),
            Schedule::Cron(CronSchedule::hourly()),
            Job::new("command", serde_json::Map::new()),
        )
    }
}

/// A workflow in its current state.
#[must_use]
pub(super) fn workflow(name: &str, version: u32) -> WorkflowRow {
    let definition = Arc::new(definition(name, version));
    let planned = PlanState::default();
    let (paused, moments) = (version.is_multiple_of(2), Moments::default());
    WorkflowRow {
        id: named(name),
        definition,
        version,
        present: true,
        enabled: !version.is_multiple_of(3),
        paused,
        planned,
        moments,
    }
}

impl World {
    /// The position of the next event.
    #[must_use]
    pub(super) fn next_seq(&self) -> u64 {
        self.events.len() as u64 + 1
    }

    /// The moment of the next event.
    #[must_use]
    pub(super) fn now(&self) -> Timestamp {
        let follows = 1_500_000_000_000 + 7 * self.events.len() as i64;
        self.clock.unwrap_or(Timestamp::from_millisecond(follows).expect("a moment in time"))
    }

    fn meet(&mut self, name: &WorkflowId) {
        self.met.insert(name.clone());
    }

    /// Adds an event to the turn.
    pub(super) fn log(&mut self, event: Event, previous: u64) {
        let record = EventRecord { seq: self.next_seq(), at: self.now(), previous, event };
        self.events.push(record.clone());
        self.turn.events.push(record);
    }

    /// Defines a workflow in the turn.
    pub(super) fn define(&mut self, name: &str, version: u32) {
        self.meet(&named(name));
        self.log(
            Event::Workflow { workflow: named(name), what: WorkflowEvent::Defined { version, by: None, reason: None } },
            0,
        );
        self.turn.workflows.push(workflow(name, version));
        self.turn.sources.insert(format!("{name}.js"), format!("// {name}, {version}").into());
    }

    /// Applies a change to a slot in the turn; false if it is impossible.
    pub(super) fn happen(&mut self, id: &SlotRef, what: SlotEvent) -> bool {
        let (seq, at, before) = (self.next_seq(), self.now(), self.slots.get(id).cloned());
        let previous = before.as_ref().map_or(0, |slot| slot.last_event);
        let Some(after) = apply(before.clone(), &what, at, seq) else {
            return false;
        };
        self.meet(&id.workflow);
        self.happen_to_run(id, before.as_ref(), &what);
        self.slots.insert(id.clone(), after);
        self.changed_slots.insert(id.clone());
        self.log(Event::Slot { slot: id.clone(), what }, previous);
        true
    }

    fn happen_to_run(&mut self, id: &SlotRef, before: Option<&Slot>, what: &SlotEvent) {
        let (seq, at) = (self.next_seq(), self.now());
        let last = before.map_or(0, |slot| slot.last_run_seq);
        if let SlotEvent::Dispatched { run, batch, .. } = what {
            let id = RunId { slot: id.clone(), number: *run };
            let run = Run {
                id,
                seq,
                previous: last,
                state: RunState::Dispatched,
                executor: "command".to_owned(),
                external_id: None,
                dispatched_at: at,
                started_at: None,
                ended_at: None,
                outcome: None,
                arguments: (*run > 1).then(|| ("größe".to_owned(), format!("{run}").into())).into_iter().collect(),
                outputs: None,
                batch: *batch,
            };
            self.runs.insert(seq, run);
            self.changed_runs.insert(seq);
            return;
        }
        let Some(run) = self.runs.get_mut(&last) else {
            return;
        };
        let outcome = match what {
            SlotEvent::Gave { outputs, .. } => {
                run.outputs = Some(Box::new(outputs.clone()));
                self.changed_runs.insert(last);
                return;
            }
            SlotEvent::Started { external_id, .. } => {
                run.state = RunState::Running;
                run.external_id = Some(external_id.clone());
                run.started_at = Some(at);
                self.changed_runs.insert(last);
                return;
            }
            SlotEvent::Succeeded { .. } | SlotEvent::Recovered { .. } => Outcome::Succeeded,
            SlotEvent::Withdrawn { .. } => Outcome::refused("no worker fetched it".to_owned()),
            SlotEvent::BackedOff { outcome, .. }
            | SlotEvent::Failed { outcome, .. }
            | SlotEvent::RunEnded { outcome, .. } => outcome.clone(),
            _ => return,
        };
        run.state = outcome.state();
        run.outcome = Some(outcome);
        run.ended_at = Some(at);
        self.changed_runs.insert(last);
    }

    /// The slot is planned.
    pub(super) fn plan(&mut self, id: &SlotRef) -> bool {
        self.happen(id, SlotEvent::planned(kelos_model::event::Origin::Schedule, 0))
    }

    /// The slot is planned, unless it exists, and runs to its end.
    pub(super) fn run_to(&mut self, id: &SlotRef, outcome: Outcome) -> bool {
        self.plan(id);
        let number = self.slots[id].last_run + 1;
        self.happen(id, SlotEvent::TriggerMet { explanation: explanation("ready") })
            && self.happen(id, SlotEvent::Dispatched { run: number, worker: None, batch: None })
            && self.happen(id, SlotEvent::Started { run: number, external_id: format!("pid {number}") })
            && match outcome {
                Outcome::Succeeded => self.happen(id, SlotEvent::Succeeded { run: number }),
                outcome => self.happen(id, SlotEvent::Failed { run: number, outcome }),
            }
    }

    /// The slot is planned, and runs a flow by a definition.
    pub(super) fn begin_flow(&mut self, run: &SlotRef, definition: u32) {
        self.plan(run);
        self.happen(run, SlotEvent::TriggerMet { explanation: explanation("ready") });
        self.happen(run, SlotEvent::Pinned { definition });
        self.happen(run, SlotEvent::Dispatched { run: 1, worker: None, batch: None });
        assert!(self.happen(run, SlotEvent::Started { run: 1, external_id: "flow".to_owned() }), "{run} begins");
    }

    /// A step is opened by a run of its flow.
    pub(super) fn open_step(&mut self, step: &SlotRef, run: u32) {
        assert!(self.happen(step, SlotEvent::StepOpened { run, awaits: Vec::new(), priority: 0 }), "{step} is opened");
    }

    /// A step that was opened is given its inputs.
    pub(super) fn ready_step(&mut self, step: &SlotRef) {
        let inputs =
            serde_json::Map::from_iter([("größe".to_owned(), 0.1.into()), ("of".to_owned(), step.short().into())]);
        assert!(self.happen(step, SlotEvent::StepReady { inputs }), "{step} is ready");
    }

    /// A step is opened and dispatched for the first time.
    pub(super) fn dispatch_step(&mut self, step: &SlotRef, run: u32) {
        self.open_step(step, run);
        self.ready_step(step);
        assert!(self.happen(step, SlotEvent::Dispatched { run: 1, worker: None, batch: None }), "{step} is dispatched");
    }

    /// A step is opened and runs to its end.
    pub(super) fn run_step(&mut self, step: &SlotRef, run: u32, outcome: Outcome) {
        self.dispatch_step(step, run);
        self.happen(step, SlotEvent::Started { run: 1, external_id: "pid 7".to_owned() });
        let ended = match outcome {
            Outcome::Succeeded => SlotEvent::Succeeded { run: 1 },
            outcome => SlotEvent::Failed { run: 1, outcome },
        };
        assert!(self.happen(step, ended), "{step} ends");
    }

    /// The steps of a run, ascending by key.
    #[must_use]
    pub(super) fn steps_of(&self, run: &SlotRef) -> Vec<SlotRow> {
        let is_of_it =
            |id: &SlotRef| id.workflow == run.workflow && id.key.step().is_some_and(|step| step.run() == run.key);
        let steps = self.slots.iter().filter(|(id, _)| is_of_it(id));
        let mut rows: Vec<_> = steps.map(|(id, slot)| SlotRow { id: id.clone(), slot: slot.clone() }).collect();
        rows.sort_by_key(|row| row.id.key.to_string());
        rows
    }

    /// Ends the turn and returns its commit.
    pub(super) fn take(&mut self) -> Commit {
        let mut commit = std::mem::take(&mut self.turn);
        commit.at = self.now();
        let slots = std::mem::take(&mut self.changed_slots);
        commit.slots = slots.into_iter().map(|id| SlotRow { slot: self.slots[&id].clone(), id }).collect();
        commit.runs = std::mem::take(&mut self.changed_runs).into_iter().map(|seq| self.runs[&seq].clone()).collect();
        commit
    }

    /// Ends the turn and commits it.
    pub(super) fn commit(&mut self, store: &mut dyn Journal, lease: Lease) {
        let commit = self.take();
        store.commit(lease, &commit).expect("the turn is committed");
    }

    /// The positions of the events of a slot.
    pub(super) fn of_slot<'a>(&'a self, id: &'a SlotRef) -> impl Iterator<Item = u64> + 'a {
        let own =
            self.events.iter().filter(move |record| matches!(&record.event, Event::Slot { slot, .. } if slot == id));
        own.map(|record| record.seq)
    }

    /// The events that were not removed.
    pub(super) fn left(&self) -> Vec<EventRecord> {
        self.events.iter().filter(|record| !self.gone.contains(&record.seq)).cloned().collect()
    }

    /// All slots in the order of the list, which has no steps.
    #[must_use]
    pub(super) fn listed(&self) -> Vec<SlotRow> {
        let mut rows: Vec<_> =
            self.slots.iter().map(|(id, slot)| SlotRow { id: id.clone(), slot: slot.clone() }).collect();
        rows.retain(|row| row.id.key.step().is_none());
        rows.sort_by_key(|row| SlotPlace::new(row.id.workflow.clone(), &row.id.key));
        rows
    }
}

/// Takes the lease, at once or when that of a store that is gone has expired.
pub(super) fn lead(store: &mut dyn Journal) -> Lease {
    let mut attempts =
        (0..100).map(|hours| store.lease("contract", hour(hours), 60_000).expect("the lease is asked for"));
    attempts.find_map(|lease| lease).expect("the lead is free")
}
