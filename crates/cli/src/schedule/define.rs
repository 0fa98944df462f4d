//! What is said of a schedule on the command line, as the JSON of the API.

use serde_json::{Map, Value, json};

use super::when;
use crate::client::{items, text};
use crate::failure::Failure;
use crate::options::pairs;
use crate::text as words;

/// What has it go, what must hold besides, and what its runs are given.
#[derive(clap::Args)]
pub(super) struct Definition {
    /// Trigger at the times of a cron expression with five fields, or six with seconds first
    #[arg(long, value_name = "CRON", alias = "at")]
    time: Vec<String>,
    /// Trigger after this many new partitions of a dataset; N defaults to 1
    #[arg(long, value_name = "DATASET[=N]")]
    partitions: Vec<String>,
    /// Trigger when a run of a program ends, or ends as succeeded (or completed), failed or killed
    #[arg(long, value_name = "PROGRAM[=STATE,...]")]
    program_status: Vec<String>,
    /// Trigger on a signal
    #[arg(long, value_name = "NAME")]
    signal: Vec<String>,
    /// Trigger on a combination, such as 'and(time(0 4 * * *), partitions(purchases, 4))'; also or, not, ended, signal,
    /// delay
    #[arg(long, value_name = "TRIGGER")]
    when: Vec<String>,
    /// Combine several triggers: all must be met
    #[arg(long, conflicts_with = "any_of")]
    all_of: bool,
    /// Combine several triggers: one is enough
    #[arg(long)]
    any_of: bool,
    /// Constraint: fewer than N runs of the program are live; otherwise abort, or wait
    #[arg(long, value_name = "N[:wait|:abort]")]
    concurrency: Option<String>,
    /// Constraint: this long after the first fact
    #[arg(long, value_name = "DURATION")]
    delay: Option<String>,
    /// Constraint: between two times of day; otherwise wait, or abort
    #[arg(long, value_name = "FROM-TO[@ZONE][:wait|:abort]")]
    window: Vec<String>,
    /// Constraint: this long after the start of the program's last live or successful run; otherwise abort, or wait
    #[arg(long, value_name = "DURATION[:wait|:abort]")]
    since_last_run: Option<String>,
    /// Expire slots that have not been queued within this time [default: 1d]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// Argument of its runs
    #[arg(long = "property", value_name = "NAME=VALUE")]
    properties: Vec<String>,
    /// Time zone of cron expressions and windows that name none, such as Europe/Berlin [default: UTC]
    #[arg(long)]
    zone: Option<String>,
    /// Ignore facts before this time; `none` removes the limit
    #[arg(long, value_name = "TIME")]
    start: Option<String>,
    /// Ignore facts from this time on; `none` removes the limit
    #[arg(long, value_name = "TIME")]
    end: Option<String>,
    /// Delay each cron time by a random amount up to this
    #[arg(long, value_name = "DURATION")]
    jitter: Option<String>,
    /// Misfires, which are cron times that passed while no server was scheduling: count none, the latest or all
    /// [default: latest]
    #[arg(long, value_name = "WHICH", value_parser = ["skip", "latest", "all"])]
    catch_up: Option<String>,
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

fn usage(why: &str) -> Failure {
    Failure::usage(format!("read the schedule: {why}"))
}

impl Definition {
    /// The fields that are named, and nothing else.
    pub(super) fn fields(&self) -> Result<Map<String, Value>, Failure> {
        self.read().map_err(|why| usage(&why))
    }

    fn read(&self) -> Result<Map<String, Value>, String> {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        put("trigger", self.trigger()?);
        let constraints = self.constraints()?;
        put("constraints", (!constraints.is_empty()).then(|| constraints.into()));
        put("timeoutMillis", self.timeout.as_deref().map(millis).transpose()?.map(Value::from));
        put("jitterMillis", self.jitter.as_deref().map(millis).transpose()?.map(Value::from));
        put("startTime", self.start.as_deref().map(moment).transpose()?);
        put("endTime", self.end.as_deref().map(moment).transpose()?);
        let properties = pairs(&self.properties)?;
        put("properties", (!properties.is_empty()).then(|| json!(properties)));
        for (name, value) in [("timeZone", &self.zone), ("catchUp", &self.catch_up), ("description", &self.description)]
        {
            put(name, value.as_deref().map(Value::from));
        }
        Ok(fields)
    }

