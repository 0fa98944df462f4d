//! What Stolos answers, and what it does not understand.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kelos_model::WorkflowId;

use super::{Settings, Tasks, read};

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stolos").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn told(text: &str, settings: &Settings) -> Vec<String> {
    read(text, settings).unwrap_err().iter().map(ToString::to_string).collect()
}

/// Every text that braces stand for.
fn each(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else { return vec![text.to_owned()] };
    let (choices, after) = rest.split_once('}').unwrap();
    choices.split(',').flat_map(|choice| each(&format!("{before}{choice}{after}"))).collect()
}

fn answered(tasks: &Tasks, question: &str) -> Vec<String> {
    let (direction, job) = question.split_once(' ').unwrap();
    let (app, id) = job.split_once('/').unwrap();
    let app = WorkflowId::new(app).unwrap();
    let words = |job: &kelos_model::jobs::Job, group: &str| format!("{}/{}:{group}", job.workflow, job.id);
    match direction {
        "parents" => {
            let groups = tasks.graph.parents(&app, id).unwrap();
            groups.iter().flat_map(|found| found.jobs.iter().map(|job| words(job, &found.group))).collect()
        }
        "children" => tasks.graph.children(&app, id).unwrap().iter().map(|(job, group)| words(job, group)).collect(),
        other => panic!("no question is called {other}"),
    }
}

fn hold(folder: &str, settings: &Settings) {
    let tasks = read(&fixture(&format!("{folder}/tasks.json")), settings).unwrap();
    let vectors = fixture(&format!("{folder}/vectors.txt"));
    let lines: Vec<&str> = vectors.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert!(lines.len() > 15, "the vectors are there");
    for line in lines {
        let (question, answer) = line.split_once(" ->").unwrap();
        let expected: Vec<String> = answer.split_whitespace().flat_map(each).collect();
        let found = answered(&tasks, question);
        assert_eq!(found.iter().collect::<BTreeSet<_>>(), expected.iter().collect::<BTreeSet<_>>(), "{question}");
        assert_eq!(found.len(), expected.len(), "{question}: each once");
    }
}

#[test]
fn the_example_graph_answers_as_stolos_does() {
    let identifiers = fixture("example/identifiers.json");
    hold("example", &Settings::new(Some("{date}_{client_id}_{collection_name}"), Some(&identifiers)).unwrap());
}

#[test]
fn the_examples_of_the_document_hold_as_written() {
    hold("readme", &Settings::new(Some("{date}_{client_id}"), None).unwrap());
}

#[test]
fn everything_wrong_in_a_file_is_told_with_its_place() {
    let text = r#"{
  "a": {"job_id": "{date}", "bash_cmd": 7, "colour": "red"},
  "a/b": {"job_id": "{date}"},
  "b": {"job_id": "{date}{x}"},
  "c": {
    "job_id": "{date}_{x}",
    "autofill_values": {"x": "5:5", "y": [1]},
    "depends_on": {
      "first": [{"app_name": ["a", "nobody"], "x": ["1"]}, {"x": ["1"]}],
      "second": "a",
      "third": {"app_name": ["a"], "x": "some", "_func": "my.module.f"}
    },
    "valid_if_or": {"z": [1], "x": {}}
  },
  "c": 5
}"#;
    let expected = [
        "2:41: bash_cmd of a is a number, expected a text",
        "3:3: workflow id can't contain slash: \"a/b\"",
        "4:19: \"{date}{x}\" is no template of job ids: nothing tells where date ends and x begins",
        "5:3: c: it lists values of y, which is no part of {date}_{x}",
        "7:30: x is \"5:5\", which is empty: the end is excluded",
        "9:17: c, group first, member 1: no workflow is named \"nobody\"",
        "9:60: app_name is missing, expected a list of apps",
        "10:7: second is a text, expected a group, or app_name beside it",
        "11:41: x is a text, expected a list, or \"all\"",
        "11:49: functions of Python can't be called: list the values, or write both ways in a script",
        "13:21: valid_if_or has z, which is no part of {date}_{x}",
        "13:36: x is an object, expected a list",
        "15:3: the file has \"c\" twice",
        "15:8: c is a number, expected an object",
    ];
    assert_eq!(told(text, &Settings::default()), expected);
    assert_eq!(told("{\"a\": {}}", &Settings::default()), ["1:2: a has no job_id, and no default template was given"]);
    assert_eq!(told("", &Settings::default()), ["1:1: the file is empty, expected an object of apps by name"]);
    assert_eq!(told("{\"a\": {\"\"b\"\": 1}}", &Settings::default()).len(), 1);
    let round = r#"{"a": {"job_id": "{d}", "depends_on": {"app_name": ["b"]}}, "b": {"job_id": "{d}", "depends_on": {"app_name": ["a"]}}}"#;
    assert_eq!(told(round, &Settings::default()), ["1:2: a: it waits for itself: a waits for b waits for a"]);
}

#[test]
fn keys_that_nothing_reads_are_warned_about() {
    let tasks = read(r#"{"a": {"job_id": "{d}", "dependson": {}}}"#, &Settings::default()).unwrap();
    let warned: Vec<String> = tasks.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warned, ["1:25: a has the key \"dependson\", which nothing reads"]);
}
