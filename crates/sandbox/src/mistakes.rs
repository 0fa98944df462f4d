//! Mistakes of definitions, as the model finds them, as problems with words and places.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::mistakes::{
    Deadlock, PlaceholderUse, ShutWindow, UnknownPlaceholder, UtcPlaceholder, WeekdayReadings, ambiguous_weekdays,
    deadlocks, ignored_steps, never_fires, shut_windows, unknown_placeholders, utc_placeholder,
};
use kelos_model::paths::{SharedPath, shared_paths};
use kelos_model::template::KeyValues;
use kelos_model::time::{CronSchedule, Schedule, format_duration, format_short};
use kelos_model::trigger::PathCheck;
use kelos_model::workflow::Job;
use kelos_model::{Otherwise, StepName, Workflow};
use serde_json::Value;

use crate::code::ProblemCode;
use crate::load::{ById, LoadResult};
use crate::position::{at_text, warning};
use crate::problem::{Problem, Severity};

/// The most bytes of an argument of a command on Linux with pages of 4 KiB, without the zero at its end.
const LONGEST_ARGUMENT: usize = 131_071;

/// Workflows that wait for each other in a circle.
pub(crate) fn deadlocked(loaded: &LoadResult, by_id: &ById<'_>) -> Vec<Problem> {
    let problem = |found: Deadlock| {
        let (first, _) = found.circle.first()?;
        let workflow = by_id.get(first)?;
        let next = found.circle.get(1).map_or(first, |(next, _)| next);
        let hint = format!(
            "take one of the triggers out, or let it wait for an earlier slot: celos.offsetTrigger(-3600, \
             celos.successTrigger(\"{next}\"))"
        );
        Some(error(warning(loaded, workflow, ProblemCode::Deadlock, circle_words(&found), Some(hint))))
    };
    deadlocks(by_id.values().map(|one| &***one)).into_iter().filter_map(problem).collect()
}

fn circle_words(found: &Deadlock) -> String {
    let offset = |later: i64| match later {
        0 => String::new(),
        later => {
            format!(" ({} {})", format_duration(later.saturating_abs()), if later < 0 { "earlier" } else { "later" })
        }
    };
    match &found.circle[..] {
        [(id, 0)] => format!("\"{id}\" can never run: it waits for the success of its own slot of the same time"),
        [(id, later)] => {
            format!("\"{id}\" can never run: each of its slots waits for another one of its own{}", offset(*later))
        }
        circle => {
            let names: Vec<String> = circle.iter().map(|(id, _)| format!("\"{id}\"")).collect();
            let names = match names.split_last() {
                Some((last, others)) => format!("{} and {last}", others.join(", ")),
                None => String::new(),
            };
            let targets = circle.iter().map(|(id, _)| id).cycle().skip(1);
            let steps = circle.iter().zip(targets).map(|((_, later), to)| format!(" -> {to}{}", offset(*later)));
            let first = circle.first().map(|(id, _)| id.to_string()).unwrap_or_default();
            format!("{names} can never run: they wait for each other in a circle: {first}{}", steps.collect::<String>())
        }
    }
}

/// Placeholders without a value.
pub(crate) fn unfilled(loaded: &LoadResult, workflow: &Arc<Workflow>) -> Vec<Problem> {
    unknown_placeholders(workflow).iter().map(|unknown| placeholder(loaded, workflow, unknown)).collect()
}

