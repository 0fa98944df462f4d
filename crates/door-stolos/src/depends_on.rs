//! The dependencies of an app in a `tasks.json`.

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use kelos_model::WorkflowId;
use kelos_model::jobs::{Group, Member, TwoWay, ValueFilter};
use kelos_sandbox::apps::{GroupPositions, Position};

use super::json::{JsonReader, kind};

/// The name of a group that has none.
const UNNAMED: &str = "default";

/// Reads `depends_on`: one group without a name, or groups by name.
pub(super) fn depends_on<'a>(reading: &mut JsonReader<'a>, value: &Value<'a>) -> (Vec<Group>, GroupPositions) {
    let (mut groups, mut places) = (Vec::new(), GroupPositions::new());
    let Some(object) = reading.object(value, "depends_on") else { return (groups, places) };
    let mut add = |reading: &mut JsonReader<'a>, name: &str, value: &Value<'a>| {
        let asked = value.as_object().filter(|group| reading.of_a_script && group.get("parentsOf").is_some());
        let functions = asked.and_then(|group| functions(reading, group));
        let (members, within) = if asked.is_some() { Default::default() } else { group(reading, name, value) };
        places.insert(name.to_owned(), (reading.place(value.range()), within));
        groups.push(Group { name: name.to_owned(), members, functions });
    };
    if object.get("app_name").is_some() {
        add(reading, UNNAMED, value);
        return (groups, places);
    }
    for property in &object.properties {
        let name = property.name.as_str();
        match &property.value {
            Value::Object(_) | Value::Array(_) => add(reading, name, &property.value),
            other => {
                let what = format!("{name} is {}, expected a group, or app_name beside it", kind(other));
                reading.mistake(property.range, what);
            }
        }
    }
    (groups, places)
}

/// A group that two functions of a script know.
fn functions<'a>(reading: &mut JsonReader<'a>, group: &Object<'a>) -> Option<TwoWay> {
    let mut function = |name: &str| reading.data(&group.get(name)?.value, name, "a function");
    let (parents, children) = (function("parentsOf")?, function("childrenOf")?);
    Some(TwoWay { workflows: apps(reading, group)?, parents, children })
}

/// The apps that a group is about.
fn apps<'a>(reading: &mut JsonReader<'a>, object: &Object<'a>) -> Option<Vec<WorkflowId>> {
    let Some(apps) = object.get("app_name") else {
        reading.mistake(object.range, "app_name is missing, expected a list of apps");
        return None;
    };
    let names = match &apps.value {
        Value::StringLit(text) => vec![(&*text.value).into()],
        other => reading.list(other, "app_name")?,
    };
    let id = |name: std::sync::Arc<str>| {
        WorkflowId::new(&name).map_err(|error| reading.mistake(apps.value.range(), error.to_string())).ok()
    };
    Some(names.into_iter().filter_map(id).collect())
}

/// A group: one member, or a list of them.
fn group<'a>(reading: &mut JsonReader<'a>, name: &str, value: &Value<'a>) -> (Vec<Member>, Vec<Position>) {
    let values: Vec<&Value<'a>> = match value {
        Value::Array(array) => array.elements.iter().collect(),
        one => vec![one],
    };
    let mut members = Vec::new();
    let mut places = Vec::new();
    for value in values {
        if let Some(object) = reading.object(value, &format!("a part of group {name}")) {
            members.extend(member(reading, object));
            places.push(reading.place(value.range()));
        }
    }
    (members, places)
}

fn member<'a>(reading: &mut JsonReader<'a>, object: &Object<'a>) -> Option<Member> {
    let mut member = Member { workflows: apps(reading, object)?, ..Member::default() };
    for property in object.properties.iter().filter(|property| property.name.as_str() != "app_name") {
        match property.name.as_str() {
            "job_id" => member.job_ids = reading.list(&property.value, "job_id"),
            "_func" => reading.mistake(
                property.range,
                "functions of Python can't be called: list the values, or write both ways in a script",
            ),
            name => {
                if let Some(wanted) = wanted(reading, name, &property.value) {
                    member.values.insert(name.into(), wanted);
                }
            }
        }
    }
    Some(member)
}

fn wanted<'a>(reading: &mut JsonReader<'a>, name: &str, value: &Value<'a>) -> Option<ValueFilter> {
    match value {
        Value::StringLit(text) if text.value == "all" => Some(ValueFilter::All),
        Value::Array(_) => reading.list(value, name).map(ValueFilter::Of),
        other => {
            reading.mistake(other.range(), format!("{name} is {}, expected a list, or \"all\"", kind(other)));
            None
        }
    }
}
