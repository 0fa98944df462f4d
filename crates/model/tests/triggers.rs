//! What triggers answer, in which words, and what can wake them.

#![allow(clippy::disallowed_methods, reason = "the tests read files; the model does not")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use kelos_model::facts::Tally;
use kelos_model::function::FunctionRef;
use kelos_model::probe::Verdict;
use kelos_model::ranges::Range;
use kelos_model::reason::words;
use kelos_model::template::KeyValues;
use kelos_model::time::CronSchedule;
use kelos_model::trigger::{Dependencies, Evaluation, Facts, FileSystem, PathCheck, Waker, evaluate};
use kelos_model::{Answer, Probe, ProbeAnswer, Reason, SlotKey, SlotRef, SlotState, Subject, Trigger, WorkflowId};

use crate::support::expect;

/// A world of paths and slots, all known but for those that are not there.
struct Known {
    now: Timestamp,
    paths: BTreeMap<String, Verdict>,
    slots: BTreeMap<SlotRef, Option<SlotState>>,
}

impl Facts for Known {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn slot(&self, slot: &SlotRef) -> Option<Option<SlotState>> {
        self.slots.get(slot).copied()
    }

    /// Each workflow has slots at full hours, but for `none`.
    fn period(&self, workflow: &WorkflowId, time: Timestamp) -> Option<Range> {
        (workflow.as_str() != "none").then(|| Range::new(time, time + SignedDuration::from_hours(1)))
    }

    fn slots_in(&self, workflow: &WorkflowId, interval: Range) -> Option<Vec<Timestamp>> {
        let hours = CronSchedule::hourly().times(interval.start, interval.end);
        (workflow.as_str() != "none").then(|| hours.collect())
    }

    fn probe(&self, probe: &Probe) -> Option<ProbeAnswer> {
        let name = probe.to_string();
        let verdict = *self.paths.get(&name)?;
        let detail = if verdict == Verdict::Failed { "refused" } else { "" };
        Some(ProbeAnswer { verdict, detail: detail.to_owned(), at: self.now })
    }

    fn collected(&self, _: &Subject) -> Option<&Tally> {
        None
    }
}

const FIVE: &str = "2016-01-01T05:00Z";

fn at(text: &str) -> Timestamp {
    kelos_model::time::parse_instant(text).unwrap()
}

fn id(name: &str) -> WorkflowId {
    WorkflowId::new(name).unwrap()
}

/// Five o'clock; the paths `/met`, `/not-yet`, `/never` and `/failed` are as they say, others are being asked.
fn known() -> Known {
    let verdicts =
        [("/met", Verdict::Yes), ("/not-yet", Verdict::No), ("/never", Verdict::Never), ("/failed", Verdict::Failed)];
    let paths = verdicts.into_iter().map(|(path, verdict)| (format!("hdfs://n{path}"), verdict));
    Known { now: at(FIVE), paths: paths.collect(), slots: BTreeMap::new() }
}

fn path(path: &str) -> Trigger {
    Trigger::Path(PathCheck::new(FileSystem::Hdfs, path, "hdfs://n"))
}

fn and(triggers: impl Into<Vec<Trigger>>) -> Trigger {
    Trigger::And { triggers: triggers.into() }
}

fn or(triggers: impl Into<Vec<Trigger>>) -> Trigger {
    Trigger::Or { triggers: triggers.into() }
}

fn not(trigger: Trigger) -> Trigger {
    Trigger::Not { trigger: Box::new(trigger) }
}

fn offset(seconds: i64, trigger: Trigger) -> Trigger {
    Trigger::Offset { seconds, trigger: Box::new(trigger) }
}

fn success(name: &str) -> Trigger {
    Trigger::Success { workflow: id(name) }
}

fn slot_time(text: &str) -> Timestamp {
    SlotKey::parse(text).unwrap().time().unwrap()
}

fn ask(trigger: &Trigger, facts: &Known) -> Evaluation {
    evaluate(trigger, &id("mine"), &KeyValues::at("2016-01-01T04:00Z".parse().unwrap()), facts)
}

fn explain(trigger: &Trigger) -> Reason {
    ask(trigger, &known()).explanation
}

fn texts(trigger: &Trigger, facts: &Known) -> String {
    words::text(&ask(trigger, facts).explanation)
}

