//! Texts that are read as times, in zones with and without daylight saving.

use proptest::prelude::*;

use super::super::text::format_full;
use super::*;

fn zone(name: &str) -> Zone {
    Zone::parse(name).expect("a zone")
}

fn instant(text: &str) -> Timestamp {
    parse_instant(text).expect("an instant")
}

/// The time that a text names at a moment in a zone, or the mistake in it.
fn read(text: &str, now: &str, zone_name: &str) -> String {
    let read = parse_typed(text, instant(now), &zone(zone_name));
    read.map_or_else(|error| error.to_string(), |typed| format_full(typed.at()))
}

const NOW: &str = "2026-11-23T12:34:56.789Z";

#[test]
fn every_form_is_read() {
    for (text, berlin) in [
        ("now", "2026-11-23T12:34:56.789Z"),
        ("-2d", "2026-11-21T12:34:56.789Z"),
        ("-90m", "2026-11-23T11:04:56.789Z"),
        ("-1w", "2026-11-16T12:34:56.789Z"),
        ("now-2d", "2026-11-21T12:34:56.789Z"),
        ("+36h", "2026-11-25T00:34:56.789Z"),
        ("today", "2026-11-22T23:00:00.000Z"),
        ("yesterday", "2026-11-21T23:00:00.000Z"),
        ("06:00", "2026-11-23T05:00:00.000Z"),
        ("6:05:30", "2026-11-23T05:05:30.000Z"),
        ("23:59", "2026-11-23T22:59:00.000Z"),
        ("06:00Z", "2026-11-23T06:00:00.000Z"),
        ("06:00+02:00", "2026-11-23T04:00:00.000Z"),
        ("06:00-05:00", "2026-11-23T11:00:00.000Z"),
        ("today 06:00", "2026-11-23T05:00:00.000Z"),
        ("yesterday 06:00", "2026-11-22T05:00:00.000Z"),
        (" yesterday  06:00z ", "2026-11-22T06:00:00.000Z"),
        ("yesterday 01:00+09:00", "2026-11-21T16:00:00.000Z"),
        ("2026-11-21", "2026-11-20T23:00:00.000Z"),
        ("2026-325", "2026-11-20T23:00:00.000Z"),
        ("2026-11", "2026-10-31T23:00:00.000Z"),
        ("2026-11-21T06:00", "2026-11-21T05:00:00.000Z"),
        ("2026-07-21T06:00:30.5", "2026-07-21T04:00:30.500Z"),
        ("2026-11-21T06:00Z", "2026-11-21T06:00:00.000Z"),
        ("2026-11-21T06:00+02:00", "2026-11-21T04:00:00.000Z"),
        ("2026-11-21T06-0530", "2026-11-21T11:30:00.000Z"),
        ("2026-11-21T06:00:01.5+02", "2026-11-21T04:00:01.500Z"),
    ] {
        assert_eq!(read(text, NOW, "Europe/Berlin"), berlin, "{text}");
    }
    assert_eq!(read("today", NOW, "UTC"), "2026-11-23T00:00:00.000Z");
    assert_eq!(read("today", "2026-11-23T23:30Z", "Europe/Berlin"), "2026-11-23T23:00:00.000Z");
    assert_eq!(read("yesterday 06:00", "2026-11-23T02:00Z", "America/New_York"), "2026-11-21T11:00:00.000Z");
}

#[test]
fn it_says_how_exactly_the_time_was_named() {
    let read = |text: &str| parse_typed(text, instant(NOW), &zone("Europe/Berlin")).expect(text);
    let (start, end) = (instant("2026-11-21T23:00Z"), instant("2026-11-22T23:00Z"));
    assert_eq!(read("yesterday"), TypedTime::Day { start, end });
    assert_eq!(
        (read("2026-11-22"), read("2026-W47-7")),
        (TypedTime::Day { start, end }, TypedTime::Day { start, end })
    );
    assert_eq!(read("2026-11"), TypedTime::Local(instant("2026-10-31T23:00Z")), "a month is no day");
    assert_eq!(read("06:00"), TypedTime::Local(instant("2026-11-23T05:00Z")));
    assert_eq!(read("06:00Z"), TypedTime::Absolute(instant("2026-11-23T06:00Z")));
    assert_eq!(read("-1d"), TypedTime::Relative(instant("2026-11-22T12:34:56.789Z")));
    for local in ["today", "06:00", "2026", "2026-11-22", "2026-11-22T06"] {
        assert!(read(local).is_local(), "{local}");
    }
    for fixed in ["now", "-2d", "06:00Z", "2026-11-22T06Z", "2026-11-22T06+00:00", "2026-11-22T06-05"] {
        assert!(!read(fixed).is_local(), "{fixed}");
    }
}

