//! Rehearsals of flows: outcomes and outputs of steps, signals, and what each step is given.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_rehearsal::dry_run::{DryRun, dry_run};
use kelos_rehearsal::{Rehearsals, Verdict};
use kelos_sandbox::{Folders, Limits, TestSource, check};
use tempfile::TempDir;

const ETL: &str = r#"
kelos.flow("etl", {
    schedule: "0 3 * * *",
    retry: {count: 0},
    steps: {
        extract: { command: ["extract", "${year}-${month}-${day}"], retry: {count: 2}, inputs: {limit: 10} },
        clean: { command: ["clean"] },
        load: { needs: ["extract", "clean"], forEach: "files", concurrency: 2, command: ["load", "${item}"], onError: "cleanup" },
        approve: { needs: "load", signal: "approval", within: "2d" },
        publish: { needs: "approve", command: ["publish", "${by}"] },
        cleanup: { command: ["cleanup", "${failed}"] }
    }
});
kelos.flow("buy", { concurrency: 5, steps: {
    pay: { shell: "pay $amount", inputs: {amount: 1} },
    ship: { needs: "pay", shell: "ship" }
} });
"#;

struct Project {
    folder: TempDir,
}

impl Project {
    fn new(script: &str) -> Project {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("workflows")).unwrap();
        std::fs::write(folder.path().join("workflows/w.js"), script).unwrap();
        Project { folder }
    }

    fn folders(&self) -> Folders {
        let path = |name: &str| self.folder.path().join(name);
        Folders { workflows: path("workflows"), defaults: path("defaults") }
    }

    /// The mismatches of a test of two days as a text; empty if it passes.
    fn words(&self, fields: &str) -> String {
        let rehearsals = Rehearsals {
            format: Arc::new(kelos_door_stolos::TasksJson),
            folders: self.folders(),
            limits: Limits::default(),
            project: self.folder.path().to_owned(),
            real: None,
        };
        let text = format!(
            "kelos.test('t', {{from: '2026-01-05T00:00Z', until: '2026-01-07T00:00Z', settle: '3d',\n{fields}\n}});"
        );
        let source = TestSource {
            file: "tests/a.test.js".to_owned(),
            text: Arc::from(text),
            defaults: self.folder.path().join("defaults"),
        };
        let join = |all: Vec<String>| all.join("\n");
        match rehearsals.rehearse(&source, self.folder.path(), "t").verdict {
            Verdict::Passed => String::new(),
            Verdict::Failed(all) => join(all.iter().map(ToString::to_string).collect()),
            Verdict::Broken(all) => format!("broken: {}", join(all.iter().map(ToString::to_string).collect())),
            Verdict::Skipped(why) => why,
        }
    }

    #[track_caller]
    fn passes(&self, fields: &str) {
        assert_eq!(self.words(fields), "");
    }
}

#[test]
fn data_flows_from_step_to_step_and_a_signal_lets_it_go_on() {
    Project::new(ETL).passes(
        r#"runs: {
            "etl.extract": { fails: 1, gives: {files: ["a", "b", "c"], rows: 3, "day-of": 1} },
            "etl.clean": { takes: "5m", gives: {rows: 4} },
            "etl.load": (run) => ({ takes: "10m", gives: {name: run.inputs.item, at: run.time.toString(), n: run.item} }),
            "etl.approve": { takes: "2h", gives: {by: "ann"} },
            "etl.publish": { gives: {url: "https://x"} }
        },
        expect: {
            slots: { "etl": {succeeded: 2}, "etl.load": "succeeded", "etl.cleanup": {} },
            states: {
                "etl@2026-01-05T03:00Z": "succeeded",
                "etl.load:2@2026-01-05T03:00Z": "succeeded",
                "etl.approve@2026-01-05T03:00Z": "succeeded"
            },
            runs: [
                { slot: "etl.extract@2026-01-05T03:00Z", number: 1, state: "failed" },
                { slot: "etl.extract@2026-01-05T03:00Z", settings: {command: ["extract", "2026-01-05"]}, inputs: {limit: 10} },
                { slot: "etl.load@2026-01-05T03:00Z", inputs: {rows: {extract: 3, clean: 4}, day_of: 1} },
                { slot: "etl.load:1@2026-01-05T03:00Z", inputs: {item: "b", index: 1}, settings: {command: ["load", "b"]} },
                { slot: "etl.approve@2026-01-05T03:00Z", inputs: {load: [
                    {name: "a", at: "2026-01-05T03:00:00.000Z", n: 0}, {name: "b", at: "2026-01-05T03:00:00.000Z", n: 1},
                    {name: "c", at: "2026-01-05T03:00:00.000Z", n: 2}]} },
                { slot: "etl.publish@2026-01-05T03:00Z", settings: {command: ["publish", "ann"]} },
                { slot: "etl@2026-01-05T03:00Z", gives: {url: "https://x"} }
            ],
            mostAtOnce: { "etl.load": 2, "etl": 1 },
            check: (result) => {
                const publish = result.slot("etl.publish@2026-01-05T03:00Z").runs[0];
                // Five minutes of clean, two rounds of items, two hours of waiting.
                return publish.dispatchedAt.startsWith("2026-01-05T05:25") || publish.dispatchedAt;
            }
        }"#,
    );
}

