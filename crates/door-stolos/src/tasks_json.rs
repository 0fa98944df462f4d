//! Apps of a `tasks.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use kelos_model::jobs::{Fault, JobGraph, JobKeys, JobTemplate, Validity};
use kelos_model::similar::{closest, mistyped};
use kelos_model::workflow::keyed;
use kelos_model::workflow::{Keys, Source};
use kelos_model::{Job, Workflow, WorkflowId};
use kelos_sandbox::apps::{AppFormat, Apps, GroupPositions, Mistake, Position, SCHEMA, Settings};
use kelos_sandbox::fault_code;
use serde_json::Map;

use crate::depends_on::depends_on;
use crate::json::{JsonReader, kind};
use crate::run_by::{App, BUILT_IN};

/// The content of a file, checked as a whole.
#[derive(Debug)]
pub struct Tasks {
    /// The apps, in the order of the file.
    pub workflows: Vec<Workflow>,
    /// The dependencies between jobs, of the apps that fit each other.
    pub graph: JobGraph,
    /// The mistakes in the others, in the order of the file.
    pub mistakes: Vec<Mistake>,
    /// The apps that are left out of the graph.
    pub faulty: BTreeSet<WorkflowId>,
    /// Oddities that do no harm.
    pub warnings: Vec<Mistake>,
}

/// Keys of an app with what each has to be.
const KINDS: [(&str, &str); 10] = [
    ("job_type", "a text"),
    ("runAs", "a text"),
    ("bash_cmd", "a text"),
    ("pymodule", "a text"),
    ("spark_conf", "an object"),
    ("env", "an object"),
    ("env_from_os", "a list"),
    ("uris", "a list"),
    ("read_fp", "a text"),
    ("write_fp", "a text"),
];

/// The other keys of an app.
const OTHERS: [&str; 16] = [
    "job_id",
    "job_id_template",
    "autofill_values",
    "depends_on",
    "valid_if_or",
    "minPartitions",
    "concurrency",
    "deadline",
    "max_retry",
    "timeout",
    "pools",
    "runs_on",
    "on_lost",
    "parameters",
    "feed",
    "writes",
];

/// The template of job ids of an app that has none that can be read.
const UNKNOWN: &str = "{job_id}";
/// The most mistakes that the page of an app shows.
const TOLD: usize = 3;

/// The properties of an app that only a script can give.
const OF_SCRIPTS: [&str; 5] = ["externalService", "steps", "trigger", "valid", "constraints"];

/// The format of a `tasks.json`, for files and for scripts.
#[derive(Debug, Clone, Copy, Default)]
pub struct TasksJson;

impl AppFormat for TasksJson {
    fn apps(&self, text: &str, file: &str, settings: &Settings) -> Result<Apps, Vec<Mistake>> {
        apps(text, file, settings)
    }
}

/// Reads a file as one whole, to ask about its jobs.
///
/// # Errors
/// The mistakes that leave no app of the text known.
pub fn read(text: &str, settings: &Settings) -> Result<Tasks, Vec<Mistake>> {
    let mut reader = Reader::new(text, "tasks.json", settings);
    reader.asks_only = true;
    let mut apps = reader.apps()?;
    let (graph, faults) = JobGraph::fitting(keyed(&apps.workflows));
    let faulty = faults.into_iter().map(|fault| fault.workflow).collect();
    let nowhere = Position { line: 1, column: 1 };
    let mistake = |fault: Fault| {
        let place = apps.place(&fault).unwrap_or(nowhere);
        Mistake { place, code: fault_code(&fault), what: fault.to_string() }
    };
    let between: Vec<Mistake> = between(&apps.workflows).into_iter().map(mistake).collect();
    let mut mistakes = std::mem::take(&mut apps.mistakes);
    mistakes.extend(between);
    let Apps { workflows, warnings, .. } = apps;
    Ok(Tasks { workflows, graph, mistakes: in_order(mistakes), faulty, warnings })
}

/// Parses a text into the apps that can be run; they may depend on apps of other files. `file` names the text in
/// messages.
///
/// # Errors
/// The mistakes that leave no app of the text known.
pub fn apps(text: &str, file: &str, settings: &Settings) -> Result<Apps, Vec<Mistake>> {
    let mut reader = Reader::new(text, file, settings);
    let mut apps = reader.apps()?;
    apps.warnings.append(&mut reader.reading.remarks);
    apps.warnings.sort_by_key(|warning| warning.place);
    Ok(apps)
}

