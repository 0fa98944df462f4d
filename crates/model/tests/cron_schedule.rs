//! Schedules: the behaviours of Celos in UTC, and what daylight saving does in zones.

use std::collections::BTreeSet;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset};
use jiff::{SignedDuration, Timestamp};
use kelos_model::ranges::Range;
use kelos_model::time::{Cron, CronSchedule, Fold, Gap, Schedule, Zone};
use proptest::prelude::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

fn utc(expression: &str) -> CronSchedule {
    CronSchedule::utc(Cron::parse(expression).expect("a cron expression"))
}

fn zoned(expression: &str, zone: &str, gap: Gap, fold: Fold) -> CronSchedule {
    let cron = Cron::parse(expression).expect("a cron expression");
    CronSchedule::new(cron, Zone::parse(zone).expect("a zone"), gap, fold)
}

fn between(schedule: &CronSchedule, start: &str, end: &str) -> Vec<String> {
    schedule.times(at(start), at(end)).map(|time| time.to_string()).collect()
}

/// The local hours and minutes of a day's times, with the offset's hours where it matters.
fn local(schedule: &CronSchedule, start: &str, end: &str) -> String {
    let zone = schedule.zone().rules();
    let show = |time: Timestamp| time.to_zoned(zone.clone()).strftime("%H:%M%:z").to_string();
    let all: Vec<String> = schedule.times(at(start), at(end)).map(show).collect();
    all.join(" ")
}

#[test]
fn start_is_inclusive_and_end_exclusive() {
    let hourly = CronSchedule::hourly();
    let noon = "2013-11-26T12:00:00Z";
    assert_eq!(between(&hourly, noon, noon), [""; 0]);
    assert_eq!(between(&hourly, noon, "2013-11-26T12:00:01Z"), [noon]);
    assert_eq!(between(&hourly, noon, "2013-11-26T13:00:00Z"), [noon]);
    assert_eq!(between(&hourly, "2013-11-26T11:30:00Z", "2013-11-26T12:30:00Z"), [noon]);
    assert_eq!(between(&hourly, "2013-11-27T00:00:00Z", noon), [""; 0]);
    assert_eq!(between(&utc("0 0/15 14 * * ?"), "2013-11-26T00:00:00Z", "2013-11-27T00:00:00Z").len(), 4);
    assert_eq!(between(&hourly, "2013-11-20T00:00:00Z", "2013-11-27T00:00:00Z").len(), 168);
}