#[test]
fn a_flow_recovers_or_fails_as_its_steps_say() {
    let project = Project::new(ETL);
    project.passes(
        r#"runs: {
            "etl.extract": { gives: {files: ["a"]} },
            "etl.load": (run) => (run.time.day() === "05" ? { fails: "no disk" } : {}),
        },
        expect: { states: {
            "etl@2026-01-05T03:00Z": "recovered",
            "etl.load@2026-01-05T03:00Z": "failed",
            "etl.cleanup@2026-01-05T03:00Z": "succeeded",
            "etl@2026-01-06T03:00Z": {state: "failed", because: "step approve failed: what it waited for did not come in time"},
            "etl.approve@2026-01-06T03:00Z": "expired"
        }, runs: [
            { slot: "etl.cleanup@2026-01-05T03:00Z", settings: {command: ["cleanup", "load"]}, inputs: {failed: "load"} }
        ] }"#,
    );
    assert_eq!(
        project.words(
            "runs: {'etl.extract': {gives: {files: []}}, 'etl.approve': {takes: 0, gives: {by: 'ann'}}},
             expect: {states: {'etl@2026-01-05T03:00Z': 'recovered'}}"
        ),
        "etl@2026-01-05T03:00Z: expected recovered, found succeeded, and no step failed\n  run 1 succeeded at 2026-01-05T03:02:00.001Z"
    );
    project.passes(
        "runs: {'etl.extract': {}}, expect: {states: {'etl@2026-01-05T03:00Z': 'recovered',
         'etl.load@2026-01-05T03:00Z': {state: 'failed', because: 'it is given no files, expected a list'}}}",
    );
}

#[test]
fn a_flow_is_started_and_given_signals_by_name() {
    let project = Project::new(ETL);
    project.passes(
        r#"actions: [
            { at: "2026-01-05T01:00Z", start: "buy", name: "order-42", arguments: {amount: 7} },
            { at: "2026-01-05T01:00Z", start: "buy" },
            { at: "2026-01-05T04:00Z", signal: "approval", to: "etl@2026-01-05T03:00Z", payload: {by: "bob"} },
        ],
        runs: { "etl.extract": { gives: {files: ["a"]} }, "buy": {} },
        expect: {
            slots: { "buy": {succeeded: 2}, "buy.ship": {succeeded: 2}, "etl": {succeeded: 1, failed: 1} },
            states: { "buy@order-42": "succeeded", "buy@2026-01-05T01:00Z": "succeeded" },
            runs: [
                { slot: "buy.pay@order-42", inputs: {amount: 7} },
                { slot: "buy.pay@2026-01-05T01:00Z", inputs: {amount: 1} },
                { slot: "etl.publish@2026-01-05T03:00Z", inputs: {by: "bob"} }
            ]
        }"#,
    );
    let refused = project.words(
        "actions: [{at: '2026-01-05T01:00Z', signal: 'aproval', to: 'etl@2026-01-05T03:00Z'}], expect: {mostAtOnce: {etl: 1}}",
    );
    assert!(
        refused.contains("it was refused: no step of etl waits for a signal \"aproval\", did you mean approval?"),
        "{refused}"
    );
}

#[test]
fn names_of_steps_are_checked() {
    let project = Project::new(ETL);
    let expect = "expect: {mostAtOnce: {etl: 1}}";
    for (fields, told) in [
        (
            "runs: {'etl.laod': {}}, ",
            "runs: no workflow of this test is named \"etl.laod\" (did you mean \"etl.load\"?)",
        ),
        (
            "runs: {'etl.approve': {fails: true}}, ",
            "runs: etl.approve waits for a signal: expected takes, gives or hangs (with hangs: true no signal comes",
        ),
        ("runs: {'etl.load': {gives: 3}}, ", "gives: expected an object such as {rows: 3}, not 3"),
        ("actions: [{at: '2026-01-05T01:00Z', start: 'buy', name: 'a b'}], ", "\"a b\" can't name a run"),
        ("actions: [{at: '2026-01-05T01:00Z', signal: 'x', to: 'etl'}], ", "to: expected a slot such as"),
    ] {
        let found = project.words(&format!("{fields}{expect}"));
        assert!(found.starts_with("broken: ") && found.contains(told), "{fields}: {found}");
    }
}

#[test]
fn a_plan_lists_the_runs_of_a_flow_and_no_steps() {
    let project = Project::new(ETL);
    let loaded = check(project.folders(), Limits::default(), Arc::new(kelos_door_stolos::TasksJson), None).unwrap();
    let range = DryRun::over("2026-01-05T00:00Z".parse().unwrap(), "2026-01-08T00:00Z".parse().unwrap());
    let plan = dry_run(&range, &loaded.workflows);
    let etl = &plan.workflows[&"etl".parse().unwrap()];
    assert_eq!(etl.slots.len(), 3);
    assert!(etl.slots.values().all(|slot| slot.state == kelos_model::SlotState::Succeeded));
    assert_eq!(plan.assumed.runs, BTreeMap::from([("flow".to_owned(), 3)]));
}

