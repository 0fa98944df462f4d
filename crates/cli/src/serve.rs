//! `kelos serve`: a server as operators of Celos know it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use kelos_engine::{MENDING, Pace};
use kelos_sandbox::Folders;

use crate::apps::Apps;
use crate::failure::Failure;
use crate::host::{self, Tunables};
use crate::location;
use crate::node::{self, DataPlace, NodeOptions};
use crate::options::{CELOS_DEFAULTS, CELOS_WORKFLOWS, Lease};
use crate::{folder, logging, text};

#[derive(clap::Args)]
#[command(rename_all = "camelCase")]
pub(crate) struct ServeArgs {
    /// HTTP port
    #[arg(long)]
    port: u16,
    /// Workflows directory
    #[arg(long, value_name = "PATH", default_value = CELOS_WORKFLOWS, value_hint = clap::ValueHint::DirPath)]
    workflows: PathBuf,
    /// Defaults directory
    #[arg(long, value_name = "PATH", default_value = CELOS_DEFAULTS, value_hint = clap::ValueHint::DirPath)]
    defaults: PathBuf,
    /// Logs directory, with a file of JSON lines per day [default: /var/log/celos, if it exists]
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    logs: Option<PathBuf>,
    /// Number of daily log files to keep
    #[arg(long, value_name = "DAYS", default_value = "30", value_parser = clap::value_parser!(u16).range(1..))]
    log_days: u16,
    /// State database directory
    #[arg(long, value_name = "PATH", default_value = "/var/lib/celos/db", value_hint = clap::ValueHint::DirPath)]
    db: PathBuf,
    /// Schedule automatically, and reload changed scripts within this many seconds. Without it, the server only
    /// schedules on POST /scheduler
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    auto_schedule: Option<u64>,
    #[command(flatten)]
    nodes: NodeOptions,
    #[command(flatten)]
    apps: Apps,
    /// Leave commands to workers, started by `kelos worker --server`, and run none in this process
    #[arg(long)]
    workers: bool,
    #[command(flatten)]
    lease: Lease,
    #[command(flatten)]
    tunables: Tunables,
}

/// The options that may be written with one dash.
const OPTIONS: [&str; 24] = [
    "port",
    "workflows",
    "defaults",
    "logs",
    "logDays",
    "db",
    "autoSchedule",
    "bind",
    "config",
    "hue",
    "planning-window",
    "max-running",
    "tls-cert",
    "tls-key",
    "tls-client-ca",
    "trusted-proxy",
    "host",
    "store",
    "state",
    "node",
    "advertise",
    "at-a-time",
    "labels",
    "snapshots",
];

/// The default folder of the log, besides standard error, if it exists and no other is named.
pub(crate) const USUAL_LOGS: &str = "/var/log/celos";

/// Celos takes `-port` for `--port`.
pub(crate) fn double_dashes(words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_none_or(|word| word != "serve") {
        return words;
    }
    doubled(words, &OPTIONS)
}

/// Doubles the dash before these options.
pub(crate) fn doubled(words: Vec<OsString>, options: &[&str]) -> Vec<OsString> {
    let normal = |word: OsString| {
        let known = word
            .to_str()
            .and_then(|word| word.strip_prefix('-'))
            .is_some_and(|rest| options.contains(&rest.split_once('=').map_or(rest, |(name, _)| name)));
        if !known {
            return word;
        }
        let mut doubled = OsString::from("-");
        doubled.push(word);
        doubled
    };
    words.into_iter().map(normal).collect()
}

