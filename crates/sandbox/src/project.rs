//! What the files of a folder are as units of deployment.

use std::collections::BTreeMap;

use crate::digest::digest;

/// A unit of deployment, as its files say now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Tells what its files say from what they said before: their texts, and what of the outside these used.
    pub digest: String,
    /// Whether its deployment updates schedules, where a file says so or denies it.
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
                // Who wants schedules left alone is heard.
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
