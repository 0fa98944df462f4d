//! Placeholders that are read in UTC, where the schedule is of another zone: `${day}` may be the day before.

use jiff::Timestamp;

use super::placeholder::{FILLED, names, texts_in, texts_of, texts_of_trigger};
use crate::template::parts;
use crate::time::{CronSchedule, Schedule, Zone, format_short};
use crate::workflow::{Job, Properties, Workflow};

/// The parts of a time that may differ, the one that people notice first.
const NAMES: [&str; 5] = ["day", "hour", "month", "year", "minute"];

/// The number of times that are compared.
const COMPARED: usize = 3_000;

/// 2024-01-01T00:00Z, from where on times are compared: what is found does not depend on the day of the check.
const SINCE: i64 = 1_704_067_200;

/// A placeholder that has another value in UTC than in the zone of its schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UtcPlaceholder {
    /// Its name: `day`.
    pub name: &'static str,
    /// The text that contains it.
    pub text: String,
    /// The zone of the schedule.
    pub zone: String,
    /// A time of the schedule in that zone, such as `2024-01-01T00:00`.
    pub local: String,
    /// The same in UTC.
    pub utc: String,
    /// The value that the placeholder has then.
    pub value: String,
}

/// The first placeholder of a workflow with a cron expression in a zone that has another value there; none where all values are the same.
/// A calendar is read in its zone.
#[must_use]
pub fn utc_placeholder(workflow: &Workflow) -> Option<UtcPlaceholder> {
    let Some(Schedule::Cron(schedule)) = workflow.keys.schedule() else { return None };
    if *schedule.zone() == Zone::utc() {
        return None;
    }
    let texts = texts(workflow);
    NAMES.into_iter().find_map(|name| {
        let text = texts.iter().find(|text| names(text).any(|one| one == name) || expands(text, name))?;
        differing(schedule, name, text)
    })
}

/// The first time at which a part of it differs between UTC and the zone.
fn differing(schedule: &CronSchedule, name: &'static str, text: &str) -> Option<UtcPlaceholder> {
    let since = Timestamp::from_second(SINCE).ok()?;
    let of = |at: Timestamp, zone: &Zone| {
        parts(at, zone).into_iter().find_map(|(part, value)| (part == name).then_some(value))
    };
    let at = schedule
        .times(since, Timestamp::MAX)
        .take(COMPARED)
        .find(|at| of(*at, schedule.zone()) != of(*at, &Zone::utc()))?;
    Some(UtcPlaceholder {
        name,
        text: text.to_owned(),
        zone: schedule.zone().name().to_owned(),
        local: at.to_zoned(schedule.zone().rules().clone()).strftime("%Y-%m-%dT%H:%M").to_string(),
        utc: format_short(at),
        value: of(at, &Zone::utc())?,
    })
}

/// All texts that are filled in with the parts of a slot's time.
fn texts(workflow: &Workflow) -> Vec<&str> {
    let mut found: Vec<&str> = texts_of_trigger(&workflow.trigger).into_iter().map(|(_, text)| text).collect();
    found.extend(workflow.writes.iter().map(String::as_str));
    for parameter in &workflow.parameters {
        parameter.default.iter().for_each(|default| texts_in(default, &mut found));
    }
    let steps = workflow.flow.iter().flat_map(|flow| &flow.steps).map(|step| &step.job);
    for job in std::iter::once(&workflow.job).chain(steps) {
        of_job(job, &mut found);
    }
    found
}

fn of_job<'w>(job: &'w Job, found: &mut Vec<&'w str>) {
    if !FILLED.contains(&job.executor.as_str()) {
        return;
    }
    texts_of(&job.settings, found);
    if let Properties::Fixed(properties) = &job.properties {
        texts_of(properties, found);
    }
}

/// Whether a text for a shell has the variable of that name: `$day`.
fn expands(text: &str, name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split('$').skip(1).any(|rest| rest.strip_prefix(name).is_some_and(|rest| !rest.starts_with(is_letter)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::id::WorkflowId;
    use crate::time::{Calendar, Cron, Fold, Gap};

    fn found(schedule: Schedule, settings: &serde_json::Value) -> Option<(&'static str, String, String)> {
        let settings: Map<String, serde_json::Value> = settings.as_object().expect("an object").clone();
        let job = Job { settings, ..Job::new("command", Map::new()) };
        let workflow = Workflow::new(WorkflowId::new("report").expect("an id"), schedule, job);
        utc_placeholder(&workflow).map(|one| (one.name, one.local, one.value))
    }

    fn cron(expression: &str, zone: &str) -> Schedule {
        let (cron, zone) = (Cron::parse(expression).expect("cron"), Zone::parse(zone).expect("a zone"));
        Schedule::Cron(CronSchedule::new(cron, zone, Gap::default(), Fold::default()))
    }

    #[test]
    fn a_date_that_is_another_one_in_the_zone_is_found() {
        let date = json!({"command": ["echo", "${year}-${month}-${day}"]});
        let kolkata = found(cron("0 0 * * *", "Asia/Kolkata"), &date);
        assert_eq!(kolkata, Some(("day", "2024-01-02T00:00".to_owned(), "01".to_owned())));
        assert_eq!(found(cron("0 6 * * *", "Asia/Kolkata"), &date), None, "06:00 there is the same day in UTC");
        assert_eq!(found(cron("0 0 * * *", "UTC"), &date), None);
        let calendar = Schedule::Calendar(Calendar::daily(Zone::parse("Asia/Kolkata").expect("a zone")));
        assert_eq!(found(calendar, &date), None, "a calendar is read in its zone");
    }

    #[test]
    fn hours_and_variables_of_a_shell_count() {
        let berlin = || cron("0 6 * * *", "Europe/Berlin");
        assert_eq!(found(berlin(), &json!({"shell": "load $hour"})).map(|one| one.2), Some("05".to_owned()));
        assert_eq!(found(berlin(), &json!({"shell": "load $hours ${rows}"})), None);
        assert_eq!(found(berlin(), &json!({"command": ["load", "${day}"]})), None);
    }
}
