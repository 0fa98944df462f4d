//! Probes: questions to the outside world, and its answers.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::function::FunctionRef;
use crate::id::WorkflowId;
use crate::key::SlotKey;

/// A question to the outside world. Slots that ask the same question share one answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "probe", rename_all = "kebab-case")]
pub enum Probe {
    /// Something is at a path, and meets the conditions.
    Path {
        /// The whole URI.
        uri: String,
        /// The conditions on it.
        #[serde(default, skip_serializing_if = "Conditions::is_empty")]
        conditions: Conditions,
    },
    /// The answer of a script's function.
    Function {
        /// The function.
        function: FunctionRef,
        /// The workflow of the slot that it is asked about.
        workflow: WorkflowId,
        /// The key of the slot.
        key: SlotKey,
    },
}

impl Probe {
    /// Asks only that something is there.
    #[must_use]
    pub fn path(uri: impl Into<String>) -> Self {
        Probe::Path { uri: uri.into(), conditions: Conditions::default() }
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Probe::Path { uri, conditions } if conditions.is_empty() => f.write_str(uri),
            Probe::Path { uri, conditions } => write!(f, "{uri} ({conditions})"),
            Probe::Function { function, workflow, key } => {
                write!(f, "function {} of {} for {workflow}@{key}", function.index, function.file)
            }
        }
    }
}

/// The verdict of the outside world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The answer is yes.
    Yes,
    /// The answer is no, for now.
    No,
    /// No, and that won't change.
    Never,
    /// It could not be asked, or did not answer.
    Failed,
}

/// An answer of the outside world, and what it was based on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeAnswer {
    /// The answer.
    pub verdict: Verdict,
    /// Details, or the reason of the failure, in words; may be empty.
    pub detail: String,
    /// When it was checked.
    pub at: Timestamp,
}

/// Conditions on a path beside its existence. Empty ones always hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Conditions {
    /// The path is a folder, and the question is about those of its files whose names match this: `part-*`. A template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// So many files at least must be there: of those that match, or in the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_count: Option<u32>,
    /// So many bytes at least must be in it: in the file, or in the files of the folder together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_bytes: Option<u64>,
    /// For so many seconds at least nothing must have been written to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_age_seconds: Option<u32>,
}

impl Conditions {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether they are about the files in a folder, and not about the path alone.
    #[must_use]
    pub fn is_about_files_within(&self) -> bool {
        self.glob.is_some() || self.min_count.is_some()
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = match (self.min_count, &self.glob) {
            (None, None) => None,
            (count, None) => Some(format!("{} files", count.unwrap_or(1))),
            (count, Some(glob)) => Some(format!("{} of {glob}", count.unwrap_or(1))),
        };
        let bytes = self.min_bytes.map(|bytes| format!("{bytes} bytes"));
        let amount: Vec<String> = files.into_iter().chain(bytes).collect();
        let amount = (!amount.is_empty()).then(|| format!("at least {}", amount.join(" and ")));
        let age = self.min_age_seconds.map(|seconds| format!("unchanged for {seconds} s"));
        let all: Vec<String> = amount.into_iter().chain(age).collect();
        f.write_str(&all.join(", "))
    }
}

/// The path of a URI of this machine's files, as people write it.
#[must_use]
pub fn plain(uri: &str) -> Cow<'_, str> {
    let path = uri.strip_prefix("file://").or_else(|| uri.strip_prefix("file:"));
    path.map_or(Cow::Borrowed(uri), |path| path.replace("%25", "%").into())
}
