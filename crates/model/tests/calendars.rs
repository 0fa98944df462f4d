//! Calendars against simple models of them: hours by arithmetic, days by the first instant of each civil date.

use jiff::civil::{Date, Weekday, date};
use jiff::{SignedDuration, Timestamp, ToSpan};
use kelos_model::ranges::Range;
use kelos_model::time::{Calendar, Dates, HOURS, Period, Zone};
use proptest::prelude::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn zone(name: &str) -> Zone {
    Zone::parse(name).unwrap()
}

/// The first instant of a date in a zone.
fn begin(date: Date, zone: &Zone) -> Timestamp {
    date.to_zoned(zone.rules().clone()).unwrap().start_of_day().unwrap().timestamp()
}

/// The boundaries by dates: the first instants of all dates that pass, each once, since a zone may leave out a whole day.
fn boundaries(zone: &Zone, from: Date, until: Date, is_first: impl Fn(Date) -> bool) -> Vec<Timestamp> {
    let dates = std::iter::successors(Some(from), |date| date.tomorrow().ok()).take_while(|date| *date < until);
    let mut found: Vec<_> = dates.filter(|date| is_first(*date)).map(|date| begin(date, zone)).collect();
    found.dedup();
    found
}

fn periods(calendar: &Calendar, start: Timestamp, end: Timestamp) -> Vec<Period> {
    calendar.schedule().times(start, end).filter_map(|start| calendar.period_of(start)).collect()
}

#[test]
fn a_day_is_divided_by_what_divides_it() {
    for hours in 0..=u8::MAX {
        let Ok(calendar) = Calendar::hours(hours) else {
            assert!(!HOURS.contains(&hours));
            continue;
        };
        let day = periods(&calendar, at("2026-03-29T00:00Z"), at("2026-03-30T00:00Z"));
        assert_eq!(day.len(), 24 / usize::from(hours));
        assert!(day.iter().all(|one| one.length() == SignedDuration::from_hours(hours.into())));
        assert!(day.windows(2).all(|pair| pair[0].end == pair[1].start), "{hours}");
    }
    let refused = Calendar::hours(5).unwrap_err().to_string();
    assert_eq!(refused, "5 hours don't divide a day: expected 1, 2, 3, 4, 6, 8 or 12, or days, weeks or months");
}

#[test]
fn days_of_a_zone_have_23_24_or_25_hours() {
    let days = Calendar::daily(zone("Europe/Paris"));
    let hours = |day: &str| days.period_with(at(day)).unwrap().length().as_hours();
    assert_eq!((hours("2026-03-28T12:00Z"), hours("2026-03-29T12:00Z"), hours("2026-10-25T12:00Z")), (24, 23, 25));
    assert_eq!(
        days.period_with(at("2026-03-29T12:00Z")).unwrap().to_string(),
        "2026-03-28T23:00Z to 2026-03-29T22:00Z"
    );
}

/// Midnights that zones leave out, have twice, or leave out with the whole day.
#[test]
fn each_day_begins_once_whatever_its_midnight() {
    let odd = [
        ("America/Sao_Paulo", date(2018, 11, 4), "2018-11-04T03:00:00Z", 23),
        ("Africa/Cairo", date(2014, 7, 31), "2014-07-30T22:00:00Z", 24),
        ("Africa/Cairo", date(2024, 4, 26), "2024-04-25T22:00:00Z", 23),
        ("America/Havana", date(2025, 3, 9), "2025-03-09T05:00:00Z", 23),
        ("America/Havana", date(2025, 11, 2), "2025-11-02T04:00:00Z", 25),
        ("America/St_Johns", date(2006, 10, 29), "2006-10-29T02:30:00Z", 25),
    ];
    for (name, day, start, hours) in odd {
        let (zone, days) = (zone(name), Calendar::daily(zone(name)));
        let period = days.period_of(begin(day, &zone)).unwrap_or_else(|| panic!("{name} {day}"));
        assert_eq!((period.start, period.length().as_hours()), (at(start), hours), "{name} {day}");
    }
    // Samoa went from the 29th to the 31st of December.
    let days = Calendar::daily(zone("Pacific/Apia"));
    let around = periods(&days, at("2011-12-29T00:00Z"), at("2012-01-01T00:00Z"));
    let starts: Vec<_> = around.iter().map(|one| one.start.to_string()).collect();
    assert_eq!(starts, ["2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"]);
    assert!(around.iter().all(|one| one.length().as_hours() == 24));
}