#[test]
fn an_instant_that_is_written_out_is_of_the_zone_unless_it_has_an_offset() {
    let read = |text: &str| {
        let read = parse_written(text, &zone("Europe/Berlin"));
        read.map_or_else(|error| error.to_string(), format_full)
    };
    for (text, at) in [
        ("2026-10-01", "2026-09-30T22:00:00.000Z"),
        ("2026-11-01T00:00", "2026-10-31T23:00:00.000Z"),
        ("2026-10-01T00:00Z", "2026-10-01T00:00:00.000Z"),
        ("2026-10-01T00:00+00:00", "2026-10-01T00:00:00.000Z"),
        ("2026-10-01T00:00-05:00", "2026-10-01T05:00:00.000Z"),
    ] {
        assert_eq!(read(text), at, "{text}");
    }
    assert!(read("2026-03-29T02:30").contains("does not exist on 2026-03-29 in Europe/Berlin"));
    assert!(read("today").contains("has no year of four digits at \"today\": expected a form such as 2013-11-26"));
    assert!(read("2026-10-01T00:00+25:00").contains("has no such offset: expected one such as"));
    // A day that a zone leaves out is where the next one begins.
    let gone = parse_written("2011-12-30", &zone("Pacific/Apia"));
    assert_eq!(gone, parse_written("2011-12-31", &zone("Pacific/Apia")));
}

#[test]
fn times_that_the_zone_leaves_out_or_has_twice_are_refused() {
    let forward = "time \"02:30\" does not exist on 2026-03-29 in Europe/Berlin, where the clocks are put forward over it: \
                   expected another one";
    assert_eq!(read("02:30", "2026-03-29T12:00Z", "Europe/Berlin"), forward);
    let back = "time \"yesterday 02:30\" occurs twice on 2026-10-25 in Europe/Berlin, where the clocks are put back over it: \
                expected 2026-10-25T02:30:00+02 or 2026-10-25T02:30:00+01";
    assert_eq!(read("yesterday 02:30", "2026-10-26T12:00Z", "Europe/Berlin"), back);
    for (text, at) in
        [("2026-10-25T02:30:00+02", "2026-10-25T00:30:00.000Z"), ("2026-10-25T02:30:00+01", "2026-10-25T01:30:00.000Z")]
    {
        assert_eq!(read(text, NOW, "UTC"), at);
    }
    // Days begin with their first instant, also where that is not midnight, or where midnight comes twice.
    assert_eq!(read("today", "2018-11-04T15:00Z", "America/Sao_Paulo"), "2018-11-04T03:00:00.000Z");
    assert_eq!(read("today", "2026-11-01T15:00Z", "America/Havana"), "2026-11-01T04:00:00.000Z");
}

#[test]
fn what_is_no_time_is_refused_with_the_forms() {
    for (text, part) in [
        (
            "",
            "time \"\" is not understood: expected now, -90m, -2d, today, yesterday, 06:00, \"yesterday 06:00\", 2013-11-26",
        ),
        ("soon", "is not understood"),
        ("yesteday", "2013-11-26T17:23+02:00; did you mean \"yesterday\"?"),
        ("-5", "has no length of time such as 90m, 36h, 2d or 1w"),
        ("-2x", "has no length of time"),
        ("+-2d", "has no length of time"),
        ("-9223372036854775807w", "has no length of time"),
        ("-99999999w", "has no length of time"),
        ("now2d", "is not understood"),
        ("2d", "has no year of four digits at \"2d\""),
        ("24:00", "has no time of day such as 06:00"),
        ("06:60", "has no time of day"),
        ("06:", "has no time of day"),
        ("06:00é", "has no time of day"),
        ("06:00+99:00", "has no time of day"),
        ("yesterday soon", "has no time of day"),
        ("yesterday 06", "has no time of day"),
        ("2013-11-31", "has a date that doesn't exist at \"2013-11-31\""),
        ("2013-11-26 10:00", "goes on unexpectedly at \" 10:00\""),
        ("2013-11-26T10:00+1:5", "has no such offset"),
        ("2013-11-26T10:00+24:00", "has no such offset"),
    ] {
        let message = read(text, NOW, "Europe/Berlin");
        assert!(message.contains(part), "{text}: {message}");
    }
}

