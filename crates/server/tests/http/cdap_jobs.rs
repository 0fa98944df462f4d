//! What schedules of the dialect of CDAP do: the numbered behaviours of the reference, asked over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{self, Method};
use kelos_core::{CreateSchedules, DeleteSchedules, Request};
use kelos_engine::executor::RunInput;
use kelos_model::arguments::arguments;
use kelos_model::workflow::{EventKeys, Keys};
use kelos_model::{Actor, Job, Occurrence, SlotKey, SlotState, Trigger, Workflow, WorkflowId};
use kelos_wire::WhyDto;
use serde_json::{Value, json};

use crate::cdap_support::{Cdap, all, any, body, ended, partition, program, time};

async fn act(server: &Cdap, schedule: &str, action: &str) {
    server.post(&format!("apps/App/schedules/{schedule}/{action}"), &json!({})).await.ok();
    server.settle().await;
}

async fn status(server: &Cdap, schedule: &str) -> String {
    let reply = server.get(&format!("apps/App/schedules/{schedule}/status")).await.ok();
    reply.json()["status"].as_str().unwrap().to_owned()
}

/// A schedule as a file defines it.
fn of_file(name: &str, program: &str, trigger: Trigger) -> Arc<Workflow> {
    let keys = EventKeys::new(name, WorkflowId::new(program).unwrap());
    let id = WorkflowId::new(&format!("App.{name}")).unwrap();
    let mut workflow = Workflow::keyed(id, Keys::Events(Box::new(keys)), Job::new("test", serde_json::Map::new()));
    workflow.project = "App".to_owned();
    workflow.trigger = trigger;
    Arc::new(workflow)
}

