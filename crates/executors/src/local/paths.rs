//! The paths of the runs' folders: a name from outside becomes one path component that can't leave the root.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use super::error::{At, LocalError};

/// The characters that are escaped in a path component. `%` is one of them, so the encoding is unambiguous.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// File systems stop at 255 bytes for one component.
const LONGEST_COMPONENT: usize = 200;

/// The component of an empty name.
const EMPTY: &str = "%empty";

/// The separator between the kept part of a long name and its hash.
const LONG: &str = "%long-";

/// The beginning of the name of a folder that is being removed.
pub(super) const GONE: &str = ".gone-";

/// The length of the part of a long name that is kept before its hash.
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
        Self { workflow: workflow.into(), key: key.into(), number }
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

    /// Has the runs of a workflow that had another name found by the one that it has by now, where they are not.
    pub fn link(&self, former: &str, name: &str) -> io::Result<()> {
        let (folder, link) = (component(former), self.root.join(component(name)));
        if !self.root.join(&folder).is_dir() || link.symlink_metadata().is_ok() {
            return Ok(());
        }
        std::os::unix::fs::symlink(folder, link)
    }

    /// The name of the folder of a workflow, or of a key.
    #[must_use]
    pub fn component(name: &str) -> String {
        component(name)
    }

    /// Whether a folder may have such a name.
    pub(super) fn is_component(name: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'%');
        !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_plain)
    }

    /// The text that became the name of a folder; none where it was too long for that.
    #[must_use]
    pub fn decoded(name: &str) -> Option<String> {
        if name == EMPTY {
            return Some(String::new());
        }
        let text = percent_decode_str(name).decode_utf8().ok()?.into_owned();
        (component(&text) == name).then_some(text)
    }

    /// The path of a run's folder below the root, without the links of former names.
    pub(super) fn path_below(&self, run: &RunRef) -> String {
        let named = component(&run.workflow);
        let linked =
            std::fs::read_link(self.root.join(&named)).ok().and_then(|to| to.into_os_string().into_string().ok());
        format!("{}/{}/{}", linked.unwrap_or(named), component(&run.key), run.number)
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
        return EMPTY.to_owned();
    }
    let mut encoded = utf8_percent_encode(name, ESCAPED).to_string();
    if encoded.starts_with('.') {
        encoded.replace_range(..1, "%2E");
    }
    if encoded.len() > LONGEST_COMPONENT {
        encoded.truncate(KEPT_OF_LONG_NAME);
        encoded.push_str(&format!("{LONG}{:032x}", fnv1a_128(name.as_bytes())));
    }
    encoded
}

/// FNV-1a with 128 bits: it will never change, which the standard library's hashers don't promise. Two long names with
/// the same hash are distinguished by the run id in the claim.
pub fn fnv1a_128(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62272e07bb014262b821756295c58d;
    const PRIME: u128 = 0x0000000001000000000000000000013b;
    bytes.iter().fold(BASIS, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

/// The number of attempts to make a folder while the removal of another one deletes its parents.
const MAKE_DIR_ATTEMPTS: usize = 10;

/// Makes the folder of a run, for its owner alone.
pub(crate) fn make_dir(dir: &Path) -> Result<(), LocalError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    let mut attempt = 1;
    loop {
        match builder.create(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempt < MAKE_DIR_ATTEMPTS => attempt += 1,
            result => return result.at("create", dir),
        }
    }
}

/// Removes a folder. It is renamed first, so that a crash in between doesn't leave a part of it that looks like a run
/// that never started. Its parents are removed with the last of their runs.
pub(crate) fn remove_dir(dir: &Path) -> Result<(), LocalError> {
    let Some(name) = dir.file_name() else {
        return Ok(());
    };
    let mut hidden = OsString::from(GONE);
    hidden.push(name);
    let hidden = dir.with_file_name(hidden);
    remove_if_there(&hidden)?;
    match fs::rename(dir, &hidden) {
        Ok(()) => remove_if_there(&hidden)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).at("remove", dir),
    }
    for parent in dir.ancestors().skip(1).take(2) {
        // Refused while there are other runs.
        let _ = fs::remove_dir(parent);
    }
    Ok(())
}

fn remove_if_there(dir: &Path) -> Result<(), LocalError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result.at("remove", dir),
    }
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
        for name in
            ["", ".", "..", "../..", "/etc", "a/../b", "\0", ".gone-1", "ü/…", &"x".repeat(300), &"ß".repeat(300)]
        {
            let component = component(name);
            assert!(!component.is_empty() && !component.starts_with('.'), "{name:?} → {component}");
            assert!(component.len() <= LONGEST_COMPONENT && !component.contains(['/', '\0']), "{name:?} → {component}");
            assert!(RunDirs::is_component(&component), "{component}");
            let read = RunDirs::decoded(&component);
            assert!(read.as_deref() == Some(name) || name.len() > KEPT_OF_LONG_NAME && read.is_none(), "{read:?}");
        }
    }

    #[test]
    fn different_names_have_different_folders() {
        let long = "x".repeat(300);
        let names = ["", "%empty", ".", "%2E", "a/b", "a%2Fb", "a", &long, &format!("{long}x")];
        let folders: std::collections::BTreeSet<_> = names.iter().map(|name| component(name)).collect();
        assert_eq!(folders.len(), names.len());
    }
}
