//! Mistakes in definitions: all of them at once, each with the line of code that it is about.

use std::error::Error;
use std::fmt;
use std::panic::Location;

/// A mistake in the definition of a job.
///
/// ```
/// # use kelos::embed::{Context, Project, job};
/// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
/// let project = Project::new("two", "1.0").add(job("a/b", work).with(()).on_demand());
/// let mistakes = project.check().expect_err("an id has no slash");
/// assert_eq!(mistakes.0[0].job, "a/b");
/// assert!(mistakes.0[0].line > 0 && mistakes.0[0].file.ends_with(".rs"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The id of the job, as it was given; the name of the project where the project has the mistake.
    pub job: String,
    /// The file of the definition.
    pub file: String,
    /// The line of the definition, from 1.
    pub line: u32,
    /// The mistake, in words.
    pub message: String,
    /// The advice, where there is some.
    pub hint: Option<String>,
}

impl Mistake {
    pub(super) fn new(job: &str, place: &Location<'_>, message: impl Into<String>) -> Mistake {
        Mistake {
            job: job.to_owned(),
            file: place.file().to_owned(),
            line: place.line(),
            message: message.into(),
            hint: None,
        }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Mistake {
        Mistake { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, "\n  hint: {hint}"))
    }
}

/// All mistakes of a project; at least one.
///
/// ```
/// # use kelos::embed::{Context, Project, job};
/// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
/// let twice = || job("work", work).with(()).on_demand();
/// let mistakes = Project::new("two", "1.0").add(twice()).add(twice()).check().expect_err("the id is taken");
/// assert_eq!(mistakes.0.len(), 1);
/// assert!(mistakes.to_string().starts_with("define the project: 1 mistake"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "define the project: {count} {}", if count == 1 { "mistake" } else { "mistakes" })?;
        self.0.iter().try_for_each(|mistake| write!(f, "\n{mistake}"))
    }
}

impl Error for Mistakes {}
