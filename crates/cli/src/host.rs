//! A server in this process: store, engine and HTTP, until a signal comes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kelos::history::{Archive, HistoryConfig};
use kelos::{Node, NodeConfig, NodeError, ProblemSource};
use kelos_alerts::Settings as AlertSettings;
use kelos_checkpoints::Settings;
use kelos_engine::secrets::Secrets;
use kelos_engine::sources::Watch;
use kelos_engine::{Pace, Status};
use kelos_executors::local::{self, OutputCopies};
use kelos_front::{Access, App, Groups, LimitSettings, Limiter, Links, MetricSettings};
use kelos_kafka::Cluster;
use kelos_model::history::HistorySettings;
use kelos_model::secret::AllowList;
use kelos_sandbox::apps::AppsSource;
use kelos_sandbox::{Folders, Problem, ProblemCode};
use kelos_server::{Limits, Transport, router};
use kelos_storage::{Storage, StorageConfig};
use kelos_telemetry::{Telemetry, TelemetryParts, TelemetrySettings};
use kelos_tls::{ServerCertificate, Trust, TrustSettings};
use kelos_trust::Rules;
use tokio::runtime::Runtime;

use crate::access::{self, AccessOptions};
use crate::failure::Failure;
use crate::node::{self, DataPlace, NodeWorkerPlan};
use crate::signals::{Signals, reload_at_hangup};
use crate::transport::{Reach, TransportOptions};
use crate::{folder, terminal, text};

/// The settings of a server.
#[derive(clap::Args)]
pub(crate) struct Tunables {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) bind: IpAddr,
    /// How far back from now slots are planned
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = text::duration)]
    pub(crate) planning_window: SignedDuration,
    /// Maximum number of concurrent runs of all workflows
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) max_running: u32,
    /// Replace the event schedules of a project by those in its files whenever the files change. With false, changes
    /// made by people stay, and only schedules whose program is removed are deleted. A project can override this
    #[arg(long, value_name = "true|false", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) update_schedules: bool,
    /// Accept deployments over HTTP. Anyone who can reach the port can then run arbitrary commands
    #[arg(long)]
    pub(crate) allow_deploy: bool,
    /// JSON file with the groups of the board [default: one per project], links from runs to other pages, prefixes
    /// to watch for new files, topics of Kafka to read, where checkpoints of the log are sent, who is told what by alerts, the secrets and users of the
    /// system that projects may use, and rules of access
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Place to which the output of ended runs is copied, such as s3://bucket/outputs or file:/mnt/outputs. It is read from there
    /// where the worker or the node of a run is away
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    pub(crate) outputs: Option<String>,
    /// Address of Hue, for links from runs of Oozie
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    pub(crate) hue: Option<String>,
    #[command(flatten)]
    pub(crate) access: AccessOptions,
    #[command(flatten)]
    pub(crate) transport: TransportOptions,
}

impl Tunables {
    /// The way in which a server with these settings is reached.
    pub(crate) fn reach(&self, pages: &Pages) -> Result<Reach, Failure> {
        self.transport.reach(self.bind, self.access.auth || pages.rules.is_some())
    }
}

impl Default for Tunables {
    fn default() -> Tunables {
        Tunables {
            bind: Ipv4Addr::LOCALHOST.into(),
            planning_window: SignedDuration::from_hours(7 * 24),
            max_running: 256,
            update_schedules: true,
            allow_deploy: false,
            config: None,
            outputs: None,
            hue: None,
            access: AccessOptions::default(),
            transport: TransportOptions::default(),
        }
    }
}

/// The configuration of a server.
pub(crate) struct Plan<'a> {
    pub(crate) folders: Folders,
    /// The source of the apps that are described beside the scripts.
    pub(crate) apps: AppsSource,
    /// The place of `kelos.db` and `runs/`.
    pub(crate) data: DataPlace,
    pub(crate) pace: Pace,
    pub(crate) reload_every: Duration,
    pub(crate) tunables: &'a Tunables,
    /// The configuration of its pages.
    pub(crate) pages: Pages,
    /// The socket that it listens on.
    pub(crate) listener: TcpListener,
    /// The way in which it is reached there.
    pub(crate) reach: Reach,
    /// How long workers may be silent.
    pub(crate) leases: WorkerLeases,
    /// The token that a worker of this folder must show, if jobs are left to workers.
    pub(crate) worker_token: Option<Arc<str>>,
    /// The name by which clients know it again, where it writes down how it is found.
    pub(crate) instance: Option<Arc<str>>,
    /// The terms of its own worker, if it is a node of several.
    pub(crate) own_worker: Option<NodeWorkerPlan>,
}