/// Numbers of weekdays that may be other days than are meant. They are no mistakes, so that only people who ask for a check are told. Five
/// fields are a crontab's everywhere: they are only told of in a project that has weekdays of Quartz, too.
pub(crate) fn weekdays(loaded: &LoadResult) -> Vec<Problem> {
    let all: Vec<(&Arc<Workflow>, Vec<WeekdayReadings>)> =
        loaded.read().into_values().map(|workflow| (workflow, ambiguous_weekdays(workflow))).collect();
    let of_quartz = |weekdays: &[WeekdayReadings]| weekdays.iter().any(|readings| readings.as_quartz);
    let mixed: BTreeSet<&str> =
        all.iter().filter(|(_, found)| of_quartz(found)).map(|(workflow, _)| workflow.project.as_str()).collect();
    let of_one = |(workflow, weekdays): &(&Arc<Workflow>, Vec<WeekdayReadings>)| -> Vec<Problem> {
        // A step of weekdays counts in a crontab, so that the expression is ambiguous.
        let is_told = |expression: &String| weekdays.iter().any(|readings| readings.expression == *expression);
        let steps = ignored_steps(workflow).into_iter().filter(|(expression, _)| !is_told(expression));
        let weekdays = weekdays.iter().filter(|_| mixed.contains(workflow.project.as_str()));
        let weekdays = weekdays.map(|readings| weekday(loaded, workflow, readings));
        weekdays.chain(steps.map(|(expression, item)| ignored_step(loaded, workflow, &expression, &item))).collect()
    };
    all.iter().flat_map(of_one).collect()
}

fn placeholder(loaded: &LoadResult, workflow: &Arc<Workflow>, unknown: &UnknownPlaceholder) -> Problem {
    let UnknownPlaceholder { used_in, step, name, meant, text, known } = unknown;
    let step = step.as_ref().map(|step| format!(" in step {step}")).unwrap_or_default();
    let what = match used_in {
        PlaceholderUse::Path => format!("the path {text:?} of the trigger"),
        PlaceholderUse::JobId => format!("the job id {text:?} of the trigger"),
        PlaceholderUse::Written => format!("the path {text:?} in writes"),
        PlaceholderUse::Job => format!("{text:?} in the job"),
        PlaceholderUse::Step | PlaceholderUse::NoInput => format!("{text:?}{step}"),
    };
    let words = format!("{what} of \"{}\" has ${{{name}}}, which has no value", workflow.id);
    let hint = match meant {
        Some(meant) => format!("did you mean ${{{meant}}}?"),
        None => format!("known names: {}", known.join(", ")),
    };
    let problem = warning(loaded, workflow, ProblemCode::UnknownPlaceholder, words, Some(hint));
    let is_certain = !matches!(used_in, PlaceholderUse::Job | PlaceholderUse::Step) && meant.is_some();
    let problem = if is_certain { error(problem) } else { problem };
    at_text(loaded, workflow, problem, &format!("${{{name}}}"))
}

/// Paths that two workflows write.
pub(crate) fn written_twice(loaded: &LoadResult, by_id: &ById<'_>) -> Vec<Problem> {
    let problem = |shared: SharedPath| {
        let workflow = by_id.get(&shared.second)?;
        let words = format!("\"{}\" writes {:?}, which \"{}\" writes, too", shared.second, shared.path, shared.first);
        let hint = "let each path have one writer: it is the one that the readers of the path wait for".to_owned();
        let problem = warning(loaded, workflow, ProblemCode::PathWrittenTwice, words, Some(hint));
        Some(at_text(loaded, workflow, problem, &shared.path))
    };
    shared_paths(by_id.values().map(|one| &***one)).into_iter().filter_map(problem).collect()
}

/// Parts of times that are those of UTC, and differ in the zone of the schedule. That is how Celos fills them in, so that only people who
/// ask for a check are told.
pub(crate) fn in_utc(loaded: &LoadResult) -> Vec<Problem> {
    let problem = |workflow: &Arc<Workflow>| {
        let UtcPlaceholder { name, text, zone, local, utc, value } = utc_placeholder(workflow)?;
        let words = format!(
            "${{{name}}} in {text:?} of \"{}\" is the {name} in UTC, not in {zone}: {value} for {local} there, which is {utc}",
            workflow.id
        );
        let hint = match name {
            "hour" | "minute" => "a command can convert $KELOS_TIME into local time".to_owned(),
            _ => format!("a calendar has the values of its zone: celos.calendar(\"daily\", {{timeZone: \"{zone}\"}})"),
        };
        let problem = warning(loaded, workflow, ProblemCode::UtcPlaceholder, words, Some(hint));
        Some(at_text(loaded, workflow, problem, &format!("${{{name}}}")))
    };
    loaded.read().into_values().filter_map(problem).collect()
}