fn any_instant() -> impl Strategy<Value = Timestamp> {
    let range = Timestamp::MIN.as_millisecond()..=Timestamp::MAX.as_millisecond();
    range.prop_map(|millis| Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH))
}

fn recent_instant() -> impl Strategy<Value = Timestamp> {
    (0_i64..4_000_000_000).prop_map(|second| Timestamp::from_second(second).expect("an instant"))
}

fn any_zone() -> impl Strategy<Value = Zone> {
    let names = ["UTC", "Europe/Berlin", "America/Havana", "Pacific/Apia", "Australia/Lord_Howe", "Africa/Monrovia"];
    prop::sample::select(names.map(zone).to_vec())
}

proptest! {
    #[test]
    fn no_text_moment_or_zone_is_too_odd(
        text in "\\PC{0,24}",
        near in "(now|today|yesterday|20[0-9]{2}-[0-9]{2}-[0-9]{2}T?)? ?[-+]?[0-9:Zwdhms+.-]{0,12}",
        now in any_instant(),
        zone in any_zone(),
    ) {
        for text in [&text, &near] {
            let read = parse_typed(text, now, &zone);
            if let Ok(at) = parse_instant(text.trim()) {
                let in_utc = parse_typed(text, now, &Zone::utc()).map(TypedTime::at);
                // The last day may have no midnight in milliseconds.
                prop_assert!(in_utc == Ok(at) || in_utc.is_err(), "{:?}", in_utc);
                prop_assert!(!has_offset(text) || read == Ok(TypedTime::Absolute(at)));
            } else if let Err(error) = read {
                prop_assert!(error.to_string().contains("expected"));
            }
        }
        let _ = (parse_typed("today", now, &zone), parse_typed("yesterday 23:59:59", now, &zone));
    }

    #[test]
    fn what_is_written_in_utc_means_the_same_as_ever(at in recent_instant(), now in any_instant(), zone in any_zone()) {
        prop_assert_eq!(parse_typed(&format_full(at), now, &zone), Ok(TypedTime::Absolute(at)));
    }

    #[test]
    fn an_offset_is_taken_off(at in recent_instant(), minutes in -1439_i32..1440, now in any_instant()) {
        let offset = Offset::from_seconds(minutes * 60).expect("an offset");
        let sign = if minutes < 0 { '-' } else { '+' };
        let text = format!("{}{sign}{:02}:{:02}", offset.to_datetime(at), minutes.abs() / 60, minutes.abs() % 60);
        prop_assert_eq!(parse_typed(&text, now, &Zone::utc()), Ok(TypedTime::Absolute(at)), "{}", text);
    }

    #[test]
    fn the_time_of_day_of_a_moment_is_that_moment_or_comes_twice(at in recent_instant(), zone in any_zone()) {
        let clock = zone.rules().to_datetime(at).time();
        let text = format!("{:02}:{:02}:{:02}", clock.hour(), clock.minute(), clock.second());
        match parse_typed(&text, at, &zone) {
            Ok(typed) => prop_assert_eq!(typed, TypedTime::Local(at)),
            Err(TypedTimeError::Fold { first, second, .. }) => {
                let read = [first, second].map(|text| parse_typed(&text, at, &zone).map(TypedTime::at));
                // An offset of Monrovia before 1972 had seconds, which have no place in the text.
                prop_assert!(read.contains(&Ok(at)) || zone.name() == "Africa/Monrovia");
            }
            Err(error) => prop_assert!(false, "{text} in {zone}: {error}"),
        }
    }

    #[test]
    fn a_day_holds_its_moments(now in recent_instant(), zone in any_zone()) {
        let Ok(TypedTime::Day { start, end }) = parse_typed("today", now, &zone) else {
            return Err(TestCaseError::fail("no day"));
        };
        prop_assert!(start <= now && now < end, "{} <= {} < {}", start, now, end);
    }
}
