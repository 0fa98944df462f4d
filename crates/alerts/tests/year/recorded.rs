//! A year as a log has it: made by dice, so that a seed always gives the same.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kelos_alerts::{About, Directory};
use kelos_model::{
    Actor, ActorKind, Answer, BackfillId, Breach, Event, EventRecord, Finding, Invariant, Outcome, Reason, ReasonKind,
    RunId, SlotEvent, SlotKey, SlotRef, SlotState, WorkflowEvent, WorkflowId,
};

/// The workflows of the year.
pub(crate) const NAMES: [&str; 6] = ["etl.load", "etl.clean", "etl.sum", "reports.daily", "reports.weekly", "mail"];
const MINUTES: i64 = 365 * 24 * 60;

/// Random numbers that a seed determines.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).expect("64 bits") % limit
    }

    pub(crate) fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
}

/// The directory of the year.
pub(crate) struct Workflows;

impl Directory for Workflows {
    fn about(&self, workflow: &WorkflowId) -> About {
        About { workflow: Some(workflow.clone()), project: Some("shop".to_owned()), tags: Vec::new() }
    }

    fn is_defined(&self, _: &WorkflowId) -> bool {
        true
    }

    fn workflow_of(&self, _: &BackfillId) -> Option<WorkflowId> {
        None
    }

    fn worker_of(&self, run: &RunId) -> Option<String> {
        Some(format!("worker of {}", run.slot.workflow))
    }
}

struct Recorder {
    dice: Dice,
    now: Timestamp,
    /// The most minutes between two events.
    step: usize,
    log: Vec<EventRecord>,
    failed: BTreeSet<SlotRef>,
    paused: BTreeSet<&'static str>,
    frozen: BTreeSet<&'static str>,
}

/// So many events of a year, each in a minute of its own.
pub(crate) fn recorded(seed: u64, events: usize) -> Vec<EventRecord> {
    let mean = usize::try_from(MINUTES).expect("64 bits") / events;
    let mut recorder = Recorder {
        dice: Dice::new(seed),
        now: "2026-01-01T00:00:00Z".parse().expect("a time"),
        step: (2 * mean).max(1),
        log: Vec::new(),
        failed: BTreeSet::new(),
        paused: BTreeSet::new(),
        frozen: BTreeSet::new(),
    };
    while recorder.log.len() < events {
        recorder.happen();
    }
    recorder.log
}

impl Recorder {
    fn add(&mut self, event: Event) {
        let minutes = 1 + self.dice.below(self.step);
        self.now += SignedDuration::from_mins(i64::try_from(minutes).expect("few"));
        let seq = self.log.len() as u64 + 1;
        self.log.push(EventRecord { seq, at: self.now, previous: 0, event });
    }

    fn slot(&mut self, slot: &SlotRef, what: SlotEvent) {
        self.add(Event::Slot { slot: slot.clone(), what });
    }

    fn happen(&mut self) {
        let name = NAMES[self.dice.below(NAMES.len())];
        let slot = SlotRef { workflow: WorkflowId::new(name).expect("a name"), key: SlotKey::Time(self.now) };
        let outcome = Outcome::Failed { reason: "exited with status 3".to_owned(), exit_status: Some(3), code: None };
        match self.dice.below(400) {
            0..=9 => {
                self.failed.insert(slot.clone());
                self.slot(&slot, SlotEvent::Failed { run: 1, outcome });
            }
            10..=12 => self.expire(&slot),
            13..=52 => self.repair(outcome),
            53 => {
                let lost = Outcome::Lost { reason: "its worker is lost".to_owned() };
                self.slot(&slot, SlotEvent::BackedOff { run: 1, outcome: lost, due: self.now, again: 0 });
            }
            54 => self.workflow(name),
            55..=60 => self.resume(),
            _ => self.slot(&slot, SlotEvent::Succeeded { run: 1 }),
        }
    }

    /// A slot expires: by itself, or behind one that failed.
    fn expire(&mut self, slot: &SlotRef) {
        let upstream = self.failed.first().cloned().unwrap_or_else(|| slot.clone());
        let finding = Finding::UpstreamIs { slot: upstream, state: SlotState::Failed };
        let explanation = Reason::leaf(ReasonKind::Success, Answer::NotYet, finding);
        self.failed.insert(slot.clone());
        self.slot(slot, SlotEvent::Expired { timeout_seconds: 60, explanation });
    }

    fn repair(&mut self, outcome: Outcome) {
        let place = self.dice.below(self.failed.len().max(1));
        let Some(slot) = self.failed.iter().nth(place).cloned() else { return };
        let (by, reason) = (ann(), None);
        match self.dice.below(5) {
            0 => self.slot(&slot, SlotEvent::Failed { run: 2, outcome }),
            1 => {
                self.failed.remove(&slot);
                self.slot(&slot, SlotEvent::MarkedSucceeded { by, reason });
            }
            2 => {
                self.failed.remove(&slot);
                self.slot(&slot, SlotEvent::SkippedBy { by, reason });
            }
            _ => {
                self.failed.remove(&slot);
                self.slot(&slot, SlotEvent::Succeeded { run: 2 });
            }
        }
    }

    fn workflow(&mut self, name: &'static str) {
        let workflow = WorkflowId::new(name).expect("a name");
        if self.dice.one_in(3) && self.frozen.insert(name) {
            let breach = Breach::of(Invariant::Planted, &workflow);
            self.add(Event::Workflow { workflow, what: WorkflowEvent::Frozen { breach } });
        } else if self.paused.insert(name) {
            self.add(Event::Workflow { workflow, what: WorkflowEvent::Paused { by: ann(), reason: None } });
        }
    }

    fn resume(&mut self) {
        let (by, reason) = (ann(), None);
        if let Some(name) = self.paused.pop_first() {
            let workflow = WorkflowId::new(name).expect("a name");
            self.add(Event::Workflow { workflow, what: WorkflowEvent::Resumed { by, reason } });
        } else if let Some(name) = self.frozen.pop_first() {
            let workflow = WorkflowId::new(name).expect("a name");
            self.add(Event::Workflow { workflow, what: WorkflowEvent::Thawed { by, reason } });
        }
    }
}

fn ann() -> Actor {
    Actor::new(ActorKind::Person, "ann")
}
