//! Names of types: nouns, and few that mean several things.

use std::collections::BTreeMap;

use super::ratchet::KnownFaults;
use super::source::{code, crate_of, is_for_tests, product, words};
use super::{Text, Tree};

/// How many types of a crate may have one name.
const MOST: usize = 2;

/// The words that begin the definition of a type.
const KINDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// Participles that no ending shows, pronouns, and other words that are no nouns.
const NO_NOUNS: [&str; 76] = [
    "All",
    "Any",
    "Around",
    "Begun",
    "Both",
    "Bound",
    "Broken",
    "Brought",
    "Built",
    "Chosen",
    "Come",
    "Done",
    "Drawn",
    "Each",
    "Every",
    "Fallen",
    "Felt",
    "Forgotten",
    "Found",
    "Frozen",
    "Given",
    "Gone",
    "Good",
    "Got",
    "Grown",
    "Heard",
    "Held",
    "Hidden",
    "How",
    "It",
    "Kept",
    "Known",
    "Left",
    "Lost",
    "Made",
    "Meant",
    "Met",
    "Mine",
    "More",
    "Most",
    "None",
    "Nothing",
    "Only",
    "Other",
    "Others",
    "Over",
    "Paid",
    "Put",
    "Ran",
    "Reran",
    "Risen",
    "Said",
    "Seen",
    "Sent",
    "Shown",
    "Spoken",
    "Stood",
    "Such",
    "Taken",
    "That",
    "These",
    "This",
    "Those",
    "Thrown",
    "Told",
    "Torn",
    "Understood",
    "What",
    "When",
    "Where",
    "Whether",
    "Which",
    "Who",
    "Whom",
    "Why",
    "Written",
];

/// Nouns that end as participles do.
const NOUNS: [&str; 31] = [
    "Bed", "Binding", "Ceiling", "Deed", "Embed", "Encoding", "Ending", "Feed", "Finding", "Firing", "Heading",
    "Listing", "Logging", "Mapping", "Meaning", "Need", "Opening", "Ordering", "Planning", "Rating", "Red", "Reed",
    "Ring", "Seed", "Setting", "Speed", "Spring", "String", "Testing", "Thing", "Timing",
];

pub(super) fn standing(tree: &Tree) -> KnownFaults {
    let mut standing = KnownFaults::new();
    // The places of each name, by crate.
    let mut places: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    for file in tree.ending(".rs").filter(|file| !is_for_tests(&file.path)) {
        for (line, name) in types(file) {
            places.entry((crate_of(&file.path), name)).or_default().push(format!("{}:{line}", file.path));
        }
    }
    for ((_, name), places) in places {
        if !is_noun(&name) {
            add(&mut standing, format!("name {name}"), places.len(), &places);
        }
        if places.len() > MOST {
            add(&mut standing, format!("doubled {name}"), places.len() - MOST, &places);
        }
    }
    standing
}

/// Numbers are summed over all crates, so that splitting a crate breaks no rule.
fn add(standing: &mut KnownFaults, name: String, count: usize, places: &[String]) {
    let entry = standing.entry(name).or_default();
    entry.0 += count;
    entry.1.extend_from_slice(places);
}

/// The types that a file defines outside functions and blocks, with their lines.
fn types(file: &Text) -> Vec<(usize, String)> {
    let code = code(&product(&file.text));
    let lines = code.lines().enumerate().filter(|(_, line)| !line.starts_with(' '));
    let found = lines.filter_map(|(n, line)| {
        let mut words = words(line).skip_while(|word| ["pub", "crate", "super", "in", "unsafe"].contains(word));
        let kind = words.next()?;
        Some((n + 1, words.next().filter(|_| KINDS.contains(&kind))?.to_owned()))
    });
    found.collect()
}

/// Whether the last word of a name may be a noun.
fn is_noun(name: &str) -> bool {
    let last = name.rfind(char::is_uppercase).map_or(name, |at| &name[at..]);
    let participle = last.len() > 3 && (last.ends_with("ed") || last.ends_with("ing"));
    NOUNS.contains(&last) || !participle && !NO_NOUNS.contains(&last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn participles_and_pronouns_are_no_nouns() {
        for name in ["Wanted", "SlotFound", "Which", "Standing", "Told", "EventStored"] {
            assert!(!is_noun(name), "{name}");
        }
        for name in ["Request", "StoredEvent", "Finding", "Feed", "Settings", "ID", "FoundFile"] {
            assert!(is_noun(name), "{name}");
        }
    }

    #[test]
    fn bad_names_and_doubled_names_are_counted() {
        let file = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
        let text = "pub(crate) struct Wanted;\nimpl A {\n    type Error = Told;\n}\nenum Place {\n}\n#[cfg(test)]\nmod tests {\nstruct Told;\n}";
        let files = ["a", "b", "c"].map(|name| file(&format!("crates/x/src/{name}.rs"), text));
        let found = standing(&Tree { root: "/".into(), files: files.into() });
        let counts: Vec<_> = found.iter().map(|(name, (count, _))| (name.as_str(), *count)).collect();
        assert_eq!(counts, [("doubled Place", 1), ("doubled Wanted", 1), ("name Wanted", 3)]);
    }
}