/// How long workers may be silent before their runs are taken from them.
#[derive(Clone, Copy)]
pub(crate) struct WorkerLeases {
    /// One that shares the folder of the server.
    pub(crate) of_folder: Duration,
    /// One on another machine, also the worker of a node and a program of its own.
    pub(crate) elsewhere: Duration,
}

/// A server that is up.
pub(crate) struct Host {
    pub(crate) node: Node,
    takes_deployments: bool,
    access: Access,
    instance: Option<Arc<str>>,
    pages: Pages,
    runtime: Runtime,
    listener: TcpListener,
    reach: Reach,
    /// The address at which other nodes reach it.
    address: Option<String>,
    node_token: Option<Arc<str>>,
}

/// The role of a server that has just started.
pub(crate) enum Role {
    /// It schedules.
    Leader,
    /// Another server leads on its database.
    Standby,
    /// Its store fails; why completes "failed to …".
    Troubled(String),
    /// A server whose stored data is damaged; the reason completes "failed to …".
    Damaged(String),
}

/// The configuration of pages.
#[derive(Default)]
pub(crate) struct Pages {
    /// The file that it was read from.
    config: Option<ConfigFile>,
    /// The groups of workflows on the board.
    groups: Groups,
    /// The links from runs to other pages.
    links: Links,
    /// Prefixes that are watched for new files; for the node, and no page's.
    watches: Vec<Watch>,
    /// Clusters of Kafka; for the node, too.
    kafka: Vec<Cluster>,
    /// The rules of access.
    rules: Option<Rules>,
    /// The trust of the node in services.
    trust: Trust,
    /// The limits on clients.
    limits: LimitSettings,
    /// The settings of metrics.
    metrics: MetricSettings,
    /// The collectors of traces and lineage.
    telemetry: TelemetrySettings,
    /// The settings of history, for the node.
    history: HistorySettings,
    /// The settings of checkpoints, for the node; none for a process that leads only while it has something to do.
    checkpoints: Option<Settings>,
    /// The channels and rules of alerts, for the node; none where there are none.
    alerts: Option<AlertSettings>,
    /// The secrets and users that projects may use; for the node, too.
    allowed: AllowList,
}

/// The file of `--config` as it was at the start.
#[derive(Debug, Clone)]
struct ConfigFile {
    path: PathBuf,
    text: Arc<str>,
}

impl ConfigFile {
    /// The sentence about what has changed in it since.
    fn since(&self) -> String {
        let path = self.path.display();
        match Pages::text_of(&self.path) {
            Ok(text) if text == self.text => format!("{path} is as it was at the start"),
            Ok(_) => match Pages::of_file(&self.path) {
                Ok(_) => format!("{path} has changed, which needs a restart"),
                Err(failure) => format!("{path} has changed, and could not be used: failed to {failure}"),
            },
            Err(failure) => format!("a restart would not find its configuration: failed to {failure}"),
        }
    }
}

/// Longest file of `--config`.
pub(crate) const LONGEST_CONFIG: u64 = 16 << 20;

impl Pages {
    /// The configuration by the options; without a file there are no groups.
    pub(crate) fn read(tunables: &Tunables) -> Result<Pages, Failure> {
        let pages = match tunables.config.as_deref() {
            Some(file) => Pages::of_file(file)?,
            None => Pages { checkpoints: Some(Settings::default()), ..Pages::without_file()? },
        };
        let links = match &tunables.hue {
            Some(hue) => pages.links.with_hue(hue).map_err(|why| Failure::usage(format!("use --hue: {why}")))?,
            None => pages.links,
        };
        Ok(Pages { links, ..pages })
    }

