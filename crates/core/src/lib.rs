//! The scheduler as a deterministic state machine.
//!
//! [`Core::step`] takes a moment, one input and the past. It returns events, which say what happened, and commands,
//! which say what to do next; or it reports that the past can't be read or that an invariant is broken. It never
//! panics. What is *absent*: clock, IO, async, randomness. Cost follows what changed: waiting slots are indexed by what
//! can wake them, and final slots are not kept in memory; [`Past`] returns them for the length of a turn.
//!
//! Every change of a slot goes through `record`, which applies the event with the model's one `apply` and updates all
//! indices. `clippy.toml` beside the manifest forbids what is absent.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stdout, clippy::print_stderr)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod asks;
mod backfills;
mod batches;
mod breaches;
mod budget;
mod capacity;
mod config;
mod constraints;
mod definitions;
mod dense;
mod deployment;
mod dispatch;
mod downstream;
mod driver;
mod due_set;
mod evaluator;
mod facts;
mod fences;
mod few;
mod filter;
mod firings;
mod flow_runs;
mod flows;
mod freezing;
mod gate;
mod given;
mod inspection;
mod jobs;
mod keyed;
mod late;
mod listeners;
mod mandate;
mod masked;
mod moments;
mod nesting;
mod opening;
mod outputs;
mod past;
mod permits;
mod plan;
mod planner;
mod port;
mod programs;
mod projects;
mod record;
mod refusal;
mod repeats;
mod requests;
mod restore;
mod rights;
mod rota;
mod runs;
mod schedules;
mod slots;
mod steps;
mod submit;
mod survey;
mod tick;
mod turn;
mod wakes;
mod warrant;
mod within;
mod workers;
mod workflows;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::references::MissingConsent;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Breach, Invariant, Probe, Workflow, WorkflowId};

pub use deployment::{DEPLOYMENTS, Deployment, deployments_of};
pub use filter::WorkflowFilter;
pub use port::{Command, Input, RestoredState, Rows, Step};
pub use requests::{
    AnyAnswer, Ask, BackfillOutcome, BackfillRequest, CancelBackfill, ChangeSchedule, CreateSchedules, DefinedVersion,
    DeleteSchedules, DeployProject, Disable, DownstreamOutcome, DownstreamRequest, Enable, EnableByTime, FactTally,
    FireRequest, Inspect, InspectCapacity, Kill, MarkSuccess, POSITIONS, Pause, PauseBackfill, PrioritiseBackfill,
    RecordAccess, RefusedSignal, RepeatStep, Reply, Request, Rerun, RerunBackfill, Resume, ResumeBackfill, ResumeFlow,
    SetRegister, SignalFlow, Skip, SlotList, SourcePosition, StartAnswer, SubmitOutcome, SubmitRequest, Tell,
    TrimHistory,
};
pub use workers::{Offer, WORKER};

pub use backfills::LARGEST_BACKFILL;
pub use breaches::StepError;
pub use capacity::{Capacity, FullWorkflow, Holder, PoolPlace, PoolState, RateState, Waiter};
pub use config::{Config, PlantedBreach, PlantedIn};
pub use driver::{Surroundings, drive, live_through};
pub use inspection::{BatchWait, Inspection, WorkerWait};
pub use past::Past;
pub use permits::POOL_PATIENCE;
pub use refusal::Refusal;
pub use rights::bucket_project;
pub use runs::jitter_seed;
pub use warrant::Warrant;
pub use workflows::TakenName;

use backfills::Backfills;
use batches::Batches;
use breaches::Breaches;
use firings::Firings;
use flows::Flows;
use jobs::Jobs;
use listeners::Listeners;
use past::PastOf;
use permits::Permits;
use planner::Planner;
use programs::Programs;
use slots::SlotTable;
use turn::Turn;
use wakes::{Waits, Wakes};
use workflows::{WorkflowState, Workflows};

/// The smallest jump back of the clock that moves waits. A smaller one is an adjustment.
const JUMP: SignedDuration = SignedDuration::from_secs(-1);

