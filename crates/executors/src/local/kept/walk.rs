//! A walk through the folders of all runs, with memory for one of them at a time.

use std::fs::{self, DirEntry, Metadata, ReadDir};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::super::error::{At, LocalError};
use super::super::paths::{GONE, RunDirs};
use super::super::records::{self, EXIT, RunSpec, SPEC};

/// The bytes of a block, as a file system counts them.
const BLOCK: u64 = 512;

/// The folder of a run, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRun {
    /// The name of its workflow's folder, see [`RunDirs::component`].
    pub workflow: String,
    /// The name of its key's folder.
    pub key: String,
    /// The number of the run.
    pub number: u64,
    /// When its outcome was written; without one, when it last changed.
    pub ended_at: Timestamp,
    /// The space that it takes on the disk.
    pub bytes: u64,
}

/// An entry that a walk comes across.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WalkEntry {
    /// The folder of a run.
    Run(FoundRun),
    /// A folder whose removal was interrupted.
    Leftover {
        /// The name of its workflow's folder.
        workflow: String,
        /// The name of its key's folder.
        key: String,
        /// The number of the run that it had.
        number: u64,
    },
    /// A folder that can't be read.
    Unreadable(String),
}

impl FoundRun {
    /// The key of its slot as executors are given it; none where the folder does not say it.
    #[must_use]
    pub fn given_key(&self, root: &Path) -> Option<String> {
        let decoded = RunDirs::decoded(&self.key);
        decoded.or_else(|| self.spec(root).map(|spec| spec.run.key).filter(|key| RunDirs::component(key) == self.key))
    }

    /// The project of its workflow when it began; none where the folder does not say it.
    #[must_use]
    pub fn project(&self, root: &Path) -> Option<String> {
        self.spec(root).map(|spec| spec.project)
    }

    /// Its folder.
    #[must_use]
    pub fn dir(&self, root: &Path) -> PathBuf {
        root.join(&self.workflow).join(&self.key).join(self.number.to_string())
    }

    /// Whether it has an outcome.
    #[must_use]
    pub fn has_ended(&self, root: &Path) -> bool {
        self.dir(root).join(EXIT).is_file()
    }

    fn spec(&self, root: &Path) -> Option<RunSpec> {
        records::read(&self.dir(root), SPEC).ok().flatten()
    }
}

