//! What runs give, and what those are given that they trigger: real commands, by a whole node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kelos::{Node, NodeConfig};
use kelos_core::{FireRequest, Input};
use kelos_engine::executor::{Executor as _, Reports};
use kelos_executors::local::RunSpec;
use kelos_executors::{CommandExecutor, run_ref};
use kelos_model::run::Report;
use kelos_model::time::{Calendar, CronSchedule, Schedule};
use kelos_model::workflow::{CatchUp, EventKeys, Job, Keys, Program};
use kelos_model::{Actor, BatchRule, Outcome, RunId, SlotRef, SlotState, Trigger, Workflow, WorkflowId};
use kelos_store::{MemoryStore, PageRequest, SlotFilter};
use serde_json::{Map, Value, json};

/// How long a job may take on a busy machine before a test gives up.
const DEADLINE: Duration = Duration::from_secs(240);

fn named(id: &str) -> WorkflowId {
    WorkflowId::new(id).unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("expected an object") };
    map
}

fn workflow(id: &str, keys: Keys, settings: Value) -> Workflow {
    let job = Job::new("command", object(settings));
    Workflow { keys, ..Workflow::new(named(id), Schedule::Cron(CronSchedule::hourly()), job) }
}

fn program(id: &str, settings: Value) -> Workflow {
    let keys = Keys::Requests(Box::new(Program { name: id.to_owned(), kind: None }));
    workflow(id, keys, settings)
}

/// A schedule that runs `b` whenever `a` succeeds, with these properties.
fn after_a(properties: Value) -> Workflow {
    let mut events = EventKeys::new("s", named("b"));
    events.enabled = true;
    events.properties =
        object(properties).into_iter().map(|(name, value)| (name, value.as_str().unwrap().to_owned())).collect();
    let trigger = Trigger::Ended { program: named("a"), states: [SlotState::Succeeded].into() };
    Workflow { trigger, ..workflow("s", Keys::Events(Box::new(events)), json!({})) }
}

struct Bench {
    node: Node,
    _temp: tempfile::TempDir,
}

impl Bench {
    fn start(definitions: Vec<Workflow>) -> Bench {
        let temp = tempfile::tempdir().unwrap();
        let config =
            NodeConfig::new(temp.path().join("runs"), vec![crate::local_support::SHIM.into(), "__shim".into()]);
        let runtime = tokio::runtime::Handle::current();
        let node = Node::start(config, Box::new(MemoryStore::new()), runtime).unwrap();
        node.handle().define(definitions.into_iter().map(Arc::new).collect(), BTreeMap::new()).unwrap();
        Bench { node, _temp: temp }
    }

    async fn fire(&self, id: &str, arguments: &[(&str, &str)]) -> SlotRef {
        let mut status = self.node.handle().watch_status();
        let leads = |status: &kelos_engine::Status| matches!(status, kelos_engine::Status::Leading { .. });
        status.wait_for(leads).await.unwrap();
        let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let request =
            FireRequest { workflow: named(id), arguments, key: None, priority: 0, unconstrained: false, reason: None };
        self.node.handle().ask(&Actor::person("test"), request).await.unwrap().slot
    }

    /// Waits until a slot of a workflow has ended; gives its name, its state and the output of its first run.
    async fn end_of(&self, id: &str) -> (SlotState, String) {
        let mut commits = self.node.handle().watch_commits();
        let filter = SlotFilter { workflow: Some(named(id)), ..SlotFilter::default() };
        let waiting = async {
            loop {
                let rows = self.node.reader().slots(&filter, PageRequest::newest(9)).unwrap().rows;
                if let Some(row) = rows.iter().find(|row| row.slot.state.is_final()) {
                    return row.clone();
                }
                commits.changed().await.unwrap();
            }
        };
        let row = tokio::time::timeout(DEADLINE, waiting).await.unwrap_or_else(|_| panic!("{id} never ended"));
        let run = RunId { slot: row.id, number: 1 };
        let chunk = self.node.launcher().output(&run_ref(&run)).piece(0, 1 << 20).await.unwrap();
        (row.slot.state, String::from_utf8(chunk.bytes).unwrap())
    }

    /// The only run of a workflow.
    fn run_of(&self, id: &str) -> kelos_model::Run {
        let filter = kelos_store::RunFilter { workflow: Some(named(id)), ..Default::default() };
        self.node.reader().runs(&filter, kelos_store::PageRequest::newest(1)).unwrap().rows.remove(0)
    }
}

/// Says what it was given, line by line.
fn tells() -> Workflow {
    let script = "printf '%s\\n' \"$1\" \"$taken\" \"$KELOS_ARG_taken\" \"$KELOS_ARGUMENTS\" \"$KELOS_TRIGGERED_BY\"";
    program("b", json!({ "command": ["sh", "-c", script, "sh", "${taken} of ${own}"] }))
}

