//! Snapshots in plain text, and slots and events of every kind.

#![allow(dead_code, reason = "each test takes what it needs")]
#![allow(clippy::disallowed_methods, reason = "the tests read files; the model does not")]

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use jiff::Timestamp;
use kelos_model::event::{Abort, Origin};
use kelos_model::{Actor, Answer, BackfillId, Finding, Occurrence, Outcome, Reason, ReasonKind, SlotEvent, SlotState};

/// Compares with a file in `snapshots/`; `KELOS_BLESS=1` writes it.
pub(crate) fn expect(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if env::var_os("KELOS_BLESS").is_some() {
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == found, "{} differs from what came out:\n{found}", path.display());
}

/// A reason without depth.
pub(crate) fn because(answer: Answer) -> Reason {
    Reason::leaf(ReasonKind::Always, answer, Finding::Always)
}

/// One event of each kind, about a run of the given number where it is about a run.
pub(crate) fn events(run: u32) -> Vec<SlotEvent> {
    let explanation = because(Answer::NotYet);
    let outcome = Outcome::Failed { reason: "why".to_owned(), exit_status: Some(3), code: None };
    let backfill = BackfillId::new("b").unwrap();
    let events = vec![
        SlotEvent::planned(Origin::Schedule, 0),
        SlotEvent::Looked { explanation: explanation.clone() },
        SlotEvent::TriggerMet { explanation: because(Answer::Met) },
        SlotEvent::Expired { timeout_seconds: 20, explanation: explanation.clone() },
        SlotEvent::Skipped { explanation: because(Answer::Never) },
        SlotEvent::Dispatched { run, worker: None, batch: None },
        SlotEvent::Deferred { run, reason: "why".to_owned() },
        SlotEvent::Started { run, external_id: "x".to_owned() },
        SlotEvent::Succeeded { run },
        SlotEvent::BackedOff { run, outcome: outcome.clone(), due: Timestamp::UNIX_EPOCH, again: 0 },
        SlotEvent::BackoffEnded,
        SlotEvent::Failed { run, outcome: outcome.clone() },
        SlotEvent::Killed { by: Actor::person("ann"), reason: None },
        SlotEvent::RunEnded { run, outcome },
        SlotEvent::Reopened { by: Actor::person("ann"), reason: None, priority: 0, backfill: None },
        SlotEvent::Prioritised { priority: 5, backfill, by: None, reason: None },
        SlotEvent::Imported {
            from: "celos".to_owned(),
            state: SlotState::Succeeded,
            retries: 2,
            external_id: Some("y".to_owned()),
            requested: false,
            there: "SUCCESS".to_owned(),
        },
        SlotEvent::MarkedSucceeded { by: Actor::person("ann"), reason: None },
        SlotEvent::SkippedBy { by: Actor::person("ann"), reason: None },
        SlotEvent::Collected {
            what: Occurrence::Partitions { dataset: "ds".into(), count: 1, keys: Vec::new() },
            fact: Some(1),
        },
        SlotEvent::FiredBy {
            by: Actor::person("ann"),
            reason: None,
            arguments: BTreeMap::new(),
            unconstrained: false,
            repeats: None,
        },
        SlotEvent::Held { explanation: explanation.clone(), opened: None },
        SlotEvent::ConstraintsMet { explanation: explanation.clone() },
        SlotEvent::Aborted { cause: Abort::Disabled, by: None, reason: None },
        SlotEvent::Gave { run: 1, outputs: serde_json::Map::new() },
        SlotEvent::Requested { by: Actor::person("ann"), reason: None },
        SlotEvent::Withdrawn { run },
        SlotEvent::Acquired { run, request: 1, permits: BTreeMap::new() },
        SlotEvent::Released { run, request: 1 },
        SlotEvent::ArgumentsSet { by: Actor::person("ann"), arguments: BTreeMap::new() },
        SlotEvent::Resumed { by: Actor::person("ann"), reason: None, from: None },
        SlotEvent::Pinned { definition: 3 },
        SlotEvent::Signalled { name: "go".to_owned(), payload: true.into(), by: Actor::person("ann"), reason: None },
        SlotEvent::StepOpened { run: 1, awaits: Vec::new(), priority: 0 },
        SlotEvent::StepReady { inputs: serde_json::Map::new() },
        SlotEvent::Recovered { run, failed: Vec::new() },
        SlotEvent::Given { run, inputs: BTreeMap::new() },
        SlotEvent::Late { deadline: Timestamp::UNIX_EPOCH },
    ];
    for (place, event) in events.iter().enumerate() {
        assert_eq!(place, position(event), "each kind of event once, in order");
    }
    assert_eq!(events.len(), 38, "one event of each kind");
    events
}

/// Whoever adds a kind of event is led here, and gives `events` one of it.
fn position(event: &SlotEvent) -> usize {
    match event {
        SlotEvent::Planned { .. } => 0,
        SlotEvent::Looked { .. } => 1,
        SlotEvent::TriggerMet { .. } => 2,
        SlotEvent::Expired { .. } => 3,
        SlotEvent::Skipped { .. } => 4,
        SlotEvent::Dispatched { .. } => 5,
        SlotEvent::Deferred { .. } => 6,
        SlotEvent::Started { .. } => 7,
        SlotEvent::Succeeded { .. } => 8,
        SlotEvent::BackedOff { .. } => 9,
        SlotEvent::BackoffEnded => 10,
        SlotEvent::Failed { .. } => 11,
        SlotEvent::Killed { .. } => 12,
        SlotEvent::RunEnded { .. } => 13,
        SlotEvent::Reopened { .. } => 14,
        SlotEvent::Prioritised { .. } => 15,
        SlotEvent::Imported { .. } => 16,
        SlotEvent::MarkedSucceeded { .. } => 17,
        SlotEvent::SkippedBy { .. } => 18,
        SlotEvent::Collected { .. } => 19,
        SlotEvent::FiredBy { .. } => 20,
        SlotEvent::Held { .. } => 21,
        SlotEvent::ConstraintsMet { .. } => 22,
        SlotEvent::Aborted { .. } => 23,
        SlotEvent::Gave { .. } => 24,
        SlotEvent::Requested { .. } => 25,
        SlotEvent::Withdrawn { .. } => 26,
        SlotEvent::Acquired { .. } => 27,
        SlotEvent::Released { .. } => 28,
        SlotEvent::ArgumentsSet { .. } => 29,
        SlotEvent::Resumed { .. } => 30,
        SlotEvent::Pinned { .. } => 31,
        SlotEvent::Signalled { .. } => 32,
        SlotEvent::StepOpened { .. } => 33,
        SlotEvent::StepReady { .. } => 34,
        SlotEvent::Recovered { .. } => 35,
        SlotEvent::Given { .. } => 36,
        SlotEvent::Late { .. } => 37,
    }
}