const LEAVES: [&str; 5] = ["met", "not-yet", "never", "failed", "asked"];

fn leaf(name: &str) -> Trigger {
    path(&format!("/{name}"))
}

/// An answer, with a question mark where it may be another one in truth.
fn word(explanation: &Reason) -> String {
    let answer = serde_json::to_value(explanation.answer).unwrap();
    let mark = if explanation.is_uncertain() { "?" } else { "" };
    answer.as_str().unwrap().to_owned() + mark
}

#[test]
fn three_valued_logic() {
    let mut table = String::new();
    let join = |name: &str, both: fn(Vec<Trigger>) -> Trigger, negated: bool| {
        let mut part = format!("{name:<12}{}\n", LEAVES.map(|leaf| format!("{leaf:<10}")).concat().trim_end());
        for left in LEAVES {
            let cells = LEAVES.map(|right| {
                let trigger = both(vec![leaf(left), leaf(right)]);
                format!("{:<10}", word(&explain(&if negated { not(trigger) } else { trigger })))
            });
            writeln!(part, "{left:<12}{}", cells.concat().trim_end()).unwrap();
        }
        part + "\n"
    };
    table += &join("and", and, false);
    table += &join("or", or, false);
    table += &join("not and", and, true);
    table += &join("not or", or, true);
    for name in LEAVES {
        let (once, twice) = (not(leaf(name)), not(not(leaf(name))));
        writeln!(table, "not {name:<8}{:<10}not not {:<10}", word(&explain(&once)), word(&explain(&twice))).unwrap();
    }
    let table: String = table.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    expect("logic.txt", &table);
}

#[test]
fn the_order_of_nested_triggers_does_not_matter() {
    for left in LEAVES {
        for right in LEAVES {
            let word = |trigger| word(&explain(&trigger));
            assert_eq!(word(and([leaf(left), leaf(right)])), word(and([leaf(right), leaf(left)])));
            assert_eq!(word(or([leaf(left), leaf(right)])), word(or([leaf(right), leaf(left)])));
        }
    }
}

#[test]
fn empty_ones() {
    assert_eq!(explain(&and([])).answer, Answer::Met);
    assert_eq!(explain(&or([])).answer, Answer::NotYet, "it may be filled");
    assert_eq!(explain(&not(or([]))).answer, Answer::Met);
}

#[test]
fn texts_are_those_of_celos() {
    let say = |trigger: &Trigger| texts(trigger, &known());
    assert_eq!(say(&Trigger::Always), "Always ready");
    assert_eq!(say(&and([leaf("met")])), "All nested triggers are ready");
    assert_eq!(say(&and([leaf("met"), leaf("not-yet")])), "Not all nested triggers are ready");
    assert_eq!(say(&or([leaf("met"), leaf("not-yet")])), "One or more nested triggers are ready");
    assert_eq!(say(&or([leaf("not-yet")])), "None of the nested triggers are ready");
    assert_eq!(say(&or([])), "None of the nested triggers are ready");
    assert_eq!(say(&not(leaf("not-yet"))), "Ready, nested trigger isn't ready");
    assert_eq!(say(&not(leaf("met"))), "Not ready, nested trigger is ready");
    assert_eq!(say(&offset(-60, leaf("met"))), "Nested trigger offset by -60 seconds ready");
    assert_eq!(say(&offset(60, leaf("not-yet"))), "Nested trigger offset by 60 seconds not ready");
    assert_eq!(say(&Trigger::Delay { seconds: 60 }), "Ready since 2016-01-01T04:01:00.000Z");
    assert_eq!(say(&Trigger::Delay { seconds: 7200 }), "Delayed until 2016-01-01T06:00:00.000Z");
    assert_eq!(say(&leaf("met")), "HDFS path hdfs://n/met is ready");
    assert_eq!(say(&leaf("not-yet")), "HDFS path hdfs://n/not-yet is not ready");
    assert_eq!(say(&success("up")), "Workflow slot up@2016-01-01T04:00Z is not ready");
}

