//! A project whose functions run for a server: how it is reached, and the start.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kelos_engine::executor::Executors;
use kelos_executors::http::{Answer, Method, StatusCode};
use kelos_executors::local::{Launcher, Limits, own_shim};
use kelos_executors::workers::{
    Disk, NoAnswer, RemoteLine, Worker, WorkerHome, WorkerLine, WorkerOffer, detail, escaped, is_passing,
};
use kelos_model::WorkflowId;
use kelos_model::workers::Label;
use kelos_tls::{Trust, TrustSettings};
use kelos_wire::{
    DeploymentDto, OfferedProjectDto, ProblemDetailsDto, ProjectDefinitionsDto, RemoteWorkerDto, StartRequest,
    WorkflowChangeDto,
};
use tokio::runtime::Handle;

use super::function::{FUNCTION, FunctionExecutor};
use super::project::Project;
use super::work_error::WorkError;
use super::work_news::{Teller, WorkNews};
use super::working::{RemoteFunctions, WorkingProject};
use crate::node::hostname;

/// The wait until a server that can't be reached is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// A project whose functions are to run for a server: [`Project::work_for`].
///
/// ```no_run
/// # use kelos::embed::{Calendar, Context, Period, Project, WorkError, job};
/// # async fn clicks(_: Context, _: Period, _: ()) -> Result<(), String> { Ok(()) }
/// # async fn work() -> Result<(), WorkError> {
/// let clicks = job("clicks", clicks).with(()).every(&Calendar::hourly());
/// let project = Project::new("reports", "1.0").add(clicks);
/// let working = project.work_for("https://kelos.example:7437").token_file("worker.token").labels(["eu"]).start().await?;
/// working.until_signal().await
/// # }
/// ```
#[must_use]
pub struct RemoteProject {
    project: Project,
    server: String,
    token: Option<String>,
    token_file: Option<PathBuf>,
    labels: Vec<String>,
    at_a_time: Option<u32>,
    folder: Option<PathBuf>,
    trust: Option<TrustSettings>,
    teller: Teller,
}

impl Project {
    /// Makes this program a worker of a server of Kelos: the server plans, gates, retries and explains the jobs and flows of the
    /// project, and their functions run here. Of several nodes one address is enough to begin with; more of them
    /// have commas in between: where one does not answer, the next one is asked, and all nodes are known after a while.
    ///
    /// ```
    /// let reports = kelos::embed::Project::new("reports", "1.0").work_for("https://kelos.example:7437");
    /// ```
    pub fn work_for(self, server: &str) -> RemoteProject {
        RemoteProject {
            project: self,
            server: server.to_owned(),
            token: None,
            token_file: None,
            labels: Vec::new(),
            at_a_time: None,
            folder: None,
            trust: None,
            teller: Teller::default(),
        }
    }
}

impl RemoteProject {
    /// The token that it shows to the server; without one the variables `KELOS_TOKEN_FILE` or `KELOS_TOKEN` count. It needs the roles
    /// `worker` and, to deploy a definition that changed, `author` for the project.
    ///
    /// ```
    /// # use kelos::embed::Project;
    /// let reports = Project::new("reports", "1.0").work_for("https://kelos.example").token("kelos_t_…");
    /// ```
    pub fn token(mut self, token: &str) -> RemoteProject {
        self.token = Some(token.to_owned());
        self
    }

    /// The file of the token.
    ///
    /// ```
    /// # use kelos::embed::Project;
    /// let reports = Project::new("reports", "1.0").work_for("https://kelos.example").token_file("worker.token");
    /// ```
    pub fn token_file(mut self, file: impl AsRef<Path>) -> RemoteProject {
        self.token_file = Some(file.as_ref().to_owned());
        self
    }

