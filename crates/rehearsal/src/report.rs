//! The results of a rehearsal.

use std::fmt;
use std::path::PathBuf;

use jiff::Timestamp;
use kelos_engine::turn::TurnError;
use kelos_model::Breach;
use kelos_model::time::format_short;
use kelos_sandbox::{Problem, TestCase};
use kelos_store::StoreError;

use super::problem;

/// The result of a test.
#[derive(Debug, Clone)]
pub struct Report {
    /// Whether it is as expected.
    pub verdict: Verdict,
    /// The number of slots.
    pub slots: usize,
    /// The number of runs.
    pub runs: usize,
    /// Warnings about the scripts and the test file.
    pub warnings: Vec<Problem>,
    /// The folder of its real commands, where it was to be kept.
    pub folder: Option<PathBuf>,
}

/// The verdict on a test.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// All is as expected.
    Passed,
    /// Something is not.
    Failed(Vec<Mismatch>),
    /// It could not be played to its end: the test, a script or a function of either is wrong.
    Broken(Vec<Problem>),
    /// It was not played.
    Skipped(String),
}

impl Report {
    pub(super) fn broken(problems: Vec<Problem>) -> Report {
        Report { verdict: Verdict::Broken(problems), slots: 0, runs: 0, warnings: Vec::new(), folder: None }
    }

    pub(super) fn skipped(why: &str) -> Report {
        Report { verdict: Verdict::Skipped(why.to_owned()), slots: 0, runs: 0, warnings: Vec::new(), folder: None }
    }
}

/// Something that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The subject: a slot, the slots of a workflow, a path.
    pub about: String,
    /// The expected result.
    pub expected: String,
    /// The actual result.
    pub found: String,
    /// The reasons, as far as the scheduler knows.
    pub because: Vec<String>,
    /// A way to solve it.
    pub hint: Option<String>,
}

impl Mismatch {
    pub(super) fn new(about: impl Into<String>, expected: impl Into<String>, found: impl Into<String>) -> Mismatch {
        let (about, expected, found) = (about.into(), expected.into(), found.into());
        Mismatch { about, expected, found, because: Vec::new(), hint: None }
    }
}

/// `wordcount@…: expected succeeded, found waiting`, and the reasons below it.
impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", self.about, self.expected, self.found)?;
        for reason in &self.because {
            write!(f, "\n  {reason}")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// An error that ends a rehearsal.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The test or a script is wrong.
    Scripts(Vec<Problem>),
    /// Files, or what surrounds real commands; completes "failed to …".
    Files(String),
    /// The store failed.
    Store(StoreError),
    /// An invariant of the scheduler.
    Broken(Breach),
    /// The turns at one moment don't end.
    Endless { at: Timestamp, turns: u64 },
}

impl Trouble {
    pub(super) fn problems(self, file: &str, test: &TestCase) -> Vec<Problem> {
        let here =
            |words: String, hint| vec![problem(file, test.line, format!("kelos.test {:?}: {words}", test.name), hint)];
        match self {
            Trouble::Scripts(problems) => problems,
            Trouble::Files(words) => here(format!("failed to {words}"), None),
            Trouble::Store(error) => here(format!("failed to {error}"), None),
            Trouble::Broken(breach) => {
                let hint = "this is a fault of Kelos, not of the test: report it".to_owned();
                here(format!("the scheduler found something wrong in itself: {breach}"), Some(hint))
            }
            Trouble::Endless { at, turns } => {
                let hint = "are there runs that take no time and fail, with endless retries?".to_owned();
                here(format!("gave up at {} after {turns} turns", format_short(at)), Some(hint))
            }
        }
    }
}

impl From<Problem> for Trouble {
    fn from(problem: Problem) -> Trouble {
        Trouble::Scripts(vec![problem])
    }
}

impl From<TurnError> for Trouble {
    fn from(error: TurnError) -> Trouble {
        match error {
            TurnError::Store(error) => Trouble::Store(error),
            TurnError::Broken(breach) => Trouble::Broken(breach),
            TurnError::Unreadable(unreadable) => Trouble::Files(unreadable.to_string()),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        Trouble::Store(error)
    }
}