/// Walks through the folders of all runs below a root, in no particular order, until the visitor breaks. What vanishes meanwhile is
/// passed over, and so is everything that is no folder of a run.
///
/// # Errors
/// When the root can't be read; one that is missing has no runs.
pub fn walk(root: &Path, visit: &mut dyn FnMut(WalkEntry) -> ControlFlow<()>) -> Result<(), LocalError> {
    let workflows = match fs::read_dir(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.at("read", root)?,
    };
    for workflow in workflows {
        let Some((workflow, keys)) = folder(&workflow.at("read", root)?, visit) else { continue };
        for key in keys.filter_map(Result::ok) {
            let Some((key, runs)) = folder(&key, visit) else { continue };
            for run in runs.filter_map(Result::ok) {
                if let Some(found) = found(&workflow, &key, &run)
                    && visit(found).is_break()
                {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// The name and the entries of a real folder with a name such as those of ours.
fn folder(entry: &DirEntry, visit: &mut dyn FnMut(WalkEntry) -> ControlFlow<()>) -> Option<(String, ReadDir)> {
    let name = entry.file_name().into_string().ok()?;
    // The type of the entry itself: a link is none.
    let is_ours = RunDirs::is_component(&name) && entry.file_type().is_ok_and(|kind| kind.is_dir());
    if !is_ours {
        return None;
    }
    match fs::read_dir(entry.path()) {
        Ok(entries) => Some((name, entries)),
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                // A visitor that breaks here does so at the next run, too.
                let _ = visit(unreadable(entry, &error));
            }
            None
        }
    }
}

fn unreadable(entry: &DirEntry, error: &io::Error) -> WalkEntry {
    WalkEntry::Unreadable(format!("read `{}`: {error}", entry.path().display()))
}

fn found(workflow: &str, key: &str, entry: &DirEntry) -> Option<WalkEntry> {
    let name = entry.file_name().into_string().ok()?;
    if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
        return None;
    }
    let (workflow, key) = (workflow.to_owned(), key.to_owned());
    if let Some(number) = name.strip_prefix(GONE) {
        return Some(WalkEntry::Leftover { workflow, key, number: number.parse().ok()? });
    }
    // In one spelling only, so that the path is found again.
    let number: u64 = name.parse().ok().filter(|number: &u64| number.to_string() == name)?;
    let files = match fs::read_dir(entry.path()) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return Some(unreadable(entry, &error)),
    };
    let own = entry.metadata().ok()?;
    let (mut bytes, mut changed, mut ended) = (taken(&own), changed_at(&own), None);
    for file in files.filter_map(Result::ok) {
        let Ok(of_file) = file.metadata() else { continue };
        bytes = bytes.saturating_add(taken(&of_file));
        changed = changed.max(changed_at(&of_file));
        if file.file_name() == EXIT {
            ended = Some(changed_at(&of_file));
        }
    }
    let ended_at = Timestamp::from_second(ended.unwrap_or(changed)).ok()?;
    Some(WalkEntry::Run(FoundRun { workflow, key, number, ended_at, bytes }))
}

fn taken(of: &Metadata) -> u64 {
    of.blocks().saturating_mul(BLOCK)
}

fn changed_at(of: &Metadata) -> i64 {
    of.mtime()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::time::{Duration, SystemTime};

    use super::super::super::paths::RunRef;
    use super::*;

    fn all(root: &Path) -> Vec<WalkEntry> {
        let mut all = Vec::new();
        walk(root, &mut |found| {
            all.push(found);
            ControlFlow::Continue(())
        })
        .unwrap();
        all
    }

    #[test]
    fn runs_are_found_with_their_end_and_what_is_no_run_is_passed_over() {
        let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (root, dirs) = (place.path(), RunDirs::new(place.path()));
        let run = dirs.path(&RunRef::new("a/b", "2016-01-01T12:00Z", 3));
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join("log"), vec![b'x'; 10_000]).unwrap();
        fs::write(run.join(EXIT), "{}").unwrap();
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        fs::File::options().write(true).open(run.join(EXIT)).unwrap().set_modified(end).unwrap();
        fs::create_dir_all(outside.path().join("k/1")).unwrap();
        symlink(outside.path(), root.join("linked")).unwrap();
        symlink(outside.path().join("k"), root.join("a%2Fb/k")).unwrap();
        fs::create_dir_all(root.join("a%2Fb/k2/03")).unwrap();
        fs::create_dir_all(root.join("a%2Fb/k2/.gone-4")).unwrap();
        fs::write(root.join("a%2Fb/k2/5"), "").unwrap();
        fs::create_dir_all(root.join(".hidden/k/1")).unwrap();
        let mut found = all(root);
        found.sort_by_key(|one| matches!(one, WalkEntry::Run(_)));
        let [WalkEntry::Leftover { number: 4, .. }, WalkEntry::Run(one)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&*one.workflow, &*one.key, one.number), ("a%2Fb", "2016-01-01T12%3A00Z", 3));
        assert_eq!(one.ended_at, Timestamp::from_second(1_000_000).unwrap());
        assert!((10_000..100_000).contains(&one.bytes), "{}", one.bytes);
        assert_eq!(one.given_key(root).as_deref(), Some("2016-01-01T12:00Z"));
        assert_eq!(all(&root.join("missing")), []);
    }

    #[test]
    fn a_key_that_is_too_long_for_a_name_is_in_the_spec() {
        let place = tempfile::tempdir().unwrap();
        let (dirs, key) = (RunDirs::new(place.path()), "k".repeat(300));
        let run = RunRef::new("w", &key, 1);
        let dir = dirs.path(&run);
        fs::create_dir_all(&dir).unwrap();
        let [WalkEntry::Run(found)] = &all(place.path())[..] else { panic!("one run") };
        assert_eq!(found.given_key(place.path()), None);
        records::replace(&dir, SPEC, &RunSpec::new(run, "w", ["true"])).unwrap();
        assert_eq!(found.given_key(place.path()), Some(key));
    }
}
