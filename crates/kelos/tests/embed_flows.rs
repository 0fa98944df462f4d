//! Flows, in the order of Cuttle's document, with what its tests assert.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kelos::SlotState;
use kelos::embed::{
    Calendar, Context, Failure, FlowRun, InPeriod, Part, Period, Project, Rehearsal, Retry, SignalError, Step, flow,
    signal, step,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const START: &str = "2026-03-28T00:00:00Z";
const MINUTE: Duration = Duration::from_secs(60);

async fn nothing(_: Context, (): (), (): ()) -> Result<(), String> {
    Ok(())
}

/// Gives what it is made with.
async fn give(_: Context, (): (), given: Value) -> Result<Value, String> {
    Ok(given)
}

async fn refuse(_: Context, (): (), (): ()) -> Result<(), String> {
    Err("no money".to_owned())
}

#[track_caller]
fn done(id: &str) -> Step {
    step(id, nothing).with(())
}

#[track_caller]
fn gives(id: &str, given: Value) -> Step {
    step(id, give).with(given)
}

#[track_caller]
fn fails(id: &str) -> Step {
    step(id, refuse).with(())
}

#[track_caller]
fn rehearse(part: impl Into<Part>) -> Rehearsal {
    Rehearsal::at(START, Project::new("flows", "1").add(flow("buy", part))).unwrap()
}

/// Plays a run of a flow to its end.
#[track_caller]
fn play(part: impl Into<Part>) -> FlowRun {
    let mut rehearsal = rehearse(part);
    rehearsal.flow("buy").start("a", &()).unwrap();
    pass(&mut rehearsal, 24 * 60);
    look(&mut rehearsal)
}

#[track_caller]
fn look(rehearsal: &mut Rehearsal) -> FlowRun {
    rehearsal.flow("buy").look("a").unwrap()
}

/// Lets minutes pass.
fn pass(rehearsal: &mut Rehearsal, minutes: u32) {
    let until = rehearsal.now() + MINUTE * minutes;
    rehearsal.run_until(&until.to_string()).unwrap();
}

/// The steps in the order in which they were started.
fn order(rehearsal: &Rehearsal) -> Vec<String> {
    let step = |run: &kelos::RunId| run.slot.key.step().map(|step| step.within_run().to_owned());
    rehearsal.started().iter().filter_map(|(_, run)| step(run)).collect()
}

fn states(run: &FlowRun) -> Vec<String> {
    run.steps.iter().map(|step| format!("{} {}", step.name, step.state)).collect()
}

fn inputs(run: &FlowRun, step: &str) -> Value {
    Value::Object(run.step(step).unwrap_or_else(|| panic!("no step {step}: {:?}", states(run))).inputs.clone())
}

fn mistakes(part: impl Into<Part>) -> Vec<String> {
    let project = Project::new("flows", "1").add(flow("buy", part));
    let found = project.check().err().into_iter().flat_map(|mistakes| mistakes.0);
    found.map(|one| one.message.replace(file!(), "FILE")).collect()
}

/// Runs a test on a runtime of its own.
fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

// "Simple example"

#[test]
fn both_branches_run_in_parallel_and_the_last_step_after_both() {
    let first = done("job1") >> done("job2");
    let second = done("job3") >> done("job4");
    let mut rehearsal = rehearse((first & second) >> done("jobfinal"));
    for step in ["job1", "job3"] {
        rehearsal.flow("buy").takes(step, MINUTE).unwrap();
    }
    rehearsal.flow("buy").start("a", &()).unwrap();
    assert_eq!(order(&rehearsal), ["job1", "job3"]);
    pass(&mut rehearsal, 1);
    let run = look(&mut rehearsal);
    assert_eq!(run.state, SlotState::Succeeded);
    assert_eq!(order(&rehearsal), ["job1", "job3", "job2", "job4", "jobfinal"]);
    assert_eq!(states(&run), ["job1", "job2", "job3", "job4", "jobfinal"].map(|step| format!("{step} succeeded")));
}

#[test]
fn the_last_step_does_not_run_unless_both_branches_succeeded() {
    let run = play(((done("job1") >> done("job2")) & (done("job3") >> fails("job4"))) >> done("jobfinal"));
    assert_eq!(run.state, SlotState::Failed);
    assert_eq!(states(&run), ["job1 succeeded", "job2 succeeded", "job3 succeeded", "job4 failed"]);
    assert_eq!(run.reason.as_deref(), Some("step job4 failed: no money"));
}

#[test]
fn parts_stand_in_several_flows() {
    let shared = done("fetch") >> done("load");
    let project = Project::new("flows", "1")
        .add(flow("one", shared.clone() >> done("report")))
        .add(flow("two", done("ask") >> shared));
    let mut rehearsal = Rehearsal::at(START, project).unwrap();
    for id in ["one", "two"] {
        rehearsal.flow(id).start("a", &()).unwrap();
        assert!(rehearsal.flow(id).look("a").unwrap().is_success());
    }
    assert_eq!(order(&rehearsal), ["fetch", "load", "report", "ask", "fetch", "load"]);
}

#[test]
fn a_step_that_stands_twice_is_one_step() {
    let last = done("last");
    let part = (done("a") >> (done("b") & last.clone())) & (done("c") >> last);
    let run = play(part);
    assert_eq!(run.steps.len(), 4);
    assert_eq!(run.step("last").unwrap().attempts, 1);
}

#[test]
fn a_prefix_makes_another_part_of_the_same_steps() {
    let load = done("fetch") >> done("load").or_else(done("sorry"));
    let run = play(load.clone().prefix("eu-") & load.prefix("us-"));
    assert_eq!(states(&run), ["eu-fetch", "eu-load", "us-fetch", "us-load"].map(|step| format!("{step} succeeded")));
}

// Tests 27 and 28, and mistakes

#[test]
fn flows_of_any_shape_are_right_unless_they_have_circles() {
    let chain = ["a", "b", "c"].map(done).into_iter().fold(Part::default(), Part::then);
    for part in [Part::default(), done("alone").into(), chain] {
        assert!(play(part).is_success());
    }
    let (a, b, c) = (done("a"), done("b"), done("c"));
    let circle = (a.clone() >> b.clone() >> c.clone()) & (c >> a.clone());
    assert_eq!(mistakes(circle), ["flow \"buy\", step \"a\": it waits for itself: a -> c -> b -> a"]);
    assert_eq!(mistakes(b.clone() >> b), ["flow \"buy\", step \"b\": it waits for itself: b -> b"]);
}

#[test]
fn all_mistakes_are_said_at_once_with_their_lines() {
    let line = line!() + 1;
    let (one, other, odd) = (done("pay"), done("pay"), done("a step"));
    let circle = done("x");
    let part = (one & other & odd) >> (circle.clone() >> circle.at_once()).or_else(done("sorry").within(MINUTE));
    let project = Project::new("flows", "1").add(flow("buy", part)).add(flow("b/c", Part::default()));
    let found = project.check().unwrap_err().0;
    let words: Vec<String> = found
        .iter()
        .map(|one| format!("{}: {}", one.line - line, one.message.replace(&format!("{}:{line}", file!()), "FILE:LINE")))
        .collect();
    let expected = [
        "0: flow \"buy\", step \"pay\": its id is taken by the step of FILE:LINE",
        "0: flow \"buy\", step \"a step\": its id is refused: \"a step\" can't name a step: expected at most 200 letters, digits, _ or -, such as load-orders",
        "1: flow \"buy\", step \"x\": its id is taken by the step of FILE:LINE",
        "1: flow \"buy\", step \"x\": it starts at once although it handles no failure",
        "2: flow \"buy\", step \"sorry-from-x\": `within` is the time for a signal, and it waits for none",
        "3: flow \"b/c\": its id is refused: workflow id can't contain slash: \"b/c\"",
    ];
    assert_eq!(
        words,
        expected.map(|one| one.replace(
            "x\": its id is taken by the step of FILE:LINE",
            &format!("x\": its id is taken by the step of {}:{}", file!(), line + 1)
        ))
    );
    assert!(found[0].hint.as_deref().is_some_and(|hint| hint.contains("prefix")), "{found:?}");
}

#[test]
fn limits_that_say_nothing_are_mistakes() {
    let list = done("list").at_a_time(3);
    let none = done("none").for_each("files").at_a_time(0);
    let signal = signal::<()>("go").timeout(MINUTE).retry(Retry::fixed(MINUTE));
    let wrong = done("wrong").inputs(json!([1]));
    let words = mistakes(list & none & signal & wrong & done("zero").timeout(Duration::ZERO));
    let expected = [
        "step \"list\": `at_a_time` and `at_most` limit the items of a list, and it has none",
        "step \"none\": `at_a_time(0)` lets no item run",
        "step \"go\": its timeout limits attempts, and a wait for a signal has none",
        "step \"go\": its retries and platforms are those of attempts, and a wait for a signal has none",
        "step \"wrong\": its inputs are [1], expected an object",
        "step \"zero\": its timeout is zero, so every attempt fails",
    ];
    let mut expected = expected.map(|one| format!("flow \"buy\", {one}"));
    let mut words = words;
    words.sort();
    expected.sort();
    assert_eq!(words, expected);
}

// "Path"

#[test]
fn without_an_error_step_a_failure_is_the_end() {
    let mut rehearsal = rehearse((fails("job1") >> done("job2")) & (done("job3") >> done("job4")));
    rehearsal.flow("buy").takes("job3", MINUTE).unwrap();
    rehearsal.flow("buy").start("a", &()).unwrap();
    // The steps that do not depend on it go on to their end.
    assert_eq!(look(&mut rehearsal).state, SlotState::Running);
    pass(&mut rehearsal, 1);
    let run = look(&mut rehearsal);
    assert_eq!((run.state, run.recovered.len()), (SlotState::Failed, 0));
    assert_eq!(states(&run), ["job1 failed", "job3 succeeded", "job4 succeeded"]);
    assert_eq!(run.step("job1").unwrap().error.as_deref(), Some("no money"));
}

#[test]
fn an_error_step_waits_for_those_that_run_and_at_once_does_not() {
    for (at_once, started) in [(false, vec!["pay", "slow"]), (true, vec!["pay", "slow", "sorry-from-pay"])] {
        let sorry = if at_once { done("sorry").at_once() } else { done("sorry") };
        let mut rehearsal = rehearse(fails("pay").or_else(sorry) & done("slow"));
        rehearsal.flow("buy").takes("slow", MINUTE).unwrap();
        rehearsal.flow("buy").start("a", &()).unwrap();
        pass(&mut rehearsal, 0);
        assert_eq!(order(&rehearsal), started);
        pass(&mut rehearsal, 1);
        let run = look(&mut rehearsal);
        assert_eq!((run.state, run.recovered), (SlotState::Succeeded, vec!["pay".to_owned()]));
        assert_eq!(order(&rehearsal), ["pay", "slow", "sorry-from-pay"]);
    }
}

#[test]
fn each_step_has_an_error_step_of_its_own_or_a_common_one() {
    let sorry = done("errorJob");
    let ids = |part: Part| -> Vec<String> {
        let project = Project::new("flows", "1").add(flow("buy", part));
        let flow = project.check().unwrap().remove(0).flow.unwrap();
        flow.steps.iter().map(|step| step.name.to_string()).collect()
    };
    let own = done("job1").or_else(done("errorJob1")) >> done("job2").or_else(done("errorJob2"));
    assert_eq!(ids(own), ["job1", "errorJob1-from-job1", "job2", "errorJob2-from-job2"]);
    let common = done("job1").or_else(sorry.clone()) >> done("job2").or_else(sorry.clone());
    assert_eq!(ids(common), ["job1", "errorJob-from-job1", "job2", "errorJob-from-job2"]);
    let of_both = (done("job1") & done("job2")).or_else(sorry.clone());
    assert_eq!(ids(of_both), ["job1", "job2", "errorJob-from-job1-job2"]);
    let many = (0..60).map(|at| done(&format!("step{at}"))).fold(Part::default(), Part::and);
    assert_eq!(ids(many.or_else(sorry)).last().unwrap(), "errorJob-from-step0-and-59-more");
}

#[test]
fn an_error_step_of_a_group_handles_the_failure_of_any_step_of_it() {
    for failing in 0..3 {
        let steps = ["a", "b", "c"].into_iter().enumerate();
        let steps = steps.map(|(at, id)| if at == failing { fails(id) } else { done(id) });
        let group = steps.fold(Part::default(), Part::then);
        let run = play(group.or_else(done("sorry")) >> done("next"));
        assert!(run.is_success(), "{run:?}");
        assert_eq!(run.recovered.len(), 1);
        assert_eq!(inputs(&run, "sorry-from-c")["failed"], ["a", "b", "c"][failing]);
        assert!(run.step("next").is_none(), "what comes after it does not run");
    }
}

#[test]
fn a_failure_that_is_handled_within_a_group_is_handled_there() {
    let within = |sorry: Step| (fails("pay").or_else(sorry) & done("ship")).or_else(done("worse"));
    let run = play(within(done("sorry")));
    assert_eq!((run.state, run.recovered.clone()), (SlotState::Succeeded, vec!["pay".to_owned()]));
    assert!(run.step("worse-from-pay-ship").is_none());
    let run = play(within(fails("sorry")));
    assert_eq!(run.recovered, ["pay", "sorry-from-pay"]);
    assert_eq!(inputs(&run, "worse-from-pay-ship")["failed"], "sorry-from-pay");
}

#[test]
fn error_steps_may_be_a_part() {
    let run = play(fails("pay").or_else(done("cancel") >> done("tell")) >> done("ship"));
    assert_eq!(run.recovered, ["pay"]);
    assert_eq!(states(&run), ["pay failed", "cancel-from-pay succeeded", "tell-from-pay succeeded"]);
}

// "Scheduler": test 30

#[test]
fn all_shapes_run_to_their_end() {
    let d = |n: u32| done(&n.to_string());
    let shapes: [Part; 4] = [
        (d(0) & d(9)) >> d(1),
        d(0) >> (d(1) & d(2)) >> (d(3) & d(4)),
        (((d(0) & d(1)) >> d(2)) & ((d(3) & d(4)) >> d(5))) >> d(6),
        d(0) >> ((d(1) >> (d(2) & d(3))) & (d(4) >> (d(5) & d(6)))),
    ];
    for part in shapes {
        let mut rehearsal = rehearse(part);
        for step in ["0", "1", "9"] {
            rehearsal.flow("buy").takes(step, Duration::from_secs(3)).unwrap();
        }
        rehearsal.flow("buy").start("a", &()).unwrap();
        pass(&mut rehearsal, 1);
        let run = look(&mut rehearsal);
        assert!(run.is_success() && run.steps.iter().all(|step| step.state == SlotState::Succeeded), "{run:?}");
        assert_eq!(order(&rehearsal).len(), run.steps.len(), "each once");
    }
}

// "Note 1", test 34: resumed from the failed step, with what the others gave

#[derive(Debug, Deserialize)]
struct Last {
    missing: String,
    day: String,
}

#[test]
fn a_run_is_resumed_where_it_failed() {
    let tries: Arc<Mutex<Vec<String>>> = Arc::default();
    let last = step("last", async |_: Context, given: Last, tries: Arc<Mutex<Vec<String>>>| {
        let mut tries = tries.lock().unwrap();
        tries.push(format!("{} {}", given.missing, given.day));
        if tries.len() == 1 { Err("not yet") } else { Ok(tries.len()) }
    });
    let part = gives("first", json!({ "missing": "found" })) >> last.with(tries.clone());
    let mut rehearsal = rehearse(part);
    rehearsal.flow("buy").start("a", &json!({ "day": "monday" })).unwrap();
    let run = look(&mut rehearsal);
    assert_eq!((run.state, run.reason.as_deref()), (SlotState::Failed, Some("step last failed: not yet")));
    rehearsal.flow("buy").resume("a").unwrap();
    let run = look(&mut rehearsal);
    assert_eq!((run.state, run.output::<u32>().unwrap()), (SlotState::Succeeded, 2));
    assert_eq!(order(&rehearsal), ["first", "last", "last"]);
    assert_eq!(*tries.lock().unwrap(), ["found monday", "found monday"]);
    let refused = rehearsal.flow("buy").resume("a").unwrap_err().to_string();
    assert!(refused.starts_with("all steps of buy@a have succeeded"), "{refused}");
    // Test 32: from a step on, although all is well.
    rehearsal.flow("buy").resume_from("a", "last").unwrap();
    assert_eq!(order(&rehearsal), ["first", "last", "last", "last"]);
    let refused = rehearsal.flow("buy").resume_from("a", "lst").unwrap_err().to_string();
    assert!(refused.contains("last"), "{refused}");
}

#[test]
fn a_flow_with_retries_resumes_by_itself() {
    let project = flow("buy", done("a") >> done("b")).retry(Retry::fixed(MINUTE).times(3));
    let mut rehearsal = Rehearsal::at(START, Project::new("flows", "1").add(project)).unwrap();
    rehearsal.flow("buy").fail("a", "b", 2).unwrap();
    rehearsal.flow("buy").start("a", &()).unwrap();
    assert_eq!(look(&mut rehearsal).state, SlotState::Backoff);
    pass(&mut rehearsal, 10);
    assert!(look(&mut rehearsal).is_success());
    assert_eq!(order(&rehearsal), ["a", "b", "b", "b"]);
}

#[test]
fn a_step_has_retries_and_a_timeout_of_its_own() {
    let slow = step("slow", async |context: Context, (): (), ()| {
        context.park("for ever", std::future::pending::<()>()).await;
        Ok::<_, String>(())
    });
    let part = done("pay").retry(Retry::fixed(MINUTE).times(3)) >> slow.with(()).timeout(MINUTE);
    let mut rehearsal = rehearse(part);
    rehearsal.flow("buy").fail("a", "pay", 2).unwrap();
    rehearsal.flow("buy").start("a", &()).unwrap();
    pass(&mut rehearsal, 10);
    let run = look(&mut rehearsal);
    assert_eq!(run.step("pay").unwrap().attempts, 3);
    assert_eq!(run.step("slow").unwrap().error.as_deref(), Some("timed out after 60 s"));
}

/// "Note 2": a panic and an error are failures, whose reasons are kept.
#[test]
fn panics_and_errors_fail_the_step_and_say_why() {
    let panics = step("panics", async |_: Context, (): (), ()| -> Result<(), String> { panic!("index {} is out", 7) });
    let run = play(panics.with(()) & fails("fails"));
    assert_eq!(run.step("panics").unwrap().error.as_deref(), Some("panicked: index 7 is out"));
    let expected = "step panics failed: panicked: index 7 is out; so did fails";
    assert_eq!(run.reason.as_deref(), Some(expected));
}

// "Signals", test 35

#[derive(Debug, Serialize, Deserialize)]
struct Approval {
    by: String,
}

#[test]
fn each_run_gets_its_own_signal() {
    let said = step("step-two", async |_: Context, given: Value, ()| {
        Ok::<_, String>(json!({ "said": format!("{} passed to step three", given["step_one_bis"]["aud"]) }))
    });
    let bis = signal::<Value>("step-one-bis");
    let first = gives("step-one", json!({})).inputs(json!({ "audience": "step is one" }));
    let mut rehearsal = rehearse((first & bis) >> said.with(()).inputs(json!({ "test": "final test" })));
    let second = Duration::from_secs(1);
    let mut buy = rehearsal.flow("buy");
    for run in ["one", "two"] {
        buy.start(run, &()).unwrap();
    }
    buy.signal_after("two", "step-one-bis", &"second", second * 4).unwrap();
    buy.signal_after("one", "step-one-bis", &"first", second * 8).unwrap();
    rehearsal.run_until("2026-03-28T00:00:05Z").unwrap();
    let states = |rehearsal: &mut Rehearsal| ["one", "two"].map(|run| rehearsal.flow("buy").look(run).unwrap().state);
    assert_eq!(states(&mut rehearsal), [SlotState::Running, SlotState::Succeeded]);
    rehearsal.run_until("2026-03-28T00:00:09Z").unwrap();
    assert_eq!(states(&mut rehearsal), [SlotState::Succeeded; 2]);
    for (run, word) in [("one", "first"), ("two", "second")] {
        let run = rehearsal.flow("buy").look(run).unwrap();
        assert_eq!(inputs(&run, "step-two"), json!({ "test": "final test", "step_one_bis": word }));
    }
}

#[test]
fn a_signal_may_come_early_or_never_and_is_of_its_type() {
    let approval = || signal::<Approval>("approval").within(MINUTE * 60);
    let mut rehearsal = rehearse(done("check") >> approval() >> gives("ship", json!(1)));
    let mut buy = rehearsal.flow("buy");
    buy.signal("a", "approval", &Approval { by: "Ann".to_owned() }).unwrap();
    buy.start("a", &()).unwrap();
    let run = buy.look("a").unwrap();
    assert_eq!(inputs(&run, "ship"), json!({ "by": "Ann" }));
    let refused = buy.signal("b", "approval", &json!({ "by": 3 })).unwrap_err().to_string();
    assert_eq!(refused, "read the signal \"approval\": at by: invalid type: integer `3`, expected a string");
    let refused = buy.signal("b", "approvl", &json!({ "by": "Ann" })).unwrap_err().to_string();
    assert!(refused.contains("did you mean approval?"), "{refused}");
    buy.start("never", &()).unwrap();
    pass(&mut rehearsal, 61);
    let run = rehearsal.flow("buy").look("never").unwrap();
    assert_eq!(run.step("approval").unwrap().state, SlotState::Expired);
    assert_eq!(run.reason.as_deref(), Some("step approval failed: what it waited for did not come in time"));
    let why = rehearsal.flow("buy").why_step("never", "approval").unwrap();
    assert!(why.contains("expired"), "{why}");
}

// "Input/Output", tests 31 and 33

#[test]
fn what_a_step_gives_is_what_the_next_one_is_given() {
    let first = gives("job1", json!({ "newval": "my new val" })).inputs(json!({ "myvalue": "something" }));
    let run = play(first >> done("job2"));
    assert_eq!(inputs(&run, "job1"), json!({ "myvalue": "something" }));
    assert_eq!(inputs(&run, "job2"), json!({ "newval": "my new val" }));
}

#[test]
fn what_several_give_is_labelled_by_who_gave_it() {
    let part = (gives("job2", json!({ "newval": 2 })) & gives("job-4", json!({ "newval": 4, "something-else": true })))
        >> done("jobfinal").inputs(json!({ "own": 1 }));
    let run = play(part);
    let expected = json!({ "newval": { "job2": 2, "job_4": 4 }, "something_else": true, "own": 1 });
    assert_eq!(inputs(&run, "jobfinal"), expected);
}

#[test]
fn a_value_that_is_no_object_is_given_under_the_name_of_its_step() {
    let part = gives("step-one", json!("some text"))
        >> gives("two", json!([1, 2]))
        >> gives("three", json!(null))
        >> done("four");
    let run = play(part);
    assert_eq!(inputs(&run, "two"), json!({ "step_one": "some text" }));
    assert_eq!(inputs(&run, "three"), json!({ "two": [1, 2] }));
    assert_eq!(inputs(&run, "four"), json!({}));
}

/// `Finished`, `Output`, `OutputErr` and `Fail`.
#[test]
fn a_failure_may_carry_data_for_its_error_step() {
    let pay = step("pay", async |_: Context, (): (), ()| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Err(Failure::new("no money").with(json!({ "code": 402 })))?
    });
    let plain = step("odd", async |_: Context, (): (), ()| Err::<(), _>(Failure::new("odd").with(7)));
    let run = play(pay.with(()).or_else(done("sorry")) & plain.with(()).or_else(done("sorry")) & fails("fails"));
    assert_eq!(run.state, SlotState::Failed, "one failure is not handled");
    assert_eq!(run.reason.as_deref(), Some("step fails failed: no money"));
    let told = json!({ "code": 402, "failed": "pay", "error": "no money", "errors": { "pay": "no money" } });
    assert_eq!(inputs(&run, "sorry-from-pay"), told);
    assert_eq!(inputs(&run, "sorry-from-odd")["odd"], 7);
    assert_eq!(run.step("pay").unwrap().outputs["code"], 402);
}

