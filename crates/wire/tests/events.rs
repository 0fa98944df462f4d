//! What the server says of an event the client reads, byte for byte again; and what it does not know it passes on.

use kelos_model::event::{Event, EventRecord};
use kelos_model::{SlotEvent, SlotRef, WorkflowEvent, WorkflowId};
use kelos_wire::{BackfillEventDto, EventBodyDto, EventDto, SlotEventDto, WorkflowEventDto, words};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A line for each variant of each event, and for each finding.
const STORED: &str = include_str!("../../../fixtures/stored/v1.jsonl");

fn stored<T: DeserializeOwned>(kind: &str) -> Vec<T> {
    let lines = STORED.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' '));
    let read: Vec<T> =
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    assert!(!read.is_empty(), "there is no line of {kind}");
    read
}

fn all() -> Vec<Event> {
    let slot: SlotRef = "jobs@~20140601_1".parse().expect("a slot");
    let workflow = WorkflowId::new("w").expect("an id");
    let slots = stored::<SlotEvent>("slot-event").into_iter().map(|what| Event::Slot { slot: slot.clone(), what });
    let workflows = stored::<WorkflowEvent>("workflow-event").into_iter();
    let workflows = workflows.map(|what| Event::Workflow { workflow: workflow.clone(), what });
    slots.chain(workflows).chain(stored("event")).collect()
}

fn said(event: Event) -> (EventDto, String) {
    let at = kelos_model::time::parse_instant("2026-11-23T01:24:05.123Z").expect("a moment");
    let event = EventDto::from(EventRecord { seq: 7, at, previous: 3, event });
    let text = serde_json::to_string(&event).expect("JSON");
    (event, text)
}

fn is_known(event: &EventDto) -> bool {
    match &event.body {
        EventBodyDto::Slot { what, .. } => !matches!(what, SlotEventDto::Other { .. }),
        EventBodyDto::Workflow { what, .. } => !matches!(what, WorkflowEventDto::Other { .. }),
        EventBodyDto::Backfill { what, .. } => !matches!(what, BackfillEventDto::Other { .. }),
        EventBodyDto::Register { .. } | EventBodyDto::Fact(_) | EventBodyDto::Access(_) => true,
        EventBodyDto::Other(_) => false,
    }
}

#[test]
fn each_event_is_read_as_it_was_said() {
    for event in all() {
        let (event, text) = said(event);
        let read: EventDto = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(read, event, "{text}");
        assert!(is_known(&read), "{text}");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
    }
}

#[test]
fn tags_are_the_names_that_words_use() {
    for event in all() {
        let (event, text) = said(event);
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["event"], words::name(&event), "{text}");
        assert_eq!(value["subject"], words::tag(&event), "{text}");
        assert_eq!(value["by"].as_str(), words::by(&event), "{text}");
    }
}

#[test]
fn what_a_newer_server_says_breaks_no_client() {
    for event in all() {
        let (event, text) = said(event);
        let mut value: Value = serde_json::from_str(&text).expect("JSON");
        value["somethingNew"] = json!({ "of": [1, 2] });
        assert_eq!(serde_json::from_value::<EventDto>(value).expect("an event"), event, "{text}");
    }
    let unknown = r#"{"seq":1,"at":"2026-11-23T01:24:05.123Z","subject":"slot","workflow":"w","job":"1","event":"teleported","run":4}"#;
    let read: EventDto = serde_json::from_str(unknown).expect("an event");
    assert_eq!((words::name(&read), words::subject(&read)), ("teleported", "w@1".to_owned()));
    let unknown = r#"{"seq":1,"at":"2026-11-23T01:24:05.123Z","subject":"planet","event":"aligned","with":"mars"}"#;
    let read: EventDto = serde_json::from_str(unknown).expect("an event");
    assert_eq!((words::name(&read), words::tag(&read)), ("aligned", "planet"));
    assert_eq!(serde_json::to_string(&read).expect("JSON"), unknown);
}

#[test]
fn the_record_of_a_user_or_a_token_is_named_as_such() {
    let subject = |bucket: &str, key: &str| {
        let text = format!(
            r#"{{"seq":1,"at":"2026-11-23T01:24:05.123Z","subject":"register","bucket":"{bucket}","key":"{key}","event":"set","by":"cli"}}"#
        );
        words::subject(&serde_json::from_str(&text).expect("an event"))
    };
    assert_eq!(subject("kelos.access", "user/anna"), "user anna");
    assert_eq!(subject("kelos.access", "token/4py5zntk"), "token 4py5zntk");
    assert_eq!(subject("kelos.access", "ended/x"), "register kelos.access/ended/x");
    assert_eq!(subject("shop", "user/anna"), "register shop/user/anna");
}
