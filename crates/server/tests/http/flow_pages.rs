//! The pages of flows, of their runs and of their steps.

use axum::http::StatusCode;
use kelos_model::{SlotKey, SlotRef, SlotState, WorkflowId};
use serde_json::{Value, json};

use crate::pages::{assert_harmless, assert_says, form, page};
use crate::support::{NOW, Server};

const SCRIPT: &str = r#"
    kelos.flow("buy", { parameters: { customer: "ada" }, steps: {
        check: { shell: "true", description: "<b>adds</b> up" },
        approve: { needs: "check", signal: "approval", within: "2d" },
        pay: { needs: "approve", shell: "true", onError: "sorry" },
        ship: { needs: "pay", shell: "true" },
        sorry: { shell: "true" },
    } });
    kelos.flow("lists", { steps: {
        list: { shell: "true" },
        each: { needs: "list", forEach: "files", shell: "true" },
        join: { needs: "each", shell: "true" },
    } });
"#;

fn slot(workflow: &str, key: &str) -> SlotRef {
    SlotRef::new(WorkflowId::new(workflow).unwrap(), SlotKey::parse(key).unwrap())
}

async fn server() -> Server {
    let server = Server::start(SCRIPT).await;
    server.step(NOW).await;
    server
}

/// Ends the run of a step, with what it gives.
async fn done(server: &Server, workflow: &str, key: &str, outputs: Option<Value>) {
    let step = slot(workflow, key);
    until(server, &step, SlotState::Running).await;
    let number = server.node.reader().slot(&step).unwrap().unwrap().last_run;
    if let Some(outputs) = &outputs {
        server.give(&step, number, outputs).await;
    }
    server.end(&step, number, outputs.is_some()).await;
}

/// A flow whose first step is done, and which waits for an approval.
async fn waiting(name: &str) -> Server {
    let server = started("buy", name).await;
    let outputs = json!({ "total": 7, "password": "hunter2", "note": "<img src=x>" });
    done(&server, "buy", &format!(".{name}.check"), Some(outputs)).await;
    until(&server, &slot("buy", &format!(".{name}.approve")), SlotState::Waiting).await;
    server
}

