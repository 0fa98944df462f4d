//! What a step does, as Celos's own tests expect it. Where Celos takes three steps from waiting to
//! running to done, one step of ours does everything that can be done at its moment.

use kelos_model::SlotState;

use crate::support::{NOW, Server, Setup, slot, workflow};

/// From the latest slot before `NOW` on.
const ONE: &str = "startTime: '2015-09-13T15:00Z'";

#[tokio::test(flavor = "multi_thread")]
async fn all_slots_of_the_window_become_ready_and_the_oldest_runs() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-12T15:01Z'")).await;
    server.step(NOW).await;
    let statuses = server.statuses("w", NOW).await;
    assert_eq!(statuses.len(), 24);
    assert_eq!(statuses[0], "RUNNING");
    assert!(statuses[1..].iter().all(|status| status == "READY"), "{statuses:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_is_never_met_leaves_them_waiting() {
    let server =
        Server::start(&workflow("w", &format!("{ONE}, trigger: celos.notTrigger(celos.alwaysTrigger())"))).await;
    server.step(NOW).await;
    assert_eq!(server.statuses("w", NOW).await, ["WAITING"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_window_and_the_start_time_bound_what_is_planned() {
    for (start, slots) in [("2015-09-10T15:01Z", 72), ("2015-09-03T15:01Z", 168), ("2015-09-14T00:00Z", 0)] {
        let server = Server::start(&workflow("w", &format!("startTime: '{start}'"))).await;
        server.step(NOW).await;
        let all = server.get("/api/v1/slots?workflow=w&limit=1000").await.ok().json();
        assert_eq!(all["items"].as_array().unwrap().len(), slots, "from {start}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_expires_strictly_after_its_timeout() {
    let fields = format!("{ONE}, trigger: celos.notTrigger(celos.alwaysTrigger()), waitTimeoutSeconds: 20");
    let server = Server::start(&workflow("w", &fields)).await;
    for (second, status) in [(19, "WAITING"), (20, "WAITING"), (21, "WAIT_TIMEOUT")] {
        server.step(&format!("2015-09-13T15:00:{second}Z")).await;
        assert_eq!(server.statuses("w", NOW).await, [status], "after {second} s");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_run_as_the_strategy_allows_oldest_first() {
    let fields = "startTime: '2015-09-13T12:00Z', schedulingStrategy: celos.serialSchedulingStrategy(2)";
    let server = Server::start(&workflow("w", fields)).await;
    server.step(NOW).await;
    assert_eq!(server.statuses("w", NOW).await, ["RUNNING", "RUNNING", "READY", "READY"]);
    server.end(&slot("w", "2015-09-13T13:00Z"), 1, false).await;
    assert_eq!(
        server.statuses("w", NOW).await,
        ["RUNNING", "FAILURE", "READY", "READY"],
        "nothing is started between steps"
    );
    server.step(NOW).await;
    assert_eq!(server.statuses("w", NOW).await, ["RUNNING", "FAILURE", "RUNNING", "READY"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn stepping_some_leaves_the_others_alone() {
    let server = Server::start(&[workflow("a", ONE), workflow("b", ONE), workflow("c", ONE)].join("\n")).await;
    server.post(&format!("/scheduler?time={NOW}&ids=a,c,unknown")).await.ok();
    for (id, status) in [("a", "RUNNING"), ("b", "WAITING"), ("c", "RUNNING")] {
        assert_eq!(server.statuses(id, NOW).await, [status], "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_at_the_clock_s_moment_by_default() {
    let server = Server::start(&workflow("w", ONE)).await;
    server.post("/scheduler").await.ok();
    assert_eq!(server.statuses("w", NOW).await, ["RUNNING"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_of_the_year_2000_can_be_rerun() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T14:00Z'")).await;
    server.post("/rerun?id=w&time=2000-01-01T00:00Z").await.ok();
    server.step(NOW).await;
    assert_eq!(server.slot_state("w", "2000-01-01T00:00Z").await["status"], "RUNNING");
    assert_eq!(server.statuses("w", NOW).await, ["READY", "READY"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_retried_until_one_succeeds() {
    let server = Server::start(&workflow("w", &format!("{ONE}, maxRetryCount: 10"))).await;
    let (time, id) = ("2015-09-13T15:00Z", slot("w", "2015-09-13T15:00Z"));
    for run in 1..=2 {
        server.step(NOW).await;
        server.end(&id, run, false).await;
        let waiting = server.slot_state("w", time).await;
        assert_eq!(waiting["status"], "WAITING");
        assert_eq!(waiting["retryCount"], run);
        assert_eq!(waiting["externalID"], serde_json::Value::Null);
    }
    server.step(NOW).await;
    server.end(&id, 3, true).await;
    let done = server.slot_state("w", time).await;
    assert_eq!((&done["status"], &done["retryCount"]), (&"SUCCESS".into(), &2.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_retried_until_none_is_left() {
    let server = Server::start(&workflow("w", &format!("{ONE}, maxRetryCount: 2"))).await;
    let id = slot("w", "2015-09-13T15:00Z");
    for run in 1..=3 {
        server.step(NOW).await;
        server.end(&id, run, false).await;
    }
    let failed = server.slot_state("w", "2015-09-13T15:00Z").await;
    assert_eq!((&failed["status"], &failed["retryCount"]), (&"FAILURE".into(), &2.into()));
    assert_eq!(failed["externalID"], "0000003-oozie-W");
    server.step(NOW).await;
    assert!(!server.is_running(&id, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_that_is_down_leaves_slots_ready() {
    let setup = Setup { real_executors: true, ..Setup::default() };
    // Nothing listens on port 1.
    let oozie = r#"celos.oozieExternalService({"oozie.wf.application.path": "/app"}, "http://127.0.0.1:1/oozie")"#;
    let fields = format!("startTime: '2015-09-13T13:00Z', externalService: {oozie}");
    let server = Server::with(setup, &workflow("w", &fields)).await;
    server.step(NOW).await;
    server.step(NOW).await;
    assert_eq!(server.statuses("w", NOW).await, ["READY", "READY", "READY"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_left_the_schedule_are_not_shown() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T12:00Z'")).await;
    server.step(NOW).await;
    let fields = "startTime: '2015-09-13T12:00Z', schedule: celos.cronSchedule('0 30 * * * ?')";
    server.write("test.js", &workflow("w", fields));
    server.step(NOW).await;
    let shown: Vec<_> = server.slots("w", NOW).await.into_iter().map(|(time, _)| time[11..16].to_owned()).collect();
    assert_eq!(shown, ["14:30", "13:30", "12:30"]);
    let kept = server.node.reader().slot(&slot("w", "2015-09-13T12:00Z")).unwrap().unwrap();
    assert_eq!(kept.state, SlotState::Running);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependent_schedule_has_the_other_s_times() {
    let depends = "schedule: celos.dependentSchedule('base')";
    let broken = "schedule: celos.dependentSchedule('nowhere')";
    let base = "schedule: celos.cronSchedule('0 0 12 * * ?'), startTime: '2015-09-13T00:00Z'";
    let script = [workflow("base", base), workflow("w", depends), workflow("broken", broken)].join("\n");
    let server = Server::start(&script).await;
    assert_eq!(server.slots("w", NOW).await.len(), 7, "the schedule is borrowed, the start time is not");
    let reply = server.get("/workflow-slots?id=broken").await;
    assert_eq!(reply.told(), (400, "Workflow nowhere doesn't exist."));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_does_not_stop_the_others() {
    let server = Server::start(&workflow("w", ONE)).await;
    server.write("broken.js", "celos.defineWorkflow({");
    server.step(NOW).await;
    assert_eq!(server.statuses("w", NOW).await, ["RUNNING"]);
    let problems = server.get("/api/v1/problems").await.ok().json();
    assert_eq!(problems["items"][0]["file"], "broken.js");
}
