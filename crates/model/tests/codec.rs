//! What is written as JSON reads back as the same: triggers, explanations, events of every kind.

use crate::random::{
    asked, asked_beside_slots, collected, definition, explanation, gating, moment, moments, planned, running, slot,
    trigger,
};
use jiff::Timestamp;
use kelos_model::event::Event;
use kelos_model::ranges::Range;
use kelos_model::time::CronSchedule;
use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::{Actor, EventRecord, Reason, RunName, SlotKey, SlotRef, StepKey, StepName, Trigger, WorkflowId};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

fn survives<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) -> Result<(), TestCaseError> {
    let json = serde_json::to_string(value).unwrap();
    let back: T = serde_json::from_str(&json).map_err(|error| TestCaseError::fail(format!("{error}: {json}")))?;
    prop_assert_eq!(&back, value, "{}", json);
    Ok(())
}

fn run_key() -> impl Strategy<Value = SlotKey> {
    prop_oneof![
        moment().prop_map(SlotKey::Time),
        "[a-zA-Z0-9_.@~-]{1,6}".prop_map(|id| SlotKey::Job(id.into())),
        moment().prop_map(SlotKey::Moment),
        // Some of these read as a year, and are no names.
        "[a-zA-Z0-9][a-zA-Z0-9_:-]{0,4}"
            .prop_filter_map("a name of a run", |name| RunName::new(&name).ok().map(SlotKey::Named)),
    ]
}

fn key() -> impl Strategy<Value = SlotKey> {
    let step = (run_key(), "[a-zA-Z0-9_-]{1,5}", prop::option::of(any::<u32>())).prop_map(|(run, step, item)| {
        let step = StepKey::new(&run, &StepName::new(&step).unwrap()).unwrap();
        SlotKey::Step(item.map_or(step.clone(), |item| step.item(item)))
    });
    prop_oneof![4 => run_key(), 1 => step]
}

