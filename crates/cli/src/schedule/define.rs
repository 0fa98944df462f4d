//! The options that define an event schedule, as a request of the API.

use kelos_model::form::FormError;
use kelos_model::time::{Zone, format_millis};
use kelos_model::{Constraint, Deadline};
use kelos_wire::{CatchUpRequest, ConstraintDto, EventScheduleDto, Instant, ScheduleRequest, TriggerDto};
use serde_json::{Value, json};

use super::when;
use crate::failure::Failure;
use crate::options::pairs;
use crate::text as words;
use crate::times;

/// The options that define an event schedule: its trigger, its constraints and the arguments of its runs.
#[derive(clap::Args)]
pub(super) struct Definition {
    /// Trigger at the times of a cron expression with five fields as in a crontab, or six as in Quartz, with seconds first
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
    /// Constraint in one line, such as 'window(22:00-06:00 @ Europe/Berlin, abort)'; also concurrency, delay,
    /// since-last-run
    #[arg(long, value_name = "CONSTRAINT")]
    constraint: Vec<String>,
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
    /// Tell that a slot is late if it has not succeeded within this time, or by a time of the day; `none` removes the
    /// deadline
    #[arg(long, value_name = "DURATION|TIME[@ZONE]")]
    deadline: Option<String>,
    /// Misfires, which are cron times that passed while no server was scheduling: count none, the latest or all
    /// [default: latest]
    #[arg(long, value_name = "WHICH", value_parser = ["skip", "latest", "all"])]
    catch_up: Option<String>,
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

/// The handling of misfires; the parser lets no other words through.
fn catch_up(text: &str) -> CatchUpRequest {
    match text {
        "skip" => CatchUpRequest::Skip,
        "all" => CatchUpRequest::All,
        _ => CatchUpRequest::Latest,
    }
}

impl Definition {
    /// A request with what the options name, and nothing else.
    pub(super) fn request(&self) -> Result<ScheduleRequest, Failure> {
        self.read().map_err(|why| Failure::usage(format!("read the schedule: {why}")))
    }

    fn read(&self) -> Result<ScheduleRequest, String> {
        let trigger = self.trigger()?;
        // Local times of the limits are those of the schedule's zone, where it is named.
        let zone = self.zone.as_deref().and_then(|name| Zone::parse(name).ok());
        let limit = |text: &str| moment(text, zone.as_ref());
        let (constraints, properties) = (self.constraints()?, pairs(&self.properties)?);
        Ok(ScheduleRequest {
            description: self.description.clone().map(Some),
            trigger: trigger.map(TriggerDto::of_text),
            constraints: (!constraints.is_empty()).then_some(constraints),
            properties: (!properties.is_empty()).then_some(properties),
            timeout_millis: self.timeout.as_deref().map(millis).transpose()?.map(Some),
            time_zone: self.zone.clone(),
            start_time: self.start.as_deref().map(limit).transpose()?,
            end_time: self.end.as_deref().map(limit).transpose()?,
            jitter_millis: self.jitter.as_deref().map(millis).transpose()?,
            deadline: self.deadline.as_deref().map(deadline).transpose()?,
            catch_up: self.catch_up.as_deref().map(catch_up),
            ..ScheduleRequest::default()
        })
    }

    fn trigger(&self) -> Result<Option<String>, String> {
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
            _ => return Ok(all.pop()),
        };
        if all.is_empty() {
            return Err("--all-of and --any-of combine triggers, and none is given".to_owned());
        }
        Ok(Some(format!("{kind}({})", all.join(", "))))
    }

