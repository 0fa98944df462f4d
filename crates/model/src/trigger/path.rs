//! Questions about paths.

use serde::{Deserialize, Serialize};

use crate::probe::Conditions;
use crate::template::KeyValues;

/// A question about a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCheck {
    /// The file system in whose words explanations name the path.
    pub system: FileSystem,
    /// A template, absolute or with a scheme: `/logs/${year}`, `file:///data/${year}`.
    pub path: String,
    /// The file system that a path without a scheme belongs to: `hdfs://nameservice1`, `file:///`. A path in it has no
    /// meaning, as in Hadoop.
    pub base: String,
    /// The conditions beside its existence.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// The file system of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystem {
    /// Hadoop's, named by URI.
    Hdfs,
    /// This machine's.
    Local,
    /// Whichever its URI names.
    Any,
}

impl PathCheck {
    /// Asks only that something is there.
    #[must_use]
    pub fn new(system: FileSystem, path: &str, base: &str) -> Self {
        Self { system, path: path.to_owned(), base: base.to_owned(), conditions: Conditions::default() }
    }

    /// The whole URI for a slot. Hadoop's paths are taken as Hadoop resolves a path against a file system: `.` and `..` are
    /// parts of the text, `%` is a character like any other, and a relative path belongs to the home folder there, or to
    /// where the process works for files of this machine.
    #[must_use]
    pub fn uri(&self, values: &KeyValues) -> String {
        self.whole(&values.fill(&self.path))
    }

    /// The whole URI with nothing filled in.
    #[must_use]
    pub fn template(&self) -> String {
        self.whole(&self.path)
    }

    fn whole(&self, path: &str) -> String {
        let own = scheme_of(path);
        if self.system != FileSystem::Hdfs {
            return if own.is_some() { path.to_owned() } else { in_system(server_of(&self.base), path) };
        }
        match own {
            Some(_) => {
                let system = server_of(path);
                in_system(system, &normal(&path[system.len()..]))
            }
            None => in_system(server_of(&self.base), &normal(path)),
        }
    }

    /// Whether its path names its own file system.
    #[must_use]
    pub fn has_own_system(&self) -> bool {
        scheme_of(&self.path).is_some()
    }

    /// The conditions for a slot.
    #[must_use]
    pub fn conditions(&self, values: &KeyValues) -> Conditions {
        let glob = self.conditions.glob.as_ref().map(|glob| values.fill(glob).into_owned());
        Conditions { glob, ..self.conditions.clone() }
    }
}

fn scheme_of(path: &str) -> Option<&str> {
    let (scheme, _) = path.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_scheme.then_some(scheme)
}

/// The scheme and the server of a URI, without its path; of a text without a scheme nothing but slashes at its end is taken
/// away.
fn server_of(uri: &str) -> &str {
    let Some(scheme) = scheme_of(uri) else { return uri.trim_end_matches('/') };
    let after = scheme.len() + 1;
    match uri[after..].strip_prefix("//") {
        Some(rest) => &uri[..after + 2 + rest.find('/').unwrap_or(rest.len())],
        None => &uri[..after],
    }
}

/// The URI of a path in a file system. That of this machine's files is decoded when it is read, so `%` is written for what it is.
fn in_system(system: &str, path: &str) -> String {
    let is_local = scheme_of(system).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file"));
    match (is_local, path.starts_with('/')) {
        (true, true) => format!("file://{}", path.replace('%', "%25")),
        (true, false) => format!("file:{}", path.replace('%', "%25")),
        (false, true) => format!("{system}{path}"),
        (false, false) if system.is_empty() => in_system("file:", path),
        (false, false) => format!("{system}/./{path}"),
    }
}

