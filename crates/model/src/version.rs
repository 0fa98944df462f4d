//! Versions: the text that a project gives to its definitions, and the number of each definition in the log.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::is_invisible;

/// The longest version of a project, in bytes.
pub const LONGEST_VERSION: usize = 100;

/// The version of a project, such as `1.4`, as its definitions carry it. The scheduler compares it, and reads nothing into it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProjectVersion(Arc<str>);

/// The reason for which a text is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// Nothing but white space.
    #[error("a version can't be only whitespace")]
    Blank,
    /// A character that nobody sees.
    #[error("a version can't contain an invisible character: {0:?}")]
    Invisible(String),
    /// Too long.
    #[error("a version of {0} bytes is too long, expected at most {LONGEST_VERSION}")]
    TooLong(usize),
    /// The number of a definition begins so.
    #[error("a version can't begin with \"#\", as the number of a definition does: {0:?}")]
    Number(String),
}

impl ProjectVersion {
    /// Checks and wraps a text.
    ///
    /// # Errors
    /// When it is blank, too long, begins with `#`, or contains an invisible character.
    pub fn new(text: &str) -> Result<ProjectVersion, VersionError> {
        if text.trim().is_empty() {
            return Err(VersionError::Blank);
        }
        if text.chars().any(is_invisible) {
            return Err(VersionError::Invisible(text.to_owned()));
        }
        if text.starts_with('#') {
            return Err(VersionError::Number(text.to_owned()));
        }
        match text.len() {
            length if length > LONGEST_VERSION => Err(VersionError::TooLong(length)),
            _ => Ok(ProjectVersion(text.into())),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProjectVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ProjectVersion {
    type Error = VersionError;

    fn try_from(text: String) -> Result<ProjectVersion, VersionError> {
        ProjectVersion::new(&text)
    }
}

impl From<ProjectVersion> for String {
    fn from(version: ProjectVersion) -> String {
        version.as_str().to_owned()
    }
}

/// The choice of a version: a project's, such as `1.4`, or one definition of a workflow by its number, such as `#3`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum VersionChoice {
    /// All definitions that carry this version.
    Project(ProjectVersion),
    /// The definition with this number.
    Definition(u32),
}

impl VersionChoice {
    /// Whether it is that of a definition.
    #[must_use]
    pub fn is_of(&self, definition: &DefinitionVersion) -> bool {
        match self {
            VersionChoice::Project(version) => definition.project.as_ref() == Some(version),
            VersionChoice::Definition(number) => definition.number == *number,
        }
    }
}

impl FromStr for VersionChoice {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<VersionChoice, VersionError> {
        match text.strip_prefix('#').and_then(|number| number.parse().ok()) {
            Some(number) => Ok(VersionChoice::Definition(number)),
            None => ProjectVersion::new(text).map(VersionChoice::Project),
        }
    }
}

impl TryFrom<String> for VersionChoice {
    type Error = VersionError;

    fn try_from(text: String) -> Result<VersionChoice, VersionError> {
        text.parse()
    }
}

impl From<VersionChoice> for String {
    fn from(version: VersionChoice) -> String {
        version.to_string()
    }
}

impl fmt::Display for VersionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VersionChoice::Project(version) => version.fmt(f),
            VersionChoice::Definition(number) => write!(f, "#{number}"),
        }
    }
}

/// The version of a definition: its number, and that of its project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DefinitionVersion {
    /// Its number, counted from 1 for each workflow.
    pub number: u32,
    /// The version of the project that it carries; none where the project has none.
    pub project: Option<ProjectVersion>,
}

/// A definition of a workflow with its place in the log. Runs that were dispatched later, up to the next one, are its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedVersion {
    /// The log position at which it first came into force.
    pub seq: u64,
    /// Its version.
    pub version: DefinitionVersion,
}

impl DefinedVersion {
    /// The definition among these, which ascend, with which a run began that was dispatched at a position of the log.
    #[must_use]
    pub fn at(definitions: &[DefinedVersion], dispatch: u64) -> Option<&DefinitionVersion> {
        let after = definitions.partition_point(|one| one.seq < dispatch);
        definitions.get(after.checked_sub(1)?).map(|one| &one.version)
    }
}

impl fmt::Display for DefinitionVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.project {
            Some(version) => write!(f, "{version} (#{})", self.number),
            None => write!(f, "#{}", self.number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> ProjectVersion {
        ProjectVersion::new(text).expect("a version")
    }

    #[test]
    fn a_choice_is_a_text_or_a_number() {
        let read = |text: &str| text.parse::<VersionChoice>().map_err(|error| error.to_string());
        assert_eq!(read("1.4"), Ok(VersionChoice::Project(version("1.4"))));
        assert_eq!(read("#3"), Ok(VersionChoice::Definition(3)));
        assert_eq!(read("3"), Ok(VersionChoice::Project(version("3"))));
        let refused = "a version can't begin with \"#\", as the number of a definition does: \"#x\"";
        assert_eq!(read("#x"), Err(refused.to_owned()));
        assert_eq!(read(" "), Err("a version can't be only whitespace".to_owned()));
        assert_eq!(read(&"v".repeat(101)), Err("a version of 101 bytes is too long, expected at most 100".to_owned()));
        assert_eq!(
            read("a\u{202e}b"),
            Err("a version can't contain an invisible character: \"a\\u{202e}b\"".to_owned())
        );
        assert_eq!(read("#3").map(|choice| choice.to_string()), Ok("#3".to_owned()));
    }

    #[test]
    fn a_run_is_of_the_last_definition_before_it() {
        let defined = |seq, number, project| DefinedVersion { seq, version: DefinitionVersion { number, project } };
        let all = [defined(5, 1, None), defined(9, 2, Some(version("1.4")))];
        let at = |seq| DefinedVersion::at(&all, seq).map(ToString::to_string);
        assert_eq!([5, 6, 9, 10].map(at), [None, Some("#1".into()), Some("#1".into()), Some("1.4 (#2)".into())]);
        assert!(VersionChoice::Project(version("1.4")).is_of(&all[1].version));
        assert!(!VersionChoice::Definition(1).is_of(&all[1].version));
    }
}
