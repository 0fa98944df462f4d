//! The licences of what is in the program: those of all crates that it is built from, with their texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::platform::Platform;
use crate::workspace::{Outcome, metadata};

/// The crate of the program.
const PROGRAM: &str = "kelos-cli";

/// Beginnings of the names of files with licences.
const LICENCES: [&str; 6] = ["COPYING", "COPYRIGHT", "LICENCE", "LICENSE", "NOTICE", "UNLICENSE"];

/// How many folders below its own a crate has licences of what it carries, such as the C code of others.
const DEPTH: usize = 2;

const BEGINNING: &str = "# Licences of third parties\n\n\
    The program is built from the following packages, and from the standard library of Rust (MIT or Apache-2.0). The texts are those in the\n\
    packages; where one has none, the text of its licence is that of SPDX.\n";

/// The packages with their licences, and then each text, once.
pub(super) fn licences(root: &Path, platform: &Platform) -> Outcome<String> {
    let metadata = metadata(root, &["--locked", "--filter-platform", platform.triple])?;
    let needed = needed(&metadata).ok_or("read what cargo metadata says: expected the dependencies of the program")?;
    let mut text = BEGINNING.to_owned();
    if platform.glibc.is_none() {
        text.push_str("The C library in it is musl (MIT).\n");
    }
    text.push_str("\n## Packages\n\n");
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in needed {
        let field = |name: &str| package[name].as_str().unwrap_or_default();
        let name = format!("{} {}", field("name"), field("version"));
        let _ = writeln!(text, "- {name}: {} ({})", field("license"), field("repository"));
        let folder = Path::new(field("manifest_path")).parent().unwrap_or(root);
        for licence in found(folder, DEPTH)? {
            texts.entry(licence).or_default().insert(name.clone());
        }
    }
    text.push_str("\n## Texts\n");
    let mut texts: Vec<_> = texts.into_iter().collect();
    texts.sort_by(|a, b| a.1.cmp(&b.1));
    for (licence, names) in texts {
        let names = Vec::from_iter(names).join(", ");
        let _ = write!(text, "\n### {names}\n\n````text\n{licence}\n````\n");
    }
    Ok(text)
}

/// The packages from elsewhere that are linked into the program, by name.
fn needed(metadata: &Value) -> Option<Vec<&Value>> {
    let packages: BTreeMap<&str, &Value> =
        metadata["packages"].as_array()?.iter().filter_map(|one| Some((one["id"].as_str()?, one))).collect();
    let nodes: BTreeMap<&str, &Value> =
        metadata["resolve"]["nodes"].as_array()?.iter().filter_map(|one| Some((one["id"].as_str()?, one))).collect();
    let first = packages.iter().find(|(_, package)| package["name"] == PROGRAM)?.0;
    let (mut seen, mut next) = (BTreeSet::new(), vec![*first]);
    while let Some(id) = next.pop() {
        if seen.insert(id) {
            next.extend(
                nodes.get(id)?["deps"]
                    .as_array()?
                    .iter()
                    .filter(|one| is_linked(one))
                    .filter_map(|one| one["pkg"].as_str()),
            );
        }
    }
    let mut found: Vec<&Value> = seen.iter().filter_map(|id| packages.get(id).copied()).collect();
    found.retain(|package| !package["source"].is_null());
    found.sort_by_key(|package| (package["name"].as_str(), package["version"].as_str()));
    Some(found)
}

/// Whether a dependency is used by the program itself, and not by its build or its tests alone.
fn is_linked(dependency: &Value) -> bool {
    dependency["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"].is_null())
}

/// The texts of the licences in a folder, in the order of their paths.
fn found(folder: &Path, depth: usize) -> Outcome<Vec<String>> {
    let failed = |error: std::io::Error| format!("read the licences in {}: {error}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    let mut texts = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_dir() && depth > 0 {
            texts.extend(found(&path, depth - 1)?);
        } else if path.is_file() && LICENCES.iter().any(|licence| name.starts_with(licence)) {
            let text = fs::read(&path).map_err(failed)?;
            texts.push(String::from_utf8_lossy(&text).replace("\r\n", "\n").trim().to_owned());
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn packages_are_those_that_are_linked() {
        let package = |id: &str, source: Value| json!({ "id": id, "name": id, "version": "1.0.0", "source": source });
        let dependency = |id: &str, kind: Value| json!({ "pkg": id, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package(PROGRAM, Value::Null), package("linked", json!("r")), package("built", json!("r")),
                         package("behind", json!("r")), package("other", json!("r"))],
            "resolve": { "nodes": [
                { "id": PROGRAM, "deps": [dependency("linked", Value::Null), dependency("built", json!("build"))] },
                { "id": "linked", "deps": [dependency("behind", Value::Null)] },
                { "id": "behind", "deps": [] },
            ] },
        });
        let names: Vec<_> = needed(&metadata).unwrap().iter().map(|package| package["name"].as_str()).collect();
        assert_eq!(names, [Some("behind"), Some("linked")]);
    }
}
