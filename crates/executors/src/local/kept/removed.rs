//! The record of the runs whose folders were removed: text with a line for each, in two files of limited size.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::super::error::{At, LocalError};

/// The file with the newest lines.
const NEWEST: &str = ".removed";
/// The file with those of before.
const BEFORE: &str = ".removed.before";
/// The file with the moment up to which lines were dropped, in milliseconds.
const DROPPED: &str = ".removed.dropped";
/// The size from which a new file is begun.
const LONGEST: u64 = 2 << 20;

/// The record of the runs that were removed below a root.
#[derive(Debug, Clone)]
pub struct RemovedRuns {
    root: PathBuf,
    longest: u64,
}

impl RemovedRuns {
    /// The record below a root, which need not exist yet.
    pub fn new(root: &Path) -> RemovedRuns {
        RemovedRuns { root: root.to_owned(), longest: LONGEST }
    }

    /// Adds the folder of a run, by its path below the root, and the reason of its removal.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn note(&self, path: &str, at: Timestamp, why: &str) -> Result<(), LocalError> {
        let newest = self.root.join(NEWEST);
        if newest.metadata().is_ok_and(|found| found.len() >= self.longest) {
            self.begin_anew().at("write", &newest)?;
        }
        // A line that a crash cut off is ended by the next one.
        let line = format!("\n{}\t{path}\t{why}\n", at.as_millisecond());
        let open = OpenOptions::new().append(true).create(true).open(&newest);
        open.and_then(|mut file| file.write_all(line.as_bytes())).at("write", &newest)
    }

    /// When and why the folder of a run was removed, by its path below the root. A text that can't be read has nothing.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<(Timestamp, String)> {
        let wanted = format!("\t{path}\t");
        [NEWEST, BEFORE].into_iter().find_map(|name| {
            let text = fs::read_to_string(self.root.join(name)).ok()?;
            let found = text.rfind(&wanted)?;
            let begin = text.get(..found)?.rfind('\n')? + 1;
            let at = text.get(begin..found)?.parse().ok()?;
            let why = text.get(found + wanted.len()..)?.lines().next()?;
            Some((Timestamp::from_millisecond(at).ok()?, why.to_owned()))
        })
    }

    /// Whether the folder of a run that ended at a moment may have been removed, and its line, too.
    #[must_use]
    pub fn may_have_dropped(&self, ended_at: Option<Timestamp>) -> bool {
        let dropped = fs::read_to_string(self.root.join(DROPPED)).ok().and_then(|text| text.trim().parse::<i64>().ok());
        dropped.is_some_and(|dropped| ended_at.is_none_or(|at| at.as_millisecond() <= dropped))
    }

    fn begin_anew(&self) -> io::Result<()> {
        let before = self.root.join(BEFORE);
        if let Ok(text) = fs::read_to_string(&before) {
            let times = text.lines().rev().filter_map(|line| line.split('\t').next()?.parse::<i64>().ok());
            if let Some(last) = times.max() {
                fs::write(self.root.join(DROPPED), last.to_string())?;
            }
        }
        fs::rename(self.root.join(NEWEST), before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_was_removed_is_found_until_it_is_dropped() {
        let place = tempfile::tempdir().unwrap();
        let removed = RemovedRuns { longest: 200, ..RemovedRuns::new(place.path()) };
        assert_eq!(removed.find("w/k/1"), None);
        removed.note("w/k/1", at(1), "after 90 days").unwrap();
        removed.note("w/k/11", at(2), "after 9 days").unwrap();
        removed.note("w/k/1", at(3), "after 80 days").unwrap();
        assert_eq!(removed.find("w/k/1"), Some((at(3), "after 80 days".to_owned())));
        assert_eq!(removed.find("k/1"), None);
        // A line that was cut off hides none after it.
        OpenOptions::new().append(true).open(place.path().join(NEWEST)).unwrap().write_all(b"4\tw/k").unwrap();
        removed.note("w/k/2", at(5), "after 90 days").unwrap();
        assert_eq!(removed.find("w/k/2"), Some((at(5), "after 90 days".to_owned())));
        assert!(!removed.may_have_dropped(Some(at(1))));
        for number in 10..40 {
            removed.note(&format!("w/other/{number}"), at(number), "after 90 days").unwrap();
        }
        assert_eq!(removed.find("w/k/1"), None);
        assert!(removed.may_have_dropped(Some(at(1))) && removed.may_have_dropped(None));
        assert!(!removed.may_have_dropped(Some(at(40))));
        assert!(removed.find("w/other/39").is_some());
        let sizes = [NEWEST, BEFORE].map(|name| place.path().join(name).metadata().unwrap().len());
        assert!(sizes.iter().all(|size| *size < 300), "{sizes:?}");
    }
}
