//! `kelos check` finds the mistakes of all files at once, each with its place and what was probably meant.

use crate::support::{Folder, Server, eventually};
use serde_json::Value;

/// A definition on the lines from 1 on, with these fields beside the usual ones.
fn script(id: &str, fields: &[(&str, &str)]) -> String {
    let usual = [
        ("schedule", "celos.hourlySchedule()"),
        ("schedulingStrategy", "celos.serialSchedulingStrategy()"),
        ("trigger", "celos.alwaysTrigger()"),
        ("externalService", "celos.commandExternalService({command: [\"true\"]})"),
    ];
    let usual = usual.iter().filter(|(name, _)| !fields.iter().any(|(given, _)| given == name));
    let lines: String = fields.iter().chain(usual).map(|(name, value)| format!("    {name}: {value},\n")).collect();
    format!("celos.defineWorkflow({{\n    id: \"{id}\",\n{lines}}});\n")
}

/// The problems that `kelos check` finds: severity, file, line, column and code.
fn found(folder: &Folder, args: &[&str]) -> (i32, Vec<String>) {
    let said = folder.run(&[&["check", "--json"], args].concat());
    let json: Value = serde_json::from_str(&said.out).expect("JSON");
    let short = |one: &Value| {
        let text = |name: &str| one[name].as_str().expect("text").to_owned();
        format!("{} {}:{}:{} {}", text("severity"), text("file"), one["line"], one["column"], text("code"))
    };
    let mut problems: Vec<String> = json["problems"].as_array().expect("problems").iter().map(short).collect();
    problems.sort();
    (said.code, problems)
}

#[test]
fn several_mistakes_of_several_files_are_found_at_once() {
    let waits = |on: &str| format!("celos.successTrigger(\"{on}\")");
    let folder = Folder::with(&[
        ("workflows/a.js", &script("a", &[("trigger", &waits("b"))])),
        ("workflows/b.js", &script("b", &[("trigger", &waits("a"))])),
        (
            "workflows/own-past.js",
            &script("own-past", &[("trigger", "celos.offsetTrigger(-3600, celos.successTrigger(\"own-past\"))")]),
        ),
        ("workflows/path.js", &script("path", &[("trigger", "celos.fileCheckTrigger(\"/in/${yaer}/_READY\")")])),
        ("workflows/field.js", &script("field", &[("maxRetryCont", "3"), ("owner", "\"ann\"")])),
        ("workflows/after.js", &script("after", &[("trigger", &waits("field"))])),
        ("workflows/cron.js", &script("cron", &[("schedule", "celos.cronSchedule(\"0 0 0 30 2 ?\")")])),
        ("workflows/weekday.js", &script("weekday", &[("schedule", "celos.cronSchedule(\"0 0 4 ? * 2-6\")")])),
        (
            "workflows/window.js",
            &script(
                "window",
                &[
                    ("schedule", "celos.cronSchedule(\"0 0 12 * * ?\")"),
                    ("constraints", "[celos.timeWindow(\"22:00\", \"06:00\").abortIfNotMet()]"),
                ],
            ),
        ),
        ("workflows/scheme.js", &script("scheme", &[("trigger", "celos.pathTrigger(\"s4://bucket/in\")")])),
        ("workflows/name.js", &script("name", &[("trigger", &waits("windwo"))])),
        ("workflows/borrowed.js", &script("borrowed", &[("schedule", "celos.dependentSchedule(\"weekdya\")")])),
        ("tasks.json", r#"{"app": {"job_id": "{n}", "bash_comd": "true", "bash_cmd": "true"}}"#),
    ]);
    let expected = [
        "error a.js:1:1 deadlock",
        "error cron.js:3:35 never-fires",
        "error field.js:3:5 unknown-option",
        "error path.js:3:42 unknown-placeholder",
        "error tasks.json:1:27 unknown-option",
        "warning borrowed.js:1:1 no-schedule",
        "warning field.js:4:5 unknown-option",
        "warning name.js:1:1 unknown-workflow",
        "warning own-past.js:1:1 waits-forever",
        "warning scheme.js:3:33 path-unserved",
        "warning weekday.js:3:35 ambiguous-weekday",
        "warning window.js:1:1 window-shut",
    ];
    assert_eq!(found(&folder, &[]), (1, expected.map(str::to_owned).to_vec()));
    let out = folder.run(&["check"]).out;
    for words in [
        "\"a\" and \"b\" can never run: they wait for each other in a circle: a -> b -> a",
        "has ${yaer}, which has no value (did you mean ${year}?) [unknown-placeholder]\n    ",
        "unknown field 'maxRetryCont'; did you mean 'maxRetryCount'?",
        "\"0 0 0 30 2 ?\" of \"cron\" never fires: no day is like that",
        "weekday 2-6 in the cron expression \"0 0 4 ? * 2-6\" of \"weekday\" is MON-FRI, as in Quartz; in a crontab it would be TUE-SAT",
        "no file system of the scheme \"s4\" is known",
        "did you mean \"window\"?",
        "did you mean \"weekday\"?",
        "did you mean bash_cmd?",
    ] {
        assert!(out.contains(words), "{words}\n{out}");
    }
}

#[test]
fn the_configuration_of_the_server_is_checked_with_its_watches() {
    let schedule = "celos.program(\"load\", celos.commandExternalService({command: [\"true\"]}));\n\
                    schedule(\"daily\", \"load\").triggerOnPartitions(\"purchases\", 1);\n";
    let folder = Folder::with(&[("workflows/shop.js", schedule), ("workflows/clean.js", &script("clean", &[]))]);
    let good = r#"{
    "groups": [{"name": "Shop", "workflows": ["clean"]}],
    "watch": [{"prefix": "/in/", "dataset": "purchases"}]
}"#;
    folder.write("server.json", good);
    assert_eq!(found(&folder, &["--config", "server.json"]), (0, Vec::new()));
    folder.write(
        "server.json",
        &good.replace("purchases", "purchase").replace("/in/", "s4://in/").replace("clean", "claen"),
    );
    let expected = [
        "warning server.json:2:47 unknown-workflow",
        "warning server.json:3:26 bad-config",
        "warning server.json:3:26 path-unserved",
    ];
    assert_eq!(found(&folder, &["--config", "server.json"]), (0, expected.map(str::to_owned).to_vec()));
    folder.write("server.json", &good.replace("\"dataset\"", "\"datset\"").replace("\"groups\"", "\"group\""));
    let (code, problems) = found(&folder, &["--config", "server.json"]);
    assert_eq!((code, problems.len()), (1, 2), "{problems:?}");
    assert!(
        problems.iter().all(|one| one.starts_with("error server.json:") && one.ends_with("bad-config")),
        "{problems:?}"
    );
    folder.write("server.json", "{\n  \"traces\": {\"too\": \"http://h/\"}\n}");
    assert_eq!(found(&folder, &["--config", "server.json"]), (1, vec!["error server.json:2:18 bad-config".to_owned()]));
    folder.write("server.json", "{\n  \"groups\": [}\n");
    assert_eq!(found(&folder, &["--config", "server.json"]), (1, vec!["error server.json:2:14 bad-config".to_owned()]));
    assert!(folder.run(&["check", "--config", "none.json"]).fails(2).contains("none.json"));
}