pub(crate) fn run(args: &ServeArgs) -> Result<u8, Failure> {
    let folders = match &args.nodes.store {
        Some(_) => None,
        None => Some(own_folders(args)?),
    };
    let pages = host::Pages::read(&args.tunables)?;
    let reach = args.tunables.reach(&pages)?;
    let logs = logs_folder(args)?;
    let daily = logs.as_deref().map(|folder| logging::Daily { folder, days: usize::from(args.log_days) });
    let _logging = logging::start("info", daily)?;
    let listener = host::listen(args.tunables.bind, Some(args.port), args.port)?;
    let address = host::address(&listener, reach.certificate.is_some());
    let data = match args.nodes.config(&listener, &address, pages.trust())? {
        Some(config) => DataPlace::Node(config),
        None => {
            let db = folder::existing("state database directory", &args.db);
            DataPlace::Embedded(db.map_err(|fail| named(fail, "db"))?)
        }
    };
    let folders = match (folders, &data) {
        (None, DataPlace::Node(config)) => node::definitions(config)?,
        (Some(folders), _) => folders,
        (None, DataPlace::Embedded(_)) => own_folders(args)?,
    };
    let apps = args.apps.source(&folders.workflows)?;
    // A node of several has nobody who would ask for each step.
    let auto_schedule = args.auto_schedule.or(args.nodes.store.as_ref().map(|_| 1));
    let welcome = welcome(auto_schedule, &address, &data);
    let own_worker = args.nodes.own_worker(pages.secrets(), pages.trust())?;
    let host = host::start(host::Plan {
        folders,
        apps,
        data,
        pace: if auto_schedule.is_some() { Pace::ByItself } else { Pace::Stepped },
        reload_every: Duration::from_secs(auto_schedule.unwrap_or(1).min(3600)),
        tunables: &args.tunables,
        pages,
        listener,
        reach,
        leases: args.lease.of_workers(),
        worker_token: args.workers.then(location::random).transpose()?,
        instance: None,
        own_worker,
    })?;
    match host.role() {
        host::Role::Leader => {}
        // `kelos nodes` says which one leads; at its start it may not have looked yet.
        host::Role::Standby if args.nodes.store.is_some() => {}
        host::Role::Standby => text::line(
            "another server leads on this database; this one is a standby: it answers reads, and takes over when the leader ends",
        ),
        host::Role::Troubled(reason) => {
            text::line(format!("it can't schedule yet: failed to {reason}; it keeps trying"));
        }
        host::Role::Damaged(reason) => {
            text::line(format!("nothing is scheduled: failed to {reason}; this server only answers reads. {MENDING}"));
        }
    }
    host.serve(|| text::line(welcome))?;
    Ok(0)
}

/// The folder that was asked for, or the one where Celos keeps its logs, if there is one.
fn logs_folder(args: &ServeArgs) -> Result<Option<PathBuf>, Failure> {
    match &args.logs {
        Some(logs) => folder::existing("logs directory", logs).map(Some).map_err(|fail| named(fail, "logs")),
        None => Ok(Some(PathBuf::from(USUAL_LOGS)).filter(|logs| logs.is_dir())),
    }
}

/// The folders of a server that reads its own.
fn own_folders(args: &ServeArgs) -> Result<Folders, Failure> {
    Ok(Folders {
        workflows: folder::existing("workflows directory", &args.workflows).map_err(|fail| named(fail, "workflows"))?,
        defaults: folder::existing("defaults directory", &args.defaults).map_err(|fail| named(fail, "defaults"))?,
    })
}

fn welcome(auto_schedule: Option<u64>, address: &str, data: &DataPlace) -> String {
    let state = data.folder().display();
    let version = env!("CARGO_PKG_VERSION");
    let place = match data {
        DataPlace::Embedded(_) => format!("kelos {version} answers at {address}; its state is in {state}"),
        DataPlace::Node(config) => {
            format!("kelos {version} answers at {address} as the node {}; its state is in {state}", config.node)
        }
    };
    let schedules = match (auto_schedule, data) {
        (_, DataPlace::Node(_)) => {
            "whichever node leads schedules; definitions come by `kelos deploy --server`".to_owned()
        }
        (Some(seconds), _) => format!("it schedules automatically and reloads changed scripts every {seconds} s"),
        (None, _) => format!(
            "it schedules only on request: curl -X POST {address}/scheduler\n\
             (with --autoSchedule SECONDS it schedules automatically)"
        ),
    };
    format!("{place}\n{schedules}")
}

fn named(failure: Failure, option: &str) -> Failure {
    failure.hint(format!("make it, or name another one with --{option}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_two(words: &[&str]) -> Vec<OsString> {
        double_dashes(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn options_with_one_dash_are_those_with_two() {
        let words = with_two(&["kelos", "serve", "-port", "8080", "-autoSchedule=5", "--db", "-1"]);
        assert_eq!(words, ["kelos", "serve", "--port", "8080", "--autoSchedule=5", "--db", "-1"]);
        assert_eq!(with_two(&["kelos", "up", "-port"]), ["kelos", "up", "-port"]);
    }
}