/// A path without `.`, `..` and slashes that mean nothing, as its text alone has it.
pub(crate) fn normal(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts = Vec::new();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part != ".." {
            parts.push(part);
        } else if parts.last().is_some_and(|last| *last != "..") {
            parts.pop();
        } else if !is_absolute {
            parts.push(part);
        }
    }
    format!("{}{}", if is_absolute { "/" } else { "" }, parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::plain;

    fn uri(path: &str, base: &str) -> String {
        PathCheck::new(FileSystem::Hdfs, path, base).uri(&KeyValues::at("2015-09-03T04:00Z".parse().unwrap()))
    }

    #[test]
    fn a_path_without_scheme_belongs_to_the_base() {
        assert_eq!(uri("/logs/${year}/${hour}00", "hdfs://nameservice1"), "hdfs://nameservice1/logs/2015/0400");
        assert_eq!(uri("/logs/${year}", "hdfs://nameservice1/"), "hdfs://nameservice1/logs/2015");
        assert_eq!(uri("/logs/${year}", "file:///"), "file:///logs/2015");
        assert_eq!(uri("/logs/${year}", "file:"), "file:///logs/2015");
        assert_eq!(uri("/logs/${year}", ""), "/logs/2015");
        assert_eq!(uri("file:///a/${day}", "hdfs://n"), "file:///a/03");
    }

    #[test]
    fn a_path_is_resolved_against_a_file_system_as_hadoop_does() {
        for (path, base, expected) in [
            ("/tmp", "file:///sub", "file:///tmp"),
            ("/tmp", "hdfs://nn:8020/sub/", "hdfs://nn:8020/tmp"),
            ("/tmp", "hdfs:/sub", "hdfs:/tmp"),
            ("foo/${hour}", "hdfs://nn", "hdfs://nn/./foo/04"),
            ("foo/${hour}", "file:///", "file:foo/04"),
            ("./a//b/", "hdfs://nn", "hdfs://nn/./a/b"),
            ("/a/./b/../c//d/", "hdfs://nn", "hdfs://nn/a/c/d"),
            ("/a/../../b", "file:///", "file:///b"),
            ("../b", "file:", "file:../b"),
            ("/p%20q/${day}", "file:///", "file:///p%2520q/03"),
            ("/p%20q", "hdfs://nn", "hdfs://nn/p%20q"),
            ("file:/p%20q/../r%", "hdfs://nn", "file:///r%25"),
            ("hdfs://other/a/../b", "hdfs://nn", "hdfs://other/b"),
            ("hdfs:/a", "hdfs://nn", "hdfs:/a"),
            ("/", "hdfs://nn", "hdfs://nn/"),
            ("foo", "", "file:foo"),
        ] {
            assert_eq!(uri(path, base), expected, "{path} of {base}");
        }
    }

    #[test]
    fn other_paths_keep_their_text() {
        let uri = |system, path: &str, base: &str| {
            PathCheck::new(system, path, base).uri(&KeyValues::at("2015-09-03T04:00Z".parse().unwrap()))
        };
        assert_eq!(uri(FileSystem::Local, "/p%20q/../r", "file:///"), "file:///p%2520q/../r");
        assert_eq!(uri(FileSystem::Any, "s3://b/p%20q//x", ""), "s3://b/p%20q//x");
        assert_eq!(plain("file:///p%2520q"), "/p%20q");
    }

    #[test]
    fn conditions_in_words() {
        let all = Conditions {
            glob: Some("part-*".to_owned()),
            min_count: Some(3),
            min_bytes: Some(1024),
            min_age_seconds: Some(60),
        };
        assert_eq!(all.to_string(), "at least 3 of part-* and 1024 bytes, unchanged for 60 s");
        let files = Conditions { min_count: Some(2), ..Conditions::default() };
        assert_eq!(files.to_string(), "at least 2 files");
        let quiet = Conditions { min_age_seconds: Some(5), ..Conditions::default() };
        assert_eq!(quiet.to_string(), "unchanged for 5 s");
        assert_eq!(Conditions::default().to_string(), "");
    }
}