    /// The configuration of a server that has no file.
    pub(crate) fn without_file() -> Result<Pages, Failure> {
        let trust = Trust::new(TrustSettings::of_environment()).map_err(Failure::usage)?;
        Ok(Pages { trust, ..Pages::default() })
    }

    /// The text of a file.
    fn text_of(path: &Path) -> Result<Arc<str>, Failure> {
        let fail = |why: String| Failure::usage(format!("use {} as the file of --config: it {why}", path.display()));
        kelos_sandbox::read_text(path, LONGEST_CONFIG).map_err(fail)
    }

    fn of_file(path: &Path) -> Result<Pages, Failure> {
        let fail = |why: String| Failure::usage(format!("use {} as the file of --config: {why}", path.display()));
        let text = Pages::text_of(path)?;
        let (groups, links) = (Groups::of_file(&text).map_err(fail)?, Links::parse(&text).map_err(fail)?);
        let (kafka, allowed) = (Cluster::parse(&text).map_err(fail)?, AllowList::parse(&text).map_err(fail)?);
        let checkpoints = Some(Settings::parse(&text).map_err(fail)?);
        let alerts = Some(AlertSettings::parse(&text).map_err(fail)?).filter(|alerts| !alerts.channels.is_empty());
        let rules = Rules::parse(&text).map_err(|error| fail(error.to_string()))?;
        let trust = TrustSettings::of_environment().with_file(&text).map_err(fail)?;
        let trust = Trust::new(trust).map_err(Failure::usage)?;
        let limits = LimitSettings::parse(&text).map_err(fail)?;
        let metrics = MetricSettings::parse(&text).map_err(fail)?;
        let telemetry = TelemetrySettings::parse(&text).map_err(fail)?;
        let watches = Watch::parse(&text).map_err(fail)?;
        let history = HistorySettings::parse(&text).map_err(fail)?;
        Ok(Pages {
            config: Some(ConfigFile { path: path.to_owned(), text }),
            groups,
            links,
            watches,
            kafka,
            rules,
            trust,
            limits,
            metrics,
            telemetry,
            history,
            checkpoints,
            alerts,
            allowed,
        })
    }

    /// The secrets that projects may use.
    pub(crate) fn secrets(&self) -> Secrets {
        Secrets::new(self.allowed.clone())
    }

    /// The trust in services, and in the store of the log.
    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The same, for projects that may use what is in this list.
    pub(crate) fn allowing(self, allowed: AllowList) -> Pages {
        Pages { allowed, ..self }
    }

    /// Those of a worker that is a node: it trusts these, its projects may use what is in this list, and these are its rules of access.
    pub(crate) fn of_worker(trust: Trust, allowed: AllowList, rules: Option<Rules>) -> Pages {
        Pages { trust, allowed, rules, ..Pages::default() }
    }
}

/// The place of `--outputs`.
pub(crate) fn outputs(uri: Option<&str>, storage: &Storage) -> Result<Option<OutputCopies>, Failure> {
    let Some(uri) = uri else { return Ok(None) };
    if uri.starts_with("http:") || uri.starts_with("https:") {
        let failure = Failure::usage("use the place of --outputs: nothing can be written to a web server");
        return Err(failure.hint(
            "expected a place such as s3://bucket/outputs, hdfs:/outputs, sftp://host/outputs or file:/mnt/outputs",
        ));
    }
    let copies = OutputCopies::new(uri, storage);
    copies.map(Some).map_err(|error| Failure::usage(format!("use the place of --outputs: failed to {error}")))
}

/// Has a node read the topics of clusters of Kafka, and send messages to them.
#[cfg(feature = "kafka")]
fn use_kafka(config: &mut NodeConfig, clusters: Vec<Cluster>, trust: &Trust) -> Result<(), Failure> {
    let authorities = trust.authorities();
    let trusting = |cluster: Cluster| match &authorities {
        Some(authorities) => cluster.with_authorities(authorities),
        None => cluster,
    };
    let connected = clusters.into_iter().map(|cluster| kelos::kafka::Kafka::new(trusting(cluster)));
    let connected = connected.collect::<Result<_, _>>();
    config.kafka = connected.map_err(|error| Failure::usage(error.to_string()))?;
    Ok(())
}

