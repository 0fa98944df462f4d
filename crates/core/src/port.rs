//! The inputs and the outputs of the scheduler.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::backfill::Backfill;
use kelos_model::history::Trim;
use kelos_model::jobs::{NamedJobs, Relation};
use kelos_model::run::Report;
use kelos_model::workflow::{Provenance, WorkflowRow};
use kelos_model::{
    Actor, Arguments, Batch, Breach, Collection, EventRecord, FactKey, PermitAnswer, Probe, ProbeAnswer, Run, RunId,
    Slot, SlotKey, SlotRef, Workflow,
};
use serde_json::Value;

use crate::deployment::Deployment;
use crate::filter::WorkflowFilter;
use crate::requests::{Ask, Reply};
use crate::warrant::Warrant;
use crate::workers::Offer;

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// A tick: time passed, or something may have become possible. The core plans, evaluates and dispatches. All other
    /// inputs only note changes, except for facts, each of which is judged on its arrival; nothing is dispatched
    /// between ticks.
    Woke {
        /// The workflows that the tick is limited to.
        only: WorkflowFilter,
        /// Whether to send all probes again and to plan all workflows anew, regardless of timers. A server that is
        /// stepped by hand does so.
        look_again: bool,
    },
    /// The complete definitions of one provenance. Those of the others stay as they are, and a name that belongs to
    /// another provenance stays with it.
    Definitions {
        /// The owner of the definitions.
        provenance: Provenance,
        /// The definitions, at most one for each workflow.
        all: Vec<Arc<Workflow>>,
        /// The projects of this provenance that are deployed anew, by name. Only a deployment makes event schedules
        /// match the files; until then the changes that people made stay.
        deployed: BTreeMap<String, Deployment>,
    },
    /// The answer to a probe.
    ProbeAnswered {
        /// The probe.
        probe: Probe,
        /// Its answer.
        answer: ProbeAnswer,
    },
    /// A report of an executor. Reports may come late, twice, or not at all.
    RunReported {
        /// The run.
        run: RunId,
        /// The report.
        report: Report,
    },
    /// A request.
    Asked {
        /// The token that the reply carries.
        token: u64,
        /// The actor of the request.
        by: Actor,
        /// The request.
        ask: Ask,
        /// The rights with which it is asked; none for Kelos itself, and where nobody is asked who they are.
        warrant: Option<Arc<Warrant>>,
    },
    /// The current offer of a worker. It replaces the earlier one, including the deductions for runs assigned since.
    Offered {
        /// The name of the worker, unique to its process.
        worker: Arc<str>,
        /// The offer; none if the worker is gone.
        offer: Option<Offer>,
    },
    /// The answer of a script's function about related jobs.
    Related {
        /// The question.
        relation: Relation,
        /// The related jobs, or the error message.
        answer: Result<NamedJobs, String>,
    },
    /// A step broke an invariant and was dropped: freeze its workflow.
    Freeze(Breach),
    /// An input broke an invariant of a frozen workflow: drop the input, and answer its actor.
    SetAside {
        /// The broken invariant.
        breach: Breach,
        /// The dropped input.
        input: Box<Input>,
    },
}

impl Input {
    /// A description for people who read that the input was dropped.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Input::Woke { .. } => "a tick".to_owned(),
            Input::Definitions { .. } => "the definitions".to_owned(),
            Input::ProbeAnswered { .. } => "the answer to a question".to_owned(),
            Input::RunReported { run, report } => {
                let what = match report {
                    Report::Started { .. } => "it was started",
                    Report::NeverStarted => "it was never started",
                    Report::Deferred { .. } => "it can't be started now",
                    Report::GivenBack => "it was given back undone",
                    Report::Gave { .. } => "what it gives",
                    Report::Asks { .. } => "what it asks for",
                    Report::Ended { outcome } => {
                        return format!("the report on {}#{} that it ended: {outcome}", run.slot.short(), run.number);
                    }
                };
                format!("the report on {}#{}: {what}", run.slot.short(), run.number)
            }
            Input::Asked { by, .. } => format!("a request of {by}"),
            Input::Offered { worker, .. } => format!("an offer of worker {worker}"),
            Input::Related { .. } => "the answer of a script's function".to_owned(),
            Input::Freeze(_) | Input::SetAside { .. } => "the handling of a broken invariant".to_owned(),
        }
    }
}