/// The faults between apps, including those with a mistake of their own, so that all are reported at once.
fn between(workflows: &[Workflow]) -> Vec<Fault> {
    let readable = keyed(workflows).filter(|(_, keys)| keys.template.as_str() != UNKNOWN);
    let as_sound = readable.map(|(id, keys)| (id.clone(), JobKeys { mistake: None, ..keys.clone() }));
    JobGraph::new(as_sound.collect()).err().unwrap_or_default()
}

fn in_order(mut mistakes: Vec<Mistake>) -> Vec<Mistake> {
    mistakes.sort_by_key(|mistake| mistake.place);
    mistakes.dedup();
    mistakes
}

struct Reader<'a> {
    reading: JsonReader<'a>,
    file: &'a str,
    settings: &'a Settings,
    places: BTreeMap<WorkflowId, (Position, GroupPositions)>,
    /// Whether jobs are only asked about: what hinders them from being run is no mistake then.
    asks_only: bool,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, file: &'a str, settings: &'a Settings) -> Reader<'a> {
        let mut reading = JsonReader::new(text);
        reading.of_a_script = settings.of_a_script;
        Reader { reading, file, settings, places: BTreeMap::new(), asks_only: false }
    }

    fn apps(&mut self) -> Result<Apps, Vec<Mistake>> {
        let Some(workflows) = self.workflows() else {
            return Err(in_order(std::mem::take(&mut self.reading.mistakes)));
        };
        let mut mistakes = std::mem::take(&mut self.reading.mistakes);
        if !self.asks_only {
            mistakes.append(&mut self.reading.hindrances);
        }
        Ok(Apps {
            workflows,
            mistakes: in_order(mistakes),
            warnings: std::mem::take(&mut self.reading.warnings),
            places: std::mem::take(&mut self.places),
        })
    }

    /// The apps; none where the text as a whole makes no sense.
    fn workflows(&mut self) -> Option<Vec<Workflow>> {
        let Some(root) = self.reading.root() else {
            if self.reading.mistakes.is_empty() {
                self.reading
                    .mistake(Range { start: 0, end: 0 }, "the file is empty, expected an object of apps by name");
            }
            return None;
        };
        let apps = self.reading.object(&root, "the file")?;
        // The schema by which editors check the file is no app.
        let apps = apps.properties.iter().filter(|property| property.name.as_str() != SCHEMA);
        Some(apps.filter_map(|property| self.workflow(property)).collect())
    }

    /// An app. One with a mistake is dormant; none if it has no valid name.
    fn workflow(&mut self, property: &ObjectProp<'a>) -> Option<Workflow> {
        let id = WorkflowId::new(property.name.as_str());
        let id = id.map_err(|error| self.reading.mistake(property.range, error.to_string())).ok()?;
        let before = self.reading.counts();
        let first = self.places.insert(id.clone(), (self.reading.place(property.range), GroupPositions::new()));
        let read = self.sound_or_not(&id, property);
        if let Some(Err(problem)) = read.as_ref().map(Workflow::check_nesting) {
            self.reading.mistake(property.range, problem);
        }
        if let Some(first) = first {
            // The duplicate name was reported before.
            self.places.insert(id, first);
            return None;
        }
        let before = if self.asks_only { (before.0, self.reading.counts().1) } else { before };
        let mistakes = self.reading.since(before);
        if mistakes.is_empty() {
            return read;
        }
        let mut workflow = read.or_else(|| self.unreadable(&id, property))?;
        if let Keys::Jobs(keys) = &mut workflow.keys {
            keys.mistake = Some(told(&mistakes).into());
        }
        Some(workflow)
    }

    /// A placeholder for an app whose template of job ids is not known.
    fn unreadable(&mut self, id: &WorkflowId, property: &ObjectProp<'a>) -> Option<Workflow> {
        let template = JobTemplate::new(UNKNOWN).ok()?;
        let line = u32::try_from(self.reading.place(property.range).line).unwrap_or(0);
        let keys = Keys::Jobs(Box::new(JobKeys::new(template)));
        Some(Workflow {
            project: self.project(),
            source: Source::file(self.file, line),
            ..Workflow::keyed(id.clone(), keys, Job::new("bash", Map::new()))
        })
    }

    fn project(&self) -> String {
        self.file.rsplit_once('.').map_or(self.file, |(stem, _)| stem).to_owned()
    }

    /// An app, whatever mistakes it has, as long as its job ids are known.
    fn sound_or_not(&mut self, id: &WorkflowId, property: &ObjectProp<'a>) -> Option<Workflow> {
        let (id, name) = (id.clone(), property.name.as_str());
        let object = self.reading.object(&property.value, name)?;
        let own = is_own(object);
        for property in &object.properties {
            self.key(&id, property, own);
        }
        let (keys, places) = self.keys(&id, property.range, object)?;
        let place = self.reading.place(property.range);
        self.places.insert(id.clone(), (place, places));
        let folder = self.settings.folder.as_deref();
        let app = App { name, property, object, keys: &keys, folder };
        let reading = &mut self.reading;
        let (job, flow, feed, trigger) = (app.job(reading), app.flow(reading), app.feed(reading), app.trigger(reading));
        let constraints = app.constraints(reading);
        let (concurrency, pools, retry) = (app.concurrency(reading), app.pools(reading), app.retry(reading));
        let (writes, parameters, deadline) = (app.writes(reading), app.parameters(reading), app.deadline(reading));
        let (feed, catch_up) = feed.unzip();
        let keys = Keys::Jobs(Box::new(JobKeys { feed, ..keys }));
        let workflow = Workflow {
            project: self.project(),
            source: Source::file(self.file, u32::try_from(place.line).unwrap_or(0)),
            trigger,
            flow,
            constraints,
            concurrency,
            pools,
            retry,
            writes,
            parameters,
            catch_up,
            deadline,
            ..Workflow::keyed(id, keys, job)
        };
        for mistake in kelos_model::mistakes::parameter_mistakes(&workflow) {
            let range = object.get("parameters").map_or(property.range, |parameters| parameters.range);
            self.reading.mistake(range, format!("parameters of {name}: {mistake}"));
        }
        Some(workflow)
    }

    fn keys(&mut self, id: &WorkflowId, range: Range, app: &Object<'a>) -> Option<(JobKeys, GroupPositions)> {
        let template = self.template(id, range, app)?;
        let mut domains = BTreeMap::new();
        if let Some(values) = app.get("autofill_values") {
            domains = self.autofill_values(&values.value)?;
        }
        let (depends_on, places) =
            app.get("depends_on").map(|on| depends_on(&mut self.reading, &on.value)).unwrap_or_default();
        let mut valid = app.get("valid_if_or").and_then(|valid| self.valid_if_or(&template, &valid.value));
        if let Some(function) = app.get("valid").filter(|_| self.reading.of_a_script) {
            valid.get_or_insert_default().function = self.reading.data(&function.value, "valid", "a function");
        }
        let known = template
            .identifiers()
            .filter_map(|name| Some((name.clone(), self.settings.identifiers.get(name)?.clone())));
        let identifiers = known.collect();
        let asked =
            template.identifiers().filter_map(|name| Some((name.clone(), self.settings.checks.get(name)?.clone())));
        let checks = asked.collect();
        let keys = JobKeys { identifiers, checks, domains, depends_on, valid, ..JobKeys::new(template) };
        Some((keys, places))
    }

    /// A key of an app: known, and of the right kind. Kinds of jobs that are people's `own` read what they like.
    fn key(&mut self, id: &WorkflowId, property: &ObjectProp<'a>, own: bool) {
        let name = property.name.as_str();
        if let Some((_, expected)) = KINDS.iter().find(|(known, _)| *known == name) {
            let found = kind(&property.value);
            if found != *expected {
                self.reading.mistake(property.value.range(), format!("{name} of {id} is {found}, expected {expected}"));
            }
            return;
        }
        let of_a_script = self.reading.of_a_script && OF_SCRIPTS.contains(&name);
        if !(own || of_a_script || OTHERS.contains(&name)) {
            let known = || KINDS.iter().map(|(name, _)| *name).chain(OTHERS);
            let what = format!("{id} has the key \"{name}\", which nothing reads");
            match (mistyped(name, known()), closest(name, known())) {
                (Some(meant), _) => self.reading.mistyped(property.range, format!("{what}; did you mean {meant}?")),
                (None, Some(close)) => self.reading.warn(property.range, format!("{what}; did you mean {close}?")),
                (None, None) => self.reading.warn(property.range, what),
            }
        }
    }

    fn template(&mut self, id: &WorkflowId, range: Range, app: &Object<'a>) -> Option<JobTemplate> {
        let written = app.get("job_id").or(app.get("job_id_template"));
        if let (Some(_), Some(second)) = (app.get("job_id"), app.get("job_id_template")) {
            self.reading.mistake(second.range, format!("{id} has both job_id and job_id_template, expected one"));
        }
        let Some(written) = written else {
            let usual = self.settings.template.clone();
            if usual.is_none() {
                self.reading.mistake(range, format!("{id} has no job_id, and no default template was given"));
            }
            return usual;
        };
        let text = self.reading.text(&written.value, "the template of job ids")?;
        let template = JobTemplate::new(&text);
        template.map_err(|error| self.reading.mistake(written.value.range(), error.to_string())).ok()
    }

    fn autofill_values(&mut self, value: &Value<'a>) -> Option<BTreeMap<Arc<str>, Vec<Arc<str>>>> {
        let object = self.reading.object(value, "autofill_values")?;
        let mut domains = BTreeMap::new();
        for property in &object.properties {
            let name = property.name.as_str();
            let values = match &property.value {
                Value::StringLit(text) => range(&text.value)
                    .map_err(|what| self.reading.mistake(text.range, format!("{name} is \"{}\", {what}", text.value)))
                    .ok(),
                other => self.reading.list(other, name),
            };
            domains.insert(name.into(), values.unwrap_or_default());
        }
        Some(domains)
    }

    fn valid_if_or(&mut self, template: &JobTemplate, value: &Value<'a>) -> Option<Validity> {
        let object = self.reading.object(value, "valid_if_or")?;
        let mut valid = Validity::default();
        for property in &object.properties {
            let name = property.name.as_str();
            if name == "_func" {
                self.reading.text(&property.value, "_func");
                let what = "valid_if_or calls a function of Python, which can't be done: list the values, or define the app in a script";
                self.reading.hinder(property.range, what);
                continue;
            }
            if template.position(name).is_none() {
                let what = format!("valid_if_or has {name}, which is no part of {}", template.as_str());
                self.reading.mistake(property.range, what);
            }
            let Some(values) = self.reading.list(&property.value, name) else { continue };
            let kind = self.settings.identifiers.get(name).cloned().unwrap_or_default();
            for value in &values {
                if let Err(expected) = kind.normal(value) {
                    self.reading
                        .mistake(property.value.range(), format!("{name} lists \"{value}\", expected {expected}"));
                }
            }
            valid.values.insert(name.into(), values.iter().filter_map(|value| kind.normal(value).ok()).collect());
        }
        Some(valid)
    }
}