/// Refuses clusters of Kafka, whose client is not in this program.
#[cfg(not(feature = "kafka"))]
fn use_kafka(_: &mut NodeConfig, clusters: Vec<Cluster>, _: &Trust) -> Result<(), Failure> {
    let Some(cluster) = clusters.first() else { return Ok(()) };
    let why = format!("use the Kafka cluster \"{}\" of --config: this program was built without Kafka", cluster.name);
    Err(Failure::usage(why)
        .hint("build it with the feature `kafka`: cargo build --release -p kelos-cli --features kafka"))
}

/// The configuration of history: of the folders of runs, which are marked if they are new, and of those of the node's own worker.
fn history_of(runs: &Path, of_worker: Option<PathBuf>, pages: &Pages) -> Result<HistoryConfig, Failure> {
    let roots: Vec<PathBuf> = std::iter::once(runs.to_owned()).chain(of_worker).collect();
    for root in &roots {
        local::mark_new(root).map_err(|error| Failure::bad(format!("make {}: {error}", root.display())))?;
    }
    Ok(HistoryConfig { settings: pages.history.clone(), roots, archive: None })
}

/// The archive of removed history.
fn archive_of(settings: &HistorySettings, storage: &Storage) -> Result<Option<Archive>, Failure> {
    let Some(uri) = settings.term().and_then(|term| term.archive.as_deref()) else { return Ok(None) };
    let archive = Archive::new(uri, storage);
    archive.map(Some).map_err(|error| {
        let failure = Failure::usage(format!("use the place of \"archive\" in \"history\": failed to {error}"));
        failure.hint("expected a place such as s3://bucket/history, sftp://host/history or file:/mnt/history")
    })
}

/// Starts a server; it answers no request yet.
pub(crate) fn start(plan: Plan<'_>) -> Result<Host, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::bad(format!("start threads: {error}")))?;
    let data = plan.data.folder().clone();
    let runs = data.join("runs");
    let history = history_of(&runs, plan.own_worker.is_some().then(|| node::worker_runs(&data)), &plan.pages)?;
    folder::make_private(&runs).map_err(|error| Failure::bad(format!("make {}: {error}", runs.display())))?;
    let (store, log) = plan.data.open()?;
    let mut config = NodeConfig::new(runs, local::own_shim());
    config.log = log;
    config.folders = Some(plan.folders);
    config.apps = Some(plan.apps);
    config.update_schedules = plan.tunables.update_schedules;
    config.pace = plan.pace;
    let mut pages = plan.pages;
    config.storage = Storage::new(StorageConfig { trust: pages.trust.clone(), ..StorageConfig::from_env() });
    config.history = Some(HistoryConfig { archive: archive_of(&history.settings, &config.storage)?, ..history });
    let copies = outputs(plan.tunables.outputs.as_deref(), &config.storage)?;
    config.outputs = copies.clone();
    config.trust = pages.trust.clone();
    config.watches = std::mem::take(&mut pages.watches);
    use_kafka(&mut config, std::mem::take(&mut pages.kafka), &pages.trust)?;
    config.checkpoints = pages.checkpoints.take().map(|settings| (settings, data.clone()));
    config.alerts =
        pages.alerts.take().map(|settings| (settings, Some(address(&plan.listener, plan.reach.certificate.is_some()))));
    config.secrets = Secrets::new(std::mem::take(&mut pages.allowed));
    config.traces = pages.telemetry.has_traces();
    config.reload_every = plan.reload_every;
    config.core.planning_window = plan.tunables.planning_window;
    config.core.set_max_running(plan.tunables.max_running);
    // Commands are run by the workers of all nodes: they outlive a change of leader.
    config.by_workers = plan.worker_token.is_some() || config.log.is_some();
    (config.worker_lease, config.remote_lease) = (plan.leases.of_folder, plan.leases.elsewhere);
    let worker_token = plan.worker_token;
    let access =
        access::of(&plan.tunables.access, pages.rules.take(), &pages.trust, &data, worker_token, config.log.is_some())?;
    config.core.isolated = access.is_required();
    let node = Node::start(config, store, runtime.handle().clone()).map_err(|error| match &error {
        NodeError::Store(error) => Failure::of_store(error),
        error => Failure::bad(error.to_string()),
    })?;
    let settings = std::mem::take(&mut pages.telemetry);
    let parts = TelemetryParts { settings, trust: &pages.trust, handle: node.handle().clone() };
    node.add_problems(telemetry_problems(Telemetry::start(parts, runtime.handle())));
    // A node of several gets its definitions in no other way.
    let takes_deployments = plan.tunables.allow_deploy || node.log().is_some();
    let Plan { listener, reach, instance, own_worker, data: place, .. } = plan;
    // Another token is that of a worker: no node tells of itself by it.
    let node_token = access.token_of_nodes();
    if let Some(own_worker) = own_worker {
        let own_worker = NodeWorkerPlan { token: own_worker.token.or_else(|| node_token.clone()), ..own_worker };
        node::start_worker(own_worker, &node, &data, copies, runtime.handle())?;
    }
    let address = place.address();
    Ok(Host { node, takes_deployments, access, instance, pages, runtime, listener, reach, address, node_token })
}

