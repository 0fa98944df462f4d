//! Times, slots and workflows as people type them.

use std::process::Command;
use std::sync::LazyLock;

use crate::support::{Folder, Said, Server, eventually, kelos, run};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan, Zoned};
use serde_json::Value;

/// A moment far enough from now that it does not come while a test runs.
struct Plan {
    /// The zone of the workflows, in which it is not about midnight.
    zone: &'static str,
    rules: TimeZone,
    /// The hour in UTC of the slot of each day.
    hour: i8,
    /// The minute of the slot of each hour.
    minute: i8,
}

static PLAN: LazyLock<Plan> = LazyLock::new(|| {
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let is_night = matches!(now.hour(), 21..24 | 0..3);
    let minutes = if is_night { 330 } else { 0 };
    Plan {
        zone: if is_night { "Asia/Kolkata" } else { "UTC" },
        rules: TimeZone::fixed(Offset::from_seconds(minutes * 60).expect("an offset")),
        hour: if matches!(now.hour(), 10..14) { 6 } else { 12 },
        minute: if matches!(now.minute(), 50..60 | 0..10) { 30 } else { 0 },
    }
});

/// The zone of the machine is another one than that of the workflows, and does not matter.
fn in_zone(folder: &Folder, args: &[&str]) -> Said {
    Said::of(kelos(args).current_dir(folder.path()).env("TZ", "Asia/Tokyo").output().expect("kelos"))
}

#[track_caller]
fn json(folder: &Folder, args: &[&str]) -> Value {
    serde_json::from_str(&in_zone(folder, args).ok()).expect("JSON")
}

fn workflow(id: &str, cron: &str, days: i64, trigger: &str) -> String {
    let (start, zone) = (Timestamp::now() - (24 * days).hours(), PLAN.zone);
    format!(
        r#"celos.defineWorkflow({{
            "id": "{id}",
            "schedule": celos.cronSchedule("{cron}", {{"timeZone": "{zone}"}}),
            "startTime": "{start}",
            "schedulingStrategy": celos.serialSchedulingStrategy(5),
            "trigger": {trigger},
            "externalService": celos.commandExternalService({{"shell": "echo hello from ${{day}}"}})
        }});
"#
    )
}

/// One workflow with a slot a day that runs, and one with a slot an hour that waits for long.
fn folder() -> Folder {
    let always = "celos.alwaysTrigger()";
    let clock = of_yesterday().with_time_zone(PLAN.rules.clone());
    let (daily, hourly) =
        (format!("0 {} {} * * ?", clock.minute(), clock.hour()), format!("0 {} * * * ?", clock.minute()));
    Folder::with(&[
        ("workflows/report.js", &workflow("sales.report", &daily, 4, always)),
        ("workflows/history.js", &workflow("sales.history", &hourly, 3, "celos.delayTrigger(9999999)")),
        ("workflows/other.js", &workflow("shop.history", "0 0 0 1 1 ? 2199", 1, always)),
    ])
}

/// Waits until the slots of the last days are there and have ended.
fn up(folder: &Folder) -> Server {
    let server = Server::up(folder);
    eventually("all have succeeded", || {
        let states = folder.states("sales.report");
        (states.len() >= 4 && states.iter().all(|state| state == "succeeded")).then_some(())
    });
    eventually("all are planned", || (folder.states("sales.history").len() >= 72).then_some(()));
    server
}

/// The time of yesterday's slot, which has the same date in UTC and in the zone.
fn of_yesterday() -> Zoned {
    let date = Timestamp::now().to_zoned(PLAN.rules.clone()).date().yesterday().expect("a day");
    date.at(PLAN.hour, PLAN.minute, 0, 0).to_zoned(TimeZone::UTC).expect("a time")
}

