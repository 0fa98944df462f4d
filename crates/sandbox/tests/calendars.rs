//! `celos.calendar`: workflows about periods.

use kelos_model::time::{Calendar, Schedule, Zone};

use crate::support::Folder;

/// The calendar of a workflow with these fields.
#[track_caller]
fn defined(fields: &str) -> Calendar {
    let folder = Folder::new();
    folder.write("a.js", &format!("kelos.workflow(\"w\", {{command: [\"true\"], {fields}}});"));
    let loaded = folder.load();
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    match loaded.workflows[0].keys.schedule() {
        Some(Schedule::Calendar(calendar)) => calendar.clone(),
        other => panic!("{other:?}"),
    }
}

/// The problem of a workflow with these fields.
#[track_caller]
fn refused(fields: &str) -> String {
    let folder = Folder::new();
    folder.write("a.js", &format!("kelos.workflow(\"w\", {{command: [\"true\"], {fields}}});"));
    let loaded = folder.load();
    assert_eq!(loaded.problems.len(), 1, "{fields}: {:?}", loaded.problems);
    loaded.problems[0].to_string()
}

#[test]
fn calendars_have_hours_days_weeks_and_months() {
    let paris = || Zone::parse("Europe/Paris").unwrap();
    assert_eq!(defined(r#"schedule: celos.calendar("hourly")"#), Calendar::hourly());
    assert_eq!(defined(r#"schedule: celos.calendar("hourly", {hours: 6})"#), Calendar::hours(6).unwrap());
    assert_eq!(defined(r#"schedule: celos.calendar("daily", {timeZone: "Europe/Paris"})"#), Calendar::daily(paris()));
    assert_eq!(defined(r#"schedule: celos.calendar("monthly")"#), Calendar::monthly(Zone::utc()));
    let weeks = defined(r#"schedule: celos.calendar("weekly", {timeZone: "Europe/Paris", firstDay: "sunday"})"#);
    assert_eq!(weeks.to_string(), "each week of Europe/Paris, from Sunday");
}

#[test]
fn business_days_and_dates_are_lists_or_texts_of_the_defaults_folder() {
    let folder = Folder::new();
    folder.write("defaults/target2.txt", "# closed\n2026-04-03 Good Friday\n2026-04-06 Easter Monday\n");
    folder.write(
        "a.js",
        r#"kelos.workflow("days", {command: ["true"], schedule: celos.calendar("business", {timeZone: "Europe/Paris", holidays: "target2.txt"})});
        kelos.workflow("sprints", {command: ["true"], schedule: celos.calendar("dates", {dates: ["2026-01-05", "2026-01-19", "2026-02-02"]})});"#,
    );

    let loaded = folder.load();
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    let written = |loaded: &kelos_sandbox::LoadResult| {
        loaded.workflows.iter().map(|one| one.keys.calendar().unwrap().to_string()).collect::<Vec<_>>()
    };
    let sprints = "from each of 3 dates of UTC to the next";
    assert_eq!(written(&loaded), ["each business day of Europe/Paris, with 2 holidays", sprints]);
    assert!(loaded.sources.contains_key("defaults/target2.txt"), "{:?}", loaded.sources.keys());
    // The file is read again when the text changes.
    folder.write("defaults/target2.txt", "2026-04-03\n2026-04-06\n2026-05-01\n");
    assert_eq!(written(&folder.load()), ["each business day of Europe/Paris, with 3 holidays", sprints]);
    folder.write("defaults/target2.txt", "2026-04-03\n6 April\n");
    let problem = folder.load().problems[0].to_string();
    assert!(
        problem.contains("line 2 is \"6 April\": expected a date such as 2026-12-25, in defaults/target2.txt"),
        "{problem}"
    );
}

#[test]
fn both_builders_take_them_and_the_values_of_their_ends() {
    let folder = Folder::new();
    folder.write(
        "a.js",
        r#"celos.defineWorkflow({
            id: "w", schedule: celos.calendar("daily"), schedulingStrategy: celos.serialSchedulingStrategy(),
            trigger: celos.fileCheckTrigger("/in/${end_year}-${end_month}-${end_day}"), startTime: "2026-01-01T00:00Z", endTime: "2026-02-01T00:00Z",
            externalService: celos.commandExternalService({command: ["true", "${end_hour}"]})});"#,
    );
    let loaded = folder.load();
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    assert_eq!(loaded.workflows[0].end_time, Some("2026-02-01T00:00Z".parse().unwrap()));
}

#[test]
fn what_is_no_calendar_is_refused_with_what_was_expected() {
    let told = [
        (
            r#"schedule: celos.calendar("yearly")"#,
            r#"period: expected "hourly" or "daily" or "weekly" or "monthly" or "business" or "dates", not "yearly""#,
        ),
        (r#"schedule: celos.calendar("hourly", {hours: 5})"#, r#"hours: expected "1" or "2" or "3""#),
        (r#"schedule: celos.calendar("daily", {hours: 6})"#, r#"hours is for "hourly" periods"#),
        (r#"schedule: celos.calendar("daily", {firstDay: "monday"})"#, r#"firstDay is for "weekly" periods"#),
        (r#"schedule: celos.calendar("hourly", {timeZone: "Europe/Paris"})"#, "expected no timeZone"),
        (r#"schedule: celos.calendar("daily", {holidays: []})"#, r#"holidays is for "business" periods"#),
        (r#"schedule: celos.calendar("business", {holidays: ["25.12.2026"]})"#, "expected a date such as 2026-12-25"),
        (r#"schedule: celos.calendar("business", {holidays: 5})"#, "expected dates such as"),
        (r#"schedule: celos.calendar("business", {holidays: "no.txt"})"#, "no.txt"),
        (r#"schedule: celos.calendar("business", {holidays: "../x.txt"})"#, "inside the defaults folder"),
        (r#"schedule: celos.calendar("business", {holidays: "dates"})"#, "the name of a .txt file"),
        (r#"schedule: celos.calendar("business", {weekend: ["caturday"]})"#, "weekend[0]: expected"),
        (
            r#"schedule: celos.calendar("business", {weekend: ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]})"#,
            "expected one business day at least",
        ),
        (r#"schedule: celos.calendar("dates")"#, "dates is missing"),
        (r#"schedule: celos.calendar("dates", {dates: ["2026-01-01"]})"#, "expected two at least"),
        (r#"schedule: celos.calendar("daily", {timeZone: "Europe/Pariss"})"#, "Europe/Paris"),
        (r#"schedule: celos.calendar("daily"), timeZone: "Europe/Paris""#, "no effect on a calendar"),
        (
            r#"schedule: celos.calendar("daily"), startTime: "2026-01-02T00:00Z", endTime: "2026-01-01T00:00Z""#,
            "ends before it starts",
        ),
    ];
    for (fields, words) in told {
        let problem = refused(fields);
        assert!(problem.contains(words), "{fields}: {problem}");
    }
}

#[test]
fn the_times_of_periods_are_not_borrowed() {
    let folder = Folder::new();
    folder.write(
        "a.js",
        r#"kelos.workflow("days", {command: ["true"], schedule: celos.calendar("daily")});
        kelos.workflow("report", {command: ["true"], schedule: celos.dependentSchedule("days")});"#,
    );
    let problems: Vec<String> = kelos_sandbox::warnings(&folder.load()).iter().map(ToString::to_string).collect();
    assert!(problems[0].contains("whose slots are about periods: expected the same calendar for both"), "{problems:?}");
}

#[test]
fn a_bound_in_the_middle_of_a_period_is_told() {
    let folder = Folder::new();
    folder.write(
        "a.js",
        r#"kelos.workflow("days", {command: ["true"], schedule: celos.calendar("daily", {timeZone: "Europe/Paris"}),
            startTime: "2026-01-01T00:00Z", endTime: "2026-02-01T00:00Z"});
        kelos.workflow("hours", {command: ["true"], schedule: celos.calendar("hourly"), startTime: "2026-01-01T00:00Z"});"#,
    );
    let problems: Vec<String> = kelos_sandbox::warnings(&folder.load()).iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("first period begins at 2026-01-01T23:00Z"), "{problems:?}");
    assert!(problems[1].contains("last period ends at 2026-01-31T23:00Z"), "{problems:?}");
}
