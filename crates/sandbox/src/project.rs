//! The units of deployment that the files of a folder form.

use std::collections::BTreeMap;

use crate::digest::digest;

/// A unit of deployment, as its files say now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The digest of the texts of its files and of the inputs that they used.
    pub digest: String,
    /// Whether deploying it updates schedules; none if no file says.
    pub update_schedules: Option<bool>,
    /// Whether none of its files is broken.
    pub is_whole: bool,
}

/// All projects of a folder, by name.
#[derive(Default)]
pub(crate) struct Projects {
    all: BTreeMap<String, Project>,
}

impl Projects {
    /// Adds a file to its project. The files come in an order that is always the same.
    pub(crate) fn add(&mut self, name: &str, file: Project) {
        match self.all.get_mut(name) {
            None => drop(self.all.insert(name.to_owned(), file)),
            Some(known) => {
                known.digest = digest(&format!("{} {}", known.digest, file.digest));
                known.is_whole &= file.is_whole;
                // One file is enough to leave schedules alone.
                known.update_schedules = match (known.update_schedules, file.update_schedules) {
                    (Some(one), Some(other)) => Some(one && other),
                    (one, other) => one.or(other),
                };
            }
        }
    }

    pub(crate) fn all(self) -> BTreeMap<String, Project> {
        self.all
    }
}

/// A file of which only an earlier version is known.
pub(crate) fn broken() -> Project {
    Project { digest: String::new(), update_schedules: None, is_whole: false }
}
