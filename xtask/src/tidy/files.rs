//! Rules of single files.

use super::source::product;
use super::{Faults, Text, Tree};

/// How many lines a file may have, without its tests.
const LONGEST: usize = 700;

/// Macros for unfinished code; in two parts, so that this file keeps the rule.
const UNFINISHED: [&str; 3] = [concat!("to", "do!("), concat!("db", "g!("), concat!("unimplem", "ented!(")];

/// The beginnings of paths that exist on one machine only.
const MACHINES: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

pub(super) fn check(tree: &Tree) -> Faults {
    let mut faults = Faults::new();
    for file in &tree.files {
        faults.extend(machine_paths(file));
    }
    for file in tree.ending(".rs") {
        faults.extend(length(file));
        faults.extend(unfinished(file));
    }
    for file in tree.ending("Cargo.toml").filter(|file| file.path != "Cargo.toml") {
        faults.extend(lints(file));
    }
    faults.extend(pure_rooms(tree));
    faults
}

fn machine_paths(file: &Text) -> Faults {
    let bad = |line: &&str| MACHINES.iter().any(|start| begins_a_path(line, start));
    let bad = file.text.lines().enumerate().filter(|(_, line)| bad(line));
    bad.map(|(n, _)| format!("{}:{}: a path of one machine", file.path, n + 1)).collect()
}

/// Whether a path begins with this text in a line, rather than continues with it.
fn begins_a_path(line: &str, start: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~' | '}' | ')' | '*');
    line.match_indices(start).any(|(at, _)| !line[..at].ends_with(inside))
}

fn length(file: &Text) -> Option<String> {
    let for_tests = ["/tests/", "/tests.rs", "/examples/"].iter().any(|part| file.path.contains(part));
    let code = product(&file.text).lines().count();
    (!for_tests && code > LONGEST).then(|| format!("{}: {code} lines, expected at most {LONGEST}: split it", file.path))
}

fn unfinished(file: &Text) -> Faults {
    let lines = file.text.lines().enumerate();
    let bad = lines.filter(|(_, line)| UNFINISHED.iter().any(|name| line.contains(name)));
    bad.map(|(n, line)| format!("{}:{}: unfinished: {}", file.path, n + 1, line.trim())).collect()
}

/// Every crate inherits the lints of the workspace.
fn lints(file: &Text) -> Option<String> {
    let mut lines = file.text.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    let held = lines.find(|line| !line.is_empty()) == Some("workspace = true");
    (!held).then(|| format!("{}: expected [lints] with workspace = true", file.path))
}

/// The pure rooms forbid the same names.
fn pure_rooms(tree: &Tree) -> Option<String> {
    let rules = |path: &str| {
        let file = tree.files.iter().find(|file| file.path == path)?;
        Some(file.text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>())
    };
    let (model, core) = (rules("crates/model/clippy.toml"), rules("crates/core/clippy.toml"));
    (model.is_none() || model != core)
        .then(|| "crates/core/clippy.toml: expected the rules of crates/model/clippy.toml".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> Text {
        Text { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn paths_of_machines_are_found() {
        let work = MACHINES[2];
        let found = |line: &str| !machine_paths(&file("a.md", line)).is_empty();
        assert!(found(&format!("see {work}main")) && found(&format!("\"file://{work}x\"")) && found(work));
        assert!(!found(&format!("samples{work}x")) && !found(&format!("https://example.org{work}x")));
    }

    #[test]
    fn long_files_are_found_and_tests_not_counted() {
        let long = "x\n".repeat(LONGEST + 1);
        assert!(length(&file("crates/a/src/lib.rs", &long)).is_some());
        assert!(length(&file("crates/a/tests/lib.rs", &long)).is_none());
        assert!(length(&file("crates/a/src/lib.rs", &format!("#[cfg(test)]\nmod tests {{\n{long}}}"))).is_none());
        assert!(length(&file("crates/a/src/lib.rs", &format!("#[cfg(test)]\nmod tests;\n{long}"))).is_some());
    }

    #[test]
    fn manifests_without_lints_are_found() {
        assert!(lints(&file("a/Cargo.toml", "[package]\nname = \"a\"\n")).is_some());
        assert!(lints(&file("a/Cargo.toml", "[package]\n[lints]\nworkspace = true\n")).is_none());
    }

    #[test]
    fn what_is_unfinished_is_found() {
        assert_eq!(unfinished(&file("a.rs", &format!("fn a() {{\n    {})\n}}", UNFINISHED[0]))).len(), 1);
    }
}
