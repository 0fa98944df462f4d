//! The corpora: files of `fixtures` and `samples`, and what earlier runs found.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of fixtures.
pub(crate) fn fixtures() -> PathBuf {
    root().join("fixtures")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The inputs that once broke a target, each with its file.
#[must_use]
pub fn kept(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = fixtures().join("fuzz").join(target);
    let mut kept: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter_map(|path| Some((path.clone(), fs::read(&path).ok()?)))
        .collect();
    kept.sort();
    kept
}

/// The lines of a file, by its path in the tree.
pub(crate) fn lines(path: &str) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.as_bytes().to_vec()).collect()
}

/// A file.
pub(crate) fn file(path: &str) -> Vec<u8> {
    fs::read(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Texts as a corpus.
pub(crate) fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
