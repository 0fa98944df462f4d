//! The steps of a deployment.

use std::fmt;

use kelos_storage::Place;

use super::site::shown;

/// A step of a deployment.
#[derive(Clone)]
pub enum Step {
    /// Uploads the files for Oozie beside the old ones, and replaces these.
    PutFolder {
        /// The folder in HDFS.
        place: String,
    },
    /// Removes the folder of an Oozie workflow.
    RemoveFolder {
        /// The folder in HDFS.
        place: String,
    },
    /// Writes a script.
    Write {
        /// The path of the script.
        script: Place,
        /// The text of the script.
        text: String,
    },
    /// Removes a script, or the leftovers of a crash in HDFS.
    Remove {
        /// The path to remove.
        what: Place,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PutFolder { place } => write!(f, "put the files of hdfs/ at {place}"),
            Self::RemoveFolder { place } => write!(f, "remove {place}"),
            Self::Write { script, .. } => write!(f, "write {}", shown(script)),
            Self::Remove { what } => write!(f, "remove {}", shown(what)),
        }
    }
}