/// Deeper outputs once were stored, and could not be read again.
#[tokio::test]
async fn a_run_that_gives_what_is_nested_too_deeply_fails_and_says_what_to_do() {
    for (levels, code) in
        [(64, "succeeded"), (65, "outputs-too-deep"), (126, "outputs-too-deep"), (300, "outputs-too-deep")]
    {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        let script = format!("printf '{{\"o\": {open}1{close}}}' > \"$KELOS_OUTPUTS\"");
        let bench = Bench::start(vec![program("a", json!({ "shell": script }))]);
        bench.fire("a", &[]).await;
        let (_, told) = bench.end_of("a").await;
        let outcome = bench.run_of("a").outcome.unwrap();
        assert_eq!(outcome.code(), code, "{levels}: {outcome}");
        if levels > 64 {
            let words = format!("nested {levels} levels deep, expected at most 64");
            assert!(outcome.to_string().contains(&words), "{outcome}");
            assert!(told.contains(&format!("what it wrote to KELOS_OUTPUTS is left out: it is {words}")), "{told}");
        }
        bench.node.stop().await;
    }
}

/// Whoever waits for what is too large to be kept would go without it.
#[tokio::test]
async fn a_run_that_gives_too_much_fails_and_says_what_to_do() {
    let script = "printf '{\"rows\": \"%070000d\"}' 1 > \"$KELOS_OUTPUTS\"";
    let bench = Bench::start(vec![program("a", json!({ "shell": script }))]);
    bench.fire("a", &[]).await;
    let (state, told) = bench.end_of("a").await;
    assert_eq!(state, SlotState::Failed);
    assert!(told.contains("what it wrote to KELOS_OUTPUTS is left out: it has 70012 bytes"), "{told}");
    let outcome = bench.run_of("a").outcome.unwrap();
    assert_eq!(outcome.code(), "outputs-too-large");
    assert_eq!(
        outcome.to_string(),
        "its outputs have 70012 bytes, expected at most 65536: write what is large to a file, and give its path"
    );
    bench.node.stop().await;
}

fn gives(outputs: &str) -> Workflow {
    program("a", json!({ "shell": format!("printf '%s' '{outputs}' > \"$KELOS_OUTPUTS\"") }))
}

