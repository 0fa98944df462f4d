//! The assumptions of a plan about the outside, which it never asks.

use kelos_model::time::text::span;
use kelos_rehearsal::assumed::{AssumedPaths, Assumptions};
use kelos_rehearsal::dry_run::DryRun;
use serde_json::{Value, json};

use crate::text::{self, grouped, to_the_second};

/// Groups of paths that are printed.
const PATHS: usize = 10;

/// Prints them, those that mattered only.
pub(super) fn print(assumed: &Assumptions, suppose: &DryRun) {
    let lines = lines(assumed, suppose);
    if !lines.is_empty() {
        text::line("assumed, since nothing outside was asked:");
        lines.iter().for_each(|line| text::line(format!("  {line}")));
    }
}

fn lines(assumed: &Assumptions, suppose: &DryRun) -> Vec<String> {
    let mut lines: Vec<String> = assumed.paths.iter().take(PATHS).map(paths).collect();
    let more: u64 = assumed.paths.iter().skip(PATHS).map(|group| group.count).sum();
    if more > 0 {
        lines.push(format!("and {} other paths; --json prints all", grouped(more)));
    }
    if assumed.answers > 0 {
        lines.push(format!("functions of scripts answer yes, {} times", grouped(assumed.answers)));
    }
    for (executor, runs) in &assumed.runs {
        let takes = span(suppose.run_time.as_secs());
        lines.push(format!("runs of \"{executor}\" succeed and take {takes} each: {}", grouped(*runs)));
    }
    for (pool, size) in &assumed.pools {
        lines.push(format!("pool {pool} has {size} permits, and nothing else takes any"));
    }
    if assumed.past {
        lines.push(format!("slots before {} have succeeded", to_the_second(suppose.from)));
    }
    lines
}

/// `there: hdfs:/in/2016-01-01, and 23 others that differ in digits alone`
fn paths(group: &AssumedPaths) -> String {
    let others = match group.count.saturating_sub(1) {
        0 => String::new(),
        1 => ", and another that differs in digits alone".to_owned(),
        others => format!(", and {} others that differ in digits alone", grouped(others)),
    };
    let verb = if group.there { "there" } else { "not there" };
    format!("{verb}: {}{others}", group.first)
}

/// All of them.
pub(super) fn as_json(assumed: &Assumptions, suppose: &DryRun) -> Value {
    let paths = assumed.paths.iter();
    let paths = paths.map(|group| json!({ "first": group.first, "count": group.count, "there": group.there }));
    json!({
        "paths": paths.collect::<Vec<_>>(),
        "functionsAnswered": assumed.answers,
        "runsSucceed": assumed.runs,
        "runSeconds": suppose.run_time.as_secs(),
        "maxRunning": suppose.max_running,
        "pools": assumed.pools,
        "earlierSlotsSucceeded": assumed.past,
        "facts": "none",
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_line_for_each_kind_of_assumption() {
        let group = |first: &str, count, there| AssumedPaths { first: first.to_owned(), count, there };
        let assumed = Assumptions {
            paths: vec![group("file:///in/00", 24, true), group("file:///out", 1, false)],
            answers: 3,
            runs: [("command".to_owned(), 1200), ("http".to_owned(), 1)].into(),
            pools: [("spark".to_owned(), 4)].into(),
            past: true,
        };
        let at: Timestamp = "2016-01-01T00:00:00Z".parse().expect("a time");
        let expected = [
            "there: file:///in/00, and 23 others that differ in digits alone",
            "not there: file:///out",
            "functions of scripts answer yes, 3 times",
            "runs of \"command\" succeed and take 0 s each: 1,200",
            "runs of \"http\" succeed and take 0 s each: 1",
            "pool spark has 4 permits, and nothing else takes any",
            "slots before 2016-01-01T00:00Z have succeeded",
        ];
        assert_eq!(lines(&assumed, &DryRun::over(at, at)), expected);
        assert_eq!(lines(&Assumptions::default(), &DryRun::over(at, at)), Vec::<String>::new());
    }
}