#[test]
fn alerts_that_nobody_would_get_are_told() {
    let folder = Folder::with(&[("workflows/clean.js", &script("clean", &[]))]);
    let rules = r#"{"alerts": {"channels": {"team": {"command": ["true"]}}, "rules": [
    {"to": ["team"], "workflow": "claen"},
    {"to": ["team"], "workflow": "cl*", "tags": ["etll"]},
    {"to": ["team"], "workflow": "clean", "project": "nope"}
]}}"#;
    folder.write("server.json", rules);
    let expected = [2, 3, 4].map(|line| format!("warning server.json:{line}:{} bad-config", [34, 50, 54][line - 2]));
    assert_eq!(found(&folder, &["--config", "server.json"]), (0, expected.to_vec()));
    folder.write("server.json", r#"{"alerts": {"channels": {"team": {"command": ["true"]}}}}"#);
    let expected = vec!["warning server.json:1:13 bad-config".to_owned()];
    assert_eq!(found(&folder, &["--config", "server.json"]), (0, expected));
    // A rule without a name is called by its number, which is not where the mistake is.
    folder.write("server.json", &rules.replace("\"team\"], \"workflow\": \"cl*\"", "\"teem\"]"));
    let expected = vec!["error server.json:3:13 bad-config".to_owned()];
    assert_eq!(found(&folder, &["--config", "server.json"]), (1, expected));
}

