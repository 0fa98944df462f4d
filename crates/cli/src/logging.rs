//! The log of a server: to standard error for people, and to a folder of daily files for programs.

use std::io::IsTerminal;
use std::path::Path;

use tracing_appender::non_blocking::{NonBlocking, WorkerGuard};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

use crate::failure::Failure;

/// The default level of the log. That workers are told to ask elsewhere while a leader ends is no error; and
/// whoever wants a job done now has not asked what is unusual about each app.
pub(crate) const USUAL: &str = "warn,tower_http=off,kelos::first_load::warnings=off";

/// The same for commands that lead for a moment: what is wrong with each app is for `kelos check`, and for those who ask for that app.
pub(crate) const OF_COMMANDS: &str = "warn,tower_http=off,kelos::first_load=off";

/// The folder of daily log files, and how many of them are kept.
pub(crate) struct Daily<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) days: usize,
}

/// Keeps the log going: what is still to be written is written when it is dropped.
pub(crate) struct Logging {
    _files: Option<WorkerGuard>,
}

/// Starts logging; `usual` is the filter where `KELOS_LOG` says nothing.
pub(crate) fn start(usual: &str, daily: Option<Daily<'_>>) -> Result<Logging, Failure> {
    let wanted = std::env::var("KELOS_LOG").ok().filter(|wanted| !wanted.is_empty());
    let filter = EnvFilter::try_new(wanted.as_deref().unwrap_or(usual)).map_err(|error| {
        Failure::usage(format!("read the filter in KELOS_LOG: {error}")).hint("such as info, or kelos=debug,warn")
    })?;
    let (files, guard) = daily.map(|daily| open(&daily)).transpose()?.unzip();
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    tracing_subscriber::registry()
        .with(filter)
        .with(fmt::layer().with_ansi(colours).with_writer(std::io::stderr))
        .with(files.map(|files| fmt::layer().json().flatten_event(true).with_writer(files)))
        .init();
    Ok(Logging { _files: guard })
}

/// A file for each day in UTC, `kelos.2026-01-31.log`; the oldest ones go when there are too many. A thread of its own
/// writes them, so that a slow disk holds nobody up.
fn open(daily: &Daily<'_>) -> Result<(NonBlocking, WorkerGuard), Failure> {
    let files = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("kelos")
        .filename_suffix("log")
        .max_log_files(daily.days)
        .build(daily.folder);
    let files = files.map_err(|error| Failure::usage(format!("write logs in {}: {error}", daily.folder.display())))?;
    Ok(tracing_appender::non_blocking(files))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_oldest_files_go_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["kelos.2020-01-01.log", "kelos.2020-01-02.log", "kelos.2020-01-03.log", "other.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        drop(open(&Daily { folder: folder.path(), days: 2 }).unwrap());
        let names = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
        let names: BTreeSet<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        assert!(names.contains("other.txt") && !names.contains("kelos.2020-01-01.log"), "{names:?}");
        assert_eq!(names.iter().filter(|name| name.starts_with("kelos.")).count(), 2, "{names:?}");
    }
}
