//! The file of `--config` by an allow-list: what is not listed here is left out, whatever it is called.

use serde_json::{Map, Value, json};

use super::redaction::place;

/// The form in which a value is shown.
#[derive(Clone, Copy)]
enum Form {
    /// A name or a length of time.
    Text,
    /// A number.
    Number,
    /// An address, without anything that may be secret.
    Place,
}

/// The values that are shown, by their path; `*` is each item of a list.
const SHOWN: &[(&str, Form)] = &[
    ("groups.*.name", Form::Text),
    ("groups.*.workflows.*", Form::Text),
    ("links.*.name", Form::Text),
    ("links.*.executor", Form::Text),
    ("links.*.url", Form::Place),
    ("watch.*.prefix", Form::Place),
    ("watch.*.dataset", Form::Text),
    ("watch.*.every", Form::Text),
    ("watch.*.minAge", Form::Text),
    ("checkpoints.every", Form::Text),
    ("checkpoints.instance", Form::Text),
    ("checkpoints.to.*", Form::Place),
    ("kafka.*.name", Form::Text),
    ("kafka.*.topics.*.topic", Form::Text),
    ("kafka.*.topics.*.dataset", Form::Text),
    ("kafka.*.topics.*.signal", Form::Text),
    ("kafka.*.topics.*.workflow", Form::Text),
    ("history.days", Form::Number),
    ("history.runs", Form::Number),
    ("history.output", Form::Text),
    ("limits.connections", Form::Number),
    ("limits.connectionsPerAddress", Form::Number),
    ("limits.requestsPerSecond", Form::Number),
    ("limits.burst", Form::Number),
    ("limits.streams", Form::Number),
    ("access.openid.issuer", Form::Place),
    ("access.openid.publicAddress", Form::Place),
];

/// The part of the configuration that may be shown, with the number of values that are left out.
pub(super) fn shown(text: &str) -> Value {
    let Ok(config) = serde_json::from_str::<Value>(text) else {
        return json!({ "problem": "it is no JSON; `kelos check --config` says where" });
    };
    let mut left_out = 0;
    let shown = part("", &config, &mut left_out);
    json!({ "config": shown, "valuesLeftOut": left_out })
}

fn part(path: &str, value: &Value, left_out: &mut usize) -> Option<Value> {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (name, value) in fields {
                // The name of a field that is not listed may be a secret, too.
                if let Some(shown) = part(&below(name), value, left_out) {
                    kept.insert(name.clone(), shown);
                }
            }
            Some(Value::Object(kept)).filter(|_| is_listed(path))
        }
        Value::Array(items) => {
            let kept = items.iter().filter_map(|item| part(&below("*"), item, left_out)).collect();
            Some(Value::Array(kept)).filter(|_| is_listed(path))
        }
        value => {
            let form = SHOWN.iter().find(|(shown, _)| *shown == path).map(|(_, form)| *form);
            let kept = match (form, value) {
                (Some(Form::Text), Value::String(_)) | (Some(Form::Number), Value::Number(_)) => Some(value.clone()),
                (Some(Form::Place), Value::String(address)) => Some(place(address).into()),
                _ => None,
            };
            *left_out += usize::from(kept.is_none());
            kept
        }
    }
}

/// Whether something is shown at a path or below it.
fn is_listed(path: &str) -> bool {
    path.is_empty() || SHOWN.iter().any(|(shown, _)| shown.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_shown() {
        let config = json!({
            "groups": [{ "name": "Sales", "workflows": ["a"], "S1": "S2" }],
            "links": [{ "name": "Spark", "url": "https://u:S3@spark/S4?S5" }],
            "checkpoints": { "to": ["s3://S6:S7@audit/kelos"], "key": "S8", "every": "1h" },
            "kafka": [{ "name": "k", "settings": { "sasl.password": "S9", "S10": { "secret": "exec:S11" } },
                "topics": [{ "topic": "t", "match": "S12" }] }],
            "limits": { "burst": 5, "streams": "S13" },
            "secrets": { "S14": ["env:S15"] },
            "groupsS16": [{ "name": "S17" }],
            "access": { "openid": { "issuer": "https://id.example/S18", "clientSecret": "S19" }, "reasons": ["S20"] },
            "S21": true,
        });
        let shown = shown(&config.to_string());
        assert_eq!(
            shown["config"],
            json!({
                "groups": [{ "name": "Sales", "workflows": ["a"] }],
                "links": [{ "name": "Spark", "url": "https://spark/…" }],
                "checkpoints": { "to": ["s3://audit/kelos"], "every": "1h" },
                "kafka": [{ "name": "k", "topics": [{ "topic": "t" }] }],
                "limits": { "burst": 5 },
                "access": { "openid": { "issuer": "https://id.example/…" } },
            })
        );
        assert_eq!(shown["valuesLeftOut"], 11);
        for number in 1..=21 {
            assert!(!shown.to_string().contains(&format!("S{number}\"")), "S{number} in {shown}");
        }
    }

    #[test]
    fn a_file_that_is_no_json_is_not_shown() {
        assert_eq!(shown("{ secret").to_string().matches("secret").count(), 0);
    }
}