#[derive(Debug, Deserialize)]
struct Order {
    #[expect(dead_code, reason = "it is read")]
    items: Vec<Item>,
}

#[derive(Debug, Deserialize)]
struct Item {
    #[expect(dead_code, reason = "it is read")]
    count: u32,
}

#[test]
fn an_input_that_does_not_fit_is_the_end_and_says_where() {
    let count = step("count", async |_: Context, order: Order, ()| Ok::<_, String>(format!("{order:?}").len()));
    let part = gives("order", json!({ "items": [{ "count": 1 }, { "count": "two" }] }))
        >> count.with(()).retry(Retry::fixed(MINUTE).times(3));
    let run = play(part);
    let expected = "its input is unsound: at items[1].count: invalid type: string \"two\", expected u32: \
                    {\"items\":[{\"count\":1},{\"count\":\"two\"}]}";
    let count = run.step("count").unwrap();
    assert_eq!((count.error.as_deref(), count.attempts), (Some(expected), 1));
}

#[test]
fn a_step_is_done_for_each_item_of_a_list() {
    #[derive(Deserialize)]
    struct File {
        item: String,
        index: usize,
        suffix: String,
    }
    let load = step("load", async |_: Context, file: File, ()| {
        Ok::<_, String>(format!("{}{}{}", file.item, file.index, file.suffix))
    });
    let list = gives("list", json!({ "files": ["a", "b"], "suffix": "!" }));
    let part = list >> load.with(()).for_each("files").at_a_time(1) >> done("join");
    let mut rehearsal = rehearse(part);
    rehearsal.flow("buy").fail("a", "load:1", 1).unwrap();
    rehearsal.flow("buy").start("a", &()).unwrap();
    let run = look(&mut rehearsal);
    assert_eq!(states(&run), ["list succeeded", "load failed", "load:0 succeeded", "load:1 failed"]);
    rehearsal.flow("buy").resume("a").unwrap();
    let run = look(&mut rehearsal);
    assert_eq!(inputs(&run, "join"), json!({ "load": ["a0!", "b1!"] }));
    assert_eq!(order(&rehearsal), ["list", "load:0", "load:1", "load:1", "join"]);
}

