//! What goes into the scheduler and what comes out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::jobs::{NamedJobs, Relation};
use kelos_model::ranges::Range;
use kelos_model::run::Report;
use kelos_model::workflow::{Backfill, BackfillMode, WorkflowRow};
use kelos_model::{
    Actor, BackfillId, Collected, EventRecord, Fact, FactKey, Probe, ProbeAnswer, Run, RunId, Slot, SlotRef, SlotState,
    Workflow, WorkflowId,
};
use serde_json::Value;

use crate::capacity::{Capacity, PoolPlace};

/// Under this name runs are recorded that workers do: the executor that they were handed to.
pub const WORKER: &str = "worker";

/// What an operator may tune.
#[derive(Debug, Clone)]
pub struct Config {
    /// How far back from now slots are planned. A slot that exists is never forgotten because it is old.
    pub planning_window: SignedDuration,
    /// Wait between the first two looks at a probe.
    pub probe_first: SignedDuration,
    /// The wait grows by half with each look, up to this.
    pub probe_longest: SignedDuration,
    /// Live runs of all workflows together.
    pub max_running: u32,
    /// A run that has not been heard of for this long is asked about, and so is a probe without an answer.
    pub patience: SignedDuration,
    /// Whether jobs are run by workers only: a job that may go waits for one that has offered to do it.
    pub by_workers: bool,
    /// So many slots a tick plans, looks at, judges by their constraints, and asks about again, each, and so many timers it fires;
    /// workflows share them. What is left is for the next tick, which is due at once. A step of a server that is stepped by hand has no such limit.
    pub at_once: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            planning_window: SignedDuration::from_hours(7 * 24),
            probe_first: SignedDuration::from_secs(1),
            probe_longest: SignedDuration::from_secs(30),
            max_running: 256,
            patience: SignedDuration::from_mins(5),
            by_workers: false,
            at_once: 1024,
        }
    }
}

/// Which workflows a tick is about; none means all.
pub type Only = Option<Arc<BTreeSet<WorkflowId>>>;

/// Whether a tick is about a workflow.
pub(crate) fn allows(only: &Only, id: &WorkflowId) -> bool {
    only.as_ref().is_none_or(|only| only.contains(id))
}

/// Takes out of a set the workflows that a tick is about.
pub(crate) fn take_allowed(set: &mut BTreeSet<WorkflowId>, only: &Only) -> BTreeSet<WorkflowId> {
    let Some(only) = only else { return std::mem::take(set) };
    let taken = set.intersection(only).cloned().collect();
    set.retain(|id| !only.contains(id));
    taken
}

/// What happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// Time passed, or something may have become possible: plan, look, dispatch. All other inputs
    /// only note what they change, but for facts, each of which is judged when it comes; nothing is dispatched between ticks.
    Woke {
        /// Which workflows it is about.
        only: Only,
        /// Ask every probe again and plan every workflow anew, whatever the timers say: one step of a
        /// server that is stepped by hand.
        look_again: bool,
    },
    /// These are the definitions of files, all of them.
    Definitions {
        /// Each workflow once.
        all: Vec<Arc<Workflow>>,
        /// The projects that are deployed anew. Only then are event schedules made what their files say: what people changed
        /// stays until then.
        deployed: BTreeMap<String, Deployment>,
    },
    /// The outside world answered.
    ProbeAnswered {
        /// What was asked.
        probe: Probe,
        /// What it said.
        answer: ProbeAnswer,
    },
    /// An executor reported. Reports may come late, twice, or not at all.
    RunReported {
        /// About which run.
        run: RunId,
        /// What.
        report: Report,
    },
    /// Somebody asked for something.
    Asked {
        /// Comes back with the reply.
        token: u64,
        /// Who.
        by: Actor,
        /// What.
        ask: Ask,
    },
    /// A worker says how much more it would do now. What it offered before is forgotten, and so is what was given to it meanwhile.
    Offered {
        /// Its name, of its own for each process.
        worker: Arc<str>,
        /// What it offers; none when it is gone.
        offer: Option<Offer>,
    },
    /// A function of a script said which jobs belong together.
    Related {
        /// What was asked.
        relation: Relation,
        /// What it said, or in words why it didn't.
        answer: Result<NamedJobs, String>,
    },
}

