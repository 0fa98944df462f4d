//! `kelos check` finds the mistakes of all files at once, each with its place and what was probably meant.

use crate::support::Folder;
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
        "error field.js:1:1 unknown-option",
        "error path.js:3:42 unknown-placeholder",
        "error tasks.json:1:27 unknown-option",
        "warning borrowed.js:1:1 no-schedule",
        "warning field.js:1:1 unknown-option",
        "warning name.js:1:1 unknown-workflow",
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