fn weekday(loaded: &LoadResult, workflow: &Arc<Workflow>, readings: &WeekdayReadings) -> Problem {
    let WeekdayReadings { expression, field, here, as_quartz, elsewhere } = readings;
    let (ours, other) = if *as_quartz { ("Quartz", "a crontab") } else { ("a crontab", "Quartz") };
    let words = format!(
        "weekday {field} in the cron expression \"{expression}\" of \"{}\" is {here}, as in {ours}; in {other} it would be {elsewhere}",
        workflow.id
    );
    let hint = format!("write {here} or {elsewhere}: names mean the same everywhere");
    let problem = warning(loaded, workflow, ProblemCode::AmbiguousWeekday, words, Some(hint));
    at_text(loaded, workflow, problem, expression)
}

fn ignored_step(loaded: &LoadResult, workflow: &Arc<Workflow>, expression: &str, item: &str) -> Problem {
    let range = item.split('/').next().unwrap_or_default();
    let words = format!(
        "the step of {item} in the cron expression \"{expression}\" of \"{}\" has no effect: Quartz reads it as {range}",
        workflow.id
    );
    let hint = "write the names one by one, such as JAN,MAR,MAY, or five fields as in a crontab".to_owned();
    let problem = warning(loaded, workflow, ProblemCode::OddValue, words, Some(hint));
    at_text(loaded, workflow, problem, expression)
}

/// Commands with an argument that is longer than Linux takes: they can't be started. How long one may be depends on the system of the worker,
/// so that only people who ask for a check are told.
pub(crate) fn too_long(loaded: &LoadResult) -> Vec<Problem> {
    let of_job = |workflow: &Arc<Workflow>, job: &Job, step: Option<&StepName>| {
        let of_settings = ["shell", "command"].iter().filter_map(|name| job.settings.get(*name));
        let texts = of_settings.flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
        let longest = texts.filter_map(Value::as_str).map(str::len).max().filter(|bytes| *bytes > LONGEST_ARGUMENT)?;
        let step = step.map(|step| format!(" in step {step}")).unwrap_or_default();
        let words = format!(
            "an argument of the command of \"{}\"{step} has {longest} bytes, more than the {LONGEST_ARGUMENT} that Linux takes: it can't \
             be started",
            workflow.id
        );
        let hint = "put it into a file, and let the command read that".to_owned();
        Some(warning(loaded, workflow, ProblemCode::TooLong, words, Some(hint)))
    };
    let of_one = |workflow: &Arc<Workflow>| -> Vec<Problem> {
        let steps = workflow.flow.iter().flat_map(|flow| &flow.steps);
        let of_steps = steps.filter_map(|step| of_job(workflow, &step.job, Some(&step.name)));
        of_job(workflow, &workflow.job, None).into_iter().chain(of_steps).collect()
    };
    loaded.read().into_values().flat_map(of_one).collect()
}

/// A schedule without any times, and time windows that are shut at all of them. `ticks` is the schedule, with dependent ones followed.
pub(crate) fn never_meeting(
    loaded: &LoadResult,
    workflow: &Arc<Workflow>,
    ticks: Option<&CronSchedule>,
) -> Vec<Problem> {
    if let Some(Schedule::Cron(own)) = workflow.keys.ticks()
        && never_fires(own.cron())
    {
        let words =
            format!("the cron expression \"{}\" of \"{}\" never fires: no day is like that", own.cron(), workflow.id);
        let problem = error(warning(loaded, workflow, ProblemCode::NeverFires, words, None));
        return vec![at_text(loaded, workflow, problem, own.cron().as_str())];
    }
    let shut = shut_windows(workflow, ticks);
    let shut = shut.iter().map(|ShutWindow { window, otherwise }| {
        let fate = match otherwise {
            Otherwise::Abort => "each is aborted",
            Otherwise::Wait => "each expires before it opens",
        };
        let words = format!(
            "slots of \"{}\" never get through the time window {window}, which is shut at all of their times: {fate}",
            workflow.id
        );
        let hint = match otherwise {
            Otherwise::Abort => "move the window or the schedule, or let slots wait for it: waitUntilMet()",
            Otherwise::Wait => "move the window or the schedule, or let slots wait longer",
        };
        warning(loaded, workflow, ProblemCode::WindowShut, words, Some(hint.to_owned()))
    });
    shut.collect()
}

