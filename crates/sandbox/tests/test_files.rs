//! Test files: what they say, what is refused, and their functions.

use std::path::Path;

use kelos_sandbox::{
    Before, ExpectedCounts, Fake, Folders, Host, Limits, NoRegisters, Problem, Sandbox, Scripts, TestExecutors,
    TestFile, TestSource, TestVerb,
};
use serde_json::{Value, json};

fn open(text: &str) -> Result<TestFile, Vec<Problem>> {
    open_with(text, Path::new("none"))
}

fn open_with(text: &str, defaults: &Path) -> Result<TestFile, Vec<Problem>> {
    let source = TestSource { file: "tests/a.test.js".into(), text: text.into(), defaults: defaults.to_owned() };
    TestFile::open(source, Limits::default(), Host::new(std::sync::Arc::new(NoRegisters), |_| Ok(false)))
}

#[track_caller]
fn refused(text: &str) -> String {
    let problems = open(text).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].to_string()
}

/// A test with some more fields.
fn test(fields: &str) -> String {
    format!(
        "\nkelos.test(\"t\", {{\n from: \"2026-01-01T00:00Z\", until: \"2026-01-02T00:00Z\",\n \
         expect: {{slots: {{w: \"succeeded\"}}}},\n {fields}\n}});\n"
    )
}

#[test]
fn a_test_becomes_plain_data() {
    let file = open(&test(
        r#"workflows: ["w"], met: ["v"], settle: "2h", registers: {b: {k: 1}}, maxRunning: 3,
        inputs: ["/a", {path: "/in/${hour}", each: "w", after: "10m", except: ["2026-01-01T03:00Z"], size: 7}],
        runs: {w: [{takes: 90, fails: 1, reason: "torn"}, {writes: ["/out/${hour}"]}], "*": (run) => ({})},
        actions: [{at: "2026-01-01T05:00Z", rerun: "w@2026-01-01T04:00Z", reason: "late"},
                  {at: "2026-01-01T05:00Z", backfill: "w", from: "2026-01-01T00:00Z", until: "2026-01-01T02:00Z"}]"#,
    ))
    .unwrap();
    let [test] = file.tests() else { panic!("{:?}", file.tests()) };
    assert_eq!((test.name.as_str(), test.line), ("t", 2));
    let plan = &test.plan;
    assert_eq!(plan.from.to_string(), "2026-01-01T00:00:00Z");
    assert_eq!((plan.settle_ms, plan.before, plan.executors), (7_200_000, Before::Succeeded, TestExecutors::Fake));
    assert_eq!(plan.registers, [("b".to_owned(), "k".to_owned(), json!(1))]);
    assert_eq!(plan.inputs[1].after_ms, 600_000);
    assert_eq!(plan.inputs[1].paths.except[0].to_string(), "2026-01-01T03:00:00Z");
    let [(w, Fake::Runs(runs)), (star, Fake::Function(0))] = &plan.runs[..] else { panic!("{:?}", plan.runs) };
    assert_eq!((w.as_str(), star.as_str()), ("w", "*"));
    assert_eq!((runs[0].takes_ms, runs[0].fails, runs[0].reason.as_deref()), (Some(90_000), 1, Some("torn")));
    assert_eq!(runs[1].writes[0].path, "/out/${hour}");
    assert!(matches!(&plan.actions[0].what, TestVerb::Rerun { slot } if slot.short() == "w@2026-01-01T04:00Z"));
    assert!(matches!(&plan.actions[1].what, TestVerb::Backfill { .. }));
    assert!(matches!(plan.expect.slots[0].1, ExpectedCounts::All(kelos_model::SlotState::Succeeded)));
}

