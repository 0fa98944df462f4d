use std::path::PathBuf;

use boon::{Compiler, Schemas};
use kelos_model::reason::ReasonKind;
use kelos_model::time::{Calendar, Schedule, Zone};
use kelos_model::{Answer, Job, Reason, Run, StepKey, Workflow};

use super::*;
use crate::account::Opening;

/// The files of schemas, as OpenLineage publishes them.
const SCHEMAS: [&str; 5] =
    ["OpenLineage", "NominalTimeRunFacet", "ParentRunFacet", "ErrorMessageRunFacet", "JobTypeJobFacet"];

#[test]
fn datasets_have_the_names_that_others_give_them() {
    for (uri, namespace, name) in [
        ("file:///data/in/2026-03-01", "file", "/data/in/2026-03-01"),
        ("/data/in", "file", "/data/in"),
        ("hdfs://nameservice1/logs/2026", "hdfs://nameservice1", "/logs/2026"),
        ("s3://bucket/a/b", "s3://bucket", "a/b"),
        ("abfs://box@store.example/a", "abfs://box@store.example", "a"),
        ("gs://bucket", "gs://bucket", "/"),
    ] {
        let dataset = of_uri(uri);
        assert_eq!((&*dataset.namespace, &*dataset.name), (namespace, name), "{uri}");
    }
}

/// Checks a value against the schema at a URL, formats among the rest.
fn check(value: &Value, url: &str) -> Result<(), String> {
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    compiler.enable_format_assertions();
    for name in SCHEMAS {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/openlineage");
        let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).expect("a schema");
        let schema: Value = serde_json::from_str(&text).expect("JSON");
        let id = schema["$id"].as_str().expect("an id").to_owned();
        compiler.add_resource(&id, schema).map_err(|error| format!("{error:#}"))?;
    }
    let schema = compiler.compile(url, &mut schemas).map_err(|error| format!("{error:#}"))?;
    schemas.validate(value, schema).map_err(|error| format!("{error:#}"))
}

