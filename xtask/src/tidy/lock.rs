//! `Cargo.lock`, read line by line.

use std::collections::{BTreeMap, BTreeSet};

/// Packages by name; if a name has several versions, the union of their entries.
#[derive(Default)]
pub(super) struct Lock {
    pub(super) packages: BTreeMap<String, LockEntry>,
}

#[derive(Default)]
pub(super) struct LockEntry {
    pub(super) sources: BTreeSet<String>,
    pub(super) needs: BTreeSet<String>,
}

pub(super) fn read(text: &str) -> Lock {
    let mut lock = Lock::default();
    for package in text.split("[[package]]").skip(1) {
        let quoted = |line: &str| line.split('"').nth(1).map(str::to_owned);
        let field = |name: &str| package.lines().find(|line| line.starts_with(name)).and_then(quoted);
        let Some(name) = field("name = ") else { continue };
        let locked = lock.packages.entry(name).or_default();
        locked.sources.extend(field("source = "));
        // ` "name",` or ` "name version",`.
        let needs = package.lines().filter(|line| line.starts_with(" \"")).filter_map(quoted);
        locked.needs.extend(needs.filter_map(|need| need.split(' ').next().map(str::to_owned)));
    }
    lock
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read() {
        let text = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry+x\"\n\
                    dependencies = [\n \"b\",\n \"c 2.0.0\",\n]\n\n[[package]]\nname = \"b\"\nversion = \"1.0.0\"\n";
        let lock = read(text);
        assert_eq!(lock.packages.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(lock.packages["a"].needs.iter().collect::<Vec<_>>(), ["b", "c"]);
        assert!(lock.packages["a"].sources.contains("registry+x") && lock.packages["b"].sources.is_empty());
    }
}