#[test]
fn functions_are_called_with_slots_and_checked() {
    let file = open(&test(
        r#"inputs: [{path: (slot) => slot.getScheduledTime().getHour() === 3 ? null : "/in/" + slot, each: "w",
                     after: (slot) => slot.getScheduledTime().getHour()}],
        runs: {w: (run) => ({takes: run.number, writes: ["/" + run.settings.command + run.time.hour()]}), v: () => 3}"#,
    ))
    .unwrap();
    let hour = |n: i64| 1_767_225_600_000 + n * 3_600_000;
    let times = json!({"workflow": "w", "times": [hour(2), hour(3)]});
    assert_eq!(file.call(0, &times).unwrap(), json!(["/in/w@2026-01-01T02:00:00.000Z", null]));
    assert_eq!(file.call(1, &times).unwrap(), json!([2000, 3000]));
    let run = json!({"workflow": "w", "ms": hour(7), "number": 2, "settings": {"command": "c"}, "properties": {}});
    assert_eq!(file.call(2, &run).unwrap(), json!({"takesMs": 2000, "writes": [{"path": "/c07"}]}));
    let problem = file.call(3, &run).unwrap_err();
    let words = problem.to_string();
    assert!(
        words.contains("what the function of kelos.test \"t\": runs[\"v\"] returned: expected an object"),
        "{words}"
    );
}

#[test]
fn a_check_says_what_is_wrong() {
    let text = test("").replace(
        "slots: {w: \"succeeded\"}",
        "check(result) { return result.state(\"w@2026-01-01T01:00Z\") === \"failed\" ? result.paths() : false; }",
    );
    let file = open(&text).unwrap();
    let slot = |state: &str| json!({"workflow": "w", "key": "2026-01-01T01:00:00.000Z", "time": "2026-01-01T01:00:00.000Z", "state": state, "runs": []});
    let ask = |state: &str| file.call(0, &json!({"slots": [slot(state)], "paths": ["/x"]})).unwrap();
    assert_eq!(ask("failed"), json!(["/x"]));
    assert_eq!(ask("waiting"), json!(["expected the function to return true, not false"]));
}

#[test]
fn mistakes_have_a_place_and_advice() {
    let at = "tests/a.test.js:2:1: kelos.test \"t\"";
    for (fields, expected) in [
        ("inptus: []", ": unknown field 'inptus'; did you mean 'inputs'?"),
        (
            "settle: \"2 hours\"",
            ": settle: expected a number of seconds, or a text such as \"90s\", \"15m\", \"36h\", \"7d\" or \"2w\", not \"2 hours\"",
        ),
        (
            "inputs: [{path: \"/in/${hour}\"}]",
            ": inputs[0]: a path that differs from slot to slot needs the slots: each: \"my-workflow\" takes those of a workflow, each: \"0 0 * * * ?\" the times of a cron expression",
        ),
        ("inputs: [{path: \"/a/../b\"}]", ": inputs[0]: path: expected a path without \"..\", not \"/a/../b\""),
        ("runs: {w: {fail: 1}}", ": runs[\"w\"]: unknown field 'fail'; did you mean 'fails'?"),
        (
            "actions: [{at: \"2026-01-01\", rerun: \"w\"}]",
            ": actions[0]: rerun: expected a slot such as \"wordcount@2026-01-05T03:00Z\", not \"w\"",
        ),
        (
            "actions: [{at: \"2026-01-01\", rerun: \"w@2026-01-01\", kill: \"w@2026-01-01\"}]",
            ": actions[0]: expected one of rerun, kill, pause, resume, backfill, setRegister, start, signal, not rerun and kill",
        ),
        ("copy: [\"bin\"]", ": copy brings files for real commands: it goes with executors: \"real\""),
    ] {
        assert_eq!(refused(&test(fields)), format!("{at}{expected}"));
    }
    let wrong = |from: &str, to: &str| refused(&test("").replace(from, to));
    assert_eq!(
        wrong("\"succeeded\"", "\"succeded\""),
        format!("{at}: expect: slots[\"w\"]: expected a state, not \"succeded\"; did you mean \"succeeded\"?")
    );
    assert_eq!(
        wrong("2026-01-02T", "2025-01-02T"),
        format!("{at}: from is 2026-01-01T00:00Z, until is 2025-01-02T00:00Z: expected until to be later")
    );
    assert_eq!(
        wrong("{slots: {w: \"succeeded\"}}", "{}"),
        format!(
            "{at}: expect is empty: expected at least one of slots, states, outputs, missing, runs, mostAtOnce, files, check"
        )
    );
    assert!(wrong("until: \"2026-01-02T00:00Z\"", "until: \"soon\"").starts_with(&format!("{at}: until: ")));
}

