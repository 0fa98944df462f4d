//! Apps that something else keeps than a file: a thread of their own reads them again and again.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use kelos_sandbox::apps::AppsSource;

/// The text of a `tasks.json`; none if there are no apps.
pub(crate) type AppsText = Result<Option<Arc<str>>, String>;

/// A source of apps that are read at once and then each time that `wait` returns, until the source is dropped. `folder` holds the
/// identifiers and plugins, as that of a `tasks.json` does.
///
/// # Errors
/// When a thread can't be started.
pub(crate) fn followed(
    name: &str,
    folder: &Path,
    template: Option<String>,
    mut wait: impl FnMut() + Send + 'static,
    read: impl Fn() -> AppsText + Send + 'static,
) -> std::io::Result<AppsSource> {
    let latest = Arc::new(Mutex::new(read()));
    let watched = Arc::downgrade(&latest);
    let follow = move || {
        loop {
            wait();
            let Some(latest) = watched.upgrade() else { return };
            let read = read();
            *latest.lock().unwrap_or_else(PoisonError::into_inner) = read;
        }
    };
    std::thread::Builder::new().name("kelos-apps".to_owned()).spawn(follow)?;
    let text = move || latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(AppsSource::of(name, folder, template, text))
}
