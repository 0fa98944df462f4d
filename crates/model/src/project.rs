//! How the parts of a name become one: namespaces, applications and their versions are projects here, and what belongs to one
//! is named after it.
//!
//! A separator inside of a part is escaped by a `~` before it, so that different parts never give the same text. A `~` that
//! is before a separator is doubled; everywhere else it is an ordinary character.

use std::fmt;

use crate::id::{IdError, WorkflowId};

/// The default namespace.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The default version.
pub const DEFAULT_VERSION: &str = "-SNAPSHOT";

/// The character between the project that a file was deployed with and the file's own name. The name of a deployed project has none.
pub const OF_DEPLOYMENT: char = '+';

/// The character before a separator that belongs to a part.
const ESCAPE: char = '~';

/// The separators inside of what is named after a project: before its name, and after its kind.
const OF_MEMBERS: [char; 2] = ['.', ':'];

/// A part whose separators are escaped.
fn escaped(part: &str, separators: &[char]) -> String {
    let mut text = String::with_capacity(part.len());
    let mut escapes = 0;
    for character in part.chars() {
        if separators.contains(&character) {
            text.extend(std::iter::repeat_n(ESCAPE, escapes + 1));
        }
        escapes = if character == ESCAPE { escapes + 1 } else { 0 };
        text.push(character);
    }
    text
}

/// The inverse of [`escaped`].
fn unescaped(text: &str, separators: &[char]) -> String {
    let mut part = String::with_capacity(text.len());
    let mut escapes = 0;
    for character in text.chars() {
        if separators.contains(&character) {
            // One of them escapes the separator, and of the others each second one is the part's own.
            part.truncate(part.len() - (escapes - escapes / 2));
        }
        escapes = if character == ESCAPE { escapes + 1 } else { 0 };
        part.push(character);
    }
    part
}

fn escapes_at_end(text: &str) -> usize {
    text.len() - text.trim_end_matches(ESCAPE).len()
}

/// A part that a separator follows: an escape at its end does not escape that.
fn closed(part: &str) -> String {
    let escapes = escapes_at_end(part);
    let mut text = part.to_owned();
    text.extend(std::iter::repeat_n(ESCAPE, escapes));
    text
}

/// The inverse of [`closed`].
fn opened(text: &str) -> &str {
    let escapes = escapes_at_end(text);
    text.get(..text.len() - escapes / 2).unwrap_or(text)
}

/// Whether the separator at a position separates: it is not escaped.
fn separates(text: &str, at: usize) -> bool {
    text.get(..at).is_some_and(|before| escapes_at_end(before).is_multiple_of(2))
}

fn around(text: &str, at: usize) -> Option<(&str, &str)> {
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// The parts before and after the first separator that is not escaped.
fn split_at_first(text: &str, separator: char) -> Option<(&str, &str)> {
    let (at, _) = text.match_indices(separator).find(|(at, _)| separates(text, *at))?;
    around(text, at)
}

/// The parts before and after the last separator that is not escaped.
fn split_at_last(text: &str, separator: char) -> Option<(&str, &str)> {
    let (at, _) = text.rmatch_indices(separator).find(|(at, _)| separates(text, *at))?;
    around(text, at)
}

/// A project that belongs to a namespace and has a version. Written `Purchase` where both are the usual ones, and
/// `prod:Purchase~1.2` where they are not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProjectName {
    /// Its namespace.
    pub namespace: String,
    /// Its name there.
    pub application: String,
    /// Its version.
    pub version: String,
}

/// The parts of the id of a schedule or of a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Its project.
    pub project: ProjectName,
    /// The kind of a program that is no workflow.
    pub kind: Option<String>,
    /// Its name in the project.
    pub name: String,
}

impl Member {
    /// Reads the id that [`ProjectName::member`] makes; none where an id has no project in it.
    #[must_use]
    pub fn read(id: &WorkflowId) -> Option<Member> {
        let (project, rest) = split_at_last(id.as_str(), '.')?;
        let part = |text: &str| unescaped(text, &OF_MEMBERS);
        let (kind, name) = match split_at_first(rest, ':') {
            Some((kind, name)) => (Some(part(opened(kind))), part(name)),
            None => (None, part(rest)),
        };
        Some(Member { project: ProjectName::read(opened(project)), kind, name })
    }
}

/// The project with which a file was deployed as one of several: `shop` of `shop+hourly.js`. None of other files.
#[must_use]
pub fn deployed_with(file: &str) -> Option<&str> {
    file.split_once(OF_DEPLOYMENT).map(|(project, _)| project).filter(|project| !project.is_empty())
}

/// The project of a script that does not name another one: that with which it was deployed, or else its own name without `.js`.
#[must_use]
pub fn of_script(file: &str) -> &str {
    deployed_with(file).unwrap_or_else(|| file.strip_suffix(".js").unwrap_or(file))
}