#[test]
fn a_list_that_is_none_or_too_long_fails_its_step() {
    for (files, error) in [
        (json!(3), "its input files is 3, expected a list"),
        (json!([1, 2, 3]), "its list files has 3 items, expected at most 2"),
    ] {
        let run = play(gives("list", json!({ "files": files })) >> done("load").for_each("files").at_most(2));
        assert_eq!(run.step("load").unwrap().error.as_deref(), Some(error));
    }
}

// A flow among jobs

#[test]
fn a_flow_runs_for_periods_and_its_steps_know_them() {
    let count = step("count", async |_: Context, day: Period, ()| Ok::<_, String>(json!({ "hours": day.hours() })));
    let tell = step("tell", async |_: Context, day: InPeriod<Value>, ()| {
        Ok::<_, String>(format!("{} {}", day.period.date(), day.input["hours"]))
    });
    let days = Calendar::daily(kelos::embed::Zone::parse("Europe/Paris").unwrap());
    let nightly = flow("nightly", count.with(()) >> tell.with(())).every(&days);
    let mut rehearsal = Rehearsal::at(START, Project::new("flows", "1").add(nightly)).unwrap();
    rehearsal.run_until("2026-03-30T00:00Z").unwrap();
    let run = rehearsal.flow("nightly").look("2026-03-29T00:00+01:00").unwrap();
    assert_eq!(run.output::<String>().unwrap(), "2026-03-29 23");
}

