//! Expressions of five fields against a matcher that knows nothing of ours: it reads each field into a list of numbers, and looks at each
//! minute of the clock.

use std::collections::BTreeSet;

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use kelos_model::time::{Cron, CronDialect, CronSchedule, Fold, Gap, Zone};
use proptest::prelude::*;

/// An expression, read the plain way.
struct Crontab {
    minutes: Vec<i8>,
    hours: Vec<i8>,
    days: Vec<i8>,
    months: Vec<i8>,
    weekdays: Vec<i8>,
    are_days_open: bool,
    are_weekdays_open: bool,
}

const MONTHS: &str = "jan feb mar apr may jun jul aug sep oct nov dec";
const WEEKDAYS: &str = "sun mon tue wed thu fri sat";

/// The numbers of a field.
fn field(text: &str, smallest: i8, largest: i8, names: &str) -> Vec<i8> {
    let number = |text: &str| {
        let name = names.split(' ').position(|name| name == text.to_lowercase());
        name.map_or_else(|| text.parse().expect("a number"), |place| smallest + place as i8)
    };
    let mut all = Vec::new();
    for item in text.split(',') {
        let (range, step) = item.split_once('/').unwrap_or((item, "1"));
        let (first, last) = match range.split_once('-') {
            None if range == "*" => (smallest, largest),
            None => (number(range), number(range)),
            Some((first, last)) => (number(first), number(last)),
        };
        all.extend((first..=last).step_by(step.parse().expect("a step")));
    }
    all
}

impl Crontab {
    fn read(text: &str) -> Crontab {
        let [minutes, hours, days, months, weekdays] = text.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{text}")
        };
        Crontab {
            minutes: field(minutes, 0, 59, ""),
            hours: field(hours, 0, 23, ""),
            days: field(days, 1, 31, ""),
            months: field(months, 1, 12, MONTHS),
            weekdays: field(weekdays, 0, 7, WEEKDAYS).into_iter().map(|day| day % 7).collect(),
            are_days_open: days.starts_with('*'),
            are_weekdays_open: weekdays.starts_with('*'),
        }
    }

    /// Whether it fires in a minute of the clock on the wall.
    fn has(&self, at: DateTime) -> bool {
        let day = self.days.contains(&at.day());
        let weekday = self.weekdays.contains(&at.date().weekday().to_sunday_zero_offset());
        let is_day = if self.are_days_open || self.are_weekdays_open { day && weekday } else { day || weekday };
        is_day
            && self.months.contains(&at.month())
            && self.hours.contains(&at.hour())
            && self.minutes.contains(&at.minute())
    }
}

/// Each minute of the clock on the wall, from one civil time until another.
fn minutes(from: DateTime, until: DateTime) -> impl Iterator<Item = DateTime> {
    std::iter::successors(Some(from), |at| Some(*at + SignedDuration::from_mins(1))).take_while(move |at| *at < until)
}

fn item(smallest: u8, largest: u8, names: &'static str) -> BoxedStrategy<String> {
    let step = 1..=largest;
    let range = (smallest..=largest).prop_flat_map(move |first| (Just(first), first..=largest));
    let names: Vec<String> = names.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let number = (smallest..=largest).prop_map(|number| number.to_string());
    let single = if names.is_empty() {
        number.boxed()
    } else {
        prop_oneof![
            number,
            prop::sample::select(names.clone()),
            prop::sample::select(names).prop_map(|name| name.to_uppercase())
        ]
        .boxed()
    };
    prop_oneof![
        3 => Just("*".to_owned()),
        1 => step.clone().prop_map(|step| format!("*/{step}")),
        2 => single,
        2 => range.clone().prop_map(|(first, last)| format!("{first}-{last}")),
        1 => (range, step).prop_map(|((first, last), step)| format!("{first}-{last}/{step}")),
    ]
    .boxed()
}

fn list(smallest: u8, largest: u8, names: &'static str) -> impl Strategy<Value = String> {
    prop::collection::vec(item(smallest, largest, names), 1..4).prop_map(|items| items.join(","))
}

fn expression() -> impl Strategy<Value = String> {
    let fields = (list(0, 59, ""), list(0, 23, ""), list(1, 31, ""), list(1, 12, MONTHS), list(0, 7, WEEKDAYS));
    fields.prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
}

fn a_day() -> impl Strategy<Value = DateTime> {
    (2019_i16..2026, 1_i8..=12, 1_i8..=28)
        .prop_map(|(year, month, day)| DateTime::constant(year, month, day, 0, 0, 0, 0))
}

