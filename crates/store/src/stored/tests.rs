//! Stored forms never change, and lose nothing.

#[path = "../../../model/tests/random/mod.rs"]
mod random;

use std::collections::BTreeSet;
use std::fmt::Debug;

use proptest::prelude::*;
use serde::Serialize;

use super::*;

/// Stored lines, each with its type. They never change: databases contain such lines for ever.
const LINES: &str = include_str!("../../../../fixtures/stored/v1.jsonl");

/// Reads a stored text and writes it again.
fn again<T: StoredForm + Debug>(line: &str) -> String {
    let value: T = read(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text(&value).unwrap()
}

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    LINES.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_once(' ').unwrap())
}

#[test]
fn what_is_stored_is_read_and_written_again_byte_for_byte() {
    for (what, line) in lines() {
        let written = match what {
            "actor" => again::<Actor>(line),
            "batch" => again::<Batch>(line),
            "collected" => again::<Collection>(line),
            "deletions" => again::<Deletions>(line),
            "event" => again::<Event>(line),
            "held" => again::<Vec<Hold>>(line),
            "moments" => again::<Moments>(line),
            "outcome" => again::<Outcome>(line),
            "part-in-flow" => again::<PartInFlow>(line),
            "planned" => again::<PlanState>(line),
            "slot-event" => again::<SlotEvent>(line),
            "workflow" => again::<Workflow>(line),
            "workflow-event" => again::<WorkflowEvent>(line),
            other => panic!("{other} is not stored"),
        };
        assert_eq!(written, line, "{what}");
    }
}

/// Five fields were read by Quartz before they were crontab's, and those that were stored then are for ever.
#[test]
fn five_fields_of_before_are_still_read_by_quartz() {
    let (_, line) = lines().find(|(what, line)| *what == "workflow" && line.contains(r#""type":"fired""#)).unwrap();
    let days = |cron: &str| {
        let mut definition: Value = serde_json::from_str(line).unwrap();
        definition["trigger"] = serde_json::from_str(cron).unwrap();
        let workflow: Workflow = read(&definition.to_string()).unwrap();
        assert!(text(&workflow).unwrap().contains(cron.trim_matches(['{', '}'])), "{cron}");
        workflow.trigger.firings()[0].schedule().cron().weekdays().unwrap()
    };
    let only = |day: usize| std::array::from_fn(|n| n == day);
    assert_eq!(days(r#"{"type":"fired","cron":"0 4 * * 1"}"#), only(0));
    assert_eq!(days(r#"{"type":"fired","cron":"0 4 * * 1","unix":true}"#), only(1));
}

/// The variants of a form, from the error about one that it doesn't know.
fn variants<T: StoredForm + Debug>(nonsense: &str) -> BTreeSet<String> {
    let told = read::<T>(nonsense).unwrap_err().to_string();
    let (_, known) = told.split_once("expected").unwrap();
    known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn each_variant_has_a_line() {
    let missing = |what: &str, tag: &str, known: BTreeSet<String>| {
        assert!(known.len() > 3, "{what}: {known:?}");
        let said = |variant: &&String| {
            let mut of_kind = lines().filter(|(kind, _)| *kind == what);
            !of_kind.any(|(_, line)| line.contains(&format!("\"{tag}\":\"{variant}\"")))
        };
        let missing: Vec<_> = known.iter().filter(said).cloned().collect();
        assert_eq!(missing, [] as [String; 0], "{what}");
    };
    missing("slot-event", "event", variants::<SlotEvent>(r#"{"event":"?"}"#));
    missing("workflow-event", "event", variants::<WorkflowEvent>(r#"{"event":"?"}"#));
    missing("event", "event", variants::<Event>(r#"{"subject":"backfill","backfill":"b","what":{"event":"?"}}"#));
    missing("outcome", "result", variants::<Outcome>(r#"{"result":"?"}"#));
    missing("workflow", "type", variants_of_trigger());
    let findings: BTreeSet<String> = kelos_model::Finding::CODES.iter().map(|code| (*code).to_owned()).collect();
    missing("slot-event", "code", findings);
}

fn variants_of_trigger() -> BTreeSet<String> {
    let (_, line) = lines().find(|(what, _)| *what == "workflow").unwrap();
    let mut definition: Value = serde_json::from_str(line).unwrap();
    definition["trigger"] = serde_json::json!({ "type": "?" });
    variants::<Workflow>(&definition.to_string())
}

/// Checks that a value is read back unchanged, and that its stored form is the model's own JSON, as long as that exists.
fn survives<T: StoredForm + Serialize + PartialEq + Debug>(value: &T) -> Result<(), TestCaseError> {
    let stored = text(value).unwrap();
    prop_assert_eq!(&stored, &serde_json::to_string(value).unwrap());
    let back: T = read(&stored).map_err(|error| TestCaseError::fail(format!("{error}: {stored}")))?;
    prop_assert_eq!(&back, value, "{}", stored);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn events_of_slots_survive(what in prop_oneof![random::gating(), random::running(), random::asked()]) {
        survives(&what)?;
    }

    #[test]
    fn what_is_collected_survives(what in random::occurrence(), collected in random::collected()) {
        survives(&SlotEvent::Collected { what, fact: Some(7) })?;
        survives(&collected)?;
    }

    #[test]
    fn other_events_survive(event in random::asked_beside_slots()) {
        if let Event::Workflow { what, .. } = &event {
            survives(what)?;
        }
        survives(&event)?;
    }

    #[test]
    fn rows_survive(definition in random::definition(), planned in random::planned(), moments in random::moments()) {
        survives(&definition)?;
        survives(&planned)?;
        survives(&moments)?;
    }
}