#[test]
fn texts_for_what_celos_does_not_have() {
    let say = |trigger: &Trigger| texts(trigger, &known());
    assert_eq!(say(&leaf("never")), "HDFS path hdfs://n/never will never be ready");
    assert_eq!(say(&leaf("failed")), "HDFS path hdfs://n/failed can't be checked: refused");
    assert_eq!(say(&leaf("asked")), "HDFS path hdfs://n/asked is not ready");
    assert_eq!(say(&not(leaf("asked"))), "Not ready, nested trigger is not known");
    let check = PathCheck::new(FileSystem::Local, "/in", "file:///");
    assert_eq!(say(&Trigger::Path(check)), "File /in is not ready");
}

#[test]
fn a_delay_is_strict() {
    let delay = Trigger::Delay { seconds: 3600 };
    let answer =
        |slot: &str| evaluate(&delay, &id("mine"), &KeyValues::at(slot_time(slot)), &known()).explanation.answer;
    assert_eq!(answer("2016-01-01T03:59:59Z"), Answer::Met);
    assert_eq!(answer("2016-01-01T03:59:59.999Z"), Answer::Met);
    assert_eq!(answer("2016-01-01T04:00Z"), Answer::NotYet);
    let wakers = ask(&delay, &known()).wakers;
    assert_eq!(wakers, [Waker::At(at("2016-01-01T05:00:00.001Z"))], "the first moment at which it is met");
    let early = Trigger::Delay { seconds: -7200 };
    assert_eq!(texts(&early, &known()), "Ready since 2016-01-01T02:00:00.000Z");
}

#[test]
fn an_offset_shifts_the_slot_and_not_the_clock() {
    let hourly = path("/in/${hour}");
    for (seconds, hour) in [(-3600, "03"), (0, "04"), (3600, "05"), (86_400, "04")] {
        let wakers = ask(&offset(seconds, hourly.clone()), &known()).wakers;
        assert_eq!(wakers, [Waker::Probe(Probe::path(format!("hdfs://n/in/{hour}")))]);
    }
    let shifted = offset(3600, Trigger::Delay { seconds: 60 });
    assert_eq!(words::text(&explain(&shifted).nested[0]), "Delayed until 2016-01-01T05:01:00.000Z");
    let twice = offset(3600, offset(-3600, hourly));
    assert_eq!(words::text(&explain(&twice).nested[0].nested[0]), "HDFS path hdfs://n/in/04 is not ready");
}

#[test]
fn where_time_ends_nothing_is_ever_ready() {
    assert_eq!(explain(&offset(i64::MAX, Trigger::Always)).answer, Answer::Never);
    assert_eq!(explain(&offset(i64::MIN, Trigger::Always)).answer, Answer::Never);
    assert_eq!(explain(&Trigger::Delay { seconds: i64::MAX }).answer, Answer::Never);
}

#[test]
fn success_asks_for_the_slot_of_the_same_time() {
    let upstream = SlotRef::at(id("up"), at("2016-01-01T04:00Z"));
    for state in SlotState::ALL {
        let mut facts = known();
        facts.slots.insert(upstream.clone(), Some(state));
        let Evaluation { explanation, wakers } = ask(&success("up"), &facts);
        let (answer, word) =
            if state == SlotState::Succeeded { (Answer::Met, "is ready") } else { (Answer::NotYet, "is not ready") };
        assert_eq!((explanation.answer, explanation.is_uncertain()), (answer, false), "{state}");
        assert_eq!(words::text(&explanation), format!("Workflow slot up@2016-01-01T04:00Z {word}"));
        assert_eq!(wakers, [Waker::Slot(upstream.clone())], "success can be taken back by a rerun");
    }
}

#[test]
fn a_slot_that_does_not_exist_is_known_and_one_that_was_not_looked_up_is_not() {
    let upstream = SlotRef::at(id("up"), at("2016-01-01T04:00Z"));
    let alert = not(success("up"));
    assert_eq!(word(&explain(&alert)), "not-yet?", "no alarm before the store has answered");
    let mut facts = known();
    facts.slots.insert(upstream, None);
    assert_eq!(word(&ask(&alert, &facts).explanation), "met");
}

