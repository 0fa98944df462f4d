//! Rehearsals: the assumptions of tests happen, and each mismatch is reported with its reason.

use std::sync::Arc;

use kelos_rehearsal::{Rehearsals, Report, Verdict};
use kelos_sandbox::{Folders, Limits, TestSource};
use tempfile::TempDir;

/// A folder of scripts and the texts of tests.
struct Project {
    folder: TempDir,
}

const HOURLY: &str = r#"
var CELOS_DEFAULT_HDFS = "hdfs://nn";
function define(id, more) {
    celos.defineWorkflow(Object.assign({
        id: id,
        schedule: celos.hourlySchedule(),
        schedulingStrategy: celos.serialSchedulingStrategy(2),
        trigger: celos.hdfsCheckTrigger("/in/${year}-${month}-${day}/${hour}00/_READY"),
        externalService: celos.commandExternalService({command: ["count", "${hour}"]})
    }, more));
}
define("count");
define("totals", {trigger: celos.successTrigger("count")});
"#;

impl Project {
    fn new(script: &str) -> Project {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("workflows")).unwrap();
        std::fs::write(folder.path().join("workflows/w.js"), script).unwrap();
        Project { folder }
    }

    fn source(&self, text: &str) -> TestSource {
        let defaults = self.folder.path().join("defaults");
        TestSource { file: "tests/a.test.js".to_owned(), text: Arc::from(text), defaults }
    }

    fn rehearsals(&self) -> Rehearsals {
        let path = |name: &str| self.folder.path().join(name);
        Rehearsals {
            format: std::sync::Arc::new(kelos_door_stolos::TasksJson),
            folders: Folders { workflows: path("workflows"), defaults: path("defaults") },
            limits: Limits { call_millis: 100, ..Limits::default() },
            project: self.folder.path().to_owned(),
            real: None,
        }
    }

    /// Rehearses a test of the first three days of a year.
    fn report(&self, fields: &str) -> Report {
        let text =
            format!("kelos.test(\"t\", {{from: \"2026-01-01T00:00Z\", until: \"2026-01-04T00:00Z\",\n{fields}\n}});");
        self.rehearsals().rehearse(&self.source(&text), self.folder.path(), "t")
    }

    /// The mismatches as a text; empty if the test passes.
    fn words(&self, fields: &str) -> String {
        match self.report(fields).verdict {
            Verdict::Passed => String::new(),
            Verdict::Failed(mismatches) => join(&mismatches),
            Verdict::Broken(problems) => format!("broken: {}", join(&problems)),
            Verdict::Skipped(why) => format!("skipped: {why}"),
        }
    }

    #[track_caller]
    fn passes(&self, fields: &str) {
        assert_eq!(self.words(fields), "");
    }
}

fn join<T: ToString>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join("\n")
}

/// An input for each slot of `count`.
const READY: &str = "path: \"/in/${year}-${month}-${day}/${hour}00/_READY\", each: \"count\"";

#[test]
fn inputs_for_all_slots_let_all_succeed() {
    let project = Project::new(HOURLY);
    let fields =
        format!("inputs: [{{{READY}}}], expect: {{slots: {{count: \"succeeded\", totals: {{succeeded: 72}}}}}}");
    let report = project.report(&fields);
    assert!(matches!(report.verdict, Verdict::Passed), "{report:?}");
    assert_eq!((report.slots, report.runs), (144, 144));
}

#[test]
fn a_missing_input_holds_its_slot_and_what_comes_after_and_says_so() {
    let project = Project::new(HOURLY);
    let fields = format!(
        "inputs: [{{{READY}, except: [\"2026-01-02T03:00Z\"]}}], \
         expect: {{slots: {{count: \"succeeded\", totals: {{succeeded: 72}}}}, \
         states: {{\"count@2026-01-02T03:00Z\": {{state: \"waiting\", because: \"/0300/_ready is not ready\"}}}}}}"
    );
    assert_eq!(
        project.words(&fields),
        "slots of count: expected all slots succeeded, found 1 waiting, 71 succeeded\n  \
         count@2026-01-02T03:00Z: waiting since 2026-01-02T03:00:00.001Z: HDFS path hdfs://nn/in/2026-01-02/0300/_READY is not ready\n\
         slots of totals: expected 72 succeeded, found 1 waiting, 71 succeeded\n  \
         totals@2026-01-02T03:00Z: waiting since 2026-01-02T03:00:00.001Z: Workflow slot count@2026-01-02T03:00Z is not ready"
    );
}

