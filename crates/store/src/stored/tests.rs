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

/// A value with so many levels.
fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::from(1), |inner, level| {
        if level % 2 == 0 { vec![inner].into() } else { serde_json::json!({ "a": inner }) }
    })
}

/// What versions without a limit took at each door, one level below where their reader of JSON refused it.
#[test]
fn values_that_were_stored_before_there_was_a_limit_are_read() {
    for levels in [64, 65, 100, 126, 127] {
        let deep = nested(levels);
        let object = serde_json::Map::from_iter([("o".to_owned(), deep.clone())]);
        let arguments: kelos_model::Arguments = object.clone().into_iter().collect();
        let ended = kelos_model::Occurrence::Ended {
            program: WorkflowId::new("p").unwrap(),
            state: kelos_model::SlotState::Succeeded,
            run: None,
            arguments: arguments.clone(),
            outputs: object.clone(),
        };
        let mut collected = Collection::new(jiff::Timestamp::UNIX_EPOCH);
        collected.arguments.clone_from(&arguments);
        collected.add(&ended);
        let gave = SlotEvent::Gave { run: 1, outputs: object.clone() };
        let register = Event::Register {
            bucket: "b".to_owned(),
            key: "k".to_owned(),
            value: Some(deep.clone()),
            by: None,
            reason: None,
        };
        let heard = SlotEvent::Collected { what: ended, fact: None };
        assert_eq!(again_equal(&deep), deep);
        assert_eq!(again_equal(&arguments), arguments);
        assert_eq!(again_equal(&object), object);
        assert_eq!(again_equal(&collected), collected);
        assert_eq!(again_equal(&gave), gave);
        assert_eq!(again_equal(&register), register);
        assert_eq!(again_equal(&heard), heard);
    }
}

fn again_equal<T: StoredForm>(value: &T) -> T {
    let text = text(value).unwrap();
    read(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn definition_line() -> Value {
    let (_, line) = lines().find(|(what, line)| *what == "workflow" && line.contains(r#""type":"fired""#)).unwrap();
    serde_json::from_str(line).unwrap()
}

#[test]
fn triggers_of_64_levels_are_stored_and_read() {
    let mut workflow: Workflow = read(&definition_line().to_string()).unwrap();
    for _ in 0..63 {
        workflow.trigger = kelos_model::Trigger::And { triggers: vec![workflow.trigger] };
    }
    workflow.check_nesting().unwrap();
    assert_eq!(again_equal(&workflow), workflow);
    let deeper = Workflow { trigger: kelos_model::Trigger::Not { trigger: Box::new(workflow.trigger) }, ..workflow };
    assert_eq!(deeper.check_nesting().unwrap_err(), "its trigger is nested 65 levels deep, expected at most 64");
}

#[test]
fn of_a_definition_that_cannot_be_read_the_rest_is() {
    let id = WorkflowId::new("w").unwrap();
    let line = definition_line();
    let whole: Workflow = read(&line.to_string()).unwrap();
    let mut broken = line.clone();
    broken["trigger"] = serde_json::json!({ "type": "fired", "cron": "\t 4 * * *", "unix": true });
    read::<Workflow>(&broken.to_string()).unwrap_err();
    let salvaged = salvage(&id, &broken.to_string());
    let never = kelos_model::Trigger::Or { triggers: Vec::new() };
    assert_eq!(salvaged, Workflow { id: id.clone(), trigger: never, ..whole });
    let nothing = salvage(&id, "no JSON");
    assert_eq!((nothing.id.as_str(), nothing.job.executor.as_str()), ("w", "unreadable"));
    again_equal(&nothing);
}

#[test]
fn a_turn_that_cannot_be_read_back_is_told_before_it_is_stored() {
    let mut definition: Workflow = read(&definition_line().to_string()).unwrap();
    let id = definition.id.clone();
    for _ in 0..200 {
        definition.trigger = kelos_model::Trigger::Not { trigger: Box::new(definition.trigger) };
    }
    let row = kelos_model::workflow::WorkflowRow {
        id: id.clone(),
        definition: definition.into(),
        version: 1,
        present: true,
        enabled: true,
        paused: false,
        planned: PlanState::default(),
        moments: Moments::default(),
    };
    let what = WorkflowEvent::Defined { version: 1, by: None, reason: None };
    let event = Event::Workflow { workflow: id.clone(), what };
    let record = kelos_model::EventRecord { seq: 1, at: jiff::Timestamp::UNIX_EPOCH, previous: 0, event };
    let commit = crate::Commit { events: vec![record], workflows: vec![row], ..crate::Commit::default() };
    for how_much in [ReadBack::Values, ReadBack::Whole] {
        let error = read_back(&commit, how_much).unwrap_err();
        assert_eq!((error.workflow, error.what), (Some(id.clone()), format!("the definition of {id}")));
        assert!(error.why.contains("levels deep, expected at most 64"), "{}", error.why);
    }
    // A row of a definition that is stored already is not written again.
    let known = crate::Commit { events: Vec::new(), ..commit };
    read_back(&known, ReadBack::Values).unwrap();
}

/// Text of which cron expressions are made, and what has no place in them.
fn nearly_cron() -> impl Strategy<Value = String> {
    let field = prop_oneof![
        4 => prop::sample::select(vec!["*", "0", "4", "?", "*/5", "1-5", "MON-FRI", "2030", "1,15"]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        2 => prop::char::range('\0', ' ').prop_map(String::from),
        1 => prop::sample::select(vec!["\u{7f}", "\u{85}", "\u{a0}", "\u{2028}", "\u{feff}"]).prop_map(str::to_owned),
    ];
    let gap = prop_oneof![8 => Just(" "), 1 => Just("\t"), 1 => Just(""), 1 => Just("  ")];
    prop::collection::vec((field, gap), 4..9)
        .prop_map(|fields| fields.into_iter().map(|(field, gap)| field + gap).collect::<String>())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4096) })]

    /// With the five that are one longer than four, a control character for a field was once taken and not stored.
    #[test]
    fn each_cron_expression_that_is_accepted_reads_back_from_its_stored_form(text in nearly_cron()) {
        use kelos_model::time::{Cron, CronSchedule, Firing, Schedule, Zone};
        let stored = |workflow: &Workflow| {
            let text = super::text(workflow).unwrap();
            read::<Workflow>(&text).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))
        };
        let base: Workflow = read(&definition_line().to_string()).unwrap();
        for read in [Firing::parse, Firing::read_by_quartz] {
            if let Ok(firing) = read(&text, Zone::utc()) {
                prop_assert!(!firing.text().contains(char::is_control), "{:?}", text);
                let workflow = Workflow { trigger: kelos_model::Trigger::Fired { firing }, ..base.clone() };
                prop_assert_eq!(stored(&workflow)?, workflow);
            }
        }
        if let Ok(cron) = Cron::parse(&text) {
            prop_assert!(!cron.as_str().contains(char::is_control), "{:?}", text);
            let keys = kelos_model::workflow::Keys::Schedule(Schedule::Cron(CronSchedule::utc(cron)));
            let workflow = Workflow { keys, ..base.clone() };
            prop_assert_eq!(stored(&workflow)?, workflow);
        }
        if let Ok(trigger) = kelos_model::Trigger::parse(&format!("and(time({text}), signal({text:?}))"), &Zone::utc()) {
            let workflow = Workflow { trigger, ..base };
            prop_assert_eq!(stored(&workflow)?, workflow);
        }
    }
}