/// How a project is deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// Tells what is deployed from what was deployed before; kept as a register.
    pub digest: String,
    /// Whether its event schedules are made what its files say. Otherwise they stay, but for those whose program is gone.
    pub update_schedules: bool,
}

/// The bucket of registers that holds, by project, what was deployed last.
pub const DEPLOYMENTS: &str = "kelos.deployments";

/// What a worker would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Jobs of these workflows.
    pub workflows: BTreeSet<WorkflowId>,
    /// Only this one; none means any.
    pub job: Option<SlotRef>,
    /// So many more.
    pub free: u32,
    /// How often a job that it does is attempted in all, where that differs from what its workflow says.
    pub attempts: Option<u32>,
}

/// What somebody may ask for.
#[derive(Debug, Clone)]
pub enum Ask {
    /// Open jobs, with the ancestors that are missing.
    Submit(SubmitRequest),
    /// Open a final slot again, or open one that was never planned.
    Rerun {
        /// Which.
        slot: SlotRef,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// End a slot and its run, or see to it that it never goes.
    Kill {
        /// Which.
        slot: SlotRef,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Take a slot for succeeded whose run is not alive: what it was for is done.
    MarkSucceeded {
        /// Which.
        slot: SlotRef,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Pass over a live slot, and end its run.
    Skip {
        /// Which.
        slot: SlotRef,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Open a slot again, and all that depends on it.
    RerunDownstream(DownstreamRequest),
    /// Leave a workflow alone: no planning, no looking, no dispatching. Runs that go on are recorded.
    Pause {
        /// Which.
        workflow: WorkflowId,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// End a pause.
    Resume {
        /// Which.
        workflow: WorkflowId,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Open the slots of a range.
    Backfill(BackfillRequest),
    /// Kill what a backfill has waiting.
    CancelBackfill {
        /// Which.
        backfill: BackfillId,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Leave the slots of a backfill alone that have no run: no looking, no dispatching.
    PauseBackfill {
        /// Which.
        backfill: BackfillId,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// End the pause of a backfill.
    ResumeBackfill {
        /// Which.
        backfill: BackfillId,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Give a backfill and its live slots another priority.
    PrioritiseBackfill {
        /// Which.
        backfill: BackfillId,
        /// Larger goes first; below 0 goes after current work.
        priority: i32,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Open the slots of a backfill again that failed or expired.
    RerunBackfill {
        /// Which.
        backfill: BackfillId,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Count facts that somebody tells, in their order.
    Tell(Vec<Fact>),
    /// Create event schedules, disabled unless they say otherwise: all of them or none.
    CreateSchedules {
        /// Their definitions.
        new: Vec<Arc<Workflow>>,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Put another definition in the place of an event schedule's. It stays enabled if it was.
    ChangeSchedule {
        /// The definition.
        changed: Arc<Workflow>,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Delete event schedules: all of them or none.
    DeleteSchedules {
        /// Which.
        schedules: Vec<WorkflowId>,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Enable an event schedule that is disabled.
    Enable {
        /// Which.
        schedule: WorkflowId,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Disable an event schedule that is enabled, and end what it has pending.
    Disable {
        /// Which.
        schedule: WorkflowId,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Enable those of some event schedules that are disabled and were last changed within a range.
    EnableChanged {
        /// Which.
        schedules: Vec<WorkflowId>,
        /// When.
        range: Range,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Have an event schedule or a program go now, without its trigger.
    Fire(FireRequest),
    /// Set a register, or delete it with none.
    SetRegister {
        /// Its bucket.
        bucket: String,
        /// Its key.
        key: String,
        /// Its new value.
        value: Option<Value>,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// Say what only the scheduler's memory knows about a slot.
    Inspect(SlotRef),
    /// Say who holds what runs need, and who waits for it.
    Capacity,
}

/// A run that somebody wants now.
#[derive(Debug, Clone)]
pub struct FireRequest {
    /// Of which event schedule or program.
    pub workflow: WorkflowId,
    /// Arguments beside its own.
    pub arguments: BTreeMap<String, String>,
    /// Whether its constraints are passed over, too.
    pub unconstrained: bool,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Jobs that somebody submits.
#[derive(Debug, Clone)]
pub struct SubmitRequest {
    /// Which; their ids in the normal form.
    pub jobs: Vec<SlotRef>,
    /// Larger goes first.
    pub priority: i32,
    /// Open those again that have ended, with all that depends on them and has ended; otherwise what exists is left as it is.
    pub readd: bool,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// What became of a job that was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    /// It was opened.
    Opened,
    /// It had ended, and was opened again, with so many that depend on it.
    Reopened {
        /// How many others.
        descendants: u32,
    },
    /// It exists, and was left as it is.
    Existed(SlotState),
}

/// A rerun of a slot with all that depends on it, which somebody asks for.
#[derive(Debug, Clone)]
pub struct DownstreamRequest {
    /// The slot on which the others depend.
    pub slot: SlotRef,
    /// Why, in their words.
    pub reason: Option<String>,
    /// Kill those that are dispatched or running first; otherwise they are a reason to refuse.
    pub kill_live: bool,
    /// Only say what would happen.
    pub dry_run: bool,
}

/// A backfill that somebody asks for.
#[derive(Debug, Clone)]
pub struct BackfillRequest {
    /// Its name.
    pub id: BackfillId,
    /// Whose slots.
    pub workflow: WorkflowId,
    /// Which.
    pub range: Range,
    /// Which existing ones are opened again.
    pub mode: BackfillMode,
    /// Larger goes first; below 0 goes after current work.
    pub priority: i32,
    /// Why, in the words of who asks.
    pub reason: Option<String>,
    /// Only say what would happen.
    pub dry_run: bool,
}

/// What was done for somebody who asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// It was done.
    Plainly,
    /// The facts are stored.
    Told {
        /// So many are new.
        new: u32,
        /// So many were told before, and don't count again.
        known: u32,
    },
    /// These were enabled.
    Enabled(Vec<WorkflowId>),
    /// This slot goes.
    Fired(SlotRef),
    /// What became of each job, in the order in which they were given.
    Submitted(Vec<Submitted>),
    /// The slots of a backfill.
    Backfill {
        /// Never planned before.
        created: Vec<SlotRef>,
        /// Final, opened again.
        reopened: Vec<SlotRef>,
        /// Live, taken over with a higher priority.
        adopted: Vec<SlotRef>,
        /// Left as they are.
        untouched: u32,
    },
    /// A slot and all that depends on it.
    Downstream {
        /// The slot itself, where it was never planned before.
        created: Option<SlotRef>,
        /// Final or only queued, opened again.
        reopened: Vec<SlotRef>,
        /// Dispatched or running, killed and opened again; in a dry run also those that would be a reason to refuse.
        killed: Vec<SlotRef>,
        /// Left as they are: they look at their triggers again anyway.
        untouched: u32,
    },
    /// What memory knows about a slot.
    Inspected(Inspection),
    /// Who holds what runs need, and who waits for it.
    Capacity(Capacity),
}

/// What only the scheduler's memory knows about a slot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// When it is looked at next by itself; none when only an event can wake it.
    pub next_look: Option<Timestamp>,
    /// Queued slots of its workflow that go first; while it waits for fewer runs of its program, those that are held for
    /// that and go first.
    pub ahead: u32,
    /// Live runs of its workflow.
    pub active: u32,
    /// Whether all places for runs, of all workflows, are taken.
    pub at_global_limit: bool,
    /// What it finds at the pools of its workflow, while it is queued.
    pub pools: Vec<PoolPlace>,
    /// Why the scheduler leaves it alone, in words: paused, removed, not in the schedule any more.
    pub dormant: Option<String>,
    /// Whether it is for workers to run, and none of them serves its workflow.
    pub no_worker: bool,
    /// Whether it is for workers to run, and those that serve its workflow have no room.
    pub workers_busy: bool,
    /// What holds up the success of its run, which has ended, in words.
    pub finishing: Option<String>,
    /// Runs of its program that go on, or are about to start: those that constraints count.
    pub program_runs: u32,
    /// The last answers to the questions that it waits on.
    pub answers: Vec<(Probe, ProbeAnswer)>,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// No such workflow.
    NoWorkflow(WorkflowId),
    /// Nobody ever opened the job.
    NeverOpened(SlotRef),
    /// It is no event schedule.
    NoEventSchedule(WorkflowId),
    /// It is neither an event schedule nor a program.
    NotStartable(WorkflowId),
    /// There is something of that name.
    ScheduleTaken(WorkflowId),
    /// An event schedule runs a program that is not there.
    NoProgram {
        /// The event schedule.
        schedule: WorkflowId,
        /// The program.
        program: WorkflowId,
    },
    /// It is enabled already.
    AlreadyEnabled(WorkflowId),
    /// It is disabled already.
    AlreadyDisabled(WorkflowId),
    /// Slots named by the moment at which they came to be are made by facts and requests only.
    NeverCameToBe(SlotRef),
    /// Its schedule has no such time.
    NotInSchedule(SlotRef),
    /// Its workflow has no such job ids: why, in words.
    NoJobId(SlotRef, String),
    /// Its schedule can't be resolved.
    NoSchedule(WorkflowId, String),
    /// Only final slots can be opened again.
    StillLive(SlotRef, SlotState),
    /// Only live slots can be killed.
    AlreadyFinal(SlotRef, SlotState),
    /// Only live slots can be skipped.
    NotSkippable(SlotRef, SlotState),
    /// It has succeeded already.
    AlreadySucceeded(SlotRef),
    /// Only a slot whose run is not alive can be marked as succeeded.
    RunAlive(SlotRef, u32),
    /// What depends on a slot is dispatched or running: the first of them, and how many.
    DownstreamLive(SlotRef, SlotState, usize),
    /// More slots depend on one than a request may touch.
    TooManyDownstream {
        /// The limit.
        limit: usize,
    },
    /// There is a backfill of that name.
    NameTaken(BackfillId),
    /// There is no backfill of that name.
    NoBackfill(BackfillId),
    /// It was cancelled: nothing of it is to go on.
    BackfillCancelled(BackfillId),
    /// All its slots have ended.
    BackfillOver(BackfillId),
    /// More slots than one request may touch.
    TooMany {
        /// As many as were counted, which is more than the limit; it may be more still.
        slots: usize,
        /// The limit.
        limit: usize,
    },
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::NoWorkflow(id) => write!(f, "no workflow is named \"{id}\""),
            Refusal::NoEventSchedule(id) => write!(f, "no event schedule is named \"{id}\""),
            Refusal::NotStartable(id) => {
                write!(f, "{id} is neither an event schedule nor a program: its slots are made by its keys, rerun one")
            }
            Refusal::ScheduleTaken(id) => write!(f, "a workflow named \"{id}\" exists already, expected a new name"),
            Refusal::NoProgram { schedule, program } => {
                write!(f, "{schedule} runs {program}, and there is no such workflow")
            }
            Refusal::AlreadyEnabled(id) => write!(f, "{id} is enabled already"),
            Refusal::AlreadyDisabled(id) => write!(f, "{id} is disabled already"),
            Refusal::NeverCameToBe(slot) => {
                write!(f, "{} never came to be: expected the moment at which one of its slots did", slot.short())
            }
            Refusal::NoJobId(slot, why) => write!(f, "\"{}\" is no job of {}: {why}", slot.key.short(), slot.workflow),
            Refusal::NeverOpened(slot) => write!(f, "{} was never opened, so there is nothing to kill", slot.short()),
            Refusal::NotInSchedule(slot) => write!(f, "{} is not a time of its workflow's schedule", slot.short()),
            Refusal::NoSchedule(id, why) => write!(f, "the schedule of \"{id}\" can't be resolved: {why}"),
            Refusal::StillLive(slot, state) => {
                write!(f, "{} is {state}: only a slot that has ended can be rerun", slot.short())
            }
            Refusal::AlreadyFinal(slot, state) => {
                write!(f, "{} is {state}: only a slot that has not ended can be killed", slot.short())
            }
            Refusal::NotSkippable(slot, state) => {
                write!(f, "{} is {state}: only a slot that has not ended can be skipped", slot.short())
            }
            Refusal::AlreadySucceeded(slot) => write!(f, "{} has succeeded already", slot.short()),
            Refusal::RunAlive(slot, run) => write!(
                f,
                "run {run} of {} has not ended, and what depends on it would go: only a slot without a live run can be \
                 marked as succeeded",
                slot.short()
            ),
            Refusal::DownstreamLive(slot, state, 1) => {
                write!(f, "{} is {state}: only slots without a live run can be opened again", slot.short())
            }
            Refusal::DownstreamLive(slot, state, count) => write!(
                f,
                "{} is {state}, and {} more are dispatched or running: only slots without a live run can be opened again",
                slot.short(),
                count.saturating_sub(1)
            ),
            Refusal::TooManyDownstream { limit } => {
                write!(f, "more than {limit} slots depend on it: rerun it alone, and backfill what depends on it")
            }
            Refusal::NameTaken(id) => write!(f, "a backfill named \"{id}\" exists already, expected a new name"),
            Refusal::NoBackfill(id) => write!(f, "no backfill is named \"{id}\""),
            Refusal::BackfillCancelled(id) => write!(f, "the backfill \"{id}\" was cancelled, make a new one"),
            Refusal::BackfillOver(id) => write!(f, "all slots of the backfill \"{id}\" have ended"),
            Refusal::TooMany { limit, .. } => {
                write!(f, "it would touch more than {limit} slots: ask for a shorter range")
            }
        }
    }
}

/// The answer to an [`Ask`].
pub type Reply = Result<Done, Refusal>;

/// What is to be done, after the commit.
#[derive(Debug, Clone)]
pub enum Command {
    /// Ask the outside world.
    Probe(Probe),
    /// Start a run. The same run may be started again after a crash: its id tells.
    StartRun {
        /// Which.
        run: RunId,
        /// Whose job.
        workflow: Arc<Workflow>,
        /// The worker that is to do it; none where the scheduler's own executor does.
        worker: Option<Arc<str>>,
        /// What its slot collected, and when it came to be.
        collected: Option<Arc<Collected>>,
    },
    /// Find out how a run stands that another process started.
    CheckRun {
        /// Which.
        run: RunId,
        /// By which executor.
        executor: String,
        /// What the executor calls it, where that was recorded.
        external_id: Option<String>,
    },
    /// End a run.
    CancelRun {
        /// Which.
        run: RunId,
        /// By which executor.
        executor: String,
        /// What the executor calls it, where that was recorded.
        external_id: Option<String>,
    },
    /// Ask a function of a script which jobs belong together.
    Relate(Relation),
    /// Answer somebody who asked.
    Reply {
        /// Theirs.
        token: u64,
        /// The answer.
        reply: Reply,
    },
}

/// What one step led to.
#[derive(Debug, Default)]
pub struct Step {
    /// What happened, in order.
    pub events: Vec<EventRecord>,
    /// What is to be done.
    pub commands: Vec<Command>,
}

/// Rows that a turn changed.
#[derive(Debug, Default)]
pub struct Rows {
    /// Slots.
    pub slots: Vec<(SlotRef, Slot)>,
    /// Runs.
    pub runs: Vec<Run>,
    /// Workflows; one that got several definitions comes with each, the last as it is now.
    pub workflows: Vec<WorkflowRow>,
    /// Backfills.
    pub backfills: Vec<Backfill>,
    /// Registers.
    pub registers: Vec<(String, String, Option<Value>)>,
    /// Facts that have names, with their log positions.
    pub facts: Vec<(FactKey, u64)>,
}

/// What a store remembers, for [`crate::Core::restore`].
#[derive(Debug, Default)]
pub struct Restored {
    /// Position of the last event.
    pub seq: u64,
    /// Every workflow that ever was.
    pub workflows: Vec<WorkflowRow>,
    /// The live slots.
    pub slots: Vec<(SlotRef, Slot)>,
    /// Their runs that have not ended.
    pub runs: Vec<Run>,
    /// All backfills that ever were: a name is taken once.
    pub backfills: Vec<Backfill>,
}
