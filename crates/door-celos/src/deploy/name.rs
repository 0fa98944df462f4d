//! The name of a project, which is also a name of files and folders.

use std::fmt;

use kelos_model::project::{OF_DEPLOYMENT, deployed_with};

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

    /// The name of the script of a project that has one, in either folder.
    #[must_use]
    pub fn script(&self) -> String {
        format!("{}.js", self.0)
    }

    /// The name of a file of a project that has several, in either folder.
    #[must_use]
    pub fn file(&self, name: &str) -> String {
        format!("{}{OF_DEPLOYMENT}{name}", self.0)
    }

    /// Whether a file in either folder, by its name there, belongs to the project.
    #[must_use]
    pub fn owns(&self, file: &str) -> bool {
        file == self.script() || deployed_with(file) == Some(self.as_str())
    }

    /// The same for a file as problems name it: `x.js`, `defaults/x.js`.
    #[must_use]
    pub fn owns_source(&self, file: &str) -> bool {
        self.owns(file.strip_prefix("defaults/").unwrap_or(file))
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
    fn files_of_a_project_are_those_of_its_name() {
        let shop = ProjectName::new("shop").unwrap();
        for own in ["shop.js", "shop+hourly.js", "shop+holidays.txt"] {
            assert!(shop.owns(own) && shop.owns_source(&format!("defaults/{own}")), "{own}");
        }
        for other in ["shop.eu.js", "shopping.js", "a+shop.js", "shop.eu+hourly.js", "shop.txt"] {
            assert!(!shop.owns(other) && !shop.owns_source(other), "{other}");
        }
        assert!(ProjectName::new("shop+eu").is_err(), "so no project has the files of another one");
    }

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