    fn trigger(&self) -> Result<Option<Value>, String> {
        let mut all = Vec::new();
        for (option, texts, write) in [
            ("--time", &self.time, when::time as fn(&str) -> Result<String, String>),
            ("--partitions", &self.partitions, when::partitions),
            ("--program-status", &self.program_status, when::ended),
            ("--signal", &self.signal, |name| Ok(when::signal(name))),
            ("--when", &self.when, when::line),
        ] {
            for text in texts {
                all.push(write(text).map_err(|why| format!("{option}: {why}"))?);
            }
        }
        let kind = match (self.all_of, self.any_of) {
            (true, _) => "and",
            (_, true) => "or",
            _ if all.len() > 1 => {
                return Err(format!("{} triggers are given: combine them with --all-of or --any-of", all.len()));
            }
            _ => return Ok(all.pop().map(Value::from)),
        };
        if all.is_empty() {
            return Err("--all-of and --any-of combine triggers, and none is given".to_owned());
        }
        Ok(Some(format!("{kind}({})", all.join(", ")).into()))
    }

    fn constraints(&self) -> Result<Vec<Value>, String> {
        let mut all = Vec::new();
        if let Some(text) = &self.concurrency {
            let (number, otherwise) = otherwise(text);
            let limit: u32 = number
                .parse()
                .map_err(|_| format!("\"{text}\" is no number of runs: expected a form such as 1 or 1:wait"))?;
            all.push(with(json!({ "type": "concurrency", "limit": limit }), otherwise));
        }
        if let Some(text) = &self.delay {
            all.push(json!({ "type": "delay", "millis": millis(text)? }));
        }
        for text in &self.window {
            let (window, otherwise) = otherwise(text);
            let (times, zone) = window.split_once('@').map_or((window, None), |(times, zone)| (times, Some(zone)));
            let (from, to) = times
                .split_once('-')
                .ok_or_else(|| format!("\"{text}\" is no window: expected a form such as 22:00-06:00@Europe/Berlin"))?;
            let mut window = json!({ "type": "window", "from": from.trim(), "to": to.trim() });
            if let Some(zone) = zone {
                window["zone"] = zone.trim().into();
            }
            all.push(with(window, otherwise));
        }
        if let Some(text) = &self.since_last_run {
            let (wait, otherwise) = otherwise(text);
            all.push(with(json!({ "type": "since-last-run", "millis": millis(wait)? }), otherwise));
        }
        Ok(all)
    }
}

/// What is said, and what is to happen otherwise.
fn otherwise(text: &str) -> (&str, Option<&'static str>) {
    match (text.strip_suffix(":wait"), text.strip_suffix(":abort")) {
        (Some(rest), _) => (rest, Some("wait")),
        (_, Some(rest)) => (rest, Some("abort")),
        _ => (text, None),
    }
}

fn with(mut constraint: Value, otherwise: Option<&str>) -> Value {
    if let Some(otherwise) = otherwise {
        constraint["otherwise"] = otherwise.into();
    }
    constraint
}

fn millis(text: &str) -> Result<i64, String> {
    let duration = words::duration(text)?;
    duration.as_secs().checked_mul(1000).ok_or_else(|| format!("\"{text}\" is too long"))
}

fn moment(text: &str) -> Result<Value, String> {
    match text {
        "none" => Ok(Value::Null),
        text => words::time(text).map(|at| words::wire(at).into()),
    }
}

/// What is to be changed, put into what there is: constraints of the kinds that are named go before those that there were, and
/// so do properties.
pub(super) fn merged(mut fields: Map<String, Value>, without: &[String], now: &Value) -> Map<String, Value> {
    let kept = |kind: &str, named: &[Value]| {
        !without.iter().any(|gone| gone == kind) && !named.iter().any(|one| one["type"] == kind)
    };
    let named: Vec<Value> = fields.get("constraints").and_then(Value::as_array).cloned().unwrap_or_default();
    if !named.is_empty() || !without.is_empty() {
        let before = items(now, "constraints").iter().filter(|one| kept(text(one, "type"), &named));
        let all: Vec<Value> = before.cloned().chain(named.iter().cloned()).collect();
        fields.insert("constraints".to_owned(), all.into());
    }
    if let Some(Value::Object(named)) = fields.remove("properties") {
        let mut all = now["properties"].as_object().cloned().unwrap_or_default();
        all.extend(named);
        fields.insert("properties".to_owned(), all.into());
    }
    fields
}

/// Takes properties away.
pub(super) fn without_properties(fields: &mut Map<String, Value>, gone: &[String], now: &Value) {
    if gone.is_empty() {
        return;
    }
    let given = fields.get("properties").or(now.get("properties"));
    let mut left = given.and_then(Value::as_object).cloned().unwrap_or_default();
    left.retain(|name, _| !gone.contains(name));
    fields.insert("properties".to_owned(), left.into());
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        definition: Definition,
    }

