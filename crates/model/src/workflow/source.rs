//! Where definitions come from, and who gives them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The source of a definition, with its position there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(from = "StoredSource", into = "StoredSource")]
pub struct Source {
    /// The provenance: who gave it, and may remove it again.
    pub provenance: Provenance,
    /// Path of the file, relative to the folder of definitions; empty where it is in none.
    pub file: String,
    /// Line of the call that defined it, from 1; 0 where unknown.
    pub line: u32,
}

impl Source {
    /// A place in a file of definitions.
    #[must_use]
    pub fn file(file: impl Into<String>, line: u32) -> Source {
        Source { provenance: Provenance::File, file: file.into(), line }
    }
}

/// The provenance of a definition. Each one changes its own definitions only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// The files of definitions, all of them together.
    File,
    /// Requests: an event schedule that a person created or changed.
    Api,
    /// The program that Kelos is a library of.
    #[default]
    Code,
}

impl Provenance {
    /// Its name, as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Provenance::File => "file",
            Provenance::Api => "api",
            Provenance::Code => "code",
        }
    }

    /// The origin of a definition in words that follow "is".
    #[must_use]
    pub fn whose(self) -> &'static str {
        match self {
            Provenance::File => "defined by a file",
            Provenance::Api => "made over the API",
            Provenance::Code => "defined by the program",
        }
    }

    /// The provenance of a source that was stored before provenance was: a definition in no file was created by a request.
    fn of_old(file: &str) -> Provenance {
        if file.is_empty() { Provenance::Api } else { Provenance::File }
    }
}

/// In words: "the files of definitions", "the API", "the program".
impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Provenance::File => "the files of definitions",
            Provenance::Api => "the API",
            Provenance::Code => "the program",
        })
    }
}

/// A source as JSON has it: without its provenance where the file says it.
#[derive(Serialize, Deserialize)]
struct StoredSource {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provenance: Option<Provenance>,
    file: String,
    line: u32,
}

impl From<StoredSource> for Source {
    fn from(StoredSource { provenance, file, line }: StoredSource) -> Source {
        Source { provenance: provenance.unwrap_or_else(|| Provenance::of_old(&file)), file, line }
    }
}

impl From<Source> for StoredSource {
    fn from(Source { provenance, file, line }: Source) -> StoredSource {
        StoredSource { provenance: Some(provenance).filter(|one| *one != Provenance::of_old(&file)), file, line }
    }
}
