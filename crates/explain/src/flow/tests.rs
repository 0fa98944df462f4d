//! Runs of flows by a real scheduler over a clock of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_core::{Config, FireRequest, Input, Inspect, Kill, RepeatStep, Request, ResumeFlow, SignalFlow, Skip};
use kelos_engine::turn::Turns;
use kelos_model::flow::{FLOW, Flow, ItemList, SignalWait};
use kelos_model::run::Report;
use kelos_model::workflow::{Job, Keys, Program, Provenance};
use kelos_model::{Actor, Outcome, RunId, RunName, Workflow, WorkflowId};
use kelos_store::{Journal, MemoryStore, StoredState};
use serde_json::{Map, json};

use super::*;
use crate::account::{self, Account};
use crate::{failures, stuck};

/// A scheduler with the flow `buy`, which starts at 10:00.
struct World {
    store: MemoryStore,
    turns: Turns,
    now: Timestamp,
}

fn at(clock: &str) -> Timestamp {
    format!("2026-11-21T{clock}Z").parse().unwrap()
}

fn buy() -> WorkflowId {
    WorkflowId::new("buy").unwrap()
}

fn name(text: &str) -> StepName {
    text.parse().unwrap()
}

fn step(text: &str, needs: &[&str]) -> Step {
    let needs = needs.iter().map(|one| name(one)).collect();
    Step { needs, ..Step::new(name(text), Job::new("command", Map::new())) }
}

/// `check`, then `stock` and `pay`, then `ship`; `sorry` handles the failure of `pay`, and `ok` waits for a signal.
fn order() -> Vec<Step> {
    let signal = SignalWait { name: "approval".to_owned(), within_seconds: Some(7200) };
    let sorry = Step { needs: Vec::new(), handles: vec![name("pay")], ..step("sorry", &[]) };
    let ok = Step { needs: vec![name("check")], ..Step::waiting_for(name("ok"), signal) };
    vec![
        step("check", &[]),
        step("stock", &["check"]),
        step("pay", &["check"]),
        step("ship", &["stock", "pay"]),
        step("box", &["ship"]),
        sorry,
        ok,
    ]
}

fn list() -> Vec<Step> {
    let mut each = step("each", &["list"]);
    each.for_each = Some(ItemList { input: "files".to_owned(), most: 100, concurrency: None });
    vec![step("list", &[]), each, step("join", &["each"])]
}

fn key(text: &str) -> SlotRef {
    SlotRef::new(buy(), SlotKey::parse(text).unwrap())
}

impl World {
    fn of(steps: Vec<Step>) -> World {
        let mut store = MemoryStore::new();
        let lease = store.lease("test", at("10:00:00"), 1_000).unwrap().unwrap();
        let (turns, _) = Turns::restore(Config::default(), &mut store, lease, at("10:00:00")).unwrap();
        let mut world = World { store, turns, now: at("10:00:00") };
        world.define(steps);
        world
    }

    fn define(&mut self, steps: Vec<Step>) {
        let keys = Keys::Requests(Box::new(Program { name: "buy".to_owned(), kind: None }));
        let flow = Some(Arc::new(Flow { steps }));
        let buy = Workflow { flow, ..Workflow::keyed(buy(), keys, Job::new(FLOW, Map::new())) };
        let all = vec![Arc::new(buy)];
        self.take(Input::Definitions { provenance: Provenance::File, all, deployed: BTreeMap::new() });
    }

    fn take(&mut self, input: Input) -> Vec<kelos_core::Command> {
        let woke = Input::Woke { only: None, look_again: false };
        self.turns.turn(&mut self.store, self.now, [input, woke]).unwrap().commands
    }

    fn ask(&mut self, request: impl Request) -> Vec<kelos_core::Command> {
        self.take(Input::Asked { token: 1, by: Actor::person("ann"), ask: request.into(), warrant: None })
    }

    fn start(&mut self, name: &str) -> &mut World {
        let (arguments, key) = (BTreeMap::new(), Some(RunName::new(name).unwrap()));
        self.ask(FireRequest { workflow: buy(), arguments, key, priority: 0, unconstrained: false, reason: None });
        self
    }

    fn at(&mut self, clock: &str) -> &mut World {
        self.now = at(clock);
        self.take(Input::Woke { only: None, look_again: false });
        self
    }

    fn report(&mut self, slot: &str, report: Report) {
        let slot = key(slot);
        let number = self.store.reader().slot(&slot).unwrap().unwrap().last_run;
        self.take(Input::RunReported { run: RunId { slot, number }, report });
    }

    fn begins(&mut self, slot: &str) -> &mut World {
        self.report(slot, Report::Started { external_id: "x".to_owned() });
        self
    }

