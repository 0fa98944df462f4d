//! The submission of a job: its address, the properties of its workflow, and those that Kelos sets.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use kelos_engine::executor::Start;
use kelos_model::RunId;
use kelos_model::template::KeyValues;
use serde_json::{Map, Value};

use crate::http::Url;

/// The property that every job needs: its definition in HDFS.
const APPLICATION: &str = "oozie.wf.application.path";
/// The property that names who a job belongs to.
const USER: &str = "user.name";
/// The property by which Oozie finds a job again.
const EXTERNAL_ID: &str = "oozie.wf.external.id";
/// The property that names the slot.
const SLOT: &str = "celosWorkflowName";
/// The parts of a slot's time that are properties; the others of the key are for templates alone.
const PARTS: [&str; 6] = ["year", "month", "day", "hour", "minute", "second"];
/// The longest part of a run's name in an external id, which has 255 characters in Oozie's tables.
const LONGEST_NAME: usize = 160;

/// An Oozie, and as whom it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The root of its API, such as `http://oozie:11000/oozie`.
    pub(super) url: Url,
    /// The user's name.
    pub(super) user: String,
}

impl Place {
    /// The place of a job, by its settings and properties.
    pub(super) fn of(start: &Start) -> Result<Place, String> {
        let given = start.settings.get("url").and_then(Value::as_str).unwrap_or_default();
        let url = Url::parse(given).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or("the URL of its Oozie is none, expected one such as http://oozie:11000/oozie")?;
        let user = start.properties.get(USER).and_then(Value::as_str).map(str::trim).filter(|user| !user.is_empty());
        Ok(Place { url, user: user.map_or_else(|| own_name().to_owned(), str::to_owned) })
    }
}

/// All that is handed in with a job.
pub(super) struct Order {
    properties: BTreeMap<String, String>,
}

impl Order {
    /// The submission of a run, with the values of the secrets in its properties. The error is a message about a mistake that waiting
    /// can't solve.
    pub(super) fn of(start: &Start, properties: Map<String, Value>, external_id: &str) -> Result<Order, String> {
        let mut given = properties;
        given.extend(
            start
                .given
                .arguments
                .iter()
                .map(|(name, value)| (name.clone(), Value::from(kelos_model::arguments::text(value)))),
        );
        let mut properties = texts(&given)?;
        if properties.get(APPLICATION).is_none_or(|path| path.trim().is_empty()) {
            return Err(format!("property `{APPLICATION}` is missing, expected the path of a workflow.xml in HDFS"));
        }
        let user = Place::of(start)?.user;
        properties.entry(USER.to_owned()).or_insert(user);
        let slot = &start.run.slot;
        let values = KeyValues::of(&start.workflow.keys, &start.subject());
        let parts = values.named().into_iter().filter(|(name, _)| PARTS.contains(&&**name));
        properties.extend(parts.map(|(name, value)| (name.into_owned(), value)));
        properties.insert(SLOT.to_owned(), slot.short());
        properties.insert(EXTERNAL_ID.to_owned(), external_id.to_owned());
        Ok(Order { properties })
    }

    /// The configuration as Oozie reads it.
    pub(super) fn xml(&self) -> String {
        let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<configuration>\n".to_owned();
        for (name, value) in &self.properties {
            let (name, value) = (escaped(name), escaped(value));
            let _ = writeln!(xml, "<property><name>{name}</name><value>{value}</value></property>");
        }
        xml.push_str("</configuration>\n");
        xml
    }
}

/// The name under which a run's job is found again. Of one run it is always the same, and no two runs share it, of
/// whatever installation. Databases that compare texts regardless of case don't confuse two either.
pub(super) fn external_id(installation: &str, run: &RunId) -> String {
    let full = run.to_string();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.:@#".contains(c) { c } else { '_' };
    let shown: String = full.chars().take(LONGEST_NAME).map(plain).collect();
    format!("kelos:{installation}:{shown}:{:032x}", crate::local::fnv1a_128(full.as_bytes()))
}

fn texts(properties: &Map<String, Value>) -> Result<BTreeMap<String, String>, String> {
    let one = |(name, value): (&String, &Value)| Ok((checked_name(name)?, text(name, value)?));
    properties.iter().map(one).collect()
}

fn checked_name(name: &str) -> Result<String, String> {
    if name.trim().is_empty() || name.contains(forbidden) {
        return Err(format!("a property is named {name:?}, expected a name of printable characters"));
    }
    Ok(name.to_owned())
}

/// A property's value. Error messages never contain it: it may be a password.
fn text(name: &str, value: &Value) -> Result<String, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null => return Err(format!("property `{name}` is null, expected a text")),
        Value::Array(_) => return Err(format!("property `{name}` is a list, expected a text: join it in the script")),
        Value::Object(_) => {
            return Err(format!("property `{name}` is an object, expected a text: use JSON.stringify in the script"));
        }
    };
    if let Some(bad) = text.chars().find(|&c| forbidden(c)) {
        let code = u32::from(bad);
        return Err(format!("property `{name}` has the control character U+{code:04X}, which XML can't carry"));
    }
    Ok(text)
}