/// Lets the scheduler work until a slot is in a state.
async fn until(server: &Server, slot: &SlotRef, state: SlotState) {
    for _ in 0..200 {
        server.step(NOW).await;
        if server.node.reader().slot(slot).unwrap().is_some_and(|slot| slot.state == state) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{slot} is not {state}: {:?}", server.node.reader().slot(slot).unwrap());
}

async fn started(workflow: &str, name: &str) -> Server {
    let server = server().await;
    let fields = format!("name={name}&reason=a+try");
    let reply = form(&server, &format!("/ui/schedules/{workflow}/fire"), &fields, "same-origin").await;
    let there = format!("/ui/workflows/{workflow}/slots/.{name}");
    assert_eq!((reply.status, reply.header("location")), (StatusCode::SEE_OTHER, &*there), "{reply:?}");
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_shows_its_graph_and_is_started_by_a_name() {
    let server = server().await;
    let own = page(&server, "/ui/workflows/buy").await;
    let expected = [
        "Start…",
        "Name, which is started once",
        "customer",
        "approve waits for approval, up to 2 d check",
        "sorry command a failure of pay",
        "5 steps from left to right",
    ];
    let labels = own.replace("aria-label=\"", ">");
    assert_says(&labels, &expected);
    assert_harmless(&own);
    assert!(own.contains("class=\"edge error\""), "{own}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_for_an_approval_fails_and_is_resumed() {
    let server = waiting("order-1").await;
    let (run, base) = (slot("buy", ".order-1"), "/ui/workflows/buy/slots/.order-1");
    let waits = page(&server, base).await;
    let expected = [
        "Waits for the signal approval",
        "5 steps: 1 succeeded, 1 waits for a signal, 3 not started",
        "ship not started pay waits for pay to succeed",
        "sorry not started a failure of pay starts if pay fails",
        "When its steps ran",
    ];
    assert_says(&waits, &expected);
    assert_harmless(&waits);
    let bad = form(&server, &format!("{base}/signal"), "signal=approval&payload=yes", "same-origin").await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    assert_says(&bad.text, &["The payload is no JSON"]);
    let payload = "signal=approval&payload=%7B%22by%22%3A+%22ada%22%7D&reason=fine";
    let given = form(&server, &format!("{base}/signal"), payload, "same-origin").await;
    assert_eq!((given.status, given.header("location")), (StatusCode::SEE_OTHER, base));
    done(&server, "buy", ".order-1.pay", None).await;
    done(&server, "buy", ".order-1.sorry", None).await;
    until(&server, &run, SlotState::Failed).await;
    let failed = page(&server, base).await;
    assert_says(&failed, &["Failed steps: pay , sorry", "Resume…", "Signals that came approval {\"by\":\"ada\"}"]);
    assert_says(&failed, &["ship never runs pay never runs: it needs pay, which failed"]);
    let step = page(&server, &format!("{base}.pay")).await;
    assert_says(&step, &["A step of the run order-1", "Resume from here…", "Needs approve S succeeded", "by ada"]);
    let resumed = form(&server, &format!("{base}.pay/resume"), "reason=paid", "same-origin").await;
    assert_eq!(resumed.status, StatusCode::SEE_OTHER, "{resumed:?}");
    done(&server, "buy", ".order-1.pay", Some(json!({}))).await;
    done(&server, "buy", ".order-1.ship", Some(json!({}))).await;
    until(&server, &run, SlotState::Succeeded).await;
    let board = page(&server, "/ui").await;
    assert_says(&board, &["Flows buy S succeeded The latest run, order-1 , of buy : check S succeeded"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_was_handled_is_recovered() {
    let server = waiting("order-3").await;
    let base = "/ui/workflows/buy/slots/.order-3";
    form(&server, &format!("{base}/signal"), "signal=approval", "same-origin").await;
    done(&server, "buy", ".order-3.pay", None).await;
    done(&server, "buy", ".order-3.sorry", Some(json!({}))).await;
    until(&server, &slot("buy", ".order-3"), SlotState::Succeeded).await;
    let run = page(&server, base).await;
    assert_says(&run, &["S succeeded (recovered): the failure of pay was handled.", "approval without a payload"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn items_of_a_list_are_counted_and_a_step_lists_them() {
    let server = started("lists", "one").await;
    done(&server, "lists", ".one.list", Some(json!({ "files": ["a", "b", "c"] }))).await;
    for (number, good) in [true, false, true].into_iter().enumerate() {
        done(&server, "lists", &format!(".one.each:{number}"), good.then(|| json!({}))).await;
    }
    until(&server, &slot("lists", ".one"), SlotState::Failed).await;
    let run = page(&server, "/ui/workflows/lists/slots/.one").await;
    assert_says(&run, &["3 items S succeeded 2 F failed 1", "all items"]);
    let step = page(&server, "/ui/workflows/lists/slots/.one.each").await;
    assert_says(&step, &["Items 3 items: S succeeded 2 F failed 1", "item 1 F failed"]);
    let after = page(&server, "/ui/workflows/lists/slots/.one.each?items=1").await;
    assert_says(&after, &["item 2 S succeeded"]);
    assert!(!after.contains(">item 1<"), "{after}");
    let item = page(&server, "/ui/workflows/lists/slots/.one.each:1").await;
    assert_says(&item, &["An item of the step each of the run one", "item b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_step_gave_is_shown_without_secrets() {
    let server = waiting("order-2").await;
    let step = page(&server, "/ui/workflows/buy/slots/.order-2.check").await;
    assert_says(&step, &["What run 1 was given and gave", "total 7", "<b>adds</b> up"]);
    assert!(!step.contains("hunter2<"), "{step}");
    assert_harmless(&step);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_with_times_unfolds_on_the_board() {
    let server = Server::start(
        r#"kelos.flow("hours", { schedule: "hourly", startTime: "2015-09-13T15:00Z", catchUp: "all", steps: {
            load: { shell: "true" },
            tell: { needs: "load", shell: "true", onError: "sorry" },
            sorry: { shell: "true" },
        } });"#,
    )
    .await;
    let key = "2015-09-13T15:00:00.000Z";
    server.step(NOW).await;
    let run = slot("hours", key);
    until(&server, &run, SlotState::Running).await;
    done(&server, "hours", &format!(".{key}.load"), Some(json!({ "rows": 7 }))).await;
    until(&server, &slot("hours", &format!(".{key}.tell")), SlotState::Running).await;
    let folded = page(&server, "/ui?columns=6").await;
    assert!(folded.contains(r#"href="/ui?zoom=60&amp;columns=6&amp;unfold=hours" aria-expanded="false""#), "{folded}");
    assert!(!folded.contains("row step"), "{folded}");
    let unfolded = page(&server, "/ui?columns=6&unfold=hours").await;
    let (_, steps) = unfolded.split_once("row step").unwrap();
    let at = |title: &str| steps.find(title).unwrap_or_else(|| panic!("no \"{title}\" in {steps}"));
    assert!(at("load of 2015-09-13T15:00Z: succeeded") < at("tell of 2015-09-13T15:00Z: running"));
    assert!(steps.contains(&format!("/ui/workflows/hours/slots/.{key}.load")), "{steps}");
    // A step that no run has opened has its row all the same.
    assert!(at("tell of") < at(">sorry<"));
    assert!(unfolded.contains(r#"href="/ui?zoom=60&amp;columns=6" aria-expanded="true""#), "{unfolded}");
    assert_harmless(&page(&server, "/ui?unfold=hours,gone,%3Cb%3E,,%20").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_done_again_by_its_page() {
    let server = waiting("order-4").await;
    let base = "/ui/workflows/buy/slots/.order-4";
    assert!(!page(&server, &format!("{base}.check")).await.contains("Do this step again"));
    form(&server, &format!("{base}/kill"), "reason=enough", "same-origin").await;
    until(&server, &slot("buy", ".order-4"), SlotState::Killed).await;
    let step = page(&server, &format!("{base}.check")).await;
    assert_says(&step, &["Do this step again…", "In the place of what it was given: customer."]);
    assert_harmless(&step);
    assert!(!page(&server, &format!("{base}.approve")).await.contains("Do this step again"), "it only waits");
    let fields = "name=again-1&arguments=customer%3Dbob&reason=a+try";
    let reply = form(&server, &format!("{base}.check/repeat"), fields, "same-origin").await;
    let there = "/ui/workflows/buy/slots/.again-1";
    assert_eq!((reply.status, reply.header("location")), (StatusCode::SEE_OTHER, there), "{reply:?}");
    done(&server, "buy", ".again-1.check", Some(json!({}))).await;
    until(&server, &slot("buy", ".again-1"), SlotState::Succeeded).await;
    let run = page(&server, there).await;
    assert_says(&run, &["Does the step check of the run order-4 again, and nothing else.", "ship not in this run"]);
    assert!(run.contains(&format!("href=\"{base}.check\"")) && run.contains(&format!("href=\"{base}\"")), "{run}");
    assert_harmless(&run);
    let step = page(&server, &format!("{there}.check")).await;
    assert_says(&step, &["customer bob"]);
    let bad = form(&server, &format!("{base}.check/repeat"), "arguments=custmer%3Dbob", "same-origin").await;
    assert_says(&bad.text, &["is no input of the step, did you mean customer?"]);
    let bad = form(&server, &format!("{base}.check/repeat"), "name=a+b", "same-origin").await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_with_names_stand_in_the_order_of_their_starts() {
    let server = started("lists", "zebra").await;
    done(&server, "lists", ".zebra.list", None).await;
    until(&server, &slot("lists", ".zebra"), SlotState::Failed).await;
    form(&server, "/ui/schedules/lists/fire", "name=apple&reason=next", "same-origin").await;
    until(&server, &slot("lists", ".apple"), SlotState::Running).await;
    let (first, second) = ("/ui/workflows/lists/slots/.zebra", "/ui/workflows/lists/slots/.apple");
    let (before, after) = (format!("rel=\"prev\" href=\"{first}\""), format!("rel=\"next\" href=\"{second}\""));
    let (zebra, apple) = (page(&server, first).await, page(&server, second).await);
    assert!(zebra.contains(&after) && !zebra.contains("rel=\"prev\""), "{zebra}");
    assert!(apple.contains(&before) && !apple.contains("rel=\"next\""), "{apple}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_output_of_a_failed_run_is_that_of_the_step_that_failed() {
    let server = started("lists", "one").await;
    done(&server, "lists", ".one.list", None).await;
    until(&server, &slot("lists", ".one"), SlotState::Failed).await;
    let problems = page(&server, "/ui/problems").await;
    assert!(problems.contains("href=\"/ui/workflows/lists/slots/.one.list#log\""), "{problems}");
    assert_says(&problems, &["Resume…"]);
}
