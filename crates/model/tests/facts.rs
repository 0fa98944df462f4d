//! What was collected decides about a trigger in one way, whether it is asked shortly or with reasons.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::constraint::{Circumstances, LastStart, judge};
use kelos_model::facts::{ENDS, Tally};
use kelos_model::ranges::Range;
use kelos_model::template::KeyValues;
use kelos_model::time::{Firing, Zone};
use kelos_model::trigger::{Facts, evaluate};
use kelos_model::{
    Answer, Collection, Constraint, Gate, Occurrence, Otherwise, Probe, ProbeAnswer, SlotRef, SlotState, Subject,
    Trigger, WorkflowId,
};
use proptest::prelude::*;

/// Nothing is known but what was collected.
struct Only<'a>(&'a Collection);

impl Facts for Only<'_> {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
    fn slot(&self, _: &SlotRef) -> Option<Option<SlotState>> {
        None
    }
    fn period(&self, _: &WorkflowId, _: Timestamp) -> Option<Range> {
        None
    }
    fn slots_in(&self, _: &WorkflowId, _: Range) -> Option<Vec<Timestamp>> {
        None
    }
    fn probe(&self, _: &Probe) -> Option<ProbeAnswer> {
        None
    }
    fn collected(&self, subject: &Subject) -> Option<&Tally> {
        self.0.of(subject)
    }
}

fn id(n: u8) -> WorkflowId {
    WorkflowId::new(&format!("p{n}")).expect("an id")
}

fn firing() -> Firing {
    Firing::parse("0 4 * * *", Zone::utc()).expect("an expression")
}

fn occurrence() -> impl Strategy<Value = Occurrence> {
    prop_oneof![
        (0..2_u8, 0..3_u32).prop_map(|(n, count)| Occurrence::Partitions {
            dataset: format!("ds{n}").as_str().into(),
            count,
            keys: Vec::new()
        }),
        (0..2_u8, 0..3_usize).prop_map(|(n, state)| Occurrence::Ended {
            program: id(n),
            state: ENDS[state],
            run: None,
            arguments: Default::default(),
            outputs: Default::default()
        }),
        Just(Occurrence::Fired { cron: firing().name(), time: Timestamp::UNIX_EPOCH }),
        Just(Occurrence::Signal { name: "go".into(), payload: serde_json::Value::Null, run: None }),
    ]
}

fn trigger() -> impl Strategy<Value = Trigger> {
    let leaf = prop_oneof![
        (0..2_u8, 1..5_u32)
            .prop_map(|(n, count)| Trigger::Partitions { dataset: format!("ds{n}").as_str().into(), count }),
        (0..2_u8, prop::sample::subsequence(ENDS.to_vec(), 1..=3))
            .prop_map(|(n, states)| Trigger::Ended { program: id(n), states }),
        Just(Trigger::Fired { firing: firing() }),
        Just(Trigger::Signal { name: "go".into() }),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let some = prop::collection::vec(inner, 1..4);
        prop_oneof![
            some.clone().prop_map(|triggers| Trigger::And { triggers }),
            some.prop_map(|triggers| Trigger::Or { triggers }),
        ]
    })
}

fn collected(facts: &[Occurrence]) -> Collection {
    let mut collected = Collection::new(Timestamp::UNIX_EPOCH);
    facts.iter().for_each(|fact| collected.add(fact));
    collected
}

