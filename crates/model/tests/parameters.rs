//! Arguments are read by the kinds of their parameters, with all mistakes at once.

use std::collections::BTreeSet;

use kelos_model::arguments::{MAPPING, arguments, behind_key, kept_arguments, kept_inputs};
use kelos_model::jobs::{JobKeys, JobTemplate};
use kelos_model::mistakes::parameter_mistakes as mistakes;
use kelos_model::parameter::{Parameters, accept};
use kelos_model::time::{CronSchedule, Schedule};
use kelos_model::workflow::{EventKeys, Keys, Program};
use kelos_model::{
    Actor, Arguments, Collection, GivenOutputs, Job, Parameter, ParameterKind, Slot, SlotEvent, SlotKey, SlotRef,
    SlotState, Workflow, WorkflowId,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn kinds() -> [ParameterKind; 8] {
    let choices = vec!["small".to_owned(), "large".to_owned()];
    [
        ParameterKind::Text,
        ParameterKind::Integer,
        ParameterKind::Number,
        ParameterKind::Boolean,
        ParameterKind::Date,
        ParameterKind::Time,
        ParameterKind::Choice { choices },
        ParameterKind::Json,
    ]
}

fn given(value: Value) -> Arguments {
    serde_json::from_value(value).expect("an object")
}

fn declared(value: Value) -> Vec<Parameter> {
    Parameters::try_from(value).expect("parameters").0
}

fn workflow(keys: Keys, parameters: Value) -> Workflow {
    let id = WorkflowId::new("etl").expect("an id");
    Workflow { parameters: declared(parameters), ..Workflow::keyed(id, keys, Job::new("command", Map::new())) }
}

fn program() -> Keys {
    Keys::Requests(Box::new(Program { name: "etl".to_owned(), kind: None }))
}

fn hourly() -> Keys {
    Keys::Schedule(Schedule::Cron(CronSchedule::hourly()))
}

#[test]
fn a_text_is_read_by_its_kind() {
    let read = |kind: &ParameterKind, text: &str| kind.accept(&json!(text));
    let [text, integer, number, boolean, date, time, choice, any] = kinds();
    assert_eq!(read(&text, "3"), Some(json!("3")));
    assert_eq!(read(&integer, "3"), Some(json!(3)));
    assert_eq!(read(&integer, "18446744073709551615"), Some(json!(u64::MAX)));
    assert_eq!((read(&integer, "3.0"), read(&integer, "1e3")), (Some(json!(3)), Some(json!(1000))));
    assert_eq!(read(&number, "2.5"), Some(json!(2.5)));
    assert_eq!(read(&boolean, "true"), Some(json!(true)));
    assert_eq!(read(&date, "2026-11-21"), Some(json!("2026-11-21")));
    assert_eq!(read(&time, "2026-11-21T06:00Z"), Some(json!("2026-11-21T06:00:00.000Z")));
    assert_eq!(read(&time, "2026-11-21T06:00+02:00"), Some(json!("2026-11-21T04:00:00.000Z")));
    assert_eq!(read(&choice, "small"), Some(json!("small")));
    assert_eq!(read(&any, r#"{"a": [1]}"#), Some(json!({"a": [1]})));
    assert_eq!(
        (read(&any, "3"), read(&any, "x"), read(&any, "\"3\"")),
        (Some(json!(3)), Some(json!("x")), Some(json!("\"3\"")))
    );
    for (kind, bad) in [
        (&integer, "3.5"),
        (&integer, "1e16"),
        (&integer, "x"),
        (&integer, "18446744073709551616"),
        (&number, "NaN"),
        (&number, "1."),
        (&boolean, "yes"),
        (&date, "2026-02-30"),
        (&date, "2026-11-21T06:00Z"),
        (&date, "20261121"),
        (&time, "now"),
        (&time, "06:00+02:00"),
        (&time, "yesterday 06:00Z"),
        (&choice, "middle"),
    ] {
        assert_eq!(read(kind, bad), None, "{kind:?} {bad}");
    }
}

#[test]
fn json_is_checked_by_its_kind() {
    let [text, integer, number, boolean, date, ..] = kinds();
    assert_eq!(text.accept(&json!(3)), None);
    assert_eq!(
        (integer.accept(&json!(3)), integer.accept(&json!(3.0)), integer.accept(&json!(3.5))),
        (Some(json!(3)), Some(json!(3)), None)
    );
    assert_eq!(integer.accept(&json!(true)), None);
    assert_eq!((number.accept(&json!(3)), number.accept(&json!(null))), (Some(json!(3)), None));
    assert_eq!((boolean.accept(&json!(false)), boolean.accept(&json!(0))), (Some(json!(false)), None));
    assert_eq!(date.accept(&json!(20261121)), None);
}

#[test]
fn all_mistakes_are_told_at_once() {
    let parameters = declared(json!({"day": {"type": "date"}, "rows": 1000}));
    let told = accept(&parameters, &given(json!({"day": "x", "rwos": 3, "rows": "many"}))).unwrap_err();
    assert_eq!(
        told,
        [
            "\"rwos\" is no parameter, expected rows",
            "day is \"x\", expected a date such as 2026-11-21",
            "rows is \"many\", expected a whole number such as 3",
        ]
    );
    assert_eq!(accept(&parameters, &given(json!({"rows": "3"}))), Ok(given(json!({"rows": 3}))));
    let any = given(json!({"rwos": [3]}));
    assert_eq!(accept(&[], &any), Ok(any));
}

#[test]
fn definitions_have_plain_defaults_or_objects_with_a_type() {
    let read = declared(json!({
        "day": {"type": "date", "default": "${year}-${month}-${day}", "about": "the day"},
        "size": {"type": "choice", "choices": ["s", "l"], "default": "s"}, "rows": 3, "share": 0.5, "dry": false, "name": "x",
        "tags": ["a"], "none": null,
    }));
    let kinds: Vec<&str> = read.iter().map(|one| one.kind.name()).collect();
    assert_eq!(kinds, ["date", "choice", "integer", "number", "boolean", "text", "json", "json"]);
    for (bad, why) in [
        (json!(["day"]), "parameters are [\"day\"], expected an object such as"),
        (json!({"day": {}}), "the type of day is null, expected text, integer"),
        (json!({"day": {"type": "dat"}}), "the type of day is \"dat\", expected text"),
        (
            json!({"day": {"type": "date", "defualt": 1}}),
            "day has \"defualt\", expected type, default, choices or about in it",
        ),
        (
            json!({"day": {"type": "date", "choices": []}}),
            "day is a date, expected a list of choices for a choice alone",
        ),
        (json!({"day": {"type": "choice", "choices": [3]}}), "day: invalid type: integer `3`, expected a string"),
    ] {
        let told = Parameters::try_from(bad).unwrap_err();
        assert!(told.starts_with(why), "{told}");
    }
}

#[test]
fn a_definition_tells_what_is_wrong_with_its_parameters() {
    let told = |keys: Keys, parameters: Value| mistakes(&workflow(keys, parameters)).join("; ");
    let day = json!({"day": {"type": "date"}});
    assert_eq!(told(program(), day.clone()), "");
    assert_eq!(
        told(hourly(), day.clone()),
        "day has no default, and nobody gives a value to the times of a schedule: expected a default"
    );
    let template = JobTemplate::new("{client}").expect("a template");
    let jobs = || Keys::Jobs(Box::new(JobKeys::new(template.clone())));
    assert!(told(jobs(), day.clone()).contains("jobs that other jobs open"));
    assert_eq!(
        told(jobs(), json!({"client": "x"})),
        "client is an identifier of the job ids, expected another name for the parameter"
    );
    for (parameters, why) in [
        (json!({"a b": 1}), "\"a b\" is no name of a parameter"),
        (json!({"day": {"type": "date", "default": "x"}}), "the default of day is \"x\", expected a date"),
        (
            json!({"size": {"type": "choice", "choices": ["s", "s"], "default": "s"}}),
            "the choices of size are expected to be different texts",
        ),
        (
            json!({"size": {"type": "choice", "choices": ["s"], "default": "l"}}),
            "the default of size is \"l\", expected s",
        ),
        (
            json!({"day": {"type": "date", "default": "${year}/${month}"}}),
            "the default of day is filled in as \"2001/02\", expected a date",
        ),
        (
            json!({"day": {"type": "date", "default": "${end_year}-01-01"}}),
            "the default of day has a part of a time that no slot has",
        ),
    ] {
        let found = told(hourly(), parameters);
        assert!(found.starts_with(why), "{found}");
    }
    assert_eq!(told(hourly(), json!({"day": {"type": "date", "default": "${year}-${month}-${day}"}})), "");
    let mut twice = workflow(program(), json!({"a": 1}));
    twice.parameters.push(Parameter::plain("a", json!(2)));
    assert_eq!(mistakes(&twice), ["two parameters are named a, expected each name once"]);
}

#[test]
fn an_event_schedule_gives_what_its_program_requires() {
    let told = |properties: &[(&str, &str)]| {
        let mut keys = EventKeys::new("s", WorkflowId::new("etl").expect("an id"));
        keys.properties = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        mistakes(&workflow(Keys::Events(Box::new(keys)), json!({"day": {"type": "date"}, "rows": 1000}))).join("; ")
    };
    assert_eq!(told(&[]), "the program requires day, expected it among the properties");
    assert_eq!(told(&[("day", "2026-11-21"), ("rows", "3")]), "");
    assert_eq!(told(&[(MAPPING, r#"{"day": "date"}"#)]), "");
    assert_eq!(told(&[(MAPPING, r#"{"arguments": [{"source": "day"}]}"#)]), "");
    assert_eq!(
        told(&[("day", "x"), ("row", "3")]),
        "\"row\" is no parameter, expected rows; day is \"x\", expected a date such as 2026-11-21"
    );
}

#[test]
fn defaults_are_filled_in_for_the_slot() {
    let parameters = json!({"day": {"type": "date", "default": "${year}-${month}-${day}"}, "rows": 1000});
    let (workflow, key) = (workflow(hourly(), parameters), SlotKey::parse("2026-11-21T06:00Z").expect("a key"));
    assert_eq!(arguments(&workflow, None, &key), given(json!({"day": "2026-11-21", "rows": 1000})));
    let mut collected = Collection::new(key.time().expect("a time"));
    collected.arguments = given(json!({"rows": "3"}));
    assert_eq!(arguments(&workflow, Some(&collected), &key), given(json!({"day": "2026-11-21", "rows": 3})));
    collected.arguments = given(json!({"rows": "x"}));
    let outcome = kept_arguments(&workflow, Some(&collected), &key).unwrap_err().outcome();
    assert_eq!(outcome.code(), "arguments-mismatched");
    assert_eq!(
        outcome.to_string(),
        "could not be started: its arguments are wrong: rows is \"x\", expected a whole number such as 3"
    );
}

/// The outputs that a workflow called extract gave.
fn outputs(values: Value) -> GivenOutputs {
    let slot = SlotRef::at(WorkflowId::new("extract").expect("an id"), "2026-11-21T06:00Z".parse().expect("a time"));
    let values = values.as_object().expect("an object").clone();
    GivenOutputs::merged(&[(slot, values)].into(), &BTreeSet::new())
}

#[test]
fn outputs_go_before_defaults_and_arguments_of_the_same_name() {
    let parameters = json!({"day": {"type": "date", "default": "${year}-${month}-${day}"}, "row-count": 1000});
    let (workflow, key) = (workflow(hourly(), parameters), SlotKey::parse("2026-11-21T06:00Z").expect("a key"));
    let mut collected = Collection::new(key.time().expect("a time"));
    collected.arguments = given(json!({"row-count": 7, "size.of": 1, "other": 2}));
    let inputs = |outputs: &GivenOutputs| kept_inputs(&workflow, Some(&collected), &key, outputs);
    let all = inputs(&outputs(json!({"row count": "3", "size-of": 5, "year": 1999})));
    let expected = given(json!({"day": "2026-11-21", "row-count": 3, "size_of": 5, "other": 2, "year": 1999}));
    assert_eq!(all, Ok(expected.clone()), "names are formatted, but those of parameters");
    // The name of a part of the time is that in templates, unless the workflow itself has another value for it.
    assert_eq!(behind_key(&workflow, Some(&collected), &key, &expected), ["year".to_owned()].into());
    let outcome = inputs(&outputs(json!({"row-count": "x"}))).unwrap_err().outcome();
    assert_eq!(
        (outcome.code(), outcome.to_string().as_str()),
        (
            "arguments-mismatched",
            "could not be started: its arguments are wrong: row-count is \"x\", expected a whole number such as 3 \
             (extract gave it)"
        )
    );
    let outcome = inputs(&outputs(json!({"text": "x".repeat(65_500)}))).unwrap_err().outcome();
    assert_eq!(outcome.code(), "arguments-too-large");
    let told = outcome.to_string();
    assert!(told.starts_with("could not be started: its arguments and the outputs of extract have 655"), "{told}");
}

#[test]
fn later_arguments_go_before_earlier_ones_and_the_others_stay() {
    let at = "2026-11-21T06:00Z".parse().expect("a moment");
    let set = |arguments| SlotEvent::ArgumentsSet { by: Actor::person("ann"), arguments };
    let slot = Slot::new(SlotState::Waiting, at);
    let slot = kelos_model::slot::apply(Some(slot), &set(given(json!({"a": 1, "b": 1}))), at, 1).expect("a slot");
    let slot = kelos_model::slot::apply(Some(slot), &set(given(json!({"b": 2}))), at, 2).expect("a slot");
    assert_eq!((slot.state, slot.arguments()), (SlotState::Waiting, Some(&given(json!({"a": 1, "b": 2})))));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "[-0-9a-z.:TZ\"{}\\[\\]]{0,12}".prop_map(Into::into),
        "20[0-9]{2}-[01][0-9]-[0-3][0-9]".prop_map(Into::into),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(Into::into))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    /// Stored values may be read again with each run.
    #[test]
    fn what_was_read_reads_as_itself(value in value()) {
        for kind in kinds() {
            if let Some(once) = kind.accept(&value) {
                prop_assert_eq!(kind.accept(&once), Some(once.clone()), "{:?}", kind);
            }
        }
    }

    #[test]
    fn numbers_stay_numbers(whole in any::<i64>(), share in any::<f64>().prop_filter("JSON has it", |one| one.is_finite())) {
        prop_assert_eq!(ParameterKind::Integer.accept(&json!(whole)), Some(json!(whole)));
        prop_assert_eq!(ParameterKind::Integer.accept(&json!(whole.to_string())), Some(json!(whole)));
        prop_assert_eq!(ParameterKind::Number.accept(&json!(share)), Some(json!(share)));
    }

    /// Either everything is taken, or each mistake is told.
    #[test]
    fn there_is_a_mistake_for_each_wrong_argument(values in prop::collection::vec(value(), 8), extra in "[a-z]{1,4}") {
        let named = kinds().into_iter().enumerate().map(|(n, kind)| Parameter::new(&format!("p{n}"), kind));
        let parameters: Vec<Parameter> = named.collect();
        let mut all: Arguments = values.iter().enumerate().map(|(n, value)| (format!("p{n}"), value.clone())).collect();
        let wrong = parameters.iter().zip(&values).filter(|(one, value)| one.kind.accept(value).is_none()).count();
        prop_assert_eq!(accept(&parameters, &all).map_or_else(|told| told.len(), |_| 0), wrong);
        all.insert(extra, Value::Null);
        prop_assert_eq!(accept(&parameters, &all).map_or_else(|told| told.len(), |_| 0), wrong + 1);
    }
}
