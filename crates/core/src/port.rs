//! What goes into the scheduler and what comes out.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::backfill::Backfill;
use kelos_model::jobs::{NamedJobs, Relation};
use kelos_model::run::Report;
use kelos_model::workflow::{Provenance, WorkflowRow};
use kelos_model::{
    Actor, Breach, Collection, EventRecord, FactKey, Probe, ProbeAnswer, Run, RunId, Slot, SlotRef, Workflow,
};
use serde_json::Value;

use crate::deployment::Deployment;
use crate::filter::WorkflowFilter;
use crate::requests::{Ask, Reply};
use crate::workers::Offer;

/// What happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// Time passed, or something may have become possible: plan, look, dispatch. All other inputs
    /// only note what they change, but for facts, each of which is judged when it comes; nothing is dispatched between ticks.
    Woke {
        /// Which workflows it is about.
        only: WorkflowFilter,
        /// Ask every probe again and plan every workflow anew, whatever the timers say: one step of a
        /// server that is stepped by hand.
        look_again: bool,
    },
    /// These are the definitions of one provenance, all of them. Those of the others stay as they are, and a name that is
    /// another's stays that one's.
    Definitions {
        /// Whose they are: the files', or the program's.
        provenance: Provenance,
        /// Each workflow once.
        all: Vec<Arc<Workflow>>,
        /// Its projects that are deployed anew. Only then are event schedules made what their files say: what people changed
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
    /// A step broke an invariant, and was dropped: its workflow is frozen.
    Freeze(Breach),
    /// An input broke an invariant of a workflow that is frozen: it is dropped, and who asked hears so.
    SetAside {
        /// The invariant.
        breach: Breach,
        /// What broke it.
        input: Box<Input>,
    },
}

impl Input {
    /// What it is, in words, for people who read that it was dropped.
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
                    Report::Gave { .. } => "what it gives",
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
        collected: Option<Arc<Collection>>,
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
pub struct Checkpoint {
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