/// Days around which clocks are changed, in zones that do so by an hour, by half an hour and at midnight.
const CHANGES: [(&str, DateTime); 8] = [
    ("Europe/Berlin", DateTime::constant(2024, 3, 30, 0, 0, 0, 0)),
    ("Europe/Berlin", DateTime::constant(2024, 10, 26, 0, 0, 0, 0)),
    ("America/New_York", DateTime::constant(2025, 3, 8, 0, 0, 0, 0)),
    ("America/New_York", DateTime::constant(2025, 11, 1, 0, 0, 0, 0)),
    ("Australia/Lord_Howe", DateTime::constant(2024, 4, 6, 0, 0, 0, 0)),
    ("Australia/Lord_Howe", DateTime::constant(2024, 10, 5, 0, 0, 0, 0)),
    ("America/Havana", DateTime::constant(2024, 3, 9, 0, 0, 0, 0)),
    ("America/Havana", DateTime::constant(2024, 11, 2, 0, 0, 0, 0)),
];

fn zoned(text: &str, zone: &str, gap: Gap, fold: Fold) -> CronSchedule {
    CronSchedule::new(Cron::parse(text).expect("an expression"), Zone::parse(zone).expect("a zone"), gap, fold)
}

/// Three days from a civil time on.
fn bounds(rules: &TimeZone, from: DateTime) -> (Timestamp, Timestamp) {
    let instant = |at: DateTime| rules.to_timestamp(at).expect("an instant");
    (instant(from), instant(from + SignedDuration::from_hours(72)))
}

/// The instant of a civil time: its first pass, or the end of the gap in which it lies.
fn once(rules: &TimeZone, at: DateTime) -> Timestamp {
    let instant = |at: DateTime, offset: Offset| offset.to_timestamp(at).expect("an instant");
    let exists = |at: DateTime, offset: Offset| rules.to_datetime(instant(at, offset)) == at;
    let day = instant(at, Offset::UTC);
    let before = rules.to_offset(day - SignedDuration::from_hours(20));
    let after = rules.to_offset(day + SignedDuration::from_hours(20));
    match [before, after].into_iter().find(|offset| exists(at, *offset)) {
        Some(offset) => instant(at, offset),
        // It fires where the clock goes on: at the first minute that exists.
        None => once(rules, at + SignedDuration::from_mins(1)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn says_what_each_minute_of_the_clock_says(text in expression(), from in a_day()) {
        let cron = Cron::parse(&text).expect("an expression");
        prop_assert_eq!(cron.dialect(), CronDialect::Unix);
        let crontab = Crontab::read(&text);
        let until = from + SignedDuration::from_hours(24 * 31);
        let theirs: Vec<DateTime> = minutes(from, until).filter(|at| crontab.has(*at)).collect();
        let next = |at: &DateTime| cron.next_after(*at).filter(|at| *at < until);
        let before = from - SignedDuration::from_secs(1);
        let ours: Vec<DateTime> = std::iter::successors(next(&before), next).collect();
        prop_assert_eq!(&ours, &theirs);
        let previous = |at: &DateTime| cron.previous_before(*at).filter(|at| *at >= from);
        let mut back: Vec<DateTime> = std::iter::successors(previous(&until), previous).collect();
        back.reverse();
        prop_assert_eq!(back, theirs);
    }

    /// In a zone each minute that exists fires as the clock on the wall has it, with both passes of a repeated one, and no minute of a gap.
    #[test]
    fn in_a_zone_the_clock_on_the_wall_decides(text in expression(), change in prop::sample::select(&CHANGES[..])) {
        let (zone, from) = change;
        let schedule = zoned(&text, zone, Gap::Skip, Fold::Both);
        let rules = schedule.zone().rules().clone();
        let crontab = Crontab::read(&text);
        let (start, end) = bounds(&rules, from);
        let each = std::iter::successors(Some(start), |at| Some(*at + SignedDuration::from_mins(1)));
        let theirs: Vec<Timestamp> =
            each.take_while(|at| *at < end).filter(|at| crontab.has(rules.to_datetime(*at))).collect();
        let ours: Vec<Timestamp> = schedule.times(start, end).collect();
        prop_assert_eq!(ours, theirs);
    }

    /// The first pass alone, and the end of a gap for what is lost in it.
    #[test]
    fn fixed_times_fire_once_however_clocks_change(
        minute in 0..60, hour in 0..24, weekday in 0..8, change in prop::sample::select(&CHANGES[..]),
    ) {
        let (zone, from) = change;
        let text = format!("{minute} {hour} * * {weekday}");
        let schedule = zoned(&text, zone, Gap::Shift, Fold::Auto);
        let rules = schedule.zone().rules().clone();
        let (start, end) = bounds(&rules, from);
        let crontab = Crontab::read(&text);
        let civil = minutes(from, from + SignedDuration::from_hours(72)).filter(|at| crontab.has(*at));
        let theirs: BTreeSet<Timestamp> = civil.map(|at| once(&rules, at)).collect();
        let ours: BTreeSet<Timestamp> = schedule.times(start, end).collect();
        prop_assert_eq!(ours, theirs);
    }
}
