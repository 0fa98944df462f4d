//! Events in words, for all that show the log to people.

use kelos_model::time::{format_short, parse_instant};
use serde_json::Value;

/// What there is to say of an event of the native API beside its name: `run 1, exited with status 3, retry at …`.
/// May be empty.
#[must_use]
pub fn event_words(event: &Value) -> String {
    let word = |name: &str| event[name].as_str();
    let mut parts = Vec::new();
    parts.extend(word("what").map(str::to_owned));
    parts.extend(word("source").map(|source| match word("key") {
        Some(key) => format!("published by {source} with key {key}"),
        None => format!("published by {source}"),
    }));
    parts.extend(event["run"].as_u64().map(|run| format!("run {run}")));
    parts.extend(word("externalId").map(|name| format!("process {name}")));
    parts.extend(word("importedFrom").map(|from| format!("from {from}")));
    parts.extend(word("there").map(|there| format!("{there} there")));
    if word("event") == Some("prioritised") {
        parts.extend(event["priority"].as_i64().map(|priority| format!("priority {priority}")));
    }
    parts.extend(event["outcome"]["text"].as_str().map(str::to_owned));
    parts.extend(word("due").map(|due| format!("retry at {}", short(due))));
    let opener = || Some(format!("{}@{}", event["openedBy"]["workflow"].as_str()?, event["openedBy"]["job"].as_str()?));
    match word("origin") {
        Some("parent") => parts.extend(opener().map(|parent| format!("after its parent {parent}"))),
        Some("child") => parts.extend(opener().map(|child| format!("for {child}"))),
        _ => {}
    }
    parts.extend(word("worker").filter(|worker| !worker.is_empty()).map(|worker| format!("to worker {worker}")));
    parts.extend(word("by").map(|by| format!("by {by}")));
    parts.extend(word("reason").map(str::to_owned));
    if let (Some(from), Some(to)) = (word("from"), word("to")) {
        parts.push(format!("{} to {}", short(from), short(to)));
    }
    let is_missed = word("event") == Some("missed");
    parts.extend(event["slots"].as_u64().map(|number| count(number, if is_missed { "time" } else { "slot" })));
    parts.extend(event["version"].as_u64().map(|version| format!("version {version}")));
    parts.extend(word("cause").map(|cause| format!("the schedule was {cause}")));
    if event["unconstrained"] == true {
        parts.push("past its constraints".to_owned());
    }
    match event["explanation"]["type"].as_str() {
        Some("constraints") => parts.extend(unmet(&event["explanation"])),
        _ if matches!(word("event"), Some("looked" | "expired")) => {
            parts.extend(event["explanation"]["text"].as_str().map(str::to_owned))
        }
        _ => {}
    }
    parts.join(", ")
}

/// The constraints that were not met, each with what it saw.
fn unmet(explanation: &Value) -> Vec<String> {
    let nested = explanation["nested"].as_array().into_iter().flatten();
    nested.filter(|one| one["answer"] != "met").filter_map(|one| one["text"].as_str().map(str::to_owned)).collect()
}

fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A time without what is finer than a second; as it is where it can't be read.
fn short(time: &str) -> String {
    let whole = |at: jiff::Timestamp| jiff::Timestamp::from_second(at.as_second()).unwrap_or(at);
    parse_instant(time).map_or_else(|_| time.to_owned(), |at| format_short(whole(at)))
}