    /// The constraints as lines, which the server reads in the zone of the schedule.
    fn constraints(&self) -> Result<Vec<ConstraintDto>, String> {
        let mut all = Vec::new();
        if let Some(text) = &self.concurrency {
            let (number, otherwise) = otherwise(text);
            let wrong = |_| format!("\"{text}\" is no number of runs: expected a form such as 1 or 1:wait");
            let limit: u32 = number.parse().map_err(wrong)?;
            all.push(line("concurrency", &limit.to_string(), otherwise));
        }
        if let Some(text) = &self.delay {
            all.push(line("delay", &format_millis(millis(text)?), None));
        }
        for text in &self.window {
            let (window, otherwise) = otherwise(text);
            let window = line("window", window, otherwise);
            read(&window).map_err(|error| {
                format!("\"{text}\": {}; expected a form such as 22:00-06:00@Europe/Berlin", error.problem)
            })?;
            all.push(window);
        }
        if let Some(text) = &self.since_last_run {
            let (wait, otherwise) = otherwise(text);
            all.push(line("since-last-run", &format_millis(millis(wait)?), otherwise));
        }
        for text in &self.constraint {
            read(text).map_err(|error| format!("--constraint: {error}"))?;
            all.push(text.trim().to_owned());
        }
        Ok(all.into_iter().map(ConstraintDto::of_text).collect())
    }
}

fn read(line: &str) -> Result<Constraint, FormError> {
    Constraint::parse(line, &Zone::utc())
}

/// The text form of a constraint.
fn line(kind: &str, value: &str, otherwise: Option<&str>) -> String {
    match otherwise {
        Some(otherwise) => format!("{kind}({value}, {otherwise})"),
        None => format!("{kind}({value})"),
    }
}

/// The text before `:wait` or `:abort`, and that word.
fn otherwise(text: &str) -> (&str, Option<&'static str>) {
    match (text.strip_suffix(":wait"), text.strip_suffix(":abort")) {
        (Some(rest), _) => (rest, Some("wait")),
        (_, Some(rest)) => (rest, Some("abort")),
        _ => (text, None),
    }
}

fn millis(text: &str) -> Result<u64, String> {
    let millis = words::duration(text)?.as_secs().checked_mul(1000).and_then(|millis| u64::try_from(millis).ok());
    millis.ok_or_else(|| format!("\"{text}\" is too long"))
}

/// A deadline as a definition has it: a length of time, or a time of the day, which is one of the schedule's zone where it names
/// none; none for `none`.
fn deadline(text: &str) -> Result<Option<Value>, String> {
    let (time, zone) = text.split_once('@').map_or((text, None), |(time, zone)| (time, Some(zone)));
    let value = match (text, time.contains(':'), zone) {
        ("none", ..) => return Ok(None),
        (_, true, Some(zone)) => json!({ "at": time, "zone": zone }),
        (_, true, None) => json!({ "at": time }),
        (_, false, _) => json!(text),
    };
    let expected = "expected a form such as 2h or 07:30@Europe/Berlin";
    Deadline::read(&value, &Zone::utc()).map_err(|error| format!("--deadline: {error}; {expected}"))?;
    Ok(Some(value))
}

/// A limit in time; none for `none`.
fn moment(text: &str, zone: Option<&Zone>) -> Result<Option<Instant>, String> {
    match text {
        "none" => Ok(None),
        text => times::time_in(text, zone).map(|at| Some(Instant(at))),
    }
}

/// Merges a change into the schedule as it is: constraints of the kinds that are named take the place of those that it has, and
/// so do properties. A constraint that only a newer server knows stays as it is.
pub(super) fn merge(mut request: ScheduleRequest, without: &[String], now: &EventScheduleDto) -> ScheduleRequest {
    let named = request.constraints.take().unwrap_or_default();
    if !named.is_empty() || !without.is_empty() {
        let is_kept = |one: &&ConstraintDto| {
            let is_removed = without.iter().any(|gone| one.kind() == Some(gone));
            !is_removed && !named.iter().any(|other| other.kind() == one.kind())
        };
        let mut all: Vec<ConstraintDto> = now.constraints.iter().filter(is_kept).cloned().collect();
        all.extend(named);
        request.constraints = Some(all);
    }
    if let Some(named) = request.properties.take() {
        let mut all = now.properties.clone();
        all.extend(named);
        request.properties = Some(all);
    }
    request
}