/// The state of the scheduler, and the results of the current turn.
pub struct Core {
    config: Config,
    now: Timestamp,
    /// The moment of the last tick.
    ticked: Timestamp,
    workflows: Workflows,
    slots: SlotTable,
    wakes: Wakes,
    /// The cron times of triggers.
    firings: Firings,
    /// The live runs of flows.
    flows: Flows,
    jobs: Jobs,
    permits: Permits,
    batches: Batches,
    planner: Planner,
    listeners: Listeners,
    /// The programs, with the runs that constraints count.
    programs: Programs,
    backfills: Backfills,
    breaches: Breaches,
    turn: Turn,
}

impl Core {
    /// An empty scheduler.
    #[must_use]
    pub fn new(config: Config) -> Core {
        Core {
            permits: Permits::new(config.max_running),
            wakes: Wakes::new(Waits::of(&config)),
            planner: Planner::new(&config),
            config,
            now: Timestamp::UNIX_EPOCH,
            ticked: Timestamp::UNIX_EPOCH,
            workflows: Workflows::default(),
            slots: SlotTable::default(),
            firings: Firings::default(),
            flows: Flows::default(),
            jobs: Jobs::default(),
            batches: Batches::default(),
            listeners: Listeners::default(),
            programs: Programs::default(),
            backfills: Backfills::default(),
            breaches: Breaches::default(),
            turn: Turn::default(),
        }
    }

    /// Takes one input at a moment, and reads from the past what memory no longer holds. A turn is any number of steps:
    /// their events are committed together with [`Core::rows`], then [`Core::settle`] ends the turn. All steps of a
    /// turn see the past as it was before the turn.
    ///
    /// # Errors
    /// If the past can't be read, or an invariant is broken. In both cases drop this scheduler and restore another one;
    /// nothing of the turn may be committed.
    pub fn step<E>(
        &mut self,
        now: Timestamp,
        input: Input,
        past: &mut dyn Past<Error = E>,
    ) -> Result<Step, StepError<E>> {
        self.take_in(now, input, past).map_err(StepError::Past)?;
        match self.take_breach() {
            Some(breach) => Err(StepError::Broken(breach)),
            None => Ok(self.turn.take_step()),
        }
    }

    /// The first breach of this step, in the order of the organs.
    fn take_breach(&mut self) -> Option<Breach> {
        let of_slots = self.breaches.take().or_else(|| self.wakes.take_breach());
        let of_runs = of_slots.or_else(|| self.permits.take_breach()).or_else(|| self.programs.take_breach());
        let of_jobs = of_runs.or_else(|| self.jobs.take_breach()).or_else(|| self.firings.take_breach());
        let of_workflows = of_jobs.or_else(|| self.listeners.take_breach()).or_else(|| self.workflows.take_breach());
        of_workflows.or_else(|| self.planner.take_breach()).or_else(|| self.slots.take_breach())
    }

    fn take_in<E>(&mut self, now: Timestamp, input: Input, past: PastOf<'_, E>) -> Result<(), E> {
        self.follow_clock(now);
        match input {
            Input::Woke { only, look_again } => self.tick(&only, look_again, past)?,
            Input::Definitions { provenance, all, deployed } => self.define(provenance, all, &deployed),
            Input::ProbeAnswered { probe, answer } => {
                let woken = self.wakes.probes.answered(&probe, answer, self.now);
                woken.into_iter().for_each(|slot| self.wakes.dirty.insert(slot));
            }
            Input::RunReported { run, report } => self.run_reported(&run, report),
            Input::Asked { token, by, ask, warrant } => self.asked(token, by, ask, warrant.as_deref(), past)?,
            Input::Offered { worker, offer } => self.permits.offered(worker, offer),
            Input::Related { relation, answer } => self.related(&relation, answer),
            Input::Freeze(breach) => self.freeze(breach),
            Input::SetAside { breach, input } => self.set_aside(breach, *input),
        }
        self.fence();
        self.follow_up(past)?;
        self.send_questions();
        Ok(())
    }

    /// Records the consequences of an input together with it, so that no crash can come between them.
    fn follow_up<E>(&mut self, past: PastOf<'_, E>) -> Result<(), E> {
        loop {
            self.deliver_ends();
            self.push();
            let any = self.hear_of_past(past)?;
            if !self.advance_flows(past)? && !any {
                return Ok(());
            }
        }
    }

    /// Reads all requested slots of the past with one question and announces their states. Returns whether there were
    /// any.
    fn hear_of_past<E>(&mut self, past: PastOf<'_, E>) -> Result<bool, E> {
        if !self.slots.is_any_wanted() {
            return Ok(false);
        }
        let heard = self.slots.recall_wanted(past)?;
        for slot in &heard {
            self.tell(slot, self.slots.state(slot));
        }
        Ok(!heard.is_empty())
    }