#[test]
fn a_workflow_that_begins_after_the_range_says_so() {
    let project = Project::new(&format!("{HOURLY}define(\"late\", {{startTime: \"2030-01-01T00:00Z\"}});\n"));
    assert_eq!(
        project.words("expect: {slots: {late: \"succeeded\"}}"),
        "slots of late: expected all slots succeeded, found no slots: late begins at 2030-01-01T00:00Z"
    );
}

#[test]
fn states_tell_why_they_are_others_than_expected() {
    let project = Project::new(HOURLY);
    let fields = format!(
        "inputs: [{{{READY}, only: [\"2026-01-01T03:00Z\"], after: \"3h\"}}], runs: {{count: {{takes: \"90m\", fails: true}}}}, \
         expect: {{states: {{\"count@2026-01-01T03:00Z\": \"succeeded\", \"count@2026-01-01T03:30Z\": \"waiting\", \
         \"count@2026-01-02T00:00Z\": {{state: \"waiting\", because: \"concurrency\"}}}}}}"
    );
    assert_eq!(
        project.words(&fields),
        "count@2026-01-01T03:00Z: expected succeeded, found failed\n  \
         run 1 ended at 2026-01-01T07:30Z: it failed (the test lets it); no retry is left\n\
         count@2026-01-01T03:30Z: expected waiting, found no such slot\n  \
         its workflow's schedule has no such time; the nearest are 2026-01-01T03:00Z and 2026-01-01T04:00Z\n\
         count@2026-01-02T00:00Z: expected a reason with \"concurrency\", found another one\n  \
         waiting since 2026-01-02T00:00:00.001Z: HDFS path hdfs://nn/in/2026-01-02/0000/_READY is not ready"
    );
}

#[test]
fn runs_fail_hang_and_are_retried_as_the_test_says() {
    let project =
        Project::new(&HOURLY.replace("define(\"count\")", "define(\"count\", {retry: {count: 2, delaySeconds: 600}})"));
    project.passes(&format!(
        "inputs: [{{{READY}}}], runs: {{\"*\": {{takes: 0}}, count: function (run) {{ \
             const hour = run.time.getHour(); \
             if (hour === 1) return {{fails: 1, reason: \"torn\"}}; \
             if (hour === 2) return {{fails: true}}; \
             if (hour === 5 && run.number === 1) return {{unknown: true}}; \
             return {{takes: \"5m\"}}; }}}}, \
         expect: {{slots: {{count: {{succeeded: 69, failed: 3}}}}, mostAtOnce: {{count: 1}}, \
             runs: [{{slot: \"count@2026-01-01T01:00Z\", number: 1, state: \"failed\"}}, \
                    {{slot: \"count@2026-01-01T01:00Z\", state: \"succeeded\"}}, \
                    {{slot: \"count@2026-01-01T05:00Z\", number: 2, state: \"succeeded\"}}]}}"
    ));
    let hangs = format!(
        "inputs: [{{{READY}}}], runs: {{count: {{hangs: true}}}}, expect: {{slots: {{count: {{running: 2, waiting: 0}}}}}}"
    );
    assert_eq!(
        project.words(&hangs),
        "slots of count: expected 2 running, found 70 queued, 2 running\n  \
         count@2026-01-01T02:00Z: queued since 2026-01-01T02:00:00.001Z: 2 of 2 places of its workflow are taken\n  \
         count@2026-01-01T03:00Z: queued since 2026-01-01T03:00:00.001Z: 2 of 2 places of its workflow are taken; 1 queued slots of its workflow go first\n  \
         count@2026-01-01T04:00Z: queued since 2026-01-01T04:00:00.001Z: 2 of 2 places of its workflow are taken; 2 queued slots of its workflow go first\n  \
         and 67 more"
    );
}