#[test]
fn slots_are_named_by_times_as_they_are_typed() {
    let folder = folder();
    let _server = up(&folder);
    let slot = of_yesterday();
    let expected = slot.strftime("%Y-%m-%dT%H:%M:00.000Z").to_string();
    let clock = slot.with_time_zone(PLAN.rules.clone()).strftime("%H:%M").to_string();
    let offset = slot.with_time_zone(TimeZone::fixed(jiff::tz::offset(2))).strftime("%Y-%m-%dT%H:%M+02:00").to_string();
    for text in ["yesterday", &format!("yesterday {clock}"), &offset] {
        assert_eq!(json(&folder, &["why", "sales.report", text, "--json"])["time"], expected, "{text}");
    }
    let time = |args: &[&str]| {
        let time = json(&folder, args)["time"].as_str().expect("a time").to_owned();
        time.parse::<Timestamp>().expect("a time")
    };
    let before = Timestamp::now() - 24.hours();
    let at = time(&["why", "sales.report", "-1d", "--json"]);
    assert!(at <= Timestamp::now() - 24.hours() && at > before - 24.hours(), "{at}");
    let said = in_zone(&folder, &["logs", "sales.report", "-1d"]);
    assert!(said.err.contains(" is the newest slot of up to ") && said.out.starts_with("hello from "), "{}", said.err);

    let several = in_zone(&folder, &["kill", "sales.history", "yesterday"]).fails(2);
    assert!(several.contains("sales.history has several slots from "), "{several}");
    assert!(several.contains("name one, such as \"yesterday 06:00\""), "{several}");
    let out = in_zone(&folder, &["kill", "sales.history", "yesterday", &clock]).ok();
    assert_eq!(out, slot.strftime("sales.history@%Y-%m-%dT%H:%MZ is killed\n").to_string());
    let none = in_zone(&folder, &["why", "shop.history", "today"]).fails(1);
    assert!(none.contains("shop.history has no slot from "), "{none}");
    let wrong = in_zone(&folder, &["rerun", "sales.report", "yesteday"]).fails(2);
    assert!(wrong.contains("time \"yesteday\" is not understood: expected now, -90m, -2d"), "{wrong}");
    assert!(wrong.contains("; did you mean \"yesterday\"?"), "{wrong}");

    let count = |args: &[&str]| json(&folder, args)["items"].as_array().expect("items").len();
    assert_eq!(count(&["slots", "sales.history", "--from", "yesterday", "--to", "today", "--json"]), 24);
    assert_eq!(count(&["slots", "sales.history", "--from", "-5h", "--to", "now", "--json"]), 5);
}

#[test]
fn without_a_time_the_newest_slot_is_meant() {
    let folder = folder();
    let _server = up(&folder);
    let newest = |workflow: &str| {
        let slots = folder.json(&["slots", workflow, "--limit", "1", "--json"]);
        let time = slots["items"][0]["time"].as_str().expect("a time").replace(":00.000Z", "Z");
        format!("{workflow}@{time}")
    };
    let report = newest("sales.report");
    let said = folder.run(&["logs", "sales.report"]);
    assert_eq!((said.code, said.err), (0, format!("{report} is the newest slot with a run\n")));
    assert!(said.out.starts_with("hello from "), "{}", said.out);
    let none = folder.run(&["logs", "sales.history"]).fails(1);
    assert!(none.contains("none of the newest slots of sales.history has run"), "{none}");

    let said = folder.run(&["rerun", "sales.report", "--reason", "again"]);
    assert_eq!(said.err, format!("{report} is the newest slot that has ended\n"));
    assert!(said.ok().starts_with(&format!("{report} is ")));
    let said = folder.run(&["rerun", "sales.report", "--downstream", "--dry-run"]);
    assert!(said.err.contains(" is the newest slot that has ended"), "{}", said.err);

    let first = newest("sales.history");
    let said = folder.run(&["kill", "sales.history"]);
    assert_eq!(said.err, format!("{first} is the newest slot that has not ended\n"));
    assert_eq!(said.ok(), format!("{first} is killed\n"));
    let out = folder.run(&["kill", "sales.history"]).ok();
    assert!(out.ends_with(" is killed\n") && !out.starts_with(&first), "{out}");
    let none = folder.run(&["rerun", "shop.history"]).fails(1);
    assert!(none.contains("shop.history has no slot that has ended"), "{none}");
}