#[test]
fn the_calendars_of_zones_with_odd_midnights_agree_with_their_dates() {
    let odd = [
        "Africa/Cairo",
        "America/Asuncion",
        "America/Havana",
        "America/Sao_Paulo",
        "America/St_Johns",
        "Antarctica/Troll",
        "Asia/Amman",
        "Asia/Beirut",
        "Asia/Gaza",
        "Atlantic/Azores",
        "Pacific/Apia",
        "Pacific/Kwajalein",
    ];
    let (from, until) = (date(1985, 1, 1), date(2030, 1, 1));
    for (name, zone) in odd.map(|name| (name, zone(name))) {
        let (start, end) = (begin(from, &zone), begin(until, &zone));
        let times = |calendar: &Calendar| calendar.schedule().times(start, end).collect::<Vec<_>>();
        assert_eq!(times(&Calendar::daily(zone.clone())), boundaries(&zone, from, until, |_| true), "{name}");
        let mondays = boundaries(&zone, from, until, |date| date.weekday() == Weekday::Monday);
        assert_eq!(times(&Calendar::weekly(zone.clone(), Weekday::Monday)), mondays, "{name}");
        let firsts = boundaries(&zone, from, until, |date| date.day() == 1);
        assert_eq!(times(&Calendar::monthly(zone.clone())), firsts, "{name}");
    }
}

fn dates(text: &str) -> Dates {
    text.parse().unwrap()
}

/// Business days of ten years against the rule itself, day by day.
#[test]
fn business_days_are_those_that_are_neither_weekend_nor_holiday() {
    for name in ["UTC", "Europe/Paris", "Asia/Beirut", "America/Havana", "Africa/Cairo"] {
        let zone = zone(name);
        let all =
            (2020..2030).flat_map(|year| [date(year, 1, 1), date(year, 5, 1), date(year, 12, 25), date(year, 12, 26)]);
        let holidays: Dates = all.collect();
        let calendar = Calendar::business_days(zone.clone(), &holidays);
        let is_business = |day: Date| {
            !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday) && !holidays.iter().any(|one| one == day)
        };
        let (from, until) = (date(2020, 1, 2), date(2029, 12, 31));
        let expected = boundaries(&zone, from, until, is_business);
        let (start, end) = (begin(from, &zone), begin(until, &zone));
        let found: Vec<Timestamp> = periods(&calendar, start, end).into_iter().map(|period| period.start).collect();
        assert_eq!(found, expected, "{name}");
        assert_eq!(calendar.schedule().count(Range::new(start, end)), expected.len() as u64, "{name}");
    }
}

#[test]
fn the_last_of_some_dates_is_only_an_end() {
    let sprints = Calendar::of_dates(zone("Europe/Paris"), &dates("2026-01-05\n2026-01-19\n2026-02-02")).unwrap();
    let all = |from, to| periods(&sprints, at(from), at(to)).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        all("2000-01-01T00:00Z", "2100-01-01T00:00Z"),
        ["2026-01-04T23:00Z to 2026-01-18T23:00Z", "2026-01-18T23:00Z to 2026-02-01T23:00Z"]
    );
    let due = |from, to| sprints.schedule().due_in(Range::new(at(from), at(to)));
    let planned = due("2000-01-01T00:00Z", "2100-01-01T00:00Z");
    assert_eq!(sprints.schedule().times(planned.start, planned.end).count(), 2);
    assert_eq!(sprints.schedule().next_after(at("2026-02-01T23:00Z")), None);
    assert_ne!(sprints.schedule(), Calendar::daily(zone("Europe/Paris")).schedule());
}