#[test]
fn a_slot_that_only_lacked_time_gets_the_advice() {
    let project =
        Project::new(&HOURLY.replace("define(\"count\")", "define(\"count\", {trigger: celos.delayTrigger(3600)})"));
    assert_eq!(
        project.words("expect: {slots: {count: {succeeded: 72}}}"),
        "slots of count: expected 72 succeeded, found 1 waiting, 71 succeeded\n  \
         count@2026-01-03T23:00Z: waiting since 2026-01-03T23:00:00.001Z: Delayed until 2026-01-04T00:00:00.000Z\n  \
         hint: the clock stopped at 2026-01-04T00:00Z, and this slot goes on at 2026-01-04T00:00:00.001Z: settle, such as settle: \"1h\", lets the clock go on"
    );
    project.passes("settle: \"1h\", expect: {slots: {count: {succeeded: 72}}}");
}

#[test]
fn outputs_are_held_against_what_runs_wrote() {
    let project = Project::new(HOURLY);
    let fields = |expect: &str| {
        format!(
            "inputs: [{{{READY}}}], runs: {{count: {{writes: [\"hdfs://nn/out/${{day}}/${{hour}}\"]}}}}, expect: {{{expect}}}"
        )
    };
    project.passes(&fields(
        "outputs: [\"/out/02\", {path: \"hdfs://nn/out/${day}/${hour}\", each: \"count\"}], missing: [\"/out/04\"]",
    ));
    assert_eq!(
        project.words(&fields(
            "outputs: [\"/out/09\", {path: \"/out/${day}/${hour}x\", each: \"count\"}], missing: [\"/out/01/00\"]"
        )),
        "/out/09: expected it there, found nothing\n\
         /out/${day}/${hour}x: expected it there, found nothing for 72 of 72\n  /out/01/00x\n  /out/01/01x\n  /out/01/02x\n  and 69 more\n\
         /out/01/00: expected nothing, found it there"
    );
}

#[test]
fn properties_and_settings_of_runs_are_compared() {
    let script = HOURLY.replace(
        "celos.commandExternalService({command: [\"count\", \"${hour}\"]})",
        "celos.oozieExternalService((slot) => ({in: celos.hdfsPath(\"/in/${hour}\"), day: slot.getScheduledTime().day(), \
         tested: celos.isRunningInTestMode()}), \"http://oozie\")",
    );
    let project = Project::new(&script);
    let fields = |properties: &str| {
        format!(
            "workflows: [\"count\"], inputs: [{{{READY}}}], expect: {{runs: [{{slot: \"count@2026-01-02T03:00Z\", \
             properties: {{{properties}}}, settings: {{url: \"http://oozie\"}}}}]}}"
        )
    };
    project.passes(&fields("in: \"/in/03\", day: \"02\", tested: \"true\""));
    assert_eq!(
        project.words(&fields("in: \"/in/04\", dya: \"02\"")),
        "property \"in\" of run 1 of count@2026-01-02T03:00Z: expected \"/in/04\", found \"/in/03\"\n\
         property \"dya\" of run 1 of count@2026-01-02T03:00Z: expected \"02\", found none"
    );
}

#[test]
fn people_act_at_their_moments_and_refusals_are_told() {
    let project = Project::new(HOURLY);
    project.passes(&format!(
        "inputs: [{{{READY}}}], workflows: [\"count\"], actions: [\
            {{at: \"2026-01-01T12:30Z\", pause: \"count\"}}, {{at: \"2026-01-01T20:00Z\", resume: \"count\"}}, \
            {{at: \"2026-01-02T00:30Z\", rerun: \"count@2026-01-01T03:00Z\", reason: \"again\"}}, \
            {{at: \"2026-01-02T01:30Z\", backfill: \"count\", from: \"2026-01-01T05:00Z\", until: \"2026-01-01T07:00Z\", mode: \"all\"}}], \
         expect: {{slots: {{count: \"succeeded\"}}, runs: [{{slot: \"count@2026-01-01T03:00Z\", number: 2}}, \
            {{slot: \"count@2026-01-01T05:00Z\", number: 2}}, {{slot: \"count@2026-01-01T06:00Z\", number: 2}}]}}"
    ));
    let refused = format!(
        "inputs: [{{{READY}}}], actions: [{{at: \"2026-01-02T00:30Z\", kill: \"count@2026-01-01T03:00Z\"}}], \
         expect: {{slots: {{count: \"succeeded\"}}}}"
    );
    assert_eq!(
        project.words(&refused),
        "kill count@2026-01-01T03:00Z at 2026-01-02T00:30Z: expected it to be done, found it was refused: \
         count@2026-01-01T03:00Z is succeeded: only a slot that has not ended can be killed"
    );
}

