//! `kelos test`, as people use it.

use std::path::Path;

use crate::support::{Folder, run};

const WORKFLOWS: &str = r#"
celos.defineWorkflow({
    "id": "count",
    "schedule": celos.hourlySchedule(),
    "schedulingStrategy": celos.serialSchedulingStrategy(2),
    "trigger": celos.fileCheckTrigger(celos.hdfsPath("/in/${hour}") + "/_READY"),
    "externalService": celos.commandExternalService({"shell": "wc -l < in/${hour}/_READY > out-${hour}; test ${hour} != 05 || { echo half a text; exit 3; }"})
});
"#;

/// Tests that pass, fail, break and are skipped.
const TESTS: &str = r#"
const day = {from: "2026-01-05T00:00Z", until: "2026-01-05T06:00Z"};
const ready = {path: "/in/${hour}/_READY", each: "count", after: "10m"};

kelos.test("all hours are counted", {...day, inputs: [ready], expect: {slots: {count: "succeeded"}}});

kelos.test("a <late> hour", {
    ...day,
    inputs: [{...ready, except: ["2026-01-05T03:00Z"]}],
    expect: {slots: {count: {succeeded: 6}}, states: {"count@2026-01-05T03:00Z": "succeeded"}},
});

kelos.test("a fake that breaks", {...day, inputs: [ready], runs: {count: () => nothing()}, expect: {slots: {count: "failed"}}});

kelos.test("real commands", {
    ...day,
    executors: "real",
    inputs: [{...ready, content: "one\ntwo\n"}],
    expect: {slots: {count: {succeeded: 5, failed: 1}}, states: {"count@2026-01-05T05:00Z": "succeeded"}, files: {"out-04": "two", "out-03": "three"}},
});
"#;

fn project() -> Folder {
    Folder::with(&[
        ("workflows/count.js", WORKFLOWS),
        ("tests/a.test.js", TESTS),
        ("tests/two", "2\n"),
        ("tests/three", "3\n"),
    ])
}

/// Without figures that differ from time to time.
fn steady(text: &str) -> String {
    let mut steady = String::new();
    for line in text.lines() {
        let line = match line.rsplit_once(" in ") {
            Some((before, _)) if line.ends_with(" ms") => format!("{before} in N ms"),
            _ => line.to_owned(),
        };
        let line = match (line.find(" slots, "), line.rfind(" ms)")) {
            (Some(start), Some(end)) => format!("{} slots, N{}", &line[..start], &line[end..]),
            _ => line,
        };
        let mut parts = line.split(" time=\"");
        steady.push_str(parts.next().unwrap_or_default());
        for part in parts {
            steady.push_str(" time=\"N\"");
            steady.push_str(part.split_once('"').map_or("", |(_, rest)| rest));
        }
        steady.push('\n');
    }
    steady
}

