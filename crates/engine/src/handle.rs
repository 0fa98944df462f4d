//! The handle by which the rest of the program reaches an engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError};

use jiff::Timestamp;
use kelos_core::{AnyAnswer, Ask, Input, Inspect, Inspection, Refusal, Request, TakenName, Warrant, WorkflowFilter};
use kelos_model::references::MissingConsent;
use kelos_model::workflow::Provenance;
use kelos_model::{Actor, SlotRef, Workflow};
use kelos_store::Queries;
use tokio::sync::{oneshot, watch};

use super::deployments::projects;
use super::{Definitions, EngineView, MENDING, Message, Pace, Status};
use crate::clock::Clock;
use crate::executor::Executors;
use crate::timings::Timings;

/// The reason for which an engine did not do what was requested.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It may not, or can't, be done.
    #[error("{0}")]
    Refused(Refusal),
    /// The actor lacks a right. The engine itself asks for none: whoever lets others use it does.
    #[error("do what was asked for: {}", missing_role(actor, right, project.as_ref()))]
    Forbidden {
        /// The name of the actor.
        actor: String,
        /// The right, as a verb.
        right: &'static str,
        /// The project; none if the right is needed for all.
        project: Option<String>,
    },
    /// No reason was given, and changes of the project need one.
    #[error("do what was asked for: {}", missing_reason(project))]
    ReasonMissing {
        /// The project.
        project: String,
    },
    /// Another process leads on the same data.
    #[error("reach the scheduler: another server leads on this database and this one is its standby; ask that one")]
    Standby,
    /// The store fails, or the engine is ending. It may or may not have been done.
    #[error("get an answer from the scheduler: {0}; check whether it was done before you retry")]
    NoAnswer(String),
}

impl AskError {
    /// The right or reason that the caller lacks, as a whole sentence, where it was not done because of that.
    #[must_use]
    pub fn lack(&self) -> Option<String> {
        match self {
            AskError::Forbidden { actor, right, project } => Some(missing_role(actor, right, project.as_ref())),
            AskError::ReasonMissing { project } => Some(missing_reason(project)),
            AskError::Refused(_) | AskError::Standby | AskError::NoAnswer(_) => None,
        }
    }
}

/// `anna needs the role operate for the project reports`.
fn missing_role(actor: &str, right: &str, project: Option<&String>) -> String {
    // Roles are named as the rights that they give, but for these two.
    let role = match right {
        "administer" => "admin",
        "work" => "worker",
        right => right,
    };
    let place = project.map_or_else(|| "all projects".to_owned(), |project| format!("the project {project}"));
    format!("{actor} needs the role {role} for {place}")
}

fn missing_reason(project: &str) -> String {
    format!("changes of the project {project} need a reason")
}

/// A handle on an engine. Cheap to clone; the engine ends on [`Handle::stop`] or [`Handle::end`], or with the process.
#[derive(Clone)]
pub struct Handle {
    send: Sender<Message>,
    reader: Arc<dyn Queries>,
    shown: Arc<EngineView>,
    clock: Clock,
    pace: Pace,
    executors: Executors,
    lens: Option<Lens>,
}

/// The part of an answer about a slot, from the scheduler's memory, that somebody may see.
pub type Lens = Arc<dyn Fn(&SlotRef, Inspection) -> Inspection + Send + Sync>;

impl Handle {
    pub(super) fn new(
        send: Sender<Message>,
        reader: Arc<dyn Queries>,
        shown: Arc<EngineView>,
        clock: Clock,
        pace: Pace,
        executors: Executors,
    ) -> Self {
        Self { send, reader, shown, clock, pace, executors, lens: None }
    }

    /// The same for somebody who sees less: who reads by another reader, and is shown of a slot what a lens lets through.
    #[must_use]
    pub fn seen_through(self, reader: Arc<dyn Queries>, lens: Lens) -> Self {
        Self { reader, lens: Some(lens), ..self }
    }

    /// Reads past the engine.
    #[must_use]
    pub fn reader(&self) -> &Arc<dyn Queries> {
        &self.reader
    }

    /// The executors that do its runs.
    #[must_use]
    pub fn executors(&self) -> &Executors {
        &self.executors
    }

