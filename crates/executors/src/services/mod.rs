//! The executor for jobs of services that are asked by HTTP.
//!
//! A start carries the installation's name and the run's id as its `Idempotency-Key`, so that asking again starts nothing twice where the service
//! heeds it. A job that takes longer is polled; what polling needs is the run's external id.

mod service;
mod settings;
mod ticket;
mod watch;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use kelos_engine::clock::Clock;
use kelos_engine::executor::{Executor, Reports, Start};
use kelos_engine::secrets::Secrets;
use kelos_model::run::Report;
use kelos_model::{Outcome, RunId};
use tokio::runtime::Handle;

use self::service::{Client, StartAnswer};
use self::settings::Settings;
use self::ticket::Ticket;
use self::watch::{Line, Watch};
use crate::Records;
use crate::http::Http;

/// Has services do jobs.
#[derive(Clone)]
pub struct HttpExecutor {
    client: Client,
    records: Arc<dyn Records>,
    clock: Clock,
    runtime: Handle,
    known: Arc<Mutex<BTreeMap<RunId, RunProgress>>>,
}

/// The progress of a run, as far as this process knows it.
enum RunProgress {
    /// Its start is being asked for; whether it may have been taken at an earlier try, and whether it is to be ended.
    Asked { doubtful: bool, unwanted: bool },
    /// The service did not take it; whether that is sure, and when it may be asked again.
    PutOff { doubtful: bool, reason: String, until: Option<Instant> },
    /// Its status is watched.
    Watched { external_id: String, line: Line },
}

impl HttpExecutor {
    /// Asks with a node's client, taking the time of timeouts from its clock.
    #[must_use]
    pub fn new(http: Http, records: Arc<dyn Records>, clock: Clock, runtime: Handle) -> Self {
        let client = Client { http, secrets: Secrets::default() };
        Self { client, records, clock, runtime, known: Arc::default() }
    }

    /// The same, with the secrets that its operator allows.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Secrets) -> Self {
        self.client.secrets = secrets;
        self
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<RunId, RunProgress>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(work);
    }

    /// Whether to request the start now. If not, the report that is due is sent.
    fn take_up(&self, run: &RunId, reports: &Reports) -> bool {
        let mut known = self.known();
        let doubtful = match known.get(run) {
            Some(RunProgress::Asked { .. }) => return false,
            Some(RunProgress::Watched { external_id, .. }) => {
                reports.run(run, Report::Started { external_id: external_id.clone() });
                return false;
            }
            Some(RunProgress::PutOff { reason, until: Some(until), .. }) if Instant::now() < *until => {
                reports.run(run, Report::Deferred { reason: reason.clone() });
                return false;
            }
            Some(RunProgress::PutOff { doubtful, .. }) => *doubtful,
            None => false,
        };
        known.insert(run.clone(), RunProgress::Asked { doubtful, unwanted: false });
        true
    }

    async fn ask(self, run: RunId, settings: Settings, reports: Reports) {
        let taken = self.have_taken(&run, &settings).await;
        let ended = |outcome| {
            self.known().remove(&run);
            reports.run(&run, Report::Ended { outcome });
        };
        match taken {
            StartAnswer::Done => ended(Outcome::Succeeded),
            StartAnswer::Refused(reason) => ended(Outcome::refused(reason)),
            // Another run would have another key, and the service may have taken this one.
            StartAnswer::Lacks(error) if self.is_doubtful(&run) => {
                reports.run(&run, self.put_off(&run, error.to_string(), None, true));
            }
            StartAnswer::Lacks(error) => ended(error.outcome()),
            StartAnswer::Lost(reason) => ended(Outcome::Lost { reason }),
            StartAnswer::Later { reason, after, doubtful } => {
                let until = after.and_then(|after| Instant::now().checked_add(after));
                reports.run(&run, self.put_off(&run, reason, until, doubtful));
            }
            StartAnswer::Going(ticket) => {
                self.known().remove(&run);
                self.go_on(run, *ticket, false, reports).await;
            }
        }
    }

    /// Whether the service may have taken a run that is being asked for.
    fn is_doubtful(&self, run: &RunId) -> bool {
        matches!(self.known().get(run), Some(RunProgress::Asked { doubtful: true, .. }))
    }

    async fn have_taken(&self, run: &RunId, settings: &Settings) -> StartAnswer {
        // Another installation may have a run of the same name.
        match self.records.installation().await {
            Ok(name) => {
                let key = format!("{name}/{run}");
                service::start(&self.client, &key, settings, (self.clock)().as_millisecond()).await
            }
            Err(why) => StartAnswer::Later { reason: format!("failed to {why}"), after: None, doubtful: false },
        }
    }

    /// Records that a start was not accepted; returns the report: deferred, or over if the run was cancelled.
    fn put_off(&self, run: &RunId, reason: String, until: Option<Instant>, doubtful: bool) -> Report {
        let mut known = self.known();
        let (before, unwanted) = match known.get(run) {
            Some(RunProgress::Asked { doubtful, unwanted }) => (*doubtful, *unwanted),
            _ => (false, false),
        };
        let doubtful = doubtful || before;
        if unwanted {
            known.remove(run);
            return Report::Ended { outcome: never_taken(doubtful) };
        }
        known.insert(run.clone(), RunProgress::PutOff { doubtful, reason: reason.clone(), until });
        Report::Deferred { reason }
    }

    /// Confirms a start and watches the job to its end, unless that is being done already.
    async fn go_on(&self, run: RunId, ticket: Ticket, at_once: bool, reports: Reports) {
        let external_id = ticket.external_id();
        reports.run(&run, Report::Started { external_id: external_id.clone() });
        let Some(line) = self.begin_to_watch(&run, external_id) else { return };
        self.watch(&run, &ticket, &line, at_once, &reports).await;
    }

    async fn watch(&self, run: &RunId, ticket: &Ticket, line: &Line, at_once: bool, reports: &Reports) {
        let outcome = Watch::new(&self.client, &self.clock, run, ticket, line).follow(at_once).await;
        self.known().remove(run);
        reports.run(run, Report::Ended { outcome });
    }

    fn begin_to_watch(&self, run: &RunId, external_id: String) -> Option<Line> {
        let mut known = self.known();
        if matches!(known.get(run), Some(RunProgress::Watched { .. })) {
            return None;
        }
        let line = Line::default();
        known.insert(run.clone(), RunProgress::Watched { external_id, line: line.clone() });
        Some(line)
    }

    /// Ends a run whose start was not confirmed; none if a request that is under way will report the end.
    fn end_unconfirmed(&self, run: &RunId) -> Option<Outcome> {
        let mut known = self.known();
        match known.get_mut(run) {
            Some(RunProgress::Asked { unwanted, .. }) => {
                *unwanted = true;
                None
            }
            Some(RunProgress::Watched { line, .. }) => {
                line.end();
                None
            }
            Some(RunProgress::PutOff { doubtful, .. }) => {
                let doubtful = *doubtful;
                known.remove(run);
                Some(never_taken(doubtful))
            }
            None => Some(never_taken(true)),
        }
    }

    /// Orders the watch of a run to end it; false if there is no watch.
    fn wish_its_end(&self, run: &RunId) -> bool {
        match self.known().get(run) {
            Some(RunProgress::Watched { line, .. }) => {
                line.end();
                true
            }
            _ => false,
        }
    }
}