#[test]
fn a_step_of_a_run_is_done_again() {
    let project = Project::new(ETL);
    project.passes(
        r#"actions: [
            { at: "2026-01-05T09:00Z", start: "etl", step: "etl.load@2026-01-05T03:00Z", name: "again-1", arguments: {files: ["z"]} },
            { at: "2026-01-05T09:00Z", start: "etl", step: "etl.load:1@2026-01-05T03:00Z", name: "again-2" },
            { at: "2026-01-05T09:30Z", start: "etl", step: "etl.extract@2026-01-05T03:00Z", name: "again-3" },
        ],
        runs: {
            "etl.extract": { gives: {files: ["a", "b"]} },
            "etl.approve": { gives: {by: "ann"} },
        },
        expect: {
            states: { "etl@again-1": "succeeded", "etl@again-2": "succeeded", "etl@again-3": "succeeded" },
            runs: [
                { slot: "etl.load:0@again-1", settings: {command: ["load", "z"]} },
                { slot: "etl.load@again-2", settings: {command: ["load", "b"]}, inputs: {item: "b", index: 1} },
                { slot: "etl.extract@again-3", settings: {command: ["extract", "2026-01-05"]} }
            ]
        }"#,
    );
    let expect = "expect: {mostAtOnce: {etl: 1}}";
    let at = "at: '2026-01-05T09:00Z', start: 'etl'";
    let refused = project.words(&format!("actions: [{{{at}, step: 'etl.load@order-1'}}], {expect}"));
    assert!(refused.contains("it was refused: etl@order-1 does not exist"), "{refused}");
    for (step, told) in [
        ("buy.pay@order-1", "step: expected a step of etl and the run that did it, such as \"etl.load@order-42\""),
        ("etl.laod@order-1", "no workflow of this test is named \"etl.laod\" (did you mean \"etl.load\"?)"),
        ("etl.load", "step: expected a slot such as"),
    ] {
        let found = project.words(&format!("actions: [{{{at}, step: '{step}'}}], {expect}"));
        assert!(found.starts_with("broken: ") && found.contains(told), "{found}");
    }
}

/// Time slots among each other, and a flow after one of them.
const TIMES: &str = r#"
kelos.workflow("extract", { schedule: "0 3 * * *", command: ["extract"] });
kelos.workflow("clean", { schedule: "0 3 * * *", command: ["clean"] });
kelos.workflow("load", {
    schedule: "0 3 * * *",
    after: ["extract", "clean"],
    parameters: { limit: 10, "day-of": "monday" },
    command: ["load", "${rows}", "${limit}", "${year}"]
});
kelos.workflow("hourly", { schedule: "0 */12 * * *", command: ["hour"] });
kelos.workflow("daily", { schedule: celos.calendar("daily"), after: celos.covers("hourly"), command: ["sum", "${hourly}"] });
kelos.flow("report", { schedule: "0 3 * * *", after: "load", steps: { write: { command: ["write", "${sum}"] } } });
"#;

#[test]
fn what_slots_give_is_given_to_the_slots_that_depend_on_them() {
    Project::new(TIMES).passes(
        r#"runs: {
            "extract": { gives: {rows: 3, "day-of": "friday", limit: "20", year: 1999} },
            "clean": (run) => ({ gives: {rows: 4, none: null} }),
            "load": (run) => ({ gives: {sum: run.inputs.rows.extract + run.inputs.rows.clean} }),
            "hourly": (run) => ({ gives: {hourly: run.time.getHour()} }),
            "report.write": { gives: {done: true} }
        },
        expect: {
            runs: [
                { slot: "load@2026-01-05T03:00Z", settings: {command: ["load", '{"clean":4,"extract":3}', "20", "2026"]},
                  inputs: {rows: {clean: 4, extract: 3}, limit: 20, "day-of": "friday", none: null, year: 1999} },
                { slot: "daily@2026-01-05T00:00Z", settings: {command: ["sum", "[0,12]"]}, inputs: {hourly: [0, 12]} },
                { slot: "report.write@2026-01-05T03:00Z", settings: {command: ["write", "7"]}, inputs: {sum: 7} },
                { slot: "report@2026-01-05T03:00Z", gives: {done: true} }
            ]
        }"#,
    );
}

#[test]
fn an_output_that_does_not_fit_refuses_the_run_and_names_who_gave_it() {
    Project::new(TIMES).passes(
        r#"runs: { "extract": { gives: {limit: "none"} }, "clean": { gives: {rows: 1} } },
        expect: {
            states: { "load@2026-01-05T03:00Z": {state: "failed", because: 'limit is "none", expected a whole number such as 3 (extract gave it)'} }
        }"#,
    );
}