impl Host {
    /// Waits until the engine leads and has taken its definitions in, or until it is clear that it does not.
    pub(crate) fn role(&self) -> Role {
        self.runtime.block_on(async {
            let mut status = self.node.handle().watch_status();
            let settled = status.wait_for(|status| *status != Status::Starting).await.map(|status| status.clone());
            match settled {
                Ok(Status::Standby) => return Role::Standby,
                Ok(Status::Troubled { reason }) => return Role::Troubled(reason),
                Ok(Status::Damaged { reason }) => return Role::Damaged(reason),
                _ => {}
            }
            // The scripts that were loaded before are known then.
            let _ = tokio::time::timeout(Duration::from_secs(10), self.node.handle().settled()).await;
            Role::Leader
        })
    }

    /// Ends the engine; for a server that never answered.
    pub(crate) fn give_up(self) {
        self.runtime.block_on(self.node.stop());
    }

    /// Answers requests until a signal to end comes; runs go on after it.
    pub(crate) fn serve(self, ready: impl FnOnce()) -> Result<(), Failure> {
        let mut signals = {
            let _entered = self.runtime.enter();
            let config = self.pages.config.clone();
            let since =
                move || config.as_ref().map_or_else(|| "there is no file of --config".to_owned(), ConfigFile::since);
            reload_at_hangup(self.node.clone(), since)?;
            Signals::of_server()?
        };
        self.serve_until(ready, async move {
            signals.wait().await;
            tracing::info!("shutting down; running commands continue");
        })
    }

