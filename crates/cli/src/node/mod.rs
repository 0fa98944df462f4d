//! Options of a server that is a node of several.

mod own_worker;
mod report;

use std::net::{IpAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kelos::nodes::{self, LogConfig, LogPlace};
use kelos_engine::secrets::Secrets;
use kelos_model::workers::Label;
use kelos_sandbox::Folders;
use kelos_store::Journal;
use kelos_store::log::LogState;
use kelos_store_sqlite::SqliteStore;
use kelos_tls::Trust;

use crate::credential::TokenOptions;
use crate::failure::Failure;
use crate::{folder, machine};

pub(crate) use own_worker::{NodeWorkerPlan, start as start_worker, worker_runs};
pub(crate) use report::report;

/// The options of a node of several.
#[derive(Default, clap::Args)]
#[command(next_help_heading = "Several machines")]
pub(crate) struct NodeOptions {
    /// Address of the log that several nodes share: postgres://, redis://, zookeeper://, s3://, or file:FOLDER for nodes on this
    /// machine. Whichever node leads schedules, all
    /// answer, and definitions are deployed to the log
    #[arg(long, value_name = "URL", env = "KELOS_STORE", hide_env_values = true, requires = "state",
        conflicts_with_all = ["workflows", "defaults", "db"])]
    pub(crate) store: Option<String>,
    /// Folder for the state of this node, which no other node uses
    #[arg(long, value_name = "DIR", requires = "store", value_hint = clap::ValueHint::DirPath)]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    name: NodeName,
    /// Number of runs that this node does at a time [default: one per processor]; 0 leaves them all to others
    #[arg(long, value_name = "N", requires = "store", value_parser = clap::value_parser!(u32).range(0..=1000))]
    at_a_time: Option<u32>,
    /// Labels of this node, such as gpu,eu: it gets the runs that need them, beside those that need none
    #[arg(long, value_name = "LABEL", value_delimiter = ',', requires = "store")]
    labels: Vec<Label>,
    #[command(flatten)]
    token: TokenOptions,
}

/// The options by which other nodes know a node.
#[derive(Default, clap::Args)]
pub(crate) struct NodeName {
    /// Name of this node [default: the name of the machine and the port]
    #[arg(long, value_name = "NAME", requires = "store")]
    node: Option<String>,
    /// Address at which other nodes reach this one [default: the one it listens on]
    #[arg(long, value_name = "URL", requires = "store", value_hint = clap::ValueHint::Url)]
    advertise: Option<String>,
    #[command(flatten)]
    snapshots: SnapshotOption,
}

/// The option that says where the snapshots of a log are.
#[derive(Default, clap::Args)]
pub(crate) struct SnapshotOption {
    /// Folder for the snapshots of the log, such as hdfs://nn/kelos or s3://BUCKET/kelos, instead of the log itself
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    snapshots: Option<String>,
}

impl SnapshotOption {
    /// The place of a log with this address.
    pub(crate) fn of(&self, address: &str, trust: &Trust) -> Result<LogPlace, Failure> {
        Ok(LogPlace { snapshots: self.snapshots.clone(), ..LogPlace::new(&named_address(address)?, trust) })
    }
}

/// The options of a worker over a log, which is a node itself.
#[derive(Default, clap::Args)]
#[command(next_help_heading = "Several machines")]
pub(crate) struct StoreOptions {
    /// Address of the log that equal workers share, without a server: redis://, zookeeper://, postgres://, s3://, or file:FOLDER for
    /// workers on this machine
    #[arg(long, value_name = "URL", env = "KELOS_STORE", hide_env_values = true)]
    pub(crate) store: Option<String>,
    /// With --store: address to listen on, for other workers and clients
    #[arg(long, value_name = "ADDRESS", requires = "store", default_value = "127.0.0.1")]
    pub(crate) bind: Option<IpAddr>,
    /// With --store: port to listen on [default: a free one]
    #[arg(long, requires = "store")]
    pub(crate) port: Option<u16>,
    #[command(flatten)]
    pub(crate) name: NodeName,
}

/// The place of the data of a server.
pub(crate) enum DataPlace {
    /// A folder with the one database.
    Embedded(PathBuf),
    /// The folder of a node of several, and its log.
    Node(LogConfig),
}

impl NodeOptions {
    /// The terms of the worker of this node, whose runs may use these secrets; none for a server with its own log.
    pub(crate) fn own_worker(&self, secrets: Secrets, trust: &Trust) -> Result<Option<NodeWorkerPlan>, Failure> {
        if self.store.is_none() {
            return Ok(None);
        }
        Ok(Some(NodeWorkerPlan {
            at_a_time: self.at_a_time.unwrap_or_else(machine::processors),
            workflows: Vec::new(),
            labels: self.labels.clone(),
            token: self.token()?,
            secrets,
            trust: trust.clone(),
        }))
    }

