//! `kelos worker --server`: a worker on any machine, with runs on its own disk, for a server that it reaches over HTTP.

use std::path::PathBuf;

use kelos::history::WorkerHistory;
use kelos::local_executors;
use kelos_engine::secrets::Secrets;
use kelos_executors::local::OutputCopies;
use kelos_executors::workers::{Disk, RemoteLine, Worker, WorkerHome, WorkerLine};
use kelos_storage::{Storage, StorageConfig};
use kelos_wire::RemoteWorkerDto;

use crate::failure::Failure;
use crate::machine::{hostname, launcher};
use crate::own_metrics::OwnMetrics;
use crate::trust::TrustOptions;
use crate::worker::{self, WorkerArgs};
use crate::{folder, host, logging, store_worker, text};

/// Runs jobs of a folder, or of a server if one is named.
pub(crate) fn run(args: &WorkerArgs) -> Result<u8, Failure> {
    match &args.shared.store {
        Some(store) if args.server.is_empty() => return store_worker::run(args, store),
        // The variable is that of the nodes on this machine.
        Some(store) if std::env::var("KELOS_STORE").as_ref() != Ok(store) => {
            return Err(Failure::usage("work for --server and over --store at once: expected one of them"));
        }
        _ => {}
    }
    args.shared.name.refuse_alone()?;
    let served = args.transport.first().or(args.access.auth.then_some("--auth"));
    if let Some(option) = served {
        return Err(Failure::usage(format!(
            "use {option}: expected --store, too; only workers over a log are servers"
        )));
    }
    if args.server.is_empty() { worker::run(args) } else { run_for(args) }
}

/// Runs what the server hands to it, until it is told to end.
fn run_for(args: &WorkerArgs) -> Result<u8, Failure> {
    // Before the folder is entered, because paths to files are as people see them from outside.
    let (allowed, settings) = (args.allowed.read()?, args.allowed.history()?);
    let line = line(&args.server, &args.trust)?;
    let first = line.first();
    let home = std::path::absolute(args.home.clone().map_or_else(|| usual_home(&line.named()), Ok)?)
        .map_err(|error| Failure::usage(format!("find the folder of --dir: {error}")))?;
    let dir = folder::existing("folder of commands", &args.dir)?;
    std::env::set_current_dir(&dir).map_err(|error| Failure::usage(format!("work in {}: {error}", dir.display())))?;
    let _logging = logging::start(logging::USUAL, None)?;
    let storage = Storage::new(StorageConfig { trust: args.trust.read()?, ..StorageConfig::from_env() });
    let copies = host::outputs(args.outputs.as_deref(), &storage)?;
    let disk = Disk::take(&home, &line.named()).map_err(|error| {
        Failure::bad(error.to_string())
            .hint("--dir names another folder: each worker of a machine needs its own, and so does each server")
    })?;
    let outputs = copies.as_ref().map(OutputCopies::address);
    let (launcher, runtime) = (launcher(&disk.runs())?.with_copies(copies), worker::runtime()?);
    let host = hostname();
    let name = format!("{host}:{}", disk.tail());
    let history = WorkerHistory::start(settings, disk.held_runs(), kelos::system_clock());
    let _history = history.map_err(|error| Failure::bad(format!("start threads: {error}")))?;
    let about = RemoteWorkerDto { host, version: env!("CARGO_PKG_VERSION").to_owned(), node: None, outputs };
    let executors = local_executors(&launcher, &Secrets::new(allowed), runtime.handle());
    let footing = WorkerHome::Own(disk.with(launcher, about));
    let wanted = worker::offer(args);
    let metrics = OwnMetrics::open(args.metrics, wanted.at_a_time)?;
    let has_token = line.has_token();
    let welcome = format!("{name} asks {} for runs; stop it with Ctrl-C", &first);
    runtime.block_on(async {
        let (worker, news) = Worker::start(name, line, executors, wanted, footing);
        metrics.serve()?;
        text::line(welcome);
        worker::work(&worker, news, metrics.counts(), || {}).await.map_err(|failure| match has_token {
            true => failure,
            false => failure.hint(
                "this worker shows no token: `kelos token add NAME --role worker` makes one on a server with --auth, and --token-file names its file",
            ),
        })
    })?;
    Ok(0)
}

/// The line to the servers that were named, with the token and the trust of these options.
fn line(servers: &[String], trust: &TrustOptions) -> Result<WorkerLine, Failure> {
    let named = WorkerLine::addresses(servers.iter().map(String::as_str));
    let named = named.map_err(|error| Failure::usage(error.to_string()))?;
    if let Some(base) = named.iter().find(|base| base.starts_with("http://")).filter(|_| trust.has_pin()) {
        return Err(Failure::usage(format!("use the server {base}: a pin is given, expected https://")));
    }
    let token = trust.token.text(named.first().map_or("", String::as_str))?;
    Ok(WorkerLine::of(named, token.map(Into::into), RemoteLine::client(&trust.read()?)))
}

/// The folder of runs of a worker that is given none.
fn usual_home(servers: &[String]) -> Result<PathBuf, Failure> {
    Disk::usual(servers, None).ok_or_else(|| {
        Failure::usage("find a folder for runs: neither XDG_STATE_HOME nor HOME is set").hint("name one with --dir")
    })
}