#[test]
fn each_kind_of_key_has_a_text_of_its_own() {
    let at = "2015-09-13T13:40Z".parse().unwrap();
    let named = SlotKey::Named(RunName::new("order-42").unwrap());
    let step = |run: &SlotKey| StepKey::new(run, &StepName::new("pay").unwrap()).unwrap();
    for (key, text, short, given) in [
        (SlotKey::Time(at), "2015-09-13T13:40:00.000Z", "2015-09-13T13:40Z", "2015-09-13T13:40:00.000Z"),
        (SlotKey::Job("1_a".into()), "~1_a", "1_a", "~1_a"),
        (SlotKey::Moment(at), "_2015-09-13T13:40:00.000Z", "2015-09-13T13:40Z", "2015-09-13T13:40:00.000Z"),
        (named.clone(), ".order-42", "order-42", ".order-42"),
        (SlotKey::Step(step(&named)), ".order-42.pay", "order-42.pay", ".order-42.pay"),
        (
            SlotKey::Step(step(&SlotKey::Time(at)).item(3)),
            ".2015-09-13T13:40:00.000Z.pay:3",
            "2015-09-13T13:40Z.pay:3",
            ".2015-09-13T13:40:00.000Z.pay:3",
        ),
    ] {
        assert_eq!((key.to_string().as_str(), key.short().as_str(), key.given().as_str()), (text, short, given));
    }
    for nonsense in [
        "",
        "~",
        "_",
        "_x",
        ".",
        "..",
        ".a.",
        ".a.b/c",
        ".-a",
        ".a.b@c",
        ".a.b:x",
        ".a.b:01",
        ".2015-09-13T13:40Z.b",
        "~a/b",
        "x",
    ] {
        assert!(SlotKey::parse(nonsense).is_err(), "{nonsense}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn triggers_survive(trigger in trigger()) {
        survives(&trigger)?;
    }

    #[test]
    fn reasons_survive_with_their_digest(explanation in explanation()) {
        survives(&explanation)?;
        let json = serde_json::to_string(&explanation).unwrap();
        let back: Reason = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(back.digest(), explanation.digest());
        prop_assert_ne!(explanation.digest(), 0, "0 means that nothing was said yet");
    }

    #[test]
    fn events_survive(what in prop_oneof![gating(), running(), asked()], slot in slot(), at in moment(), seq: u64) {
        survives(&what)?;
        survives(&EventRecord { seq, at, previous: seq / 2, event: Event::Slot { slot, what } })?;
    }

    #[test]
    fn events_beside_those_of_slots_survive(event in asked_beside_slots(), at in moment()) {
        survives(&EventRecord { seq: 1, at, previous: 0, event })?;
    }

    #[test]
    fn rows_survive(definition in definition(), planned in planned(), moments in moments(), collected in collected()) {
        survives(&definition)?;
        survives(&planned)?;
        survives(&moments)?;
        survives(&collected)?;
    }

    #[test]
    fn keys_survive_and_sort_within_their_kind_as_their_texts(a in key(), b in key()) {
        survives(&a)?;
        prop_assert_eq!(SlotKey::parse(&a.to_string()), Ok(a.clone()));
        if std::mem::discriminant(&a) == std::mem::discriminant(&b) {
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        } else {
            prop_assert_ne!(a.to_string(), b.to_string());
        }
    }

    #[test]
    fn slots_of_all_kinds_of_keys_are_read_back(workflow in "[a-z@~%_.]{1,5}", key in key()) {
        let Ok(workflow) = WorkflowId::new(&workflow) else { return Ok(()) };
        let slot = SlotRef::new(workflow, key);
        prop_assert_eq!(slot.to_string().parse::<SlotRef>(), Ok(slot));
    }

    #[test]
    fn steps_know_their_run(run in run_key(), step in "[a-zA-Z0-9_-]{1,5}", item: u32) {
        let key = StepKey::new(&run, &StepName::new(&step).unwrap()).unwrap();
        prop_assert_eq!((key.run(), key.step(), key.item_number()), (run.clone(), &*step, None));
        let one = key.item(item);
        prop_assert_eq!((one.run(), one.step(), one.item_number()), (run.clone(), &*step, Some(item)));
        prop_assert!(SlotKey::Step(one).to_string().starts_with(&StepKey::prefix(&run)));
    }

    #[test]
    fn short_names_of_slots_are_read_back(slot in slot()) {
        let short = slot.short();
        let (workflow, key) = short.rsplit_once('@').unwrap();
        prop_assert_eq!(workflow, slot.workflow.as_str());
        prop_assert_eq!(SlotKey::parse(key), Ok(slot.key));
    }
}

#[test]
fn the_json_of_a_trigger_is_what_others_read() {
    let check = PathCheck::new(FileSystem::Hdfs, "/in/${year}", "hdfs://n");
    let wait = Trigger::Not { trigger: Box::new(Trigger::Delay { seconds: 60 }) };
    let trigger = Trigger::And { triggers: vec![Trigger::Path(check), wait] };
    let wanted = serde_json::json!({"type": "and", "triggers": [
        {"type": "path", "system": "hdfs", "path": "/in/${year}", "base": "hdfs://n"},
        {"type": "not", "trigger": {"type": "delay", "seconds": 60}},
    ]});
    assert_eq!(serde_json::to_value(&trigger).unwrap(), wanted);
}

/// Rows of workflows keep these words, and another schedule than theirs is planned anew.
#[test]
fn the_words_of_a_schedule_stay() {
    let schedule = CronSchedule::utc("0 0 * * * ?".parse().unwrap());
    let words = r#"{"cron":"0 0 * * * ?","zone":"UTC","gap":"shift","fold":"auto"}"#;
    assert_eq!(serde_json::to_string(&schedule).unwrap(), words);
}

/// All events that say who asked, as they were written while an actor was a name.
const BY_NAME: [&str; 23] = [
    r#"{"subject":"register","bucket":"b","key":"k","value":null,"by":"anna"}"#,
    r#"{"subject":"slot","slot":SLOT,"what":{"event":"planned","origin":"request","priority":3,"by":"anna","reason":"why"}}"#,
    r#"{"subject":"slot","slot":SLOT,"what":{"event":"fired-by","by":"anna"}}"#,
    r#"{"subject":"slot","slot":SLOT,"what":{"event":"fired-by","by":"anna","arguments":{"a":"b"},"unconstrained":true}}"#,
    r#"{"subject":"slot","slot":SLOT,"what":{"event":"aborted","cause":"disabled","by":"anna"}}"#,
    r#"{"subject":"slot","slot":SLOT,"what":{"event":"killed","by":"anna","reason":"why"}}"#,
    r#"{"subject":"slot","slot":SLOT,"what":{"event":"marked-succeeded","by":"anna"}}"#,
    r#"{"subject":"slot","slot":SLOT,"what":{"event":"skipped-by","by":"anna"}}"#,
    r#"{"subject":"slot","slot":SLOT,"what":{"event":"reopened","by":"anna","priority":-1,"backfill":"bf"}}"#,
    r#"{"subject":"slot","slot":SLOT,"what":{"event":"prioritised","priority":7,"backfill":"bf","by":"anna"}}"#,
    r#"{"subject":"slot","slot":SLOT,"what":{"event":"requested","by":"anna"}}"#,
    r#"{"subject":"workflow","workflow":"w","what":{"event":"defined","version":2,"by":"anna"}}"#,
    r#"{"subject":"workflow","workflow":"w","what":{"event":"removed","by":"anna"}}"#,
    r#"{"subject":"workflow","workflow":"w","what":{"event":"paused","by":"anna"}}"#,
    r#"{"subject":"workflow","workflow":"w","what":{"event":"resumed","by":"anna"}}"#,
    r#"{"subject":"backfill","backfill":"bf","what":{"event":"created","workflow":"w","range":RANGE,"mode":"missing","priority":-1,"by":"anna","slots":3}}"#,
    r#"{"subject":"backfill","backfill":"bf","what":{"event":"cancelled","by":"anna"}}"#,
    r#"{"subject":"backfill","backfill":"bf","what":{"event":"paused","by":"anna"}}"#,
    r#"{"subject":"backfill","backfill":"bf","what":{"event":"paused","by":"anna","reason":"why"}}"#,
    r#"{"subject":"backfill","backfill":"bf","what":{"event":"resumed","by":"anna"}}"#,
    r#"{"subject":"backfill","backfill":"bf","what":{"event":"prioritised","priority":4,"by":"anna"}}"#,
    r#"{"subject":"backfill","backfill":"bf","what":{"event":"reopened","slots":2,"by":"anna"}}"#,
    r#"{"subject":"workflow","workflow":"w","what":{"event":"paused","by":"{\"odd\"}"}}"#,
];

#[test]
fn events_that_name_who_asked_by_a_text_are_read_as_before() {
    let moment = Timestamp::UNIX_EPOCH;
    let slot = serde_json::to_string(&SlotRef::at(WorkflowId::new("w").unwrap(), moment)).unwrap();
    let range = serde_json::to_string(&Range::new(moment, moment)).unwrap();
    for old in BY_NAME {
        let old = old.replace("SLOT", &slot).replace("RANGE", &range);
        let event: Event = serde_json::from_str(&old).unwrap_or_else(|error| panic!("{error}: {old}"));
        let words = format!("{event:?}");
        assert!(words.contains("kind: Unknown") && words.contains("credential: None"), "{words}");
        if !old.contains("odd") {
            // Nothing else is known, so nothing else is written.
            assert_eq!(serde_json::to_string(&event).unwrap(), old);
        }
    }
}

#[test]
fn what_a_slot_collected_names_who_asked_as_before() {
    let old = r#"{"since":"1970-01-01T00:00:00Z","asked":{"unconstrained":true,"by":"anna"}}"#;
    let collected: kelos_model::Collection = serde_json::from_str(old).unwrap();
    assert_eq!(collected.asked.as_ref().unwrap().by, Some(Actor::unknown("anna")));
    assert_eq!(serde_json::to_string(&collected).unwrap(), old);
}