/// Bounds of a workflow in the middle of a period.
pub(crate) fn unaligned(loaded: &LoadResult, workflow: &Arc<Workflow>) -> Vec<Problem> {
    let Some(calendar) = workflow.keys.calendar() else { return Vec::new() };
    let start = workflow.start_time.map(|start| (start, "starts", calendar.ceil(start), "first period begins"));
    let end = workflow.end_time.map(|end| (end, "ends", calendar.truncate(end), "last period ends"));
    let problem = |(at, verb, boundary, then): (Timestamp, &str, Option<Timestamp>, &str)| {
        let boundary = boundary.filter(|boundary| *boundary != at)?;
        let words = format!(
            "\"{}\" {verb} at {}, in the middle of a period of its calendar ({calendar}): its {then} at {}",
            workflow.id,
            format_short(at),
            format_short(boundary)
        );
        let hint = format!("write {}", format_short(boundary));
        Some(warning(loaded, workflow, ProblemCode::UnalignedBound, words, Some(hint)))
    };
    start.into_iter().chain(end).filter_map(problem).collect()
}

/// Warnings about paths of triggers that no file system serves. `serves` gives the reason for a URI, without asking a server. What a URI
/// says of its file system counts, with some time filled in.
#[must_use]
pub fn unserved(loaded: &LoadResult, serves: &dyn Fn(&str) -> Result<(), String>) -> Vec<Problem> {
    let values = KeyValues::at(Timestamp::UNIX_EPOCH);
    let mut answers: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut found = Vec::new();
    for workflow in loaded.read().values() {
        // Each reason once, at the first path that it is about.
        let mut reasons: BTreeMap<String, (&PathCheck, String, BTreeSet<&str>)> = BTreeMap::new();
        for check in workflow.trigger.paths() {
            let uri = check.uri(&values);
            let server = uri.split('/').take(3).collect::<Vec<_>>().join("/");
            if server.contains("${") {
                continue;
            }
            let Some(why) = answers.entry(uri.clone()).or_insert_with(|| serves(&uri).err()) else { continue };
            let of_any = why.replace(&uri, "");
            let (_, _, paths) = reasons.entry(of_any).or_insert_with(|| (check, why.clone(), BTreeSet::new()));
            paths.insert(&check.path);
        }
        for (check, why, paths) in reasons.into_values() {
            let more = match paths.len() - 1 {
                0 => String::new(),
                1 => " (and another path, for the same reason)".to_owned(),
                more => format!(" (and {more} other paths, for the same reason)"),
            };
            let words = format!("the trigger of \"{}\" looks at a path that can't be served: {why}{more}", workflow.id);
            let problem = warning(loaded, workflow, ProblemCode::PathUnserved, words, None);
            found.push(at_text(loaded, workflow, problem, &check.path));
        }
    }
    found
}

fn error(problem: Problem) -> Problem {
    Problem { severity: Severity::Error, ..problem }
}

#[cfg(test)]
mod tests {
    use kelos_model::WorkflowId;

    use super::*;

    fn id(name: &str) -> WorkflowId {
        WorkflowId::new(name).expect("an id")
    }

    #[test]
    fn a_circle_is_told_with_its_offsets() {
        let words = |circle: &[(&str, i64)]| {
            circle_words(&Deadlock { circle: circle.iter().map(|(name, later)| (id(name), *later)).collect() })
        };
        assert_eq!(
            words(&[("a", 0)]),
            "\"a\" can never run: it waits for the success of its own slot of the same time"
        );
        assert_eq!(
            words(&[("a", 3600)]),
            "\"a\" can never run: each of its slots waits for another one of its own (1h later)"
        );
        assert_eq!(
            words(&[("a", 3600), ("b", -60), ("c", 0)]),
            "\"a\", \"b\" and \"c\" can never run: they wait for each other in a circle: a -> b (1h later) -> c (1m earlier) -> a"
        );
    }
}