#[tokio::test]
async fn what_a_run_gives_becomes_an_argument_of_what_it_triggers() {
    let properties =
        json!({ "own": "$(reboot)", "triggering.properties.mapping": r#"{"taken": "rows", "day": "date"}"# });
    let bench = Bench::start(vec![gives(r#"{"rows": 12}"#), tells(), after_a(properties)]);
    bench.fire("a", &[("date", "2014-06-01"), ("unasked", "x")]).await;
    let (state, told) = bench.end_of("s").await;
    assert_eq!(state, SlotState::Succeeded);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[..3], ["12 of $(reboot)", "12", "12"]);
    let arguments: kelos_model::Arguments = serde_json::from_str(lines[3]).unwrap();
    let names: Vec<&str> = arguments.keys().map(String::as_str).collect();
    assert_eq!(names, ["day", "logicalStartTime", "own", "taken", "triggering.properties.mapping"]);
    assert_eq!(arguments["day"], "2014-06-01");
    let triggered: Value = serde_json::from_str(lines[4]).unwrap();
    let info = &triggered["triggerInfos"][0];
    assert_eq!((&triggered["name"], &info["program"]), (&json!("s"), &json!("a")));
    assert_eq!((&info["outputs"]["rows"], &info["runtimeArguments"]["unasked"]), (&json!(12), &json!("x")));
    let [of_a, of_s] = ["a", "s"].map(|id| bench.run_of(id));
    assert_eq!(of_a.outputs.as_deref(), Some(&object(json!({ "rows": 12 }))));
    assert_eq!((&of_a.arguments["date"], of_s.outputs), (&json!("2014-06-01"), None));
    assert_eq!(of_s.arguments, arguments);
    bench.node.stop().await;
}

#[tokio::test]
async fn the_mapping_of_pipelines_is_known_too() {
    let mapping = json!({
        "arguments": [{ "source": "date", "target": "own" }],
        "pluginProperties": [{ "stageName": "sink", "source": "path", "target": "taken" }],
    });
    let given = r#"{"resolved.plugin.properties.map": {"sink": {"path": "/out"}}}"#;
    let properties = json!({ "triggering.properties.mapping": mapping.to_string() });
    let bench = Bench::start(vec![gives(given), tells(), after_a(properties)]);
    bench.fire("a", &[("date", "2014-06-01")]).await;
    let (state, told) = bench.end_of("s").await;
    assert_eq!((state, told.lines().next()), (SlotState::Succeeded, Some("/out of 2014-06-01")));
    bench.node.stop().await;
}

/// The command ended while no server was there: the next one finds what it gave.
#[tokio::test]
async fn what_a_run_gives_is_found_by_the_next_leader() {
    let fixture = crate::local_support::Fixture::new();
    let key = kelos_model::SlotKey::parse("2014-06-01T00:00Z").unwrap();
    let run = RunId { slot: SlotRef::new(named("a"), key), number: 1 };
    let argv = ["sh", "-c", "echo '{\"rows\": 12}' > \"$KELOS_OUTPUTS\"; exit 3"];
    let spec = RunSpec::new(run_ref(&run), run.to_string(), argv);
    fixture.run(&spec).await;
    let next = CommandExecutor::new(fixture.launcher.clone(), tokio::runtime::Handle::current());
    let (send, mut reported) = tokio::sync::mpsc::unbounded_channel();
    let reports = Reports::new(move |input| {
        if let Input::RunReported { report, .. } = input {
            let _ = send.send(report);
        }
    });
    next.check(&run, Some("1"), reports);
    let outputs = object(json!({ "rows": 12 }));
    assert_eq!(reported.recv().await, Some(Report::Gave { outputs }));
    assert!(matches!(reported.recv().await, Some(Report::Ended { outcome: Outcome::Failed { .. } })));
}

#[tokio::test]
async fn outputs_that_make_no_sense_are_left_out_and_the_log_says_so() {
    let bench = Bench::start(vec![gives("[1]")]);
    bench.fire("a", &[]).await;
    let (state, told) = bench.end_of("a").await;
    assert_eq!(state, SlotState::Succeeded);
    let expected = "kelos: what it wrote to KELOS_OUTPUTS is left out: it is no JSON object (but another value), \
                    expected such as {\"rows\": 12}\n";
    assert_eq!(told, expected);
    bench.node.stop().await;
}

/// A command is told from where to where it goes, and what it writes is the output of each slot.
#[tokio::test]
async fn a_run_of_several_slots_is_told_their_span() {
    let hour = jiff::SignedDuration::from_hours(1);
    let began = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() / 3600 * 3600).unwrap();
    let [first, last, end] = [began - hour * 3, began - hour, began];
    let script = "echo $KELOS_SLOTS $KELOS_TIME $KELOS_LAST $KELOS_END $last_hour $end_hour";
    let keys = Keys::Schedule(Schedule::Calendar(Calendar::hourly()));
    let (batch, start_time) = (Some(BatchRule { size: 3, delay_millis: 0 }), Some(first));
    let hours = Workflow {
        batch,
        start_time,
        end_time: Some(end),
        catch_up: Some(CatchUp::All),
        ..workflow("hours", keys, json!({ "shell": script }))
    };
    let bench = Bench::start(vec![hours]);
    let follower = SlotRef::at(named("hours"), first + hour);
    let mut commits = bench.node.handle().watch_commits();
    let waiting = async {
        while bench.node.reader().slot(&follower).unwrap().is_none_or(|slot| slot.state != SlotState::Succeeded) {
            commits.changed().await.unwrap();
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("it never succeeded");
    let run = bench.node.reader().slot_runs(&follower).unwrap().remove(0);
    let chunk = bench.node.launcher().output(&run_ref(&run.leader())).piece(0, 1 << 20).await.unwrap();
    let hour_of = |at: jiff::Timestamp| at.strftime("%H").to_string();
    let full = |at: jiff::Timestamp| kelos_model::time::format_full(at);
    let expected = format!("3 {} {} {} {} {}\n", full(first), full(last), full(end), hour_of(last), hour_of(end));
    assert_eq!(String::from_utf8(chunk.bytes).unwrap(), expected);
    bench.node.stop().await;
}

/// A time slot is given what the slot gave that it depends on: as values of its job, and as variables.
#[tokio::test]
async fn what_a_slot_gives_is_given_to_the_slots_that_depend_on_it() {
    let hour = jiff::SignedDuration::from_hours(1);
    let began = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() / 3600 * 3600).unwrap();
    let since = |one: Workflow| Workflow {
        start_time: Some(began - hour),
        end_time: Some(began),
        catch_up: Some(CatchUp::All),
        ..one
    };
    let keys = || Keys::Schedule(Schedule::Cron(CronSchedule::hourly()));
    let gives = "printf '%s' '{\"rows\": 12, \"year\": 1999, \"files\": [\"a\"]}' > \"$KELOS_OUTPUTS\"";
    let extract = since(workflow("extract", keys(), json!({ "shell": gives })));
    let tells =
        "printf '%s\\n' \"$1\" \"$rows\" \"$KELOS_ARG_rows\" \"$KELOS_ARGUMENTS\" \"$year\" \"$KELOS_ARG_year\"";
    let load =
        since(workflow("load", keys(), json!({ "command": ["sh", "-c", tells, "sh", "${rows} ${files} ${year}"] })));
    let load = Workflow { trigger: Trigger::Success { workflow: named("extract") }, ..load };
    let bench = Bench::start(vec![extract, load]);
    let (state, told) = bench.end_of("load").await;
    assert_eq!(state, SlotState::Succeeded);
    let year = (began - hour).strftime("%Y").to_string();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[..3], [&format!("12 [\"a\"] {year}"), "12", "12"]);
    let all = json!({ "rows": 12, "year": 1999, "files": ["a"] });
    assert_eq!(serde_json::from_str::<Value>(lines[3]).unwrap(), all);
    // The name of a part of the time is that of the slot, also where somebody gives a value under it.
    assert_eq!(lines[4..], [&year, "1999"]);
    assert_eq!(json!(bench.run_of("load").arguments), all);
    bench.node.stop().await;
}