    fn read(words: &[&str]) -> Result<Value, String> {
        let line = Line::try_parse_from(["x"].iter().chain(words)).map_err(|error| error.to_string())?;
        line.definition.read().map(Value::Object)
    }

    #[test]
    fn options_become_fields() {
        let fields = read(&[
            "--partitions",
            "purchases=4",
            "--time",
            "0 4 * * *",
            "--any-of",
            "--concurrency",
            "1:wait",
            "--delay",
            "15m",
            "--window",
            "22:00-06:00@Europe/Berlin:abort",
            "--since-last-run",
            "6h",
            "--timeout",
            "2d",
            "--property",
            "a=b=c",
            "--start",
            "2026-01-01",
            "--end",
            "none",
        ]);
        let expected = json!({
            "trigger": "or(time(0 4 * * *), partitions(purchases, 4))",
            "constraints": [
                { "type": "concurrency", "limit": 1, "otherwise": "wait" },
                { "type": "delay", "millis": 900_000 },
                { "type": "window", "from": "22:00", "to": "06:00", "zone": "Europe/Berlin", "otherwise": "abort" },
                { "type": "since-last-run", "millis": 21_600_000 },
            ],
            "timeoutMillis": 172_800_000, "properties": { "a": "b=c" },
            "startTime": "2026-01-01T00:00:00.000Z", "endTime": null,
        });
        assert_eq!(fields, Ok(expected));
        assert_eq!(read(&[]), Ok(json!({})));
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let wrong = |words: &[&str]| read(words).expect_err("something wrong");
        assert_eq!(
            wrong(&["--signal", "a", "--signal", "b"]),
            "2 triggers are given: combine them with --all-of or --any-of"
        );
        assert!(wrong(&["--all-of"]).ends_with("and none is given"));
        assert!(wrong(&["--partitions", "ds=x"]).contains("expected DATASET=N"));
        assert!(wrong(&["--concurrency", "one"]).contains("such as 1 or 1:wait"));
        assert!(wrong(&["--window", "22:00"]).contains("such as 22:00-06:00@Europe/Berlin"));
        assert!(wrong(&["--property", "a"]).contains("expected NAME=VALUE"));
        assert!(wrong(&["--property", "a=1", "--property", "a=2"]).contains("a is given twice"));
        assert!(wrong(&["--delay", "soon"]).contains("is not a duration"));
    }

    #[test]
    fn a_change_keeps_what_is_not_named() {
        let now = json!({
            "constraints": [{ "type": "concurrency", "limit": 1 }, { "type": "delay", "millis": 5 }, { "type": "window" }],
            "properties": { "a": "1", "b": "2" },
        });
        let named = json!({ "constraints": [{ "type": "delay", "millis": 7 }], "properties": { "b": "3" } });
        let Value::Object(named) = named else { panic!("an object") };
        let mut fields = merged(named, &["window".to_owned()], &now);
        without_properties(&mut fields, &["a".to_owned()], &now);
        let expected = json!({
            "constraints": [{ "type": "concurrency", "limit": 1 }, { "type": "delay", "millis": 7 }],
            "properties": { "b": "3" },
        });
        assert_eq!(Value::Object(fields), expected);
        assert_eq!(Value::Object(merged(Map::new(), &[], &now)), json!({}));
    }
}
