//! `kelos.d.ts` and the prelude name the same functions.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kelos_sandbox::{Folders, Limits, TYPES, check};

/// The functions and constants of an object, whose declaration may have several parts.
fn declared(object: &str) -> BTreeSet<String> {
    let begins = format!("declare namespace {object} {{");
    let parts = TYPES.split(&begins).skip(1);
    let lines = parts.flat_map(|part| part.split("\n}").next().unwrap().lines());
    let lines = lines.filter_map(|line| line.strip_prefix("    "));
    let names = lines.filter_map(|line| line.strip_prefix("function ").or(line.strip_prefix("const ")));
    names.map(|rest| rest.split(['(', ':']).next().unwrap().to_owned()).collect()
}

/// The names that a script sees: they come back as the text of an error.
fn seen(expression: &str) -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("names.js"), format!("throw new Error({expression}.join(' '));")).unwrap();
    let folders = Folders { workflows: folder.path().to_owned(), defaults: Path::new("none").to_owned() };
    let loaded = check(folders, Limits::default(), std::sync::Arc::new(kelos_door_stolos::TasksJson), None).unwrap();
    loaded.problems[0].message.split(' ').map(str::to_owned).collect()
}

#[test]
fn every_function_of_celos_is_declared_and_every_declared_one_is_there() {
    assert_eq!(declared("celos"), seen("Object.keys(celos)"));
    let only_in_tests = BTreeSet::from(["test".to_owned()]);
    assert_eq!(declared("kelos"), &seen("Object.keys(kelos)") | &only_in_tests);
}

#[test]
fn every_method_of_the_time_objects_is_declared() {
    for class in ["ScheduledTime", "SlotID", "WorkflowID"] {
        let (_, body) = TYPES.split_once(&format!("declare class {class} {{")).unwrap();
        let (body, _) = body.split_once("\n}").unwrap();
        let hidden = ["constructor", "toJSON"];
        for method in seen(&format!("Object.getOwnPropertyNames({class}.prototype)")) {
            assert!(hidden.contains(&&*method) || body.contains(&format!("    {method}(")), "{class}.{method}");
        }
    }
}

#[test]
fn every_verb_of_a_schedule_is_declared() {
    let (_, body) = TYPES.split_once("interface ScheduleBuilder {").unwrap();
    let (body, _) = body.split_once("\n}").unwrap();
    let begun = "Object.getOwnPropertyNames(Object.getPrototypeOf(celos.buildSchedule('a', 'WORKFLOW', 'b')))";
    for verb in seen(begun) {
        assert!(verb == "constructor" || body.contains(&format!("    {verb}(")), "{verb}");
    }
}

#[test]
fn every_field_of_a_workflow_is_declared() {
    let prelude = concat!(
        include_str!("../src/prelude_workflow.js"),
        include_str!("../src/prelude_kelos.js"),
        include_str!("../src/prelude_flow.js")
    );
    let lists = ["FIELDS", "RETRY_FIELDS", "COMMAND_FIELDS", "BUILDER_FIELDS", "FLOW_FIELDS", "STEP_FIELDS"];
    for list in lists.map(|name| format!("const {name} = [")) {
        let (_, fields) = prelude.split_once(&list).unwrap();
        let (fields, _) = fields.split_once(']').unwrap();
        for field in fields.split('"').filter(|part| part.chars().all(char::is_alphabetic) && !part.is_empty()) {
            assert!(TYPES.contains(&format!("    {field}?:")) || TYPES.contains(&format!("    {field}:")), "{field}");
        }
    }
}

#[test]
fn every_field_of_a_test_is_declared() {
    let prelude = include_str!("../src/prelude_test.js");
    let (_, types) = TYPES.split_once("type Moment =").unwrap();
    let lists = ["TEST_FIELDS", "INPUT_FIELDS", "FAKE_FIELDS", "EXPECT_FIELDS", "VERBS"];
    for list in lists.map(|name| format!("const {name} = [")) {
        let (_, fields) = prelude.split_once(&list).unwrap();
        let (fields, _) = fields.split_once(']').unwrap();
        for field in fields.split('"').filter(|part| part.chars().all(char::is_alphabetic) && !part.is_empty()) {
            assert!(types.contains(&format!("    {field}?:")) || types.contains(&format!("    {field}:")), "{field}");
        }
    }
    assert!(types.contains("declare namespace kelos {"));
}