    /// Its labels: it gets runs of jobs that [need](super::Job::runs_on) them, too.
    ///
    /// ```
    /// # use kelos::embed::Project;
    /// let reports = Project::new("reports", "1.0").work_for("https://kelos.example").labels(["gpu", "eu"]);
    /// ```
    pub fn labels<'l>(mut self, labels: impl IntoIterator<Item = &'l str>) -> RemoteProject {
        self.labels.extend(labels.into_iter().map(str::to_owned));
        self
    }

    /// The most runs at a time; one for each processor where nothing is said.
    ///
    /// ```
    /// # use kelos::embed::Project;
    /// let reports = Project::new("reports", "1.0").work_for("https://kelos.example").at_a_time(4);
    /// ```
    pub fn at_a_time(mut self, runs: u32) -> RemoteProject {
        self.at_a_time = Some(runs);
        self
    }

    /// The folder of its runs and their output, which one program at a time may use. By default it is one for the server and the project in
    /// `kelos/worker` of `XDG_STATE_HOME` or `~/.local/state`. A program that finds the folder of one that died says at once which runs are lost.
    ///
    /// ```
    /// # use kelos::embed::Project;
    /// let reports = Project::new("reports", "1.0").work_for("https://kelos.example").folder("/var/lib/reports");
    /// ```
    pub fn folder(mut self, folder: impl AsRef<Path>) -> RemoteProject {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    /// The trust in the server, and what it shows of itself over TLS, in place of what `KELOS_CA`, `KELOS_PIN`, `KELOS_CLIENT_CERT` and
    /// `KELOS_CLIENT_KEY` say.
    ///
    /// ```
    /// # use kelos::embed::Project;
    /// use kelos::embed::TrustSettings;
    ///
    /// let trust = TrustSettings { authorities: vec!["ca.pem".into()], ..TrustSettings::default() };
    /// let reports = Project::new("reports", "1.0").work_for("https://kelos.example").trust(trust);
    /// ```
    pub fn trust(mut self, settings: TrustSettings) -> RemoteProject {
        self.trust = Some(settings);
        self
    }

    /// Is called with what happens. Where nothing is said, it goes to the log of the program, as events of `tracing`.
    ///
    /// ```
    /// # use kelos::embed::Project;
    /// let reports = Project::new("reports", "1.0").work_for("https://kelos.example").on_news(|news| println!("{news}"));
    /// ```
    pub fn on_news(mut self, tell: impl Fn(&WorkNews) + Send + Sync + 'static) -> RemoteProject {
        self.teller = Teller::to(tell);
        self
    }

    /// Deploys the project to the server, and begins to work for it. A server that can't be reached is tried again until it can.
    ///
    /// ```no_run
    /// # use kelos::embed::{Project, WorkError};
    /// # async fn work() -> Result<(), WorkError> {
    /// let working = Project::new("reports", "1.0").work_for("https://kelos.example:7437").start().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When there are [mistakes](Project::check), something needs the scheduler inside of this program, or the server refuses the project.
    pub async fn start(self) -> Result<WorkingProject, WorkError> {
        let runtime = Handle::try_current().map_err(|_| WorkError::Runtime)?;
        let workflows = self.project.check_at(Timestamp::now(), false)?;
        self.project.check_remote()?;
        if self.at_a_time == Some(0) {
            return Err(WorkError::NothingAtATime(self.server));
        }
        let labels = self.labels.iter().map(|label| Label::new(label)).collect::<Result<BTreeSet<_>, _>>()?;
        let line = self.line()?;
        let folder = self.folder.clone().or_else(|| Disk::usual(&line.named(), Some(self.project.name())));
        let disk = Disk::take(&folder.ok_or(WorkError::NoFolder)?, &line.named())?;
        let launcher = Launcher::new(disk.runs(), own_shim(), Limits::default())?;
        let deployment = ProjectDeployment { line: &line, project: &self.project, teller: &self.teller };
        let deployed = deployment.deploy(ProjectDefinitionsDto { workflows }).await?;
        deployment.start_once().await?;
        let versions = deployed.versions.iter();
        let definitions = versions.filter_map(|(id, version)| Some((WorkflowId::new(id).ok()?, *version))).collect();
        let host = hostname();
        let name = format!("{host}:{}", disk.tail());
        let functions = FunctionExecutor::new(self.project.functions(), runtime, launcher.clone());
        let executors = Executors::default().with(FUNCTION, RemoteFunctions(functions.clone()));
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let about = RemoteWorkerDto { host, version, node: None, outputs: None };
        let wanted = WorkerOffer {
            workflows: BTreeSet::new(),
            project: Some(OfferedProjectDto { name: self.project.name().to_owned(), definitions }),
            labels,
            job: None,
            at_a_time: self.at_a_time.unwrap_or_else(processors),
            in_all: None,
            attempts: None,
            held: false,
        };
        let server = line.first();
        let home = WorkerHome::Own(disk.with(launcher, about));
        let (worker, news) = Worker::start(name.clone(), line, executors, wanted, home);
        let changes = deployed.workflows.iter().map(change).collect();
        Ok(WorkingProject::new((name, server), changes, (worker, functions), news, self.teller))
    }

    /// The line to the server, with the token and the trust of the program or of its environment.
    fn line(&self) -> Result<WorkerLine, WorkError> {
        let named = WorkerLine::addresses([self.server.as_str()])?;
        let variable = |variable: &str| std::env::var(variable).ok().filter(|value| !value.trim().is_empty());
        let file = || self.token_file.clone().or_else(|| variable("KELOS_TOKEN_FILE").map(PathBuf::from));
        let token = match (&self.token, file()) {
            (Some(token), _) => Some(token.clone()),
            (None, Some(file)) => {
                Some(std::fs::read_to_string(&file).map_err(|source| WorkError::TokenFile { file, source })?)
            }
            (None, None) => variable("KELOS_TOKEN"),
        };
        let token = token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
        let settings = match self.trust.clone() {
            Some(settings) => settings,
            None => TrustSettings::of_client_environment().map_err(WorkError::Trust)?,
        };
        let trust = Trust::new(settings).map_err(WorkError::Trust)?;
        Ok(WorkerLine::of(named, token.map(Arc::from), RemoteLine::client(&trust)))
    }
}