/// Something to do after the commit.
#[derive(Debug, Clone)]
pub enum Command {
    /// Ask a probe.
    Probe(Probe),
    /// Start a run. After a crash the same run may be started again, with the same id.
    StartRun {
        /// The run.
        run: RunId,
        /// The workflow, whose job is run.
        workflow: Arc<Workflow>,
        /// The worker that runs it; none for the scheduler's own executor.
        worker: Option<Arc<str>>,
        /// The facts that its slot collected.
        collected: Option<Arc<Collection>>,
        /// The slots that it serves together, if there are several.
        batch: Option<Batch>,
        /// All that it is given, by name: its arguments with the outputs of what its slot depends on, or the inputs of a step.
        inputs: Arc<Arguments>,
        /// The key whose time and identifiers the job is given, where that is not the key of its slot: a step is done again.
        about: Option<SlotKey>,
    },
    /// Find out the state of a run that another process started.
    CheckRun {
        /// The run.
        run: RunId,
        /// The name of its executor.
        executor: String,
        /// The executor's id of the run, if recorded.
        external_id: Option<String>,
    },
    /// End a run.
    CancelRun {
        /// The run.
        run: RunId,
        /// The name of its executor.
        executor: String,
        /// The executor's id of the run, if recorded.
        external_id: Option<String>,
    },
    /// Tell a live run what became of its request for permits.
    AnswerRun {
        /// The run.
        run: RunId,
        /// The name of its executor.
        executor: String,
        /// The number of the request.
        request: u64,
        /// The answer.
        answer: PermitAnswer,
    },
    /// Ask a script's function about related jobs.
    Relate(Relation),
    /// Answer a request.
    Reply {
        /// The token of the request.
        token: u64,
        /// The answer.
        reply: Reply,
    },
}

/// The result of one step.
#[derive(Debug, Default)]
pub struct Step {
    /// The events, in order.
    pub events: Vec<EventRecord>,
    /// The commands, in order.
    pub commands: Vec<Command>,
}

/// The rows that a turn changed.
#[derive(Debug, Default)]
pub struct Rows {
    /// The slots.
    pub slots: Vec<(SlotRef, Slot)>,
    /// The runs.
    pub runs: Vec<Run>,
    /// The workflows. One with several definitions in the turn has a row for each, the current one last.
    pub workflows: Vec<WorkflowRow>,
    /// The backfills.
    pub backfills: Vec<Backfill>,
    /// The registers: bucket, key and value. None deletes a register.
    pub registers: Vec<(String, String, Option<Value>)>,
    /// The facts with idempotency keys, and their positions in the log.
    pub facts: Vec<(FactKey, u64)>,
    /// The history that the turn removes.
    pub trim: Option<Trim>,
}

/// The stored state, for [`crate::Core::restore`].
#[derive(Debug, Default)]
pub struct RestoredState {
    /// The position of the last event.
    pub seq: u64,
    /// All workflows that ever existed.
    pub workflows: Vec<WorkflowRow>,
    /// The live slots.
    pub slots: Vec<(SlotRef, Slot)>,
    /// The runs of the live slots that have not ended.
    pub runs: Vec<Run>,
    /// All backfills that ever existed: a name is used once.
    pub backfills: Vec<Backfill>,
    /// The definitions that live runs of flows follow, by their numbers, unless they are the present ones.
    pub pinned: Vec<(u32, Arc<Workflow>)>,
}
