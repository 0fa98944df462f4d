//! Numbers of weekdays that crontab and Quartz read as different days.

use crate::time::{Cron, CronDialect, CronSchedule, Schedule};
use crate::workflow::Workflow;

const NAMES: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The days of the week, from Sunday on: whether each is meant.
type Weekdays = [bool; 7];

/// The days that a field of weekdays means in the two dialects of cron.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeekdayReadings {
    /// The whole expression.
    pub expression: String,
    /// The field, as it was given: `1-5`.
    pub field: String,
    /// The days on which it fires here, by their names: `SUN-THU`.
    pub here: String,
    /// Whether that is how Quartz reads it.
    pub as_quartz: bool,
    /// The days that it means in the other dialect.
    pub elsewhere: String,
}

/// The expressions of a workflow whose weekdays are numbers that mean other days to crontab, where Sunday is 0 or 7, than to
/// Quartz, where it is 1.
#[must_use]
pub fn ambiguous_weekdays(workflow: &Workflow) -> Vec<WeekdayReadings> {
    let ticks = match workflow.keys.ticks() {
        Some(Schedule::Cron(schedule)) => readings(schedule.cron().as_str(), schedule),
        _ => None,
    };
    let firings = workflow.trigger.firings();
    ticks.into_iter().chain(firings.iter().filter_map(|firing| readings(firing.text(), firing.schedule()))).collect()
}

/// The items of a workflow's expressions with a step that is ignored, each after its expression: Quartz reads `MON-FRI/2` as `MON-FRI`.
#[must_use]
pub fn ignored_steps(workflow: &Workflow) -> Vec<(String, String)> {
    let ticks = match workflow.keys.ticks() {
        Some(Schedule::Cron(schedule)) => Some((schedule.cron().as_str(), schedule)),
        _ => None,
    };
    let firings = workflow.trigger.firings();
    let all = ticks.into_iter().chain(firings.iter().map(|firing| (firing.text(), firing.schedule())));
    let of_one = |(expression, schedule): (&str, &CronSchedule)| {
        let items = steps_without_effect(expression, schedule.cron());
        items.into_iter().map(|item| (expression.to_owned(), item.to_owned())).collect::<Vec<_>>()
    };
    all.flat_map(of_one).collect()
}

/// The items of an expression with a step that is ignored, as Quartz has it.
#[must_use]
pub fn steps_without_effect<'t>(expression: &'t str, cron: &Cron) -> Vec<&'t str> {
    let items = expression.split([' ', '\t', ',']).filter(|item| has_ignored_step(item));
    items.filter(|_| cron.dialect() == CronDialect::Quartz).collect()
}

/// Whether an item is a range of names with a step: `MON-FRI/2`.
fn has_ignored_step(item: &str) -> bool {
    let Some((range, _)) = item.split_once('/') else { return false };
    let is_name = |name: &str| name.len() == 3 && name.chars().all(|c| c.is_ascii_alphabetic());
    range.split_once('-').is_some_and(|(first, last)| is_name(first) && is_name(last))
}

fn readings(expression: &str, schedule: &CronSchedule) -> Option<WeekdayReadings> {
    let field = weekday_field(expression)?;
    let (quartz, crontab) = (of_quartz(field)?, of_crontab(field)?);
    let as_quartz = schedule.cron().dialect() == CronDialect::Quartz;
    let (here, elsewhere) = if as_quartz { (quartz, crontab) } else { (crontab, quartz) };
    (here != elsewhere).then(|| WeekdayReadings {
        expression: expression.to_owned(),
        field: field.to_owned(),
        here: weekday_names(here),
        as_quartz,
        elsewhere: weekday_names(elsewhere),
    })
}

/// The field of weekdays of an expression with five fields, or with six or seven.
fn weekday_field(expression: &str) -> Option<&str> {
    let mut fields: Vec<&str> = expression.split_ascii_whitespace().collect();
    fields.truncate(6);
    fields.pop().filter(|_| fields.len() >= 4)
}

/// The days on which Quartz fires.
fn of_quartz(field: &str) -> Option<Weekdays> {
    Cron::parse(&format!("0 0 0 ? * {field}")).ok()?.weekdays()
}

/// The days on which crontab fires; none where it can't read the field.
fn of_crontab(field: &str) -> Option<Weekdays> {
    match field {
        "*" => Some([true; 7]),
        field => Cron::parse(&format!("0 0 * * {field}")).ok()?.weekdays(),
    }
}

/// Days by their names, three and more in a row as a range: `SUN-THU`, `SUN,SAT`.
#[must_use]
pub fn weekday_names(days: Weekdays) -> String {
    let meant: Vec<usize> = (0..7).filter(|day| days.get(*day).copied().unwrap_or(false)).collect();
    let name = |day: Option<&usize>| day.and_then(|day| NAMES.get(*day)).copied().unwrap_or_default();
    let is_row = meant.windows(2).all(|two| matches!(two, [a, b] if a + 1 == *b));
    match meant.len() {
        3.. if is_row => format!("{}-{}", name(meant.first()), name(meant.last())),
        _ => meant.iter().map(|day| name(Some(day))).collect::<Vec<_>>().join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Firing, Zone};

    fn read(expression: &str) -> Option<(String, String)> {
        let schedule = CronSchedule::utc(Cron::parse(expression).expect("an expression"));
        readings(expression, &schedule).map(|found| (found.here, found.elsewhere))
    }

    fn days(here: &str, elsewhere: &str) -> Option<(String, String)> {
        Some((here.to_owned(), elsewhere.to_owned()))
    }

    #[test]
    fn numbers_are_other_days_to_quartz_than_to_crontab() {
        assert_eq!(read("0 4 * * 1"), days("MON", "SUN"));
        assert_eq!(read("0 4 * * 1-5"), days("MON-FRI", "SUN-THU"));
        assert_eq!(read("0 0 4 ? * 2-6"), days("MON-FRI", "TUE-SAT"));
        assert_eq!(read("0 0 4 ? * 1,7 2030"), days("SUN,SAT", "SUN,MON"));
        assert_eq!(read("0 0 4 ? * 2,4,6"), days("MON,WED,FRI", "TUE,THU,SAT"));
    }

    #[test]
    fn what_means_the_same_days_is_fine() {
        for expression in [
            "0 4 * * MON-FRI",
            "0 4 * * *",
            "0 0 4 * * ?",
            "0 0 4 ? * */2",
            "0 4 * * 1-7",
            "0 0 4 ? * sun",
            "0 4 * * 0",
        ] {
            assert_eq!(read(expression), None, "{expression}");
        }
    }

    #[test]
    fn what_only_one_dialect_has_is_not_mistaken() {
        for expression in ["0 0 4 ? * 6L", "0 0 4 ? * 6#3", "0 0 4 ? * 6-2", "0 0 4 ? * 2/2"] {
            assert_eq!(read(expression), None, "{expression}");
        }
    }

    /// Such an expression was stored before five fields were read as crontab does.
    #[test]
    fn the_dialect_that_is_in_force_is_that_of_the_schedule() {
        let firing = Firing::read_by_quartz("0 4 * * 1", Zone::utc()).expect("an expression");
        let found = readings(firing.text(), firing.schedule()).expect("another reading");
        assert_eq!((&*found.here, found.as_quartz, &*found.elsewhere), ("SUN", true, "MON"));
    }
}
