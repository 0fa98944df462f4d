//! The watch of a shim over the folder of its run.
//!
//! Without its folder a run can't be found, cancelled or adopted, and its outcome can't be kept. So the shim ends the command
//! once the folder was removed or moved away.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::records::{self, CLAIM};

/// The reason for which a command is ended whose folder is gone.
pub(crate) const ENDED_WITHOUT_FOLDER: &str =
    "the folder of the run was removed or moved while it ran, so its command was ended";

/// The time between two looks at the folder.
const LOOK_AT_FOLDER: Duration = Duration::from_secs(2);

/// The time until a second look confirms the first one that found no folder.
const CONFIRM: Duration = Duration::from_millis(500);

/// The device and the number of a file, and when it last changed: the number of a file that was removed is used again.
type FileIdentity = (u64, u64, i64, i64);

fn identity(file: &Metadata) -> FileIdentity {
    (file.dev(), file.ino(), file.ctime(), file.ctime_nsec())
}

/// The watch over a folder with a claim.
pub(crate) struct FolderWatch {
    dir: PathBuf,
    /// The tag of the claim.
    tag: String,
    /// The file of the claim, if it was there.
    file: Option<FileIdentity>,
    next: Instant,
    was_missing: bool,
}

impl FolderWatch {
    /// Watches the folder of a run that was just claimed under a tag.
    pub(crate) fn new(dir: &Path, tag: &str, now: Instant) -> Self {
        let file = fs::symlink_metadata(dir.join(CLAIM)).ok().map(|file| identity(&file));
        Self { dir: dir.to_owned(), tag: tag.to_owned(), file, next: now + LOOK_AT_FOLDER, was_missing: false }
    }

    /// When the next look is due.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Whether two looks in a row have found no folder of this run. Looks only if one is due.
    pub(crate) fn is_gone(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        let is_missing = !self.is_there();
        let is_gone = is_missing && self.was_missing;
        self.was_missing = is_missing;
        self.next = now + if is_missing { CONFIRM } else { LOOK_AT_FOLDER };
        is_gone
    }

    /// Whether the claim of this run is in its place. A file that can't be read for another reason is taken to be there.
    pub(crate) fn is_there(&self) -> bool {
        match fs::symlink_metadata(self.dir.join(CLAIM)) {
            Ok(file) if self.file == Some(identity(&file)) => true,
            // Restored from a copy, or the folder of another run.
            Ok(_) => match records::read_claim(&self.dir) {
                Ok(Some((claim, _))) => claim.tag == self.tag,
                Ok(None) => false,
                Err(_) => true,
            },
            Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::{Claim, create_once};
    use super::*;

    fn claim(dir: &Path, tag: &str) {
        let claim = Claim {
            run_id: "w@1#2".to_owned(),
            tag: tag.to_owned(),
            shim: None,
            host: String::new(),
            claimed_at_ms: 5,
        };
        create_once(dir, CLAIM, &claim).unwrap();
    }

    #[test]
    fn a_folder_is_gone_after_two_looks_in_a_row() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, away) = (temp.path().join("1"), temp.path().join("moved"));
        fs::create_dir(&dir).unwrap();
        claim(&dir, "tag");
        let start = Instant::now();
        let mut watch = FolderWatch::new(&dir, "tag", start);
        let mut now = start + LOOK_AT_FOLDER;
        assert!(!watch.is_gone(now));
        fs::rename(&dir, &away).unwrap();
        now += LOOK_AT_FOLDER;
        assert!(!watch.is_gone(now), "one look may have been in the middle of a change");
        fs::rename(&away, &dir).unwrap();
        now += CONFIRM;
        assert!(!watch.is_gone(now));
        fs::rename(&dir, &away).unwrap();
        now += LOOK_AT_FOLDER;
        assert!(!watch.is_gone(now));
        assert!(!watch.is_gone(now), "no look is due");
        assert!(watch.is_gone(now + CONFIRM));
    }

    #[test]
    fn a_copy_of_the_folder_counts_and_the_folder_of_another_run_does_not() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        claim(dir, "tag");
        let watch = FolderWatch::new(dir, "tag", Instant::now());
        fs::copy(dir.join(CLAIM), dir.join("copy")).unwrap();
        fs::rename(dir.join("copy"), dir.join(CLAIM)).unwrap();
        assert!(watch.is_there());
        fs::remove_file(dir.join(CLAIM)).unwrap();
        claim(dir, "another");
        assert!(!watch.is_there());
    }
}
