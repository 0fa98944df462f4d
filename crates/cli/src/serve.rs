//! `kelos serve`: a server as operators of Celos know it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kelos_engine::{MENDING, Pace};
use kelos_sandbox::Folders;

use crate::apps::Apps;
use crate::failure::Failure;
use crate::host::{self, Tunables};
use crate::options::{CELOS_DEFAULTS, CELOS_WORKFLOWS};
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
    apps: Apps,
    #[command(flatten)]
    tunables: Tunables,
}

/// The options that may be written with one dash.
const OPTIONS: [&str; 17] = [
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
];

/// The default folder of the log, besides standard error, if it exists and no other is named.
const USUAL_LOGS: &str = "/var/log/celos";

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
    let folders = Folders {
        workflows: folder::existing("workflows directory", &args.workflows).map_err(|fail| named(fail, "workflows"))?,
        defaults: folder::existing("defaults directory", &args.defaults).map_err(|fail| named(fail, "defaults"))?,
    };
    let pages = host::Pages::read(&args.tunables)?;
    let reach = args.tunables.reach(&pages)?;
    let data = folder::existing("state database directory", &args.db).map_err(|fail| named(fail, "db"))?;
    let logs = logs_folder(args)?;
    let daily = logs.as_deref().map(|folder| logging::Daily { folder, days: usize::from(args.log_days) });
    let _logging = logging::start("info", daily)?;
    let listener = host::listen(args.tunables.bind, Some(args.port), args.port)?;
    let address = host::address(&listener, reach.certificate.is_some());
    let apps = args.apps.source(&folders.workflows)?;
    let host = host::start(host::Plan {
        folders,
        apps,
        data: data.clone(),
        pace: if args.auto_schedule.is_some() { Pace::ByItself } else { Pace::Stepped },
        reload_every: Duration::from_secs(args.auto_schedule.unwrap_or(1).min(3600)),
        tunables: &args.tunables,
        pages,
        listener,
        reach,
        workers: None,
        instance: None,
    })?;
    match host.role() {
        host::Role::Leader => {}
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
    host.serve(|| say(args, &address, &data))?;
    Ok(0)
}

/// The folder that was asked for, or the one where Celos keeps its logs, if there is one.
fn logs_folder(args: &ServeArgs) -> Result<Option<PathBuf>, Failure> {
    match &args.logs {
        Some(logs) => folder::existing("logs directory", logs).map(Some).map_err(|fail| named(fail, "logs")),
        None => Ok(Some(PathBuf::from(USUAL_LOGS)).filter(|logs| logs.is_dir())),
    }
}

fn say(args: &ServeArgs, address: &str, data: &Path) {
    text::line(format!("kelos {} answers at {address}; its state is in {}", env!("CARGO_PKG_VERSION"), data.display()));
    text::line(match args.auto_schedule {
        Some(seconds) => {
            format!("it schedules automatically and reloads changed scripts every {seconds} s")
        }
        None => format!(
            "it schedules only on request: curl -X POST {address}/scheduler\n\
             (with --autoSchedule SECONDS it schedules automatically)"
        ),
    });
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
