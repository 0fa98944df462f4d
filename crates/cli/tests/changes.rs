//! `mark`, `skip` and `rerun --downstream`, as people use them.

use crate::support::{Folder, Server, eventually};
use jiff::{Timestamp, ToSpan};

/// The hour before this one: its slot is there, and no other comes while the test runs, but for the hour's turn.
fn hour() -> String {
    let now = Timestamp::now().as_second() / 3600 * 3600;
    (Timestamp::from_second(now).expect("a time") - 1.hour()).to_string()
}

/// One slot, and none of later hours.
fn hourly(id: &str, at: &str, trigger: &str, shell: &str) -> String {
    format!(
        r#"celos.defineWorkflow({{
            "id": "{id}",
            "schedule": celos.hourlySchedule(),
            "startTime": "{at}",
            "schedulingStrategy": celos.serialSchedulingStrategy(2),
            "trigger": {trigger},
            "externalService": celos.commandExternalService({{"shell": {shell:?}}})
        }});
"#
    )
}

/// `up` fails while there is a file `broken`; `mid` depends on it, and `down` on `mid`, which goes on while there is no
/// file `go`.
fn folder(at: &str) -> Folder {
    let folder = Folder::with(&[
        ("workflows/up.js", &hourly("up", at, "celos.alwaysTrigger()", "test ! -e broken")),
        ("workflows/mid.js", &hourly("mid", at, "celos.successTrigger(\"up\")", "true")),
        (
            "workflows/down.js",
            &hourly(
                "down",
                at,
                "celos.successTrigger(\"mid\")",
                "while [ -e broken ] && [ ! -e go ]; do sleep 0.05; done",
            ),
        ),
    ]);
    folder.write("broken", "");
    folder
}

#[track_caller]
fn reaches(folder: &Folder, workflow: &str, at: &str, state: &str) {
    eventually(&format!("{workflow} is {state}"), || {
        (folder.json(&["why", workflow, at, "--json"])["state"] == state).then_some(())
    });
}