/// Mistakes of an app as one text, the first few of them.
fn told(mistakes: &[Mistake]) -> String {
    let mut told: Vec<&str> = mistakes.iter().take(TOLD).map(|mistake| &*mistake.what).collect();
    let more =
        mistakes.len().checked_sub(TOLD).filter(|more| *more > 0).map(|more| format!("and {more} more mistakes"));
    told.extend(more.as_deref());
    told.join("; ")
}

/// Whether a program of people's own does the jobs of an app.
fn is_own(app: &Object<'_>) -> bool {
    app.get("job_type").and_then(|one| one.value.as_string_lit()).is_some_and(|one| !BUILT_IN.contains(&&*one.value))
}

/// The whole numbers of a range such as `10:20:2`, its end excluded.
fn range(text: &str) -> Result<Vec<Arc<str>>, String> {
    let expected = "expected a list, or whole numbers as END, START:END or START:END:STEP".to_owned();
    let numbers: Vec<i64> = text.split(':').map(str::parse).collect::<Result<_, _>>().map_err(|_| expected.clone())?;
    let (start, end, step) = match numbers[..] {
        [end] => (0, end, 1),
        [start, end] => (start, end, 1),
        [start, end, step] if step > 0 => (start, end, step),
        [_, _, _] => return Err("expected a step above 0".to_owned()),
        _ => return Err(expected),
    };
    const MOST: i64 = 1_000_000;
    if end <= start {
        return Err("which is empty: the end is excluded".to_owned());
    }
    // The distance of two numbers may be no number of 64 bits.
    if (i128::from(end) - i128::from(start)) / i128::from(step) >= i128::from(MOST) {
        return Err(format!("expected at most {MOST} values"));
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    Ok((start..end).step_by(step).map(|number| number.to_string().into()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_exclude_their_end() {
        let told = |text: &str| range(text).map(|all| all.join(" "));
        assert_eq!(told("10:20:2").as_deref(), Ok("10 12 14 16 18"));
        assert_eq!(told("3").as_deref(), Ok("0 1 2"));
        assert_eq!(told("-1:2").as_deref(), Ok("-1 0 1"));
        let most = Err("expected at most 1000000 values".to_owned());
        assert_eq!(told("-9223372036854775808:9223372036854775807"), most);
        assert_eq!(told("-9223372036854775808:4:9223372036854775807").as_deref(), Ok("-9223372036854775808 -1"));
        assert_eq!(told("5:5").unwrap_err(), "which is empty: the end is excluded");
        assert_eq!(told("1:9:0").unwrap_err(), "expected a step above 0");
        assert!(told("1:2:3:4").unwrap_err().starts_with("expected a list, or whole numbers"));
        assert!(told("0:9000000000000000000").unwrap_err().starts_with("expected at most"));
    }
}
