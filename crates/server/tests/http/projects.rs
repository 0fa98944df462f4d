//! Deploying through the native API.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request};
use kelos_front::App;
use kelos_model::workflow::{Job, Keys, Program};
use kelos_model::{SlotState, Workflow, WorkflowId};
use kelos_server::router;
use serde_json::{Map, Value, json};

use crate::pages::{assert_says, page};
use crate::support::{NOW, Reply, Server, slot, workflow};

const P: &str = "/api/v1/projects/p";

/// A server that takes deployments.
async fn server(script: &str) -> Server {
    let mut server = Server::start(script).await;
    server.router = router(App::new(server.node.clone(), "1.2.3").with_deployments(true));
    server
}

async fn put(server: &Server, uri: &str, body: &Value) -> Reply {
    server.ask(Method::PUT, uri, &body.to_string()).await
}

fn told(reply: &Reply) -> String {
    let problem = reply.json();
    let kind = problem["type"].as_str().unwrap().strip_prefix("urn:kelos:problem:").unwrap();
    format!("{} {kind}: {}", reply.status.as_u16(), problem["detail"].as_str().unwrap())
}

fn names(answer: &Value, list: &str, name: &str) -> Vec<String> {
    answer[list].as_array().unwrap().iter().map(|one| one[name].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_is_planned_deployed_listed_and_taken_away() {
    let server = server("").await;
    let script = format!("importDefaults('p');\n{}", workflow("w", "startTime: START"));
    let bundle = json!({ "workflow": script, "defaults": "var START = '2015-09-13T12:00Z';" });
    let plan = put(&server, &format!("{P}?plan=true"), &bundle).await.ok().json();
    assert_eq!((&plan["done"], &plan["slots"]["created"][0]["count"]), (&json!(false), &json!(4)));
    assert_eq!(names(&plan, "files", "change"), ["new", "new"]);
    assert!(!server.folder.path().join("workflows/p.js").exists(), "a plan changes nothing");

    let done = put(&server, P, &bundle).await.ok().json();
    assert_eq!((&done["done"], &done["workflows"][0]["change"]), (&json!(true), &json!("new")));
    assert_eq!(std::fs::read_to_string(server.folder.path().join("workflows/p.js")).unwrap(), script);
    let listed = server.get("/api/v1/projects").await.ok().json();
    let expected = json!([
        { "name": "p", "workflows": ["w"], "hasScript": true, "hasDefaults": true, "problems": [] },
        { "name": "test", "workflows": [], "hasScript": true, "hasDefaults": false, "problems": [] },
    ]);
    assert_eq!(listed["items"], expected, "it is in force at once");
    let again = put(&server, P, &bundle).await.ok().json();
    assert_eq!(names(&again, "files", "change"), ["same", "same"]);

    server.step(NOW).await;
    let gone = server.ask(Method::DELETE, P, "").await.ok().json();
    assert_eq!(names(&gone, "files", "change"), ["removed", "removed"]);
    let listed = server.get("/api/v1/projects").await.ok().json();
    assert_eq!(names(&listed, "items", "name"), ["test"]);
    server.ask(Method::DELETE, P, "").await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_of_several_files_is_one() {
    let server = server("").await;
    let script = |id: &str| format!("importDefaults('names');\n{}", workflow(id, "startTime: START"));
    let files = |names: &str| {
        json!({ "files": {
            "workflows/a.js": script("a"), "workflows/b.js": script("b"), "defaults/names.js": names,
            "defaults/days.txt": "2015-12-25"
        } })
    };
    let bundle = files("var START = '2015-09-13T12:00Z';");
    let plan = put(&server, &format!("{P}?plan=true"), &bundle).await.ok().json();
    assert_eq!(names(&plan, "files", "change"), ["new", "new", "new", "new"]);
    put(&server, P, &bundle).await.ok();
    let listed = server.get("/api/v1/projects").await.ok().json();
    let expected =
        json!({ "name": "p", "workflows": ["a", "b"], "hasScript": true, "hasDefaults": true, "problems": [] });
    assert_eq!(listed["items"][0], expected);
    assert_eq!(server.get("/api/v1/workflows/b").await.ok().json()["project"], "p");
    let changed = put(&server, &format!("{P}?plan=true"), &files("var START = '2015-09-13T13:00Z';")).await.ok().json();
    let diff = json!(["- var START = '2015-09-13T12:00Z';", "+ var START = '2015-09-13T13:00Z';"]);
    assert_eq!(changed["files"][1]["diff"], diff);
    server.ask(Method::DELETE, P, "").await.ok();
    assert_eq!(names(&server.get("/api/v1/projects").await.ok().json(), "items", "name"), ["test"]);
    assert_eq!(std::fs::read_dir(server.folder.path().join("defaults")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_deploys_a_project_is_said_of_what_it_defines_and_of_nothing_else() {
    let server = server(&workflow("other", "")).await;
    let by_ann = |method: Method, body: String| {
        let request = Request::builder().method(method).uri(P).header("host", "localhost").header("kelos-user", "ann");
        request.header("content-type", "application/json").body(Body::from(body)).unwrap()
    };
    let bundle = json!({ "workflow": workflow("w", "") }).to_string();
    server.send(by_ann(Method::PUT, bundle)).await.ok();
    server.send(by_ann(Method::DELETE, String::new())).await.ok();
    let events = server.get("/api/v1/events").await.ok().json();
    let mut told: Vec<_> =
        events["items"].as_array().unwrap().iter().filter(|one| one["subject"] == "workflow").collect();
    told.sort_by_key(|one| one["seq"].as_u64());
    let told: Vec<String> =
        told.iter().map(|one| format!("{} {} {}", one["workflow"], one["event"], one["by"])).collect();
    let expected = [r#""other" "defined" "files""#, r#""w" "defined" "ann""#, r#""w" "removed" "ann""#];
    assert_eq!(told, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_tells_what_becomes_of_the_slots_that_there_are() {
    let server = server("").await;
    let there = server.folder.path().join("_there");
    std::fs::write(&there, "").unwrap();
    let script = |minute: &str, trigger: &str| {
        let fields = format!(
            "schedule: celos.cronSchedule('0 {minute} * * * ?'), startTime: '2015-09-13T13:00Z', trigger: {trigger}"
        );
        json!({ "workflow": workflow("w", &fields) })
    };
    put(&server, P, &script("0", "celos.fileCheckTrigger('/nowhere/there')")).await.ok();
    server.step(NOW).await;
    server.until_state(&slot("w", "2015-09-13T15:00Z"), SlotState::Waiting).await;
    let uri = format!("{P}?plan=true");
    let trigger = format!("celos.fileCheckTrigger('{}')", there.display());
    let plan = put(&server, &uri, &script("0", &trigger)).await.ok().json();
    assert_eq!(plan["workflows"][0]["parts"], json!(["trigger"]));
    let slots = json!([{
        "workflow": "w", "count": 3, "first": "2015-09-13T13:00:00.000Z", "last": "2015-09-13T15:00:00.000Z"
    }]);
    assert_eq!(plan["slots"], json!({ "fromServer": true, "created": [], "dropped": [], "unblocked": slots }));
    let plan = put(&server, &uri, &script("30", "celos.fileCheckTrigger('/nowhere/there')")).await.ok().json();
    assert_eq!(plan["slots"]["dropped"], slots);
    assert_eq!(plan["slots"]["created"][0]["count"], 2);
    assert_eq!(plan["slots"]["unblocked"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn deployments_are_refused_where_nothing_else_is_said() {
    let server = Server::start("").await;
    let off = "403 deployments-off: this server does not accept deployments, because anyone who can reach it could run commands";
    for uri in [P.to_owned(), format!("{P}?plan=true")] {
        assert_eq!(told(&put(&server, &uri, &json!({ "workflow": "" })).await), off);
        assert_eq!(told(&server.ask(Method::DELETE, &uri, "").await), off);
    }
    assert!(!server.folder.path().join("workflows/p.js").exists());
    server.get("/api/v1/projects").await.ok();
}

/// What a program defines beside the files.
fn of_program(name: &str) -> Arc<Workflow> {
    let keys = Keys::Requests(Box::new(Program { name: name.to_owned(), kind: None }));
    Arc::new(Workflow::keyed(WorkflowId::new(name).unwrap(), keys, Job::new("command", Map::new())))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_a_programs_is_no_projects() {
    let server = server(&workflow("own", "")).await;
    server.node.handle().define(vec![of_program("coded")], BTreeMap::new()).unwrap();
    server.node.handle().settled().await.unwrap();
    let bundle = json!({ "workflow": workflow("coded", "") });
    let why = "409 name-taken: coded can't be defined by the project: a workflow of that name is ";
    for uri in [P.to_owned(), format!("{P}?plan=true")] {
        let refused = put(&server, &uri, &bundle).await;
        assert!(told(&refused).starts_with(why), "{refused:?}");
        assert_eq!(refused.json()["hint"], "give it another name, or take the other one away");
    }
    assert!(!server.folder.path().join("workflows/p.js").exists());
    assert_eq!(server.get("/api/v1/problems").await.ok().json()["items"], json!([]));

    // A file that somebody put there without asking.
    server.write("p.js", &workflow("coded", ""));
    server.post("/clear-cache").await.ok();
    let listed = server.get("/api/v1/problems").await.ok().json();
    let items = listed["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["code"], &items[0]["workflow"]), (1, &json!("name-taken"), &json!("coded")));
    assert_eq!((&items[0]["file"], &items[0]["line"]), (&json!("p.js"), &json!(1)));
    let said = items[0]["message"].as_str().unwrap();
    assert!(said.starts_with("coded is left out: a workflow of that name is "), "{said}");
    let shown = page(&server, "/ui/problems").await;
    assert_says(&shown, &["error p.js:1:", "coded · name-taken", said, "give it another name"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_projects_are_told_what_was_expected_and_change_nothing() {
    let server = server(&workflow("taken", "")).await;
    let taken = workflow("taken", "");
    let cases = [
        ("..%2Fx", json!({ "workflow": "" }), "400 bad-path: failed to name a project \"../x\": "),
        ("p", json!({}), "400 bad-body: expected `workflow`, the text of a script, or `files`, the texts of several"),
        ("p", json!({ "workflow": "", "files": {} }), "400 bad-body: expected either `files`, or `workflow` and "),
        (
            "p",
            json!({ "files": { "../x.js": "" } }),
            "400 bad-body: failed to read `files`: the file \"../x.js\" is none",
        ),
        (
            "p",
            json!({ "files": { "defaults/x.js": "" } }),
            "400 bad-body: failed to read `files`: it has no script in ",
        ),
        ("p", json!({ "workflow": "", "hdfs": { "../x": "" } }), "400 bad-body: the file \"../x\" of `hdfs` has no"),
        ("p", json!({ "workflow": "", "hdfs": { "x": "?" } }), "400 bad-body: the file \"x\" of `hdfs` is not base64"),
        ("p", json!({ "workflow": "", "hdfsRoot": "x" }), "400 bad-query: failed to use \"x\" as the root in HDFS: "),
        ("p", json!({ "workflow": "(" }), "400 bad-scripts: failed to deploy p: p.js would break: p.js:1:"),
        (
            "z",
            json!({ "workflow": taken }),
            "400 bad-scripts: failed to deploy z: z.js would break: z.js:1:1: Workflow",
        ),
    ];
    for (name, body, expected) in cases {
        let reply = put(&server, &format!("/api/v1/projects/{name}"), &body).await;
        assert!(told(&reply).starts_with(expected), "{reply:?}");
    }
    let names = std::fs::read_dir(server.folder.path().join("workflows")).unwrap().count();
    assert_eq!(names, 1);
}