#[test]
fn slots_are_marked_skipped_and_opened_with_what_depends_on_them() {
    let at = hour();
    let folder = folder(&at);
    let _server = Server::up(&folder);
    reaches(&folder, "up", &at, "failed");
    let key = at.replace(":00:00Z", ":00Z");
    // The slot of this hour may fail meanwhile.
    let out = eventually("both of the others follow it", || {
        let out = folder.run(&["failures"]).ok();
        out.contains(&format!("2 slots: mid@{key}, down@{key}")).then_some(out)
    });
    assert!(out.contains(&format!("up@{key}  failed")) && out.contains("exited with status 1"), "{out}");
    let out = folder.run(&["ls"]).ok();
    assert!(out.lines().all(|line| line.starts_with("up ") == line.contains(" failure")), "{out}");
    let out = folder.run(&["stuck"]).ok();
    assert!(out.contains(&format!("up@{key}")) && out.contains(" slots behind it"), "{out}");

    let out = folder.run(&["mark", "up", &at, "succeeded", "--reason", "loaded by hand"]).ok();
    assert!(out.starts_with("up@") && out.ends_with(" is succeeded\n"), "{out}");
    let out = folder.run(&["why", "up", &at]).ok();
    assert!(out.contains("marked as succeeded by ann at ") && out.contains("(loaded by hand)"), "{out}");
    assert!(!folder.run(&["failures"]).ok().contains(&format!("up@{key}")));
    assert!(folder.run(&["mark", "up", &at, "succeeded"]).fails(1).contains("has succeeded already"));
    assert!(folder.run(&["mark", "up", &at, "failed"]).fails(2).contains("possible values: succeeded"));
    reaches(&folder, "mid", &at, "succeeded");
    let out = folder.run(&["why", "mid", &at, "--path"]).ok();
    assert!(out.contains("it ended at ") && out.contains(" %  mid@") && out.contains("ran "), "{out}");
    assert!(folder.run(&["why", "mid", &at, "--path", "--at", &at]).fails(2).contains("cannot be used with"));
    reaches(&folder, "down", &at, "running");
    let out = folder.run(&["mark", "down", &at, "succeeded"]).fails(1);
    assert!(out.contains("has not ended") && out.contains("`kelos kill` ends it first"), "{out}");

    let out = folder.run(&["rerun", "up", &at, "--downstream", "--dry-run"]).ok();
    assert!(out.starts_with("2 slots to be reopened\n  up@"), "{out}");
    assert!(out.contains("\n1 slot blocking, with a live run\n  down@"), "{out}");
    assert!(out.ends_with("\nnothing was changed\n"), "{out}");
    let out = folder.run(&["rerun", "up", &at, "--downstream"]).fails(1);
    assert!(out.contains("is running: only slots without a live run") && out.contains("--kill-live"), "{out}");

    let out = folder.run(&["skip", "down", &at, "--reason", "not needed"]).ok();
    assert!(out.ends_with(" is skipped\n"), "{out}");
    assert!(folder.run(&["skip", "down", &at]).fails(1).contains("only a slot that has not ended can be skipped"));
    assert!(folder.run(&["why", "down", &at]).ok().contains("skipped by ann at "));
    let out = folder.run(&["events", "--limit", "1000"]).ok();
    assert!(out.contains("marked-succeeded: by ann, loaded by hand"), "{out}");
    assert!(out.contains("skipped: by ann, not needed"), "{out}");

    folder.write("go", "");
    std::fs::remove_file(folder.path().join("broken")).expect("a file");
    let done = folder.json(&["rerun", "up", &at, "--downstream", "--dry-run", "--json"]);
    assert_eq!(done["items"][0]["reopened"]["count"], 3, "{done}");
    let out = folder.run(&["rerun", "up", &at, "--downstream", "--kill-live"]).ok();
    assert!(out.starts_with("3 slots reopened\n  up@") && !out.contains("nothing was changed"), "{out}");
    for workflow in ["up", "mid", "down"] {
        reaches(&folder, workflow, &at, "succeeded");
    }
    assert!(folder.run(&["rerun", "up", &at, "--dry-run"]).fails(2).contains("--downstream"));
}

#[test]
fn all_failures_of_a_workflow_are_run_again() {
    let until = hour();
    let since = (until.parse::<Timestamp>().expect("a time") - 4.hours()).to_string();
    let fails = hourly("fetch", &since, "celos.alwaysTrigger()", "test ! -e broken");
    let folder = Folder::with(&[("workflows/fetch.js", &fails)]);
    folder.write("broken", "");
    let _server = Server::up(&folder);
    let out = eventually("one line tells of all", || {
        let out = folder.run(&["failures"]).ok();
        (out.contains(" and 5 more  failed") || out.contains(" and 6 more  failed")).then_some(out)
    });
    assert!(out.contains("exited with status 1") && out.contains("`kelos rerun WORKFLOW --failed`"), "{out}");
    assert!(folder.run(&["failures", "--all"]).ok().matches("fetch@").count() >= 6);
    assert!(folder.run(&["rerun", "fetch", &since, "--failed"]).fails(2).contains("cannot be used with"));
    std::fs::remove_file(folder.path().join("broken")).expect("a file");
    let out = folder.run(&["rerun", "fetch", "--failed", "--from", &since, "--to", &until]).ok();
    assert!(out.ends_with("\n4 slots\n"), "{out}");
    eventually("the rest failed no more", || {
        folder.run(&["rerun", "fetch", "--failed"]).ok();
        (folder.run(&["failures"]).ok() == "no failures\n").then_some(())
    });
    assert_eq!(folder.run(&["rerun", "fetch", "--failed"]).ok(), "no slot to rerun\n");
}

