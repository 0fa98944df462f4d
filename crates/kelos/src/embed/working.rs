//! A program that works for a server, and its end.

use kelos_engine::executor::{Executor, Reports, Start};
use kelos_executors::workers::{News, Worker, WorkerLine};
use kelos_model::{PermitAnswer, RunId};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use super::function::FunctionExecutor;
use super::work_error::WorkError;
use super::work_news::{Teller, WorkNews};

/// A project whose functions run here, for a server.
///
/// It ends with [`WorkingProject::stop`]. One that is dropped takes no more runs, drops its functions, and gives their runs back. A program that
/// just ends takes its functions with it: the next one with the same folder says so at once, and the server does what the policy of the job
/// says.
///
/// ```no_run
/// # use kelos::embed::{Project, WorkError};
/// # async fn work() -> Result<(), WorkError> {
/// let working = Project::new("reports", "1.0").work_for("https://kelos.example:7437").start().await?;
/// println!("{} works for {}", working.name(), working.server());
/// working.until_signal().await
/// # }
/// ```
pub struct WorkingProject {
    name: String,
    server: String,
    changes: Vec<String>,
    /// None once it has left.
    worker: Option<Worker<WorkerLine>>,
    functions: FunctionExecutor,
    /// The reason for which the server takes it no more.
    refused: watch::Receiver<Option<String>>,
}

impl WorkingProject {
    pub(super) fn new(
        (name, server): (String, String),
        changes: Vec<String>,
        (worker, functions): (Worker<WorkerLine>, FunctionExecutor),
        news: UnboundedReceiver<News>,
        teller: Teller,
    ) -> WorkingProject {
        let (says, refused) = watch::channel(None);
        tokio::spawn(pass_on(news, teller, says));
        WorkingProject { name, server, changes, worker: Some(worker), functions, refused }
    }

    /// The name of the program among the workers of the server.
    ///
    /// ```no_run
    /// # fn name(working: &kelos::embed::WorkingProject) {
    /// println!("{}", working.name());
    /// # }
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address of the server, the first one of several.
    ///
    /// ```no_run
    /// # fn server(working: &kelos::embed::WorkingProject) {
    /// println!("see {}/ui/workers", working.server());
    /// # }
    /// ```
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The changes that its start brought to the server, a line for each workflow: `new: clicks`, `changed: visits (schedule)`.
    ///
    /// ```no_run
    /// # fn changes(working: &kelos::embed::WorkingProject) {
    /// for line in working.changes() {
    ///     println!("{line}");
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn changes(&self) -> &[String] {
        &self.changes
    }

    /// Takes no more runs, and returns once those that it has are over.
    ///
    /// ```no_run
    /// # async fn stop(working: kelos::embed::WorkingProject) {
    /// working.stop().await;
    /// # }
    /// ```
    pub async fn stop(mut self) {
        self.leave().await;
        self.worker = None;
    }

    async fn leave(&self) {
        if let Some(worker) = &self.worker {
            worker.leave().await;
        }
    }

    /// Takes no more runs, and asks its functions to end. Those that do not succeed within their [grace](super::Job::grace) are given back, and
    /// run again elsewhere or later, without using up a retry.
    ///
    /// ```no_run
    /// # async fn stop(working: kelos::embed::WorkingProject) {
    /// working.stop_now().await;
    /// # }
    /// ```
    pub async fn stop_now(mut self) {
        tokio::join!(self.leave(), self.functions.stop());
        self.worker = None;
    }

    /// Works until SIGTERM or Ctrl-C, then [stops](WorkingProject::stop); a second signal [stops now](WorkingProject::stop_now).
    ///
    /// ```no_run
    /// # async fn work(working: kelos::embed::WorkingProject) -> Result<(), kelos::embed::WorkError> {
    /// working.until_signal().await
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the server takes the program no more, or signals can't be received.
    pub async fn until_signal(mut self) -> Result<(), WorkError> {
        let listen = |kind| signal(kind).map_err(WorkError::Signals);
        let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
        tokio::select! {
            refused = self.refused.wait_for(Option::is_some) => {
                let reason = refused.ok().and_then(|reason| reason.clone()).unwrap_or_default();
                return Err(WorkError::Ended(reason));
            }
            () = either(&mut terminate, &mut interrupt) => {}
        }
        {
            let left = self.leave();
            tokio::pin!(left);
            tokio::select! {
                () = &mut left => {}
                () = either(&mut terminate, &mut interrupt) => {
                    tokio::join!(left, self.functions.stop());
                }
            }
        }
        self.worker = None;
        Ok(())
    }
}

impl Drop for WorkingProject {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.functions.abandon(async move { worker.decline().await });
        }
    }
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

/// Tells the program what happens.
async fn pass_on(mut news: UnboundedReceiver<News>, teller: Teller, refused: watch::Sender<Option<String>>) {
    while let Some(news) = news.recv().await {
        let news = WorkNews::from(news);
        teller.tell(&news);
        if let WorkNews::Refused(why) = news {
            refused.send_replace(Some(why));
        }
    }
}

/// The functions of this program, for a leader elsewhere.
#[derive(Clone)]
pub(super) struct RemoteFunctions(pub(super) FunctionExecutor);

impl Executor for RemoteFunctions {
    fn start(&self, start: Start, reports: Reports) {
        self.0.start(start, reports);
    }

    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        // A run that the worker knows of and this process does not was begun by the one before.
        self.0.check(run, external_id.or(Some("")), reports);
    }

    fn cancel(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        self.0.cancel(run, external_id, reports);
    }

    fn answer(&self, run: &RunId, request: u64, answer: PermitAnswer, reports: Reports) {
        self.0.answer(run, request, answer, reports);
    }

    fn note(&self, run: &RunId) -> Option<String> {
        self.0.note(run)
    }
}
