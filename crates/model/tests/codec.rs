//! What is written as JSON reads back as the same: triggers, explanations, events of every kind.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::event::{Abort, BackfillEvent, Event, Origin};
use kelos_model::function::FunctionRef;
use kelos_model::ranges::Range;
use kelos_model::reason::UnknownFinding;
use kelos_model::trigger::{Conditions, FileSystem, PathCheck, Verdict};
use kelos_model::{
    Actor, ActorKind, Answer, BackfillId, Breach, EventRecord, Fact, Finding, FlowKey, Invariant, Occurrence, Outcome,
    Probe, Reason, ReasonKind, SlotEvent, SlotKey, SlotRef, SlotState, Trigger, WorkflowEvent, WorkflowId,
};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

fn survives<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) -> Result<(), TestCaseError> {
    let json = serde_json::to_string(value).unwrap();
    let back: T = serde_json::from_str(&json).map_err(|error| TestCaseError::fail(format!("{error}: {json}")))?;
    prop_assert_eq!(&back, value, "{}", json);
    Ok(())
}

/// Text as people and file systems have it, quotes and backslashes among it.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z0-9 /${}\"\\\\:@é✓\n-]{0,16}"]
}

fn workflow() -> impl Strategy<Value = WorkflowId> {
    "[a-zA-Zñø.@-][a-zA-Zñø .@-]{0,11}".prop_map(|name| WorkflowId::new(&name).unwrap())
}

fn backfill() -> impl Strategy<Value = BackfillId> {
    "[a-z][a-z0-9-]{0,8}".prop_map(|name| BackfillId::new(&name).unwrap())
}

/// From the year 1 to the year 9998, in whole milliseconds as all moments are.
fn moment() -> impl Strategy<Value = Timestamp> {
    (-62_135_596_800_000_i64..253_370_764_800_000).prop_map(|ms| Timestamp::from_millisecond(ms).unwrap())
}

fn slot() -> impl Strategy<Value = SlotRef> {
    (workflow(), moment()).prop_map(|(workflow, at)| SlotRef::at(workflow, at))
}

fn breach() -> impl Strategy<Value = Breach> {
    let invariant = prop::sample::select(Invariant::ALL.to_vec());
    (invariant, workflow(), prop::option::of(slot())).prop_map(|(invariant, workflow, slot)| Breach {
        invariant,
        workflow,
        slot,
    })
}

fn function() -> impl Strategy<Value = FunctionRef> {
    (text(), any::<u32>(), "[0-9a-f]{16}").prop_map(|(file, index, digest)| FunctionRef { file, index, digest })
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let glob = prop::option::of(text());
    (glob, any::<Option<u32>>(), any::<Option<u64>>(), any::<Option<u32>>()).prop_map(
        |(glob, min_count, min_bytes, min_age_seconds)| Conditions { glob, min_count, min_bytes, min_age_seconds },
    )
}

fn trigger() -> impl Strategy<Value = Trigger> {
    let system = prop_oneof![Just(FileSystem::Hdfs), Just(FileSystem::Local), Just(FileSystem::Any)];
    let leaf =
        prop_oneof![
            Just(Trigger::Always),
            any::<i64>().prop_map(|seconds| Trigger::Delay { seconds }),
            workflow().prop_map(|workflow| Trigger::Success { workflow }),
            (system, text(), text(), conditions()).prop_map(|(system, path, base, conditions)| Trigger::Path(
                PathCheck { system, path, base, conditions }
            )),
            function().prop_map(|function| Trigger::Function { function }),
        ];
    leaf.prop_recursive(6, 48, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|triggers| Trigger::And { triggers }),
            prop::collection::vec(inner.clone(), 0..4).prop_map(|triggers| Trigger::Or { triggers }),
            inner.clone().prop_map(|trigger| Trigger::Not { trigger: Box::new(trigger) }),
            (any::<i64>(), inner)
                .prop_map(|(seconds, trigger)| Trigger::Offset { seconds, trigger: Box::new(trigger) }),
        ]
    })
}

fn probe() -> impl Strategy<Value = Probe> {
    prop_oneof![
        (text(), conditions()).prop_map(|(uri, conditions)| Probe::Path { uri, conditions }),
        (function(), workflow(), moment()).prop_map(|(function, workflow, at)| Probe::Function {
            function,
            workflow,
            key: SlotKey::Time(at)
        }),
    ]
}

