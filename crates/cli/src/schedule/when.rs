//! What has a schedule go, as a line: `and(time(0 4 * * *), partitions(purchases, 4))`. Read into the JSON of the API, and told
//! in the same words.

use serde_json::{Value, json};

use crate::client::{items, text};

/// What may stand in a line.
const KNOWN: &str = "time(CRON), time(CRON @ ZONE), partitions(DATASET, N), ended(PROGRAM, STATE...), signal(NAME), \
                     success(WORKFLOW), delay(15m), path(URI), and(...), or(...), not(...)";

/// Reads a trigger.
///
/// # Errors
/// In words, with what was expected.
pub(super) fn read(line: &str) -> Result<Value, String> {
    let line = line.trim();
    let (name, rest) = line.split_once('(').ok_or_else(|| format!("\"{line}\" is no trigger: expected {KNOWN}"))?;
    let inner = rest.strip_suffix(')').ok_or_else(|| format!("\"{line}\" does not end with a closing bracket"))?;
    let parts = split(inner)?;
    match name.trim() {
        "and" | "all" | "all-of" => nested("and", &parts),
        "or" | "any" | "any-of" => nested("or", &parts),
        "not" => nested("not", &parts),
        // A cron expression has commas of its own.
        "time" | "cron" => Ok(time(inner)),
        "partitions" | "partition" => partitions(&parts),
        "ended" | "program-status" => ended(&parts),
        "signal" => Ok(json!({ "type": "signal", "signal": single(name, &parts)? })),
        "success" => Ok(json!({ "type": "success", "workflow": single(name, &parts)? })),
        "path" => Ok(json!({ "type": "path", "path": single(name, &parts)? })),
        "delay" => {
            let wait = crate::text::duration(single(name, &parts)?)?;
            Ok(json!({ "type": "delay", "seconds": wait.as_secs() }))
        }
        other => Err(format!("\"{other}\" is no trigger: expected {KNOWN}")),
    }
}

/// What stands between the commas that are in no brackets.
fn split(inner: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (at, letter) in inner.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or_else(|| format!("\"{inner}\" has a bracket too many"))?,
            ',' if depth == 0 => {
                parts.push(inner.get(start..at).unwrap_or_default().trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err(format!("\"{inner}\" lacks a closing bracket"));
    }
    parts.push(inner.get(start..).unwrap_or_default().trim());
    Ok(parts)
}

fn nested(kind: &str, parts: &[&str]) -> Result<Value, String> {
    let nested = parts.iter().map(|part| read(part)).collect::<Result<Vec<Value>, String>>()?;
    Ok(json!({ "type": kind, "nested": nested }))
}

fn single<'a>(name: &str, parts: &[&'a str]) -> Result<&'a str, String> {
    match parts {
        [one] if !one.is_empty() => Ok(one),
        _ => Err(format!("\"{name}({})\" has {} parts, expected one", parts.join(", "), parts.len())),
    }
}

/// `0 4 * * *`, or `0 4 * * * @ Europe/Berlin`.
pub(super) fn time(text: &str) -> Value {
    match text.split_once('@') {
        Some((cron, zone)) => json!({ "type": "fired", "cron": cron.trim(), "zone": zone.trim() }),
        None => json!({ "type": "fired", "cron": text.trim() }),
    }
}

fn partitions(parts: &[&str]) -> Result<Value, String> {
    let number = |text: &str| {
        text.parse::<u32>().map_err(|_| format!("\"{text}\" is no number of partitions: expected 1 or more"))
    };
    match parts {
        [dataset] => Ok(json!({ "type": "partitions", "dataset": dataset })),
        [dataset, count] => Ok(json!({ "type": "partitions", "dataset": dataset, "count": number(count)? })),
        _ => Err(format!("\"partitions({})\": expected a dataset and a number", parts.join(", "))),
    }
}

