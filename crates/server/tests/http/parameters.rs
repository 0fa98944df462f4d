//! Parameters over the native API and by forms, and what can be asked for with each kind of key.

use std::fmt::Write as _;

use axum::http::{Method, StatusCode};
use kelos_model::{SlotRef, SlotState, WorkflowId};
use serde_json::{Value, json};

use crate::jobs::{job, step};
use crate::pages::{assert_says, form, page};
use crate::support::{Reply, Server, moment, slot};

const SCRIPT: &str = r#"
    const job = celos.commandExternalService({ command: ["load"] });
    const day = { type: "date", default: "${year}-${month}-${day}", about: "the day to load" };
    kelos.workflow("times", { schedule: "hourly", startTime: "2015-09-13T15:00Z", catchUp: "all", job, parameters: { day, rows: 1000 } });
    celos.defineJobGraph({ jobs: { job_id: "{n}", externalService: job, parameters: { rows: 1000 } } }, { identifiers: { n: "integer" } });
    program("etl", job, { parameters: { day: { type: "date" }, rows: 1000, dry: false, size: { type: "choice", choices: ["s", "l"], default: "s" } } });
    schedule("signals", "etl").withProperties({ day: "2015-09-12" }).triggerOn(celos.signalTrigger("go"));
    program("any", job);
"#;

const DOCS: &str = include_str!("../../../../docs/parameters.md");

/// The kinds of keys, each with a workflow.
const KINDS: [(&str, &str); 4] =
    [("time", "times"), ("job id", "jobs"), ("event schedule", "test.signals"), ("program", "test.etl")];

async fn server() -> Server {
    let server = Server::start(SCRIPT).await;
    let problems = server.get("/api/v1/problems").await.ok().json();
    assert_eq!(problems["items"], json!([]), "{problems}");
    step(&server).await;
    server.post("/api/v1/schedules/test.signals/enable").await.ok();
    server
}

fn code(reply: &Reply) -> String {
    match reply.status.is_success() {
        true => "yes".to_owned(),
        false => format!("`{}`", reply.json()["code"].as_str().unwrap_or("?")),
    }
}

/// Opens a slot in the way that its kind of key has, without arguments; gives its name and the path of it.
async fn opened(server: &Server, workflow: &str) -> (SlotRef, String) {
    match workflow {
        "times" => step(server).await,
        "jobs" => {
            let body = json!({ "jobs": [{ "workflow": "jobs", "job": "7" }] });
            server.post_json("/api/v1/jobs", &body.to_string()).await.ok();
        }
        "test.signals" => {
            server.post_json("/api/v1/facts", &json!({ "signal": "go" }).to_string()).await.ok();
        }
        _ => {
            let body = json!({ "arguments": { "day": "2015-09-12" } });
            server.post_json("/api/v1/workflows/test.etl/start", &body.to_string()).await.ok();
        }
    }
    step(server).await;
    let page = server.get(&format!("/api/v1/slots?workflow={workflow}")).await.ok().json();
    let found = &page["items"][0];
    let slot = match workflow {
        "times" => slot(workflow, found["time"].as_str().unwrap()),
        "jobs" => job(workflow, "7"),
        _ => moment(workflow, found["time"].as_str().unwrap()),
    };
    let path = format!("/api/v1/workflows/{workflow}/slots/{}", slot.key);
    (slot, path)
}