fn finding() -> BoxedStrategy<Finding> {
    let verdict = prop::sample::select(vec![Verdict::Yes, Verdict::No, Verdict::Never, Verdict::Failed]);
    let state = prop::sample::select(SlotState::ALL.to_vec());
    let data = prop::collection::vec(("[a-b]{1,4}", any::<i64>()), 0..3)
        .prop_map(|fields| fields.into_iter().map(|(name, value)| (name, value.into())).collect());
    prop_oneof![
        Just(Finding::AllOf),
        any::<i64>().prop_map(|seconds| Finding::Offset { seconds }),
        (moment(), moment()).prop_map(|(now, until)| Finding::DelayUntil { now, until }),
        slot().prop_map(|slot| Finding::UpstreamMissing { slot }),
        (slot(), state).prop_map(|(slot, state)| Finding::UpstreamIs { slot, state }),
        probe().prop_map(|probe| Finding::ProbeAsked { probe }),
        (probe(), verdict, text(), moment()).prop_map(|(probe, verdict, detail, looked_at)| Finding::ProbeAnswered {
            probe,
            verdict,
            detail,
            looked_at
        }),
        ("new-[a-z]{1,8}", data).prop_map(|(code, data)| Finding::Unknown(UnknownFinding { code, data })),
    ]
    .boxed()
}

fn kind() -> impl Strategy<Value = ReasonKind> {
    use ReasonKind::{Always, And, Delay, Function, HdfsPath, LocalPath, Not, Offset, Or, Other, Success};
    let known = vec![Always, And, Or, Not, Offset, Delay, Success, HdfsPath, LocalPath, Function];
    prop::sample::select([known, vec![Other("of-a-newer-version".to_owned())]].concat())
}

fn answer() -> impl Strategy<Value = Answer> {
    prop::sample::select(vec![Answer::Met, Answer::NotYet, Answer::Never])
}

fn explanation() -> BoxedStrategy<Reason> {
    let leaf = (kind(), answer(), finding()).prop_map(|(kind, answer, finding)| Reason::leaf(kind, answer, finding));
    leaf.prop_recursive(4, 24, 4, |inner| {
        (kind(), answer(), finding(), prop::collection::vec(inner, 0..4))
            .prop_map(|(kind, answer, finding, nested)| Reason { kind, answer, finding, nested })
    })
    .boxed()
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Succeeded),
        Just(Outcome::Killed),
        (text(), any::<Option<i32>>()).prop_map(|(reason, exit_status)| Outcome::Failed {
            reason,
            exit_status,
            code: None
        }),
        text().prop_map(|reason| Outcome::Refused { reason }),
        text().prop_map(|reason| Outcome::Unknown { reason }),
        text().prop_map(|reason| Outcome::Lost { reason }),
    ]
}

/// What happens before a slot runs.
fn gating() -> impl Strategy<Value = SlotEvent> {
    let origin = prop::sample::select(vec![Origin::Schedule, Origin::Request, Origin::Backfill]);
    prop_oneof![
        (origin, any::<i32>(), prop::option::of(backfill())).prop_map(|(origin, priority, backfill)| {
            SlotEvent::Planned { origin, priority, backfill, by: Some(Actor::person("ann")), reason: None }
        }),
        explanation().prop_map(|explanation| SlotEvent::Looked { explanation }),
        explanation().prop_map(|explanation| SlotEvent::TriggerMet { explanation }),
        (any::<u64>(), explanation())
            .prop_map(|(timeout_seconds, explanation)| SlotEvent::Expired { timeout_seconds, explanation }),
        explanation().prop_map(|explanation| SlotEvent::Skipped { explanation }),
    ]
}