/// Whether a character is one that XML 1.0 can't contain, not even escaped.
fn forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            // Bare, it would become a line feed.
            '\r' => escaped.push_str("&#13;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// The user that this process runs as, as Oozie's own tools would say.
fn own_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
        user.map_or_else(|| "kelos".to_owned(), |user| user.name)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kelos_model::{SlotKey, SlotRef, WorkflowId};
    use serde_json::json;

    use super::*;

    fn run(workflow: &str, number: u32) -> RunId {
        let key = SlotKey::parse("2013-11-26T17:23:00.007Z").unwrap();
        RunId { slot: SlotRef::new(WorkflowId::new(workflow).unwrap(), key), number }
    }

    fn start(properties: Value) -> Start {
        let Value::Object(mut properties) = properties else { panic!("expected an object") };
        properties.entry(APPLICATION).or_insert_with(|| json!("/wf.xml"));
        let Value::Object(settings) = json!({"url": "http://me:pass@oozie:11000/oozie"}) else { unreachable!() };
        Start {
            run: run("wf", 1),
            workflow: Arc::new(super::super::tests::workflow("wf")),
            settings,
            properties,
            given: kelos_engine::executor::RunInput::default(),
            worker: None,
            lease: None,
            earlier: Vec::new(),
        }
    }

    fn order(start: &Start, external_id: &str) -> Result<Order, String> {
        Order::of(start, start.properties.clone(), external_id)
    }

    fn refused(properties: Value) -> String {
        order(&start(properties), "x").err().expect("it is refused")
    }

    #[test]
    fn own_properties_win_and_values_become_texts() {
        let given = json!({"year": "1", "user.name": " me ", "n": 3, "b": true, "text": "a<b & c>\r\"'", "celosWorkflowName": 1});
        let start = start(given);
        assert_eq!(Place::of(&start).unwrap().user, "me");
        let order = order(&start, "kelos:i:r:h").unwrap();
        let expected: String = [
            ("b", "true"),
            ("celosWorkflowName", "wf@2013-11-26T17:23:00.007Z"),
            ("day", "26"),
            ("hour", "17"),
            ("minute", "23"),
            ("month", "11"),
            ("n", "3"),
            ("oozie.wf.application.path", "/wf.xml"),
            ("oozie.wf.external.id", "kelos:i:r:h"),
            ("second", "00"),
            ("text", "a&lt;b &amp; c&gt;&#13;\"'"),
            ("user.name", " me "),
            ("year", "2013"),
        ]
        .iter()
        .map(|(name, value)| format!("<property><name>{name}</name><value>{value}</value></property>\n"))
        .collect();
        let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<configuration>\n";
        assert_eq!(order.xml(), format!("{head}{expected}</configuration>\n"));
    }

    #[test]
    fn arguments_win_over_properties_and_not_over_the_slot() {
        let mut start = start(json!({"dir": "/own", "other": "x"}));
        let arguments = [("dir", "/given"), ("celosWorkflowName", "forged"), ("logicalStartTime", "1")];
        start.given.arguments = arguments.map(|(name, value)| (name.to_owned(), Value::from(value))).into();
        let xml = order(&start, "x").unwrap().xml();
        for (name, value) in [("dir", "/given"), ("other", "x"), ("logicalStartTime", "1")] {
            assert!(xml.contains(&format!("<name>{name}</name><value>{value}</value>")), "{xml}");
        }
        assert!(!xml.contains("forged"), "{xml}");
    }

    #[test]
    fn without_a_user_it_is_the_one_that_kelos_runs_as() {
        let order = order(&start(json!({})), "x").unwrap();
        assert!(order.xml().contains(&format!("<name>user.name</name><value>{}</value>", own_name())));
    }

    #[test]
    fn what_is_no_text_is_refused_by_its_name_and_without_its_value() {
        assert_eq!(refused(json!({"a": null})), "property `a` is null, expected a text");
        assert_eq!(refused(json!({"a": ["s"]})), "property `a` is a list, expected a text: join it in the script");
        let object = refused(json!({"a": {"password": "s"}}));
        assert_eq!(object, "property `a` is an object, expected a text: use JSON.stringify in the script");
        let control = refused(json!({"a": "secret\u{1}"}));
        assert_eq!(control, "property `a` has the control character U+0001, which XML can't carry");
        let path = refused(json!({APPLICATION: " "}));
        assert_eq!(path, format!("property `{APPLICATION}` is missing, expected the path of a workflow.xml in HDFS"));
        assert_eq!(refused(json!({" ": "a"})), "a property is named \" \", expected a name of printable characters");
    }

    #[test]
    fn a_place_needs_a_url() {
        let mut start = start(json!({}));
        for bad in ["oozie:11000/oozie", "", "file:///x"] {
            start.settings.insert("url".to_owned(), json!(bad));
            let refused = Place::of(&start).unwrap_err();
            assert_eq!(refused, "the URL of its Oozie is none, expected one such as http://oozie:11000/oozie");
        }
    }

    #[test]
    fn external_ids_are_short_plain_and_never_the_same() {
        let one = external_id("0123", &run("Wf-α ${x}", 1));
        assert!(one.starts_with("kelos:0123:Wf-____x_@2013-11-26T17:23:00.007Z#1:"), "{one}");
        assert_eq!(one, external_id("0123", &run("Wf-α ${x}", 1)));
        let (lower, upper) = (external_id("i", &run("w", 1)), external_id("i", &run("W", 1)));
        assert_ne!(lower.to_lowercase(), upper.to_lowercase());
        assert_ne!(external_id("i", &run("w", 1)), external_id("j", &run("w", 1)));
        let long = external_id("3f2504e0-4f89-11d3-9a0c-0305e82c3301", &run(&"w".repeat(240), 12));
        assert!(long.len() <= 255 && long.is_ascii(), "{long}");
    }
}
