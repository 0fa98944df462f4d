//! Paths of this repository in documents exist.

use super::{Faults, Text, Tree};

/// The beginnings of paths of the repository.
const FOLDERS: [&str; 7] = [".ci/", "crates/", "docs/", "fixtures/", "samples/", "servers/", "xtask/"];

/// Documents about the past: files that they name may be gone.
const RECORDS: [&str; 2] = ["CHANGELOG.md", "docs/design/"];

/// Parts of paths that exist without git: files that samples fetch and write.
const MADE: [&str; 2] = ["/data/", "/.kelos"];

pub(super) fn check(tree: &Tree) -> Faults {
    let pages = tree.ending(".md").filter(|page| !RECORDS.iter().any(|record| page.path.starts_with(record)));
    let mut faults = Faults::new();
    for page in pages {
        for (line, path) in paths(page) {
            if !is_there(tree, path) {
                faults.push(format!("{}:{line}: `{path}` is not there", page.path));
            }
        }
    }
    faults
}

/// Texts between backticks that look like a path of the repository or a file of Rust, with their lines.
fn paths(page: &Text) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (n, line) in page.text.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code || line.starts_with("    ") {
            continue;
        }
        let between = line.split('`').skip(1).step_by(2);
        found.extend(between.filter(|text| looks_like_a_path(text)).map(|text| (n + 1, text)));
    }
    found
}

fn looks_like_a_path(text: &str) -> bool {
    let of_a_path = |c: char| c.is_ascii_alphanumeric() || "/._-*".contains(c);
    let begins = FOLDERS.iter().any(|folder| text.starts_with(folder)) || text.ends_with(".rs");
    begins && text.chars().all(of_a_path) && !MADE.iter().any(|made| text.contains(made))
}

/// Whether a file or a folder of this name exists; of a file of Rust, anywhere. `*` stands for anything but a slash.
fn is_there(tree: &Tree, path: &str) -> bool {
    // The tree has texts only, and pictures are none.
    if !path.contains('*') && tree.root.join(path).exists() {
        return true;
    }
    let wanted: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let anywhere = !FOLDERS.iter().any(|folder| path.starts_with(folder));
    tree.files.iter().any(|file| {
        let names: Vec<&str> = file.path.split('/').collect();
        let from = if anywhere { names.len().saturating_sub(wanted.len()) } else { 0 };
        names.len() >= wanted.len() && wanted.iter().zip(&names[from..]).all(|(wanted, name)| fits(wanted, name))
    })
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((begin, end)) => name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_not_there_are_found() {
        let file = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
        let page = "`crates/a/src/lib.rs`, `crates/a`, `crates/a/src/*.rs`, `src/lib.rs`, `lib.rs`, `docs/…`, `a/b`\n\
                    ```\n`crates/x`\n```\n`crates/a/src/gone.rs` and `gone.rs`\n`crates/a/src/x*.rs`, `docs`, `docs/b`";
        let files =
            vec![file("crates/a/src/lib.rs", ""), file("README.md", page), file("CHANGELOG.md", "`crates/gone`")];
        let found = check(&Tree { root: "/nowhere".into(), files });
        let lines: Vec<&str> = found.iter().map(|fault| fault.split("` is").next().unwrap_or_default()).collect();
        assert_eq!(
            lines,
            [
                "README.md:5: `crates/a/src/gone.rs",
                "README.md:5: `gone.rs",
                "README.md:6: `crates/a/src/x*.rs",
                "README.md:6: `docs/b"
            ]
        );
    }
}
