//! Stored forms, records that are sent, checkpoints and cursors.

use std::fmt::Debug;

use kelos_checkpoints::{Checkpoint, Collection, PublicKey};
use kelos_kafka::TopicPosition;
use kelos_model::workflow::{Moments, PlanState, Workflow};
use kelos_model::{Actor, Event, Outcome, SlotEvent, WorkflowEvent};
use kelos_store::adapter::{SlotPlace, StoredForm, stored};
use kelos_wire as wire;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{equal, reread, text};
use crate::Target;
use crate::corpus::{lines, texts};

pub(super) fn targets() -> Vec<Target> {
    vec![stored_forms(), sent(), checkpoints(), cursors()]
}

fn survives<T: StoredForm + PartialEq + Debug>(text: &str) -> Result<(), String> {
    let Ok(value) = stored::read::<T>(text) else { return Ok(()) };
    let printed = reread("its text", stored::text(&value))?;
    let again = reread(&printed, stored::read::<T>(&printed))?;
    equal("what was stored", &again, &value)?;
    equal("the stored text", &reread("its text", stored::text(&again))?, &printed)
}

fn stored_forms() -> Target {
    let words = &[
        "event",
        "trigger",
        "type",
        "null",
        "definition",
        "explanation",
        "2026-11-23T02:00:00Z",
        "kind",
        "finding",
        "code",
        "run",
        "outcome",
    ];
    text("stored", lines("fixtures/stored/v1.jsonl"), words, |line| {
        let (kind, json) = line.split_once(' ').unwrap_or(("", line));
        // No store writes a name twice, and what is read of the two is nobody's promise.
        let Ok(json) = serde_json::from_str::<Value>(json).map(|value| value.to_string()) else { return Ok(()) };
        let json = json.as_str();
        match kind {
            "actor" => survives::<Actor>(json),
            "slot-event" => survives::<SlotEvent>(json),
            "workflow-event" => survives::<WorkflowEvent>(json),
            "event" => survives::<Event>(json),
            "workflow" => survives::<Workflow>(json),
            "outcome" => survives::<Outcome>(json),
            "planned" => survives::<PlanState>(json),
            "moments" => survives::<Moments>(json),
            _ => Ok(()),
        }
    })
}

/// A record that is read is the same after it was written and read again.
fn stays<T: DeserializeOwned + Serialize>(value: &Value) -> Result<(), String> {
    let Ok(read) = serde_json::from_value::<T>(value.clone()) else { return Ok(()) };
    let written = reread("it", serde_json::to_value(&read))?;
    let again: T = reread(&written.to_string(), serde_json::from_value(written.clone()))?;
    equal("what was sent", &reread("it", serde_json::to_value(again))?, &written)
}

fn sent() -> Target {
    let corpus = texts(&[
        r#"{"workflows": ["a"], "free": 3, "session": "x", "live": [], "ended": [], "labels": []}"#,
        r#"{"workflow": "a", "times": ["2016-01-01T00:00Z"], "downstream": true, "reason": "why"}"#,
        r#"{"start": "2016-01-01T00:00Z", "end": "2016-01-02T00:00Z", "priority": 3, "mode": "missing"}"#,
        r#"{"source": "s", "key": "k", "dataset": "purchases", "count": 3, "partitions": ["a"]}"#,
        r#"{"signal": "approval", "payload": {"by": "ann"}, "run": "order-7"}"#,
        r#"{"id": "nightly", "program": "p", "trigger": {"cron": "0 4 * * 1"}, "constraints": [{"concurrency": 1}], "timeout": "1h"}"#,
        r#"{"app": "a", "jobs": ["20140601_client1"], "force": false}"#,
        r#"{"time": "2016-01-01T00:00Z", "workflows": ["a"]}"#,
        r#"{"name": "a", "groups": [{"name": "g", "workflows": ["a"]}]}"#,
        r#"{"run": "a@2016-01-01T00:00:00.000Z/1", "outcome": {"result": "succeeded"}, "outputs": {"rows": 3}}"#,
    ]);
    let words = &[
        "\"workflow\":",
        "\"run\":",
        "\"outcome\":",
        "\"arguments\":{}",
        "\"session\":",
        "null",
        "\"trigger\":",
        "2016-01-01T00:00Z",
        "\"from\":",
        "\"step\":",
    ];
    text("wire", corpus, words, |input| {
        let Ok(value) = serde_json::from_str::<Value>(input) else { return Ok(()) };
        stays::<wire::OfferRequest>(&value)?;
        stays::<wire::AssignmentDto>(&value)?;
        stays::<wire::RerunRequest>(&value)?;
        stays::<wire::MarkRequest>(&value)?;
        stays::<wire::BackfillRequest>(&value)?;
        stays::<wire::BackfillChange>(&value)?;
        stays::<wire::SubmitRequest>(&value)?;
        stays::<wire::FactRequest>(&value)?;
        stays::<wire::StepRequest>(&value)?;
        stays::<wire::ScheduleRequest>(&value)?;
        stays::<wire::StartRequest>(&value)?;
        stays::<wire::SignalRequest>(&value)?;
        stays::<wire::ResumeRequest>(&value)?;
        stays::<wire::EventDto>(&value)?;
        stays::<wire::GroupsDto>(&value)
    })
}

fn checkpoints() -> Target {
    let genuine = r#"{"checkpoint":1,"instance":"shop","turn":812,"epoch":3,"at":"1970-01-01T00:00:00.001Z","digest":"abababababababababababababababababababababababababababababababab","key":"ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c","signature":"12707da97b3ba6515010b9f5927f96248a861d7b2865486eee078e122593ce827cba6c9aa32afeff893d99644a08033d90c8a2d3449f42df8b27af4597f4f30c"}"#;
    let pem = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAO2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik=\n-----END PUBLIC KEY-----\n";
    let log = format!("2026-01-31T00:00:00Z INFO kelos_checkpoints: {genuine}\n{{\"message\": \"x\"}}");
    let corpus = texts(&[genuine, pem, &log]);
    text(
        "checkpoints",
        corpus,
        &["\"checkpoint\":", "{\"checkpoint\":1", "-----END PUBLIC KEY-----", "ab"],
        move |input| {
            if let Ok(checkpoint) = Checkpoint::read(input) {
                let again = reread("it", Checkpoint::read(&checkpoint.json().to_string()))?;
                equal("the printed checkpoint", &again, &checkpoint)?;
                // Without the key nothing else is ever signed.
                let signed = Checkpoint::read(genuine).map_err(|problem| problem.to_string())?;
                equal("a checkpoint that is signed", &checkpoint, &signed)?;
            }
            let mut collection = Collection::default();
            collection.add_file("a.log", input);
            collection.add_file("a.json", input);
            if let Ok(key) = PublicKey::read(input) {
                equal("the printed key", &reread("its PEM", PublicKey::read(&key.pem()))?, &key)?;
            }
            Ok(())
        },
    )
}

fn cursors() -> Target {
    let corpus = texts(&[
        "1442151600000/workflow-1",
        "1442151600000.workflow/20140601_client1",
        "0",
        "-1",
        r#"{"0": {"offset": 3, "seen": 1}}"#,
    ]);
    text("cursors", corpus, &["/", ".", "~", "9223372036854775807", "\"offset\":"], |input| {
        let _ = SlotPlace::parse(input);
        if let Ok(position) = serde_json::from_str(input).map_err(|_| String::new()).and_then(TopicPosition::read) {
            let again = reread("it", TopicPosition::read(position.stored()))?;
            equal("the stored position", &again.stored(), &position.stored())?;
        }
        Ok(())
    })
}
