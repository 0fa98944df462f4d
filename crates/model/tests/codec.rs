//! What is written as JSON reads back as the same: triggers, explanations, events of every kind.

use jiff::Timestamp;
use kelos_model::event::{Event, Origin};
use kelos_model::function::FunctionRef;
use kelos_model::reason::UnknownFinding;
use kelos_model::trigger::{Conditions, FileSystem, PathCheck, Verdict};
use kelos_model::{
    Answer, BackfillId, EventRecord, Finding, Outcome, Probe, Reason, ReasonKind, SlotEvent, SlotKey, SlotRef,
    SlotState, Trigger, WorkflowId,
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
        (text(), any::<Option<i32>>()).prop_map(|(reason, exit_status)| Outcome::Failed { reason, exit_status }),
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
            SlotEvent::Planned { origin, priority, backfill, by: Some("ann".to_owned()), reason: None }
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

/// What people do to it.
fn asked() -> impl Strategy<Value = SlotEvent> {
    prop_oneof![
        (text(), prop::option::of(text())).prop_map(|(by, reason)| SlotEvent::Killed { by, reason }),
        (text(), prop::option::of(text())).prop_map(|(by, reason)| SlotEvent::MarkedSucceeded { by, reason }),
        (text(), prop::option::of(text())).prop_map(|(by, reason)| SlotEvent::SkippedBy { by, reason }),
        (text(), prop::option::of(text()), any::<i32>(), prop::option::of(backfill()))
            .prop_map(|(by, reason, priority, backfill)| SlotEvent::Reopened { by, reason, priority, backfill }),
        (any::<i32>(), backfill(), prop::option::of(text()))
            .prop_map(|(priority, backfill, by)| SlotEvent::Prioritised { priority, backfill, by }),
        (text(), prop::option::of(text())).prop_map(|(by, reason)| SlotEvent::Requested { by, reason }),
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
    fn keys_survive_and_sort_as_their_texts(a in moment(), b in moment()) {
        let (a, b) = (SlotKey::Time(a), SlotKey::Time(b));
        survives(&a)?;
        prop_assert_eq!(SlotKey::parse(&a.to_string()), Ok(a.clone()));
        prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
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