fn ended(parts: &[&str]) -> Result<Value, String> {
    let Some((program, states)) = parts.split_first() else { return Err("\"ended()\": expected a program".to_owned()) };
    let states: Vec<&str> = states.iter().flat_map(|states| states.split('+')).map(str::trim).collect();
    Ok(json!({ "type": "ended", "workflow": program, "states": ends(&states)? }))
}

/// How runs end, also in the words of the system that this replaces.
pub(super) fn ends(states: &[&str]) -> Result<Vec<&'static str>, String> {
    states.iter().map(|state| end(state)).collect()
}

/// How a run ends.
pub(crate) fn end(state: &str) -> Result<&'static str, String> {
    match state.to_ascii_lowercase().as_str() {
        "succeeded" | "completed" => Ok("succeeded"),
        "failed" => Ok("failed"),
        "killed" => Ok("killed"),
        _ => Err(format!("\"{state}\" is not how a run ends: expected succeeded, failed or killed")),
    }
}

/// A trigger of an answer in one line.
pub(super) fn words(trigger: &Value) -> String {
    let inner = || items(trigger, "nested").iter().map(words).collect::<Vec<_>>().join(", ");
    match text(trigger, "type") {
        kind @ ("and" | "or" | "not") => format!("{kind}({})", inner()),
        "fired" => match text(trigger, "zone") {
            "UTC" | "" => format!("time({})", text(trigger, "cron")),
            zone => format!("time({} @ {zone})", text(trigger, "cron")),
        },
        "partitions" => format!("partitions({}, {})", text(trigger, "dataset"), trigger["count"]),
        "ended" => {
            let states = items(trigger, "states").iter().filter_map(Value::as_str);
            let parts: Vec<&str> = [text(trigger, "workflow")].into_iter().chain(states).collect();
            format!("ended({})", parts.join(", "))
        }
        "signal" => format!("signal({})", text(trigger, "signal")),
        "success" => format!("success({})", text(trigger, "workflow")),
        "delay" => format!("delay({}s)", trigger["seconds"]),
        kind if trigger["path"].is_string() => format!("{}({})", kind, text(trigger, "path")),
        kind => format!("{kind}({})", inner()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_and_told_again() {
        for line in [
            "time(0 4 * * *)",
            "time(0 4 1,15 * ? @ Europe/Berlin)",
            "and(time(0 4 * * 2,3), or(partitions(purchases, 4), not(signal(stop))))",
            "ended(Sales.Report, succeeded, killed)",
            "path(s3://logs/${year})",
            "delay(900s)",
        ] {
            assert_eq!(words(&read(line).expect(line)), line);
        }
        let short =
            read("any(partition(ds), ended(p, COMPLETED+failed), all(delay(15m), success(w)))").expect("a trigger");
        let nested = &short["nested"];
        assert_eq!(nested[0], json!({ "type": "partitions", "dataset": "ds" }));
        assert_eq!(nested[1]["states"], json!(["succeeded", "failed"]));
        assert_eq!(nested[2]["nested"][0]["seconds"], 900);
    }

    #[test]
    fn what_is_no_trigger_is_told() {
        let wrong = |line: &str| read(line).expect_err(line);
        assert!(wrong("whenever").starts_with("\"whenever\" is no trigger: expected time(CRON)"));
        assert!(wrong("moon(full)").starts_with("\"moon\" is no trigger: expected "));
        assert_eq!(wrong("and(signal(a), signal(b)"), "\"signal(a), signal(b\" lacks a closing bracket");
        assert_eq!(wrong("signal(a"), "\"signal(a\" does not end with a closing bracket");
        assert_eq!(wrong("partitions(ds, many)"), "\"many\" is no number of partitions: expected 1 or more");
        assert_eq!(wrong("signal(a, b)"), "\"signal(a, b)\" has 2 parts, expected one");
        assert_eq!(wrong("ended(p, lost)"), "\"lost\" is not how a run ends: expected succeeded, failed or killed");
    }
}