    /// Answers requests until something is done; runs go on after it.
    pub(crate) fn serve_until(
        self,
        ready: impl FnOnce(),
        ended: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Failure> {
        let Host { node, takes_deployments, access, instance, pages, runtime, .. } = self;
        let Host { listener, reach, address, node_token, .. } = self;
        let outcome = runtime.block_on(async {
            let bound = listener.local_addr().map_err(|error| socket(&error))?;
            listener.set_nonblocking(true).map_err(|error| socket(&error))?;
            let listener = tokio::net::TcpListener::from_std(listener).map_err(|error| socket(&error))?;
            reach.warn(bound);
            let limits = Limits::of_process().with(&pages.limits);
            let app = App::new(node.clone(), env!("CARGO_PKG_VERSION"))
                .with_hosts(reach.hosts(bound).of_instance(instance))
                .with_deployments(takes_deployments)
                .with_access(access)
                .with_limiter(Limiter::new(pages.limits.quota(limits.connections)))
                .with_metrics(pages.metrics)
                .with_groups(pages.groups)
                .with_links(pages.links);
            if let Some(certificate) = reach.certificate.clone() {
                node.add_problems(certificate_problems(certificate));
            }
            tokio::spawn(node::report(node.clone(), address, node_token));
            ready();
            let desk = node.desk().clone();
            let ended = async move {
                ended.await;
                // Those who wait for work hear at once that it is to be had elsewhere.
                desk.close();
            };
            let transport = Transport { limits, certificate: reach.certificate, proxies: reach.proxies };
            let served = kelos_server::serve(listener, router(app), transport, ended).await;
            let status = node.handle().status();
            node.stop().await;
            served.map_err(|error| socket(&error))?;
            match status {
                Status::Damaged { reason } => Err(Failure::damaged(reason)),
                _ => Ok(()),
            }
        });
        // A look at a dead file system may hang in a thread; the process does not wait for it.
        runtime.shutdown_timeout(Duration::from_secs(2));
        outcome
    }
}

/// The problems of a certificate, at the time when they are asked for.
fn certificate_problems(certificate: ServerCertificate) -> ProblemSource {
    Box::new(move || {
        let file = certificate.file().display().to_string();
        let problem = certificate.problem(Timestamp::now());
        problem.into_iter().map(|message| Problem::error(&file, ProblemCode::BadCertificate, message)).collect()
    })
}

/// The problems of collectors of traces and lineage.
fn telemetry_problems(telemetry: Telemetry) -> ProblemSource {
    Box::new(move || {
        let legs = telemetry.legs().into_iter();
        let problem = legs.filter_map(|leg| {
            let message = format!("failed to {}; it is tried again, and nothing is lost", leg.problem?);
            Some(Problem::error(leg.subject, ProblemCode::TelemetryFails, message))
        });
        problem.collect()
    })
}

fn socket(error: &std::io::Error) -> Failure {
    Failure::bad(format!("answer requests: {error}"))
}

/// How long a port that was asked for may be in use: a server that was killed may just have been starting a process, which
/// holds the socket until it has become another program.
const PORT_PATIENCE: Duration = Duration::from_secs(5);

/// The same for the usual port, in whose place any other is taken.
const USUAL_PORT_PATIENCE: Duration = Duration::from_millis(500);

/// How long it is waited without a word.
const PORT_QUIET: Duration = Duration::from_millis(300);

/// Between two attempts to open a port.
const PORT_AGAIN: Duration = Duration::from_millis(20);

/// Opens a port; for none given a usual one, or any that is free.
pub(crate) fn listen(bind: IpAddr, port: Option<u16>, usual: u16) -> Result<TcpListener, Failure> {
    let open = |port, patience| open_port(SocketAddr::new(bind, port), patience);
    let fail = |port: u16, error: std::io::Error| {
        let failure = Failure::bad(format!("listen on {}: {error}", SocketAddr::new(bind, port)));
        match error.kind() {
            std::io::ErrorKind::AddrInUse => failure.hint("another program listens there; choose another --port"),
            std::io::ErrorKind::AddrNotAvailable => failure.hint("--bind names no address of this machine"),
            _ => failure,
        }
    };
    match port {
        Some(port) => open(port, PORT_PATIENCE).map_err(|error| fail(port, error)),
        None => match open(usual, USUAL_PORT_PATIENCE) {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                open(0, Duration::ZERO).map_err(|error| fail(0, error))
            }
            other => other.map_err(|error| fail(usual, error)),
        },
    }
}

/// Opens a port, again and again for a while when it is in use.
fn open_port(address: SocketAddr, patience: Duration) -> std::io::Result<TcpListener> {
    // Another port is taken in the place of the usual one, soon and without a word.
    let (begun, mut is_told) = (Instant::now(), patience < PORT_PATIENCE);
    loop {
        match TcpListener::bind(address) {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && begun.elapsed() < patience => {
                if !is_told && begun.elapsed() >= PORT_QUIET {
                    is_told = true;
                    let (port, seconds) = (address.port(), patience.as_secs());
                    terminal::note(format!("port {port} is in use; waiting up to {seconds} s for it"));
                }
                std::thread::sleep(PORT_AGAIN);
            }
            result => return result,
        }
    }
}

/// The address under which this machine reaches a listener.
pub(crate) fn address(listener: &TcpListener, has_tls: bool) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    match listener.local_addr() {
        Ok(bound) if bound.ip().is_unspecified() => format!("{scheme}://127.0.0.1:{}", bound.port()),
        Ok(bound) => format!("{scheme}://{bound}"),
        Err(_) => "an unknown address".to_owned(),
    }
}

/// A path for display: relative to the current folder, where that is shorter.
pub(crate) fn shown(path: &Path, from: &Path) -> String {
    match path.strip_prefix(from) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => rest.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}
