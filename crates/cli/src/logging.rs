//! The log of a server: to standard error, and to a file where one is asked for.

use std::fs::OpenOptions;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;

use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

use crate::failure::Failure;

/// Starts logging; `usual` is the filter where `KELOS_LOG` says nothing.
pub(crate) fn start(usual: &str, file: Option<&Path>) -> Result<(), Failure> {
    let wanted = std::env::var("KELOS_LOG").ok().filter(|wanted| !wanted.is_empty());
    let filter = EnvFilter::try_new(wanted.as_deref().unwrap_or(usual)).map_err(|error| {
        Failure::usage(format!("read the filter in KELOS_LOG: {error}")).hint("such as info, or kelos=debug,warn")
    })?;
    let file = file.map(open).transpose()?;
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    let to_file = file.map(|file| fmt::layer().with_ansi(false).with_writer(BoxMakeWriter::new(Mutex::new(file))));
    tracing_subscriber::registry()
        .with(filter)
        .with(fmt::layer().with_ansi(colours).with_writer(std::io::stderr))
        .with(to_file)
        .init();
    Ok(())
}

fn open(path: &Path) -> Result<std::fs::File, Failure> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|error| Failure::usage(format!("write the log {}: {error}", path.display())))
}
