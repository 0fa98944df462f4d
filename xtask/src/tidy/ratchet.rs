//! Known violations of rules: `xtask/ratchet.txt` lists them with their numbers, which only fall.

use std::collections::BTreeMap;

use super::{Faults, Tree};

/// The list, relative to the root.
pub(super) const LIST: &str = "xtask/ratchet.txt";

/// Violations of rules: by name, their number and their places.
pub(super) type KnownFaults = BTreeMap<String, (usize, Vec<String>)>;

/// How many places a message names.
const SHOWN: usize = 12;

/// The first words of names in the list, with their rules.
const RULES: [(&str, &str); 6] = [
    ("blocks", "blocks of commands in documents are run"),
    ("cycle", "modules do not need each other in a circle"),
    ("docs", "a doc comment begins by saying what the item is: with more than one word, and no question"),
    ("doubled", "a type name stands at most twice in a crate"),
    ("function", "functions have at most 70 lines"),
    ("name", "types are nouns: neither participles nor pronouns"),
];

pub(super) fn check(tree: &Tree, standing: &KnownFaults) -> Result<Faults, String> {
    let list = read(tree.text(LIST)?)?;
    let mut faults = Faults::new();
    for (name, (count, places)) in standing {
        let most = most(&list, name);
        if *count > most {
            faults.push(format!("{name}: {count}, expected at most {most}: {}; {}", rule(name), some(places)));
        }
    }
    let loose = list.iter().any(|(name, most)| standing.get(name).is_none_or(|(count, _)| count < most));
    if loose && faults.is_empty() {
        faults.push(format!("{LIST}: less is wrong than it says: run `cargo xtask tidy --tighten`"));
    }
    Ok(faults)
}

/// The list without violations that are fixed, and with the current numbers of the others. Nothing is added.
pub(super) fn tightened(tree: &Tree, standing: &KnownFaults) -> Result<String, String> {
    let text = tree.text(LIST)?;
    let list = read(text)?;
    let head: String = text.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    let kept = standing.iter().filter_map(|(name, (count, _))| {
        let least = most(&list, name).min(*count);
        (least > 0).then(|| format!("{name} = {least}\n"))
    });
    Ok(head + &kept.collect::<String>())
}

/// The allowed number of a violation. A cycle may be a part of one that is listed.
fn most(list: &BTreeMap<String, usize>, name: &str) -> usize {
    let part_of = |listed: &str| {
        let whole: Vec<&str> = listed.split(' ').collect();
        name.starts_with("cycle ") && name.split(' ').all(|word| whole.contains(&word))
    };
    list.iter().filter(|(listed, _)| *listed == name || part_of(listed)).map(|(_, most)| *most).max().unwrap_or(0)
}

fn rule(name: &str) -> &'static str {
    let rule = RULES.iter().find(|(first, _)| name.split(' ').next() == Some(first));
    rule.map_or("", |(_, rule)| rule)
}

fn some(places: &[String]) -> String {
    let more = if places.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", places.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", "))
}

fn read(text: &str) -> Result<BTreeMap<String, usize>, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, count) = line.split_once(" = ").ok_or_else(|| format!("read {LIST}: {line}"))?;
            let count = count.parse().map_err(|_| format!("read {LIST}: {line}"))?;
            Ok((name.to_owned(), count))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Text;
    use super::*;

    fn tree(list: &str) -> Tree {
        Tree { root: "/".into(), files: vec![Text { path: LIST.to_owned(), text: list.to_owned() }] }
    }

    fn standing(all: &[(&str, usize)]) -> KnownFaults {
        all.iter().map(|(name, count)| ((*name).to_owned(), (*count, vec!["a.rs:1".to_owned()]))).collect()
    }

    #[test]
    fn more_than_is_listed_is_a_fault_and_so_is_less() {
        let tree = tree("# head\nname Wanted = 3\n");
        let faults = |count| check(&tree, &standing(&[("name Wanted", count)])).unwrap();
        assert!(faults(3).is_empty());
        assert!(faults(4)[0].starts_with("name Wanted: 4, expected at most 3: types are nouns"), "{:?}", faults(4));
        assert!(faults(2)[0].contains("--tighten"));
        assert_eq!(check(&tree, &standing(&[("name Wanted", 3), ("name Told", 1)])).unwrap().len(), 1);
    }

    #[test]
    fn tightening_takes_away_and_adds_nothing() {
        let tree = tree("# head\ncycle a b c = 1\nname Told = 1\nname Wanted = 3\n");
        let now = standing(&[("cycle a b", 1), ("name Found", 1), ("name Wanted", 2)]);
        assert_eq!(tightened(&tree, &now).unwrap(), "# head\ncycle a b = 1\nname Wanted = 2\n");
        assert_eq!(check(&tree, &standing(&[("cycle a d", 1)])).unwrap().len(), 1);
    }
}
