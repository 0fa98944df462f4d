//! Apps of a `tasks.json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use kelos_model::WorkflowId;
use kelos_model::jobs::{Fault, JobGraph, JobKeys, JobTemplate};

use super::depends_on::{Places, depends_on};
use super::json::{Mistake, Reading, kind};
use super::settings::Settings;

/// What a file says, checked as a whole.
#[derive(Debug)]
pub struct Tasks {
    /// The apps, in the order of the file.
    pub tasks: Vec<Task>,
    /// Which of their jobs wait for which.
    pub graph: JobGraph,
    /// What is odd but harmless.
    pub warnings: Vec<Mistake>,
}

/// An app.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its name.
    pub id: WorkflowId,
    /// Its job ids and what they wait for.
    pub keys: JobKeys,
    /// Where it says so: only job ids with one of these values are to be run at all.
    pub valid_if_or: Option<BTreeMap<Arc<str>, Vec<Arc<str>>>>,
}

/// The keys of an app that say how it is run, with what each has to be.
const RUN_BY: [(&str, &str); 7] = [
    ("job_type", "a text"),
    ("bash_cmd", "a text"),
    ("pymodule", "a text"),
    ("spark_conf", "an object"),
    ("env", "an object"),
    ("env_from_os", "a list"),
    ("uris", "a list"),
];

/// Reads a file.
///
/// # Errors
/// Everything that is wrong with it, in the order of the file.
pub fn read(text: &str, settings: &Settings) -> Result<Tasks, Vec<Mistake>> {
    let mut reader = Reader { reading: Reading::new(text), settings, places: BTreeMap::new(), warnings: Vec::new() };
    let tasks = reader.tasks();
    let keyed = tasks.iter().map(|task| (task.id.clone(), task.keys.clone())).collect();
    let graph = JobGraph::new(keyed).unwrap_or_else(|faults| {
        faults.into_iter().for_each(|fault| reader.fault(&fault));
        JobGraph::default()
    });
    let Reader { reading: Reading { mut mistakes, .. }, warnings, .. } = reader;
    mistakes.sort_by(|a, b| a.place.cmp(&b.place));
    if mistakes.is_empty() { Ok(Tasks { tasks, graph, warnings }) } else { Err(mistakes) }
}

struct Reader<'a> {
    reading: Reading<'a>,
    settings: &'a Settings,
    /// Where each app stands, and its groups.
    places: BTreeMap<WorkflowId, (Range, Places)>,
    warnings: Vec<Mistake>,
}

impl<'a> Reader<'a> {
    fn tasks(&mut self) -> Vec<Task> {
        let Some(root) = self.reading.root() else {
            if self.reading.mistakes.is_empty() {
                self.reading
                    .mistake(Range { start: 0, end: 0 }, "the file is empty, expected an object of apps by name");
            }
            return Vec::new();
        };
        let Some(apps) = self.reading.object(&root, "the file") else { return Vec::new() };
        apps.properties.iter().filter_map(|property| self.task(property)).collect()
    }

    fn task(&mut self, property: &ObjectProp<'a>) -> Option<Task> {
        let name = property.name.as_str();
        let app = self.reading.object(&property.value, name)?;
        let id = WorkflowId::new(name).map_err(|error| self.reading.mistake(property.range, error.to_string())).ok()?;
        for property in &app.properties {
            self.key(&id, property);
        }
        let template = self.template(&id, property.range, app)?;
        let mut domains = BTreeMap::new();
        if let Some(values) = app.get("autofill_values") {
            domains = self.autofill_values(&values.value)?;
        }
        let (depends_on, places) =
            app.get("depends_on").map(|on| depends_on(&mut self.reading, &on.value)).unwrap_or_default();
        let valid_if_or = app.get("valid_if_or").and_then(|valid| self.valid_if_or(&template, &valid.value));
        let known = template
            .identifiers()
            .filter_map(|name| Some((name.clone(), self.settings.identifiers.get(name)?.clone())));
        let keys = JobKeys { identifiers: known.collect(), domains, depends_on, ..JobKeys::new(template) };
        self.places.insert(id.clone(), (property.range, places));
        Some(Task { id, keys, valid_if_or })
    }

    /// A key of an app: known, and of the right kind.
    fn key(&mut self, id: &WorkflowId, property: &ObjectProp<'a>) {
        const OTHERS: [&str; 5] = ["job_id", "job_id_template", "autofill_values", "depends_on", "valid_if_or"];
        let name = property.name.as_str();
        if let Some((_, expected)) = RUN_BY.iter().find(|(known, _)| *known == name) {
            let found = kind(&property.value);
            if found != *expected {
                self.reading.mistake(property.value.range(), format!("{name} of {id} is {found}, expected {expected}"));
            }
        } else if !OTHERS.contains(&name) {
            let mut aside = Reading::new(self.reading.source());
            aside.mistake(property.range, format!("{id} has the key \"{name}\", which nothing reads"));
            self.warnings.append(&mut aside.mistakes);
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

    fn valid_if_or(&mut self, template: &JobTemplate, value: &Value<'a>) -> Option<BTreeMap<Arc<str>, Vec<Arc<str>>>> {
        let object = self.reading.object(value, "valid_if_or")?;
        let mut valid = BTreeMap::new();
        for property in &object.properties {
            let name = property.name.as_str();
            if name == "_func" {
                self.reading.text(&property.value, "_func");
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
            valid.insert(name.into(), values.iter().filter_map(|value| kind.normal(value).ok()).collect());
        }
        Some(valid)
    }

    /// Notes what is wrong between apps, where it stands.
    fn fault(&mut self, fault: &Fault) {
        let Some((app, places)) = self.places.get(&fault.workflow) else { return };
        let group = fault.group.as_ref().and_then(|group| places.get(group));
        let member = fault.member.and_then(|member| group?.1.get(member - 1));
        let range = member.or(group.map(|(range, _)| range)).unwrap_or(app);
        self.reading.mistake(*range, fault.to_string());
    }
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
    if (end - start) / step >= MOST {
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
        assert_eq!(told("5:5").unwrap_err(), "which is empty: the end is excluded");
        assert_eq!(told("1:9:0").unwrap_err(), "expected a step above 0");
        assert!(told("1:2:3:4").unwrap_err().starts_with("expected a list, or whole numbers"));
        assert!(told("0:9000000000000000000").unwrap_err().starts_with("expected at most"));
    }
}
