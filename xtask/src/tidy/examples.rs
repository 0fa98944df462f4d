//! Every public item of the library's face for jobs has an example, which `cargo test` compiles.

use super::source::product;
use super::{Faults, Text, Tree};

/// The folder whose items are the face of the library.
const FACE: &str = "crates/kelos/src/embed/";

/// The beginnings of public items that can be shown in use.
const ITEMS: [&str; 6] = ["pub fn ", "pub async fn ", "pub struct ", "pub enum ", "pub trait ", "pub const fn "];

pub(super) fn check(tree: &Tree) -> Faults {
    let files = tree.ending(".rs").filter(|file| file.path.starts_with(FACE));
    files.flat_map(without_example).collect()
}

fn without_example(file: &Text) -> Faults {
    let mut faults = Faults::new();
    let mut has_example = false;
    let mut is_attribute = false;
    for (n, line) in product(&file.text).lines().enumerate() {
        let line = line.trim_start();
        match line.strip_prefix("///") {
            Some(doc) => has_example |= doc.trim_start().starts_with("```"),
            // An attribute may go on for several lines.
            None if is_attribute || line.starts_with("#[") => is_attribute = !line.ends_with(']'),
            None => {
                if !has_example && ITEMS.iter().any(|item| line.starts_with(item)) {
                    faults.push(format!("{}:{}: expected an example in its documentation", file.path, n + 1));
                }
                has_example = false;
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_without_an_example_are_named() {
        let text = "/// A job.\n///\n/// ```\n/// let a = 1;\n/// ```\n#[must_use]\n#[expect(\n    lint\n)]\npub fn shown() {}\n\n/// A job.\npub fn bare() {}\nfn own() {}\n";
        let path = format!("{FACE}job.rs");
        let faults = without_example(&Text { path, text: text.to_owned() });
        assert_eq!(faults, [format!("{FACE}job.rs:13: expected an example in its documentation")]);
    }
}
