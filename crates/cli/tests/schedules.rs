//! Event schedules and facts on the command line.

use crate::support::{Folder, Server, eventually};
use serde_json::{Value, json};

const SCRIPT: &str = r#"
application({ name: "Purchase" });
program("History", celos.commandExternalService({ command: ["sh", "-c", "echo $KELOS_ARG_day"] }));
program("Cleanup", celos.commandExternalService({ command: ["true"] }));
schedule("Nightly", "History").withConcurrency(1).abortIfNotMet().triggerByTime("0 4 * * *");
"#;

fn folder() -> Folder {
    Folder::with(&[("workflows/purchase.js", SCRIPT)])
}

fn up(folder: &Folder) -> Server {
    let server = Server::up(folder);
    eventually("the schedules", || folder.run(&["schedules"]).ok().contains("Purchase.Nightly").then_some(()));
    server
}

/// What `kelos schedule show` says, without what changes from run to run.
fn shown(folder: &Folder, name: &str) -> String {
    let out = folder.run(&["schedule", "show", name]).ok();
    let lines = out.lines().filter(|line| !line.starts_with("  next ") && !line.starts_with("  last run "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_schedule_is_added_filled_fired_and_explained() {
    let folder = folder();
    let server = up(&folder);
    adds(&folder);
    enables(&folder);
    collects(&folder);
    shows(&folder);
    runs_once_three_are_there(&folder);
    fires(&folder);
    lists_decisions_and_facts(&folder);
    deletes(&folder);
    server.stop();
}

fn adds(folder: &Folder) {
    let added = folder.run(&[
        "schedule",
        "add",
        "onPartitions",
        "for",
        "workflow",
        "Purchase.History",
        "--partitions",
        "purchases=3",
        "--property",
        "day=monday",
        "--concurrency",
        "1:wait",
        "--timeout",
        "2h",
        "--description",
        "when three are there",
    ]);
    assert_eq!(
        added.ok(),
        "Purchase.onPartitions was added; it is disabled until `kelos schedule enable Purchase.onPartitions`\n"
    );
    let status = folder.run(&["schedule", "status", "onPartitions", "Purchase.Nightly"]).ok();
    assert_eq!(status, "Purchase.onPartitions is disabled\nPurchase.Nightly is disabled\n");
}

fn enables(folder: &Folder) {
    assert_eq!(
        folder.run(&["schedule", "resume", "onPartitions", "--reason", "to see"]).ok(),
        "Purchase.onPartitions is enabled\n"
    );
    let again = folder.run(&["schedule", "enable", "onPartitions"]).fails(1);
    assert!(again.contains("Purchase.onPartitions is enabled already"), "{again}");
    let none = folder.run(&["why", "Purchase.onPartitions"]).fails(1);
    assert!(none.contains("Purchase.onPartitions has no slot yet"), "{none}");
}

/// Publishes two of the three partitions, one time too often.
fn collects(folder: &Folder) {
    assert_eq!(folder.run(&["tell", "partitions", "purchases", "2", "--key", "a"]).ok(), "told\n");
    let twice = folder.run(&["tell", "partitions", "purchases", "2", "--key", "a"]).ok();
    assert_eq!(twice, "already known, and counted once\n");
    let list = folder.run(&["schedules", "--enabled"]).ok();
    let row = list.lines().nth(1).expect("a row");
    assert!(row.contains("partitions(purchases, 3)"), "{list}");
    assert!(row.ends_with("waiting: 2 of 3 partitions of purchases"), "{list}");
    let listed = folder.run(&["slots", "Purchase.onPartitions"]).ok();
    assert!(listed.contains("2 partitions of purchases"), "{listed}");
    // The newest slot is meant where none is named.
    assert!(folder.run(&["why", "Purchase.onPartitions"]).ok().contains("2 of 3 partitions of purchases"));
}

fn shows(folder: &Folder) {
    let expected = "Purchase.onPartitions  enabled
  about       when three are there
  program     Purchase.History
  defined by  a request
  trigger     partitions(purchases, 3)
  constraint  concurrency(1, wait)
  arguments   day=monday
  timeout     2h
  slots       1 waiting";
    let all = shown(folder, "onPartitions");
    assert!(all.starts_with(expected), "{all}");
}

fn runs_once_three_are_there(folder: &Folder) {
    folder.run(&["tell", "partition", "purchases", "--partition", "2026/11/21"]).ok();
    eventually("a run", || (folder.states("Purchase.onPartitions") == ["succeeded"]).then_some(()));
    let slots = folder.json(&["slots", "Purchase.onPartitions", "--json"]);
    let time = slots["items"][0]["time"].as_str().expect("a time");
    // As people copy it from the table.
    let listed = folder.run(&["slots", "Purchase.onPartitions"]).ok();
    let copied = listed.lines().nth(1).and_then(|row| row.split_whitespace().nth(1)).expect("a time").to_owned();
    assert!(folder.run(&["why", "Purchase.onPartitions", &copied]).ok().contains("run 1 succeeded"));
    assert_eq!(folder.run(&["logs", "Purchase.onPartitions", time]).ok(), "monday\n");
}

fn fires(folder: &Folder) {
    let fired = folder.run(&["schedule", "fire", "onPartitions", "--argument", "day=friday", "--reason", "a try"]).ok();
    assert!(fired.starts_with("Purchase.onPartitions@"), "{fired}");
    eventually("another run", || (folder.states("Purchase.onPartitions") == ["succeeded"; 2]).then_some(()));
}

fn lists_decisions_and_facts(folder: &Folder) {
    let decisions = folder.run(&["schedule", "decisions", "onPartitions"]).ok();
    for said in [
        "run 1 succeeded, as ann asked",
        "3 partitions of purchases  run 1 succeeded",
        "enabled by ann",
        "created by ann",
    ] {
        assert!(decisions.contains(said), "{said}: {decisions}");
    }
    let facts = folder.json(&["facts", "--json"]);
    let words: Vec<&str> =
        facts["items"].as_array().expect("items").iter().filter_map(|one| one["what"].as_str()).collect();
    assert_eq!(words, ["a new partition of purchases", "2 new partitions of purchases"]);
    assert_eq!(facts["items"][1]["source"], "ann");
}

fn deletes(folder: &Folder) {
    assert_eq!(folder.run(&["schedule", "rm", "onPartitions"]).ok(), "Purchase.onPartitions is deleted\n");
    let gone = folder.run(&["schedule", "show", "onPartitions"]).fails(1);
    assert!(
        gone.contains("no event schedule is named \"onPartitions\"") && gone.contains("`kelos schedules`"),
        "{gone}"
    );
}

#[test]
fn a_program_is_started_and_what_waits_for_its_end_goes() {
    let folder = folder();
    let server = up(&folder);
    let added = folder.run(&[
        "schedule",
        "add",
        "after",
        "for",
        "Purchase.Cleanup",
        "--program-status",
        "Purchase.History=completed",
        "--signal",
        "now",
        "--any-of",
        "--enabled",
    ]);
    assert_eq!(added.ok(), "Purchase.after was added, and is enabled\n");
    let ls = folder.run(&["ls"]).ok();
    let line = |id: &str| ls.lines().find(|line| line.starts_with(id)).expect(id).to_owned();
    assert!(line("Purchase.History").contains("on request"), "{ls}");
    assert!(
        line("Purchase.Nightly").contains("runs Purchase.History") && line("Purchase.Nightly").contains("disabled"),
        "{ls}"
    );
    assert!(folder.run(&["start", "Purchase.History"]).ok().starts_with("Purchase.History@"));
    eventually("what comes after", || (folder.states("Purchase.after") == ["succeeded"]).then_some(()));
    folder.run(&["tell", "signal", "now", r#"{"why": "a try"}"#]).ok();
    eventually("again", || (folder.states("Purchase.after") == ["succeeded"; 2]).then_some(()));
    folder.run(&["tell", "ended", "Purchase.History", "FAILED"]).ok();
    folder.run(&["tell", "ended", "Purchase.History", "COMPLETED", "--run", "7"]).ok();
    eventually("and again", || (folder.states("Purchase.after") == ["succeeded"; 3]).then_some(()));
    folder.write("arguments.json", r#"{"day": "2026-11-21", "rows": 100}"#);
    let start = ["start", "Purchase.History", "--arguments-file", "arguments.json", "--json"];
    let started = folder.json(&[&start[..], &["--argument", "dry=true"]].concat());
    assert_eq!(started["workflow"], "Purchase.History", "{started}");
    let asked = json!({"day": "2026-11-21", "dry": "true", "rows": 100});
    assert_eq!(started["collected"]["asked"]["arguments"], asked, "numbers stay numbers, and texts texts");
    let any = folder.json(&["start", "Purchase.History", "--arguments", r#"{"list": [1, null]}"#, "--json"]);
    assert_eq!(any["collected"]["asked"]["arguments"], json!({"list": [1, null]}));
    let twice = folder.run(&[&start[..], &["--argument", "day=x"]].concat()).fails(2);
    assert!(twice.contains("day is given by another option and in arguments.json: expected one value"), "{twice}");
    folder.write("arguments.json", r#"["day"]"#);
    let odd = folder.run(&start).fails(2);
    assert!(odd.contains("arguments.json: invalid type") && odd.contains("expected an object such as"), "{odd}");
    let meant = folder.run(&["schedule", "enable", "Purchase.aftre"]).fails(1);
    assert!(meant.contains("did you mean \"Purchase.after\"?"), "{meant}");
    let refused = folder.run(&["start", "Purchase.Nobody"]).fails(1);
    assert!(refused.contains("no workflow is named \"Purchase.Nobody\""), "{refused}");
    server.stop();
}

#[test]
fn an_update_changes_only_what_is_named() {
    let folder = folder();
    let server = up(&folder);
    folder
        .run(&[
            "schedule",
            "add",
            "s",
            "for",
            "Purchase.History",
            "--when",
            "and(time(0 4 * * *), signal(go))",
            "--window",
            "22:00-06:00",
            "--concurrency",
            "2",
            "--property",
            "a=1",
            "--property",
            "b=2",
            "--zone",
            "Europe/Berlin",
        ])
        .ok();
    let update = ["schedule", "update", "s", "--concurrency", "3:wait", "--property", "a=9", "--without-property", "b"];
    assert!(folder.run(&update).ok().starts_with("Purchase.s was changed\n"));
    assert!(folder.run(&update).ok().starts_with("Purchase.s is unchanged\n"));
    let now = folder.json(&["schedule", "show", "s", "--json"]);
    assert_eq!(now["constraints"][0]["from"], "22:00");
    assert_eq!(now["constraints"][1], json!({ "type": "concurrency", "limit": 3, "otherwise": "wait" }));
    assert_eq!(
        (&now["properties"], &now["trigger"]["nested"][1]),
        (&json!({ "a": "9" }), &json!({ "type": "signal", "signal": "go" }))
    );
    assert_eq!((&now["timeZone"], &now["enabled"]), (&json!("Europe/Berlin"), &json!(false)));
    folder.run(&["schedule", "update", "s", "--time", "0 5 * * *", "--without", "window,concurrency"]).ok();
    let now = folder.json(&["schedule", "show", "s", "--json"]);
    assert_eq!(now["trigger"], json!({ "type": "fired", "cron": "0 5 * * *", "zone": "Europe/Berlin" }));
    assert_eq!((&now["constraints"], &now["next"]), (&json!([]), &Value::Null));
    let nothing = folder.run(&["schedule", "update", "s"]).fails(2);
    assert!(nothing.contains("no change is given"), "{nothing}");
    server.stop();
}

#[test]
fn why_a_schedule_was_added_and_changed_is_in_the_log() {
    let folder = folder();
    let server = up(&folder);
    let add = ["schedule", "add", "s", "for", "Purchase.History", "--signal", "go", "--reason", "new data"];
    folder.run(&add).ok();
    folder.run(&["schedule", "update", "s", "--signal", "again", "--reason", "another name"]).ok();
    let log = folder.run(&["events", "--workflow", "Purchase.s", "--json"]).ok();
    let items: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |version: u64| items.iter().find(|one| one["event"] == "defined" && one["version"] == version);
    let told = [1, 2].map(|version| of(version).map(|one| (one["by"].clone(), one["reason"].clone())));
    let by_ann = |reason: &str| Some((json!("ann"), json!(reason)));
    assert_eq!(told, [by_ann("new data"), by_ann("another name")], "{log}");
    server.stop();
}

#[test]
fn what_makes_no_sense_is_told() {
    let folder = folder();
    let server = up(&folder);
    let add = |more: &[&str]| folder.run(&[&["schedule", "add", "s"], more].concat());
    let told = add(&["for", "Purchase.History"]).fails(2);
    assert!(told.contains("no trigger is given") && told.contains("--partitions"), "{told}");
    let told = add(&["for", "--time", "0 4 * * *"]).fails(2);
    assert!(told.contains("expected a program"), "{told}");
    let told = add(&["for", "Purchase.History", "--time", "0 4 * *"]).fails(2);
    assert!(told.contains("has 4 fields, expected 5"), "{told}");
    let told = add(&["for", "Purchase.Nobody", "--signal", "go"]).fails(1);
    assert!(told.contains("there is no workflow \"Purchase.Nobody\" to run") && told.contains("`kelos ls`"), "{told}");
    let told = add(&["for", "Purchase.History", "--when", "and(signal(a)"]).fails(2);
    let unclosed = "failed to read the schedule: --when: at character 4: the bracket that opens here is not closed";
    assert!(told.contains(unclosed), "{told}");
    let told = add(&["for", "Purchase.History", "--when", "and(signal(a), partitons(ds, 4))"]).fails(2);
    assert!(
        told.contains("--when: at character 16: \"partitons\" is no trigger: expected time(CRON @ ZONE), "),
        "{told}"
    );
    assert!(told.contains("; did you mean \"partitions\"?"), "{told}");
    add(&["for", "Purchase.History", "--time", "0 4 * * *"]).ok();
    let told = folder.run(&["schedule", "add", "Purchase.s", "for", "Purchase.History", "--signal", "go"]).fails(1);
    assert!(told.contains("\"Purchase.s\" exists already"), "{told}");
    assert!(folder.run(&["schedules", "--trigger", "time"]).ok().contains("Purchase.s "));
    assert!(!folder.run(&["schedules", "--trigger", "program-status"]).ok().contains("Purchase.s "));
    let told = folder.run(&["tell", "ended", "p", "lost"]).fails(2);
    assert!(told.contains("is not how a run ends"), "{told}");
    let told = folder.run(&["tell", "signal", "go", "monday"]).fails(2);
    assert!(told.contains("is not JSON") && told.contains("quote a text"), "{told}");
    server.stop();
}

#[test]
fn what_people_made_of_schedules_stays_where_files_have_no_say() {
    let folder = folder();
    let server = up(&folder);
    folder.run(&["schedule", "update", "Nightly", "--time", "0 5 * * *"]).ok();
    server.stop();
    let server = Server::start(folder.path(), &["up", "--update-schedules", "false"], "Stop with Ctrl-C");
    folder.write(
        "workflows/purchase.js",
        &SCRIPT.replace("withConcurrency(1)", "withConcurrency(2)").replace("Cleanup", "Clean"),
    );
    eventually("the new file", || folder.run(&["ls"]).ok().contains("Purchase.Clean ").then_some(()));
    let now = folder.json(&["schedule", "show", "Nightly", "--json"]);
    assert_eq!((&now["trigger"]["cron"], &now["constraints"][0]["limit"]), (&json!("0 5 * * *"), &json!(1)));
    server.stop();
}