#[test]
fn times_are_whole_seconds_whatever_the_window() {
    let hourly = CronSchedule::hourly();
    let found = between(&hourly, "2013-11-26T20:05:12.00182Z", "2013-11-26T23:05:56.2182Z");
    assert_eq!(found, ["2013-11-26T21:00:00Z", "2013-11-26T22:00:00Z", "2013-11-26T23:00:00Z"]);
    let found = between(&hourly, "2013-11-26T13:00:00.345Z", "2013-11-26T15:00:00.345Z");
    assert_eq!(found, ["2013-11-26T14:00:00Z", "2013-11-26T15:00:00Z"]);
    let found = between(&hourly, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.001Z");
    assert_eq!(found, ["1970-01-01T00:00:00Z"]);
}

#[test]
fn next_and_previous_are_strict() {
    let hourly = CronSchedule::hourly();
    let next = |text| hourly.next_after(at(text)).map(|time| time.to_string());
    let previous = |text| hourly.previous_before(at(text)).map(|time| time.to_string());
    assert_eq!(next("2016-02-28T23:00:00Z").as_deref(), Some("2016-02-29T00:00:00Z"));
    assert_eq!(next("2016-02-28T22:59:59.999Z").as_deref(), Some("2016-02-28T23:00:00Z"));
    assert_eq!(previous("2016-03-01T00:00:00Z").as_deref(), Some("2016-02-29T23:00:00Z"));
    assert_eq!(previous("2016-03-01T00:00:00.001Z").as_deref(), Some("2016-03-01T00:00:00Z"));
    assert_eq!(next("2199-12-31T23:00:00Z"), None);
    assert_eq!(previous("1970-01-01T00:00:00Z"), None);
    assert_eq!(hourly.next_after(Timestamp::MAX), None);
    assert_eq!(hourly.previous_before(Timestamp::MIN), None);
    assert_eq!(hourly.next_after(Timestamp::MIN), Some(Timestamp::UNIX_EPOCH));
    assert_eq!(hourly.previous_before(Timestamp::MAX), Some(at("2199-12-31T23:00:00Z")));
}

#[test]
fn a_year_of_seconds_is_counted_by_its_days() {
    let secondly = utc("* * * * * ?");
    let year = Range::new(at("2023-01-01T00:00:00.5Z"), at("2024-01-01T00:00:00Z"));
    assert_eq!(secondly.count(year), 365 * 86_400 - 1);
    let odd = utc("5,50 0/7 3-22/2 ? * MON-FRI");
    assert_eq!(odd.count(year), odd.times(year.start, year.end).count() as u64);
    assert_eq!(odd.count(Range::new(year.end, year.start)), 0);
    assert_eq!(utc("0 0 0 1 1 ?").count(Range::new(Timestamp::MIN, Timestamp::MAX)), 230);
}

#[test]
fn contains_only_exact_times() {
    let hourly = CronSchedule::hourly();
    assert!(hourly.contains(at("2013-11-26T20:00:00Z")));
    assert!(!hourly.contains(at("2013-11-26T20:01:00Z")));
    assert!(!hourly.contains(at("2013-11-26T20:00:00.345Z")));
    assert!(CronSchedule::minutely().contains(at("2013-11-26T20:01:00Z")));
}

#[test]
fn an_expression_that_never_fires_has_no_times() {
    for never in ["0 0 0 30 2 ?", "0 0 0 1 1 ? 2300", "0 0 0 ? 2 2#5 2015"] {
        for zone in ["UTC", "Europe/Berlin"] {
            let schedule = zoned(never, zone, Gap::Shift, Fold::Auto);
            assert_eq!(schedule.next_after(at("2016-01-01T00:00:00Z")), None);
            assert_eq!(schedule.previous_before(at("2016-01-01T00:00:00Z")), None);
        }
    }
}

#[test]
fn fixed_times_in_a_gap_shift_to_its_end_or_are_skipped() {
    let day = ("2024-03-30T23:00:00Z", "2024-03-31T22:00:00Z");
    let berlin = |expression, gap| local(&zoned(expression, "Europe/Berlin", gap, Fold::Auto), day.0, day.1);
    assert_eq!(berlin("0 30 2 * * ?", Gap::Shift), "03:00+02:00");
    assert_eq!(berlin("0 30 2 * * ?", Gap::Skip), "");
    assert_eq!(berlin("0 0,30 2,3 * * ?", Gap::Shift), "03:00+02:00 03:30+02:00");
    assert_eq!(berlin("0 0/20 2 * * ?", Gap::Shift), "03:00+02:00");
    assert_eq!(berlin("0 15 2,3 * * ?", Gap::Shift), "03:00+02:00 03:15+02:00");
}

#[test]
fn hourly_schedules_go_on_over_a_gap() {
    let schedule = zoned("0 15 * * * ?", "Europe/Berlin", Gap::Shift, Fold::Auto);
    let found = local(&schedule, "2024-03-31T00:00:00Z", "2024-03-31T02:30:00Z");
    assert_eq!(found, "01:15+01:00 03:15+02:00 04:15+02:00");
    let schedule = zoned("0 0 0/6 * * ?", "America/Santiago", Gap::Shift, Fold::Auto);
    let found = local(&schedule, "2024-09-08T03:00:00Z", "2024-09-09T03:00:00Z");
    assert_eq!(found, "01:00-03:00 06:00-03:00 12:00-03:00 18:00-03:00");
}

#[test]
fn a_midnight_that_is_left_out_shifts_too() {
    let schedule = zoned("0 0 0 * * ?", "America/Santiago", Gap::Shift, Fold::Auto);
    let found = between(&schedule, "2024-09-07T00:00:00Z", "2024-09-10T00:00:00Z");
    assert_eq!(found, ["2024-09-07T04:00:00Z", "2024-09-08T04:00:00Z", "2024-09-09T03:00:00Z"]);
}

#[test]
fn fixed_times_in_a_fold_fire_at_the_pass_that_is_asked_for() {
    let day = ("2024-10-26T22:00:00Z", "2024-10-27T23:00:00Z");
    let berlin = |expression, fold| local(&zoned(expression, "Europe/Berlin", Gap::Shift, fold), day.0, day.1);
    assert_eq!(berlin("0 30 2 * * ?", Fold::Auto), "02:30+02:00");
    assert_eq!(berlin("0 30 2 * * ?", Fold::First), "02:30+02:00");
    assert_eq!(berlin("0 30 2 * * ?", Fold::Second), "02:30+01:00");
    assert_eq!(berlin("0 30 2 * * ?", Fold::Both), "02:30+02:00 02:30+01:00");
    assert_eq!(berlin("0 0 2,3 * * ?", Fold::Second), "02:00+01:00 03:00+01:00");
    assert_eq!(berlin("0 0/30 2 * * ?", Fold::First), "02:00+02:00 02:30+02:00");
}

#[test]
fn intervals_fire_in_both_passes_of_a_fold() {
    let hourly = zoned("0 0 * * * ?", "Europe/Berlin", Gap::Shift, Fold::Auto);
    assert_eq!(hourly.times(at("2024-10-26T22:00:00Z"), at("2024-10-27T23:00:00Z")).count(), 25);
    assert_eq!(hourly.times(at("2024-03-30T23:00:00Z"), at("2024-03-31T22:00:00Z")).count(), 23);
    let lord_howe = zoned("0 0/15 * * * ?", "Australia/Lord_Howe", Gap::Shift, Fold::Auto);
    let found = local(&lord_howe, "2024-04-06T14:15:00Z", "2024-04-06T15:45:00Z");
    assert_eq!(found, "01:15+11:00 01:30+11:00 01:45+11:00 01:30+10:30 01:45+10:30 02:00+10:30");
}

#[test]
fn a_schedule_is_written_with_its_policy_and_read_with_defaults() {
    let json = r#"{"cron":{"cron":"0 30 2 * * ?","zone":"Europe/Berlin","gap":"skip","fold":"both"}}"#;
    let schedule: Schedule = serde_json::from_str(json).expect("a schedule");
    assert_eq!(serde_json::to_string(&schedule).expect("json"), json);
    let hourly: Schedule = serde_json::from_str(r#"{"cron":{"cron":"0 0 * * * ?"}}"#).expect("a schedule");
    assert_eq!(hourly, Schedule::Cron(CronSchedule::hourly()));
    let other: Schedule = serde_json::from_str(r#"{"dependent":"other"}"#).expect("a schedule");
    assert_eq!(serde_json::to_string(&other).expect("json"), r#"{"dependent":"other"}"#);
    let broken = serde_json::from_str::<Schedule>(r#"{"cron":{"cron":"0 0 25 * * ?"}}"#);
    assert!(broken.expect_err("a bad hour").to_string().contains("hour field \"25\" is out of range"));
}

const EXPRESSIONS: [&str; 14] = [
    "0 0 * * * ?",
    "0 15 * * * ?",
    "0 0/30 * * * ?",
    "0 0 0/2 * * ?",
    "0 30 2 * * ?",
    "0 0,15,45 0-3 * * ?",
    "0 0/20 2 * * ?",
    "30 59 1,2 * * ?",
    "0 0 0 L * ?",
    "0 0 0 LW * ?",
    "0 0 2 ? * SUNL",
    "0 30 1 ? 4,10 SUN#1",
    "0 0 12 29 2 ?",
    "*/20 29-31 2 ? * SUN",
];

fn any_schedule() -> impl Strategy<Value = CronSchedule> {
    let zones = ["UTC", "Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"];
    let gaps = [Gap::Shift, Gap::Skip];
    let folds = [Fold::Auto, Fold::First, Fold::Second, Fold::Both];
    (0..EXPRESSIONS.len(), 0..zones.len(), 0..gaps.len(), 0..folds.len())
        .prop_map(move |(e, z, g, f)| zoned(EXPRESSIONS[e], zones[z], gaps[g], folds[f]))
}

/// Instants near changes of the clocks in the zones above, and leap days, more often than others.
fn any_instant() -> impl Strategy<Value = Timestamp> {
    let special = [
        "2024-03-31T01:00:00Z",
        "2024-10-27T01:00:00Z",
        "2024-09-08T04:00:00Z",
        "2024-04-07T03:00:00Z",
        "2024-10-05T15:30:00Z",
        "2024-04-06T15:00:00Z",
        "2024-02-29T00:00:00Z",
    ];
    let near = (0..special.len(), -90_000_i64..90_000).prop_map(move |(n, shift)| at(special[n]).as_second() + shift);
    let nanos = prop_oneof![Just(0), 1..1_000_000_000_i32];
    (prop_oneof![near, 0..4_000_000_000_i64], nanos)
        .prop_map(|(second, nanos)| Timestamp::new(second, nanos).expect("an instant"))
}

#[test]
fn nothing_is_counted_of_a_range_that_ends_before_it_begins_on_the_wall() {
    let hourly = zoned("0 0 * * * ?", "Europe/Berlin", Gap::Shift, Fold::Second);
    let start = at("2024-10-27T00:59:59Z");
    for seconds in [1, 2, 17, 3_600, 7_200] {
        let end = start + SignedDuration::from_secs(seconds);
        let listed = hourly.times(start, end).count() as u64;
        assert_eq!(
            hourly.count(Range::new(start, end)),
            listed,
            "{seconds} s from 02:59:59 on, when the clock goes back"
        );
    }
}

proptest! {
    #[test]
    fn previous_mirrors_next(schedule in any_schedule(), start in any_instant()) {
        let end = Timestamp::from_second(start.as_second() + 3 * 86_400).expect("an instant");
        let forwards: Vec<Timestamp> = schedule.times(start, end).collect();
        let back = std::iter::successors(schedule.previous_before(end), |t| schedule.previous_before(*t));
        let mut backwards: Vec<Timestamp> = back.take_while(|time| *time >= start).collect();
        backwards.reverse();
        prop_assert_eq!(&forwards, &backwards);
        prop_assert!(forwards.is_sorted_by(|a, b| a < b));
        prop_assert!(forwards.iter().all(|time| schedule.contains(*time)));
    }

    #[test]
    fn counts_what_it_lists(schedule in any_schedule(), start in any_instant(), hours in 0_i64..200) {
        let end = Timestamp::from_second(start.as_second() + hours * 3600 + 17).expect("an instant");
        let listed = schedule.times(start, end).count() as u64;
        prop_assert_eq!(schedule.count(Range::new(start, end)), listed);
    }

    #[test]
    fn next_and_times_agree(schedule in any_schedule(), start in any_instant()) {
        let next = schedule.next_after(start);
        let far = Timestamp::from_second(7_000_000_000).expect("an instant");
        prop_assert_eq!(schedule.times(start, far).find(|time| *time > start), next);
        if let Some(next) = next {
            prop_assert!(next > start && schedule.contains(next));
            prop_assert!(schedule.previous_before(next).is_none_or(|before| before <= start));
        }
    }

    #[test]
    fn agrees_with_the_plain_rule(schedule in any_schedule(), start in any_instant()) {
        let end = Timestamp::from_second(start.as_second() + 2 * 86_400).expect("an instant");
        let found: BTreeSet<Timestamp> = schedule.times(start, end).collect();
        let plain = plain_times(&schedule, start, end);
        prop_assert_eq!(found, plain.into_iter().filter(|time| *time >= start && *time < end).collect());
    }
}

/// The times between two instants and some more around them, told from the civil times one by one, with the
/// zone's own word on each whether it is missing or there twice.
fn plain_times(schedule: &CronSchedule, start: Timestamp, end: Timestamp) -> BTreeSet<Timestamp> {
    let zone = schedule.zone().rules();
    let day = SignedDuration::from_hours(24);
    let (first, last) = (zone.to_datetime(start) - day, zone.to_datetime(end) + day);
    let civil = std::iter::successors(schedule.cron().next_after(first), |at| schedule.cron().next_after(*at));
    civil.take_while(|at| *at < last).flat_map(|at| plain_instants(schedule, at)).collect()
}

fn plain_instants(schedule: &CronSchedule, civil: DateTime) -> Vec<Timestamp> {
    let instant = |offset: Offset| offset.to_timestamp(civil).expect("an instant");
    match schedule.zone().rules().to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => vec![instant(offset)],
        AmbiguousOffset::Fold { before, after } => match schedule.effective_fold() {
            Fold::First => vec![instant(before)],
            Fold::Second => vec![instant(after)],
            _ => vec![instant(before), instant(after)],
        },
        AmbiguousOffset::Gap { .. } if schedule.gap() == Gap::Skip => vec![],
        AmbiguousOffset::Gap { after, .. } => {
            let change = schedule.zone().rules().following(instant(after)).next();
            let resumes = change.expect("the end of the gap").timestamp();
            let local = schedule.zone().rules().to_datetime(resumes);
            let next = schedule.cron().next_after(local - SignedDuration::from_secs(1));
            let soon = next.is_some_and(|next| next < local + SignedDuration::from_hours(1));
            if soon && schedule.cron().has_stepped_hours() { vec![] } else { vec![resumes] }
        }
    }
}
