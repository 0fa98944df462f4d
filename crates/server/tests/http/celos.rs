//! What the servlets of Celos answer.

use axum::body::Body;
use axum::http::{Method, Request};

use crate::support::{NOW, Server, Setup, slot, workflow};

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_printed_as_jackson_prints_them() {
    let script = [workflow("workflow-2", ""), workflow("workflow-1", ""), workflow("workflow-3", "")].join("\n");
    let server = Server::start(&script).await;
    let list = server.get("/workflow-list").await;
    assert_eq!(list.told(), (200, "{\n  \"ids\" : [ \"workflow-1\", \"workflow-2\", \"workflow-3\" ]\n}"));
    assert_eq!(Server::start("").await.get("/workflow-list").await.told(), (200, "{\n  \"ids\" : [ ]\n}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_are_printed_with_everything_about_the_workflow() {
    let about = "url: 'http://example.com/page', contacts: [{ name: 'Jo', email: 'jo@example.com' }, { name: 'Al' }]";
    let server = Server::start(&workflow("w", about)).await;
    let time = "2015-09-13T15:00Z";
    server.post(&format!("/rerun?id=w&time={time}")).await.ok();
    server.step("2015-09-13T15:00:30Z").await;
    let reply = server.get("/workflow-slots?id=w&start=2015-09-13T14:00Z&end=2015-09-13T15:00:01Z").await;
    let oldest = slot("w", "2015-09-06T16:00Z");
    assert!(server.is_running(&oldest, 1), "the oldest of a window goes first");
    insta::assert_snapshot!(reply.text);
    let reply = server.get("/workflow-slots?id=w&start=2015-09-06T16:00Z&end=2015-09-06T17:00Z").await;
    insta::assert_snapshot!(reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_week_is_shown_newest_first_by_default() {
    let server = Server::start(&workflow("w", "")).await;
    let reply = server.get("/workflow-slots?id=w").await.ok().json();
    let slots = reply["slots"].as_array().unwrap();
    assert_eq!(slots.len(), 168);
    assert_eq!(slots[0]["time"], "2015-09-13T15:00:00.000Z");
    assert_eq!(slots[167]["time"], "2015-09-06T16:00:00.000Z");
    assert_eq!(reply["info"], serde_json::json!({ "url": null, "contacts": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_is_exclusive() {
    let server = Server::start(&workflow("w", "")).await;
    let newest = async |end: &str| server.slots("w", end).await.first().cloned().unwrap().0;
    assert_eq!(newest("2015-09-13T15:00Z").await, "2015-09-13T14:00:00.000Z");
    assert_eq!(newest("2015-09-13T15:00:01Z").await, "2015-09-13T15:00:00.000Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_without_a_record_waits() {
    let server = Server::start(&workflow("w", "")).await;
    let reply = server.get("/workflow-slots?id=w&start=2001-01-01T00:00Z&end=2001-01-01T01:00Z").await;
    let expected = serde_json::json!([
        { "time": "2001-01-01T00:00:00.000Z", "status": "WAITING", "externalID": null, "retryCount": 0 }
    ]);
    assert_eq!(reply.json()["slots"], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_may_be_reversed_but_not_long() {
    let server = Server::start(&workflow("w", "")).await;
    let slots =
        async |start: &str, end: &str| server.get(&format!("/workflow-slots?id=w&start={start}&end={end}")).await;
    let reversed = slots("2015-09-13T00:00Z", "2015-09-12T00:00Z").await.ok();
    assert!(reversed.text.ends_with("\"slots\" : [ ]\n}"), "{}", reversed.text);
    let long = slots("2015-09-01T00:00Z", "2015-09-26T00:00Z").await;
    assert_eq!(long.told(), (400, "Time interval between start and end is limited to: 168 hours"));
    let five_days = slots("2015-09-01T00:00Z", "2015-09-06T00:00Z").await.ok().json();
    assert_eq!(five_days["slots"].as_array().unwrap().len(), 120);
    let week = slots("2015-09-01T00:00Z", "2015-09-08T00:00Z").await.ok().json();
    assert_eq!(week["slots"].as_array().unwrap().len(), 168);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_default_window_begins_with_the_start_time() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T12:00Z'")).await;
    assert_eq!(server.slots("w", NOW).await.len(), 4);
    let explicit = server.get("/workflow-slots?id=w&start=2015-09-13T10:00Z").await.ok().json();
    assert_eq!(explicit["slots"].as_array().unwrap().len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_of_a_workflow_that_went_away_are_not_served() {
    let server = Server::start(&workflow("w", "")).await;
    server.step(NOW).await;
    server.write("test.js", "");
    server.post("/clear-cache").await.ok();
    assert_eq!(server.get("/workflow-slots?id=w").await.told(), (404, "Workflow not found: w"));
    assert_eq!(server.get("/workflow-list").await.text, "{\n  \"ids\" : [ ]\n}");
    assert_eq!(server.slot_state("w", "2015-09-06T16:00Z").await["status"], "RUNNING", "the record is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_or_unknown_is_named() {
    let server = Server::start(&workflow("w", "")).await;
    for path in ["/workflow-slots", "/workflow", "/slot-state", "/trigger-status"] {
        assert_eq!(server.get(path).await.told(), (400, "id parameter missing."), "{path}");
    }
    for path in ["/rerun", "/kill", "/pause"] {
        assert_eq!(server.post(path).await.told(), (400, "id parameter missing."), "{path}");
        let unknown = server.post(&format!("{path}?id=x&time=2015-09-13T15:00Z")).await;
        assert_eq!(unknown.told(), (404, "Workflow not found: x"), "{path}");
    }
    for path in ["/workflow-slots?id=x", "/workflow?id=x", "/trigger-status?id=x"] {
        assert_eq!(server.get(path).await.told(), (404, "Workflow not found: x"), "{path}");
    }
    let nowhere = server.get("/slot-state?id=x&time=2015-09-13T15:00Z").await;
    assert_eq!(nowhere.told(), (404, "Slot not found: x"));
    for path in ["/rerun", "/kill"] {
        let off = server.post(&format!("{path}?id=w&time=2015-09-13T15:01Z")).await;
        assert_eq!(off.told(), (404, "Slot is not found: w@2015-09-13T15:01:00.000Z"));
    }
    let zone = server.get("/slot-state?id=w&time=2015-09-13T15:00%2B01:00").await;
    assert_eq!(zone.told(), (400, "Scheduled time must be in UTC, but isn't: 2015-09-13T15:00+01:00"));
    let bad = server.post("/scheduler?time=yesterday").await;
    assert_eq!(bad.status, 400);
    assert!(bad.text.contains("expected a form such as 2013-11-26"), "{}", bad.text);
    assert_eq!(server.post("/scheduler?ids=").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_and_methods_that_are_not_there() {
    let server = Server::start("").await;
    let step = server.get("/scheduler").await;
    assert_eq!(step.told(), (405, "HTTP method GET is not supported by this URL"));
    assert_eq!(step.header("allow"), "POST");
    assert_eq!(server.post("/workflow-list").await.status, 405);
    assert_eq!(server.get("/nothing").await.told(), (404, "There is nothing at /nothing"));
    assert!(server.get("/").await.ok().text.contains("/api/v1"));
    let head = server.ask(Method::HEAD, "/workflow-list", "").await;
    assert_eq!(head.told(), (200, ""));
    assert_eq!(server.get("/version").await.told(), (200, "1.2.3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_blocks_stepping_until_it_ends() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T15:00Z'")).await;
    server.post("/pause?id=w&paused=TRUE").await.ok();
    assert_eq!(server.get("/workflow-slots?id=w").await.json()["paused"], true);
    server.step(NOW).await;
    assert_eq!(server.statuses("w", NOW).await, ["WAITING"]);
    // A typing mistake doesn't end it.
    let mistaken = server.post("/pause?id=w&paused=ture").await;
    assert_eq!(mistaken.status, 400);
    assert_eq!(mistaken.text, "paused is \"ture\", expected true or false");
    // Nothing at all does, and ending what is not there is no error.
    for _ in 0..2 {
        server.post("/pause?id=w").await.ok();
    }
    assert_eq!(server.get("/workflow-slots?id=w").await.json()["paused"], false);
    server.step(NOW).await;
    assert_eq!(server.statuses("w", NOW).await, ["RUNNING"]);
}

const TIME: &str = "2015-09-13T15:00Z";
const KILL: &str = "/kill?id=w&time=2015-09-13T15:00Z";
const RERUN: &str = "/rerun?id=w&time=2015-09-13T15:00Z";

async fn with_one_slot(on_disk: bool) -> Server {
    let setup = Setup { on_disk, ..Setup::default() };
    Server::with(setup, &workflow("w", "startTime: '2015-09-13T15:00Z'")).await
}

async fn status(server: &Server) -> String {
    let slot = server.slot_state("w", TIME).await;
    slot["status"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_without_a_record_can_be_killed_and_rerun() {
    for on_disk in [false, true] {
        let server = with_one_slot(on_disk).await;
        assert_eq!(server.post(KILL).await.ok().text, "");
        assert_eq!(status(&server).await, "KILLED");
        let again = server.post(KILL).await;
        assert_eq!(again.told(), (400, "Slot must be in indeterminate state, but is: KILLED"));
        server.step(NOW).await;
        assert_eq!(status(&server).await, "KILLED", "it never goes");

        server.post(RERUN).await.ok();
        assert_eq!(status(&server).await, "WAITING");
        let again = server.post(RERUN).await;
        assert_eq!(again.told(), (400, "Slot must be in successful or failed, but is: WAITING"));
        server.step(NOW).await;
        assert_eq!(status(&server).await, "RUNNING");
    }
}

/// What Celos answers about a slot of which it has no record, and about one whose time left the schedule.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_planned_and_never_moved_has_no_record() {
    for on_disk in [false, true] {
        let setup = Setup { on_disk, ..Setup::default() };
        let waits = |more: &str| {
            workflow(
                "w",
                &format!("startTime: '2015-09-13T15:00Z', trigger: celos.hdfsCheckTrigger('/no', 'file:///'){more}"),
            )
        };
        let server = Server::with(setup, &waits("")).await;
        server.step(NOW).await;
        assert_eq!(server.statuses("w", NOW).await, ["WAITING"]);
        let state = format!("/slot-state?id=w&time={TIME}");
        assert_eq!(server.get(&state).await.told(), (404, "Slot not found: w"));
        assert_eq!(server.post(RERUN).await.told(), (200, ""));
        assert_eq!(server.post(RERUN).await.told(), (200, ""));
        assert_eq!(server.get(&state).await.status, 404, "a mark makes no record");
        server.post(KILL).await.ok();
        server.post(RERUN).await.ok();
        assert_eq!(status(&server).await, "WAITING");
        assert_eq!(server.post(RERUN).await.told().0, 400, "there is a record now");

        server.write("test.js", &waits(", schedule: celos.cronSchedule('0 30 * * * ?')"));
        server.step(NOW).await;
        for uri in [KILL, RERUN] {
            assert_eq!(server.post(uri).await.told(), (404, "Slot is not found: w@2015-09-13T15:00:00.000Z"), "{uri}");
        }
        assert_eq!(status(&server).await, "WAITING", "its record stays");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_can_be_killed_and_a_success_can_t() {
    for on_disk in [false, true] {
        let server = with_one_slot(on_disk).await;
        server.step(NOW).await;
        server.post(KILL).await.ok();
        let killed = server.slot_state("w", TIME).await;
        assert_eq!((&killed["status"], &killed["externalID"]), (&"KILLED".into(), &"0000001-oozie-W".into()));
        let id = slot("w", TIME);
        let alive = |server: &Server| server.node.reader().slot(&id).unwrap().unwrap().run_alive;
        server.until(|server| !alive(server)).await;

        server.post(RERUN).await.ok();
        server.step(NOW).await;
        server.end(&id, 2, true).await;
        assert_eq!(status(&server).await, "SUCCESS");
        let kill = server.post(KILL).await;
        assert_eq!(kill.told(), (400, "Slot must be in indeterminate state, but is: SUCCESS"));
        server.post(RERUN).await.ok();
        let waiting = server.slot_state("w", TIME).await;
        assert_eq!((&waiting["status"], &waiting["externalID"]), (&"WAITING".into(), &serde_json::Value::Null));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_may_come_as_a_form() {
    let server = Server::start(&workflow("w", "")).await;
    let form = Request::post("/pause")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from("id=w&paused=true"));
    server.send(form.unwrap()).await.ok();
    assert_eq!(server.get("/workflow-slots?id=w").await.json()["paused"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_any_script_work_end_to_end() {
    let id = "workflow-Iñtërnâtiônàlizætiøn";
    let server = Server::start(&workflow(id, "startTime: '2015-09-13T15:00Z'")).await;
    server.step(NOW).await;
    let encoded = "workflow-I%C3%B1t%C3%ABrn%C3%A2ti%C3%B4n%C3%A0liz%C3%A6ti%C3%B8n";
    assert_eq!(server.statuses(encoded, NOW).await, ["RUNNING"]);
    assert!(server.get("/workflow-list").await.text.contains(id));
    let native = server.get(&format!("/api/v1/workflows/{encoded}")).await.ok().json();
    assert_eq!(native["id"], id);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_servlet_shows_the_same_slots_by_time() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T14:00Z'")).await;
    server.step(NOW).await;
    insta::assert_snapshot!(server.get("/workflow?id=w&time=2015-09-13T15:00:01Z").await.ok().text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_is_asked_anew_for_any_time() {
    let server = Server::start("").await;
    let there = server.folder.path().join("2015-09-13");
    std::fs::create_dir(&there).unwrap();
    let path = server.folder.path().display().to_string();
    let trigger = format!(
        "trigger: celos.andTrigger(
            celos.delayTrigger(3600),
            celos.offsetTrigger(-3600, celos.successTrigger('upstream')),
            celos.notTrigger(celos.orTrigger()),
            celos.hdfsCheckTrigger('{path}/${{year}}-${{month}}-${{day}}', 'file:///'),
            celos.alwaysTrigger())"
    );
    server.write(
        "test.js",
        &[workflow("w", &trigger), workflow("upstream", "startTime: '2015-09-13T13:00Z'")].join("\n"),
    );
    server.step(NOW).await;
    server.end(&slot("upstream", "2015-09-13T13:00Z"), 1, true).await;
    let status = async |time: &str| {
        let text = server.get(&format!("/trigger-status?id=w&time={time}")).await.ok().text;
        text.replace(&path, "/data")
    };
    insta::assert_snapshot!(status("2015-09-13T14:00Z").await);
    // Not a time of the schedule, and in the future.
    insta::assert_snapshot!(status("2015-09-14T14:30Z").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn registers_hold_any_json() {
    let server = Server::start("").await;
    let uri = "/register?bucket=b%C3%BCcket&key=k";
    assert_eq!(server.get(uri).await.told(), (404, "Register not found"));
    assert_eq!(server.ask(Method::PUT, uri, "{not json").await.status, 400);
    assert_eq!(server.ask(Method::PUT, uri, "").await.status, 400);
    // As `curl -X PUT -d` sends it.
    let put = Request::put(uri)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from(r#"{"z":[1,{"ä":"ß"}],"a":null}"#));
    server.send(put.unwrap()).await.ok();
    let value = server.get(uri).await;
    assert_eq!(value.text, "{\n  \"z\" : [ 1, {\n    \"ä\" : \"ß\"\n  } ],\n  \"a\" : null\n}");
    server.ask(Method::DELETE, uri, "").await.ok();
    server.ask(Method::DELETE, uri, "").await.ok();
    assert_eq!(server.get(uri).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn registers_are_listed_and_deleted_by_prefix() {
    let server = Server::start("").await;
    for key in ["b2", "a1", "b1", "c"] {
        server.ask(Method::PUT, &format!("/register?bucket=x&key={key}"), "{}").await.ok();
    }
    let keys = async |query: &str| server.get(&format!("/list-register-keys?{query}")).await.ok().text;
    assert_eq!(keys("bucket=x").await, "{\n  \"keys\" : [ \"a1\", \"b1\", \"b2\", \"c\" ]\n}");
    assert_eq!(keys("bucket=x&prefix=b").await, "{\n  \"keys\" : [ \"b1\", \"b2\" ]\n}");
    assert_eq!(keys("bucket=other").await, "{\n  \"keys\" : [ ]\n}");
    server.ask(Method::DELETE, "/register?bucket=x&prefix=b", "").await.ok();
    assert_eq!(keys("bucket=x").await, "{\n  \"keys\" : [ \"a1\", \"c\" ]\n}");
    server.ask(Method::DELETE, "/register?bucket=x&prefix=", "").await.ok();
    assert_eq!(keys("bucket=x").await, "{\n  \"keys\" : [ ]\n}");
}

#[tokio::test(flavor = "multi_thread")]
async fn registers_need_names_of_the_right_form() {
    let server = Server::start("").await;
    assert_eq!(server.get("/register?key=k").await.told(), (400, "bucket parameter missing."));
    assert_eq!(server.get("/register?bucket=b").await.told(), (400, "key parameter missing."));
    let dotted = server.get("/register?bucket=b&key=a.b").await;
    assert_eq!(dotted.told(), (400, "key is \"a.b\", expected a name without \"/\" and \".\""));
    assert_eq!(server.ask(Method::DELETE, "/register?bucket=b", "").await.status, 400);
    assert_eq!(server.get("/list-register-keys").await.status, 400);
}
