//! How the parts of a name become one: namespaces, applications and their versions are projects here, and what belongs to one
//! is named after it.

use std::fmt;

use crate::id::{IdError, WorkflowId};

/// The namespace that goes without saying.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The version that goes without saying.
pub const DEFAULT_VERSION: &str = "-SNAPSHOT";

/// A project that belongs to a namespace and has a version. Written `Purchase` where both go without saying, and
/// `prod:Purchase~1.2` where they don't.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProjectName {
    /// Its namespace.
    pub namespace: String,
    /// Its name there.
    pub application: String,
    /// Its version.
    pub version: String,
}

impl ProjectName {
    /// Reads what [`fmt::Display`] writes.
    #[must_use]
    pub fn read(text: &str) -> ProjectName {
        let (namespace, rest) = text.split_once(':').unwrap_or((DEFAULT_NAMESPACE, text));
        let (application, version) = rest.split_once('~').unwrap_or((rest, DEFAULT_VERSION));
        ProjectName {
            namespace: namespace.to_owned(),
            application: application.to_owned(),
            version: version.to_owned(),
        }
    }

    /// Whether its parts can be told apart once they are one: no `:` in any of them, no `~` in the application.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let has_colon = [&self.namespace, &self.application, &self.version].iter().any(|part| part.contains(':'));
        !has_colon && !self.application.contains('~') && !self.application.is_empty()
    }

    /// The id of a schedule or of a program of the project. A program that is no workflow has its kind in it:
    /// `Purchase.spark:Loader`.
    ///
    /// # Errors
    /// When that is no id.
    pub fn member(&self, kind: Option<&str>, name: &str) -> Result<WorkflowId, IdError> {
        match kind {
            None => WorkflowId::new(&format!("{self}.{name}")),
            Some(kind) => WorkflowId::new(&format!("{self}.{kind}:{name}")),
        }
    }

    /// Kind and name of a member, where an id is that of one.
    #[must_use]
    pub fn member_name<'a>(&self, id: &'a WorkflowId) -> Option<(Option<&'a str>, &'a str)> {
        let name = id.as_str().strip_prefix(&self.to_string())?.strip_prefix('.')?;
        Some(match name.split_once(':') {
            Some((kind, name)) => (Some(kind), name),
            None => (None, name),
        })
    }
}

impl fmt::Display for ProjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace != DEFAULT_NAMESPACE {
            write!(f, "{}:", self.namespace)?;
        }
        f.write_str(&self.application)?;
        if self.version != DEFAULT_VERSION {
            write!(f, "~{}", self.version)?;
        }
        Ok(())
    }
}

/// A dataset of a namespace, as triggers and facts name it: `purchases`, `prod:purchases`.
#[must_use]
pub fn dataset(namespace: &str, name: &str) -> String {
    if namespace == DEFAULT_NAMESPACE { name.to_owned() } else { format!("{namespace}:{name}") }
}

/// Namespace and name of what [`dataset`] gave.
#[must_use]
pub fn dataset_parts(dataset: &str) -> (&str, &str) {
    dataset.split_once(':').unwrap_or((DEFAULT_NAMESPACE, dataset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_whose_parts_could_not_be_told_apart_are_not_sound() {
        let sound = |namespace: &str, application: &str, version: &str| {
            let (namespace, application, version) = (namespace.to_owned(), application.to_owned(), version.to_owned());
            ProjectName { namespace, application, version }.is_sound()
        };
        assert!(sound("prod", "My.App", "1.2~rc"));
        for (namespace, application, version) in
            [("a:b", "A", "1"), ("a", "A:B", "1"), ("a", "A~B", "1"), ("a", "", "1"), ("a", "A", "1:2")]
        {
            assert!(!sound(namespace, application, version), "{namespace} {application} {version}");
        }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in ["Purchase", "prod:Purchase", "Purchase~1.2", "prod:Purchase~1.2-RC"] {
            let project = ProjectName::read(text);
            assert_eq!(project.to_string(), text);
            let id = project.member(Some("spark"), "Loader").expect("an id");
            assert_eq!(project.member_name(&id), Some((Some("spark"), "Loader")));
            assert_eq!(project.member_name(&project.member(None, "Wf").expect("an id")), Some((None, "Wf")));
        }
        let plain = ProjectName::read("Purchase");
        assert_eq!((&*plain.namespace, &*plain.version), (DEFAULT_NAMESPACE, DEFAULT_VERSION));
        assert_eq!(dataset_parts(&dataset("prod", "ds")), ("prod", "ds"));
        assert_eq!(dataset_parts(&dataset("default", "ds")), ("default", "ds"));
    }
}