#[test]
fn topics_of_kafka_are_checked_with_what_their_messages_are_for() {
    let flow = "kelos.flow(\"buy\", {steps: {pay: {shell: \"true\"}, ok: {needs: \"pay\", signal: \"approval\"}}});\n\
                program(\"load\", celos.commandExternalService({command: [\"true\"]}));\n\
                schedule(\"new\", \"load\").triggerOnPartitions(\"purchases\", 1);\n";
    let folder = Folder::with(&[("workflows/shop.js", flow), ("workflows/clean.js", &script("clean", &[]))]);
    let good = r#"{"kafka": [{"name": "main", "brokers": "kafka:9092", "topics": [
    {"topic": "approvals", "signal": "approval", "workflow": "buy"},
    {"topic": "orders", "dataset": "purchases"}
]}]}"#;
    folder.write("server.json", good);
    assert_eq!(found(&folder, &["--config", "server.json"]), (0, Vec::new()));
    let warned = |from: &str, to: &str, expected: &str| {
        folder.write("server.json", &good.replace(from, to));
        assert_eq!(found(&folder, &["--config", "server.json"]), (0, vec![expected.to_owned()]));
    };
    warned("\"approval\"", "\"approvl\"", "warning server.json:2:15 bad-config");
    warned("\"buy\"", "\"by\"", "warning server.json:2:15 unknown-workflow");
    warned("\"buy\"", "\"clean\"", "warning server.json:2:15 bad-config");
    warned("\"purchases\"", "\"purchase\"", "warning server.json:3:15 bad-config");
    folder.write("server.json", &good.replace("\"signal\"", "\"signl\""));
    let (code, problems) = found(&folder, &["--config", "server.json"]);
    assert_eq!((code, problems.len()), (1, 1), "{problems:?}");
    assert!(problems[0].starts_with("error server.json:2:") && problems[0].ends_with("bad-config"), "{problems:?}");
}

/// A server that was built without Kafka says so, in place of reading nothing.
#[cfg(not(feature = "kafka"))]
#[test]
fn a_program_without_kafka_refuses_clusters() {
    let folder = Folder::with(&[("shop.js", "")]);
    folder.write("server.json", r#"{"kafka": [{"name": "main", "brokers": "kafka:9092"}]}"#);
    let told = folder.run(&["up", "--config", "server.json"]).fails(2);
    assert!(
        told.contains("failed to use the Kafka cluster \"main\" of --config: this program was built without Kafka"),
        "{told}"
    );
    assert!(
        told.contains("hint: build it with the feature `kafka`: cargo build --release -p kelos-cli --features kafka"),
        "{told}"
    );
}

/// A server that was built without OpenID Connect says so, and one whose settings are wrong says why.
#[cfg(not(feature = "openid"))]
#[test]
fn a_program_without_openid_refuses_a_provider() {
    let folder = Folder::with(&[("shop.js", "")]);
    let good = r#"{"access": {"openid": {"issuer": "https://login.example", "clientId": "kelos",
                   "clientSecret": {"secret": "env:SECRET"}, "publicAddress": "https://kelos.example"}}}"#;
    folder.write("server.json", good);
    let told = folder.run(&["up", "--config", "server.json"]).fails(2);
    assert!(
        told.contains("failed to have people sign in at https://login.example, as --config says: this program was built without OpenID Connect"),
        "{told}"
    );
    assert!(
        told.contains("hint: build it with the feature `openid`: cargo build --release -p kelos-cli --features openid"),
        "{told}"
    );
    folder.write("server.json", &good.replace("env:SECRET", "hunter2"));
    let told = folder.run(&["up", "--config", "server.json"]).fails(2);
    assert!(told.contains("\"env:NAME\", \"file:PATH\" or") && !told.contains("hunter2"), "{told}");
    folder.write("server.json", &good.replace("https://login", "http://login"));
    let told = folder.run(&["up", "--config", "server.json"]).fails(2);
    assert!(told.contains("\"issuer\" of \"openid\" has no TLS"), "{told}");
    let (code, problems) = found(&folder, &["--config", "server.json"]);
    assert_eq!((code, problems.len()), (1, 1), "{problems:?}");
}

/// The problems that `kelos check` prints of one script, and its last lines.
fn told(script: &str) -> String {
    Folder::with(&[("workflows/w.js", script)]).run(&["check"]).out
}