/// Whether a text is the name of a member without the project before it: `History` and `spark:Loader` are short for
/// `Purchase.History` and `prod:Load~1.2.spark:Loader`, and so is `Loader` for the latter.
#[must_use]
pub fn is_short_for(text: &str, id: &WorkflowId) -> bool {
    let rest = split_at_last(id.as_str(), '.').map(|(_, rest)| rest);
    rest == Some(text) || Member::read(id).is_some_and(|member| member.name == text)
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
        let (project, name) = (closed(&self.to_string()), escaped(name, &OF_MEMBERS));
        match kind {
            None => WorkflowId::new(&format!("{project}.{name}")),
            Some(kind) => WorkflowId::new(&format!("{project}.{}:{name}", closed(&escaped(kind, &OF_MEMBERS)))),
        }
    }

    /// The parts of an id that is that of one of its members.
    #[must_use]
    pub fn member_name(&self, id: &WorkflowId) -> Option<Member> {
        Member::read(id).filter(|member| member.project == *self)
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

/// The id of a member as it was before separators inside of its name were escaped: different members could have the same.
#[must_use]
pub fn former_member(project: &str, kind: Option<&str>, name: &str) -> String {
    match kind {
        None => format!("{project}.{name}"),
        Some(kind) => format!("{project}.{kind}:{name}"),
    }
}

/// A dataset of a namespace, as triggers and facts name it: `purchases`, `prod:purchases`.
#[must_use]
pub fn dataset(namespace: &str, name: &str) -> String {
    if namespace == DEFAULT_NAMESPACE && split_at_first(name, ':').is_none() {
        return name.to_owned();
    }
    format!("{}:{name}", closed(&escaped(namespace, &[':'])))
}

/// Namespace and name of what [`dataset`] gave.
#[must_use]
pub fn dataset_parts(dataset: &str) -> (String, &str) {
    match split_at_first(dataset, ':') {
        Some((namespace, name)) => (unescaped(opened(namespace), &[':']), name),
        None => (DEFAULT_NAMESPACE.to_owned(), dataset),
    }
}

/// A dataset as it was typed, in the form in which it is counted: `default:purchases` is `purchases`.
#[must_use]
pub fn dataset_named(text: &str) -> String {
    let (namespace, name) = dataset_parts(text);
    dataset(&namespace, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_belongs_to_the_project_it_was_deployed_with() {
        assert_eq!(of_script("shop+hourly.js"), "shop");
        assert_eq!((of_script("shop.js"), of_script("shop.eu.js"), of_script("+x.js")), ("shop", "shop.eu", "+x"));
        assert_eq!((deployed_with("shop+holidays.txt"), deployed_with("holidays.txt")), (Some("shop"), None));
    }

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
            assert_eq!(id.as_str(), format!("{text}.spark:Loader"));
            let member = |kind: Option<&str>, name: &str| {
                Some(Member { project: project.clone(), kind: kind.map(str::to_owned), name: name.to_owned() })
            };
            assert_eq!(project.member_name(&id), member(Some("spark"), "Loader"));
            assert_eq!(project.member_name(&project.member(None, "Wf").expect("an id")), member(None, "Wf"));
        }
        let plain = ProjectName::read("Purchase");
        assert_eq!((&*plain.namespace, &*plain.version), (DEFAULT_NAMESPACE, DEFAULT_VERSION));
        assert_eq!(dataset_parts(&dataset("prod", "ds")), ("prod".to_owned(), "ds"));
        assert_eq!(dataset_parts(&dataset("default", "ds")), ("default".to_owned(), "ds"));
    }

    #[test]
    fn a_dot_of_a_name_is_no_separator() {
        let id = |project: &str, name: &str| ProjectName::read(project).member(None, name).expect("an id").to_string();
        assert_eq!(id("V~1.2", "3.W"), "V~1.2.3~.W");
        assert_eq!(id("V~1.2.3", "W"), "V~1.2.3.W");
        assert_eq!((id("A", "b.c"), id("A.b", "c")), ("A.b~.c".to_owned(), "A.b.c".to_owned()));
        assert_eq!(id("A", "spark:X"), "A.spark~:X");
        assert_eq!(
            (id("A", "x~"), id("A", "x~.y"), id("A~1~", "x")),
            ("A.x~".into(), "A.x~~~.y".into(), "A~1~~.x".into())
        );
        assert_eq!((dataset_named("default:ds"), dataset_named("default:a:b")), ("ds".into(), "default:a:b".into()));
    }

    #[test]
    fn a_member_is_named_without_its_project() {
        let short = |text: &str, id: &str| is_short_for(text, &WorkflowId::new(id).expect("an id"));
        assert!(short("History", "Purchase.History") && short("Loader", "prod:Load~1.2.Loader"));
        assert!(short("spark:Loader", "A.spark:Loader") && short("Loader", "A.spark:Loader"));
        assert!(short("b.c", "A.b~.c") && short("b~.c", "A.b~.c") && !short("c", "A.b~.c"));
        assert!(!short("History", "History") && !short("tory", "Purchase.History") && !short("", "a"));
    }
}