#[test]
fn what_is_written_reads_back_and_what_is_wrong_is_told() {
    let written = [
        (Calendar::hourly(), r#"{"period":"hourly"}"#, "each hour"),
        (Calendar::hours(6).unwrap(), r#"{"period":"hourly","hours":6}"#, "each 6 hours"),
        (
            Calendar::daily(zone("Europe/Paris")),
            r#"{"period":"daily","zone":"Europe/Paris"}"#,
            "each day of Europe/Paris",
        ),
        (
            Calendar::weekly(Zone::utc(), Weekday::Sunday),
            r#"{"period":"weekly","zone":"UTC","first":"sunday"}"#,
            "each week of UTC, from Sunday",
        ),
        (
            Calendar::business_days(Zone::utc(), &dates("2026-12-25")),
            r#"{"period":"business","zone":"UTC","holidays":["2026-12-25"]}"#,
            "each business day of UTC, with 1 holiday",
        ),
        (
            Calendar::of_dates(Zone::utc(), &dates("2026-02-02\n2026-01-05")).unwrap(),
            r#"{"period":"dates","zone":"UTC","dates":["2026-01-05","2026-02-02"]}"#,
            "from each of 2 dates of UTC to the next",
        ),
        (Calendar::monthly(Zone::utc()), r#"{"period":"monthly","zone":"UTC"}"#, "each month of UTC"),
    ];
    for (calendar, json, words) in written {
        assert_eq!(
            (serde_json::to_string(&calendar).unwrap(), calendar.to_string()),
            (json.to_owned(), words.to_owned())
        );
        assert_eq!(serde_json::from_str::<Calendar>(json).unwrap(), calendar);
    }
    let error = |json: &str| serde_json::from_str::<Calendar>(json).unwrap_err().to_string();
    assert!(error(r#"{"period":"hourly","hours":7}"#).starts_with("7 hours don't divide a day"));
    assert!(error(r#"{"period":"weekly","first":"mon"}"#).contains("expected one such as \"monday\""));
    assert!(error(r#"{"period":"daily","zone":"Europe/Pariss"}"#).contains("Europe/Paris"));
    assert!(error(r#"{"period":"daily","hours":3}"#).contains("unknown field"));
    assert!(error(r#"{"period":"dates","dates":["2026-01-05"]}"#).contains("expected two at least"));
    assert!(error(r#"{"period":"yearly"}"#).contains("unknown variant"));
}

fn calendar() -> BoxedStrategy<Calendar> {
    let zone = || prop::sample::select(vec!["UTC", "Europe/Paris", "America/Havana", "Asia/Kolkata", "Pacific/Apia"]);
    let parsed = |name: &str| Zone::parse(name).unwrap();
    prop_oneof![
        prop::sample::select(HOURS.to_vec()).prop_map(|hours| Calendar::hours(hours).unwrap()),
        zone().prop_map(move |name| Calendar::daily(parsed(name))),
        (zone(), 0_i8..7).prop_map(move |(name, day)| {
            Calendar::weekly(parsed(name), Weekday::from_monday_zero_offset(day).unwrap())
        }),
        zone().prop_map(move |name| Calendar::monthly(parsed(name))),
        zone().prop_map(move |name| Calendar::business_days(parsed(name), &dates("2026-04-03\n1999-12-31"))),
    ]
    .boxed()
}

fn moment() -> BoxedStrategy<Timestamp> {
    (86_400 * 40..4_000_000_000_i64, 0..1000_i64)
        .prop_map(|(second, milli)| Timestamp::from_millisecond(second * 1000 + milli).unwrap())
        .boxed()
}

proptest! {
    #[test]
    fn periods_follow_each_other_without_gaps(calendar in calendar(), moment in moment()) {
        let period = calendar.period_with(moment).unwrap();
        prop_assert!(period.range().contains(moment));
        prop_assert_eq!(calendar.truncate(moment), Some(period.start));
        prop_assert_eq!(calendar.next(moment), Some(period.end));
        let ceil = if moment == period.start { period.start } else { period.end };
        prop_assert_eq!(calendar.ceil(moment), Some(ceil));
        prop_assert_eq!(calendar.period_of(period.end).unwrap().start, period.end);
        let inside = moment != period.start;
        prop_assert_eq!(calendar.period_of(moment).is_none(), inside);
    }

    #[test]
    fn what_is_due_is_what_ends_in_between(calendar in calendar(), moment in moment(), hours in 0_i64..2000, millis in 0_i64..3) {
        let schedule = calendar.schedule();
        // Often at a boundary or beside it.
        let first = calendar.truncate(moment).unwrap() + (millis - 1).milliseconds();
        for start in [moment, first] {
            let end = start + hours.hours();
            let found: Vec<_> = { let due = schedule.due_in(Range::new(start, end)); schedule.times(due.start, due.end).collect() };
            let early = start - SignedDuration::from_hours(24 * 40);
            let ended = |at: &Timestamp| (start..end).contains(&calendar.period_of(*at).unwrap().end);
            prop_assert_eq!(found, schedule.times(early, end).filter(ended).collect::<Vec<_>>());
        }
    }
}