#[test]
fn times_that_never_meet_are_warned_of() {
    let script = r#"kelos.workflow("half", {schedule: "30 * * * *", command: ["true"]});
kelos.workflow("on-the-hour", {schedule: "hourly", after: "half", command: ["true"]});
kelos.workflow("berlin", {schedule: "0 6 * * *", timeZone: "Europe/Berlin", command: ["true"]});
kelos.workflow("utc", {schedule: "0 6 * * *", after: "berlin", command: ["true"]});
kelos.workflow("past", {schedule: "hourly", startTime: "2026-01-01T00:00Z", catchUp: "all", trigger: celos.offsetTrigger(-3600, celos.successTrigger("past")), command: ["true"]});
kelos.workflow("ended", {schedule: "hourly", startTime: "2020-01-01T00:00Z", endTime: "2020-01-02T00:00Z", command: ["true"]});
kelos.workflow("late", {schedule: "hourly", after: "ended", command: ["true"]});
"#;
    let out = told(script);
    for words in [
        "w.js:2:1: warning: \"on-the-hour\" can never run: its slot ",
        "a time that \"half\" does not have; the nearest are ",
        "(let it wait for the slot before: celos.offsetTrigger(-1800, celos.successTrigger(\"half\"))) [waits-forever]",
        "w.js:4:1: warning: \"utc\" can never run: ",
        "(give both the same timeZone) [waits-forever]",
        "w.js:5:1: warning: \"past\" can never run: its first slot, ",
        "and each later one waits for one before it (wait for it by celos.covers(\"past\", {from: \"-1h\"}), which asks for nothing of before the start",
        "w.js:7:1: warning: \"late\" can never run: ",
        "but \"ended\" ends at 2020-01-02T00:00Z (end \"late\" with it, or take the trigger out) [waits-forever]",
        "7 workflows in 1 file: 4 warnings\n",
    ] {
        assert!(out.contains(words), "{words}\n{out}");
    }
    assert!(!out.contains("will run"), "{out}");
}

#[test]
fn first_periods_that_are_not_whole_are_told_beside_the_slots_that_run() {
    let script = r#"kelos.workflow("hourly", {schedule: "hourly", catchUp: "all", concurrency: 50, command: ["true"]});
kelos.workflow("daily", {schedule: celos.calendar("daily"), catchUp: "all", after: celos.covers("hourly"), command: ["true"]});
"#;
    let folder = Folder::with(&[("workflows/w.js", script)]);
    let out = folder.run(&["check"]).out;
    let lines: Vec<&str> = out.lines().collect();
    // Exactly at midnight the window is made of whole days.
    let [first, wait, last] = lines[..] else { return assert!(out.contains("daily 7"), "{out}") };
    assert_eq!(first, "at the first start 174 past slots will run: hourly 168, daily 6");
    assert!(wait.starts_with("at the first start the first slot of daily, "), "{out}");
    assert!(wait.contains("which is not planned: it lies before the planning window; startTime: \""), "{out}");
    assert_eq!(last, "2 workflows in 1 file: no problems");
    let start = wait.split('"').nth(1).expect("a time").to_owned();
    let started =
        script.replace("celos.calendar(\"daily\"),", &format!("celos.calendar(\"daily\"), startTime: \"{start}\","));
    let folder = Folder::with(&[("workflows/w.js", &*started)]);
    let out = folder.run(&["check"]).out;
    assert!(out.starts_with("at the first start 174 past slots will run") && !out.contains("forever"), "{out}");
    let json: Value = serde_json::from_str(&folder.run(&["check", "--json"]).out).expect("JSON");
    assert_eq!(json["waiting"], serde_json::json!([]), "{json}");
}

#[test]
fn placeholders_in_utc_are_warned_of_where_the_zone_has_other_values() {
    let out = told(
        "kelos.workflow(\"report\", {schedule: \"daily\", timeZone: \"Asia/Kolkata\", command: [\"echo\", \"${year}-${month}-${day}\"]});\n",
    );
    let words = "w.js:1:108: warning: ${day} in \"${year}-${month}-${day}\" of \"report\" is the day in UTC, not in Asia/Kolkata: 01 for \
                 2024-01-02T00:00 there, which is 2024-01-01T18:30Z (a calendar has the values of its zone: celos.calendar(\"daily\", \
                 {timeZone: \"Asia/Kolkata\"})) [utc-placeholder]";
    assert!(out.starts_with(words), "{out}");
    let same = "kelos.workflow(\"report\", {schedule: \"0 9 * * *\", timeZone: \"Asia/Kolkata\", command: [\"echo\", \"${day}\"]});\n";
    assert!(told(same).ends_with("no problems\n"), "{}", told(same));
}

