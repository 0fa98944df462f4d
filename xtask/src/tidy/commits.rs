//! Subjects of commits: `area: why`, and short.

use std::path::Path;
use std::process::Command;

use super::Faults;

/// The last commit before this rule.
const SINCE: &str = "d02997e";

/// How many characters a subject may have.
const LONGEST: usize = 72;

/// Checks the commits since the rule; nothing if the history is too short.
pub(super) fn check(root: &Path) -> Faults {
    let range = format!("{SINCE}..HEAD");
    let log = Command::new("git").args(["log", "--no-merges", "--format=%h %s", &range]).current_dir(root).output();
    match log {
        Ok(log) if log.status.success() => judge(&String::from_utf8_lossy(&log.stdout)),
        _ => Faults::new(),
    }
}

/// Checks lines of a commit and its subject.
fn judge(log: &str) -> Faults {
    let commits = log.lines().filter_map(|line| line.split_once(' '));
    commits.filter_map(|(commit, subject)| Some(format!("{commit}: {}: \"{subject}\"", fault(subject)?))).collect()
}

fn fault(subject: &str) -> Option<String> {
    let length = subject.chars().count();
    if length > LONGEST {
        return Some(format!("a subject of {length} characters, expected at most {LONGEST}"));
    }
    let of_an_area = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_/., ".contains(c);
    let good = subject
        .split_once(": ")
        .is_some_and(|(area, why)| !area.is_empty() && area.chars().all(of_an_area) && !why.trim().is_empty());
    (!good).then(|| "expected a subject such as \"core: plan no slot twice\"".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_subjects_are_found() {
        let long = format!("core: {}", "x".repeat(LONGEST));
        let log = format!(
            "a1 core: plan no slot twice\nb2 fix review\nc3 {long}\nd4 cli, docs: say it\ne5 Core: x\nf6 core: \n"
        );
        let found = judge(&log);
        let commits: Vec<&str> = found.iter().map(|fault| &fault[..2]).collect();
        assert_eq!(commits, ["b2", "c3", "e5", "f6"], "{found:?}");
    }
}