    fn gives(&mut self, slot: &str, outputs: Value) -> &mut World {
        let Value::Object(outputs) = outputs else { panic!("an object") };
        self.report(slot, Report::Gave { outputs });
        self.ends(slot)
    }

    fn ends(&mut self, slot: &str) -> &mut World {
        self.report(slot, Report::Ended { outcome: Outcome::Succeeded });
        self
    }

    fn fails(&mut self, slot: &str) -> &mut World {
        let outcome = Outcome::Failed { reason: "no money".to_owned(), exit_status: None, code: None };
        self.report(slot, Report::Ended { outcome });
        self
    }

    fn view(&self) -> FlowView {
        read(&*self.store.reader(), &key(".a"), self.now, (None, 100)).unwrap().unwrap()
    }

    fn why(&mut self, slot: &str, then: Option<&str>) -> Account {
        let slot = key(slot);
        let reader = self.store.reader();
        let Some(clock) = then else {
            let commands = self.ask(Inspect { slot: slot.clone() });
            let inspection = commands.into_iter().find_map(|command| match command {
                kelos_core::Command::Reply { reply: Ok(answer), .. } => Inspect::answer(answer),
                _ => None,
            });
            return account::read(&*reader, &slot, self.now, true, inspection.as_ref()).unwrap();
        };
        account::read(&*reader, &slot, at(clock), false, None).unwrap()
    }

    #[track_caller]
    fn says(&mut self, slot: &str, expected: &str) -> &mut World {
        assert_eq!(self.why(slot, None).headline, expected);
        self
    }
}

/// `check succeeded; pay running`
fn states(view: &FlowView) -> String {
    let told = view.steps.rows.iter().map(|row| format!("{} {}", row.step.name, row.state.as_str()));
    told.collect::<Vec<_>>().join("; ")
}

#[test]
fn a_run_tells_how_far_each_step_is() {
    let mut world = World::of(order());
    assert!(read(&*world.store.reader(), &key(".a"), world.now, (None, 100)).unwrap().is_none());
    world.says(".a", "nobody started a run named a").says(".a.pay", "its run buy@a does not exist");
    world.start("a").begins(".a.check").at("10:10:00");
    world.says(".a", "run 1 goes on since 2026-11-21T10:00Z: check runs since 2026-11-21T10:00Z");
    world.says(".a.ship", "waits for stock and pay to succeed").says(".a.sorry", "starts if pay fails");
    world.says(".a.nothing", "the flow of buy@a (definition 1) has no step nothing");
    world.gives(".a.check", json!({"n": 1})).begins(".a.pay").at("10:20:00");
    let view = world.view();
    assert_eq!(
        states(&view),
        "check succeeded; stock dispatched; pay running; ship not-opened; box not-opened; sorry not-opened; ok awaits-signal"
    );
    let inputs = view.steps.rows[2].slot.as_ref().and_then(|slot| slot.step_of_run()).map(|step| &step.inputs);
    assert_eq!(inputs, json!({"n": 1}).as_object());
    assert_eq!(view.counts.get("not-opened"), Some(&3));
    let waits = "waits for the signal approval since 2026-11-21T10:10Z, until 2026-11-21T12:10Z";
    world.says(".a.ok", waits);
    let all = format!(
        "run 1 goes on since 2026-11-21T10:00Z: stock is dispatched since 2026-11-21T10:10Z; pay runs since 2026-11-21T10:10Z; ok {waits}"
    );
    world.says(".a", &all);
    world.fails(".a.pay").at("10:30:00");
    world.says(".a.ship", "never runs: it needs pay, which failed");
    world.says(".a.box", "never runs: pay failed, and it needs ship, which comes after that");
    let sorry = "waits since 2026-11-21T10:20Z for stock and ok to end, then handles the failure of pay";
    world.says(".a.sorry", sorry);
    assert_eq!(world.why(".a.ship", Some("10:15:00")).headline, "waits for stock and pay to succeed");
    assert_eq!(world.why(".a.ship", Some("09:00:00")).headline, "its run buy@a does not exist");
    assert_eq!(world.why(".a.ok", Some("10:05:00")).headline, "waits for check to succeed");
}

