//! Codes of problems: each is documented, and the same in JSON, in text and in what is read back.

use std::collections::BTreeSet;

use kelos_sandbox::{Limits, Problem, ProblemCode, warnings};
use serde_json::json;

use crate::support::{Folder, with, workflow};

#[test]
fn every_code_is_documented() {
    let listed = include_str!("../../../docs/codes.md");
    let (_, listed) = listed.split_once("## Problems of definitions").unwrap();
    let (listed, _) = listed.split_once("\n## ").unwrap();
    let lines: BTreeSet<&str> = listed.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let known = ProblemCode::ALL.iter().chain(&[ProblemCode::Unknown]).map(|code| code.as_str());
    assert_eq!(lines, known.collect());
}

#[test]
fn a_code_is_the_same_word_wherever_it_stands() {
    for code in ProblemCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), json!(code.as_str()));
        assert_eq!(ProblemCode::read(code.as_str()), Some(*code));
    }
}

#[test]
fn a_code_of_another_version_reads_as_unknown() {
    let problem = Problem::error("a.js", ProblemCode::BadCron, "bad".to_owned());
    let mut stored = serde_json::to_value(&problem).unwrap();
    assert_eq!(stored["code"], "bad-cron");
    stored["code"] = json!("of-tomorrow");
    assert_eq!(serde_json::from_value::<Problem>(stored.clone()).unwrap().code, ProblemCode::Unknown);
    stored.as_object_mut().unwrap().remove("code");
    assert_eq!(serde_json::from_value::<Problem>(stored).unwrap().code, ProblemCode::Unknown);
}

/// The codes of what is wrong with a file, after the warnings of all files together.
fn codes(text: &str) -> Vec<&'static str> {
    let folder = Folder::with(Limits { load_millis: 200, ..Limits::default() });
    folder.write("a.js", text);
    let loaded = folder.load();
    let warned = warnings(&loaded);
    loaded.problems.iter().chain(&warned).map(|problem| problem.code.as_str()).collect()
}

/// Most kinds are in the corpus of broken files (`fixtures/definitions/errors`); here are those that no single file there can show.
#[test]
fn each_kind_of_problem_has_its_code() {
    let service = "celos.commandExternalService({command: ['true']})";
    let pool = |id: &str, size: u32| {
        with(id, "celos.alwaysTrigger()", &format!("{service}, pools: [celos.pool('p', {size})]"))
    };
    let window = with(
        "a",
        "celos.alwaysTrigger()",
        &format!("{service}, constraints: [celos.timeWindow('22:00', '06:00').abortIfNotMet()]"),
    );
    let window = window.replace("celos.hourlySchedule()", "celos.cronSchedule('0 0 12 * * ?')");
    let jobs = "celos.defineJobGraph({jobs: {job_id: '{d}', bash_cmd: 'x'}});";
    let keyed = "celos.defineJobGraph({a: {job_id: '{d}', bash_cmd: 'x', depends_on: {app_name: ['b']}}, \
                 b: {job_id: '{d}', bash_cmd: 'x', depends_on: {app_name: ['a']}}});";
    let writing = |id: &str, paths: &str| with(id, "celos.alwaysTrigger()", &format!("{service}, writes: {paths}"));
    let cases = [
        ("while (true);".to_owned(), "out-of-time"),
        ("throw new Error('no');".to_owned(), "script-threw"),
        ("throw Object.assign(new Error('no'), {kelosCode: 'mine'});".to_owned(), "script-threw"),
        ("null.field;".to_owned(), "script-threw"),
        ("celos.hdfsCheck('/broken', undefined, 'hdfs://n');".to_owned(), "path-unreadable"),
        (workflow("a") + &workflow("a"), "name-taken"),
        (with("a", "celos.successTrigger('nobody')", service), "unknown-workflow"),
        (workflow("b") + &with("a", "celos.jobTrigger('b', '1')", service), "no-jobs"),
        (jobs.to_owned() + &with("a", "celos.covers('jobs')", service), "no-periods"),
        (workflow("a").replace("celos.hourlySchedule()", "celos.dependentSchedule('nobody')"), "no-schedule"),
        (pool("a", 1) + &pool("b", 2), "pool-disputed"),
        (keyed.to_owned(), "jobs-go-round"),
        (with("a", "celos.successTrigger('a')", service), "deadlock"),
        (with("a", "celos.fileCheckTrigger('/in/${yaer}')", service), "unknown-placeholder"),
        (with("a", "celos.alwaysTrigger()", &format!("{service}, writes: ['/out/${{yaer}}']")), "unknown-placeholder"),
        (writing("a", "['/out/${year}']") + &writing("b", "['file:///out/./${year}/']"), "path-written-twice"),
        (writing("a", "'/out'"), "bad-argument"),
        (writing("a", "[7]"), "bad-argument"),
        (writing("a", "['']"), "bad-argument"),
        (writing("a", "['~/out']"), "bad-argument"),
        (writing("a", "['/out/*']"), "bad-argument"),
        (writing("a", "['hdfs://nn/']"), "bad-argument"),
        (with("a", "celos.alwaysTrigger()", &format!("{service}, wirtes: ['/out']")), "unknown-option"),
        (workflow("a").replace("celos.hourlySchedule()", "celos.cronSchedule('0 0 0 30 2 ?')"), "never-fires"),
        (window, "window-shut"),
        (
            workflow("a").replace("celos.hourlySchedule()", "celos.calendar('daily'), startTime: '2026-01-01T09:00Z'"),
            "unaligned-bound",
        ),
    ];
    for (text, code) in cases {
        assert!(codes(&text).contains(&code), "expected {code}, not {:?}, of {text}", codes(&text));
    }
}

#[test]
fn what_can_not_be_read_has_its_code() {
    let folder = Folder::new();
    std::fs::write(folder.path("workflows/a.js"), b"\xff").unwrap();
    assert_eq!(folder.load().problems[0].code, ProblemCode::FileUnreadable);
    std::fs::remove_dir_all(folder.path("workflows")).unwrap();
    assert_eq!(folder.load().problems[0].code, ProblemCode::FolderUnreadable);
}