#[test]
fn a_killed_run_ends() {
    Project::new(HOURLY).passes(&format!(
        "inputs: [{{{READY}}}], workflows: [\"count\"], runs: {{count: {{takes: \"30m\"}}}}, \
         actions: [{{at: \"2026-01-01T03:10Z\", kill: \"count@2026-01-01T03:00Z\"}}], \
         expect: {{slots: {{count: {{succeeded: 71, killed: 1}}}}, \
                   runs: [{{slot: \"count@2026-01-01T03:00Z\", state: \"killed\"}}]}}"
    ));
}

#[test]
fn functions_of_triggers_are_asked_again_and_see_paths_registers_and_the_clock() {
    let project = Project::new(&HOURLY.replace(
        "define(\"count\")",
        "define(\"count\", {trigger: celos.functionTrigger((slot, now) => celos.getRegister(\"open\", \"count\") === 1 && \
         celos.hdfsCheck(\"/go/${day}\", slot) && now.compareTo(slot.getScheduledTime().plusHours(2)) > 0)})",
    ));
    project.passes(
        "workflows: [\"count\"], settle: \"3h\", registers: {open: {count: 1}}, \
         inputs: [\"/go/01\", {path: \"/go/02\", at: \"2026-01-03T00:00Z\"}], \
         expect: {slots: {count: {succeeded: 48, waiting: 24}}, check(result) { \
             const first = result.runs(\"count\")[0].dispatchedAt; \
             return first >= \"2026-01-01T02:00\" && first < \"2026-01-01T02:16\" ? true : first; }}",
    );
}

#[test]
fn conditions_of_paths_hold_or_not() {
    let project = Project::new(&HOURLY.replace(
        "define(\"count\")",
        "define(\"count\", {trigger: celos.fileCheckTrigger(\"/in/${day}/${hour}\", {minBytes: 10, minAgeSeconds: 600})})",
    ));
    project.passes(
        "workflows: [\"count\"], runs: {count: {takes: 0}}, \
         inputs: [{path: \"/in/${day}/${hour}\", each: \"0 0 * * * ?\", size: 10, except: [\"2026-01-01T05:00Z\"]}, \
                  {path: \"/in/01/05\", at: \"2026-01-01T05:00Z\", size: 9}], \
         expect: {slots: {count: {succeeded: 71, waiting: 1}}, \
             states: {\"count@2026-01-01T05:00Z\": {state: \"waiting\", because: \"9 of 10 bytes\"}}, \
             check: (result) => result.runs(\"count\")[0].dispatchedAt === \"2026-01-01T00:10:00.000Z\"}",
    );
}

#[test]
fn what_vanishes_is_gone_and_what_lies_before_has_succeeded() {
    let before = HOURLY
        .replace("celos.successTrigger(\"count\")", "celos.offsetTrigger(-3600, celos.successTrigger(\"count\"))");
    let project = Project::new(&before);
    let inputs = format!("inputs: [{{{READY}}}]");
    project.passes(&format!("{inputs}, expect: {{slots: {{totals: \"succeeded\"}}}}"));
    project.passes(&format!(
        "{inputs}, before: \"nothing\", expect: {{slots: {{totals: {{succeeded: 71, waiting: 1}}}}}}"
    ));
    project.passes("met: [\"count\"], expect: {slots: {totals: \"succeeded\"}}");
    project.passes(&format!(
        "inputs: [{{{READY}, goneAfter: \"30m\"}}], settle: \"1h\", \
         expect: {{slots: {{count: \"succeeded\"}}, missing: [\"/in\"]}}"
    ));
}

