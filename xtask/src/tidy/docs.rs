//! Rules of the documents: links have targets, decisions have a date and are listed.

use std::path::{Component, Path, PathBuf};

use super::{Faults, Text, Tree};

const DECISIONS: &str = "docs/design/";
const LIST: &str = "docs/design/README.md";

pub(super) fn check(tree: &Tree) -> Faults {
    let mut faults: Faults = tree.ending(".md").flat_map(|file| links(tree, file)).collect();
    let list = tree.files.iter().find(|file| file.path == LIST).map_or("", |file| &file.text);
    let decisions = tree.ending(".md").filter(|file| file.path.starts_with(DECISIONS) && file.path != LIST);
    for page in decisions {
        if !page.text.lines().take(6).any(is_date) {
            faults.push(format!(
                "{}: expected its date, such as 2026-11-21, in a line of its own below the title",
                page.path
            ));
        }
        let name = &page.path[DECISIONS.len()..];
        if !list.contains(&format!("]({name})")) {
            faults.push(format!("{LIST}: it does not list {name}"));
        }
    }
    faults
}

fn is_date(line: &str) -> bool {
    let digits = |text: &str, n: usize| text.len() == n && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = line.split('-').collect();
    matches!(parts[..], [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2))
}

/// The relative links of a page without a target.
fn links(tree: &Tree, page: &Text) -> Faults {
    let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
    let mut faults = Faults::new();
    for (n, target) in targets(&page.text) {
        let path = target.split(['#', '?']).next().unwrap_or_default();
        if path.is_empty() || target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let there = plain(&folder.join(path)).is_some_and(|path| tree.root.join(path).exists());
        if !there {
            faults.push(format!("{}:{n}: the link {target} leads nowhere", page.path));
        }
    }
    faults
}

/// The targets of `[text](target)`, outside code, with their lines.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (n, line) in text.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code || line.starts_with("    ") {
            continue;
        }
        // Every second part lies between backticks.
        for part in line.split('`').step_by(2) {
            let ends = part.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            found.extend(ends.map(|(target, _)| (n + 1, target)));
        }
    }
    found
}

/// A relative path without `.` and `..`; none where it leaves the tree.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            Component::Normal(name) => plain.push(name),
            Component::Prefix(_) | Component::RootDir => return None,
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_found_outside_code() {
        let text = "see [a](a.md) and [`b`](b.md#x)\n`[c](c.md)`\n```\n[d](d.md)\n```\n    [e](e.md)\n[f](f.md)";
        assert_eq!(targets(text), [(1, "a.md"), (1, "b.md#x"), (7, "f.md")]);
    }

    #[test]
    fn paths_stay_in_the_tree() {
        assert_eq!(plain(Path::new("docs/design/../a.md")), Some("docs/a.md".into()));
        assert_eq!(plain(Path::new("../a.md")), None);
    }

    #[test]
    fn dates_are_known() {
        assert!(is_date("2026-11-21") && !is_date("0001-a-b") && !is_date("soon"));
    }
}
