//! Licences, banned crates and sources as `deny.toml` requires, without cargo-deny.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Faults;
use super::lock::Lock;

/// Crates that are banned, or that come from elsewhere than a registry.
pub(super) fn banned(deny: &str, lock: &Lock) -> Faults {
    let mut faults = Faults::new();
    for Ban { name, wrappers } in bans(deny) {
        let needs_it =
            |needed: &&String| lock.packages.get(*needed).is_some_and(|package| package.needs.contains(&name));
        let stray = lock.packages.keys().filter(needs_it).find(|needed| !wrappers.contains(needed));
        match stray {
            Some(stray) if !wrappers.is_empty() => {
                faults.push(format!("Cargo.lock: {name} is banned by deny.toml, and {stray} needs it"));
            }
            _ if wrappers.is_empty() && lock.packages.contains_key(&name) => {
                faults.push(format!("Cargo.lock: {name} is banned by deny.toml"));
            }
            _ => {}
        }
    }
    for (name, package) in &lock.packages {
        let elsewhere = package.sources.iter().filter(|source| !source.starts_with("registry+"));
        faults.extend(elsewhere.map(|source| format!("Cargo.lock: {name} comes from {source}, expected a registry")));
    }
    faults
}

/// A crate that is banned, but for the crates that may need it.
struct Ban {
    name: String,
    wrappers: Vec<String>,
}

/// The texts that stand in quotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The bans, one on each line.
fn bans(deny: &str) -> Vec<Ban> {
    let inside =
        deny.lines().skip_while(|line| line.trim() != "[bans]").skip_while(|line| !line.starts_with("deny = ["));
    let ban = |line: &str| {
        let name = quoted(line.split_once("crate = ")?.1).into_iter().next()?;
        let wrappers = line.split_once("wrappers = [").and_then(|(_, rest)| rest.split_once(']'));
        Some(Ban { name, wrappers: wrappers.map_or_else(Vec::new, |(inside, _)| quoted(inside)) })
    };
    inside.take_while(|line| line.trim() != "]").filter_map(ban).collect()
}

/// Packages without a licence that is allowed.
pub(super) fn check(deny: &str, metadata: &Value) -> Faults {
    let allowed: BTreeSet<String> = strings(deny, "licenses", "allow").into_iter().collect();
    let mut faults = Faults::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let (name, licence) = (package["name"].as_str().unwrap_or_default(), package["license"].as_str());
        let fault = match licence.map(|licence| (licence, permits(licence, &allowed))) {
            None => format!("{name}: its manifest names no licence"),
            Some((_, Some(true))) => continue,
            Some((licence, Some(false))) => format!("{name}: its licence is {licence}, which deny.toml does not allow"),
            Some((licence, None)) => format!("{name}: its licence makes no sense: {licence}"),
        };
        faults.push(fault);
    }
    faults
}

/// The texts of a list in a section.
fn strings(toml: &str, section: &str, list: &str) -> Vec<String> {
    let lines = toml.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let inside =
        lines.skip_while(|line| *line != format!("[{section}]")).skip(1).take_while(|line| !line.starts_with('['));
    let inside = inside.skip_while(|line| !line.starts_with(&format!("{list} = ["))).collect::<Vec<_>>().join("\n");
    let inside = inside.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(inside, _)| inside);
    quoted(inside)
}

/// Whether the allowed licences satisfy an SPDX expression; none if it is invalid.
fn permits(expression: &str, allowed: &BTreeSet<String>) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    let answer = any(&mut rest, allowed)?;
    rest.is_empty().then_some(answer)
}

fn any(words: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    let mut answer = all(words, allowed)?;
    while take(words, "OR") {
        answer |= all(words, allowed)?;
    }
    Some(answer)
}

fn all(words: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    let mut answer = one(words, allowed)?;
    while take(words, "AND") {
        answer &= one(words, allowed)?;
    }
    Some(answer)
}

fn one(words: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    if take(words, "(") {
        let answer = any(words, allowed)?;
        return take(words, ")").then_some(answer);
    }
    let (name, rest) = words.split_first()?;
    *words = rest;
    if !take(words, "WITH") {
        return Some(allowed.contains(*name));
    }
    let (exception, rest) = words.split_first()?;
    *words = rest;
    Some(allowed.contains(&format!("{name} WITH {exception}")))
}

fn take(words: &mut &[&str], wanted: &str) -> bool {
    let found = words.first() == Some(&wanted);
    if found {
        *words = &words[1..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENY: &str = "[licenses]\nallow = [\n    \"MIT\", # the usual one\n    \"Zlib\",\n]\nx = [\"GPL-3.0\"]\n\
        [bans]\ndeny = [\n    { crate = \"bad-sys\", reason = \"slow to build\" },\n    { crate = \"worse\", wrappers = [\"one\", \"two\"] },\n]\n";

    #[test]
    fn lists_are_read() {
        assert_eq!(strings(DENY, "licenses", "allow"), ["MIT", "Zlib"]);
        assert!(strings(DENY, "bans", "allow").is_empty());
        let bans: Vec<_> = bans(DENY).into_iter().map(|ban| (ban.name, ban.wrappers)).collect();
        let wrapped = ["one", "two"].map(str::to_owned).to_vec();
        assert_eq!(bans, [("bad-sys".to_owned(), Vec::new()), ("worse".to_owned(), wrapped)]);
    }

    #[test]
    fn a_banned_crate_may_be_needed_by_those_that_are_named() {
        let lock = |needs_worse: &str| {
            let package = |name: &str, needs: &str| {
                format!("[[package]]\nname = \"{name}\"\nversion = \"1.0.0\"\ndependencies = [\n \"{needs}\",\n]\n\n")
            };
            super::super::lock::read(&(package("worse", "none") + &package(needs_worse, "worse")))
        };
        assert!(banned(DENY, &lock("two")).is_empty());
        assert_eq!(banned(DENY, &lock("three")), ["Cargo.lock: worse is banned by deny.toml, and three needs it"]);
        let bad = super::super::lock::read("[[package]]\nname = \"bad-sys\"\nversion = \"1.0.0\"\n");
        assert_eq!(banned(DENY, &bad), ["Cargo.lock: bad-sys is banned by deny.toml"]);
    }

    #[test]
    fn expressions_are_judged() {
        let allowed = ["MIT", "Zlib"].map(str::to_owned).into();
        let judge = |expression| permits(expression, &allowed);
        for good in ["MIT", "GPL-3.0 OR MIT", "MIT/Apache-2.0", "(MIT OR X) AND Zlib", "A WITH B OR MIT"] {
            assert_eq!(judge(good), Some(true), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "MIT AND (X OR Y)", "MIT WITH B"] {
            assert_eq!(judge(bad), Some(false), "{bad}");
        }
        for nonsense in ["", "MIT OR", "(MIT", "MIT MIT"] {
            assert_eq!(judge(nonsense), None, "{nonsense}");
        }
    }
}
