//! Jobs on the command line: submitted, explained, and acted on by their ids.

use crate::support::{Folder, Server, eventually};
use serde_json::{Value, json};

const TASKS: &str = r#"{
    "fetch": {"job_id": "{date}_{client_id}", "bash_cmd": "echo fetched {client_id}; test -e mended || test {client_id} != 3",
              "max_retry": 1, "autofill_values": {"client_id": [1, 2, 3]}},
    "model": {"job_id": "{date}_{client_id}", "bash_cmd": "true", "depends_on": {"app_name": ["fetch"]},
              "autofill_values": {"client_id": [1, 2, 3]}},
    "report": {"job_id": "{date}", "bash_cmd": "true", "depends_on": {"app_name": ["model"], "client_id": "all"}}
}"#;

fn folder() -> Folder {
    Folder::with(&[("tasks.json", TASKS), ("identifiers.json", r#"{"date": "date", "client_id": "integer"}"#)])
}

fn state(folder: &Folder, app: &str, id: &str) -> Value {
    let slots = folder.json(&["slots", app, "--all", "--json"]);
    let all = slots["items"].as_array().expect("items");
    all.iter().find(|one| one["job"] == id).map_or(Value::Null, |one| one["state"].clone())
}

#[track_caller]
fn until(folder: &Folder, app: &str, id: &str, expected: &str) {
    eventually(expected, || (state(folder, app, id) == expected).then_some(()));
}

#[test]
fn a_job_is_submitted_explained_mended_and_done() {
    let folder = folder();
    let server = Server::up(&folder);
    eventually("the apps", || folder.run(&["ls"]).ok().contains("jobs {date}_{client_id}").then_some(()));
    let dry = folder.run(&["submit", "-a", "report", "-j", "20140601", "--dry-run"]).ok();
    assert!(dry.starts_with("7 jobs would run, in this order\n  fetch@20140601_1  ancestor    would run\n"), "{dry}");
    assert!(dry.ends_with("  report@20140601   asked       would run\nnothing was changed\n"), "{dry}");
    let submitted = folder.run(&["submit", "-a", "report", "-j", "20140601", "--reason", "for sales"]).ok();
    assert_eq!(submitted, "report@20140601 was opened\n");
    until(&folder, "fetch", "20140601_3", "failed");
    until(&folder, "model", "20140601_2", "succeeded");
    let queue = folder.run(&["queue", "fetch"]).ok();
    assert_eq!(queue, "fetch: 0 queued; 0 running, 0 waiting, 0 in back-off, 1 failed\n");
    assert_eq!(folder.json(&["queue", "model", "--json"])["waiting"], 1);
    let why = folder.run(&["why", "report", "20140601"]).ok();
    let expected = "waits for 1 of 3 jobs: model@20140601_3 has waited for ";
    assert!(why.contains(expected) && why.contains("(for sales)"), "{why}");
    let root = "root cause\n  waits for model@20140601_3, which waits for fetch@20140601_3, which failed at ";
    assert!(why.contains(root) && why.contains("; last lines:\n    | fetched 3\n"), "{why}");
    let parents = folder.run(&["parents", "report", "20140601"]).ok();
    assert!(parents.starts_with("report 20140601 waits for 3 jobs, 2 of them succeeded\n"), "{parents}");
    assert!(parents.ends_with("  model  20140601_3  waiting\n"), "{parents}");
    assert_eq!(folder.run(&["logs", "fetch", "20140601_3"]).ok(), "fetched 3\n");
    let way = folder.run(&["graph", "--slot", "report@20140601"]).ok();
    assert!(
        way.starts_with("report@20140601  waiting\n  model@20140601_3  waiting\n    fetch@20140601_3  failed\n"),
        "{way}"
    );
    folder.write("mended", "");
    let rerun = folder.run(&["rerun", "fetch", "20140601_003"]).ok();
    assert!(rerun.starts_with("fetch@20140601_3 is "), "{rerun}");
    until(&folder, "report", "20140601", "succeeded");
    let path = folder.run(&["why", "report", "20140601", "--path"]).ok();
    assert!(path.contains("fetch@20140601_3  succeeded") && path.contains("model@20140601_3  succeeded"), "{path}");
    let readded = folder.json(&["submit", "-a", "fetch", "-j", "20140601_1", "--readd", "--json"]);
    assert_eq!(readded["items"][0]["result"], "reopened");
    assert_eq!(readded["items"][0]["descendants"], json!(2));
    server.stop();
}

#[test]
fn a_path_that_a_job_writes_leads_to_the_job_and_from_it() {
    let folder = Folder::with(&[
        (
            "tasks.json",
            r#"{"fetch": {"job_id": "{date}_{client_id}", "bash_cmd": "echo the source is shut; exit 3", "max_retry": 1,
                "writes": ["out/{date}/{client_id}"]}}"#,
        ),
        ("identifiers.json", r#"{"date": "date", "client_id": "integer"}"#),
        (
            "workflows/daily.js",
            "kelos.workflow('daily', { schedule: 'daily', command: ['true'],
                trigger: celos.fileCheckTrigger('out/${year}${month}${day}/3/_READY') });",
        ),
    ]);
    let server = Server::up(&folder);
    eventually("the apps", || folder.run(&["ls"]).ok().contains("jobs {date}_{client_id}").then_some(()));
    assert_eq!(folder.run(&["slots", "daily"]).ok(), "no slots\n", "it begins with the next day");
    let range = ["--from", "2014-06-01T00:00Z", "--to", "2014-06-02T00:00Z"];
    folder.run(&[&["backfill", "daily", "--no-wait"], &range[..]].concat()).ok();
    folder.run(&["submit", "-a", "fetch", "-j", "20140601_3"]).ok();
    until(&folder, "fetch", "20140601_3", "failed");
    let expected = "; fetch@20140601_3 writes it, and it failed at ";
    eventually(expected, || folder.run(&["why", "daily", "2014-06-01T00:00Z"]).ok().contains(expected).then_some(()));
    let dry = folder.run(&["rerun", "fetch", "20140601_3", "--downstream", "--dry-run"]).ok();
    assert!(dry.contains("1 slot unchanged, waiting already"), "daily is downstream, and waits: {dry}");
    server.stop();
}

#[test]
fn what_is_no_job_is_told_with_its_identifier() {
    let folder = folder();
    let server = Server::up(&folder);
    eventually("the apps", || folder.run(&["ls"]).ok().contains("jobs {date}_{client_id}").then_some(()));
    let refused = folder.run(&["submit", "-a", "fetch", "-j", "20140601_x"]).fails(2);
    let expected =
        "failed to submit: fetch: \"20140601_x\" is no job id of the form {date}_{client_id}: client_id is \"x\"";
    assert!(refused.contains(expected), "{refused}");
    let unknown = folder.run(&["submit", "-a", "nobody", "-j", "20140601_1"]).fails(1);
    assert!(unknown.contains("no workflow is named \"nobody\""), "{unknown}");
    let bad = folder.run(&["kill", "report", "20140641"]).fails(2);
    assert!(bad.contains("date is \"20140641\", expected a day of the calendar"), "{bad}");
    let bad = folder.run(&["why", "report", "yesterday"]).fails(2);
    assert!(bad.contains("date is \"yesterday\", expected a day of the calendar"), "{bad}");
    let never = folder.run(&["why", "report", "20140601"]).ok();
    assert!(never.contains("it was never opened: submit it, or a job that waits for it"), "{never}");
    assert_eq!(
        folder.run(&["skip", "report", "20140601"]).ok(),
        "report@20140601 is skipped
"
    );
    server.stop();
}
