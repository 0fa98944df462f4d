//! `kelos worker`: jobs of many apps, so many at a time, until it is told to end.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kelos::local_executors;
use kelos_engine::executor::Start;
use kelos_engine::secrets::Secrets;
use kelos_executors::http::{Answer, Http, HttpError, Method, StatusCode, Url};
use kelos_executors::local::Launcher;
use kelos_executors::workers::{CONNECT, Door, News, NoAnswer, Roll, Worker, WorkerHome, WorkerOffer, detail};
use kelos_metrics::WorkerMetrics;
use kelos_model::nesting;
use kelos_model::workers::Label;
use kelos_model::{Outcome, RunId, WorkflowId};
use kelos_sandbox::apps::AppsSource;
use kelos_tls::Fingerprint;
use kelos_wire::{AssignmentDto, ListDto, OfferRequest, WorkflowDto};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::access::AccessOptions;
use crate::address::{Query, escape};
use crate::apps::Apps;
use crate::client::Client;
use crate::failure::{Failure, UNREACHABLE};
use crate::fleet::{self, Fleet};
use crate::location::{self, Location};
use crate::machine::{hostname, launcher, processors};
use crate::node::StoreOptions;
use crate::options::{AllowOptions, Lease};
use crate::own_metrics::OwnMetrics;
use crate::signals::{Signals, explain_at_hangup};
use crate::transport::TransportOptions;
use crate::trust::TrustOptions;
use crate::{folder, logging, text};

/// How long an answer may take; a desk answers sooner.
const ANSWER: Duration = Duration::from_secs(90);

#[derive(clap::Args)]
pub(crate) struct WorkerArgs {
    /// Folder with scripts, tasks.json and the state that all its workers share [default: this one, or the nearest above it]
    #[arg(default_value = ".", hide_default_value = true, value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Only run jobs of these apps
    #[arg(short, long = "app", value_name = "APP", num_args = 1..)]
    pub(crate) apps: Vec<WorkflowId>,
    /// Maximum number of concurrent jobs [default: one per processor]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) at_a_time: Option<u32>,
    #[command(flatten)]
    pub(crate) described: Apps,
    #[command(flatten)]
    pub(crate) allowed: AllowOptions,
    #[command(flatten)]
    pub(crate) lease: Lease,
    /// Run commands for this server, from any machine; DIR is then the folder in which they start. Several addresses are nodes of one log: where
    /// one does not answer, the next one is asked
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    pub(crate) server: Vec<String>,
    /// Labels of this worker, such as gpu,eu: it gets the runs that need them, beside those that need none
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    pub(crate) labels: Vec<Label>,
    /// With --server: folder of runs and their output, which one worker at a time may use [default: one for
    /// each server, in kelos/worker of XDG_STATE_HOME or ~/.local/state]
    #[arg(long = "dir", value_name = "FOLDER", requires = "server", value_hint = clap::ValueHint::DirPath)]
    pub(crate) home: Option<PathBuf>,
    /// With --server: place to which the output of ended runs is copied, as for `kelos up`
    #[arg(long, value_name = "URL", requires = "server", value_hint = clap::ValueHint::Url)]
    pub(crate) outputs: Option<String>,
    /// Address at which this worker answers /metrics, /health/live and /health/ready, such as 127.0.0.1:9475 [default: none]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) shared: StoreOptions,
    #[command(flatten)]
    pub(crate) access: AccessOptions,
    #[command(flatten)]
    pub(crate) transport: TransportOptions,
    #[command(flatten)]
    pub(crate) trust: TrustOptions,
}

/// The options of a job beyond the definition of its app.
#[derive(Clone, Default)]
pub(crate) struct Extras {
    /// Words behind those of its command.
    pub(crate) words: String,
    /// Its timeout.
    pub(crate) watch: Option<Duration>,
}

