//! The pages of event schedules, their programs, their slots and the facts that they wait for.

use std::sync::Arc;

use axum::http::StatusCode;
use kelos_core::{CreateSchedules, Request, Tell};
use kelos_engine::Pace;
use kelos_model::time::Window;
use kelos_model::time::Zone;
use kelos_model::workflow::{EventKeys, Job, Keys};
use kelos_model::{Actor, Constraint, Fact, Gate, Occurrence, SlotState, Trigger, Workflow, WorkflowId};

use crate::pages::{assert_harmless, assert_says, form, page, words};
use crate::support::{Server, Setup, workflow};

const HOSTILE: &str = "<img src=x onerror=alert(1)>";

fn name(id: &str) -> WorkflowId {
    WorkflowId::new(id).unwrap()
}

fn partitions(dataset: &str, count: u32) -> Trigger {
    Trigger::Partitions { dataset: dataset.into(), count }
}

/// A schedule of the program `p`, in the project `App`.
fn schedule(id: &str, trigger: Trigger, gates: Vec<Gate>) -> Workflow {
    let properties = [("day".to_owned(), "today".to_owned()), ("password".to_owned(), "hunter2".to_owned())];
    let keys = EventKeys { enabled: true, properties: properties.into(), ..EventKeys::new(id, name("p")) };
    let job = Job::new("oozie", serde_json::Map::new());
    let constraints = gates.into_iter().map(Constraint::new).collect();
    let id = name(&format!("App.{id}"));
    Workflow {
        project: "App".to_owned(),
        trigger,
        constraints,
        ..Workflow::keyed(id, Keys::Events(Box::new(keys)), job)
    }
}

/// A server with a program, which has slots of its own only later.
async fn server(schedules: Vec<Workflow>) -> Server {
    let script = workflow("p", "startTime: '2015-09-14T00:00Z'");
    let server = Server::with(Setup { pace: Pace::ByItself, ..Setup::default() }, &script).await;
    ask(&server, CreateSchedules { new: schedules.into_iter().map(Arc::new).collect(), reason: None }).await;
    server
}

async fn ask<R: Request>(server: &Server, request: R) -> R::Answer {
    server.node.handle().ask(&Actor::person("ann"), request).await.unwrap()
}

async fn tell(server: &Server, dataset: &str, count: u32) {
    let what = Occurrence::Partitions { dataset: dataset.into(), count, keys: vec!["2015/09".to_owned()] };
    ask(server, Tell::of(vec![Fact { source: "loader".into(), key: None, what }])).await;
}

fn night() -> Gate {
    Gate::Window(Window::new("22:00", "06:00", Zone::utc()).unwrap())
}

#[tokio::test]
async fn all_schedules_stand_by_project_and_say_how_far_they_are() {
    let off = {
        let mut off = schedule("Off", partitions("b", 1), vec![Gate::Concurrency(1)]);
        if let Keys::Events(keys) = &mut off.keys {
            keys.enabled = false;
        }
        off
    };
    let server = server(vec![schedule("Data", partitions("a", 4), Vec::new()), off]).await;
    tell(&server, "a", 3).await;
    let list = page(&server, "/ui/schedules").await;
    let expected = [
        "2 event schedules, 1 of them enabled.",
        "App Schedule Trigger",
        "Data enabled runs p partitions(a, 4)",
        "W waiting 3 of 4 partitions of a",
        "Off disabled runs p partitions(b, 1) concurrency(1)",
    ];
    assert_says(&list, &expected);
    assert!(list.contains("value=\"0.750\" max=\"1\""), "{list}");
    let found = page(&server, "/ui/schedules?find=OFF&only=").await;
    assert!(!words(&found).contains("partitions(a, 4)"), "{found}");
    assert_says(&page(&server, "/ui/schedules?only=enabled&find=off").await, &["None is like that."]);
}