    /// The token of the role worker that it shows to the leader.
    fn token(&self) -> Result<Option<Arc<str>>, Failure> {
        let named = if self.store.is_some() { self.token.named()? } else { None };
        Ok(named.map(Into::into))
    }

    /// The configuration of a node that listens there, at this address of its own; none without `--store`.
    pub(crate) fn config(
        &self,
        listener: &TcpListener,
        own: &str,
        trust: &Trust,
    ) -> Result<Option<LogConfig>, Failure> {
        let (Some(store), Some(state)) = (&self.store, &self.state) else {
            self.name.refuse_alone()?;
            return Ok(None);
        };
        folder::make_private(state).map_err(|error| Failure::bad(format!("make {}: {error}", state.display())))?;
        let state = folder::existing("state directory", state)?;
        self.name.config(store, &state, listener, own, trust).map(Some)
    }
}

impl NodeName {
    /// Refuses what makes no sense without `--store`, and is not refused by the parser.
    pub(crate) fn refuse_alone(&self) -> Result<(), Failure> {
        match &self.snapshots.snapshots {
            Some(_) => Err(Failure::usage("use --snapshots: expected --store, too, the log that they belong to")),
            None => Ok(()),
        }
    }

    /// The configuration of a node that listens there, at this address of its own.
    pub(crate) fn config(
        &self,
        store: &str,
        state: &Path,
        listener: &TcpListener,
        own: &str,
        trust: &Trust,
    ) -> Result<LogConfig, Failure> {
        let port = listener.local_addr().map_or(0, |address| address.port());
        let address = self.advertise.as_deref().unwrap_or(own);
        Ok(LogConfig {
            log: self.snapshots.of(store, trust)?,
            state: state.to_owned(),
            node: self.node.clone().unwrap_or_else(|| format!("{}:{port}", machine::hostname())),
            address: Some(address.trim_end_matches('/').to_owned()),
        })
    }
}

impl DataPlace {
    /// The folder of what this server keeps.
    pub(crate) fn folder(&self) -> &PathBuf {
        match self {
            DataPlace::Embedded(folder) => folder,
            DataPlace::Node(config) => &config.state,
        }
    }

    /// The address at which other nodes reach it; none of a server with its own log.
    pub(crate) fn address(&self) -> Option<String> {
        match self {
            DataPlace::Embedded(_) => None,
            DataPlace::Node(config) => config.address.clone(),
        }
    }

    /// Opens the journal, and the log if it is shared.
    pub(crate) fn open(&self) -> Result<(Box<dyn Journal>, Option<LogState>), Failure> {
        match self {
            DataPlace::Embedded(folder) => {
                let store = SqliteStore::open(folder.join("kelos.db")).map_err(|error| Failure::of_store(&error))?;
                Ok((Box::new(store), None))
            }
            DataPlace::Node(config) => {
                let (journal, log) = nodes::open(config).map_err(|error| Failure::of_store(&error))?;
                Ok((journal, Some(log)))
            }
        }
    }
}

/// Refuses a password on the command line, which every user of the machine can read.
fn check_address(store: &str) -> Result<(), Failure> {
    let authority = store.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    let has_password = authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'));
    let is_of_environment = std::env::var("KELOS_STORE").is_ok_and(|named| named == store);
    if has_password && !is_of_environment {
        let failure =
            Failure::usage("use the address of the log: it has a password, which everybody on this machine can read");
        return Err(failure.hint("put the address into the variable KELOS_STORE; `kelos move --to env:KELOS_STORE` reads it, other commands do by themselves"));
    }
    Ok(())
}

/// The address of a log that a command names: as it is, or as `env:NAME` in a variable.
fn named_address(given: &str) -> Result<String, Failure> {
    let Some(name) = given.strip_prefix("env:") else { return check_address(given).map(|()| given.to_owned()) };
    std::env::var(name).map_err(|_| {
        let failure = Failure::usage(format!("use {given} as the address of the log: there is no variable {name}"));
        failure.hint(format!("`export {name}=postgres://…` first"))
    })
}

/// The folders in which a node keeps the definitions that were deployed to the log.
pub(crate) fn definitions(config: &LogConfig) -> Result<Folders, Failure> {
    nodes::definitions(&config.state).map_err(|error| Failure::bad(error.to_string()))
}
