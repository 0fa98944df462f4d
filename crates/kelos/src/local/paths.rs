//! Where the folder of a run is: a name from outside becomes one path component that can't leave
//! the root.

use std::fmt;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

/// What stays as it is in a path component. `%` is not in it, so the encoding is unambiguous.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// File systems stop at 255 bytes for one component.
const LONGEST_COMPONENT: usize = 200;

/// What stays of a longer name in front of its hash.
const KEPT_OF_LONG_NAME: usize = 120;

/// Names one run: the number is that of the attempt for (workflow, key).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunRef {
    /// The workflow's name, any text.
    pub workflow: String,
    /// The slot's key, any text.
    pub key: String,
    /// The number of the run.
    pub number: u64,
}

impl RunRef {
    /// Names the run `number` of a slot.
    pub fn new(workflow: impl Into<String>, key: impl Into<String>, number: u64) -> Self {
        Self {
            workflow: workflow.into(),
            key: key.into(),
            number,
        }
    }
}

impl fmt::Display for RunRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}#{}", self.workflow, self.key, self.number)
    }
}

/// The folders of all runs below one root: `<root>/<workflow>/<key>/<number>`.
#[derive(Clone, Debug)]
pub struct RunDirs {
    root: PathBuf,
}

impl RunDirs {
    /// The folders below `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The root of all run folders.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a run. Different runs have different folders, all below the root, whatever
    /// their names are.
    pub fn path(&self, run: &RunRef) -> PathBuf {
        let mut path = self.root.join(component(&run.workflow));
        path.push(component(&run.key));
        path.push(run.number.to_string());
        path
    }
}

/// One path component for any text: never empty, never with a leading dot, never too long.
fn component(name: &str) -> String {
    if name.is_empty() {
        return "%empty".to_owned();
    }
    let mut encoded = utf8_percent_encode(name, ESCAPED).to_string();
    if encoded.starts_with('.') {
        encoded.replace_range(..1, "%2E");
    }
    if encoded.len() > LONGEST_COMPONENT {
        encoded.truncate(KEPT_OF_LONG_NAME);
        encoded.push_str(&format!("%long-{:032x}", fnv1a_128(name.as_bytes())));
    }
    encoded
}

/// FNV-1a with 128 bits: stable for ever, which the standard library's hashers don't promise. Two
/// long names that collide are told apart by the run id in the claim.
fn fnv1a_128(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62272e07bb014262b821756295c58d;
    const PRIME: u128 = 0x0000000001000000000000000000013b;
    bytes.iter().fold(BASIS, |hash, &byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_stay_readable() {
        assert_eq!(component("etl-hourly_2.0"), "etl-hourly_2.0");
        assert_eq!(component("2026-11-05T10:00Z"), "2026-11-05T10%3A00Z");
    }

    #[test]
    fn nothing_leaves_the_root() {
        for name in [
            "",
            ".",
            "..",
            "../..",
            "/etc",
            "a/../b",
            "\0",
            ".gone-1",
            "ü/…",
            &"x".repeat(300),
            &"ß".repeat(300),
        ] {
            let component = component(name);
            assert!(
                !component.is_empty() && !component.starts_with('.'),
                "{name:?} → {component}"
            );
            assert!(
                component.len() <= LONGEST_COMPONENT && !component.contains(['/', '\0']),
                "{name:?} → {component}"
            );
        }
    }

    #[test]
    fn different_names_have_different_folders() {
        let long = "x".repeat(300);
        let names = [
            "",
            "%empty",
            ".",
            "%2E",
            "a/b",
            "a%2Fb",
            "a",
            &long,
            &format!("{long}x"),
        ];
        let folders: std::collections::BTreeSet<_> =
            names.iter().map(|name| component(name)).collect();
        assert_eq!(folders.len(), names.len());
    }
}
