//! The workers that share the leader's folder, a file for each: so that a new leader knows for whom it has to wait, and for whom in vain.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::Process;

/// The interval of heartbeats.
const BEAT: Duration = Duration::from_secs(1);

/// The number of heartbeats that may be missing, however short a lease is.
const MISSED: u32 = 3;

/// The list of workers, beside the folder of their runs.
#[derive(Debug, Clone)]
pub struct Roll {
    folder: PathBuf,
}

/// The file in the list's folder in which programs of before kept the workers on other machines, which are in the log now.
const ELSEWHERE: &str = ".elsewhere";

/// A worker's entry in the list, which is taken off when it is dropped.
#[derive(Debug)]
pub struct Signature {
    path: PathBuf,
    file: File,
}

impl Roll {
    /// The list that belongs to a folder of runs.
    #[must_use]
    pub fn beside(runs: &Path) -> Roll {
        Roll { folder: runs.with_file_name("workers") }
    }

    /// Enters this process under a name that no other has.
    ///
    /// # Errors
    /// When the folder can't be written, or the system says nothing of processes.
    pub fn sign(&self, name: &str) -> io::Result<Signature> {
        fs::create_dir_all(&self.folder)?;
        let (path, whole) = (self.folder.join(name), serde_json::to_vec(&Process::own()?)?);
        // Appears whole: one that can't be read is taken for dead.
        let beside = self.folder.join(format!(".{name}"));
        let mut file = File::create(&beside)?;
        file.write_all(&whole)?;
        fs::rename(&beside, &path)?;
        Ok(Signature { path, file })
    }

    /// The workers that may still connect: their processes exist, as far as this machine can tell, and sent a heartbeat
    /// within a lease. Entries of processes that ended are removed.
    pub(super) fn living(&self, lease: Duration) -> BTreeSet<Arc<str>> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let named = entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
        let named = named.filter(|(name, _)| !name.starts_with('.'));
        named.filter(|(_, path)| is_living(path, lease)).map(|(name, _)| name.into()).collect()
    }
}

impl Roll {
    /// The workers on other machines that a program of before kept here, with the longest lease of their runs.
    pub(super) fn elsewhere(&self) -> BTreeMap<Arc<str>, Duration> {
        let text = fs::read(self.folder.join(ELSEWHERE)).ok();
        text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// Removes that list, once its workers are in the log.
    pub(super) fn forget_elsewhere(&self) {
        let _ = fs::remove_file(self.folder.join(ELSEWHERE));
    }
}

fn is_living(path: &Path, lease: Duration) -> bool {
    let process = fs::read(path).ok().and_then(|text| serde_json::from_slice::<Process>(&text).ok());
    let Some(process) = process else { return false };
    if process.is_here() && !process.id.is_alive() {
        let _ = fs::remove_file(path);
        return false;
    }
    let beat = fs::metadata(path).and_then(|data| data.modified());
    // A heartbeat in the future is from before the clock was set back, and counts as now.
    let silent = beat.ok().and_then(|beat| SystemTime::now().duration_since(beat).ok()).unwrap_or_default();
    silent <= lease.max(BEAT * MISSED)
}

impl Signature {
    /// Sends heartbeats of this process.
    pub(super) async fn beat(&self) {
        loop {
            tokio::time::sleep(BEAT).await;
            if let Err(error) = self.file.set_modified(SystemTime::now()) {
                tracing::debug!("failed to touch {}: {error}", self.path.display());
            }
        }
    }
}

impl Drop for Signature {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_signed_is_living_until_it_signs_off_is_silent_or_its_process_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let roll = Roll::beside(&folder.path().join("runs"));
        let lease = Duration::from_secs(10);
        assert!(roll.living(lease).is_empty());
        let signature = roll.sign("w1").unwrap();
        assert_eq!(roll.living(lease), ["w1".into()].into());
        signature.file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
        assert!(roll.living(lease).is_empty());
        assert_eq!(roll.living(Duration::from_secs(3600)), ["w1".into()].into());
        drop(signature);
        assert!(roll.living(lease).is_empty());
        let mut gone = Process::own().unwrap();
        gone.id.started += 1;
        let path = folder.path().join("workers").join("w2");
        fs::write(&path, serde_json::to_vec(&gone).unwrap()).unwrap();
        assert!(roll.living(lease).is_empty() && !path.exists());
    }
}
