//! The folders of definitions of a node of several, which are as the log has them.

use std::sync::Arc;

use kelos_engine::Handle;
use kelos_scripts::ScriptFolder;
use kelos_store::Queries;

use super::{NodeConfig, NodeError};
use crate::nodes::SharedFiles;

/// The folders of a node of several, as the log has them at its start; none of a node with its own.
pub(super) fn shared_files(config: &NodeConfig, reader: &dyn Queries) -> Result<Option<Arc<SharedFiles>>, NodeError> {
    let Some(folders) = config.folders.clone().filter(|_| config.log.is_some()) else { return Ok(None) };
    let files = SharedFiles::new(folders);
    files.follow(reader)?;
    Ok(Some(Arc::new(files)))
}

/// Keeps the folders of a node of several as the log has them.
pub(super) async fn follow_files(files: Arc<SharedFiles>, scripts: ScriptFolder, handle: Handle) {
    let mut commits = handle.watch_commits();
    while commits.changed().await.is_ok() {
        let (files, scripts, handle) = (files.clone(), scripts.clone(), handle.clone());
        let followed = tokio::task::spawn_blocking(move || match files.follow(&**handle.reader()) {
            Ok(true) => drop(scripts.reload(&handle)),
            Ok(false) => {}
            Err(error) => tracing::error!("failed to {error}; definitions stay as they were"),
        });
        if followed.await.is_err() {
            return;
        }
    }
}

/// Sets files aside that somebody put into the folders of a node of several, before scripts are looked at.
pub(super) fn restoring(files: Option<Arc<SharedFiles>>, handle: Handle) -> impl Fn() + Send + 'static {
    move || {
        if let Some(files) = &files
            && let Err(error) = files.restore(&**handle.reader())
        {
            tracing::error!("failed to {error}; definitions stay as they were");
        }
    }
}