#[test]
fn people_are_told_what_is_not_as_expected_and_why() {
    let said = project().run(&["test"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert_eq!(
        steady(&said.out),
        "\
tests/a.test.js
  ok   all hours are counted  (6 slots, N ms)
  FAIL a <late> hour  (6 slots, N ms)
      tests/a.test.js:7
      slots of count: expected 6 succeeded, found 1 waiting, 5 succeeded
        count@2026-01-05T03:00Z: waiting since 2026-01-05T03:00:00.001Z: File /in/03/_READY is not ready
      count@2026-01-05T03:00Z: expected succeeded, found waiting
        waiting since 2026-01-05T03:00:00.001Z: File /in/03/_READY is not ready
  FAIL a fake that breaks  (broken)
      tests/a.test.js:13:80: ReferenceError: nothing is not defined [unknown-name]
          kelos.test(\"a fake that breaks\", {...day, inputs: [ready], runs: {count: () => nothing()}, expect: {slots: {count: \"failed\"}}});
                                                                                         ^
  skip real commands  (skipped: it runs real commands; --real does)
4 tests: 1 passed, 1 failed, 1 broken, 1 skipped; 12 slots in N ms
"
    );
}

#[test]
fn ci_servers_get_a_report() {
    let folder = project();
    let said = folder.run(&["test", "--junit", "report.xml", "tests/a.test.js"]);
    assert_eq!(said.code, 1, "{}", said.err);
    let report = std::fs::read_to_string(folder.path().join("report.xml")).expect("a report");
    insta::assert_snapshot!(steady(&report));
}

#[test]
fn programs_get_json() {
    let said = project().run(&["test", "--json"]);
    assert_eq!(said.code, 1, "{}", said.err);
    let json: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(json["ok"], false);
    let tests = json["files"][0]["tests"].as_array().expect("tests");
    let verdicts: Vec<_> = tests.iter().map(|test| test["verdict"].as_str().expect("a word")).collect();
    assert_eq!(verdicts, ["passed", "failed", "broken", "skipped"]);
    assert_eq!(tests[1]["mismatches"][1]["about"], "count@2026-01-05T03:00Z");
    assert_eq!(tests[2]["problems"][0]["line"], 13);
}

#[test]
fn real_commands_run_in_a_folder_of_their_own() {
    let folder = project();
    let said = folder.run(&["test", "--real", "--filter", "real commands"]);
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    assert_eq!(
        steady(&said.out),
        "\
tests/a.test.js
  FAIL real commands  (6 slots, N ms)
      tests/a.test.js:15
      count@2026-01-05T05:00Z: expected succeeded, found failed
        run 1 ended at 2026-01-05T05:11Z: it failed (exited with status 3; its output ends with: half a text); no retry is left
      out-03: expected what is in three, found something else
        line 1: expected \"3\", found \"2\"
1 test: 1 failed; 6 slots in N ms
"
    );
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").map(|one| one.expect("a file").file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn filters_choose_tests() {
    let folder = project();
    let out = folder.run(&["test", "--filter", "HOURS ARE"]).ok();
    assert!(out.ends_with('\n') && out.contains("1 test: 1 passed; 6 slots in "), "{out}");
    let err = folder.run(&["test", "--filter", "nothing like it"]).fails(2);
    assert_eq!(err, "error: failed to run tests: none in 1 file has \"nothing like it\" in its name\n");
}

#[test]
fn a_broken_file_is_named_with_its_line_and_the_others_run() {
    let folder = project();
    folder.write("tests/a.test.js", "kelos.test(\"t\", {\n    from: ,\n});\n");
    folder.write("tests/deep/b.test.js", &TESTS[..TESTS.find("kelos.test(\"a <late>").expect("it")]);
    let said = folder.run(&["test"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.out.starts_with("tests/a.test.js\n  tests/a.test.js:2:"), "{}", said.out);
    assert!(said.out.contains("SyntaxError"), "{}", said.out);
    assert!(said.out.contains("tests/deep/b.test.js\n  ok   all hours are counted"), "{}", said.out);
    assert!(said.out.contains("2 tests: 1 passed, 1 broken; "), "{}", said.out);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let empty = Folder::with(&[]);
    let err = empty.run(&["test"]).fails(2);
    assert!(err.starts_with("error: failed to find a test: there is no *.test.js in . or its folder tests\n"), "{err}");
    let err = empty.run(&["test", "nowhere"]).fails(2);
    assert!(err.starts_with("error: failed to use nowhere as the folder of tests: there is no such folder"), "{err}");
    let lonely = Folder::with(&[("a.test.js", TESTS)]);
    let err = lonely.run(&["test"]).fails(2);
    assert!(err.contains("failed to find the workflows that a.test.js tests: there is no *.js in "), "{err}");
    let err = project().run(&["test", "workflows/count.js"]).fails(2);
    assert!(err.contains("expected a name that ends with .test.js"), "{err}");
}

#[test]
fn the_tests_of_the_samples_pass() {
    for sample in ["quickstart", "daily-etl", "hourly-ingestion", "orders-flow"] {
        let sample = format!("{}/../../samples/{sample}", env!("CARGO_MANIFEST_DIR"));
        let out = run(&["test", "--real", &sample]).ok();
        assert!(out.contains("4 tests: 4 passed; "), "{out}");
    }
}

#[test]
fn the_samples_of_newcomers_are_short() {
    for sample in [
        "daily-etl/workflows/orders.js",
        "hourly-ingestion/workflows/clicks.js",
        "orders-flow/workflows/orders.js",
        "python-pipeline/workflows/sales.js",
        "python-pipeline/steps.py",
    ] {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(sample);
        let lines = std::fs::read_to_string(&script).expect("a script").lines().count();
        assert!(lines < 40, "{sample} has {lines} lines");
    }
}