impl Executor for HttpExecutor {
    fn start(&self, start: Start, reports: Reports) {
        let (settings, project) = (start.whole_settings(), start.workflow.project.clone());
        let (run, traceparent) = (start.run, start.given.traceparent);
        match Settings::read(&project, settings) {
            Ok(settings) => {
                if self.take_up(&run, &reports) {
                    self.spawn(self.clone().ask(run, settings.traced(traceparent), reports));
                }
            }
            Err(reason) => reports.run(&run, Report::Ended { outcome: Outcome::refused(reason) }),
        }
    }

    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        let Some(external_id) = external_id else {
            // Asking again is safe: the service knows the run's id.
            if !matches!(self.known().get(run), Some(RunProgress::Asked { .. })) {
                reports.run(run, Report::NeverStarted);
            }
            return;
        };
        let Some(ticket) = Ticket::read(external_id) else { return reports.run(run, unreadable()) };
        let (this, run) = (self.clone(), run.clone());
        self.spawn(async move { this.go_on(run, ticket, true, reports).await });
    }

    fn cancel(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        let Some(external_id) = external_id else {
            if let Some(outcome) = self.end_unconfirmed(run) {
                reports.run(run, Report::Ended { outcome });
            }
            return;
        };
        if self.wish_its_end(run) {
            return;
        }
        let Some(ticket) = Ticket::read(external_id) else { return reports.run(run, unreadable()) };
        let (this, run) = (self.clone(), run.clone());
        let Some(line) = this.begin_to_watch(&run, external_id.to_owned()) else { return };
        line.end();
        self.spawn(async move {
            this.watch(&run, &ticket, &line, true, &reports).await;
        });
    }

    fn note(&self, run: &RunId) -> Option<String> {
        match self.known().get(run)? {
            RunProgress::Watched { line, .. } => line.trouble(),
            _ => None,
        }
    }
}

fn never_taken(doubtful: bool) -> Outcome {
    if !doubtful {
        return Outcome::Killed;
    }
    let reason = "it was given up while nobody knew whether the service had taken it".to_owned();
    Outcome::Lost { reason }
}

fn unreadable() -> Report {
    // The service took it, and may go on with it.
    let reason = "what the service called it can't be read any more".to_owned();
    Report::Ended { outcome: Outcome::Lost { reason } }
}
