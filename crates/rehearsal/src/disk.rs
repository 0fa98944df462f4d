//! The folder of a rehearsal with real commands, and the comparison of its contents with what is expected.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use kelos_sandbox::Compare;
use serde_json::Value;

/// A test may copy, and its commands may write, so many files.
const MOST_FILES: usize = 100_000;

/// The most differences that are reported of one comparison.
const MOST_DIFFERENCES: usize = 10;

/// Completes "failed to …".
fn at<T>(doing: &str, path: &Path, done: io::Result<T>) -> Result<T, String> {
    done.map_err(|error| format!("{doing} {}: {error}", path.display()))
}

/// Writes a file, with the folders above it; a path that ends with a slash is a folder.
pub(super) fn write(root: &Path, path: &str, content: &[u8], is_folder: bool) -> Result<(), String> {
    let target = root.join(path.trim_start_matches('/'));
    let folder = if is_folder { Some(target.as_path()) } else { target.parent() };
    if let Some(folder) = folder {
        at("make", folder, std::fs::create_dir_all(folder))?;
    }
    if is_folder { Ok(()) } else { at("write", &target, std::fs::write(&target, content)) }
}

/// Removes a file or a folder, if it is there.
pub(super) fn remove(root: &Path, path: &str) -> Result<(), String> {
    let target = root.join(path.trim_start_matches('/'));
    let gone = if target.is_dir() { std::fs::remove_dir_all(&target) } else { std::fs::remove_file(&target) };
    match gone {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        gone => at("remove", &target, gone),
    }
}

/// Copies a file or a folder with all that is in it.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if !from.is_dir() {
        if let Some(folder) = to.parent() {
            at("make", folder, std::fs::create_dir_all(folder))?;
        }
        return at("copy", from, std::fs::copy(from, to)).map(|_| ());
    }
    at("make", to, std::fs::create_dir_all(to))?;
    for (path, _) in list(from)? {
        copy(&from.join(&path), &to.join(&path))?;
    }
    Ok(())
}

/// The files below a folder, with their sizes; the file itself, under no name, where it is one. Empty folders end with
/// a slash.
pub(super) fn list(root: &Path) -> Result<BTreeMap<String, u64>, String> {
    let mut files = BTreeMap::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let path = if below.as_os_str().is_empty() { root.to_owned() } else { root.join(&below) };
        let meta = at("look at", &path, std::fs::metadata(&path))?;
        if meta.is_file() {
            files.insert(below.to_string_lossy().into_owned(), meta.len());
        } else if meta.is_dir() {
            let mut is_empty = true;
            for entry in at("list", &path, std::fs::read_dir(&path))? {
                let entry = at("list", &path, entry)?;
                is_empty = false;
                // A link may lead outside, or in a circle.
                if !at("look at", &entry.path(), entry.file_type())?.is_symlink() {
                    open.push(below.join(entry.file_name()));
                }
            }
            if is_empty && !below.as_os_str().is_empty() {
                files.insert(format!("{}/", below.to_string_lossy()), 0);
            }
        }
        if files.len() > MOST_FILES {
            return Err(format!("list {}: there are more than {MOST_FILES} files", root.display()));
        }
    }
    Ok(files)
}

/// The differences between the expected contents and those found, as messages.
pub(super) fn differences(expected: &Path, found: &Path, compare: Compare) -> Result<Vec<String>, String> {
    if !found.exists() {
        return Ok(vec!["nothing is there".to_owned()]);
    }
    let (wanted, there) = (list(expected)?, list(found)?);
    let mut said = Vec::new();
    for name in wanted.keys().filter(|name| !there.contains_key(*name)) {
        said.push(format!("{}is missing", named(name)));
    }
    for name in there.keys().filter(|name| !wanted.contains_key(*name)) {
        said.push(format!("{}was not expected", named(name)));
    }
    for name in wanted.keys().filter(|name| there.contains_key(*name) && !name.ends_with('/')) {
        let read = |root: &Path| {
            let path = if name.is_empty() { root.to_owned() } else { root.join(name) };
            at("read", &path, std::fs::read(&path))
        };
        said.extend(
            difference(&read(expected)?, &read(found)?, compare).map(|words| format!("{}{words}", named(name))),
        );
    }
    let more = said.len().saturating_sub(MOST_DIFFERENCES);
    said.truncate(MOST_DIFFERENCES);
    said.extend((more > 0).then(|| format!("and {more} more differences")));
    Ok(said)
}

