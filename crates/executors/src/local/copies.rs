//! Copies of the output of ended runs, in a place that is there when the machine on which they ran is not.
//!
//! A copy is a folder with the files of the output under their own names, below the path of the run:
//! `<place>/<workflow>/<key>/<number>`. The record of its end is written last, so a folder that has it is whole. A copy never changes;
//! one that is made again is the same.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kelos_storage::{Place, Storage, StorageError};

use super::blocking::blocking;
use super::folder::OutputFolder;
use super::paths::{RunDirs, RunRef};
use super::records::EXIT;

/// How long the end of a run waits for its copy.
const PATIENCE: Duration = Duration::from_secs(30);

/// The waits before a copy that failed is tried again.
const AGAIN: [Duration; 4] =
    [Duration::from_secs(10), Duration::from_secs(60), Duration::from_secs(300), Duration::from_secs(1800)];

/// Copies that stay on this machine after they were read: pages follow the output that they show.
const FETCHED: usize = 8;

/// Longest file of a copy; more than a run keeps of its output.
const LONGEST_FILE: u64 = 1 << 30;

/// A place for copies of output. Cheap to clone.
#[derive(Clone)]
pub struct OutputCopies {
    inner: Arc<CopiesState>,
}

struct CopiesState {
    place: Place,
    fetched: Mutex<VecDeque<(RunRef, OutputFolder)>>,
}

impl fmt::Debug for OutputCopies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OutputCopies").field(&self.address()).finish()
    }
}

impl OutputCopies {
    /// The copies below a URI. Contacts no server.
    ///
    /// # Errors
    /// If the URI is invalid, or this program can't open it.
    pub fn new(uri: &str, storage: &Storage) -> Result<OutputCopies, StorageError> {
        let place = storage.place(uri)?;
        Ok(OutputCopies { inner: Arc::new(CopiesState { place, fetched: Mutex::default() }) })
    }

    /// Its address, without passwords.
    #[must_use]
    pub fn address(&self) -> String {
        let Place { endpoint, path, .. } = &self.inner.place;
        format!("{endpoint}{path}")
    }

    /// Copies the output of a run that has ended. Where that fails it is tried again later, and the run is not held up any longer.
    pub(super) async fn keep(&self, run: &RunRef, dir: &Path) {
        let Err(why) = self.attempt(run, dir).await else { return };
        tracing::warn!(%run, "failed to {why}; it is tried again");
        let (this, run, dir) = (self.clone(), run.clone(), dir.to_owned());
        tokio::spawn(async move {
            let mut last = why;
            for wait in AGAIN {
                tokio::time::sleep(wait).await;
                match this.attempt(&run, &dir).await {
                    Ok(()) => return,
                    Err(why) => last = why,
                }
            }
            tracing::error!(%run, "failed to {last}; its output stays on this machine alone");
        });
    }

    async fn attempt(&self, run: &RunRef, dir: &Path) -> Result<(), String> {
        let why = match tokio::time::timeout(PATIENCE, self.copy(run, dir)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => why,
            Err(_) => format!("it took longer than {} s", PATIENCE.as_secs()),
        };
        Err(format!("copy the output to {}: {why}", self.address()))
    }

