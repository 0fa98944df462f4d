//! Examples in doc comments are compiled: a crate that cargo does not look through for them has none.

use super::source::crate_of;
use super::{Faults, Tree};

/// Words after a fence that mark a block as Rust; a fence without words does so, too.
const RUST: [&str; 5] = ["rust", "no_run", "should_panic", "compile_fail", "edition"];

pub(super) fn check(tree: &Tree) -> Faults {
    let left_out: Vec<&str> = tree
        .ending("Cargo.toml")
        .filter(|manifest| manifest.text.contains("doctest = false"))
        .map(|manifest| crate_of(&manifest.path))
        .collect();
    let sources = tree.ending(".rs").filter(|file| left_out.contains(&crate_of(&file.path)));
    let examples = sources.flat_map(|file| examples(&file.text).map(move |line| (file, line)));
    examples
        .map(|(file, line)| {
            format!(
                "{}:{line}: an example that nothing compiles, expected no `doctest = false` in {}/Cargo.toml",
                file.path,
                crate_of(&file.path)
            )
        })
        .collect()
}

/// The lines where blocks of Rust begin in doc comments.
fn examples(text: &str) -> impl Iterator<Item = usize> {
    let mut within = false;
    text.lines().enumerate().filter_map(move |(n, line)| {
        let line = line.trim_start();
        let words = line.strip_prefix("///").or(line.strip_prefix("//!"))?.trim().strip_prefix("```")?;
        within = !within;
        let is_rust = words.is_empty() || RUST.iter().any(|word| words.starts_with(word));
        (within && is_rust).then_some(n + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Text;

    #[test]
    fn an_example_in_a_crate_without_doc_tests_is_a_fault() {
        let file = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
        let source = "//! ```text\n//! a\n//! ```\n/// ```\n/// f();\n/// ```\nfn f() {}\n";
        let files = vec![
            file("crates/a/Cargo.toml", "[lib]\ndoctest = false\n"),
            file("crates/a/src/b.rs", source),
            file("crates/c/Cargo.toml", "[package]\n"),
            file("crates/c/src/lib.rs", source),
        ];
        let faults = check(&Tree { root: ".".into(), files });
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with("crates/a/src/b.rs:4: "), "{faults:?}");
    }
}
