//! Each variable of Kelos is in a list that says whether commands inherit it: one that nobody has decided about might be a credential.

use super::source::{is_for_tests, product};
use super::{Faults, Tree};

/// The file with the lists.
const LISTS: &str = "crates/model/src/variables.rs";

/// The beginning of the names of Kelos's variables.
const OURS: &str = "KELOS_";

/// The beginnings of the names that need no line of their own: those of secrets, which people choose, and those of tests.
const FREE: [&str; 2] = ["KELOS_SECRET_", "KELOS_TEST_"];

/// Folders with code that users don't run.
const BY_THE_WAY: [&str; 2] = ["crates/fuzz/", "crates/sim/"];

pub(super) fn check(tree: &Tree) -> Faults {
    let Ok(lists) = tree.text(LISTS) else { return vec![format!("{LISTS}: it is missing")] };
    let mut faults = Faults::new();
    let is_program = |path: &str| {
        let is_rust = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
        let is_python = path.starts_with("python/kelos/") && path.ends_with(".py");
        (is_rust || is_python) && !is_for_tests(path) && !BY_THE_WAY.iter().any(|folder| path.starts_with(folder))
    };
    for file in tree.files.iter().filter(|file| file.path != LISTS && is_program(&file.path)) {
        for name in names(&product(&file.text)) {
            let is_free = FREE.iter().any(|begin| name.starts_with(begin));
            if !is_free && !product(lists).contains(&format!("\"{name}\"")) {
                faults.push(format!("{}: {name} is in no list of {LISTS}: may commands inherit it?", file.path));
            }
        }
    }
    faults.dedup();
    faults
}

/// The quoted names of variables in a source.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(['"', '\'']).filter(|quoted| {
        quoted.strip_prefix(OURS).is_some_and(|rest| {
            let is_of_name = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
            !rest.is_empty() && rest.chars().all(is_of_name)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::Text;
    use super::*;

    #[test]
    fn a_variable_that_nobody_decided_about_is_found() {
        let text = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
        let files = vec![
            text(LISTS, "pub const CREDENTIALS: [&str; 1] = [\"KELOS_TOKEN\"];\n"),
            text("crates/a/src/lib.rs", "env = \"KELOS_TOKEN\"; var(\"KELOS_NEW_PASSWORD\"); \"see KELOS_OTHER\"\n"),
            text("crates/a/src/tests.rs", "var(\"KELOS_SEED\")\n"),
            text("crates/a/src/free.rs", "var(\"KELOS_SECRET_DB\"), starts_with(\"KELOS_\")\n"),
            text("python/kelos/api.py", "os.environ['KELOS_API_KEY']\n"),
        ];
        let faults = check(&Tree { root: std::path::PathBuf::new(), files });
        let end = "is in no list of crates/model/src/variables.rs: may commands inherit it?";
        assert_eq!(
            faults,
            [
                format!("crates/a/src/lib.rs: KELOS_NEW_PASSWORD {end}"),
                format!("python/kelos/api.py: KELOS_API_KEY {end}")
            ]
        );
    }
}