#[test]
fn all_leaves_are_asked_and_wake() {
    let function = FunctionRef { file: "f.js".to_owned(), index: 2, digest: "d".to_owned() };
    let trigger = and([
        leaf("never"),
        or([leaf("met"), leaf("asked")]),
        not(success("up")),
        Trigger::Delay { seconds: 7200 },
        Trigger::Delay { seconds: 60 },
        Trigger::Function { function: function.clone() },
    ]);
    let uri = |name: &str| Waker::Probe(Probe::path(format!("hdfs://n/{name}")));
    let key = SlotKey::parse("2016-01-01T04:00Z").unwrap();
    let wanted = [
        uri("never"),
        uri("met"),
        uri("asked"),
        Waker::Slot(SlotRef::new(id("up"), key.clone())),
        Waker::At(at("2016-01-01T06:00:00.001Z")),
        Waker::Probe(Probe::Function { function, workflow: id("mine"), key }),
    ];
    assert_eq!(ask(&trigger, &known()).wakers, wanted);
}

#[test]
fn blockers_are_the_leaves_in_the_way() {
    let say = |trigger: &Trigger| words::blockers(&explain(trigger));
    assert_eq!(say(&and([leaf("met"), leaf("not-yet")])), ["HDFS path hdfs://n/not-yet is not ready"]);
    assert_eq!(say(&leaf("met")), [""; 0]);
    assert_eq!(say(&not(leaf("met"))), ["HDFS path hdfs://n/met is ready (must not be so)"]);
    assert_eq!(say(&not(leaf("failed"))), ["HDFS path hdfs://n/failed can't be checked: refused"]);
    assert_eq!(say(&or([])), ["None of the nested triggers are ready"]);
    let two = or([leaf("not-yet"), offset(60, leaf("never"))]);
    let expected = ["HDFS path hdfs://n/not-yet is not ready", "HDFS path hdfs://n/never will never be ready"];
    assert_eq!(say(&two), expected);
}

#[test]
fn a_digest_tells_what_is_said_and_not_when() {
    let trigger = and([leaf("not-yet"), Trigger::Delay { seconds: 7200 }, success("up")]);
    let early = known();
    let mut late = known();
    late.now = at("2016-01-01T05:30Z");
    let digest = |facts: &Known| ask(&trigger, facts).explanation.digest();
    assert_eq!(digest(&early), digest(&late));
    late.paths.insert("hdfs://n/not-yet".to_owned(), Verdict::Failed);
    assert_ne!(digest(&early), digest(&late));
    let mut planned = known();
    planned.slots.insert(SlotRef::at(id("up"), at("2016-01-01T04:00Z")), Some(SlotState::Waiting));
    assert_ne!(digest(&early), digest(&planned));
}

#[test]
fn upstream_names_are_found_in_depth() {
    let trigger = and([success("a"), or([not(success("b")), offset(60, success("a"))]), leaf("met")]);
    assert_eq!(trigger.upstream(), [&id("a"), &id("b"), &id("a")]);
}

/// The slots that the slot of five o'clock depends on: those that are required, and `|` before each group of which others may stand in.
fn depends_on(trigger: &str, key: &KeyValues) -> String {
    let found = Dependencies::of(&trigger.parse().unwrap(), &id("wf"), key, &known());
    let named = |slots: &std::collections::BTreeSet<SlotRef>| {
        slots.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ").replace(":00:00.000Z", "")
    };
    let groups = found.alternatives.iter().map(|group| format!(" | {}", named(group)));
    let lists = found.lists();
    let lists = lists.iter().map(|list| format!(" [{list}]"));
    std::iter::once(named(&found.required)).chain(groups).chain(lists).collect()
}

#[test]
fn a_slot_depends_on_the_successes_that_its_trigger_waits_for() {
    let five = KeyValues::at(at(FIVE));
    for (trigger, expected) in [
        ("always()", ""),
        ("success(a)", "a@2016-01-01T05"),
        ("and(success(a),offset(-3600,success(b)),delay(9))", "a@2016-01-01T05 b@2016-01-01T04"),
        ("and(success(a),offset(-3600,success(a)))", "a@2016-01-01T04 a@2016-01-01T05 [a]"),
        ("covers(a)", "a@2016-01-01T05 [a]"),
        ("or(success(a))", "a@2016-01-01T05"),
        (
            "or(success(a),and(success(b),success(c)),delay(9))",
            " | a@2016-01-01T05 | b@2016-01-01T05 c@2016-01-01T05 | ",
        ),
        ("and(success(a),not(success(b)))", "a@2016-01-01T05"),
    ] {
        assert_eq!(depends_on(trigger, &five), expected, "{trigger}");
    }
}