    /// Moves waits back with the clock: a wait is a span, and would otherwise last until the clock is where it was.
    /// Appointments (a schedule's time, a delay, a retry) stay.
    fn follow_clock(&mut self, now: Timestamp) {
        let jump = now.duration_since(self.now);
        self.now = now;
        if jump < JUMP {
            let slots = &self.slots;
            self.wakes.shift(jump, |slot| slots.get(slot).is_some_and(|live| live.is_deferred()));
        }
    }

    /// The rows that the turn changed, in their current state.
    #[must_use]
    pub fn rows(&self) -> Rows {
        let with_backlog = |mut row: WorkflowRow| {
            row.planned.backlog = self.slots.backlog(&row.id).clone();
            row.planned.backlog_schedule = self.slots.earlier_schedule(&row.id, &row.planned.schedule);
            row
        };
        Rows {
            slots: self.slots.changed(),
            runs: self.slots.changed_runs(),
            workflows: self.workflows.superseded().chain(self.workflows.changed().map(with_backlog)).collect(),
            backfills: self.backfills.changed(),
            registers: self.turn.registers().to_vec(),
            facts: self.turn.facts().to_vec(),
            trim: self.turn.trimmed().cloned(),
        }
    }

    /// Ends the turn after its commit: forgets final slots.
    pub fn settle(&mut self) {
        self.turn.settle();
        self.workflows.settle();
        self.slots.settle();
        self.firings.settle();
        self.flows.settle();
        self.backfills.settle();
    }

    /// Whether a tick at this moment has something to do.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        let due = self.next_wake().is_some_and(|at| at <= now);
        due || !(self.wakes.dirty.is_empty() && self.programs.is_idle())
            || self.planner.is_due()
            || self.permits.is_due()
    }

    /// The next moment at which the scheduler has something to do without any input.
    #[must_use]
    pub fn next_wake(&self) -> Option<Timestamp> {
        let wakes = [self.wakes.next(), self.firings.next(), self.permits.next_wake()];
        wakes.into_iter().flatten().min()
    }

    /// Whether a slot waits for the answer to a probe. A caller that repeats probes by itself need not repeat others.
    #[must_use]
    pub fn is_asked(&self, probe: &Probe) -> bool {
        self.wakes.probes.is_asked(probe)
    }

    /// The number of slots in memory. Between turns these are the live ones.
    #[must_use]
    pub fn live_slots(&self) -> usize {
        self.slots.len()
    }

    /// The number of live runs.
    #[must_use]
    pub fn live_runs(&self) -> u32 {
        self.permits.running()
    }

    /// The definitions that are not in force because their names belong to others.
    #[must_use]
    pub fn taken_names(&self) -> &BTreeSet<TakenName> {
        self.workflows.taken_names()
    }

    /// The definition of a workflow that is in force.
    #[must_use]
    pub fn definition(&self, id: &WorkflowId) -> Option<Arc<Workflow>> {
        self.workflows.get(id).filter(|one| one.is_present()).map(|one| one.definition().clone())
    }

    /// The references of present definitions that other projects don't share: their workflows lie dormant. None where projects are not
    /// kept apart.
    #[must_use]
    pub fn unshared(&self) -> &BTreeSet<MissingConsent> {
        self.workflows.unshared()
    }

    /// The breaches of the workflows of which a live run of a flow follows a definition that can't be read any more.
    pub fn lost_runs(&self) -> impl Iterator<Item = Breach> {
        self.flows.lost().iter().map(|run| Breach {
            invariant: Invariant::RowsAreReadable,
            workflow: run.workflow.clone(),
            slot: Some(run.clone()),
        })
    }

    /// Whether a workflow is frozen; none if there is no such workflow, which can't be frozen either.
    #[must_use]
    pub fn is_frozen(&self, id: &WorkflowId) -> Option<bool> {
        self.workflows.get(id).map(WorkflowState::is_frozen)
    }

    /// Commands the probes that are due.
    fn send_questions(&mut self) {
        let questions = self.wakes.probes.take_questions();
        questions.into_iter().for_each(|probe| self.turn.command(Command::Probe(probe)));
    }
}