fn partitions(dataset: &str, count: u32) -> Trigger {
    Trigger::Partitions { dataset: dataset.into(), count }
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_14_the_worked_example_of_a_program_that_goes() {
    let server = Cdap::start().await;
    let one = |name: &str| ended(name, &["COMPLETED"]);
    let whole = any(&[
        partition("ds1", 1),
        one("P1"),
        all(&[any(&[one("P1"), one("P2")]), partition("ds2", 1)]),
        any(&[one("P2")]),
    ]);
    server.schedule("s", whole).await;
    server.put("apps/App/schedules/alone", &body(one("P1"))).await.ok();
    let mut own = body(time("* * * * *"));
    own["program"]["programName"] = json!("P1");
    server.put("apps/App/schedules/own", &own).await.ok();
    server.deploy(vec![program("App", "Wf"), program("App", "P2")], false).await;
    let left = any(&[partition("ds1", 1), all(&[one("P2"), partition("ds2", 1)]), one("P2")]);
    assert_eq!((server.trigger("s").await, status(&server, "s").await), (left, "SCHEDULED".to_owned()));
    assert_eq!(server.names("apps/App/schedules").await, ["s"], "the others needed the program that is gone");
    server.deploy(vec![program("App", "Wf")], false).await;
    assert_eq!((server.trigger("s").await, status(&server, "s").await), (partition("ds1", 1), "SCHEDULED".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_16_a_new_schedule_is_suspended_until_it_is_enabled() {
    let server = Cdap::start().await;
    server.put("apps/App/schedules/s", &body(time("0 4 * * *"))).await.ok();
    assert_eq!(status(&server, "s").await, "SUSPENDED");
    act(&server, "s", "enable").await;
    assert_eq!(status(&server, "s").await, "SCHEDULED");
    act(&server, "s", "disable").await;
    assert_eq!(status(&server, "s").await, "SUSPENDED");
}

async fn ask(server: &Cdap, request: impl Request<Answer = ()>) -> Result<(), kelos_engine::AskError> {
    server.node.handle().ask(&Actor::person("test"), request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_17_batches_are_all_or_nothing() {
    let server = Cdap::start().await;
    server.put("apps/App/schedules/a", &body(time("0 4 * * *"))).await.ok();
    let new = |name: &str| of_file(name, "App.Wf", partitions("ds", 1));
    assert!(ask(&server, CreateSchedules { new: vec![new("b"), new("a")], reason: None }).await.is_err());
    assert_eq!(server.names("apps/App/schedules").await, ["a"]);
    ask(&server, CreateSchedules { new: vec![new("b"), new("c")], reason: None }).await.unwrap();
    let id = |name: &str| WorkflowId::new(&format!("App.{name}")).unwrap();
    assert!(ask(&server, DeleteSchedules { schedules: vec![id("a"), id("missing")], reason: None }).await.is_err());
    assert_eq!(server.names("apps/App/schedules").await, ["a", "b", "c"]);
    ask(&server, DeleteSchedules { schedules: vec![id("a"), id("c")], reason: None }).await.unwrap();
    assert_eq!(server.names("apps/App/schedules").await, ["b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_18_five_rounds_of_partitions_give_five_runs_each() {
    let server = Cdap::start().await;
    server.schedule("one", partition("ds1", 1)).await;
    server.schedule("two", partition("ds2", 2)).await;
    for round in 1..=5 {
        server.partitions("ds1", 1).await;
        server.partitions("ds2", 1).await;
        assert_eq!((server.runs("App.one"), server.runs("App.two")), (round, round - 1));
        server.partitions("ds2", 1).await;
        assert_eq!((server.runs("App.one"), server.runs("App.two")), (round, round));
        server.pass(1).await;
    }
    assert_eq!((server.runs("App.one"), server.runs("App.two")), (5, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_19_disabled_schedules_collect_nothing() {
    let server = Cdap::start().await;
    server.put("apps/App/schedules/s", &body(partition("ds", 1))).await.ok();
    server.partitions("ds", 5).await;
    server.schedule("t", partition("ds", 1)).await;
    act(&server, "t", "disable").await;
    server.partitions("ds", 5).await;
    for schedule in ["App.s", "App.t"] {
        assert_eq!((server.runs(schedule), server.slots(schedule, SlotState::Waiting).len()), (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_20_a_composite_waits_for_each_of_its_parts() {
    let server = Cdap::start().await;
    let killed = || ended("P1", &["KILLED"]);
    let tree = all(&[any(&[partition("ds", 3), killed()]), any(&[time("*/5 * * * * ?"), killed()])]);
    server.schedule("s", tree).await;
    server.partitions("ds", 1).await;
    server.pass(5).await;
    assert_eq!(server.runs("App.s"), 0, "one partition of three, and the time");
    server.partitions("ds", 2).await;
    assert_eq!(server.runs("App.s"), 1);
    // A single end meets both parts.
    let killed = Occurrence::Ended {
        program: WorkflowId::new("App.P1").unwrap(),
        state: SlotState::Killed,
        run: None,
        arguments: BTreeMap::new(),
        outputs: serde_json::Map::new(),
    };
    server.tell(killed).await;
    assert_eq!(server.runs("App.s"), 2);
}

/// Does something to a schedule that has one partition of the two that it needs: that one does not count any more.
async fn drops_what_was_collected(server: &Cdap, change: impl AsyncFn(&Cdap)) {
    let (runs, waiting) = (server.runs("App.s"), || server.slots("App.s", SlotState::Waiting).len());
    server.partitions("ds", 1).await;
    assert_eq!((server.runs("App.s") - runs, waiting()), (0, 1));
    server.pass(1).await;
    change(server).await;
    assert_eq!((waiting(), status(server, "s").await), (0, "SCHEDULED".to_owned()));
    server.partitions("ds", 1).await;
    assert_eq!((server.runs("App.s") - runs, waiting()), (0, 1));
    server.pass(1).await;
    server.partitions("ds", 1).await;
    assert_eq!((server.runs("App.s") - runs, waiting()), (1, 0));
    server.pass(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_21_what_was_collected_goes_with_each_change() {
    let server = Cdap::start().await;
    server.schedule("s", partition("ds", 2)).await;
    drops_what_was_collected(&server, async |server| {
        act(server, "s", "disable").await;
        act(server, "s", "enable").await;
    })
    .await;
    drops_what_was_collected(&server, async |server| {
        server.post("apps/App/schedules/s/update", &json!({ "description": "new" })).await.ok();
    })
    .await;
    drops_what_was_collected(&server, async |server| {
        server.delete("apps/App/schedules/s").await.ok();
        server.schedule("s", partition("ds", 2)).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_22_only_what_was_disabled_within_the_range_is_enabled_again() {
    let server = Cdap::start().await;
    for name in ["a", "b", "c"] {
        server.schedule(name, partition("ds", 1)).await;
    }
    server.put("/v3/namespaces/prod/apps/App/schedules/p", &body(time("0 4 * * *"))).await.ok();
    let mut moments = Vec::new();
    for name in ["a", "b", "c"] {
        server.pass(10).await;
        moments.push(server.now().as_millisecond());
        act(&server, name, "disable").await;
    }
    let again = async |query: String| server.ask(Method::PUT, &format!("schedules/re-enable{query}"), "").await;
    let enabled = async || server.names("apps/App/schedules?schedule-status=SCHEDULED").await.join("");
    assert_eq!(again(String::new()).await.told(), (200, ""), "what is missing is 0");
    assert_eq!(enabled().await, "");
    // The start is inclusive, the end is not.
    again(format!("?start-time-millis={}&end-time-millis={}", moments[1], moments[2])).await.ok();
    assert_eq!(enabled().await, "b");
    again(format!("?start-time-millis=0&end-time-millis={}", i64::MAX)).await.ok();
    assert_eq!(enabled().await, "abc");
    let elsewhere = server.get("/v3/namespaces/prod/apps/App/schedules/p").await.json();
    assert_eq!(elsewhere["status"], "SUSPENDED", "another namespace");
    let bad = again("?start-time-millis=soon".to_owned()).await;
    assert_eq!(bad.told(), (400, "start-time-millis is \"soon\", expected a whole number"));
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_23_a_run_is_triggered_by_the_end_of_another() {
    let server = Cdap::start().await;
    let start = async || server.post("apps/App/workflows/P1/start", &json!({ "src": "/data" })).await.ok();
    let mut sent = body(ended("P1", &["COMPLETED"]));
    sent["properties"] = json!({ "triggering.properties.mapping": "{\"cleanup_dir\":\"src\"}" });
    server.put("apps/App/schedules/s", &sent).await.ok();
    for succeeded in [true, false] {
        start().await;
        server.settle().await;
        server.end_all(succeeded).await;
        server.pass(1).await;
        assert_eq!(server.runs("App.s"), 0, "it is disabled, or the run failed");
        if succeeded {
            act(&server, "s", "enable").await;
        }
    }
    start().await;
    server.settle().await;
    server.end_all(true).await;
    assert_eq!(server.runs("App.s"), 1);
    let slot = server.slots("App.s", SlotState::Running).pop().unwrap();
    let row = server.node.reader().workflow(&WorkflowId::new("App.s").unwrap()).unwrap().unwrap();
    let collected = slot.collected.as_ref().unwrap();
    let key = SlotKey::Moment(server.now());
    let given = RunInput::of(&row.definition, &key, Some(collected), arguments(&row.definition, Some(collected), &key));
    let info = &given.triggered_by.unwrap()["triggerInfos"];
    assert_eq!(info[0]["runtimeArguments"]["src"], "/data");
    assert_eq!(given.arguments.get("cleanup_dir"), Some(&serde_json::json!("/data")));
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_24_a_schedule_needs_a_profile_that_is_there_and_enabled() {
    let server = Cdap::start().await;
    let of = |profile: &str| {
        let mut sent = body(time("0 4 * * *"));
        sent["properties"] = json!({ "system.profile.name": profile });
        sent
    };
    let add = async |profile: &str| server.put("apps/App/schedules/s", &of(profile)).await;
    let missing = add("USER:big").await;
    assert_eq!(missing.told(), (404, "no profile \"big\" in namespace \"default\""));
    server.put("profiles/big", &json!({ "description": "many machines" })).await.ok();
    let act = async |action: &str| server.post(&format!("profiles/big/{action}"), &Value::Null).await;
    assert_eq!(act("enable").await.status, 409);
    act("disable").await.ok();
    let disabled = add("USER:big").await;
    assert_eq!(disabled.told(), (409, "the profile \"big\" of namespace \"default\" is disabled: enable it first"));
    assert_eq!(server.get("apps/App/schedules/s").await.status, 404);
    act("enable").await.ok();
    add("USER:big").await.ok();
    // One that a schedule has can't be deleted; disabled, it is a reason to refuse updates, which lose nothing.
    assert_eq!(server.delete("profiles/big").await.status, 409);
    act("disable").await.ok();
    assert_eq!(server.delete("profiles/big").await.status, 409);
    let update = server.post("apps/App/schedules/s/update", &json!({ "description": "new" })).await;
    assert_eq!((update.status.as_u16(), server.get("apps/App/schedules/s").await.status.as_u16()), (409, 200));
    server.delete("apps/App/schedules/s").await.ok();
    server.delete("profiles/big").await.ok();
    assert_eq!(server.get("profiles/big").await.status, 404);
    add("SYSTEM:native").await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn cdap_26_deployment_keeps_or_replaces_what_was_changed() {
    let server = Cdap::start().await;
    let apps = |count: u32| {
        let kept = of_file("kept", "App.Wf", partitions("ds", 1));
        vec![program("App", "Wf"), program("App", "P1"), kept, of_file("file", "App.Wf", partitions("ds", count))]
    };
    let names = async || server.names("apps/App/schedules").await.join(" ");
    server.deploy(apps(1), false).await;
    assert_eq!(names().await, "", "nothing is added, not even at first");
    server.deploy(apps(1), true).await;
    assert_eq!(names().await, "file kept");
    assert_eq!(status(&server, "file").await, "SUSPENDED");
    for name in ["file", "kept"] {
        act(&server, name, "enable").await;
    }
    server.schedule("rest", ended("P1", &["FAILED"])).await;
    let mut own = body(time("* * * * *"));
    own["program"]["programName"] = json!("P1");
    server.put("apps/App/schedules/own", &own).await.ok();
    server.post("apps/App/schedules/file/update", &json!({ "trigger": partition("ds", 9) })).await.ok();
    server.deploy(apps(2), false).await;
    assert_eq!((names().await, server.trigger("file").await), ("file kept own rest".to_owned(), partition("ds", 9)));
    // Those of programs that are gone go, whatever was said.
    server.deploy(vec![program("App", "Wf")], false).await;
    assert_eq!(names().await, "file kept");
    server.schedule("rest", partition("ds", 4)).await;
    server.deploy(apps(2), true).await;
    assert_eq!((names().await, server.trigger("file").await), ("file kept".to_owned(), partition("ds", 2)));
    assert_eq!(status(&server, "kept").await, "SCHEDULED", "it is as it was");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_in_a_closed_window_drops_or_waits() {
    let server = Cdap::start().await;
    let window = |waits: bool| {
        json!([{
            "type": "TIME_RANGE", "startTime": "11:00", "endTime": "12:00", "timeZone": "UTC", "waitUntilMet": waits,
        }])
    };
    for (name, waits) in [("drops", false), ("waits", true)] {
        let mut sent = body(time("0 * * * * ?"));
        sent["constraints"] = window(waits);
        server.put(&format!("apps/App/schedules/{name}"), &sent).await.ok();
        act(&server, name, "enable").await;
    }
    server.pass(30).await;
    server.pass(60).await;
    assert_eq!((server.runs("App.drops"), server.runs("App.waits")), (0, 0));
    assert_eq!(server.slots("App.drops", SlotState::Skipped).len(), 2);
    assert_eq!(server.slots("App.waits", SlotState::Held).len(), 1);
    // The times of 10:59 and 11:00 are late by no more than a minute, so both count, each by itself, now that the window is open.
    server.pass(58 * 60).await;
    server.end_all(true).await;
    assert_eq!((server.runs("App.drops"), server.runs("App.waits")), (2, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_schedule_goes_once_the_run_before_has_ended() {
    let server = Cdap::start().await;
    server.put("apps/App/schedules/s", &body(partition("other", 9))).await.ok();
    // An update may change the trigger and the constraints only.
    let constraints = json!([{ "type": "CONCURRENCY", "maxConcurrency": 1, "waitUntilMet": true }]);
    let update = json!({ "trigger": partition("ds", 1), "constraints": constraints });
    server.post("apps/App/schedules/s/update", &update).await.ok();
    act(&server, "s", "enable").await;
    server.post("apps/App/workflows/Wf/start", &json!({})).await.ok();
    server.partitions("ds", 1).await;
    assert_eq!((server.runs("App.s"), server.slots("App.s", SlotState::Held).len()), (0, 1), "a person's run counts");
    server.end_all(true).await;
    assert_eq!((server.runs("App.s"), server.slots("App.s", SlotState::Held).len()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delay_counts_from_the_first_event() {
    let server = Cdap::start().await;
    let mut sent = body(partition("ds", 1));
    sent["constraints"] = json!([{ "type": "DELAY", "millisAfterTrigger": 600_000, "waitUntilMet": true }]);
    server.put("apps/App/schedules/s", &sent).await.ok();
    act(&server, "s", "enable").await;
    server.partitions("ds", 1).await;
    server.pass(9 * 60).await;
    server.partitions("ds", 1).await;
    assert_eq!(server.runs("App.s"), 0);
    server.pass(60).await;
    assert_eq!((server.runs("App.s"), server.slots("App.s", SlotState::Held).len()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn why_says_until_when_the_longest_delay_is() {
    let server = Cdap::start().await;
    let mut sent = body(partition("ds", 1));
    sent["constraints"] = json!([{ "type": "DELAY", "millisAfterTrigger": i64::MAX, "waitUntilMet": true }]);
    server.put("apps/App/schedules/s", &sent).await.ok();
    act(&server, "s", "enable").await;
    server.partitions("ds", 1).await;
    let get = async |path: String| server.send(http::Request::get(path).body(Body::empty()).unwrap()).await.ok();
    let slots = get("/api/v1/slots?workflow=App.s".to_owned()).await.json();
    let time = slots["items"][0]["time"].as_str().unwrap_or_else(|| panic!("{slots}"));
    let why = get(format!("/api/v1/workflows/App.s/slots/{time}/why")).await.text;
    // The command reads the same.
    let why: WhyDto = serde_json::from_str(&why).unwrap_or_else(|error| panic!("{error}: {why}"));
    assert_eq!(why.blockers, ["It must wait until 9999-12-30T22:00:00.999Z"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frequent_cron_runs_once_in_the_time_since_the_last_run() {
    let server = Cdap::start().await;
    let mut sent = body(time("*/10 * * * * ?"));
    sent["constraints"] = json!([{ "type": "LAST_RUN", "millisSinceLastRun": 3_600_000, "waitUntilMet": false }]);
    server.put("apps/App/schedules/s", &sent).await.ok();
    act(&server, "s", "enable").await;
    for _ in 0..5 {
        server.pass(10).await;
        server.end_all(true).await;
    }
    assert_eq!((server.runs("App.s"), server.slots("App.s", SlotState::Skipped).len()), (1, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_with_times_of_its_own_is_a_program_too() {
    let server = Cdap::start().await;
    let hourly = kelos_model::time::Schedule::Cron(kelos_model::time::CronSchedule::hourly());
    let mut own = Workflow::new(WorkflowId::new("hourly").unwrap(), hourly, Job::new("test", serde_json::Map::new()));
    own.project = "App".to_owned();
    own.start_time = Some(server.now());
    server.deploy(vec![program("App", "Wf"), Arc::new(own)], true).await;
    let mut sent = body(partition("ds", 1));
    sent["program"]["programName"] = json!("hourly");
    server.put("apps/App/schedules/a%20b%3Ac", &sent).await.ok();
    let shown = server.get("apps/App/schedules/a%20b%3Ac").await.ok().json();
    assert_eq!((&shown["name"], &shown["program"]["programName"]), (&json!("a b:c"), &json!("hourly")));
    server.schedule("after", ended("hourly", &["COMPLETED"])).await;
    assert_eq!(server.trigger("after").await, ended("hourly", &["COMPLETED"]));
    server.pass(3600).await;
    server.end_all(true).await;
    assert_eq!(server.runs("App.after"), 1);
    server.post("apps/App/workflows/hourly/start", &json!({})).await.ok();
    server.end_all(true).await;
    assert_eq!(server.runs("App.after"), 2, "what a person started ends as any other run of the program");
    // Another application has no such workflow, however it is named.
    assert_eq!(server.put("apps/Other/schedules/s", &sent).await.status, 404);
}
