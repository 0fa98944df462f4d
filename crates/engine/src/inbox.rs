//! Requests that users leave in the store of a log: the leader takes them as its own.
//!
//! Each request starts a run by its name, and a name is started once, also by another leader and after years. So a request is deleted only
//! after the commit of the turn that started it: it is asked for again after a crash in between or a lost answer, and then nothing is
//! done. It is read from the smallest number each time, because transactions end in any order. A request that is refused is set aside,
//! under the epoch of the leader that refused it: the state of a former one may be old.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use kelos_core::FireRequest;
use kelos_model::json;
use kelos_model::key::RunName;
use kelos_model::{Actor, Arguments, WorkflowId};
use kelos_store::log::{Inbox, InboxRequest, LogError, LogStore, RefusedRequest};
use tokio::runtime::Handle as Runtime;
use tokio::sync::watch::Receiver;

use crate::{AskError, Handle, Status};

/// The most requests that are asked for together.
const TOGETHER: usize = 500;
/// The longest time between two looks, where the store tells of requests by itself.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// The pause after a problem.
const PAUSE: Duration = Duration::from_secs(1);
/// The most requests that were set aside that are shown.
const SHOWN: usize = 20;

/// The status of an inbox on the node that leads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InboxStatus {
    /// Its problem, as a message that completes "failed to …".
    pub problem: Option<String>,
    /// The newest requests that were set aside.
    pub refused: Vec<RefusedRequest>,
}

/// The reader of the inbox of a log, while its engine leads. Cheap to clone.
#[derive(Clone, Default)]
pub struct InboxReader(Arc<Mutex<InboxStatus>>);

impl InboxReader {
    /// Takes the requests of a store until the engine ends, on a thread of its own, while it leads.
    ///
    /// # Errors
    /// When the thread can't be started.
    pub fn start(store: Arc<dyn LogStore>, handle: &Handle, runtime: &Runtime) -> std::io::Result<InboxReader> {
        let reader = InboxReader::default();
        let taker = Taker { store, handle: handle.clone(), runtime: runtime.clone(), shown: reader.clone() };
        std::thread::Builder::new().name("kelos-inbox".to_owned()).spawn(move || taker.run())?;
        Ok(reader)
    }

    /// The status; nothing on a node that does not lead.
    #[must_use]
    pub fn status(&self) -> InboxStatus {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn show(&self, status: InboxStatus) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }
}

struct Taker {
    store: Arc<dyn LogStore>,
    handle: Handle,
    runtime: Runtime,
    shown: InboxReader,
}

impl Taker {
    fn run(self) {
        let mut status = self.handle.watch_status();
        while let Some(epoch) = self.leads(&mut status) {
            let problem = match self.reign(epoch, &mut status) {
                Ok(()) => None,
                Err(None) => return,
                Err(Some(problem)) => {
                    tracing::warn!("failed to {problem}; trying again");
                    Some(problem)
                }
            };
            let pause = if problem.is_some() { PAUSE } else { Duration::ZERO };
            self.shown.show(InboxStatus { problem, refused: Vec::new() });
            self.rest(pause, &mut status);
        }
    }

    /// Takes requests under an epoch until it ends. The error is that of the store; none where it has no inbox.
    fn reign(&self, epoch: u64, status: &mut Receiver<Status>) -> Result<(), Option<String>> {
        let words = |error: LogError| Some(error.to_string());
        let mut inbox = self.store.inbox().map_err(words)?.ok_or(None)?;
        while *status.borrow_and_update() == (Status::Leading { epoch }) {
            let is_done = self.once(&mut *inbox, epoch).map_err(Some)?;
            if is_done {
                let refused = inbox.refused(SHOWN).map_err(words)?;
                self.shown.show(InboxStatus { problem: None, refused });
                inbox.wait(LOOK_EVERY).map_err(words)?;
            }
        }
        Ok(())
    }

    /// Takes the first requests; whether there are no more.
    fn once(&self, inbox: &mut dyn Inbox, epoch: u64) -> Result<bool, String> {
        let words = |error: LogError| error.to_string();
        let requests = inbox.requests(TOGETHER).map_err(words)?;
        let asked = requests.iter().map(|request| self.ask(request));
        let answers = self.runtime.block_on(join_all(asked));
        let (mut done, mut unanswered) = (Vec::new(), None);
        for (request, answer) in requests.iter().zip(answers) {
            match answer {
                Ok(()) => done.push(request.number),
                Err(RequestError::Unsound(problem)) => {
                    inbox.set_aside(epoch, request.number, &problem).map_err(words)?;
                }
                Err(RequestError::Unanswered(error)) => unanswered = Some(error),
            }
        }
        if !done.is_empty() {
            inbox.finish(&done).map_err(words)?;
        }
        unanswered.map_or(Ok(requests.len() < TOGETHER), Err)
    }

    async fn ask(&self, request: &InboxRequest) -> Result<(), RequestError> {
        let fire = read(request).map_err(RequestError::Unsound)?;
        let by = Actor::unknown(format!("database user {}", request.user));
        match self.handle.ask(&by, fire).await {
            Ok(_) => Ok(()),
            Err(AskError::Standby | AskError::NoAnswer(_)) if self.handle.status() == Status::Standby => {
                Err(RequestError::Unanswered("take requests of the inbox: another node leads".to_owned()))
            }
            Err(error @ (AskError::Standby | AskError::NoAnswer(_))) => {
                Err(RequestError::Unanswered(error.to_string()))
            }
            Err(error) => Err(RequestError::Unsound(error.to_string())),
        }
    }

    /// Waits until the engine leads; none if it has ended.
    fn leads(&self, status: &mut Receiver<Status>) -> Option<u64> {
        let waiting = status.wait_for(|status| matches!(status, Status::Leading { .. } | Status::Stopped));
        match self.runtime.block_on(waiting).as_deref() {
            Ok(Status::Leading { epoch }) => Some(*epoch),
            _ => None,
        }
    }

    /// Waits, but not beyond the end of the engine.
    fn rest(&self, pause: Duration, status: &mut Receiver<Status>) {
        self.runtime.block_on(async {
            let ended = status.wait_for(|status| *status == Status::Stopped);
            let _ = tokio::time::timeout(pause, ended).await;
        });
    }
}

/// The reason for which a request is not done.
enum RequestError {
    /// It never can be, as it is.
    Unsound(String),
    /// It may be done, or not.
    Unanswered(String),
}

/// Reads a request as users have written it.
fn read(request: &InboxRequest) -> Result<FireRequest, String> {
    let workflow = WorkflowId::new(&request.workflow).map_err(|error| error.to_string())?;
    let key = RunName::new(&request.key).map_err(|error| error.to_string())?;
    let json = request.arguments.as_deref().ok_or("its arguments were not kept: they were too large")?;
    let arguments: Arguments =
        json::read(json.as_bytes()).map_err(|error| format!("its arguments are no object of JSON: {error}"))?;
    let (priority, reason) = (request.priority, request.reason.clone());
    Ok(FireRequest { workflow, arguments, key: Some(key), priority, unconstrained: false, reason })
}

#[cfg(test)]
mod tests;