impl Extras {
    pub(crate) fn apply(&self, start: &mut Start) {
        if let Some(watch) = self.watch {
            start.settings.insert("timeoutSeconds".to_owned(), watch.as_secs_f64().into());
        }
        if !self.words.is_empty() && start.workflow.job.executor == "bash" {
            let shell = start.settings.get("shell").and_then(|shell| shell.as_str()).unwrap_or_default();
            let whole = format!("{shell}{}", self.words);
            start.settings.insert("shell".to_owned(), whole.into());
        }
    }
}

pub(crate) fn run(args: &WorkerArgs) -> Result<u8, Failure> {
    let crew = Crew::join(&args.dir, &args.described, &args.allowed, args.lease.of_folder(), logging::USUAL)?;
    crew.must_know(&args.apps)?;
    let wanted = offer(args);
    let metrics = OwnMetrics::open(args.metrics, wanted.at_a_time)?;
    let outcome = crew.runtime.block_on(async {
        let (worker, news) = crew.start(wanted, Extras::default())?;
        metrics.serve()?;
        text::tell(format!("{} is running; stop it with Ctrl-C", crew.name));
        work(&worker, news, metrics.counts(), || {
            if let Some(none) = tokio::task::block_in_place(|| crew.no_apps()) {
                text::tell(none);
            }
        })
        .await
    });
    crew.fleet.leave()?;
    outcome.map(|()| 0)
}

/// The offer of a worker by its options.
pub(crate) fn offer(args: &WorkerArgs) -> WorkerOffer {
    WorkerOffer {
        workflows: args.apps.iter().cloned().collect(),
        project: None,
        labels: args.labels.iter().cloned().collect(),
        job: None,
        at_a_time: args.at_a_time.unwrap_or_else(processors),
        in_all: None,
        attempts: None,
        held: false,
    }
}

/// Says what a worker does and counts it, until a signal comes and it has finished.
pub(crate) async fn work<D: Door>(
    worker: &Worker<D>,
    mut news: UnboundedReceiver<News>,
    counts: &WorkerMetrics,
    begin: impl FnOnce(),
) -> Result<(), Failure> {
    explain_at_hangup()?;
    let mut signals = Signals::of_server()?;
    begin();
    loop {
        tokio::select! {
            told = news.recv() => say(told, counts)?,
            () = signals.wait() => break,
        }
    }
    finish(worker, &mut news, counts, &mut signals).await
}

/// Waits for what it has; the second signal ends that.
async fn finish<D: Door>(
    worker: &Worker<D>,
    news: &mut UnboundedReceiver<News>,
    counts: &WorkerMetrics,
    signals: &mut Signals,
) -> Result<(), Failure> {
    if !worker.is_idle() {
        text::tell("stopping once its jobs have ended; Ctrl-C again kills them");
    }
    let left = worker.leave();
    tokio::pin!(left);
    loop {
        tokio::select! {
            () = &mut left => break,
            told = news.recv() => say(told, counts)?,
            () = signals.wait() => worker.end_all(),
        }
    }
    while let Ok(told) = news.try_recv() {
        say(Some(told), counts)?;
    }
    Ok(())
}

fn say(news: Option<News>, counts: &WorkerMetrics) -> Result<(), Failure> {
    news.iter().for_each(|news| counts.hear(news));
    match news {
        Some(News::Began(run)) => text::tell(format!("{} began", named(&run))),
        Some(News::Over(over)) => text::tell(format!("{} {}", named(&over.run), ended(&over.outcome))),
        Some(News::GivenUp) => {
            text::tell("the leader received no heartbeat for too long and took its jobs away; it registers again");
        }
        Some(News::Useless(why)) => return Err(useless(&why)),
        Some(News::Away(why)) => text::tell(format!("no answer from the leader, trying again: failed to {why}")),
        Some(News::Back) => text::tell("the leader answers again"),
        // Only a program has functions that may be outdated.
        Some(News::Came | News::Outdated(_)) | None => {}
    }
    Ok(())
}

