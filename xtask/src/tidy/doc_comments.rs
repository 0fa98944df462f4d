//! The doc comment of an item begins by saying what the item is.

use super::ratchet::KnownFaults;
use super::source::{crate_of, is_for_tests, product};
use super::{Text, Tree};

/// First words of a question in place of an answer: "What waits" where "Slots that wait" is meant.
const QUESTIONS: [&str; 7] = ["What", "Who", "Whom", "Whose", "Which", "Where", "Why"];

/// First words that are fine where more follows: "Whether it is final", "When it began".
const CLAUSES: [&str; 2] = ["When", "Whether"];

/// Words after "How" that make a number or a duration of it: "How many runs are live".
const MEASURES: [&str; 18] = [
    "bad", "big", "close", "deep", "far", "fast", "full", "high", "large", "late", "long", "many", "much", "near",
    "often", "old", "soon", "wide",
];

pub(super) fn standing(tree: &Tree) -> KnownFaults {
    let mut standing = KnownFaults::new();
    for file in tree.ending(".rs").filter(|file| !is_for_tests(&file.path)) {
        for line in poor_beginnings(file) {
            let entry = standing.entry(format!("docs {}", crate_of(&file.path))).or_default();
            entry.0 += 1;
            entry.1.push(format!("{}:{line}", file.path));
        }
    }
    standing
}

/// The lines of a file on which a doc comment begins, and doesn't say what its item is.
fn poor_beginnings(file: &Text) -> Vec<usize> {
    let mut found = Vec::new();
    let mut inside = false;
    for (n, line) in product(&file.text).lines().enumerate() {
        let text = line.trim_start().strip_prefix("///");
        if let Some(text) = text.filter(|_| !inside)
            && !says_what_it_is(text.trim())
        {
            found.push(n + 1);
        }
        inside = text.is_some();
    }
    found
}

/// Whether the first line of a doc comment may say what the item is.
fn says_what_it_is(line: &str) -> bool {
    let sentence = line.split_once(". ").map_or_else(|| line.trim_end_matches(['.', ':']), |(sentence, _)| sentence);
    let mut words = sentence.split_whitespace();
    let first = words.next().unwrap_or_default().trim_end_matches([',', ';', ':']);
    let (second, more) = (words.next(), words.next().is_some());
    let is_prose = first.starts_with(char::is_alphabetic);
    match first {
        _ if QUESTIONS.contains(&first) => false,
        "How" => more && second.is_some_and(|word| MEASURES.contains(&word)),
        _ if CLAUSES.contains(&first) => more,
        // A line without an end goes on, and code such as `20140601` is an example.
        _ => second.is_some() || !is_prose || sentence == line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_single_words_do_not_say_what_an_item_is() {
        for line in [
            "What waits.",
            "Which.",
            "Why, in words.",
            "Where it begins. From 1.",
            "How a slot moves.",
            "How many.",
            "How many; at least 1.",
            "When.",
            "Whether so.",
            "Exclusive.",
            "These. And others.",
        ] {
            assert!(!says_what_it_is(line), "{line}");
        }
    }

    #[test]
    fn nouns_verbs_conditions_and_measures_do() {
        for line in [
            "A slot that waits.",
            "Reads a line",
            "Whether it is final.",
            "When it began.",
            "How many runs are live.",
            "How long a run may take, in milliseconds.",
            "`20140601`.",
            "0-59.",
            "Unambiguous",
        ] {
            assert!(says_what_it_is(line), "{line}");
        }
    }

    #[test]
    fn first_lines_are_counted_by_crate_and_tests_are_not() {
        let text = "/// What it is.\n/// Which is long.\nstruct A {\n    /// Its name.\n    /// Which.\n    name: u8,\n    /// Which.\n    it: u8,\n}\n\
                    #[cfg(test)]\nmod tests {\n/// What.\n}";
        let file = |path: &str| Text { path: path.to_owned(), text: text.to_owned() };
        let files = ["crates/a/src/b.rs", "crates/a/src/c/d.rs", "crates/a/tests/e.rs", "xtask/src/main.rs"].map(file);
        let found = standing(&Tree { root: "/".into(), files: files.into() });
        let counts: Vec<_> = found.iter().map(|(name, (count, _))| (name.as_str(), *count)).collect();
        assert_eq!(counts, [("docs crates/a", 4), ("docs xtask", 2)]);
        assert_eq!(found["docs xtask"].1, ["xtask/src/main.rs:1", "xtask/src/main.rs:7"]);
    }
}
