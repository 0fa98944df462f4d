//! Questions about paths.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::template::KeyValues;

/// A question about a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCheck {
    /// Which file system's words the explanation uses.
    pub system: FileSystem,
    /// A template, absolute or with a scheme: `/logs/${year}`, `file:///data/${year}`.
    pub path: String,
    /// The file system that a path without a scheme belongs to: `hdfs://nameservice1`, `file:///`.
    pub base: String,
    /// What must hold beside that something is there.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// Whose path it is.
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

/// What must hold of what is at a path, beside that it is there. Empty conditions always hold.
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

    /// With its templates filled for a slot.
    fn filled(&self, values: &KeyValues) -> Self {
        let glob = self.glob.as_ref().map(|glob| values.fill(glob).into_owned());
        Self { glob, ..self.clone() }
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

impl PathCheck {
    /// Asks only that something is there.
    #[must_use]
    pub fn new(system: FileSystem, path: &str, base: &str) -> Self {
        Self { system, path: path.to_owned(), base: base.to_owned(), conditions: Conditions::default() }
    }

    /// The whole URI for a slot.
    #[must_use]
    pub fn uri(&self, values: &KeyValues) -> String {
        let path = values.fill(&self.path);
        if has_scheme(&path) {
            return path.into_owned();
        }
        let base = match self.base.trim_end_matches('/') {
            "file:" => "file://",
            base => base,
        };
        format!("{base}{path}")
    }

    /// What must hold for a slot.
    #[must_use]
    pub fn conditions(&self, values: &KeyValues) -> Conditions {
        self.conditions.filled(values)
    }
}

fn has_scheme(path: &str) -> bool {
    path.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