fn named(run: &RunId) -> String {
    format!("{} run {}", run.slot.short(), run.number)
}

/// The outcome of a run in words.
pub(crate) fn ended(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Succeeded => "succeeded".to_owned(),
        Outcome::Killed => "was killed".to_owned(),
        Outcome::Unknown { .. } | Outcome::Lost { .. } | Outcome::Refused { .. } => outcome.to_string(),
        Outcome::Failed { reason, .. } => format!("failed: {reason}"),
    }
}

pub(crate) fn useless(why: &str) -> Failure {
    Failure::bad(why.to_owned())
}

/// One process that does jobs of a folder, and what it needs for that.
pub(crate) struct Crew {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) launcher: Launcher,
    name: String,
    _logging: logging::Logging,
}

impl Crew {
    /// Goes to work in a folder: finds its leader, or leads.
    pub(crate) fn join(
        dir: &Path,
        apps: &Apps,
        allowed: &AllowOptions,
        lease: Duration,
        log: &str,
    ) -> Result<Crew, Failure> {
        // Before the folder is entered, because a path to a file is as people see it from outside.
        let allowed = allowed.read()?;
        let (dir, apps) = enter(dir, apps)?;
        let logging = logging::start(log, None)?;
        let fleet = Fleet::new(&dir, apps, lease)?.allowing(allowed);
        let place = fleet.find()?;
        if place.token.is_none() {
            let why = format!("run jobs for {}: the server there runs them itself", place.address);
            let failure = Failure::bad(why);
            return Err(failure.hint("stop it, and the first worker leads; or start it as `kelos up --workers`"));
        }
        let (launcher, runtime) = (launcher(&runs_of(&fleet))?, runtime()?);
        let tail: String = location::random()?.chars().take(8).collect();
        let name = format!("{}:{}:{tail}", hostname(), std::process::id());
        Ok(Crew { fleet: Arc::new(fleet), runtime, launcher, name, _logging: logging })
    }

    /// Refuses names that no app has.
    pub(crate) fn must_know(&self, apps: &[WorkflowId]) -> Result<(), Failure> {
        apps.iter().try_for_each(|app| self.fleet.ask(|client| client.workflow("take jobs", app.as_str())).map(|_| ()))
    }

    /// A notice if no apps are defined yet; none otherwise.
    fn no_apps(&self) -> Option<String> {
        let read = |client: &Client| client.get::<ListDto<WorkflowDto>>("list the apps", "/workflows", &Query::new());
        let list = self.fleet.ask(read).ok()?;
        let missing = || format!("there are no apps here yet: {}; it waits for them", self.fleet.missing_apps());
        list.items.is_empty().then(missing)
    }

    /// Sets a worker to work; within the runtime.
    pub(crate) fn start(
        &self,
        wanted: WorkerOffer,
        more: Extras,
    ) -> Result<(Worker<Line>, UnboundedReceiver<News>), Failure> {
        let runs = runs_of(&self.fleet);
        let signature = Roll::beside(&runs).sign(&self.name);
        let footing = signature
            .map(WorkerHome::Shared)
            .map_err(|error| Failure::bad(format!("register as a worker of {}: {error}", runs.display())))?;
        let secrets = Secrets::new(self.fleet.allowed().clone());
        let executors = local_executors(&self.launcher, &secrets, self.runtime.handle());
        let executors = executors.adjusted(move |start| more.apply(start));
        let door = Line { fleet: self.fleet.clone(), http: Mutex::default() };
        Ok(Worker::start(self.name.clone(), door, executors, wanted, footing))
    }
}