proptest! {
    #[test]
    fn asked_shortly_or_with_reasons(trigger in trigger(), facts in prop::collection::vec(occurrence(), 0..12)) {
        prop_assert!(trigger.is_of_facts());
        let collected = collected(&facts);
        let asked = evaluate(&trigger, &id(9), &KeyValues::at(Timestamp::UNIX_EPOCH), &Only(&collected));
        prop_assert_eq!(trigger.is_met_by(&collected), asked.explanation.answer == Answer::Met);
        prop_assert!(asked.wakers.is_empty());
    }

    #[test]
    fn what_is_met_stays_met(trigger in trigger(), facts in prop::collection::vec(occurrence(), 0..12), more in occurrence()) {
        let before = collected(&facts);
        let mut after = before.clone();
        after.add(&more);
        prop_assert!(!trigger.is_met_by(&before) || trigger.is_met_by(&after));
    }

    #[test]
    fn only_what_it_names_changes_it(trigger in trigger(), facts in prop::collection::vec(occurrence(), 0..12)) {
        let named = trigger.subjects();
        let concerned: Vec<_> = facts.iter().filter(|fact| named.contains(&fact.subject())).cloned().collect();
        prop_assert_eq!(trigger.is_met_by(&collected(&facts)), trigger.is_met_by(&collected(&concerned)));
    }

    #[test]
    fn what_is_left_without_a_program_never_waits_for_it(trigger in trigger()) {
        if let Some(left) = trigger.without(&id(0)) {
            prop_assert!(!left.waits_for(&id(0)));
            let fewer: BTreeSet<_> = left.subjects().difference(&trigger.subjects()).cloned().collect();
            prop_assert!(fewer.is_empty());
        }
        if !trigger.waits_for(&id(0)) {
            prop_assert_eq!(trigger.without(&id(0)), Some(trigger));
        }
    }

    #[test]
    fn a_trigger_is_read_as_it_is_written(trigger in trigger()) {
        let json = serde_json::to_string(&trigger).expect("json");
        prop_assert_eq!(serde_json::from_str::<Trigger>(&json).expect("a trigger"), trigger);
    }

    #[test]
    fn constraints_that_wait_are_met_before_those_that_abort_speak(active in 0..3_u32, waited in 0..20_i64, again: bool) {
        let program = id(0);
        let created = Timestamp::UNIX_EPOCH;
        let now = Timestamp::from_second(waited).expect("an instant");
        let constraints = [Constraint::new(Gate::Concurrency(1)), Constraint::new(Gate::Delay(10_000))];
        let world = Circumstances { now, created, program: &program, active, last_start: None, again };
        let judged = judge(&constraints, &world);
        let expected = match (waited >= 10, active == 0, again) {
            (true, true, _) => Answer::Met,
            (true, false, false) => Answer::Never,
            _ => Answer::NotYet,
        };
        prop_assert_eq!(judged.explanation.answer, expected);
        prop_assert_eq!(judged.room_below, (waited >= 10 && active > 0 && again).then_some(1));
        prop_assert_eq!(judged.wake.is_some(), waited < 10);
    }
}

#[test]
fn room_is_what_those_need_that_wait_and_not_those_that_abort() {
    let limit = |limit, otherwise| Constraint { gate: Gate::Concurrency(limit), otherwise };
    let constraints = [limit(3, Otherwise::Wait), limit(2, Otherwise::Wait), limit(1, Otherwise::Abort)];
    let (now, program) = (Timestamp::UNIX_EPOCH, id(0));
    let judged = |active, again| {
        let world = Circumstances { now, created: now, program: &program, active, last_start: None, again };
        judge(&constraints, &world)
    };
    assert_eq!(judged(4, false).room_below, Some(2));
    assert_eq!(judged(1, false).explanation.answer, Answer::Never);
    assert_eq!((judged(1, true).explanation.answer, judged(1, true).room_below), (Answer::NotYet, Some(1)));
    assert_eq!((judged(0, false).explanation.answer, judged(0, false).room_below), (Answer::Met, None));
}

#[test]
fn defaults_are_those_of_the_document() {
    let defaults = [
        (Gate::Concurrency(1), Otherwise::Abort),
        (Gate::Delay(1), Otherwise::Wait),
        (Gate::SinceLastRun(1), Otherwise::Abort),
    ];
    for (gate, otherwise) in defaults {
        assert_eq!(Constraint::new(gate).otherwise, otherwise);
    }
    let abort = Constraint { gate: Gate::Delay(1), otherwise: Otherwise::Abort };
    assert_eq!(abort.check(), Err("a delay can't abort: nothing would ever run. Expected it to wait".to_owned()));
    for gate in [Gate::Concurrency(0), Gate::Delay(0), Gate::SinceLastRun(0)] {
        assert!(Constraint::new(gate).check().is_err());
    }
}

/// Behaviour 10 of the reference, as the document has it: since the start of the last successful run. What goes on may
/// be that, so it holds back like one that has succeeded: the document's "runs only once" is to be kept by it, too.
#[test]
fn duration_since_the_last_run_counts_from_its_start() {
    let program = id(0);
    let hour = 3600;
    let at = |seconds| Timestamp::from_second(seconds).expect("an instant");
    let judged = |last: Option<i64>, over, otherwise| {
        let last_start = last.map(|seconds| LastStart { at: at(seconds), over });
        let now = at(10 * hour);
        let world = Circumstances { now, created: now, program: &program, active: 1, last_start, again: false };
        judge(&[Constraint { gate: Gate::SinceLastRun(3_600_000), otherwise }], &world)
    };
    for over in [true, false] {
        let answer = |last| judged(last, over, Otherwise::Abort).explanation.answer;
        assert_eq!(answer(None), Answer::Met);
        assert_eq!(answer(Some(8 * hour)), Answer::Met);
        assert_eq!(answer(Some(9 * hour)), Answer::Met);
        assert_eq!(answer(Some(9 * hour + 1)), Answer::Never);
        let waits = judged(Some(9 * hour + 1), over, Otherwise::Wait);
        assert_eq!((waits.wake, waits.until_end), (Some(at(10 * hour + 1)), !over));
    }
}