#[test]
fn a_recovered_run_and_its_path() {
    let mut world = World::of(order());
    world.start("a").begins(".a.check").at("10:10:00").ends(".a.check").begins(".a.stock").begins(".a.pay");
    world.at("10:20:00").fails(".a.pay").at("10:40:00");
    world.ask(SignalFlow { run: key(".a"), signal: "approval".to_owned(), payload: json!("yes"), reason: None });
    world.at("10:50:00").ends(".a.stock");
    world.begins(".a.sorry").at("11:00:00").ends(".a.sorry");
    let view = world.view();
    assert_eq!((view.slot.state, view.recovered.clone()), (SlotState::Succeeded, vec![name("pay")]));
    assert_eq!(view.signals.get("approval"), Some(&json!("yes")));
    world.says(".a", "run 1 succeeded at 2026-11-21T11:00Z, recovered from the failure of pay");
    let path = view.path.unwrap();
    let links: Vec<String> =
        path.links.iter().map(|link| format!("{} {}", link.slot.key.short(), link.millis() / 60_000)).collect();
    assert_eq!(links, ["a 0", "a.check 10", "a.stock 40", "a.sorry 10", "a 0"]);
    assert_eq!(path.millis(), 60 * 60_000);
}

#[test]
fn a_failed_run_is_a_failure_that_names_its_step_and_is_resumed() {
    let mut world = World::of(order());
    world.start("a").ends(".a.check").ends(".a.stock");
    world.ask(SignalFlow { run: key(".a"), signal: "approval".to_owned(), payload: Value::Null, reason: None });
    world.fails(".a.pay").fails(".a.sorry").at("10:10:00");
    let view = world.view();
    assert_eq!(view.failed, [name("pay"), name("sorry")]);
    let reader = world.store.reader();
    let found = failures::find(&*reader, world.now).unwrap();
    assert_eq!(found.rows.len(), 1, "steps are no failures of their own");
    let account = found.rows[0].account(&*reader, world.now).unwrap();
    assert!(account.reason.contains("it failed (step pay failed: no money; so did sorry)"), "{}", account.reason);
    assert_eq!(account.step, Some(key(".a.pay")), "its output has the cause");
    let report = stuck::read(&*reader, world.now).unwrap();
    assert_eq!(report.rows.iter().map(|row| row.slot.key.short()).collect::<Vec<_>>(), ["a"]);
    world.says(".a.box", "never runs: pay failed, and it needs ship, which comes after that");
    world.ask(ResumeFlow { run: key(".a"), from: None, reason: None });
    let again = "check succeeded; stock succeeded; pay dispatched; ship not-opened; box not-opened; sorry not-opened; ok succeeded";
    assert_eq!(states(&world.view()), again);
    world.says(".a.sorry", "to be done again: starts if pay fails");
    world.begins(".a.pay").at("10:20:00").ends(".a.pay").at("10:25:00").ends(".a.ship").ends(".a.box");
    let path = world.view().path.unwrap();
    let links: Vec<String> = path.links.iter().map(|link| link.slot.key.short()).collect();
    assert_eq!(links, ["a", "a.pay", "a.ship", "a"], "what an earlier run did takes no time of this one");
    assert_eq!(world.view().slot.state, SlotState::Succeeded);
}

#[test]
fn what_a_person_ended_is_told_and_what_comes_after_it() {
    let mut world = World::of(order());
    world.start("a").ends(".a.check");
    world.ask(Skip { slot: key(".a.stock"), reason: None });
    world.says(".a.ship", "never runs: it needs stock, which was skipped");
    world.ends(".a.pay").says(".a.sorry", "never runs: it handles a failure of pay, which did not fail");
    world.ask(Kill { slot: key(".a"), reason: None });
    world.says(".a.box", "never runs: stock was skipped, and it needs ship, which comes after that");
    world.start("b").at("12:30:00").ask(Kill { slot: key(".b"), reason: None });
    world.says(".b.box", "was not opened before its run ended");
}

#[test]
fn a_signal_that_did_not_come_is_named() {
    let mut world = World::of(order());
    world.start("a").ends(".a.check").ends(".a.stock").ends(".a.pay").ends(".a.ship").ends(".a.box");
    world.at("12:30:00");
    world.says(".a.ok", "expired at 2026-11-21T12:30Z: the signal approval did not come within 7200 s");
    assert_eq!(world.view().failed, [name("ok")]);
}

#[test]
fn items_are_counted_and_come_by_pages() {
    let mut world = World::of(list());
    world.start("a").gives(".a.list", json!({"files": (0..25).collect::<Vec<u32>>()}));
    world.ends(".a.each:0").fails(".a.each:1").at("10:10:00");
    let view = world.view();
    let counts = view.steps.rows[1].items.clone().unwrap();
    assert_eq!((counts.total, counts.is_partial), (25, false));
    assert_eq!(counts.counts[&SlotState::Dispatched], 23);
    assert_eq!(
        view.steps.rows[1].words,
        "runs since 2026-11-21T10:00Z: 2 of 25 items have ended, 1 of them without success"
    );
    let reader = world.store.reader();
    let (mut numbers, mut from) = (Vec::new(), None);
    loop {
        let page = items(&*reader, &key(".a.each"), (from.as_deref(), 10)).unwrap().unwrap();
        numbers.push(page.rows.iter().map(|row| row.number).collect::<Vec<_>>());
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(numbers.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 5]);
    assert_eq!(numbers.concat(), (0..25).collect::<Vec<u32>>(), "in the order of their numbers");
    assert!(items(&*reader, &key(".a.list"), (None, 10)).unwrap().is_none(), "no list");
    assert!(items(&*reader, &key(".a.each"), (Some("x"), 10)).is_err());
    world.says(".a.each:30", "the list of its step has no item 30");
    world.says(".a.join", "waits for each to succeed");
}

