//! What jobs of a `tasks.json` wait for, from the command line.

use std::path::Path;

use crate::support::{Folder, run};
use serde_json::{Value, json};

fn asked(command: &str, app: &str, job: &str, more: &[&str]) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stolos/readme/tasks.json");
    let mut args =
        vec![command, app, job, "--tasks-json", file.to_str().expect("a path"), "--template", "{date}_{client_id}"];
    args.extend(more);
    run(&args).ok()
}

#[test]
fn parents_and_children_are_printed_by_group() {
    assert_eq!(
        asked("parents", "modelBuild3", "1_purchaseRevenue", &[]),
        "modelBuild3 1_purchaseRevenue waits for 5 jobs of group dependency_group_1\n  \
         preprocess       20140601_1\n  preprocess       20140501_1\n  preprocess       20140401_1\n  \
         otherPreprocess  20120101_1\n  otherPreprocess  20130101_1\n"
    );
    assert_eq!(
        asked("children", "preprocess", "20140615_1", &[]),
        "3 jobs wait for preprocess 20140615_1\n  \
         modelBuild   20140615_1_purchaseRevenue\n  \
         modelBuild   20140615_1_numberOfPageviews\n  \
         modelBuild3  1_numberOfPageviews           (group dependency_group_2)\n"
    );
    assert_eq!(asked("parents", "App1", "20150101_5", &[]), "App1 20150101_5 waits for nothing\n");
    assert_eq!(asked("children", "App2", "20150101_5", &[]), "nothing waits for App2 20150101_5\n");
}

#[test]
fn programs_get_json() {
    let parents: Value = serde_json::from_str(&asked("parents", "App2", "20150101_5", &["--json"])).expect("JSON");
    let job = json!({ "workflow": "App1", "job": "20150101_5" });
    let expected = json!({ "workflow": "App2", "job": "20150101_5", "anyOf": [{ "group": "default", "total": 1, "jobs": [job] }] });
    assert_eq!(parents, expected);
    let children: Value = serde_json::from_str(&asked("children", "App1", "20150101_5", &["--json"])).expect("JSON");
    assert_eq!(children["children"][0], json!({ "workflow": "App2", "job": "20150101_5", "group": "default" }));
}

#[test]
fn jobs_that_can_not_be_named_are_told_of_in_both_directions() {
    let folder = Folder::with(&[(
        "tasks.json",
        r#"{"a": {"job_id": "{x}_{y}", "autofill_values": {"y": ["1"]}, "bash_cmd": "echo a"},
            "b": {"job_id": "{x}", "depends_on": {"app_name": ["a"], "y": "all"}, "bash_cmd": "echo b"},
            "c": {"job_id": "{y}_{x}", "depends_on": {"app_name": ["a"]}, "bash_cmd": "echo c"}}"#,
    )]);
    assert_eq!(
        folder.run(&["parents", "b", "p_q"]).ok(),
        "b p_q waits for 1 job\n  a  1 job that can't be named: x \"p_q\" can't be told from what follows it in {x}_{y}\n"
    );
    assert_eq!(folder.run(&["parents", "b", "p"]).ok(), "b p waits for 1 job\n  a  p_1\n");
    assert_eq!(
        folder.run(&["children", "a", "p_1_2"]).ok(),
        "nothing waits for a p_1_2\n  c  1 job that can't be named: y \"1_2\" can't be told from what follows it in {y}_{x}\n"
    );
    let refused = folder.run(&["submit", "-a", "b", "-j", "p_q"]).fails(2);
    let why = "\"p_q\" is no job of b: it waits for a job of a that can't be named: x \"p_q\" can't be told from what follows";
    assert!(refused.contains(why), "{refused}");
    let refused = folder.run(&["submit", "-a", "b", "-j", "p_q", "--dry-run"]).fails(2);
    assert!(refused.contains(why), "{refused}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let folder = Folder::with(&[
        (
            "tasks.json",
            r#"{"a": {"job_id": "{date}"}, "b": {"job_id": "{date}", "depends_on": {"app_name": ["nobody"]}}}"#,
        ),
        ("good.json", r#"{"a": {"job_id": "{date}"}}"#),
        ("identifiers.json", r#"{"date": "date"}"#),
        ("odd.json", r#"{"date": "day"}"#),
    ]);
    let others = folder.run(&["parents", "a", "20140601"]);
    assert!(others.err.contains("tasks.json:1:69: b, group default, member 1: no workflow is named"), "{}", others.err);
    assert_eq!(others.ok(), "a 20140601 waits for nothing\n");
    let wrong = folder.run(&["parents", "b", "1"]).fails(1);
    assert!(wrong.contains("failed to read tasks.json: 1 mistake in it"), "{wrong}");
    assert!(wrong.contains("tasks.json:1:69: b, group default, member 1: no workflow is named \"nobody\""), "{wrong}");
    let good = ["--tasks-json", "good.json", "--identifiers", "identifiers.json"];
    let ask = |app, job| folder.run(&[&["parents", app, job], &good[..]].concat()).fails(2);
    let day = ask("a", "20140631");
    assert!(day.contains("date is \"20140631\", expected a day of the calendar as yyyymmdd"), "{day}");
    assert!(ask("c", "1").contains("no workflow with job ids is named \"c\""));
    let missing = folder.run(&["parents", "a", "1", "--tasks-json", "none.json"]).fails(2);
    assert!(missing.contains("failed to read none.json: it is not there"), "{missing}");
    let odd = folder.run(&["parents", "a", "1", "--tasks-json", "good.json", "--identifiers", "odd.json"]).fails(2);
    assert!(odd.contains("expected \"text\", \"integer\", \"date\""), "{odd}");
}