#[test]
fn a_broken_file_a_double_name_and_a_workflow_are_refused() {
    let broken = refused("\nkelos.test(\"t\", {\n  from: ,\n});");
    assert!(broken.starts_with("tests/a.test.js:3:") && broken.contains("SyntaxError"), "{broken}");
    let twice = refused(&format!("{}{}", test(""), test("")));
    assert!(twice.contains("there is a test of this name in line 2"), "{twice}");
    let defines = refused(
        "celos.defineWorkflow({id: \"a\", schedule: celos.hourlySchedule(), schedulingStrategy: \
         celos.serialSchedulingStrategy(), trigger: celos.alwaysTrigger(), externalService: \
         celos.commandExternalService({command: [\"true\"]})});",
    );
    assert!(defines.contains("workflows are defined by scripts of the workflows folder"), "{defines}");
    let unknown = refused("kelos.tset(\"t\", {});");
    assert!(unknown.contains("kelos has no function 'tset'"), "{unknown}");
}

#[test]
fn an_endless_function_is_stopped_and_named() {
    let text = test("runs: {w: () => { for (;;); }}");
    let source = TestSource { file: "a.test.js".into(), text: text.as_str().into(), defaults: "none".into() };
    let limits = Limits { call_millis: 50, ..Limits::default() };
    let file = TestFile::open(source, limits, Host::dry()).unwrap();
    let run = json!({"workflow": "w", "ms": 0, "number": 1, "settings": {}, "properties": {}});
    let problem = file.call(0, &run).unwrap_err();
    assert!(problem.to_string().starts_with("a.test.js:5:"), "{problem}");
    assert!(problem.message.starts_with("stopped after 50 ms"), "{problem}");
    let again = file.call(0, &Value::Null).unwrap_err();
    assert!(again.message.contains("was stopped before"), "{again}");
}

#[test]
fn test_files_know_that_they_test_and_import_defaults() {
    let defaults = tempfile::tempdir().unwrap();
    std::fs::write(defaults.path().join("d.js"), "function ready(dc) { return \"/in/\" + dc; }").unwrap();
    let text = format!(
        "celos.importDefaults(\"d\"); if (!celos.isRunningInTestMode()) throw new Error(\"no\");{}",
        test("inputs: [ready(\"nyc\")]")
    );
    let file = open_with(&text, defaults.path()).unwrap();
    assert_eq!(file.tests()[0].plan.inputs[0].paths.path.as_deref(), Some("/in/nyc"));
}

#[test]
fn scripts_under_test_know_it_and_get_paths_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let script = "celos.defineWorkflow({id: \"w\", schedule: celos.hourlySchedule(), \
        schedulingStrategy: celos.serialSchedulingStrategy(), trigger: celos.alwaysTrigger(), \
        externalService: celos.commandExternalService({command: [String(celos.isRunningInTestMode()), \
        celos.hdfsPath(\"/a/${hour}\"), celos.hdfsPath(\"hdfs://nn:8020/a\"), celos.hdfsPath(\"hdfs:/a\"), \
        celos.databaseName(\"db\")]})});";
    std::fs::write(folder.path().join("w.js"), script).unwrap();
    std::fs::write(folder.path().join("w.test.js"), "no script, but a test file").unwrap();
    let command = |sandbox: Option<Sandbox>| {
        let host = Host::new(std::sync::Arc::new(NoRegisters), |_| Ok(false));
        let host = match sandbox {
            Some(sandbox) => host.with_sandbox(sandbox),
            None => host,
        };
        let folders = Folders { workflows: folder.path().to_owned(), defaults: folder.path().to_owned() };
        let loaded = Scripts::start(folders, Limits::default(), host).unwrap().load();
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        loaded.workflows[0].job.settings["command"].clone()
    };
    assert_eq!(command(None), json!(["false", "/a/${hour}", "hdfs://nn:8020/a", "hdfs:/a", "db"]));
    let plain = Sandbox::default();
    assert_eq!(command(Some(plain)), json!(["true", "/a/${hour}", "hdfs://nn:8020/a", "hdfs:/a", "db"]));
    let real = Sandbox { prefix: "/tmp/t".to_owned(), suffix: "_7".to_owned() };
    assert_eq!(
        command(Some(real)),
        json!(["true", "/tmp/t/a/${hour}", "hdfs://nn:8020/tmp/t/a", "hdfs:/tmp/t/a", "db_7"])
    );
}