#[test]
fn what_is_no_flow_or_no_run_is_refused_with_a_name() {
    run(async {
        let project = Project::new("flows", "1").add(flow("buy", done("a")));
        let project = project.add(kelos::embed::job("job", nothing).with(()).on_demand());
        let running = project.start().await.unwrap();
        for (refused, words) in [
            (running.flow("job").run("a", &()).await.unwrap_err(), "find the flow \"job\": no flow has this id"),
            (running.flow("by").run("a", &()).await.unwrap_err(), "find the flow \"by\": no flow has this id"),
            (running.flow("buy").look("b").unwrap_err(), "find the run \"b\" of buy: there is none"),
            (running.flow("buy").resume("b").await.unwrap_err(), "buy@b"),
            (running.flow("buy").run("a b", &()).await.unwrap_err(), "name a run or a step of buy: "),
            (running.flow("buy").signal("a", "go", &()).await.unwrap_err(), "go"),
        ] {
            assert!(refused.to_string().contains(words), "{refused}");
        }
        running.stop().await;
    });
}

#[test]
fn the_input_of_a_run_is_typed_and_given_to_all_its_steps() {
    #[derive(Serialize, Deserialize)]
    struct Order {
        items: Vec<u32>,
        is_urgent: bool,
    }
    let sum = step("sum", async |_: Context, order: Order, ()| Ok::<_, String>(order.items.iter().sum::<u32>()));
    let tell = step("tell", async |_: Context, given: Value, ()| Ok::<_, String>(given));
    let defaults = json!({ "is_urgent": false, "own": null });
    let mut rehearsal = rehearse(sum.with(()) >> tell.with(()).inputs(defaults));
    rehearsal.flow("buy").start("a", &Order { items: vec![1, 2], is_urgent: true }).unwrap();
    let run = look(&mut rehearsal);
    assert_eq!(Value::Object(run.outputs), json!({ "items": [1, 2], "is_urgent": true, "sum": 3, "own": null }));
    rehearsal.flow("buy").start("b", &7).unwrap();
    let run = rehearsal.flow("buy").look("b").unwrap();
    assert_eq!(inputs(&run, "sum"), json!({ "input": 7 }));
}