/// The answers of the verbs for a kind of key, in the order of the table.
async fn walked(workflow: &str) -> Vec<String> {
    let server = server().await;
    let post = |path: String, body: Value| {
        let server = &server;
        async move { server.post_json(&path, &body.to_string()).await }
    };
    let own = format!("/api/v1/workflows/{workflow}");
    let mut told = Vec::new();

    let (slot, path) = opened(&server, workflow).await;
    server.until_state(&slot, SlotState::Running).await;
    let started = post(format!("{own}/start"), json!({ "arguments": { "day": "2015-09-11", "rows": 3 } })).await;
    told.push(code(&started));

    let declared = server.get(&own).await.ok().json()["definition"]["parameters"].clone();
    let run = server.get(&format!("{path}/runs/1")).await.ok().json();
    let has = declared.as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "rows"));
    told.push(if has && run["arguments"]["rows"] == 1000 { "yes" } else { "no" }.to_owned());

    server.give(&slot, 1, &json!({ "loaded": 12 })).await;
    let run = server.get(&format!("{path}/runs/1")).await.ok().json();
    told.push(if run["outputs"]["loaded"] == 12 { "yes" } else { "no" }.to_owned());
    told.push(given_by_others(workflow).await);
    server.end(&slot, 1, true).await;

    let range = json!({ "workflow": workflow, "from": "2015-09-13T12:00Z", "to": "2015-09-13T13:00Z", "arguments": { "rows": 4 } });
    told.push(code(&post("/api/v1/backfills".to_owned(), range).await));

    let rerun = post(format!("{path}/rerun"), json!({ "arguments": { "rows": "5" } })).await;
    step(&server).await;
    if rerun.status.is_success() {
        // The slots that run before it may hold its place.
        for _ in 0..3 {
            if server.is_running(&slot, 2) {
                break;
            }
            end_others(&server, workflow, &slot).await;
            step(&server).await;
        }
        let run = server.get(&format!("{path}/runs/2")).await.ok().json();
        assert_eq!(run["arguments"]["rows"], 5, "{workflow}: {run}");
        server.end(&slot, 2, false).await;
    }
    told.push(code(&rerun));

    told.push(code(&post(format!("{path}/mark"), json!({ "state": "succeeded" })).await));
    post(format!("{path}/rerun"), json!({})).await.ok();
    told.push(code(&post(format!("{path}/skip"), json!({})).await));
    told.push(code(&post(format!("{own}/pause"), json!({})).await));
    told
}

/// Workflows that depend on those of each kind, and a schedule whose mapping takes over what its program's runs give.
const DEPENDENTS: &str = r#"
    const job = celos.commandExternalService({ command: ["load"] });
    const told = celos.commandExternalService({ command: ["tell", "${loaded}"] });
    const times = { schedule: "hourly", startTime: "2015-09-13T15:00Z", catchUp: "all", job };
    kelos.workflow("times", times);
    kelos.workflow("after-times", { ...times, after: "times", job: told });
    celos.defineJobGraph({
        "jobs": { job_id: "{n}", externalService: job },
        "after-jobs": { job_id: "{n}", depends_on: { app_name: ["jobs"] }, externalService: told }
    }, { identifiers: { n: "integer" } });
    program("etl", job);
    program("next", told);
    schedule("told", "next").withProperties({ "triggering.properties.mapping": '{"loaded": "loaded"}' })
        .triggerOn(celos.programStatusTrigger("etl", "COMPLETED"));
"#;

/// Whether a slot of a kind of key is given what the slot gave that it depends on.
async fn given_by_others(workflow: &str) -> String {
    let (upstream, dependent, answer) = match workflow {
        "times" => ("times", "after-times", "yes"),
        "jobs" => ("jobs", "after-jobs", "yes"),
        "test.signals" => ("test.etl", "test.told", "`by-mapping`"),
        // It depends on nothing.
        _ => return "`no-trigger`".to_owned(),
    };
    let server = Server::start(DEPENDENTS).await;
    step(&server).await;
    server.post("/api/v1/schedules/test.told/enable").await.ok();
    let (slot, _) = opened(&server, upstream).await;
    server.until_state(&slot, SlotState::Running).await;
    server.give(&slot, 1, &json!({ "loaded": 12 })).await;
    server.end(&slot, 1, true).await;
    step(&server).await;
    let filter = kelos_store::RunFilter {
        workflow: Some(WorkflowId::new(dependent).unwrap()),
        ..kelos_store::RunFilter::default()
    };
    let runs = server.node.reader().runs(&filter, kelos_store::PageRequest::newest(1)).unwrap().rows;
    assert_eq!(runs[0].arguments.get("loaded"), Some(&json!(12)), "{dependent}");
    let path = format!("workflows/{dependent}/slots/{}", runs[0].id.slot.key);
    let run = server.get(&format!("/api/v1/{path}/runs/1")).await.ok().json();
    assert_eq!(run["arguments"]["loaded"], 12, "{dependent}: {run}");
    assert_says(&page(&server, &format!("/ui/{path}")).await, &["loaded"]);
    if answer == "yes" {
        let why = server.get(&format!("/api/v1/{path}/history")).await.ok().json();
        assert!(why.to_string().contains("\"given\""), "{why}");
    }
    answer.to_owned()
}