#[test]
fn names_may_be_short_and_mistakes_are_answered_with_a_suggestion() {
    let folder = folder();
    let _server = up(&folder);
    assert!(folder.run(&["slots", "report", "--limit", "1"]).ok().contains("sales.report"));
    assert!(folder.run(&["why", "report"]).ok().starts_with("sales.report@"));
    assert!(in_zone(&folder, &["rerun", "report", "yesterday"]).ok().starts_with("sales.report@"));
    assert_eq!(folder.run(&["pause", "report"]).ok(), "sales.report is paused\n");
    assert!(folder.run(&["source", "report"]).ok().contains("\"id\": \"sales.report\""));
    assert!(folder.run(&["graph", "--focus", "report"]).ok().starts_with("sales.report"));
    assert!(folder.run(&["events", "--workflow", "report"]).ok().contains("sales.report"));
    let dry = ["backfill", "report", "--from", "-9d", "--to", "-8d", "--dry-run"];
    assert!(folder.run(&dry).ok().contains("1 new"));

    let unclear = folder.run(&["slots", "history"]).fails(2);
    let expected = "error: failed to list the slots: \"history\" could be sales.history, shop.history\n";
    assert!(unclear.starts_with(expected), "{unclear}");
    for args in
        [["slots", "sales.repotr"], ["why", "sales.repotr"], ["kill", "sales.repotr"], ["start", "sales.repotr"]]
    {
        let refused = folder.run(&args).fails(1);
        assert!(refused.contains("no workflow is named \"sales.repotr\""), "{refused}");
        assert!(refused.contains("hint: did you mean \"sales.report\"?"), "{refused}");
    }
}