/// A deployment of a project to a server.
struct ProjectDeployment<'p> {
    line: &'p WorkerLine,
    project: &'p Project,
    teller: &'p Teller,
}

impl ProjectDeployment<'_> {
    /// Deploys the definitions, once it is known that no more slots of the past would run than the project allows.
    async fn deploy(&self, definitions: ProjectDefinitionsDto) -> Result<DeploymentDto, WorkError> {
        let path = format!("/api/v1/projects/{}/definitions", escaped(self.project.name()));
        if let Some(limit) = self.project.confirmed() {
            let plan = self.read(&self.ask(Method::PUT, &format!("{path}?plan=true"), &definitions).await?)?;
            let slots: usize = plan.slots.created.iter().map(|group| group.count).sum();
            let slots = u64::try_from(slots).unwrap_or(u64::MAX);
            if slots > limit {
                let (server, project) = (self.line.first(), self.project.name().to_owned());
                return Err(WorkError::Unconfirmed { server, project, slots, limit });
            }
        }
        self.read(&self.ask(Method::PUT, &path, &definitions).await?)
    }

    /// Starts the jobs that are to be started once; the name of the run says that they were.
    async fn start_once(&self) -> Result<(), WorkError> {
        for job in self.project.once() {
            let path = format!("/api/v1/workflows/{}/start", escaped(job.as_str()));
            let request = StartRequest { key: Some("once".to_owned()), ..StartRequest::default() };
            let answer = self.ask(Method::POST, &path, &request).await?;
            // A token that may only work for the server did not deploy the project either.
            if !answer.status.is_success() && answer.status != StatusCode::FORBIDDEN {
                return Err(self.refused(format!("start {job} at"), &answer));
            }
        }
        Ok(())
    }

    /// Asks until there is an answer.
    async fn ask(&self, method: Method, path: &str, body: &impl serde::Serialize) -> Result<Answer, WorkError> {
        let mut is_away = false;
        loop {
            let why = match self.line.send(method.clone(), path, body).await {
                Ok(answer) if !is_passing(answer.status) => {
                    if is_away {
                        self.teller.tell(&WorkNews::Back);
                    }
                    return Ok(answer);
                }
                Ok(answer) => detail(&answer),
                Err(NoAnswer::Away(why)) => why,
                Err(NoAnswer::Never(reason) | NoAnswer::GivenUp(reason)) => {
                    return Err(WorkError::Answer { server: self.line.first(), reason });
                }
            };
            if !std::mem::replace(&mut is_away, true) {
                self.teller.tell(&WorkNews::Away(why));
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    fn read(&self, answer: &Answer) -> Result<DeploymentDto, WorkError> {
        let (server, project) = (self.line.first(), self.project.name().to_owned());
        match answer.status {
            StatusCode::OK => serde_json::from_slice(&answer.body)
                .map_err(|error| WorkError::Answer { server, reason: error.to_string() }),
            StatusCode::UNAUTHORIZED if !self.line.has_token() => Err(WorkError::NoToken { server, project }),
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Err(WorkError::OldServer { server, project }),
            _ => Err(self.refused(format!("deploy the project {project} to"), answer)),
        }
    }

    fn refused(&self, doing: String, answer: &Answer) -> WorkError {
        let problem = serde_json::from_slice::<ProblemDetailsDto>(&answer.body).ok();
        let project = self.project.name();
        let hint = match answer.status {
            StatusCode::UNAUTHORIZED => Some(format!(
                "`kelos token add NAME --role worker --role author@{project}` makes a token on the server"
            )),
            StatusCode::FORBIDDEN if problem.as_ref().is_some_and(|one| one.code == "forbidden") => {
                Some(format!("the token needs the role author@{project} beside worker to deploy what changed"))
            }
            _ => problem.and_then(|problem| problem.hint),
        };
        WorkError::Refused { doing, server: self.line.first(), reason: detail(answer), hint }
    }
}

/// The change of a workflow in words: `new: clicks`, `changed: visits (schedule, trigger)`.
fn change(one: &WorkflowChangeDto) -> String {
    let parts: Vec<&str> = one.parts.iter().map(|part| part.as_str()).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    format!("{}: {}{parts}", one.change.as_str(), one.id)
}

fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1))
}