fn named(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("{name}: ") }
}

fn difference(expected: &[u8], found: &[u8], compare: Compare) -> Option<String> {
    if compare == Compare::JsonLines {
        return json_difference(&String::from_utf8_lossy(expected), &String::from_utf8_lossy(found));
    }
    if expected == found {
        return None;
    }
    let (Ok(expected), Ok(found)) = (std::str::from_utf8(expected), std::str::from_utf8(found)) else {
        return Some(format!("expected {} bytes that are no text, found {} others", expected.len(), found.len()));
    };
    let (mut wanted, mut there) = (expected.lines(), found.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (wanted.next(), there.next()) {
            (None, None) => return Some("the ends of lines are different".to_owned()),
            (wanted, there) if wanted == there => {}
            (wanted, there) => return Some(line_words(number, wanted, there)),
        }
    }
}

fn line_words(number: usize, wanted: Option<&str>, there: Option<&str>) -> String {
    let words = |line: Option<&str>| line.map_or("no more lines".to_owned(), |line| format!("{:?}", short(line)));
    format!("line {number}: expected {}, found {}", words(wanted), words(there))
}

fn short(line: &str) -> String {
    line.chars().take(200).collect()
}

/// Lines as values, in any order; each as often as expected.
fn json_difference(expected: &str, found: &str) -> Option<String> {
    let counted = |text: &str| -> Result<BTreeMap<String, i64>, String> {
        let mut lines = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let value: Value = serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))?;
            *lines.entry(sorted(value).to_string()).or_default() += 1;
        }
        Ok(lines)
    };
    let (wanted, there) = match (counted(expected), counted(found)) {
        (Ok(wanted), Ok(there)) => (wanted, there),
        (Err(words), _) => return Some(format!("what is expected is no JSON: {words}")),
        (_, Err(words)) => return Some(format!("it is no JSON: {words}")),
    };
    let lacking = |more: &BTreeMap<String, i64>, less: &BTreeMap<String, i64>| {
        more.iter().find(|(line, count)| less.get(*line).unwrap_or(&0) < *count).map(|(line, _)| short(line))
    };
    let missing = lacking(&wanted, &there).map(|line| format!("missing {line}"));
    let surplus = lacking(&there, &wanted).map(|line| format!("not expected {line}"));
    let said: Vec<String> = missing.into_iter().chain(surplus).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// With the fields of objects in order.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields: BTreeMap<String, Value> = map.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_different_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (path, content) in [("want/a", "1\n2\n"), ("want/b", ""), ("have/a", "1\n3\n"), ("have/c/d", "")] {
            write(root, path, content.as_bytes(), false).unwrap();
        }
        let said = differences(&root.join("want"), &root.join("have"), Compare::Bytes).unwrap();
        assert_eq!(said, ["b: is missing", "c/d: was not expected", "a: line 2: expected \"2\", found \"3\""]);
        let none = differences(&root.join("want"), &root.join("nowhere"), Compare::Bytes).unwrap();
        assert_eq!(none, ["nothing is there"]);
        assert!(
            differences(&root.join("nowhere"), &root.join("have"), Compare::Bytes).unwrap_err().starts_with("look at")
        );
    }

    #[test]
    fn lines_of_json_may_come_in_any_order() {
        assert_eq!(json_difference("{\"a\":1,\"b\":2}\n[3]\n", "[3]\n{\"b\":2,\"a\":1}\n"), None);
        assert_eq!(json_difference("1\n1\n", "1\n2").as_deref(), Some("missing 1; not expected 2"));
        assert!(json_difference("1", "{").unwrap().starts_with("it is no JSON: line 1: "));
    }

    #[test]
    fn folders_are_copied_whole() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "from/a/b", b"x", false).unwrap();
        copy(&folder.path().join("from"), &folder.path().join("to")).unwrap();
        assert_eq!(list(&folder.path().join("to")).unwrap(), BTreeMap::from([("a/b".to_owned(), 1)]));
        remove(folder.path(), "to").unwrap();
        remove(folder.path(), "to").unwrap();
    }
}