    async fn copy(&self, run: &RunRef, dir: &Path) -> Result<(), String> {
        if !dir.is_dir() {
            // It was removed: no later attempt finds more.
            return Ok(());
        }
        let folder = self.folder(run);
        for path in files(dir).map_err(|error| format!("{}: {error}", dir.display()))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let mut file =
                tokio::fs::File::open(&path).await.map_err(|error| format!("{}: {error}", path.display()))?;
            let put = self.inner.place.files.put(&format!("{folder}/{name}"), &mut file).await;
            put.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// The copy of the output of a run, on this machine; none if there is none.
    ///
    /// # Errors
    /// In words that complete "failed to …", if the place can't be read.
    pub(crate) async fn fetch(&self, run: &RunRef) -> Result<Option<OutputFolder>, String> {
        let known = self.fetched().iter().find(|(known, _)| known == run).map(|(_, folder)| folder.clone());
        if known.is_some() {
            return Ok(known);
        }
        let (files, folder) = (&self.inner.place.files, self.folder(run));
        let entries = files.list(&folder).await.map_err(|error| error.to_string())?.unwrap_or_default();
        if !entries.iter().any(|entry| entry.name == EXIT) {
            return Ok(None);
        }
        let own = |error: std::io::Error| format!("write a copy to this machine: {error}");
        let made =
            tempfile::Builder::new().prefix("kelos-output-").permissions(Permissions::from_mode(0o700)).tempdir();
        let copy = made.map_err(own)?;
        for entry in entries.into_iter().filter(|entry| is_of_output(&entry.name)) {
            let read = files.read(&format!("{folder}/{}", entry.name), LONGEST_FILE).await;
            let content = read.map_err(|error| error.to_string())?;
            let path = copy.path().join(&entry.name);
            blocking(move || fs::write(path, content)).await.map_err(own)?;
        }
        let folder = OutputFolder::of_copy(copy);
        let mut fetched = self.fetched();
        fetched.push_back((run.clone(), folder.clone()));
        if fetched.len() > FETCHED {
            fetched.pop_front();
        }
        Ok(Some(folder))
    }

    /// The path of the copy of a run.
    fn folder(&self, run: &RunRef) -> String {
        let root = format!("{}/", self.inner.place.path.trim_end_matches('/'));
        RunDirs::new(root).path(run).to_string_lossy().into_owned()
    }

    fn fetched(&self) -> MutexGuard<'_, VecDeque<(RunRef, OutputFolder)>> {
        self.inner.fetched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a file of a run's folder is a part of its output: the bytes, their marks, and the end.
fn is_of_output(name: &str) -> bool {
    name == EXIT || (name.starts_with("log") && !name.contains('/'))
}

/// The files to copy from the folder of a run, the end of the run last.
fn files(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if is_of_output(&entry.file_name().to_string_lossy()) {
            files.push(entry.path());
        }
    }
    files.sort_by_key(|path| (path.ends_with(EXIT), path.clone()));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use kelos_storage::StorageConfig;

    use super::*;

    fn copies(folder: &Path) -> OutputCopies {
        OutputCopies::new(&format!("file:{}", folder.display()), &Storage::new(StorageConfig::default())).unwrap()
    }

    #[tokio::test]
    async fn the_output_of_a_run_is_read_from_its_copy() {
        let (runs, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let run = RunRef::new("a/b", "2026-11-26T09:00Z", 3);
        let files = [("log", "one\ntwo\n"), ("exit.json", "{}"), ("spec.json", "{\"env\":{}}"), ("claim", "x")];
        for (name, text) in files {
            fs::write(runs.path().join(name), text).unwrap();
        }
        let copies = copies(place.path());
        assert!(copies.fetch(&run).await.unwrap().is_none());
        copies.keep(&run, runs.path()).await;
        // Commands and what they were given stay where they are.
        let kept = place.path().join("a%2Fb/2026-11-26T09%3A00Z/3");
        let mut names: Vec<_> = fs::read_dir(kept).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["exit.json", "log"]);
        let found = copies.fetch(&run).await.unwrap().unwrap();
        let piece = found.piece(4, 100).await.unwrap();
        assert_eq!((&*piece.bytes, piece.ended, found.length().await.unwrap()), (&b"two\n"[..], true, 8));
    }

    #[tokio::test]
    async fn a_copy_without_the_end_is_none() {
        let place = tempfile::tempdir().unwrap();
        let half = place.path().join("a/k/1");
        fs::create_dir_all(&half).unwrap();
        fs::write(half.join("log"), "half").unwrap();
        assert!(copies(place.path()).fetch(&RunRef::new("a", "k", 1)).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_place_that_can_not_be_written_holds_no_run_up() {
        let (runs, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(runs.path().join("exit.json"), "{}").unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        let why = copies(&file).attempt(&RunRef::new("a", "k", 1), runs.path()).await.unwrap_err();
        assert!(why.starts_with("copy the output to file:") && why.contains(&file.display().to_string()), "{why}");
    }
}