#[test]
fn the_item_by_which_a_run_failed_is_found() {
    let mut world = World::of(list());
    world.start("a").gives(".a.list", json!({"files": ["x", "y", "z"]}));
    world.ends(".a.each:0").fails(".a.each:1");
    assert_eq!(failed_step(&*world.store.reader(), &key(".a")).unwrap(), None, "the run is live");
    world.ends(".a.each:2").at("10:10:00");
    assert_eq!(failed_step(&*world.store.reader(), &key(".a")).unwrap(), Some(key(".a.each:1")));
}

#[test]
fn steps_come_by_pages_however_many_items_lie_between() {
    let mut steps = list();
    steps[1].for_each.as_mut().unwrap().most = 5_000;
    steps.push(step("zoo", &["list"]));
    let mut world = World::of(steps);
    world.start("a").gives(".a.list", json!({"files": vec![1; 3_000]}));
    let reader = world.store.reader();
    let page = |from: Option<&str>| read(&*reader, &key(".a"), world.now, (from, 2)).unwrap().unwrap();
    let first = page(None);
    assert_eq!((states(&first).as_str(), first.steps.next.as_deref()), ("list succeeded; each running", Some("each")));
    let second = page(Some("each"));
    assert_eq!((states(&second).as_str(), second.steps.next), ("join not-opened; zoo queued", None));
    assert!(read(&*reader, &key(".a"), world.now, (Some("nothing"), 2)).is_err());
}

#[test]
fn a_run_follows_the_definition_with_which_it_began() {
    let mut world = World::of(order());
    world.start("a").ends(".a.check");
    world.define(list());
    assert_eq!((world.view().definition, world.view().steps.rows.len()), (1, 7));
    world.says(".a.list", "the flow of buy@a (definition 1) has no step list");
    world.says(".a.ship", "waits for stock and pay to succeed");
}

#[test]
fn a_run_that_does_a_step_again_names_it_and_the_others_are_no_part_of_it() {
    let mut world = World::of(order());
    world.start("a").gives(".a.check", json!({"n": 1})).ends(".a.stock").fails(".a.pay").at("10:30:00");
    world.ask(Kill { slot: key(".a"), reason: None });
    world.define(list());
    let name = Some(RunName::new("again").unwrap());
    let arguments = BTreeMap::from([("n".to_owned(), json!(2))]);
    let step = key(".a.pay");
    world.ask(RepeatStep { step, arguments, key: name, priority: 0, unconstrained: false, reason: None });
    world.begins(".again.pay");
    let view = read(&*world.store.reader(), &key(".again"), world.now, (None, 100)).unwrap().unwrap();
    assert_eq!((view.repeats, view.definition), (Some(key(".a.pay")), 1));
    let told: Vec<&str> = view.steps.rows.iter().map(|row| row.state.as_str()).collect();
    assert_eq!(told, ["not-in-run", "not-in-run", "running", "not-in-run", "not-in-run", "not-in-run", "not-in-run"]);
    let inputs = view.steps.rows[2].slot.as_ref().and_then(|slot| slot.step_of_run()).map(|step| &step.inputs);
    assert_eq!(inputs, json!({"n": 2}).as_object());
    world.says(
        ".again",
        "run 1 goes on since 2026-11-21T10:30Z: pay runs since 2026-11-21T10:30Z; it only does buy@a.pay again",
    );
    world.says(".again.ship", "is no part of this run, which only does buy@a.pay again");
    world.says(".again.sorry", "is no part of this run, which only does buy@a.pay again");
    world.at("10:40:00").fails(".again.pay");
    let view = read(&*world.store.reader(), &key(".again"), world.now, (None, 100)).unwrap().unwrap();
    assert_eq!((view.slot.state, view.failed), (SlotState::Failed, vec!["pay".parse().unwrap()]));
    assert!(view.path.is_some_and(|path| path.links.iter().any(|link| link.slot == key(".again.pay"))));
    let headline = world.why(".again", None).headline;
    assert!(headline.ends_with("; it only does buy@a.pay again"), "{headline}");
}