/// Removes properties.
pub(super) fn remove_properties(request: &mut ScheduleRequest, gone: &[String], now: &EventScheduleDto) {
    if gone.is_empty() {
        return;
    }
    let properties = request.properties.get_or_insert_with(|| now.properties.clone());
    properties.retain(|name, _| !gone.contains(name));
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
        line.definition.read().map(|request| json!(request))
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
            "--constraint",
            "since-last-run(90s, wait)",
            "--timeout",
            "2d",
            "--property",
            "a=b=c",
            "--start",
            "2026-01-01",
            "--end",
            "none",
            "--deadline",
            "07:30@Europe/Berlin",
        ]);
        let expected = json!({
            "trigger": "or(time(0 4 * * *), partitions(purchases, 4))",
            "constraints": [
                "concurrency(1, wait)",
                "delay(15m)",
                "window(22:00-06:00@Europe/Berlin, abort)",
                "since-last-run(6h)",
                "since-last-run(90s, wait)",
            ],
            "timeoutMillis": 172_800_000, "properties": { "a": "b=c" },
            "startTime": "2026-01-01T00:00:00.000Z", "endTime": null, "deadline": { "at": "07:30", "zone": "Europe/Berlin" },
        });
        assert_eq!(fields, Ok(expected));
        assert_eq!(read(&[]), Ok(json!({})));
        assert_eq!(read(&["--deadline", "2h"]), Ok(json!({ "deadline": "2h" })));
        assert_eq!(read(&["--deadline", "none"]), Ok(json!({ "deadline": null })));
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
        let told = wrong(&["--constraint", "concurrency(1, stop)"]);
        assert_eq!(told, "--constraint: at character 16: \"stop\" is unknown here: expected wait or abort");
        assert!(wrong(&["--property", "a"]).contains("expected NAME=VALUE"));
        assert!(wrong(&["--property", "a=1", "--property", "a=2"]).contains("a is given twice"));
        assert!(wrong(&["--deadline", "soon"]).ends_with("expected a form such as 2h or 07:30@Europe/Berlin"));
        assert!(wrong(&["--deadline", "07:30@Mars"]).starts_with("--deadline: "));
        assert!(wrong(&["--delay", "soon"]).contains("is not a duration"));
    }

    #[test]
    fn a_change_keeps_what_is_not_named() {
        let now = EventScheduleDto {
            constraints: serde_json::from_value(json!([
                { "type": "concurrency", "limit": 1, "otherwise": "wait" },
                { "type": "delay", "millis": 5, "otherwise": "wait" },
                { "type": "window", "from": "22:00", "to": "06:00", "zone": "UTC", "otherwise": "abort" },
            ]))
            .expect("constraints"),
            properties: [("a", "1"), ("b", "2")].map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..EventScheduleDto::default()
        };
        let named = json!({ "constraints": ["delay(7ms)"], "properties": { "b": "3" } });
        let named = serde_json::from_value(named).expect("a request");
        let mut request = merge(named, &["window".to_owned()], &now);
        remove_properties(&mut request, &["a".to_owned()], &now);
        let expected = json!({
            "constraints": [{ "type": "concurrency", "limit": 1, "otherwise": "wait" }, "delay(7ms)"],
            "properties": { "b": "3" },
        });
        assert_eq!(json!(request), expected);
        assert_eq!(merge(ScheduleRequest::default(), &[], &now), ScheduleRequest::default());
    }

    #[test]
    fn a_constraint_of_a_newer_server_is_kept() {
        let now = serde_json::from_value(json!([{ "type": "moon", "otherwise": "wait" }])).expect("constraints");
        let now = EventScheduleDto { constraints: now, ..EventScheduleDto::default() };
        let merged = merge(ScheduleRequest::default(), &["delay".to_owned()], &now);
        assert_eq!(merged.constraints, Some(now.constraints));
    }
}
