//! An event schedule in lines.

use kelos_model::Deadline;
use kelos_model::time::Zone;
use kelos_wire::{EventScheduleDto, Instant, SourceDto};

use crate::list::counts;

pub(super) fn status(schedule: &EventScheduleDto) -> &'static str {
    if schedule.enabled { "enabled" } else { "disabled" }
}

/// The pending slots in words; a dash for none.
pub(super) fn standing(schedule: &EventScheduleDto) -> String {
    if schedule.pending.is_empty() { "-".to_owned() } else { schedule.standing.clone() }
}

/// The trigger, the constraints and the status, line by line.
pub(super) fn told(schedule: &EventScheduleDto) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |name: &str, told: String| lines.push(format!("  {name:<11} {told}"));
    if let Some(description) = &schedule.description {
        line("about", description.clone());
    }
    line("program", schedule.program.clone());
    line("defined by", provenance(&schedule.source));
    line("trigger", schedule.trigger.line());
    for constraint in &schedule.constraints {
        line("constraint", constraint.line());
    }
    for (name, value) in &schedule.properties {
        line("arguments", format!("{name}={value}"));
    }
    line("timeout", span(schedule.timeout_millis));
    for (name, at) in [("from", schedule.start_time), ("until", schedule.end_time)] {
        if let Some(at) = at {
            line(name, at.short());
        }
    }
    if schedule.jitter_millis > 0 {
        line("jitter", format!("up to {}", span(schedule.jitter_millis)));
    }
    if let Some(value) = &schedule.deadline {
        let read = Deadline::read(value, &Zone::utc());
        line("deadline", read.map_or_else(|_| value.to_string(), |deadline| deadline.to_string()));
    }
    if let Some(next) = &schedule.next {
        let there = if next.zone == "UTC" { String::new() } else { format!(" ({} {})", next.local, next.zone) };
        line("next", format!("{}{there}", next.time.short()));
    }
    if let Some(last) = &schedule.last_run {
        let ended = last.ended_at.map(Instant::short).unwrap_or_default();
        line("last run", format!("{} {ended}", last.state).trim_end().to_owned());
    }
    line("slots", schedule.counts.as_ref().map_or_else(|| "-".to_owned(), counts));
    if schedule.pending.is_empty() {
        line("pending", schedule.standing.replace("nothing is pending", "nothing"));
    }
    for one in &schedule.pending {
        let expires = one.expires.map(|at| format!(", until {}", at.short())).unwrap_or_default();
        line("pending", format!("{} {}: {}{expires}", one.slot.key, one.state, one.text));
    }
    lines
}

/// The origin of a definition.
fn provenance(source: &SourceDto) -> String {
    let file = &source.file;
    match source.provenance.as_str() {
        "file" => file.clone(),
        "api" if file.is_empty() => "a request".to_owned(),
        "api" => format!("a request, changed from what {file} says"),
        _ => "the program".to_owned(),
    }
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
