//! What came of tests, for people and as JSON.

use std::time::Duration;

use kelos_rehearsal::{Mismatch, Verdict};
use kelos_sandbox::Problem;
use serde_json::{Value, json};

use super::{FileOutcome, TestOutcome, Totals};
use crate::text::{self, count};
use crate::{folder, render};

/// Prints a file and its tests.
pub(super) fn file(file: &FileOutcome, verbose: bool) {
    if file.tests.is_empty() && !file.is_broken() {
        return;
    }
    text::line(&file.label);
    let shown = file.problems.iter().filter(|problem| problem.is_error() || verbose);
    for line in shown.flat_map(folder::problem_lines) {
        text::line(format!("  {line}"));
    }
    for test in &file.tests {
        test_lines(&file.label, test, verbose).iter().for_each(text::line);
    }
}

fn test_lines(label: &str, test: &TestOutcome, verbose: bool) -> Vec<String> {
    let report = &test.report;
    let (unicode, plain, like) = match &report.verdict {
        Verdict::Passed => ("✓", "ok  ", "succeeded"),
        Verdict::Failed(_) | Verdict::Broken(_) => ("✗", "FAIL", "failed"),
        Verdict::Skipped(_) => ("-", "skip", "waiting"),
    };
    let mark = render::paint(if render::unicode() { unicode } else { plain }, like);
    let after = match &report.verdict {
        Verdict::Skipped(why) => format!("skipped: {why}; --real does"),
        Verdict::Broken(_) => "broken".to_owned(),
        _ if verbose => {
            format!("{}, {}, {}", count(report.slots, "slot"), count(report.runs, "run"), millis(test.took))
        }
        _ => format!("{}, {}", count(report.slots, "slot"), millis(test.took)),
    };
    let mut lines = vec![format!("  {mark} {}  ({after})", test.name)];
    lines.extend(details(label, test).into_iter().map(|line| format!("      {line}")));
    lines.extend(report.folder.iter().map(|folder| format!("      its folder is {}", folder.display())));
    if verbose {
        lines.extend(report.warnings.iter().map(|warning| format!("      {warning}")));
    }
    lines
}

/// The mismatches of a test, line by line; its position first.
pub(super) fn details(label: &str, test: &TestOutcome) -> Vec<String> {
    match &test.report.verdict {
        Verdict::Passed | Verdict::Skipped(_) => Vec::new(),
        Verdict::Broken(problems) => problems.iter().flat_map(folder::problem_lines).collect(),
        Verdict::Failed(mismatches) => {
            let lines = mismatches.iter().map(ToString::to_string);
            let lines: Vec<String> =
                lines.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
            std::iter::once(format!("{label}:{}", test.line)).chain(lines).collect()
        }
    }
}

fn millis(took: Duration) -> String {
    format!("{} ms", took.as_millis())
}

/// `3 tests: 2 passed, 1 failed; 1488 slots in 31 ms`.
pub(super) fn totals(totals: &Totals, took: Duration) -> String {
    let Totals { passed, failed, broken, skipped, slots } = totals;
    let parts = [(passed, "passed"), (failed, "failed"), (broken, "broken"), (skipped, "skipped")];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| **n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let all = passed + failed + broken + skipped;
    format!("{}: {}; {} in {}", count(all, "test"), parts.join(", "), count(*slots, "slot"), millis(took))
}

pub(super) fn as_json(files: &[FileOutcome], totals: &Totals, took: Duration) -> Value {
    let file = |file: &FileOutcome| {
        let tests: Vec<Value> = file.tests.iter().map(test_json).collect();
        json!({ "file": file.label, "problems": file.problems, "tests": tests })
    };
    json!({
        "ok": totals.is_good(),
        "passed": totals.passed,
        "failed": totals.failed,
        "broken": totals.broken,
        "skipped": totals.skipped,
        "slots": totals.slots,
        "millis": whole_millis(took),
        "files": files.iter().map(file).collect::<Vec<_>>(),
    })
}

fn whole_millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

fn test_json(test: &TestOutcome) -> Value {
    let report = &test.report;
    let mut json = json!({
        "name": test.name,
        "line": test.line,
        "verdict": verdict(&report.verdict),
        "slots": report.slots,
        "runs": report.runs,
        "millis": whole_millis(test.took),
        "warnings": report.warnings,
        "folder": report.folder,
    });
    match &report.verdict {
        Verdict::Failed(mismatches) => json["mismatches"] = mismatches.iter().map(mismatch).collect(),
        Verdict::Broken(problems) => json["problems"] = json!(problems as &Vec<Problem>),
        Verdict::Skipped(why) => json["because"] = json!(why),
        Verdict::Passed => {}
    }
    json
}

fn verdict(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed(_) => "failed",
        Verdict::Broken(_) => "broken",
        Verdict::Skipped(_) => "skipped",
    }
}

fn mismatch(mismatch: &Mismatch) -> Value {
    json!({
        "about": mismatch.about,
        "expected": mismatch.expected,
        "found": mismatch.found,
        "because": mismatch.because,
        "hint": mismatch.hint,
    })
}
