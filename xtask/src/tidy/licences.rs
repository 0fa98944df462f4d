//! Licences, banned crates and sources as `deny.toml` requires, without cargo-deny.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Faults;
use super::lock::Lock;

/// Crates that are banned, or that come from elsewhere than a registry.
pub(super) fn banned(deny: &str, lock: &Lock) -> Faults {
    let mut faults = Faults::new();
    for name in strings(deny, "bans", "deny", "crate = ") {
        if lock.packages.contains_key(&name) {
            faults.push(format!("Cargo.lock: {name} is banned by deny.toml"));
        }
    }
    for (name, package) in &lock.packages {
        let elsewhere = package.sources.iter().filter(|source| !source.starts_with("registry+"));
        faults.extend(elsewhere.map(|source| format!("Cargo.lock: {name} comes from {source}, expected a registry")));
    }
    faults
}

/// Packages without a licence that is allowed.
pub(super) fn check(deny: &str, metadata: &Value) -> Faults {
    let allowed: BTreeSet<String> = strings(deny, "licenses", "allow", "").into_iter().collect();
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

/// The texts of a list in a section, those after `mark` if there is one.
fn strings(toml: &str, section: &str, list: &str, mark: &str) -> Vec<String> {
    let lines = toml.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let inside =
        lines.skip_while(|line| *line != format!("[{section}]")).skip(1).take_while(|line| !line.starts_with('['));
    let inside = inside.skip_while(|line| !line.starts_with(&format!("{list} = ["))).collect::<Vec<_>>().join("\n");
    let inside = inside.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(inside, _)| inside);
    let opening = format!("{mark}\"");
    let texts = inside.split(&opening).skip(1);
    let step = if mark.is_empty() { 2 } else { 1 };
    texts.step_by(step).filter_map(|text| text.split('"').next()).map(str::to_owned).collect()
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
        [bans]\ndeny = [\n    { crate = \"bad-sys\", reason = \"slow to build\" },\n    { crate = \"worse\" },\n]\n";

    #[test]
    fn lists_are_read() {
        assert_eq!(strings(DENY, "licenses", "allow", ""), ["MIT", "Zlib"]);
        assert_eq!(strings(DENY, "bans", "deny", "crate = "), ["bad-sys", "worse"]);
        assert!(strings(DENY, "bans", "allow", "").is_empty());
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