/// Stands where the definitions are, so that relative paths mean the same to all commands.
pub(crate) fn enter(dir: &Path, apps: &Apps) -> Result<(PathBuf, AppsSource), Failure> {
    let dir = folder::existing("folder of jobs", &fleet::named_folder(dir))?;
    // Before the folder is entered, because a path to a file is as people see it from outside.
    let apps = apps.source(&dir)?;
    std::env::set_current_dir(&dir).map_err(|error| Failure::usage(format!("work in {}: {error}", dir.display())))?;
    Ok((dir, apps))
}

/// The folder of the files of a fleet's runs.
fn runs_of(fleet: &Fleet) -> PathBuf {
    fleet.state().join("runs")
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    built.map_err(|error| Failure::bad(format!("start threads: {error}")))
}

/// A worker's line to whoever leads.
pub(crate) struct Line {
    fleet: Arc<Fleet>,
    /// The client, and the certificate of the leader that it is for.
    http: Mutex<Option<(Option<Fingerprint>, Http)>>,
}

impl Door for Line {
    async fn say(&self, worker: &str, offer: &OfferRequest, patience: Duration) -> Result<AssignmentDto, NoAnswer> {
        let fleet = self.fleet.clone();
        let place = tokio::task::spawn_blocking(move || fleet.find()).await;
        let place = place.map_err(|error| NoAnswer::Away(error.to_string()))?.map_err(nobody)?;
        let answer = tokio::time::timeout(patience, self.ask(&place, worker, offer)).await;
        let answer = answer.unwrap_or_else(|_| Err(NoAnswer::Away("get an answer from the leader in time".to_owned())));
        let answer = answer.inspect_err(|_| self.fleet.lost(&place));
        self.read(&place, answer?)
    }
}

impl Line {
    fn http(&self, place: &Location) -> Result<Http, NoAnswer> {
        let mut known = self.http.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, http)) = known.as_ref().filter(|(pin, _)| *pin == place.pin) {
            return Ok(http.clone());
        }
        let trust = TrustOptions::of_environment().and_then(|options| options.or_pin(place.pin).read());
        let trust = trust.map_err(|failure| NoAnswer::Never(failure.message))?;
        let http = Http::with_patience(&trust, CONNECT, ANSWER);
        *known = Some((place.pin, http.clone()));
        Ok(http)
    }

    async fn ask(&self, place: &Location, worker: &str, offer: &OfferRequest) -> Result<Answer, NoAnswer> {
        let Some(token) = &place.token else {
            return Err(NoAnswer::Never(format!("run jobs for {}: the server there runs them itself", place.address)));
        };
        let url = format!("{}/api/v1/workers/{}/offer", place.address, escape(worker));
        let url = Url::parse(&url).map_err(|error| NoAnswer::Never(format!("reach {}: {error}", place.address)))?;
        let http = self.http(place)?;
        let request = http.request(Method::POST, url).map_err(away)?;
        http.send(request.bearer_auth(token).json(offer)).await.map_err(away)
    }

    fn read(&self, place: &Location, answer: Answer) -> Result<AssignmentDto, NoAnswer> {
        let detail = || detail(&answer);
        match answer.status {
            StatusCode::OK => nesting::read(&answer.body)
                .map_err(|error| NoAnswer::Never(format!("understand the leader at {}: {error}", place.address))),
            StatusCode::GONE => Err(NoAnswer::GivenUp(detail())),
            // It ends, or another server has got its port.
            StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND => {
                self.fleet.lost(place);
                Err(NoAnswer::Away(detail()))
            }
            status if status.is_server_error() => {
                self.fleet.lost(place);
                Err(NoAnswer::Away(detail()))
            }
            _ => Err(NoAnswer::Never(detail())),
        }
    }
}

fn away(error: HttpError) -> NoAnswer {
    NoAnswer::Away(error.to_string())
}

/// Nobody leads: that may pass, but for a folder that can't be led.
fn nobody(failure: Failure) -> NoAnswer {
    match failure.code {
        UNREACHABLE => NoAnswer::Away(failure.message),
        _ => NoAnswer::Never(failure.message),
    }
}
