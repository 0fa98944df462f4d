//! The name of a project, which is also a name of files and folders.

use std::fmt;

use super::DeployError;

/// Longest name, in bytes: with `.js`, and with the marks of unfinished files, it has to fit into a name of a file.
const LONGEST: usize = 150;

/// A name that is safe as one part of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProjectName(String);

impl ProjectName {
    /// Checks a name.
    ///
    /// # Errors
    /// If it is not safe as a name of files.
    pub fn new(name: impl Into<String>) -> Result<ProjectName, DeployError> {
        let name = name.into();
        let bad = |reason: &str| DeployError::BadName { name: name.clone(), reason: reason.to_owned() };
        if name.is_empty() {
            return Err(bad("expected a name that is not empty"));
        }
        if name.len() > LONGEST {
            return Err(bad(&format!("expected at most {LONGEST} bytes")));
        }
        if name.starts_with(['.', '-']) || !name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) {
            return Err(bad("expected letters, digits, \"-\", \"_\" and \".\", beginning with a letter or a digit"));
        }
        if name.ends_with(".js") || name.ends_with(".test") {
            return Err(bad("expected a name without \".js\" or \".test\" at the end"));
        }
        Ok(ProjectName(name))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of its script, in either folder.
    #[must_use]
    pub fn script(&self) -> String {
        format!("{}.js", self.0)
    }
}

impl fmt::Display for ProjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_safe_part_of_a_path() {
        for good in ["wordcount", "a.b-c_1", "überblick"] {
            assert_eq!(ProjectName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", ".a", "-a", "a/b", "a\\b", "a b", "a\nb", "a.js", "../../etc/x", &"x".repeat(151)] {
            assert!(ProjectName::new(bad).is_err(), "{bad}");
        }
        let told = ProjectName::new("../x").unwrap_err().to_string();
        assert_eq!(
            told,
            "name a project \"../x\": expected letters, digits, \"-\", \"_\" and \".\", beginning with a letter or a digit"
        );
    }
}