#[test]
fn control_characters_of_files_are_shown_as_escapes() {
    let out = told(
        "kelos.workflow(\"a\u{1b}[31m\", {schedule: \"hourly\", comand: [\"\u{1b}]0;title\u{7}\"]});\nthrow new Error(\"x\u{1b}[2J\\nerror: y\");\n",
    );
    assert!(!out.contains(|c: char| c.is_control() && c != '\n'), "{out:?}");
    assert!(
        out.contains(r#"    kelos.workflow("a\u{1b}[31m", {schedule: "hourly", comand: ["\u{1b}]0;title\u{7}"]});"#),
        "{out}"
    );
    assert!(!out.lines().any(|line| line.starts_with("error: y")), "a message has no line breaks: {out}");
}

#[test]
fn hints_name_what_other_crontabs_have_other_words_for() {
    let schedule = |text: &str| told(&format!("kelos.workflow(\"a\", {{schedule: {text:?}, command: [\"true\"]}});\n"));
    for (text, words) in [
        ("@daily", "is a word of some crontabs: expected 0 0 * * *"),
        ("CRON_TZ=Asia/Tokyo 0 6 * * *", "the time zone beside the expression: timeZone"),
        (
            "weekly",
            "celos.calendar(\"weekly\") runs about each period once it has ended, and \"0 6 * * 1\" is at a time of it",
        ),
        (
            "0 0 6 1 JAN-DEC/2 ?",
            "the step of JAN-DEC/2 in the cron expression \"0 0 6 1 JAN-DEC/2 ?\" of \"a\" has no effect: Quartz reads it as JAN-DEC",
        ),
    ] {
        assert!(schedule(text).contains(words), "{words}\n{}", schedule(text));
    }
}

#[test]
fn one_warning_tells_of_all_paths_that_nothing_serves_for_one_reason() {
    let out = told(
        "kelos.workflow(\"a\", {schedule: \"hourly\", after: [1, 2, 3].map((n) => celos.pathTrigger(`s4://bucket/${n}`)), command: [\"true\"]});\n",
    );
    assert!(
        out.contains("no file system of the scheme \"s4\" is known")
            && out.contains("(and 2 other paths, for the same reason)"),
        "{out}"
    );
    assert!(out.ends_with("1 workflow in 1 file: 1 warning\n"), "{out}");
}

#[test]
fn weekdays_of_five_fields_are_those_of_a_crontab_unless_a_project_has_six_fields_too() {
    let five = "kelos.workflow(\"a\", {schedule: \"0 6 * * 1-5\", command: [\"true\"]});\n";
    assert!(told(five).ends_with("no problems\n"), "{}", told(five));
    let out = told(&format!("{five}kelos.workflow(\"b\", {{schedule: \"0 0 6 ? * 2-6\", command: [\"true\"]}});\n"));
    assert!(out.contains("weekday 1-5 in the cron expression"), "{out}");
    assert!(out.contains("weekday 2-6 in the cron expression"), "{out}");
}

#[test]
fn a_step_that_quartz_ignores_is_told_with_the_times_of_an_expression() {
    let said = Folder::with(&[]).run(&["cron", "0 0 6 ? * MON-FRI/2", "--count", "1"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.starts_with("warning: the step of MON-FRI/2 has no effect"), "{said:?}");
    let said = Folder::with(&[]).run(&["cron", "0 6 * * MON-FRI/2", "--count", "1"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
}

#[test]
fn the_past_is_that_of_the_server_whose_data_is_there() {
    let script = r#"kelos.workflow("hourly", {schedule: "hourly", catchUp: "all", trigger: celos.fileCheckTrigger("never"), command: ["true"]});"#;
    let folder = Folder::with(&[("workflows/w.js", script)]);
    assert!(folder.run(&["check"]).out.starts_with("at the first start 168 past slots will run"));
    let server = Server::up(&folder);
    let of_server = "on this server no past slots will run; on a new one 168 would\n";
    eventually("the past is planned", || folder.run(&["check"]).out.starts_with(of_server).then_some(()));
    server.stop();
}

#[test]
fn an_argument_that_no_system_takes_is_warned_of() {
    let long = "x".repeat(131_072);
    let out = told(&format!(
        "kelos.workflow(\"big\", {{schedule: \"hourly\", shell: \"true {long}\"}});\n\
         kelos.flow(\"steps\", {{steps: {{one: {{command: [\"echo\", \"{long}\"]}}, two: {{command: [\"true\"]}}}}}});\n"
    ));
    let words = |name: &str, bytes: usize| {
        format!(
            "an argument of the command of {name} has {bytes} bytes, more than the 131071 that Linux takes: it can't be started"
        )
    };
    assert!(out.contains(&words("\"big\"", 131_077)), "{}", &out[out.len().saturating_sub(2_000)..]);
    assert!(out.contains(&words("\"steps\" in step one", 131_072)), "{}", &out[out.len().saturating_sub(2_000)..]);
    assert!(out.ends_with("2 workflows in 1 file: 2 warnings\n"), "{}", &out[out.len().saturating_sub(2_000)..]);
}