/// What happens to its runs.
fn running() -> impl Strategy<Value = SlotEvent> {
    prop_oneof![
        any::<u32>().prop_map(|run| SlotEvent::Dispatched { run, worker: None }),
        (any::<u32>(), text()).prop_map(|(run, reason)| SlotEvent::Deferred { run, reason }),
        (any::<u32>(), text()).prop_map(|(run, external_id)| SlotEvent::Started { run, external_id }),
        any::<u32>().prop_map(|run| SlotEvent::Withdrawn { run }),
        any::<u32>().prop_map(|run| SlotEvent::Succeeded { run }),
        (any::<u32>(), outcome(), moment()).prop_map(|(run, outcome, due)| SlotEvent::BackedOff { run, outcome, due }),
        Just(SlotEvent::BackoffEnded),
        (any::<u32>(), outcome()).prop_map(|(run, outcome)| SlotEvent::Failed { run, outcome }),
        (any::<u32>(), outcome()).prop_map(|(run, outcome)| SlotEvent::RunEnded { run, outcome }),
    ]
}

/// Boxed, since the strategies of events that hold it would take more stack than a thread of tests has.
fn actor() -> BoxedStrategy<Actor> {
    use ActorKind::{Person, System, Token, Unknown, Worker};
    let kind = prop::sample::select(vec![Person, Token, Worker, System, Unknown]);
    let name = prop_oneof![text(), Just(r#"{"kind":"system","name":"x"}"#.to_owned())];
    let address = prop::option::of(prop_oneof![
        any::<[u8; 4]>().prop_map(std::net::IpAddr::from),
        any::<[u8; 16]>().prop_map(std::net::IpAddr::from)
    ]);
    (kind, name, prop::option::of(text()), address)
        .prop_map(|(kind, name, credential, address)| Actor {
            credential: credential.map(Into::into),
            address,
            ..Actor::new(kind, name)
        })
        .boxed()
}

fn reason() -> BoxedStrategy<Option<String>> {
    prop::option::of(text()).boxed()
}

/// What happens to anything else on somebody's word.
fn asked_beside_slots() -> impl Strategy<Value = Event> {
    let what = prop_oneof![
        (prop::option::of(actor()), reason()).prop_map(|(by, reason)| WorkflowEvent::Defined {
            version: 1,
            by,
            reason
        }),
        (prop::option::of(actor()), reason()).prop_map(|(by, reason)| WorkflowEvent::Removed { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| WorkflowEvent::Paused { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| WorkflowEvent::Resumed { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| WorkflowEvent::Enabled { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| WorkflowEvent::Disabled { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| WorkflowEvent::Thawed { by, reason }),
        breach().prop_map(|breach| WorkflowEvent::Frozen { breach }),
        (breach(), text()).prop_map(|(breach, input)| WorkflowEvent::SetAside { breach, input }),
    ];
    let of_backfill = prop_oneof![
        (actor(), reason()).prop_map(|(by, reason)| BackfillEvent::Cancelled { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| BackfillEvent::Reopened { slots: 1, by, reason }),
    ];
    prop_oneof![
        (workflow(), what).prop_map(|(workflow, what)| Event::Workflow { workflow, what }),
        (backfill(), of_backfill).prop_map(|(backfill, what)| Event::Backfill { backfill, what }),
        (prop::option::of(actor()), reason()).prop_map(|(by, reason)| Event::Register {
            bucket: "b".to_owned(),
            key: "k".to_owned(),
            value: None,
            by,
            reason
        }),
        prop::option::of(actor()).prop_map(|by| Event::Fact {
            fact: Fact {
                source: "s".into(),
                key: None,
                what: Occurrence::Signal { name: "go".into(), payload: serde_json::Value::Null }
            },
            by
        }),
    ]
}

/// What people do to it.
fn asked() -> impl Strategy<Value = SlotEvent> {
    prop_oneof![
        (actor(), reason()).prop_map(|(by, reason)| SlotEvent::Killed { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| SlotEvent::MarkedSucceeded { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| SlotEvent::SkippedBy { by, reason }),
        (actor(), reason(), any::<i32>(), prop::option::of(backfill()))
            .prop_map(|(by, reason, priority, backfill)| SlotEvent::Reopened { by, reason, priority, backfill }),
        (any::<i32>(), backfill(), prop::option::of(actor()), reason())
            .prop_map(|(priority, backfill, by, reason)| { SlotEvent::Prioritised { priority, backfill, by, reason } }),
        (prop::option::of(actor()), reason()).prop_map(|(by, reason)| SlotEvent::Aborted {
            cause: Abort::Disabled,
            by,
            reason
        }),
        (actor(), reason(), any::<bool>()).prop_map(|(by, reason, unconstrained)| SlotEvent::FiredBy {
            by,
            reason,
            arguments: BTreeMap::new(),
            unconstrained
        }),
        (actor(), reason()).prop_map(|(by, reason)| SlotEvent::Requested { by, reason }),
        (
            text(),
            prop::sample::select(SlotState::ALL.to_vec()),
            any::<u32>(),
            prop::option::of(text()),
            any::<bool>(),
            text()
        )
            .prop_map(|(from, state, retries, external_id, requested, there)| SlotEvent::Imported {
                from,
                state,
                retries,
                external_id,
                requested,
                there
            }),
    ]
}

fn key() -> impl Strategy<Value = SlotKey> {
    let flow = ("[a-zA-Z0-9_]{1,4}", prop::option::of("[a-z0-9.~_%-]{1,5}")).prop_map(|(run, step)| {
        let run = FlowKey::run(&run).unwrap();
        SlotKey::Flow(step.map_or(run.clone(), |step| run.step(&step).unwrap()))
    });
    prop_oneof![
        moment().prop_map(SlotKey::Time),
        "[a-zA-Z0-9_.@~-]{1,6}".prop_map(|id| SlotKey::Job(id.into())),
        moment().prop_map(SlotKey::Moment),
        flow,
    ]
}

#[test]
fn each_kind_of_key_has_a_text_of_its_own() {
    let at = "2015-09-13T13:40Z".parse().unwrap();
    let run = FlowKey::run("7f3a").unwrap();
    let step = run.step("extract").unwrap();
    for (key, text, short, given) in [
        (SlotKey::Time(at), "2015-09-13T13:40:00.000Z", "2015-09-13T13:40Z", "2015-09-13T13:40:00.000Z"),
        (SlotKey::Job("1_a".into()), "~1_a", "1_a", "~1_a"),
        (SlotKey::Moment(at), "_2015-09-13T13:40:00.000Z", "2015-09-13T13:40Z", "2015-09-13T13:40:00.000Z"),
        (SlotKey::Flow(run), ".7f3a", "7f3a", ".7f3a"),
        (SlotKey::Flow(step), ".7f3a.extract", "7f3a.extract", ".7f3a.extract"),
    ] {
        assert_eq!((key.to_string().as_str(), key.short().as_str(), key.given().as_str()), (text, short, given));
    }
    for nonsense in ["", "~", "_", "_x", ".", "..", ".a.", ".a.b/c", ".a-b", ".a.b@c", "~a/b", "x"] {
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
    fn keys_survive_and_sort_within_their_kind_as_their_texts(a in key(), b in key()) {
        survives(&a)?;
        prop_assert_eq!(SlotKey::parse(&a.to_string()), Ok(a.clone()));
        if std::mem::discriminant(&a) == std::mem::discriminant(&b) {
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        } else {
            prop_assert_ne!(a.to_string().chars().next(), b.to_string().chars().next());
        }
    }

    #[test]
    fn slots_of_all_kinds_of_keys_are_read_back(workflow in "[a-z@~%_.]{1,5}", key in key()) {
        let Ok(workflow) = WorkflowId::new(&workflow) else { return Ok(()) };
        let slot = SlotRef::new(workflow, key);
        prop_assert_eq!(slot.to_string().parse::<SlotRef>(), Ok(slot));
    }

    #[test]
    fn steps_stand_right_after_their_run(run in "[a-zA-Z0-9_]{1,4}", step in "[ -~]{1,5}", other in "[a-zA-Z0-9_]{1,4}") {
        let run = FlowKey::run(&run).unwrap();
        let Ok(step) = run.step(&step) else { return Ok(()) };
        prop_assert_eq!((step.run_id(), step.step_name().is_some()), (run.run_id(), true));
        let other = FlowKey::run(&other).unwrap();
        prop_assert!(run < step && (other <= run || other > step));
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
    let collected: kelos_model::Collected = serde_json::from_str(old).unwrap();
    assert_eq!(collected.asked.as_ref().unwrap().by, Some(Actor::unknown("anna")));
    assert_eq!(serde_json::to_string(&collected).unwrap(), old);
}