    /// The pace of the engine's clock.
    #[must_use]
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// The machine's time, in whole milliseconds.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The status of the engine.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shown.status.borrow().clone()
    }

    /// The durations of the parts of its turns, and the rest of its lease.
    #[must_use]
    pub fn timings(&self) -> &Timings {
        &self.shown.timings
    }

    /// Follows what the engine is doing.
    #[must_use]
    pub fn watch_status(&self) -> watch::Receiver<Status> {
        self.shown.status.subscribe()
    }

    /// A receiver that changes with each commit; on a standby with those of the leader, as soon as they are noticed.
    #[must_use]
    pub fn watch_commits(&self) -> watch::Receiver<u64> {
        self.shown.commits.subscribe()
    }

    /// Asks for something, and waits until it is done and committed.
    ///
    /// # Errors
    /// When it is refused, or this engine does not lead, or does not answer.
    pub async fn ask<R: Request>(&self, by: &Actor, request: R) -> Result<R::Answer, AskError> {
        self.ask_under(by, None, request).await
    }

    /// The same with the rights of somebody: the request is refused where they lack one, in the turn that would carry it out.
    ///
    /// # Errors
    /// When a right or a reason is missing, it is refused, or this engine does not lead, or does not answer.
    pub async fn ask_under<R: Request>(
        &self,
        by: &Actor,
        warrant: Option<Arc<Warrant>>,
        request: R,
    ) -> Result<R::Answer, AskError> {
        if self.status() == Status::Standby {
            return Err(AskError::Standby);
        }
        let (reply, answer) = oneshot::channel();
        let ask = request.into();
        let inspected = if let Ask::Inspect(Inspect { slot }) = &ask { Some(slot.clone()) } else { None };
        self.post(Message::Ask { by: by.clone(), ask, warrant, reply })?;
        match answer.await {
            Ok(Ok(answer)) => {
                let answer = match (answer, inspected, &self.lens) {
                    (AnyAnswer::Inspection(found), Some(slot), Some(lens)) => AnyAnswer::Inspection(lens(&slot, found)),
                    (answer, ..) => answer,
                };
                R::answer(answer).ok_or_else(|| AskError::NoAnswer("it answered another request".to_owned()))
            }
            Ok(Err(Refusal::NotAllowed { right, project })) => {
                Err(AskError::Forbidden { actor: by.to_string(), right, project })
            }
            Ok(Err(Refusal::ReasonMissing { project })) => Err(AskError::ReasonMissing { project }),
            Ok(Err(refusal)) => Err(AskError::Refused(refusal)),
            Err(_) => Err(self.silence()),
        }
    }

    /// Steps an engine at a moment, until nothing more can happen at that moment: every probe has answered, every
    /// dispatched run has started or ended. It does not wait for live runs.
    ///
    /// # Errors
    /// When this engine does not lead, or does not answer.
    pub async fn step(&self, at: Timestamp, only: WorkflowFilter) -> Result<(), AskError> {
        if self.status() == Status::Standby {
            return Err(AskError::Standby);
        }
        let (done, finished) = oneshot::channel();
        self.post(Message::Step { at, only, done })?;
        finished.await.map_err(|_| self.silence())
    }

    /// Waits until all that was sent to the engine before is taken in and committed, and gives the epoch in which that is so. What was sent
    /// in an earlier epoch may have been dropped with it.
    ///
    /// # Errors
    /// When this engine does not lead, or does not answer.
    pub async fn settled(&self) -> Result<u64, AskError> {
        if self.status() == Status::Standby {
            return Err(AskError::Standby);
        }
        let (done, committed) = oneshot::channel();
        self.post(Message::Barrier(done))?;
        committed.await.map_err(|_| self.silence())
    }

    /// Replaces the definitions of the embedding program by these, which are all of them; those of files and of
    /// requests stay as they are. A project whose texts, or else definitions, changed is deployed, which resets its
    /// event schedules to their definitions. A name that belongs to another provenance is left out: see
    /// [`Handle::taken_names`].
    ///
    /// # Errors
    /// When a definition has a value that is nested too deeply, or the engine has ended.
    pub fn define(&self, all: Vec<Arc<Workflow>>, sources: BTreeMap<String, Arc<str>>) -> Result<(), AskError> {
        for one in &all {
            let refused = |problem| AskError::Refused(Refusal::TooDeep(format!("{}: {problem}", one.id)));
            one.check_nesting().map_err(refused)?;
        }
        let projects = projects(&all, &sources);
        self.deploy(Definitions {
            provenance: Provenance::Code,
            all,
            sources,
            projects,
            is_whole: true,
            ..Definitions::default()
        })
    }

    /// The definitions that were given to it and are left out, since their names are others'. None while another process leads.
    #[must_use]
    pub fn taken_names(&self) -> BTreeSet<TakenName> {
        self.shown.taken.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The references of present definitions that other projects don't share, where projects are kept apart. None while another process
    /// leads.
    #[must_use]
    pub fn unshared(&self) -> BTreeSet<MissingConsent> {
        self.shown.unshared.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives the engine all definitions of one provenance, with what is known of the projects that they are of.
    ///
    /// # Errors
    /// When the engine has ended.
    pub fn deploy(&self, definitions: Definitions) -> Result<(), AskError> {
        self.post(Message::Definitions(definitions))
    }

    /// Delivers an input, such as a pushed probe answer.
    ///
    /// # Errors
    /// When the engine has ended.
    pub fn deliver(&self, input: Input) -> Result<(), AskError> {
        self.post(Message::Input(input))
    }

    /// Stops the engine in good order. Runs stay alive; the next engine adopts them.
    pub async fn stop(&self) {
        let (done, finished) = oneshot::channel();
        if self.post(Message::Stop(done)).is_ok() {
            let _ = finished.await;
        }
    }

    /// Has the engine end as [`Handle::stop`] does, without waiting for it: for what can't wait, such as a drop.
    pub fn end(&self) {
        let (done, _) = oneshot::channel();
        // An engine that has ended needs no word.
        let _ = self.post(Message::Stop(done));
    }

    fn post(&self, message: Message) -> Result<(), AskError> {
        self.send.send(message).map_err(|_| AskError::NoAnswer("it has ended".to_owned()))
    }

    fn silence(&self) -> AskError {
        match self.status() {
            Status::Standby => AskError::Standby,
            Status::Troubled { reason } => AskError::NoAnswer(reason),
            Status::Damaged { reason } => AskError::NoAnswer(format!("failed to {reason}; {MENDING}")),
            _ => AskError::NoAnswer("it is shutting down".to_owned()),
        }
    }
}