#[test]
fn a_name_is_one_run_whoever_starts_it() {
    run(async {
        let last = signal::<String>("go") >> gives("last", json!(7));
        let running = Project::new("flows", "1").add(flow("buy", last)).start().await.unwrap();
        let buy = running.flow("buy").priority(3);
        let slot = buy.start("order-42", &json!({ "day": "monday" })).await.unwrap();
        assert_eq!(buy.start("order-42", &json!({ "day": "tuesday" })).await.unwrap(), slot);
        assert_eq!(buy.look("order-42").unwrap().state, SlotState::Running);
        let wrong = buy.signal("order-42", "go", &3).await.unwrap_err().to_string();
        assert!(wrong.starts_with("read the signal \"go\": "), "{wrong}");
        buy.signal("order-42", "go", &"now").await.unwrap();
        let ended = buy.end("order-42").await.unwrap();
        assert_eq!(inputs(&ended, "last"), json!({ "go": "now", "day": "monday" }));
        assert_eq!(ended.output::<u32>().unwrap(), 7);
        running.stop().await;
    });
}

#[test]
fn a_run_goes_on_after_a_restart_and_is_resumed_after_one() {
    let folder = tempfile::tempdir().unwrap();
    let project = |is_ready: bool| {
        let last = step(
            "last",
            async |_: Context, given: Value, is_ready: bool| {
                if is_ready { Ok(given["rows"].clone()) } else { Err("not ready") }
            },
        );
        let part = (gives("first", json!({ "rows": 3 })) & signal::<()>("go")) >> last.with(is_ready);
        Project::new("flows", "1").folder(folder.path()).add(flow("buy", part))
    };
    run(async {
        let running = project(false).start().await.unwrap();
        running.flow("buy").start("a", &()).await.unwrap();
        while running.flow("buy").look("a").unwrap().step("first").is_none_or(|first| !first.state.is_final()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        running.stop().await;
        let running = project(false).start().await.unwrap();
        running.flow("buy").signal("a", "go", &()).await.unwrap();
        let ended = running.flow("buy").end("a").await.unwrap();
        assert_eq!(ended.reason.as_deref(), Some("step last failed: not ready"), "{ended:?}");
        running.stop().await;
        let running = project(true).start().await.unwrap();
        running.flow("buy").resume("a").await.unwrap();
        let ended = running.flow("buy").end("a").await.unwrap();
        assert_eq!(ended.output::<u32>().unwrap(), 3);
        assert_eq!(ended.step("first").unwrap().attempts, 1);
        running.stop().await;
    });
}

// One step again

#[test]
fn a_step_is_done_again_with_what_it_had_or_with_other_inputs() {
    let tell = step("tell", async |_: Context, given: Value, ()| Ok::<_, String>(json!({ "told": given })));
    let part = (gives("first", json!({ "rows": 3 })) >> tell.with(())).or_else(done("sorry")) >> done("last");
    let mut rehearsal = rehearse(part);
    let mut buy = rehearsal.flow("buy");
    buy.start("a", &json!({ "day": "monday" })).unwrap();
    buy.start_step("again", ("a", "tell"), &()).unwrap();
    buy.start_step("other", ("a", "tell"), &json!({ "rows": 5 })).unwrap();
    let [again, other] = ["again", "other"].map(|run| buy.look(run).unwrap());
    assert_eq!(Value::Object(again.outputs), json!({ "told": { "rows": 3, "day": "monday" } }));
    assert_eq!(Value::Object(other.outputs.clone()), json!({ "told": { "rows": 5, "day": "monday" } }));
    assert_eq!(states(&other), ["tell succeeded"], "no other step is opened");
    assert_eq!(other.repeats.unwrap().to_string(), "buy@.a.tell");
    assert_eq!(buy.look("a").unwrap().step("tell").unwrap().attempts, 1, "the run that did it stays as it was");
    buy.fail("bad", "tell", 1).unwrap();
    buy.start_step("bad", ("a", "tell"), &()).unwrap();
    let bad = buy.look("bad").unwrap();
    assert_eq!((bad.state, states(&bad)), (SlotState::Failed, vec!["tell failed".to_owned()]), "no error step");
    for (refused, words) in [
        (buy.start_step("b", ("a", "tel"), &()), "has no step \"tel\", did you mean tell?"),
        (buy.start_step("b", ("c", "tell"), &()), "buy@c does not exist"),
        (buy.start_step("again", ("a", "first"), &()), "expected a new name"),
        (buy.start_step("b", ("a", "tell"), &json!({ "rows": "x" })), "expected a number"),
        (buy.start_step("b", ("a", "tell:x"), &()), "an item such as load:3"),
    ] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn a_step_that_is_done_again_is_about_the_period_of_its_run() {
    let count = step("count", async |_: Context, day: Period, ()| Ok::<_, String>(json!({ "hours": day.hours() })));
    let days = Calendar::daily(kelos::embed::Zone::parse("Europe/Paris").unwrap());
    let nightly = flow("nightly", count.with(())).every(&days);
    let mut rehearsal = Rehearsal::at(START, Project::new("flows", "1").add(nightly)).unwrap();
    rehearsal.run_until("2026-04-02T00:00Z").unwrap();
    let mut nightly = rehearsal.flow("nightly");
    nightly.start_step("again", ("2026-03-29T00:00+01:00", "count"), &()).unwrap();
    assert_eq!(nightly.look("again").unwrap().outputs["hours"], 23);
    nightly.start_step("once-more", ("again", "count"), &()).unwrap();
    assert_eq!(nightly.look("once-more").unwrap().outputs["hours"], 23);
}

#[test]
fn a_step_is_done_again_after_a_restart_with_the_definition_of_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let project = |part: Part| Project::new("flows", "1").folder(folder.path()).add(flow("buy", part));
    let tell = || step("tell", async |_: Context, given: Value, ()| Ok::<_, String>(given)).with(());
    run(async {
        let running = project(gives("first", json!({ "rows": 3 })) >> tell()).start().await.unwrap();
        running.flow("buy").run("a", &()).await.unwrap();
        running.stop().await;
        let running = project(tell() >> done("new")).start().await.unwrap();
        let again = running.flow("buy").run_step("again", ("a", "tell"), &json!({ "more": 1 })).await.unwrap();
        assert_eq!(Value::Object(again.outputs), json!({ "rows": 3, "more": 1 }));
        running.stop().await;
    });
}

// Signals within a function

async fn pay(context: Context, (): (), (): ()) -> Result<String, SignalError> {
    let by: String = context.signal("approval").within(MINUTE * 60).await?;
    Ok(format!("{} says {by}", context.run().number))
}

fn paying() -> Part {
    done("first") >> step("pay", pay).with(()).may_wait_for::<String>("approval").retry(Retry::fixed(MINUTE).times(1))
}

#[test]
fn a_function_waits_for_a_signal_that_comes_early_late_or_never() {
    let mut rehearsal = rehearse(paying());
    let mut buy = rehearsal.flow("buy");
    buy.signal("early", "approval", &"Ann").unwrap();
    buy.start("early", &()).unwrap();
    assert_eq!(buy.look("early").unwrap().output::<String>().unwrap(), "1 says Ann");
    buy.start("late", &()).unwrap();
    buy.signal_after("late", "approval", &"Bob", MINUTE * 30).unwrap();
    buy.start("never", &()).unwrap();
    pass(&mut rehearsal, 29);
    assert_eq!(rehearsal.flow("buy").look("late").unwrap().step("pay").unwrap().state, SlotState::Running);
    pass(&mut rehearsal, 2);
    assert_eq!(rehearsal.flow("buy").look("late").unwrap().output::<String>().unwrap(), "1 says Bob");
    pass(&mut rehearsal, 28);
    assert_eq!(rehearsal.flow("buy").look("never").unwrap().step("pay").unwrap().state, SlotState::Running);
    // Each attempt has its own hour.
    pass(&mut rehearsal, 3);
    assert_eq!(rehearsal.flow("buy").look("never").unwrap().step("pay").unwrap().attempts, 2);
    pass(&mut rehearsal, 61);
    let never = rehearsal.flow("buy").look("never").unwrap();
    let reason = never.step("pay").unwrap().error.clone().unwrap();
    assert_eq!(reason, "wait for the signal \"approval\": it did not come within 3600 s");
    // An attempt after the one that waited finds what came meanwhile.
    let mut buy = rehearsal.flow("buy");
    buy.resume("never").unwrap();
    buy.signal("never", "approval", &"Eve").unwrap();
    assert_eq!(buy.look("never").unwrap().output::<String>().unwrap(), "3 says Eve");
    let wrong = buy.signal("other", "approval", &7).unwrap_err().to_string();
    assert!(wrong.contains("expected a string"), "{wrong}");
}

#[test]
fn a_wait_for_a_signal_takes_as_long_as_it_does_when_the_clock_jumps() {
    let mut rehearsal = rehearse(paying());
    rehearsal.flow("buy").start("a", &()).unwrap();
    pass(&mut rehearsal, 30);
    rehearsal.set_clock("2026-04-01T00:00Z").unwrap();
    pass(&mut rehearsal, 29);
    assert_eq!(look(&mut rehearsal).step("pay").unwrap().state, SlotState::Running);
    // An hour in all; a minute later it is tried again.
    pass(&mut rehearsal, 1);
    assert_eq!(look(&mut rehearsal).step("pay").unwrap().state, SlotState::Backoff);
}

#[test]
fn a_wait_for_a_signal_that_can_not_be_says_why() {
    let unexpected = play(step("pay", pay).with(()));
    let reason = unexpected.step("pay").unwrap().error.clone().unwrap();
    assert!(reason.ends_with("add `.may_wait_for::<T>(\"approval\")` to it"), "{reason}");
    let alone = async |context: Context, (): (), ()| context.signal::<String>("approval").await;
    let job = kelos::embed::job("alone", alone).with(()).retry(Retry::never()).on_demand();
    let mut rehearsal = Rehearsal::at(START, Project::new("jobs", "1").add(job)).unwrap();
    let slot = rehearsal.start("alone", &()).unwrap();
    let why = rehearsal.why("alone", &slot.key.to_string()).unwrap();
    assert!(why.contains("only a step of a flow can, and this is none"), "{why}");
    let found = mistakes(signal::<()>("go").may_wait_for::<()>("stop"));
    assert!(found[0].contains("it waits for its own signal"), "{found:?}");
}

#[test]
fn a_wait_within_a_function_outlives_the_program_and_uses_up_no_retry() {
    let folder = tempfile::tempdir().unwrap();
    let project = || {
        let pay = step("pay", pay).with(()).may_wait_for::<String>("approval");
        Project::new("flows", "1").folder(folder.path()).add(flow("buy", pay))
    };
    run(async {
        let running = project().start().await.unwrap();
        running.flow("buy").start("a", &()).await.unwrap();
        let step = "buy@.a.pay".parse().unwrap();
        let waits = async |running: &kelos::embed::RunningProject| loop {
            let why = kelos_explain::why::why(running.handle(), &step, None).await.unwrap();
            if let Some(told) =
                why.blockers.iter().find(|told| told.starts_with("waits for the signal approval since "))
            {
                return told.clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        assert!(waits(&running).await.contains(", until "));
        running.stop().await;
        let running = project().start().await.unwrap();
        waits(&running).await;
        let pay = running.flow("buy").look("a").unwrap().step("pay").unwrap().clone();
        assert_eq!((pay.state, pay.error), (SlotState::Running, None), "an orderly end is no failure");
        running.stop().await;
        let running = project().start().await.unwrap();
        running.flow("buy").signal("a", "approval", &"Ann").await.unwrap();
        let ended = running.flow("buy").end("a").await.unwrap();
        assert!(ended.output::<String>().unwrap().ends_with(" says Ann"), "{ended:?}");
        running.stop().await;
    });
}