#[tokio::test]
async fn people_enable_disable_and_fire_by_forms() {
    let server = server(vec![schedule("S", partitions("a", 4), vec![night()])]).await;
    tell(&server, "a", 1).await;
    let act = |action: &'static str| format!("/ui/schedules/App.S/{action}");
    let foreign = form(&server, &act("disable"), "", "cross-site").await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    let done = form(&server, &act("disable"), "back=list", "same-origin").await;
    assert_eq!((done.status, done.header("location")), (StatusCode::SEE_OTHER, "/ui/schedules"));
    let own = page(&server, "/ui/workflows/App.S").await;
    let expected = [
        "disabled Facts that come don’t count.",
        "Pending Nothing is pending: disabled since 2015-09-13T15:01Z.",
        "Recent decisions",
        "the schedule was disabled by web",
        "1 partition of a",
        "Constraints window(22:00-06:00) : only within 22:00-06:00 UTC; otherwise it waits",
        "password ••••••",
    ];
    assert_says(&own, &expected);
    assert_eq!(form(&server, &act("disable"), "", "same-origin").await.status, StatusCode::CONFLICT);
    let done = form(&server, &act("enable"), "", "same-origin").await;
    assert_eq!(done.header("location"), "/ui/workflows/App.S");
    let fired = form(&server, &act("fire"), "arguments=day%3Dmonday&unconstrained=1&reason=now", "same-origin").await;
    assert_eq!(fired.status, StatusCode::SEE_OTHER, "{fired:?}");
    let slot = page(&server, fired.header("location")).await;
    assert_says(&slot, &["Fired by hand", "Arguments of its runs", "day monday", "password ••••••"]);
    assert!(!slot.contains("hunter2"));
    let wrong = form(&server, &act("fire"), "arguments=monday", "same-origin").await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    assert_says(&wrong.text, &["\"monday\" is no argument, expected NAME=VALUE, one in each line."]);
    assert_eq!(form(&server, &act("dance"), "", "same-origin").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_held_slot_says_which_gate_holds_it() {
    let gates = vec![night(), Gate::SinceLastRun(3_600_000)];
    let server = server(vec![schedule("S", partitions("a", 1), gates)]).await;
    tell(&server, "a", 1).await;
    let held = "held since 2015-09-13T15:01Z: The window 22:00-06:00 UTC is closed, and opens at 2015-09-13T22:00Z";
    let own = page(&server, "/ui/workflows/App.S").await;
    assert_says(&own, &["H held The window 22:00-06:00 UTC is closed", "expires at 2015-09-14T15:01Z, in 1 d"]);
    let slot = page(&server, "/ui/workflows/App.S/slots/2015-09-13T15:01Z").await;
    let expected = [
        held,
        "Why ✓ 1 of 1 partitions of a",
        "Constraints … The window 22:00-06:00 UTC is closed",
        "✓ No run of p has succeeded yet",
        "What it collected 2015-09-13T15:01Z a new partition of a fact",
    ];
    assert_says(&slot, &expected);
    assert!(!words(&slot).contains("In the way"), "the constraints have said it");
    assert_says(&page(&server, "/ui/schedules").await, &["H held The window"]);
}

#[tokio::test]
async fn a_program_shows_its_schedules_and_runs_of_any_origin() {
    let after = Trigger::Ended { program: name("p"), states: vec![SlotState::Succeeded] };
    let mut next = schedule("Next", after, Vec::new());
    if let Keys::Events(keys) = &mut next.keys {
        keys.program = name("q");
    }
    let script = ["p", "q"].map(|id| workflow(id, "startTime: '2015-09-14T00:00Z'")).concat();
    let server = Server::with(Setup { pace: Pace::ByItself, ..Setup::default() }, &script).await;
    let all = [schedule("S", partitions("a", 1), Vec::new()), next].map(Arc::new).to_vec();
    ask(&server, CreateSchedules { new: all, reason: None }).await;
    tell(&server, "a", 1).await;
    let slot = crate::support::moment("App.S", "2015-09-13T15:01Z");
    server.until_state(&slot, SlotState::Running).await;
    server.end(&slot, 1, true).await;
    let program = page(&server, "/ui/workflows/p").await;
    let expected = [
        "Event schedules that run it",
        "S enabled",
        "Its latest runs",
        "S succeeded 2015-09-13T15:01Z #1 App.S",
        "Downstream App.Next",
    ];
    assert_says(&program, &expected);
    let next = page(&server, "/ui/workflows/App.Next/slots/2015-09-13T15:01Z").await;
    assert_says(&next, &["What it collected 2015-09-13T15:01Z a run of p succeeded ( App.S@2015-09-13T15:01Z#1 )"]);
    let own = page(&server, "/ui/workflows/App.S/slots/2015-09-13T15:01Z").await;
    assert_says(&own, &["What the ends of its runs led to App.Next@2015-09-13T15:01Z"]);
    let graph = page(&server, "/ui/graph").await;
    assert_says(&graph, &["App.S runs p", "App.Next waits for the ends of runs of p"]);
}

#[tokio::test]
async fn what_goes_round_for_ever_is_warned_of() {
    let own = Trigger::Ended { program: name("p"), states: vec![SlotState::Succeeded] };
    let server = server(vec![schedule("S", own, Vec::new())]).await;
    let own = page(&server, "/ui/workflows/App.S").await;
    assert_says(&own, &["warning It waits for the end of its own program, which is an endless loop"]);
}

#[tokio::test]
async fn a_program_has_no_slots_to_be_missed_in_the_graph() {
    let script = "program('q', celos.commandExternalService({ command: ['true'] }));";
    let server = Server::with(Setup { pace: Pace::ByItself, ..Setup::default() }, script).await;
    let list = page(&server, "/ui/graph?as=list").await;
    assert!(words(&list).contains("a program") && !words(&list).contains("no slots"), "{}", words(&list));
    let graph = page(&server, "/ui/graph").await;
    assert!(graph.contains("a program, which has slots only where people start it"), "{graph}");
}

#[tokio::test]
async fn facts_are_listed_with_what_they_led_to() {
    let server = server(vec![schedule("S", partitions("a", 2), Vec::new())]).await;
    assert_says(&page(&server, "/ui/facts").await, &["No facts have been published yet."]);
    tell(&server, "a", 1).await;
    tell(&server, HOSTILE, 2).await;
    tell(&server, "a", 1).await;
    let facts = page(&server, "/ui/facts").await;
    assert_harmless(&facts);
    let expected = [
        "a new partition of a 2015/09 loader App.S@2015-09-13T15:01Z trigger met",
        "2 new partitions of <img src=x onerror=alert(1)> 2015/09 loader no schedule waited for it",
        "a new partition of a 2015/09 loader App.S@2015-09-13T15:01Z collected it",
    ];
    assert_says(&facts, &expected);
    let what = |id: &str, run: Option<&str>| Occurrence::Ended {
        program: name(id),
        state: SlotState::Failed,
        run: run.map(str::to_owned),
        arguments: Default::default(),
        outputs: Default::default(),
    };
    let ended = [what("Nope", Some("Nope@2015-09-13T15:01Z#1")), what("p", None)];
    let facts = ended.map(|what| Fact { source: "loader".into(), key: None, what });
    ask(&server, Tell::of(facts.to_vec())).await;
    let facts = page(&server, "/ui/facts").await;
    assert_says(&facts, &["a run of Nope failed (Nope@2015-09-13T15:01Z#1)", "a run of p failed"]);
    assert!(
        facts.contains("/ui/workflows/p\"") && !facts.contains("/ui/workflows/Nope"),
        "only what there is has a page"
    );
    let wrong = server.get("/ui/facts?before=x").await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
}
