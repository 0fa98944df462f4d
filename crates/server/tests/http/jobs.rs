//! Jobs over HTTP: submitting them, naming them, what they wait for, and why.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::jobs::{DateForm, Group, JobKeys, JobTemplate, Kind, Member, ValueFilter};
use kelos_model::workflow::{Job, Keys};
use kelos_model::{SlotRef, Workflow, WorkflowId};
use serde_json::{Value, json};

use crate::support::{NOW, Server, at};

fn id(name: &str) -> WorkflowId {
    WorkflowId::new(name).unwrap()
}

/// A workflow with jobs `{date}_{client}`, where the client is a number.
pub(crate) fn keyed(name: &str, parents: &[&str]) -> Arc<Workflow> {
    let identifiers = BTreeMap::from([
        ("date".into(), Kind::Date { form: DateForm::Compact }),
        ("client".into(), Kind::Integer { min: None, max: None }),
    ]);
    let members = vec![Member { workflows: parents.iter().map(|parent| id(parent)).collect(), ..Member::default() }];
    let depends_on = if parents.is_empty() {
        Vec::new()
    } else {
        vec![Group { name: "default".to_owned(), members, functions: None }]
    };
    let template = JobTemplate::new("{date}_{client}").unwrap();
    let keys = JobKeys { identifiers, depends_on, ..JobKeys::new(template) };
    let job = Job::new("oozie", serde_json::Map::new());
    Arc::new(Workflow { concurrency: Some(9), ..Workflow::keyed(id(name), Keys::Jobs(Box::new(keys)), job) })
}

pub(crate) fn job(name: &str, text: &str) -> SlotRef {
    SlotRef::job(id(name), text.into())
}

/// `a` and `b`, then `c` for both, then `d`.
pub(crate) async fn diamond() -> Server {
    let server = Server::start("").await;
    let all = vec![keyed("a", &[]), keyed("b", &[]), keyed("c", &["a", "b"]), keyed("d", &["c"])];
    server.node.handle().define(all, BTreeMap::new()).unwrap();
    step(&server).await;
    server
}

pub(crate) async fn step(server: &Server) {
    server.node.handle().step(at(NOW), None).await.unwrap();
}

async fn submit(server: &Server, body: Value) -> Value {
    server.post_json("/api/v1/jobs", &body.to_string()).await.ok().json()
}

fn one(name: &str, text: &str) -> Value {
    json!([{ "workflow": name, "job": text }])
}