/// Checks an event, and each of its facets, against the schemas that they name.
fn check_event(event: &Value) -> Result<(), String> {
    let url = |value: &Value, field: &str| value[field].as_str().map(str::to_owned).ok_or(format!("no {field}"));
    check(event, &url(event, "schemaURL")?)?;
    for part in ["run", "job"] {
        for facet in event[part]["facets"].as_object().into_iter().flat_map(Map::values) {
            check(facet, &url(facet, "_schemaURL")?)?;
        }
    }
    // The names of facets are in the schemas of their files alone.
    for (part, facet, file) in [
        ("run", "nominalTime", "1-0-1/NominalTimeRunFacet"),
        ("run", "parent", "1-2-0/ParentRunFacet"),
        ("run", "errorMessage", "1-0-1/ErrorMessageRunFacet"),
        ("job", "jobType", "2-0-4/JobTypeJobFacet"),
    ] {
        check(&event[part]["facets"], &format!("{FACETS}/{file}.json"))?;
        if let Some(named) = event[part]["facets"].get(facet) {
            let name = file.split('/').next_back().unwrap_or_default();
            assert_eq!(named["_schemaURL"], format!("{FACETS}/{file}.json#/$defs/{name}"));
        }
    }
    Ok(())
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// A daily workflow that writes a path, and whose trigger found another one and partitions.
fn daily(key: SlotKey, state: RunState, outcome: Option<Outcome>) -> RunAccount {
    let id: kelos_model::WorkflowId = "shop.daily".parse().expect("an id");
    let schedule = Schedule::Calendar(Calendar::daily(Zone::parse("Europe/Berlin").expect("a zone")));
    let plain = Workflow::new(id.clone(), schedule, Job::new("command", Map::new()));
    let workflow = Workflow { writes: vec!["s3://shop/sums/${year}-${month}-${day}".to_owned()], ..plain };
    let (probe, looked_at) = (Probe::path("hdfs://lake/orders/2026-03-01"), at("2026-03-01T23:00:01.5Z"));
    let found = Finding::ProbeAnswered { probe, verdict: Verdict::Yes, detail: String::new(), looked_at };
    let counted = Finding::PartitionsCounted { dataset: "purchases".into(), have: 4, want: 4 };
    let met = Reason {
        nested: vec![
            Reason::leaf(ReasonKind::HdfsPath, Answer::Met, found),
            Reason::leaf(ReasonKind::Partitions, Answer::Met, counted),
        ],
        ..Reason::leaf(ReasonKind::And, Answer::Met, Finding::AllOf)
    };
    let ended_at = outcome.is_some().then(|| at("2026-03-01T23:10:00Z"));
    let run = Run {
        id: RunId { slot: SlotRef::new(id, key), number: 1 },
        seq: 7,
        previous: 0,
        state,
        executor: "command".to_owned(),
        external_id: None,
        dispatched_at: at("2026-03-01T23:00:02Z"),
        started_at: Some(at("2026-03-01T23:00:02.123456789Z")),
        ended_at,
        outcome,
        arguments: std::collections::BTreeMap::new(),
        outputs: None,
        batch: None,
    };
    let opening = Opening { seq: 5, at: run.dispatched_at };
    RunAccount { run, opening, workflow: Some(workflow), met: Some(met), flow_run: None }
}

/// The last event of an account.
fn told(account: &Account) -> Value {
    events(account, &TraceIds::new("a log"), "shop").pop().expect("an event")
}

#[test]
fn a_run_that_was_refused_before_it_started_begins_with_its_dispatch() {
    let account = |started_at| {
        let refused = Outcome::refused("no such queue");
        let account = daily(SlotKey::Time(at("2026-02-28T23:00Z")), RunState::Failed, Some(refused));
        Account::Ended(RunAccount { run: Run { started_at, ..account.run }, ..account })
    };
    let all = events(&account(None), &TraceIds::new("a log"), "shop");
    let kinds: Vec<_> = all.iter().map(|event| (&event["eventType"], &event["eventTime"])).collect();
    assert_eq!(
        kinds,
        [(&json!("START"), &json!("2026-03-01T23:00:02Z")), (&json!("FAIL"), &json!("2026-03-01T23:10:00Z")),]
    );
    assert_eq!(all[0]["run"]["runId"], all[1]["run"]["runId"]);
    assert!(all[0]["run"]["facets"]["errorMessage"].is_null(), "{}", all[0]);
    assert!(all[1]["run"]["facets"]["errorMessage"]["message"].is_string(), "{}", all[1]);
    all.iter().for_each(|event| assert_eq!(check_event(event), Ok(()), "{event}"));
    // The beginning of one that had started was told before.
    let started = events(&account(Some(at("2026-03-01T23:00:03Z"))), &TraceIds::new("a log"), "shop");
    assert_eq!(started.iter().map(|event| &event["eventType"]).collect::<Vec<_>>(), ["FAIL"]);
}

#[test]
fn events_are_valid_by_the_published_schemas() {
    let key = || SlotKey::Time(at("2026-02-28T23:00Z"));
    let failed = Outcome::Failed { reason: "exited with status 3".to_owned(), exit_status: Some(3), code: None };
    for (state, outcome, kind) in [
        (RunState::Running, None, "START"),
        (RunState::Succeeded, Some(Outcome::Succeeded), "COMPLETE"),
        (RunState::Failed, Some(failed), "FAIL"),
        (RunState::Killed, Some(Outcome::Killed), "ABORT"),
    ] {
        let account = daily(key(), state, outcome.clone());
        let event = told(&if outcome.is_some() { Account::Ended(account) } else { Account::Began(account) });
        assert_eq!(check_event(&event), Ok(()), "{event}");
        let facets = &event["run"]["facets"];
        assert_eq!(event["eventType"], kind);
        assert_eq!(facets["nominalTime"]["nominalStartTime"], "2026-02-28T23:00:00Z");
        assert_eq!(facets["nominalTime"]["nominalEndTime"], "2026-03-01T23:00:00Z");
        let has_error = ["FAIL", "ABORT"].contains(&kind);
        assert_eq!(facets["errorMessage"]["message"].is_string(), has_error, "{event}");
        let inputs = json!([
            {"namespace": "hdfs://lake", "name": "/orders/2026-03-01"},
            {"namespace": "shop", "name": "purchases"},
        ]);
        assert_eq!(event["inputs"], inputs);
        assert_eq!(event["outputs"], json!([{"namespace": "s3://shop", "name": "sums/2026-03-01"}]));
    }
}

#[test]
fn a_step_names_the_run_of_its_flow_as_parent_and_root() {
    let run = SlotKey::Time(at("2026-02-28T23:00Z"));
    let step = StepKey::new(&run, &"load".parse().expect("a name")).expect("a step");
    let account = daily(SlotKey::Step(step), RunState::Succeeded, Some(Outcome::Succeeded));
    let event = told(&Account::Ended(RunAccount { flow_run: Some(4), ..account }));
    assert_eq!(check_event(&event), Ok(()), "{event}");
    let flow = RunId { slot: SlotRef::new("shop.daily".parse().expect("an id"), run), number: 4 };
    let parent = &event["run"]["facets"]["parent"];
    assert_eq!(parent["run"]["runId"], run_uuid(&TraceIds::new("a log"), &flow));
    assert_eq!(parent["root"], json!({"run": parent["run"], "job": parent["job"]}));
    assert_eq!(event["job"]["name"], "shop.daily.load");
}

#[test]
fn the_schemas_refuse_what_is_wrong() {
    let key = SlotKey::Time(at("2026-02-28T23:00Z"));
    let valid = told(&Account::Ended(daily(key, RunState::Succeeded, Some(Outcome::Succeeded))));
    for (pointer, wrong) in [
        ("/eventTime", json!("2026-03-01 23:10")),
        ("/eventType", json!("DONE")),
        ("/run/runId", json!("no uuid")),
        ("/producer", json!("kelos")),
        ("/run/facets/nominalTime/nominalStartTime", json!("tonight")),
        ("/run/facets/nominalTime/_producer", Value::Null),
        ("/job/facets/jobType/processingType", json!(1)),
        ("/job/facets/jobType/_schemaURL", json!("https://openlineage.io/spec/facets/9-9-9/JobTypeJobFacet.json")),
    ] {
        let mut event = valid.clone();
        *event.pointer_mut(pointer).expect(pointer) = wrong;
        assert!(check_event(&event).is_err(), "{pointer}");
    }
}
