//! An event schedule in lines.

use serde_json::Value;

use super::when;
use crate::client::{items, number, text};
use crate::list::counts;
use crate::text::{exact, short};

pub(super) fn status(schedule: &Value) -> &'static str {
    if schedule["enabled"] == true { "enabled" } else { "disabled" }
}

/// What it has pending, or a word on why nothing is.
pub(super) fn standing(schedule: &Value) -> String {
    match (items(schedule, "pending").first(), schedule["enabled"] == true) {
        (Some(_), _) => text(schedule, "standing").to_owned(),
        (None, _) => "-".to_owned(),
    }
}

/// What has it go, what must hold besides, and how it stands.
pub(super) fn told(schedule: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |name: &str, told: String| lines.push(format!("  {name:<11} {told}"));
    if let Some(description) = schedule["description"].as_str() {
        line("about", description.to_owned());
    }
    line("program", text(schedule, "program").to_owned());
    line("defined by", provenance(&schedule["source"]));
    line("trigger", when::words(&schedule["trigger"]));
    for constraint in items(schedule, "constraints") {
        line("constraint", constraint_words(constraint));
    }
    for (name, value) in schedule["properties"].as_object().into_iter().flatten() {
        line("arguments", format!("{name}={}", value.as_str().unwrap_or_default()));
    }
    line("timeout", span(number(schedule, "timeoutMillis")));
    for (name, field) in [("from", "startTime"), ("until", "endTime")] {
        if let Some(at) = schedule[field].as_str() {
            line(name, short(at));
        }
    }
    if number(schedule, "jitterMillis") > 0 {
        line("jitter", format!("up to {}", span(number(schedule, "jitterMillis"))));
    }
    if let Some(next) = schedule["next"]["time"].as_str() {
        let (local, zone) = (text(&schedule["next"], "local"), text(&schedule["next"], "zone"));
        let there = if zone == "UTC" { String::new() } else { format!(" ({local} {zone})") };
        line("next", format!("{}{there}", short(next)));
    }
    let last = &schedule["lastRun"];
    if last.is_object() {
        line(
            "last run",
            format!("{} {}", text(last, "state"), last["endedAt"].as_str().map(short).unwrap_or_default())
                .trim_end()
                .to_owned(),
        );
    }
    line("slots", counts(&schedule["counts"]));
    let pending = items(schedule, "pending");
    if pending.is_empty() {
        line("pending", text(schedule, "standing").replace("nothing is pending", "nothing"));
    }
    for one in pending {
        let expires = one["expires"].as_str().map(|at| format!(", until {}", short(at))).unwrap_or_default();
        line("pending", format!("{} {}: {}{expires}", exact(text(one, "time")), text(one, "state"), text(one, "text")));
    }
    lines
}

/// Where a definition comes from.
fn provenance(source: &Value) -> String {
    let file = text(source, "file");
    match text(source, "provenance") {
        "file" => file.to_owned(),
        "api" if file.is_empty() => "a request".to_owned(),
        "api" => format!("a request, changed from what {file} says"),
        _ => "the program".to_owned(),
    }
}

fn constraint_words(constraint: &Value) -> String {
    let otherwise = text(constraint, "otherwise");
    let gate = match text(constraint, "type") {
        "concurrency" => format!("concurrency {}", constraint["limit"]),
        "delay" => format!("be {} old", span(number(constraint, "millis"))),
        "since-last-run" => format!("{} after the last successful run", span(number(constraint, "millis"))),
        _ => {
            let (from, to) = (text(constraint, "from"), text(constraint, "to"));
            format!("between {from} and {to} {}", text(constraint, "zone"))
        }
    };
    format!("{gate}, or else {otherwise}")
}

/// `15m`, `6h`, `1d`: a length of time in its largest whole unit.
fn span(millis: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s")];
    let whole = units.into_iter().find(|(unit, _)| millis >= *unit && millis.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{millis}ms"), |(unit, name)| format!("{}{name}", millis / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_told_in_whole_units() {
        for (millis, told) in [(900_000, "15m"), (86_400_000, "1d"), (5_400_000, "90m"), (1500, "1500ms"), (0, "0ms")] {
            assert_eq!(span(millis), told);
        }
    }
}