#[test]
fn the_definition_with_which_a_run_began_is_printed_after_it_changed() {
    let at = hour();
    let defined = |shell: &str| hourly("one", &at, "celos.alwaysTrigger()", shell);
    let folder = Folder::with(&[("workflows/one.js", &defined("true"))]);
    let _server = Server::up(&folder);
    reaches(&folder, "one", &at, "succeeded");
    folder.write("workflows/one.js", &defined("echo later"));
    let source = |more: &[&str]| folder.run(&[&["source", "one"], more].concat());
    eventually("the new definition", || source(&[]).ok().contains("echo later").then_some(()));
    folder.run(&["rerun", "one", &at]).ok();
    let of_run = |number: u32| source(&["--run", &format!("{at}#{number}")]);
    eventually("another run", || (of_run(2).code == 0).then_some(()));
    assert_eq!(of_run(1).ok().trim(), defined("true").trim());
    assert_eq!(of_run(2).ok().trim(), defined("echo later").trim());
    assert!(source(&["--run", &at]).fails(1).contains("expected its slot and its number"));
}

#[test]
fn groups_of_the_board_are_set_and_taken_back() {
    let at = hour();
    let folder = folder(&at);
    folder.write("groups.json", r#"{"groups": [{"name": "First", "workflows": ["mid", "up"]}]}"#);
    folder.write("twice.json", r#"{"groups": [{"name": "First", "workflows": ["up", "up"]}]}"#);
    folder.write("broken.json", "{");
    let _server = Server::up(&folder);

    let by_project = folder.run(&["groups"]).ok();
    assert!(by_project.starts_with("None are set; there is one group per project:\n\ndown\n  down\n"), "{by_project}");
    let set = folder.run(&["groups", "--set", "groups.json"]).ok();
    assert!(set.ends_with("\n\nFirst\n  mid\n  up\n"), "{set}");
    assert_eq!(folder.json(&["groups", "--json"])["from"], "api");
    let log = folder.run(&["events", "--json"]).ok();
    assert!(log.contains("board-groups") && log.contains("\"by\":\"ann\""), "{log}");

    let twice = folder.run(&["groups", "--set", "twice.json"]).fails(1);
    assert!(twice.contains("the workflow \"up\" is twice in group \"First\", expected it once"), "{twice}");
    assert!(folder.run(&["groups", "--set", "broken.json"]).fails(2).contains("expected {\"groups\""));
    assert_eq!(folder.run(&["groups", "--reset"]).ok(), by_project);
}

#[test]
fn who_holds_the_permits_of_a_pool_is_told() {
    let at = hour();
    let pooled = |id: &str| {
        let script = hourly(id, &at, "celos.alwaysTrigger()", "while [ ! -e go ]; do sleep 0.05; done");
        script.replace("\"trigger\"", "\"pools\": [celos.pool(\"spark\", 1)], \"trigger\"")
    };
    let folder = Folder::with(&[("workflows/a.js", &pooled("a")), ("workflows/b.js", &pooled("b"))]);
    let _server = Server::up(&folder);
    reaches(&folder, "a", &at, "running");
    reaches(&folder, "b", &at, "queued");

    let short = at.replace(":00:00Z", ":00Z");
    let told = folder.run(&["capacity"]).ok();
    let words = |line: &str| -> Vec<String> {
        line.split("  ").map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
    };
    let rows: Vec<Vec<String>> = told.lines().map(words).collect();
    assert_eq!(rows[0], ["WHAT", "HELD", "OF", "QUEUED", "HELD BY", "NEXT"], "{told}");
    assert_eq!(rows[2][..3], ["pool spark", "1", "1"], "{told}");
    assert!(rows[2][4] == format!("a@{short}") && rows[2][5].starts_with(&format!("b@{short} +1")), "{told}");
    assert_eq!(folder.json(&["capacity", "--json"])["pools"][0]["held"], 1);
    let why = folder.run(&["why", "b", &at]).ok();
    assert!(why.contains(&format!("1 of 1 permits of pool spark are held by a@{short}")), "{why}");
    folder.write("go", "");
    reaches(&folder, "b", &at, "succeeded");
}
