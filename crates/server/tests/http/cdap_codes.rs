//! Status codes of the dialect of CDAP, and what lists have.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};

use crate::cdap_support::{BASE, Cdap, all, any, body, ended, partition, time};

#[tokio::test(flavor = "multi_thread")]
async fn cdap_25_adding_checks_one_thing_after_the_other() {
    let server = Cdap::start().await;
    let path = "apps/App/schedules/s";
    let not_json = server.ask(Method::PUT, path, "{").await;
    assert!(not_json.status == 400 && not_json.text.starts_with("the body is not JSON: "), "{not_json:?}");
    assert_eq!(server.put(path, &json!([])).await.told(), (400, "the body is [], expected a JSON object"));
    assert_eq!(server.ask(Method::PUT, path, "").await.status, 400);
    let of = |kind: &str, name: &str| json!({ "program": { "programName": name, "programType": kind }, "trigger": time("0 4 * * *") });
    let mut wrong = of("WORKFLOW", "Missing");
    wrong["name"] = json!("t");
    assert_eq!(server.put(path, &wrong).await.status, 400, "the name comes before the program");
    let missing = server.put(path, &of("WORKFLOW", "Missing")).await;
    let told = "no workflow \"Missing\" in application \"App\" (version -SNAPSHOT) of namespace \"default\"";
    assert_eq!(missing.told(), (404, told));
    assert_eq!(server.put(path, &of("MAPREDUCE", "Missing")).await.status, 404);
    let mapper = server.put(path, &of("MAPREDUCE", "Mr")).await;
    assert_eq!(mapper.told(), (400, "program.programType is MAPREDUCE, expected WORKFLOW"));
    assert_eq!(server.put(path, &of("WORKFLOW", "Mr")).await.status, 404);
    assert_eq!(server.put("apps/Nope/schedules/s", &of("WORKFLOW", "Wf")).await.status, 404);
    assert_eq!(server.put("/v3/namespaces/none/apps/App/schedules/s", &of("WORKFLOW", "Wf")).await.status, 404);
    assert_eq!(server.put("apps/App/versions/v9/schedules/s", &of("WORKFLOW", "Wf")).await.status, 404);
    assert_eq!(server.put("apps/A:B/schedules/s", &of("WORKFLOW", "Wf")).await.status, 404);
    let added = server.put(path, &of("WORKFLOW", "Wf")).await;
    assert_eq!(added.told(), (200, ""));
    let told = "\"s\" exists already in application \"App\" (version -SNAPSHOT) of namespace \"default\"";
    assert_eq!(server.put(path, &of("WORKFLOW", "Wf")).await.told(), (409, told));
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_25_what_is_not_there_is_not_found() {
    let server = Cdap::start().await;
    let paths = ["apps/App/schedules/s", "apps/Nope/schedules/s", "apps/App/versions/v2/schedules/s"];
    for path in paths {
        assert_eq!(server.get(path).await.status, 404, "{path}");
        assert_eq!(server.get(&format!("{path}/status")).await.status, 404, "{path}");
        assert_eq!(server.delete(path).await.status, 404, "{path}");
        for action in ["update", "enable", "disable", "resume", "suspend"] {
            assert_eq!(server.post(&format!("{path}/{action}"), &json!({})).await.status, 404, "{path} {action}");
        }
    }
    let told = "no schedule \"s\" in application \"App\" (version -SNAPSHOT) of namespace \"default\"";
    assert_eq!(server.get(paths[0]).await.told(), (404, told));
    // A program is no schedule.
    assert_eq!(server.get("apps/App/schedules/Wf").await.status, 404);
    assert_eq!(server.delete("apps/App/schedules/Wf").await.status, 404);
    assert_eq!(server.get("apps/Nope/schedules").await.status, 404);
    assert_eq!(server.get("apps/App/workflows/Nope/schedules").await.status, 404);
    assert_eq!(server.get("apps/App/workflows/Nope/nextruntime").await.status, 404);
    assert_eq!(server.get("apps/App/poems/Wf/schedules").await.status, 400);
    assert_eq!(server.get("apps/App/spark/Loader/nextruntime").await.status, 400);
    assert_eq!(server.get("nothing").await.status, 501);
    assert_eq!(server.ask(Method::PATCH, "apps/App/schedules/s", "").await.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_25_actions_have_two_names_each_and_conflict_with_themselves() {
    let server = Cdap::start().await;
    server.put("apps/App/schedules/s", &body(time("0 4 * * *"))).await.ok();
    let act = async |action: &str| server.post(&format!("apps/App/schedules/s/{action}"), &Value::Null).await;
    for (on, off) in [("enable", "disable"), ("resume", "suspend")] {
        assert_eq!(act(on).await.told(), (200, "OK"));
        assert_eq!(act("enable").await.told(), (409, "App.s is enabled already"));
        assert_eq!(act("resume").await.status, 409);
        assert_eq!(act(off).await.told(), (200, "OK"));
        assert_eq!(act("disable").await.told(), (409, "App.s is disabled already"));
        assert_eq!(act("suspend").await.status, 409);
    }
    let told = "\"Enable\" can't be done to a schedule, expected update, enable, resume, disable or suspend";
    assert_eq!(act("Enable").await.told(), (400, told));
    assert_eq!(act("status").await.status, 400);
    assert_eq!(server.get("apps/App/schedules/s/poem").await.status, 501);
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_25_an_update_replaces_what_it_names_and_keeps_the_rest() {
    let server = Cdap::start().await;
    let mut sent = body(time("0 4 * * *"));
    sent["description"] = json!("old");
    sent["properties"] = json!({ "a": "1", "b": "2" });
    sent["constraints"] = json!([{ "type": "CONCURRENCY", "maxConcurrency": 1, "waitUntilMet": true }]);
    sent["timeoutMillis"] = json!(5000);
    server.put("apps/App/schedules/s", &sent).await.ok();
    let update = async |fields: Value| server.post("apps/App/schedules/s/update", &fields).await;
    let shown = async || server.get("apps/App/schedules/s").await.ok().json();
    let before = shown().await;
    // No name, and nulls: all stays, but for when it was changed.
    let nulls = json!({ "name": null, "description": null, "properties": null, "constraints": null, "trigger": null });
    assert_eq!(update(nulls).await.told(), (200, ""));
    assert_eq!(shown().await, before);
    update(json!({ "properties": { "c": "3" } })).await.ok();
    assert_eq!(shown().await["properties"], json!({ "c": "3" }));
    update(json!({ "properties": {}, "constraints": [], "description": "" })).await.ok();
    let wiped = shown().await;
    assert_eq!(
        (&wiped["properties"], &wiped["constraints"], &wiped["description"]),
        (&json!({}), &json!([]), &json!(""))
    );
    assert_eq!((&wiped["trigger"], &wiped["timeoutMillis"]), (&time("0 4 * * *"), &json!(5000)));
    // The kind of trigger may change.
    update(json!({ "name": "s", "trigger": partition("ds", 2) })).await.ok();
    assert_eq!(shown().await["trigger"], partition("ds", 2));
    update(json!({ "program": { "programName": "Wf", "programType": "WORKFLOW" } })).await.ok();
    let other = update(json!({ "program": { "programName": "P1", "programType": "WORKFLOW" } })).await;
    assert_eq!(other.told(), (400, "the program of a schedule can't be changed: expected WORKFLOW \"Wf\", or none"));
    assert_eq!(update(json!({ "name": "other" })).await.status, 400);
    assert_eq!(update(json!({ "trigger": partition("ds", 0) })).await.status, 400);
    assert_eq!(update(json!([])).await.status, 400);
    assert_eq!(shown().await["trigger"], partition("ds", 2), "what is refused changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_25_versions_are_independent() {
    let server = Cdap::start().await;
    let (plain, second) = ("apps/App/schedules/s", "apps/App/versions/v2/schedules/s");
    server.put(plain, &body(time("0 4 * * *"))).await.ok();
    server.put(second, &body(time("0 5 * * *"))).await.ok();
    server.post(&format!("{second}/enable"), &Value::Null).await.ok();
    server.post(&format!("{second}/update"), &json!({ "description": "second" })).await.ok();
    let (first, shown) = (server.get(plain).await.json(), server.get(second).await.json());
    assert_eq!((&first["description"], &first["status"]), (&json!(""), &json!("SUSPENDED")));
    assert_eq!((&shown["description"], &shown["status"]), (&json!("second"), &json!("SCHEDULED")));
    assert_eq!(shown["applicationVersion"], "v2");
    // The usual version may be named.
    assert_eq!(server.get("apps/App/versions/-SNAPSHOT/schedules/s").await.ok().json(), first);
    server.delete(plain).await.ok();
    assert_eq!((server.get(plain).await.status.as_u16(), server.get(second).await.status.as_u16()), (404, 200));
    assert_eq!(server.names("apps/App/versions/v2/schedules").await, ["s"]);
    assert_eq!(server.names("apps/App/schedules").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_15_lists_are_by_application_and_by_program_ascending_by_name() {
    let server = Cdap::start().await;
    for (name, trigger) in [
        ("d", time("0 4 * * *")),
        ("b", partition("ds", 1)),
        ("c", ended("P1", &["FAILED"])),
        ("a", all(&[time("0 4 * * *"), partition("ds", 1)])),
        ("e", any(&[time("0 4 * * *")])),
    ] {
        server.put(&format!("apps/App/schedules/{name}"), &body(trigger)).await.ok();
    }
    let mut of_p1 = body(time("0 4 * * *"));
    of_p1["program"]["programName"] = json!("P1");
    server.put("apps/App/schedules/f", &of_p1).await.ok();
    server.put("apps/Other/schedules/x", &body(time("0 4 * * *"))).await.ok();
    server.put("/v3/namespaces/prod/apps/App/schedules/y", &body(time("0 4 * * *"))).await.ok();
    server.post("apps/App/schedules/b/enable", &Value::Null).await.ok();
    let names = async |query: &str| server.names(&format!("apps/App/schedules{query}")).await.join("");
    assert_eq!(names("").await, "abcdef");
    for (kind, expected) in [("time", "df"), ("partition", "b"), ("program-status", "c"), ("and", "a"), ("or", "e")] {
        assert_eq!(names(&format!("?trigger-type={kind}")).await, expected, "{kind}");
    }
    assert_eq!(names("?schedule-status=SCHEDULED").await, "b");
    assert_eq!(names("?schedule-status=SUSPENDED&trigger-type=time").await, "df");
    assert_eq!(server.names("apps/App/workflows/Wf/schedules").await.join(""), "abcde");
    assert_eq!(server.names("apps/App/workflows/P1/schedules?trigger-type=time").await, ["f"]);
    assert_eq!(server.names("apps/App/workflows/P2/schedules").await.len(), 0);
    assert_eq!(server.names("apps/App/spark/Loader/schedules").await.len(), 0);
    assert_eq!(server.names("/v3/namespaces/prod/apps/App/schedules").await, ["y"]);
    let bad = server.get("apps/App/schedules?schedule-status=MAYBE").await;
    assert_eq!(bad.told(), (400, "schedule-status is \"MAYBE\", expected SCHEDULED or SUSPENDED"));
    let bad = server.get("apps/App/workflows/Wf/schedules?trigger-type=tide").await;
    let told = "trigger-type is \"tide\", expected time, partition, program-status, and, or or signal";
    assert_eq!(bad.told(), (400, told));
}

/// Query parameters of the reverse look-up.
fn triggered_by(program: &str, more: &str) -> String {
    format!(
        "schedules/trigger-type/program-status?trigger-namespace-id=default&trigger-app-name=App\
         &trigger-program-type=workflows&trigger-program-name={program}{more}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_13_schedules_are_found_by_the_program_that_triggers_them() {
    let server = Cdap::start().await;
    let add =
        async |name: &str, trigger: Value| server.put(&format!("apps/App/schedules/{name}"), &body(trigger)).await.ok();
    add("a", ended("P1", &["COMPLETED"])).await;
    add("b", any(&[time("0 4 * * *"), all(&[ended("P1", &["FAILED", "KILLED"]), partition("ds", 1)])])).await;
    add("c", ended("P2", &["COMPLETED"])).await;
    server.post("apps/App/schedules/b/enable", &Value::Null).await.ok();
    let names = async |program: &str, more: &str| server.names(&triggered_by(program, more)).await.join("");
    assert_eq!(names("P1", "").await, "ab");
    assert_eq!(names("P2", "").await, "c");
    assert_eq!(names("Wf", "").await, "");
    assert_eq!(names("P1", "&trigger-program-statuses=COMPLETED").await, "a");
    assert_eq!(names("P1", "&trigger-program-statuses=killed,INITIALIZING").await, "b");
    assert_eq!(names("P1", "&trigger-program-statuses=RUNNING").await, "");
    assert_eq!(names("P1", "&schedule-status=SCHEDULED").await, "b");
    assert_eq!(names("P1", "&trigger-app-version=-SNAPSHOT").await, "ab");
    assert_eq!(names("P1", "&trigger-app-version=v2").await, "");
    // After an update only the new program finds it.
    server.post("apps/App/schedules/a/update", &json!({ "trigger": ended("P2", &["KILLED"]) })).await.ok();
    assert_eq!((names("P1", "").await, names("P2", "").await), ("b".to_owned(), "ac".to_owned()));
    let missing = server.get("schedules/trigger-type/program-status?trigger-namespace-id=default").await;
    assert_eq!(missing.told(), (400, "the query parameter trigger-app-name is missing"));
    assert_eq!(server.get(&triggered_by("P1", "&trigger-program-statuses=DONE")).await.status, 400);
    assert_eq!(server.get(&triggered_by("P1", "&schedule-status=x")).await.status, 400);
    let kind = triggered_by("P1", "").replace("workflows", "poems");
    assert_eq!(server.get(&kind).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_and_large_bodies_are_turned_away() {
    let server = Cdap::start().await;
    let foreign = Request::put(format!("{BASE}/apps/App/schedules/s")).header("host", "localhost");
    let foreign = foreign.header("origin", "http://evil.example");
    let reply = server.send(foreign.body(Body::from(body(time("* * * * *")).to_string())).unwrap()).await;
    assert_eq!(reply.status, 403, "{reply:?}");
    let mut large = body(time("* * * * *"));
    large["description"] = json!("x".repeat(2 << 20));
    assert_eq!(server.put("apps/App/schedules/s", &large).await.status, 413);
    assert_eq!(server.get("apps/App/schedules/s").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_nobody_schedules_the_service_is_unavailable() {
    let server = Cdap::start().await;
    server.node.handle().stop().await;
    for path in ["apps/App/schedules", "apps/App/schedules/s/status"] {
        let reply = server.get(path).await;
        assert!(reply.status == 503 && reply.text.contains("Core scheduler"), "{reply:?}");
    }
    assert_eq!(server.put("apps/App/schedules/s", &body(time("* * * * *"))).await.status, 503);
}