/// Ends the other runs of a workflow.
async fn end_others(server: &Server, workflow: &str, but: &SlotRef) {
    let filter = kelos_store::SlotFilter {
        workflow: Some(WorkflowId::new(workflow).unwrap()),
        ..kelos_store::SlotFilter::default()
    };
    let rows = server.node.reader().slot_states(&filter, kelos_store::PageRequest::newest(9)).unwrap().rows;
    for (other, _) in rows.into_iter().filter(|(other, _)| other != but) {
        if server.is_running(&other, 1) {
            server.end(&other, 1, true).await;
        }
    }
}

/// Each hole is in the docs, and nothing there is claimed that is not so.
#[tokio::test(flavor = "multi_thread")]
async fn the_matrix_of_keys_and_verbs_is_that_of_the_docs() {
    const VERBS: [&str; 9] =
        ["start", "parameters", "outputs", "outputs of others", "backfill", "rerun", "mark", "skip", "pause"];
    let mut columns = Vec::new();
    for (_, workflow) in KINDS {
        columns.push(walked(workflow).await);
    }
    let mut table = format!("| | {} |\n|---|---|---|---|---|\n", KINDS.map(|(kind, _)| kind).join(" | "));
    for (n, verb) in VERBS.iter().enumerate() {
        let cells: Vec<&str> = columns.iter().map(|column| column[n].as_str()).collect();
        writeln!(table, "| {verb} | {} |", cells.join(" | ")).unwrap();
    }
    assert!(DOCS.contains(&table), "docs/parameters.md does not have this table:\n{table}");
    for hole in columns.iter().flatten().filter(|cell| *cell != "yes") {
        assert!(DOCS.contains(&format!("- {hole}: ")), "docs/parameters.md gives no reason for {hole}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_stay_numbers_and_all_mistakes_are_told_at_once() {
    let server = server().await;
    let start = |arguments: Value| {
        let (server, body) = (&server, json!({ "arguments": arguments }).to_string());
        async move { server.post_json("/api/v1/workflows/test.etl/start", &body).await }
    };
    let refused = start(json!({ "dya": "x", "rows": "many", "dry": 1 })).await;
    let problem = refused.json();
    assert_eq!((refused.status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("arguments-mismatched")));
    let detail = "the arguments of test.etl are wrong: \"dya\" is no parameter, expected day; day is missing, expected a date such as \
                  2026-11-21; rows is \"many\", expected a whole number such as 3; dry is 1, expected true or false";
    assert_eq!(problem["detail"], detail);
    let told = start(json!({ "day": "2015-09-12", "rows": 3, "dry": "true" })).await.ok().json();
    let at = told["time"].as_str().unwrap();
    assert_eq!(told["collected"]["asked"]["arguments"], json!({ "day": "2015-09-12", "dry": true, "rows": 3 }));
    step(&server).await;
    server.until_state(&moment("test.etl", at), SlotState::Running).await;
    let run = server.get(&format!("/api/v1/workflows/test.etl/slots/{at}/runs/1")).await.ok().json();
    let given = &run["arguments"];
    assert_eq!((&given["rows"], &given["dry"], &given["size"]), (&json!(3), &json!(true), &json!("s")));
    let any = json!({ "arguments": { "n": 3, "list": [1, null], "text": "3" } });
    let any = server.post_json("/api/v1/workflows/test.any/start", &any.to_string()).await.ok().json();
    assert_eq!(any["collected"]["asked"]["arguments"], json!({ "list": [1, null], "n": 3, "text": "3" }));
    for bad in [r#"{"arguments": []}"#, r#"{"arguments": "x"}"#, r#"{"argument": {}}"#] {
        let reply = server.post_json("/api/v1/workflows/test.etl/start", bad).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_that_gives_its_program_something_else_is_refused() {
    let server = server().await;
    let body = |properties: Value| json!({ "name": "s", "program": "test.etl", "trigger": { "type": "signal", "signal": "go" }, "properties": properties });
    let post = |properties: Value| {
        let (server, body) = (&server, body(properties).to_string());
        async move { server.ask(Method::POST, "/api/v1/schedules", &body).await }
    };
    let told = |reply: Reply| reply.json()["detail"].as_str().unwrap_or_default().to_owned();
    let wrong = "the arguments of test.etl are wrong:";
    let missing = format!("{wrong} the program requires day, expected it among the properties");
    assert_eq!(told(post(json!({})).await), missing);
    let odd = format!("{wrong} day is \"x\", expected a date such as 2026-11-21");
    assert_eq!(told(post(json!({ "day": "x" })).await), odd);
    post(json!({ "day": "2015-09-12" })).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_of_a_start_has_a_field_for_each_parameter() {
    let server = server().await;
    let own = page(&server, "/ui/workflows/test.etl").await;
    for field in [
        r#"<input type="date" name="argument.day" placeholder="" required"#,
        r#"<input type="number" name="argument.rows" step="1" placeholder="1000""#,
        r#"<select name="argument.size""#,
        r#"<option value="l">"#,
    ] {
        assert!(own.contains(field), "{field}");
    }
    assert_says(&own, &["Parameters", "rows : integer, 1000 by default", "day : date, required"]);
    let path = "/ui/schedules/test.etl/fire";
    let refused = form(&server, path, "argument.rows=3", "same-origin").await;
    assert!(refused.text.contains("day is missing"), "{refused:?}");
    assert_eq!(form(&server, path, "rows=3", "same-origin").await.status, StatusCode::BAD_REQUEST);
    let fields = "argument.day=2015-09-12&argument.rows=3&argument.size=&reason=now";
    let started = form(&server, path, fields, "same-origin").await;
    assert_eq!(started.status, StatusCode::SEE_OTHER, "{started:?}");
    step(&server).await;
    let slot = page(&server, started.header("location")).await;
    assert_says(&slot, &["day 2015-09-12", "rows 3", "size s"]);

    let times = slot_page(&server).await;
    assert_says(&times, &["Arguments of its runs", "day 2015-09-13", "rows 1000"]);
    let (slot, path) = ("/ui/workflows/times/slots/2015-09-13T15:00:00.000Z", "rerun");
    server.end(&self::slot("times", "2015-09-13T15:00Z"), 1, true).await;
    let rerun = form(&server, &format!("{slot}/{path}"), "argument.rows=8", "same-origin").await;
    assert_eq!(rerun.status, StatusCode::SEE_OTHER, "{rerun:?}");
    assert_says(&slot_page(&server).await, &["rows 8"]);
    let lines = "workflow=times&from=2015-09-13T12:00Z&to=2015-09-13T13:00Z&arguments=rows%3D9";
    let preview = page(&server, &format!("/ui/new-backfill?{lines}")).await;
    assert!(preview.contains(r#"name="arguments" value="rows=9""#), "{preview}");
    assert_eq!(form(&server, "/ui/new-backfill", lines, "same-origin").await.status, StatusCode::SEE_OTHER);
}

async fn slot_page(server: &Server) -> String {
    step(server).await;
    server.until(|server| server.node.reader().slot(&slot("times", "2015-09-13T15:00Z")).unwrap().is_some()).await;
    page(server, "/ui/workflows/times/slots/2015-09-13T15:00:00.000Z").await
}