#[test]
fn names_that_nobody_has_are_told_with_the_likely_ones() {
    let project = Project::new(HOURLY);
    let at = "broken: tests/a.test.js:1:1: kelos.test \"t\"";
    for (fields, expected) in [
        (
            "workflows: [\"cuont\"], expect: {slots: {}}",
            ": workflows: no workflow of this test is named \"cuont\" (did you mean \"count\"?)",
        ),
        (
            "expect: {slots: {total: \"succeeded\"}}",
            ": expect: slots: no workflow of this test is named \"total\" (did you mean \"totals\"?)",
        ),
        (
            "runs: {x: {}}, expect: {slots: {}}",
            ": runs: no workflow of this test is named \"x\" (there are: count, totals)",
        ),
        (
            "inputs: [{path: \"/${hour}\", each: \"cout\"}], expect: {slots: {}}",
            ": each: no workflow of this test is named \"cout\" (did you mean \"count\"?)",
        ),
        (
            "inputs: [{path: \"/${hour}\", each: \"count\", except: [\"2026-01-01T03:30Z\"]}], expect: {slots: {}}",
            ": except: 2026-01-01T03:30Z is no time of \"count\" within the test",
        ),
        (
            "actions: [{at: \"2027-01-01T00:00Z\", pause: \"count\"}], expect: {slots: {}}",
            ": actions: 2027-01-01T00:00Z is not between the start and the end of the test",
        ),
        (
            "actions: [{at: \"2026-01-02T00:00Z\", rerun: \"count@2025-12-31T00:00Z\"}], expect: {slots: {}}",
            ": actions: 2025-12-31T00:00Z lies before the start of the test (what lies before is only supposed; let the test start earlier)",
        ),
    ] {
        assert_eq!(project.words(fields), format!("{at}{expected}"));
    }
}

#[test]
fn broken_scripts_and_functions_break_the_test() {
    let project = Project::new("celos.defineWorkflow({id: \"a\"});");
    let words = project.words("expect: {slots: {}}");
    assert!(words.starts_with("broken: w.js:1:"), "{words}");
    let project = Project::new(HOURLY);
    let words = project.words(&format!(
        "inputs: [{{{READY}}}], runs: {{count: () => {{ for (;;); }}}}, expect: {{slots: {{count: \"succeeded\"}}}}"
    ));
    assert!(words.contains("broken: tests/a.test.js:2:"), "{words}");
    assert!(words.contains("stopped after 100 ms of processor time"), "{words}");
    let words = project.words("expect: {check() { throw new Error(\"so it is\"); }}");
    assert!(words.starts_with("broken: tests/a.test.js:2:") && words.ends_with("so it is"), "{words}");
    let words = project.words("expect: {check: () => [\"one\", \"two\"]}");
    assert_eq!(words, "check: expected nothing to be wrong, found one\ncheck: expected nothing to be wrong, found two");
    let script = HOURLY.replace("define(\"count\")", "define(\"count\", {maxRetryCount: 2000000000})");
    let words = Project::new(&script)
        .words(&format!("inputs: [{{{READY}}}], runs: {{count: {{takes: 0, fails: true}}}}, expect: {{slots: {{}}}}"));
    assert!(words.contains("gave up at 2026-01-01T00:00:00.001Z after 10000 turns"), "{words}");
}

#[test]
fn real_commands_are_not_run_unless_asked_for() {
    let words = Project::new(HOURLY).words("executors: \"real\", expect: {slots: {count: \"succeeded\"}}");
    assert_eq!(words, "skipped: it runs real commands");
}

#[test]
fn slots_of_a_batch_are_expected_one_by_one() {
    let project = Project::new(
        r#"
        kelos.workflow("load", {
            schedule: celos.calendar("hourly"), startTime: "2026-01-01T00:00Z", catchUp: "all",
            batch: {size: 6, delay: "6h"},
            command: ["load", "${hour}", "${last_hour}", "${end_hour}"],
            writes: ["/out/${day}/${hour}"]
        });
        kelos.workflow("day", {
            schedule: celos.calendar("daily"), startTime: "2026-01-01T00:00Z",
            after: celos.covers("load"), trigger: celos.fileCheckTrigger("/out/${day}/13"), command: ["day", "${day}"]
        });"#,
    );
    project.passes(
        r#"
        runs: { load: { takes: "10m", writes: ["/out/${day}/${hour}"] } },
        expect: {
            slots: { load: { succeeded: 66, queued: 5 }, day: { succeeded: 2 } },
            mostAtOnce: { load: 1 },
            runs: [
                { slot: "load@2026-01-01T06:00Z", settings: { command: ["load", "06", "11", "12"] } },
                { slot: "load@2026-01-01T08:00Z", number: 1, state: "succeeded", settings: { command: ["load", "06", "11", "12"] } }
            ]
        }"#,
    );
    let words = project.words(r#"runs: { load: { fails: 1 } }, expect: { slots: { load: { succeeded: 72 } } }"#);
    assert!(
        words.contains("together with 2026-01-01T00:00Z to 2026-01-01T05:00Z, in run 1 of 2026-01-01T00:00Z"),
        "{words}"
    );
}
