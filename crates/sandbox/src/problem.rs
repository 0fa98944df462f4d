//! Problems of scripts: what is wrong, and where.

use std::fmt;

use kelos_model::WorkflowId;
use serde::{Deserialize, Serialize};

use crate::code::ProblemCode;

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The file, or the workflow it names, is not loaded in its present form, or can never run.
    Error,
    /// Everything is loaded, but something is probably not what was meant.
    Warning,
}

/// A position in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourcePosition {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// Something wrong with a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Its severity.
    pub severity: Severity,
    /// Its kind.
    #[serde(default)]
    pub code: ProblemCode,
    /// The file of the folder, or `defaults/x.js` for a defaults file.
    pub file: String,
    /// Line, from 1; 0 where unknown.
    pub line: u32,
    /// Column, from 1; 0 where unknown.
    pub column: u32,
    /// The message: what is wrong, and what was expected.
    pub message: String,
    /// A way to solve it.
    pub hint: Option<String>,
    /// The workflow it is about, where it is about one.
    pub workflow: Option<WorkflowId>,
    /// Whether an earlier, good version of the file is in use in its place.
    pub kept_last_good: bool,
    /// The text of that line.
    pub source_line: Option<String>,
}

impl Problem {
    /// An error of a file as a whole.
    #[must_use]
    pub fn error(file: &str, code: ProblemCode, message: String) -> Problem {
        Problem {
            severity: Severity::Error,
            code,
            file: file.to_owned(),
            line: 0,
            column: 0,
            message,
            hint: None,
            workflow: None,
            kept_last_good: false,
            source_line: None,
        }
    }

    /// Whether it is an error, not a warning.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// `wordcount.js:3:7: what is wrong (hint)`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        let kind = if self.is_error() { "" } else { "warning: " };
        write!(f, ": {kind}{}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}
