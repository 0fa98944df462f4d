//! Starting a workflow that has times: a slot of this moment, beside those of its schedule.

use crate::support::{Folder, Server, eventually};

const SCRIPT: &str = r#"
const times = { schedule: celos.cronSchedule("0 0 * * * ?"), schedulingStrategy: celos.serialSchedulingStrategy(), startTime: "2026-01-01T00:00Z" };
celos.defineWorkflow({ ...times, id: "report", trigger: celos.fileCheckTrigger("/nowhere/${year}"),
  externalService: celos.commandExternalService({ command: ["sh", "-c", "echo $KELOS_ARG_day in ${year}, $KELOS_TIME; exit $KELOS_ARG_fails"] }) });
celos.defineWorkflow({ ...times, id: "after", trigger: celos.successTrigger("report"),
  externalService: celos.commandExternalService({ command: ["true"] }) });
"#;

/// The key of the slot that `kelos start` opened.
fn start(folder: &Folder, more: &[&str]) -> String {
    let said = folder.run(&[&["start", "report"], more].concat()).ok();
    let (slot, _) = said.split_once(" is ").expect("a slot and its state");
    slot.strip_prefix("report@").expect("a slot of the workflow").to_owned()
}

fn state(folder: &Folder, key: &str) -> String {
    let why = folder.run(&["why", "report", key]).ok();
    why.lines().next().and_then(|line| line.split_whitespace().last()).expect("a state").to_owned()
}

fn up(folder: &Folder) -> Server {
    let server = Server::up(folder);
    eventually("the workflows", || folder.run(&["ls"]).ok().contains("after").then_some(()));
    server
}

#[test]
fn a_workflow_with_times_is_started_beside_them() {
    let folder = Folder::with(&[("workflows/report.js", SCRIPT)]);
    let server = up(&folder);
    let key = start(&folder, &["--argument", "day=monday", "--reason", "a try"]);
    assert!(key.contains('.') && key.ends_with('Z'), "{key} reads as no time of a schedule");
    eventually("its run", || (state(&folder, &key) == "succeeded").then_some(()));
    let out = folder.run(&["logs", "report"]).ok();
    assert!(out.starts_with("monday in 20") && out.contains(&format!(", {key}")), "{out}");
    let why = folder.run(&["why", "report", &key]).ok();
    assert!(why.contains("Fired by hand"), "{why}");
    let slots = folder.run(&["slots", "report"]).ok();
    assert!(slots.lines().nth(1).is_some_and(|line| line.contains(&key)), "it is the newest slot: {slots}");
    let after = folder.run(&["slots", "after"]).ok();
    assert!(!after.contains("succeeded") && !after.contains(&key), "nothing waits for it: {after}");
    server.stop();
}

#[test]
fn a_started_slot_is_rerun_marked_and_skipped_as_any_other() {
    let folder = Folder::with(&[("workflows/report.js", SCRIPT)]);
    let server = up(&folder);
    let key = start(&folder, &["--argument", "fails=3"]);
    eventually("its failure", || (state(&folder, &key) == "failed").then_some(()));
    assert!(folder.run(&["failures"]).ok().contains(&key));
    folder.run(&["rerun", "report", &key]).ok();
    eventually("its second failure", || {
        (state(&folder, &key) == "failed" && folder.run(&["why", "report", &key]).ok().contains("#2")).then_some(())
    });
    folder.run(&["mark", "report", &key, "succeeded"]).ok();
    assert_eq!(state(&folder, &key), "succeeded");
    let preview = folder.run(&["rerun", "--downstream", "--dry-run", "report", &key]).ok();
    assert!(preview.starts_with("1 slot to be reopened"), "{preview}");
    folder.run(&["pause", "report"]).ok();
    let waiting = start(&folder, &[]);
    assert_eq!(state(&folder, &waiting), "waiting");
    folder.run(&["skip", "report", &waiting]).ok();
    assert_eq!(state(&folder, &waiting), "skipped");
    let never = folder.run(&["rerun", "report", "2026-01-02T00:00:00.5Z"]).fails(1);
    assert!(never.contains("does not exist: expected the moment at which one of its slots was opened"), "{never}");
    server.stop();
}

#[test]
fn a_workflow_of_job_ids_is_not_started() {
    let app = r#"{ "app": { "bash_cmd": "true", "job_id": "{date}" } }"#;
    let folder = Folder::with(&[("tasks.json", app)]);
    let server = Server::up(&folder);
    eventually("the app", || folder.run(&["ls"]).ok().contains("app").then_some(()));
    let refused = folder.run(&["start", "app"]).fails(1);
    assert!(refused.contains("app has job ids, so a run of it needs one: submit a job"), "{refused}");
    assert!(refused.contains("kelos submit -a WORKFLOW -j JOB_ID"), "{refused}");
    server.stop();
}