async fn state(server: &Server, name: &str) -> Value {
    let slot = server.get(&format!("/api/v1/workflows/{name}/slots/20140601_7")).await.json();
    slot["state"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_counted_for_autoscalers() {
    let server = diamond().await;
    submit(&server, json!({ "jobs": one("d", "20140601_7") })).await;
    step(&server).await;
    let queue = |name: &str| {
        let path = format!("/api/v1/workflows/{name}/queue");
        let server = &server;
        async move { server.get(&path).await.ok().json() }
    };
    let mut expected = json!({ "workflow": "a", "queued": 0, "running": 1, "waiting": 0, "backoff": 0, "failed": 0,
        "oldestSince": null, "oldestSeconds": null, "paused": false });
    assert_eq!(queue("a").await, expected);
    server.end(&job("a", "20140601_7"), 1, false).await;
    step(&server).await;
    (expected["running"], expected["failed"]) = (json!(0), json!(1));
    assert_eq!(queue("a").await, expected);
    assert_eq!(queue("d").await["waiting"], 1);
    let jobs: Vec<Value> = (1..=12).map(|n| json!({ "workflow": "b", "job": format!("20140602_{n}") })).collect();
    submit(&server, json!({ "jobs": jobs })).await;
    step(&server).await;
    let crowded = queue("b").await;
    assert_eq!([&crowded["queued"], &crowded["running"]], [&json!(4), &json!(9)]);
    assert!(crowded["oldestSince"].is_string() && crowded["oldestSeconds"].is_u64(), "{crowded}");
    let unknown = server.get("/api/v1/workflows/nix/queue").await;
    assert_eq!(unknown.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_submitted_once_and_its_ancestors_run_first() {
    let server = diamond().await;
    let opened = submit(&server, json!({ "jobs": one("d", "20140601_007"), "priority": 1, "reason": "try" })).await;
    assert_eq!(opened, json!({ "items": [{ "workflow": "d", "job": "20140601_7", "result": "opened" }] }));
    let again = submit(&server, json!({ "jobs": one("d", "20140601_7") })).await;
    assert_eq!(
        again["items"][0],
        json!({ "workflow": "d", "job": "20140601_7", "result": "existed", "state": "waiting" })
    );
    step(&server).await;
    assert_eq!([state(&server, "a").await, state(&server, "b").await], ["running", "running"]);
    for name in ["a", "b", "c", "d"] {
        server.end(&job(name, "20140601_7"), 1, true).await;
        step(&server).await;
    }
    assert_eq!(state(&server, "d").await, "succeeded");
    let readded = submit(&server, json!({ "jobs": one("c", "20140601_7"), "readd": true })).await;
    assert_eq!(
        readded["items"][0],
        json!({ "workflow": "c", "job": "20140601_7", "result": "reopened", "descendants": 1 })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_run_is_told_and_nothing_is_done() {
    let server = diamond().await;
    let would = submit(&server, json!({ "jobs": one("c", "20140601_7"), "dryRun": true })).await;
    let told: Vec<String> = would["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{}@{} {} {}", one["workflow"], one["job"], one["role"], one["fate"]).replace('"', ""))
        .collect();
    let expected = [
        "a@20140601_7 ancestor runs",
        "b@20140601_7 ancestor runs",
        "c@20140601_7 asked runs",
        "d@20140601_7 descendant runs",
    ];
    assert_eq!(told, expected);
    assert_eq!((&would["dryRun"], &would["counts"]), (&json!(true), &json!({ "runs": 4 })));
    assert_eq!(server.get("/api/v1/jobs").await.ok().json()["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_submits_are_told_what_was_expected_and_do_nothing() {
    let server = diamond().await;
    let mut told = Vec::new();
    for body in [
        json!({ "jobs": [] }),
        json!({ "jobs": one("x", "20140601_7") }),
        json!({ "jobs": [{ "workflow": "a", "job": "20140601_7" }, { "workflow": "a", "job": "20140601_x" }] }),
        json!({ "jobs": one("a", "20140641_7") }),
        json!({ "jobs": one("a", "20140601") }),
        json!({ "jobs": one("a", "") }),
        json!({ "jobs": one("a", "20140601_7"), "priority": 0 }),
        json!({ "jobs": one("a", "20140601_7"), "priority": 101 }),
        json!({ "jobs": one("a", "20140601_7"), "redo": true }),
    ] {
        let problem = server.post_json("/api/v1/jobs", &body.to_string()).await.json();
        let kind = problem["type"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
        told.push(format!("{} {kind}: {}", problem["status"], problem["detail"].as_str().unwrap()));
    }
    let bad = server.get("/api/v1/workflows/a/slots/~nonsense/why").await.json();
    told.push(bad["detail"].as_str().unwrap().to_owned());
    insta::assert_snapshot!(told.join("\n"));
    assert_eq!(server.get("/api/v1/jobs").await.ok().json()["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_about_a_slot_is_there_for_a_job() {
    let server = diamond().await;
    submit(&server, json!({ "jobs": one("c", "20140601_7") })).await;
    step(&server).await;
    server.end(&job("a", "20140601_7"), 1, false).await;
    step(&server).await;
    for path in ["20140601_7", "~20140601_7", "20140601_007"] {
        let slot = server.get(&format!("/api/v1/workflows/a/slots/{path}")).await.ok().json();
        assert_eq!((&slot["job"], &slot["time"]), (&json!("20140601_7"), &Value::Null), "{path}");
    }
    let slot = "/api/v1/workflows/a/slots/20140601_7";
    for what in ["why", "history", "runs", "critical-path", "upstream", "runs/1"] {
        let reply = server.get(&format!("{slot}/{what}")).await.ok();
        assert!(reply.text.contains("\"job\":\"20140601_7\"") && !reply.text.contains("1970"), "{what}: {reply:?}");
    }
    let listed = server.get("/api/v1/jobs?workflow=c").await.ok().json();
    assert_eq!(listed["items"][0]["job"], "20140601_7");
    let parents = server.get("/api/v1/jobs/c/20140601_7/parents").await.ok().json();
    let expected = json!({ "workflow": "c", "job": "20140601_7", "anyOf": [{
        "group": "default", "total": 2, "succeeded": 0, "endedWithoutSuccess": 0,
        "jobs": [
            { "workflow": "a", "job": "20140601_7", "state": "running" },
            { "workflow": "b", "job": "20140601_7", "state": "running" },
        ],
    }]});
    let failed = parents["anyOf"][0]["jobs"][0]["state"].clone();
    let mut expected = expected;
    expected["anyOf"][0]["jobs"][0]["state"] = failed.clone();
    expected["anyOf"][0]["endedWithoutSuccess"] = json!(u8::from(failed == "failed"));
    assert_eq!(parents, expected);
    let children = server.get("/api/v1/jobs/a/20140601_7/children").await.ok().json();
    let child = json!({ "workflow": "c", "job": "20140601_7", "state": "waiting", "group": "default" });
    assert_eq!((&children["total"], &children["children"]), (&json!(1), &json!([child])));
    for (verb, body, expected) in [
        ("kill", "", "killed"),
        ("rerun", "", "waiting"),
        ("skip", "", "skipped"),
        ("mark", r#"{"state":"succeeded"}"#, "succeeded"),
    ] {
        let after = server.post_json(&format!("/api/v1/workflows/c/slots/20140601_7/{verb}"), body).await.ok().json();
        assert_eq!(after["state"], expected, "{verb}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_job_that_no_group_is_about_runs_and_everything_says_so() {
    let server = Server::start("").await;
    let child = keyed("c", &["a"]);
    let mut keys = child.keys.jobs().unwrap().clone();
    keys.domains.insert("client".into(), vec!["1".into(), "2".into(), "3".into()]);
    let child = Arc::new(Workflow { keys: Keys::Jobs(Box::new(keys)), ..(*child).clone() });
    server.node.handle().define(vec![keyed("a", &[]), child], BTreeMap::new()).unwrap();
    step(&server).await;
    let said = json!("no group of c is about it: client 9 is none of 1, 2, 3");
    let would = submit(&server, json!({ "jobs": one("c", "20140601_9"), "dryRun": true })).await;
    assert_eq!((&would["items"][0]["noGroup"], &would["counts"]), (&said, &json!({ "runs": 1 })));
    let opened = submit(&server, json!({ "jobs": one("c", "20140601_9") })).await;
    assert_eq!((&opened["items"][0]["noGroup"], &opened["items"][0]["result"]), (&said, &json!("opened")));
    let parents = server.get("/api/v1/jobs/c/20140601_9/parents").await.ok().json();
    assert_eq!((&parents["noGroup"], &parents["anyOf"]), (&said, &json!([])));
    let why = server.get("/api/v1/workflows/c/slots/20140601_9/why").await.ok().json();
    assert_eq!(why["noGroup"], said);
    let page = server.get("/ui/workflows/c/slots/~20140601_9").await.ok().text;
    assert!(page.contains("It waits for no job: no group of c is about it: client 9 is none of 1, 2, 3."), "{page}");
    let meant = submit(&server, json!({ "jobs": one("c", "20140601_3") })).await;
    assert_eq!(meant["items"][0].get("noGroup"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_parents_can_not_all_be_named_is_refused_and_everything_says_why() {
    let server = Server::start("").await;
    let keyed_by = |name: &str, template: &str, parents: &[&str]| {
        let one = keyed(name, parents);
        let mut keys = JobKeys { template: JobTemplate::new(template).unwrap(), ..one.keys.jobs().unwrap().clone() };
        keys.identifiers.clear();
        if name == "a" {
            keys.domains.insert("y".into(), vec!["1".into(), "2".into()]);
        }
        for member in keys.depends_on.iter_mut().flat_map(|group| &mut group.members) {
            member.values.insert("y".into(), ValueFilter::All);
        }
        Arc::new(Workflow { keys: Keys::Jobs(Box::new(keys)), ..(*one).clone() })
    };
    let (a, b) = (keyed_by("a", "{x}_{y}", &[]), keyed_by("b", "{x}", &["a"]));
    server.node.handle().define(vec![a, b], BTreeMap::new()).unwrap();
    step(&server).await;
    let why = "x \"p_q\" can't be told from what follows it in {x}_{y}";
    let detail = format!("\"p_q\" is no job of b: it waits for 2 jobs of a that can't be named: {why}");
    for body in [json!({ "jobs": one("b", "p_q") }), json!({ "jobs": one("b", "p_q"), "dryRun": true })] {
        let refused = server.post_json("/api/v1/jobs", &body.to_string()).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["detail"]), (400, &json!(detail)));
    }
    let parents = server.get("/api/v1/jobs/b/p_q/parents").await.ok().json();
    assert_eq!(parents["anyOf"][0]["total"], 2);
    assert_eq!(
        parents["anyOf"][0]["unwritable"][0],
        json!({ "workflow": "a", "group": "default", "count": 2, "code": "ambiguous", "why": why })
    );
    let never = server.get("/api/v1/workflows/b/slots/p_q/why").await.ok().json();
    let headline = format!("it was never opened, and can't be: it waits for 2 jobs of a that can't be named: {why}");
    assert_eq!(never["headline"], headline);
    // Where somebody says that it is done there is nothing to wait for.
    server.post_json("/api/v1/workflows/b/slots/p_q/mark", r#"{"state": "succeeded"}"#).await.ok();
    let fine = submit(&server, json!({ "jobs": one("b", "p") })).await;
    assert_eq!(fine["items"][0]["result"], "opened");
}

/// A workflow whose job ids are made like this, with no identifiers of its own but those of the template.
fn named_by(name: &str, template: &str, parents: &[&str]) -> Arc<Workflow> {
    let one = keyed(name, parents);
    let mut keys = JobKeys { template: JobTemplate::new(template).unwrap(), ..one.keys.jobs().unwrap().clone() };
    keys.identifiers.clear();
    Arc::new(Workflow { keys: Keys::Jobs(Box::new(keys)), ..(*one).clone() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_opens_what_waits_for_jobs_without_names_and_everything_says_why() {
    let server = Server::start("").await;
    let (a, c) = (named_by("a", "{x}_{y}", &[]), named_by("c", "{x}", &[]));
    let mut keys = a.keys.jobs().unwrap().clone();
    keys.domains.insert("y".into(), vec!["1".into()]);
    let a = Arc::new(Workflow { keys: Keys::Jobs(Box::new(keys)), ..(*a).clone() });
    let mut b = named_by("b", "{x}", &["a", "c"]);
    if let Keys::Jobs(keys) = &mut Arc::make_mut(&mut b).keys {
        let mut of_a = keys.depends_on[0].members[0].clone();
        of_a.workflows.retain(|id| id.as_str() == "a");
        of_a.values.insert("y".into(), ValueFilter::All);
        keys.depends_on[0].members[0].workflows.retain(|id| id.as_str() == "c");
        keys.depends_on[0].members.push(of_a);
    }
    server.node.handle().define(vec![a, b, c], BTreeMap::new()).unwrap();
    step(&server).await;
    let would = submit(&server, json!({ "jobs": one("c", "p_q"), "dryRun": true })).await;
    let told = "it waits for a job of a that can't be named: x \"p_q\" can't be told from what follows it in {x}_{y}";
    let of_b = would["items"].as_array().unwrap().iter().find(|one| one["workflow"] == "b");
    assert_eq!(of_b.map(|one| (&one["fate"], &one["noWay"])), Some((&json!("blocked"), &json!(told))), "{would}");
    submit(&server, json!({ "jobs": one("c", "p_q") })).await;
    step(&server).await;
    server.end(&job("c", "p_q"), 1, true).await;
    step(&server).await;
    let blocked = server.get("/api/v1/workflows/b/slots/p_q/why").await.ok().json();
    assert_eq!(
        (&blocked["state"], &blocked["blockers"]),
        (&json!("waiting"), &json!([format!("blocked: {}", &told[3..])]))
    );
    let page = server.get("/ui/workflows/b/slots/~p_q").await.ok().text;
    assert!(page.contains("that can't be named"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_without_a_name_is_told_of_where_its_parent_is() {
    let server = Server::start("").await;
    let (a, b) = (named_by("a", "{x}", &[]), named_by("b", "{x}_{z}", &["a"]));
    let mut keys = b.keys.jobs().unwrap().clone();
    keys.domains.insert("z".into(), vec!["1".into()]);
    let b = Arc::new(Workflow { keys: Keys::Jobs(Box::new(keys)), ..(*b).clone() });
    server.node.handle().define(vec![a, b], BTreeMap::new()).unwrap();
    step(&server).await;
    let why = "a job of b that can't be named: x \"p_q\" can't be told from what follows it in {x}_{z}";
    let opened = submit(&server, json!({ "jobs": one("a", "p_q") })).await;
    assert_eq!(opened["items"][0]["namelessChildren"], why);
    step(&server).await;
    server.end(&job("a", "p_q"), 1, true).await;
    let told = server.get("/api/v1/workflows/a/slots/p_q/why").await.ok().json();
    assert_eq!((&told["state"], &told["namelessChildren"]), (&json!("succeeded"), &json!(why)));
    let page = server.get("/ui/workflows/a/slots/~p_q").await.ok().text;
    assert!(page.contains("It does not open all of its children: a job of b that can't be named"), "{page}");
    let fine = submit(&server, json!({ "jobs": one("a", "p") })).await;
    assert_eq!(fine["items"][0].get("namelessChildren"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_an_app_that_nobody_knows_is_no_bad_time() {
    let server = diamond().await;
    for what in ["", "/why", "/runs/1"] {
        let reply = server.get(&format!("/api/v1/workflows/nobody/slots/20140601_7{what}")).await;
        assert_eq!(reply.status, 404, "{what}");
        assert_eq!(reply.json()["detail"], "no workflow is named \"nobody\"", "{what}");
    }
}

async fn why(server: &Server, name: &str) -> Value {
    server.get(&format!("/api/v1/workflows/{name}/slots/20140601_7/why")).await.ok().json()
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_job_waits_names_who_stands_in_the_way_however_far_up() {
    let server = diamond().await;
    assert_eq!(why(&server, "d").await["headline"], "it was never opened: submit it, or a job that waits for it");
    submit(&server, json!({ "jobs": one("d", "20140601_7") })).await;
    step(&server).await;
    let waits = why(&server, "c").await;
    assert_eq!(
        waits["headline"],
        "waiting since 2015-09-13T15:01Z, when it was opened for d@20140601_7: waits for 2 of 2 jobs: \
         a@20140601_7 has run for 0.0 s (run 1), b@20140601_7 has run for 0.0 s (run 1)"
    );
    server.end(&job("a", "20140601_7"), 1, false).await;
    step(&server).await;
    let failed = "a@20140601_7 failed 0.0 s ago (run 1: exited with status 3)";
    assert_eq!(
        why(&server, "c").await["blockers"],
        json!([format!("blocked: waits for 2 of 2 jobs: {failed}, b@20140601_7 has run for 0.0 s (run 1)")])
    );
    assert_eq!(why(&server, "d").await["blockers"], json!(["waits for 1 job: c@20140601_7 has waited for 0.0 s"]));
    assert_eq!(
        why(&server, "d").await["roots"][0]["text"],
        "waits for c@20140601_7, which waits for a@20140601_7, which failed at 2015-09-13T15:01Z (run 1: exited with status 3)"
    );
    let then = server.get(&format!("/api/v1/workflows/c/slots/20140601_7/why?at={NOW}")).await.ok().json();
    assert_eq!(then["blockers"], json!(["a@20140601_7 failed", "b@20140601_7 has not succeeded yet"]));
    let upstream = server.get("/api/v1/workflows/d/slots/20140601_7/upstream").await.ok().json();
    let steps: Vec<&Value> = upstream["steps"].as_array().unwrap().iter().map(|step| &step["workflow"]).collect();
    assert_eq!(steps, ["d", "c", "a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_job_waits_names_a_paused_app_however_far_up() {
    let server = diamond().await;
    server.post_json("/api/v1/workflows/a/pause", "").await.ok();
    let would = submit(&server, json!({ "jobs": one("d", "20140601_7"), "dryRun": true })).await;
    assert_eq!(would["counts"], json!({ "paused": 1, "runs": 1, "blocked": 2 }));
    submit(&server, json!({ "jobs": one("d", "20140601_7") })).await;
    step(&server).await;
    server.end(&job("b", "20140601_7"), 1, true).await;
    step(&server).await;
    let paused = "a@20140601_7 has waited for 0.0 s (its workflow is paused)";
    assert_eq!(why(&server, "c").await["blockers"], json!([format!("waits for 1 of 2 jobs: {paused}")]));
    assert_eq!(why(&server, "d").await["blockers"], json!(["waits for 1 job: c@20140601_7 has waited for 0.0 s"]));
    assert_eq!(
        why(&server, "d").await["roots"][0]["text"],
        "waits for c@20140601_7, which waits for a@20140601_7, which waits, and its workflow is paused"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_jobs_by_their_identifiers() {
    let server = diamond().await;
    let empty = server.get("/ui/workflows/c").await.ok().text;
    assert!(empty.contains("No job was ever opened") && empty.contains("{date}_{client}"), "{empty}");
    assert!(empty.contains("a day, as 20140601") && empty.contains("all of group <b>default</b>"), "{empty}");
    let form = "job=20140601_007&priority=5&reason=by+hand";
    let request = axum::http::Request::post("/ui/workflows/c/submit")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form.into());
    let sent = server.send(request.unwrap()).await;
    assert_eq!((sent.status.as_u16(), sent.header("location")), (303, "/ui/workflows/c/slots/~20140601_7"));
    submit(
        &server,
        json!({ "jobs": [{ "workflow": "c", "job": "20140602_8" }, { "workflow": "c", "job": "20140602_10" }] }),
    )
    .await;
    step(&server).await;
    let matrix = server.get("/ui/workflows/c").await.ok().text;
    let place = |text: &str| matrix.find(text).unwrap_or_else(|| panic!("{text} is not in {matrix}"));
    assert!(place("<th scope=\"col\">8<") < place("<th scope=\"col\">10<"), "numbers go by size");
    assert!(place("<th scope=\"row\">20140602<") < place("<th scope=\"row\">20140601<"), "the newest day comes first");
    assert!(matrix.contains("href=\"/ui/workflows/c/slots/~20140601_7\" title=\"20140601_7: waiting\""), "{matrix}");
    let some = server.get("/ui/workflows/c?rows=client&columns=-&is.date=20140602").await.ok().text;
    assert!(some.contains("<th scope=\"row\">10<") && !some.contains("<th scope=\"row\">7<"), "{some}");
    let none = server.get("/ui/workflows/c?state=failed").await.ok().text;
    assert!(none.contains("No job is like that"), "{none}");
    for (query, said) in
        [("rows=x", "There is no identifier"), ("row=x", "is no number"), ("what=x", "There is no parameter")]
    {
        let bad = server.get(&format!("/ui/workflows/c?{query}")).await;
        assert!(bad.status == 400 && bad.text.contains(said), "{query}: {bad:?}");
    }
    let page = server.get("/ui/workflows/c/slots/~20140601_7").await.ok().text;
    assert!(page.contains("c@20140601_7") && page.contains("/ui/workflows/a/slots/~20140601_7"), "{page}");
    assert!(page.contains("/ui/workflows/d/slots/~20140601_7") && !page.contains("1970"), "{page}");
    let board = server.get("/ui").await.ok().text;
    assert!(board.contains("All fine") && server.get("/ui/board/jobs").await.ok().text.contains("4 apps"), "{board}");
    assert!(board.contains("Workflows with job ids") && !board.contains("data-w=\"c\""), "{board}");
    for page in ["timeline?slot=a@20140601_7", "graph?slot=c@~20140601_7", "stuck", "capacity", "activity", "graph"] {
        let page = server.get(&format!("/ui/{page}")).await.ok().text;
        assert!(!page.contains("1970"), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_critical_path_goes_through_the_parent_that_came_last() {
    let server = diamond().await;
    submit(&server, json!({ "jobs": one("d", "20140601_7") })).await;
    step(&server).await;
    let path = async || {
        let path = server.get("/api/v1/workflows/d/slots/20140601_7/critical-path").await.ok().json();
        let links = path["links"].as_array().unwrap().iter();
        links.map(|link| link["workflow"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    server.end(&job("a", "20140601_7"), 1, true).await;
    assert_eq!(path().await, "b c d", "b is what it waits for");
    server.end(&job("b", "20140601_7"), 1, true).await;
    step(&server).await;
    let why = why(&server, "d").await;
    assert_eq!(why["trigger"]["nested"][0]["text"], "0 of 1 have succeeded");
    let graph = server.get("/api/v1/graph").await.ok().json();
    assert_eq!(graph["edges"][0], json!({ "from": "a", "to": "c", "kind": "jobs", "groups": ["default"] }));
    assert_eq!(graph["nodes"][0]["slots"], json!({ "succeeded": 1 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_drawn_with_its_ancestors_and_descendants() {
    let server = diamond().await;
    submit(&server, json!({ "jobs": one("c", "20140601_7") })).await;
    step(&server).await;
    server.end(&job("a", "20140601_7"), 1, false).await;
    step(&server).await;
    let page = server.get("/ui/graph?slot=c@~20140601_7").await.ok().text;
    assert!(page.contains("2 ancestors and 1 descendant."), "{page}");
    for told in ["a@20140601_7: failed", "b@20140601_7: running", "c@20140601_7: waiting", "d@20140601_7: never opened"]
    {
        assert!(page.contains(told), "{told}: {page}");
    }
    assert!(page.contains("c@20140601_7 waits for a@20140601_7 (default)"), "{page}");
    assert!(page.contains("Blocked by") && page.contains("exited with status 3"), "{page}");
    let near = server.get("/ui/graph?slot=c@20140601_7&up=0").await.ok().text;
    assert!(near.contains("0 ancestors and 1 descendant.") && !near.contains("a@20140601_7: failed"), "{near}");
    let whole = server.get("/ui/graph").await.ok().text;
    assert!(whole.contains("c waits for a: its jobs (group default)"), "{whole}");
}