/// The completions that bash offers for a line.
fn offered(folder: &Folder, line: &str) -> String {
    const ASK: &str = r#"
        source ./completions.bash
        COMP_LINE="$1"; COMP_POINT=${#1}; COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _kelos_names kelos "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        echo "${COMPREPLY[*]}""#;
    let own = std::path::Path::new(assert_cmd::cargo::cargo_bin!("kelos")).parent().expect("a folder").to_owned();
    let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    bash.args(["-c", ASK, "bash", line]).current_dir(folder.path()).env("PATH", path).env_remove("KELOS_SERVER");
    Said::of(bash.output().expect("bash")).ok().trim_end().to_owned()
}

#[test]
fn the_shell_completes_names_of_workflows() {
    let folder = folder();
    folder.write("completions.bash", &run(&["completions", "bash"]).ok());
    let server = Server::up(&folder);
    eventually("loaded", || (folder.json(&["ls", "--json"])["items"].as_array()?.len() == 3).then_some(()));
    assert_eq!(offered(&folder, "kelos why sales."), "sales.history sales.report");
    assert_eq!(offered(&folder, "kelos pause shop.history "), "sales.history sales.report shop.history");
    assert_eq!(offered(&folder, "kelos graph --focus rep"), "report");
    assert_eq!(offered(&folder, "kelos backf"), "backfill backfills");
    assert!(server.stop().success());
    let none = Said::of(
        kelos(&["complete", "--", "why", ""]).env("KELOS_SERVER", "http://127.0.0.1:1").output().expect("kelos"),
    );
    assert_eq!((none.code, none.out, none.err), (0, String::new(), String::new()));
}

#[test]
fn times_without_a_server_are_typed_in_the_same_way() {
    let cron = |args: &[&str]| run(&[&["cron", "0 0 12 * * ?", "--count", "1"], args].concat());
    assert_eq!(cron(&["--after", "2016-01-01T14:30+02:00"]).ok(), "2016-01-02T12:00Z  Sat\n");
    assert_eq!(cron(&["--after", "2016-01-01T13:30+02:00"]).ok(), "2016-01-01T12:00Z  Fri\n");
    cron(&["--after", "-2d"]).ok();
    cron(&["--after=-2d"]).ok();
    let zone = cron(&["--after", "yesterday", "--zone", "Asia/Tokyo"]).ok();
    assert!(zone.ends_with(" 12:00:00 JST\n"), "{zone}");
    let wrong = cron(&["--after", "-2"]).fails(2);
    assert!(wrong.contains("-2"), "{wrong}");

    let with_zone = |zone: &str, text: &str| {
        Said::of(kelos(&["cron", "0 0 12 * * ?", "--after", text]).env("TZ", zone).output().expect("kelos"))
    };
    let unknown = with_zone("Nowhere", "06:00").fails(2);
    assert!(unknown.contains("time \"06:00\" is local, and TZ is \"Nowhere\", which names no time zone"), "{unknown}");
    with_zone("Nowhere", "now").ok();
    with_zone("Europe/Berlin", "yesterday 06:00").ok();
}

#[test]
fn dates_are_those_of_the_zone_of_the_workflow() {
    let berlin =
        r#"kelos.workflow("berlin", {schedule: celos.calendar("daily", {timeZone: "Europe/Berlin"}), shell: "true"});"#;
    let hello = r#"kelos.workflow("hello", {schedule: "hourly", shell: "true"});"#;
    let folder = Folder::with(&[("workflows/berlin.js", berlin), ("workflows/hello.js", hello)]);
    let _server = Server::up(&folder);
    eventually("loaded", || (folder.json(&["ls", "--json"])["items"].as_array()?.len() == 2).then_some(()));
    let october = ["backfill", "berlin", "--from", "2024-10-01", "--to", "2024-11-01", "--dry-run"];
    let said = in_zone(&folder, &october).ok();
    for part in [
        "would be backfill berlin-2024-10-01-2024-11-01: 31 new, ",
        "; times are those of Europe/Berlin: 2024-10-01T00:00+02:00 to 2024-11-01T00:00+01:00\n",
        "    2024-10-01\n    2024-10-02\n",
        "    and 21 more\n",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let utc = in_zone(&folder, &[&october[..], &["--zone", "UTC"]].concat()).ok();
    assert!(utc.contains("; times are those of UTC: 2024-10-01T00:00+00:00 to 2024-11-01T00:00+00:00\n"), "{utc}");
    let made = json(&folder, &[&october[..], &["--json"]].concat());
    assert_eq!((&made["from"], &made["zone"]), (&"2024-09-30T22:00:00.000Z".into(), &"Europe/Berlin".into()));

    in_zone(&folder, &["backfill", "berlin", "--from", "2024-10-26", "--to", "2024-10-28"]).ok();
    let listed = in_zone(&folder, &["slots", "berlin", "--from", "2024-10-26", "--to", "2024-10-28"]);
    assert!(listed.err.contains("times are those of Europe/Berlin: 2024-10-26T00:00+02:00 to 2024-10-28T00:00+01:00"));
    assert!(listed.out.contains(" 2024-10-27 ") && listed.out.contains(" 2024-10-26 "), "{}", listed.out);
    let why = in_zone(&folder, &["why", "berlin", "2024-10-27"]);
    assert!(why.out.starts_with("berlin@2024-10-27 (2024-10-26T22:00Z)  succeeded\n"), "{}", why.out);
    assert!(why.err.contains("berlin@2024-10-26T22:00Z is the slot of 2024-10-27"), "{}", why.err);
    assert_eq!(json(&folder, &["why", "berlin", "2024-10-27", "--json"])["time"], "2024-10-26T22:00:00.000Z");

    let two = "2024-10-27 is another moment in Europe/Berlin (berlin) than in UTC (hello)";
    let refused = in_zone(&folder, &["slots", "--from", "2024-10-27"]).fails(2);
    assert!(refused.contains(two) && refused.contains("--zone says which is meant"), "{refused}");
    let days =
        json(&folder, &["slots", "--from", "2024-10-27", "--to", "2024-10-28", "--zone", "Europe/Berlin", "--json"]);
    assert_eq!(days["items"].as_array().map(Vec::len), Some(1), "{days}");
    let plan = ["plan", "--from", "2024-10-27", "--to", "2024-10-28", "--json"];
    let refused = in_zone(&folder, &plan).fails(2);
    assert!(refused.contains(two), "{refused}");
    let planned = json(&folder, &[&plan[..], &["--workflow", "berlin"]].concat());
    assert_eq!(
        (&planned["from"], &planned["to"]),
        (&"2024-10-26T22:00:00.000Z".into(), &"2024-10-27T23:00:00.000Z".into())
    );
}
