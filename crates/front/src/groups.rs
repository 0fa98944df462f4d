//! The groups of workflows on the board: those set by the API, or else those of a file, or else one for each project.
//!
//! Groups that the API sets are stored in a register, so the log shows who set them. The form is the one that Celos's interface reads.

use std::collections::BTreeMap;

use kelos_core::SetRegister;
use kelos_model::id::is_invisible;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Event, WorkflowId};
use kelos_store::{Queries, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The register with the groups that the API has set.
const REGISTER: (&str, &str) = ("kelos", "board-groups");
/// Longest name of a group, in bytes.
const LONGEST_NAME: usize = 200;
/// Most groups.
const MOST: usize = 1_000;
/// The form of groups, for messages about texts that have another.
const FORM: &str = "{\"groups\": [{\"name\": \"…\", \"workflows\": [\"…\"]}]}";

/// Workflows that are shown together on the board; none means by project. Cheap to default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups(Option<Vec<Group>>);

/// Workflows that are shown together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its heading.
    pub name: String,
    /// Their ids, in the order in which they are shown. They need not be defined.
    pub workflows: Vec<String>,
}

/// The groups in a request and in the register.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupsState {
    groups: Vec<Group>,
    /// The source of groups that the API gave; it is not kept.
    #[serde(default, skip_serializing)]
    #[expect(dead_code, reason = "what the API gives may be sent back as it is")]
    from: Option<String>,
}

/// The file of a server's settings, of which only the groups are read here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The schema by which editors check the file.
    #[serde(default, rename = "$schema")]
    #[expect(dead_code, reason = "it is for editors")]
    schema: Option<String>,
    groups: Option<Vec<Group>>,
    #[serde(default)]
    #[expect(dead_code, reason = "they are known, but read elsewhere")]
    links: serde::de::IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "what is watched is read elsewhere")]
    watch: serde::de::IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "topics of Kafka are read elsewhere")]
    kafka: serde::de::IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "rules of access are read elsewhere")]
    access: serde::de::IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "trust in servers is read elsewhere")]
    tls: serde::de::IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "limits are read elsewhere")]
    limits: serde::de::IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "settings of metrics are read elsewhere")]
    metrics: serde::de::IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "how long history is kept is read elsewhere")]
    history: serde::de::IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "checkpoints are made elsewhere")]
    checkpoints: serde::de::IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "the channels and rules of alerts are read elsewhere")]
    alerts: serde::de::IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "the collector of traces is read elsewhere")]
    traces: serde::de::IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "the collector of lineage is read elsewhere")]
    lineage: serde::de::IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "the secrets that projects may use are read elsewhere")]
    secrets: serde::de::IgnoredAny,
    #[serde(default, rename = "runAs")]
    #[expect(dead_code, reason = "the users of the system as whom projects may run are read elsewhere")]
    run_as: serde::de::IgnoredAny,
}

impl Groups {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The mistake in it, and what was expected.
    pub fn parse(text: &str) -> Result<Groups, String> {
        let listed: GroupsState = serde_json::from_str(text).map_err(|error| format!("{error}; expected {FORM}"))?;
        checked(listed.groups).map(|groups| Groups(Some(groups)))
    }

    /// Reads the text of a file that a server is started with, which may have [links](crate::Links) as well or instead.
    ///
    /// # Errors
    /// The mistake in it, and what was expected.
    pub fn of_file(text: &str) -> Result<Groups, String> {
        let file: File = serde_json::from_str(text).map_err(|error| format!("{error}; expected {FORM}"))?;
        file.groups.map(checked).transpose().map(Groups)
    }

    /// The same of a value.
    fn of_value(value: Value) -> Result<Groups, String> {
        let listed: GroupsState = serde_json::from_value(value).map_err(|error| format!("{error}; expected {FORM}"))?;
        checked(listed.groups).map(|groups| Groups(Some(groups)))
    }

    fn value(&self) -> Option<Value> {
        let groups = self.0.clone()?;
        serde_json::to_value(GroupsState { groups, from: None }).ok()
    }
}

fn checked(groups: Vec<Group>) -> Result<Vec<Group>, String> {
    if groups.len() > MOST {
        return Err(format!("there are {} groups, expected at most {MOST}", groups.len()));
    }
    let mut placed: BTreeMap<&str, &str> = BTreeMap::new();
    for group in &groups {
        let name = &group.name;
        if name.trim().is_empty() || name.len() > LONGEST_NAME || name.chars().any(is_invisible) {
            return Err(format!(
                "\"{}\" is no name of a group, expected 1 to {LONGEST_NAME} bytes without invisible characters",
                name.escape_debug()
            ));
        }
        for id in &group.workflows {
            if WorkflowId::new(id).is_err() {
                return Err(format!("\"{id}\" in group \"{name}\" is no id of a workflow"));
            }
            match placed.insert(id, name) {
                Some(before) if before == name => {
                    return Err(format!("the workflow \"{id}\" is twice in group \"{name}\", expected it once"));
                }
                Some(before) => {
                    return Err(format!(
                        "the workflow \"{id}\" is in group \"{before}\" and in group \"{name}\", expected it once"
                    ));
                }
                None => {}
            }
        }
    }
    Ok(groups)
}

/// The source of the groups of the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupsSource {
    /// A request to the API.
    Api,
    /// The file that the server was started with.
    File,
    /// The projects of the workflows: neither the API nor a file has groups.
    Projects,
}

impl GroupsSource {
    /// Its name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            GroupsSource::Api => "api",
            GroupsSource::File => "file",
            GroupsSource::Projects => "projects",
        }
    }
}

/// The groups that the board shows now.
#[derive(Debug, Clone)]
pub struct BoardGroups {
    groups: Option<Vec<Group>>,
    /// Their source.
    pub from: GroupsSource,
    /// The mistake in the register, if it can't be used.
    pub trouble: Option<String>,
}

impl BoardGroups {
    /// Reads the groups that the API has set, or else those of the file.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn read(reader: &dyn Queries, file: &Groups) -> Result<BoardGroups, StoreError> {
        let set = reader.register(REGISTER.0, REGISTER.1)?.map(Groups::of_value);
        if let Some(Ok(Groups(groups))) = set {
            return Ok(BoardGroups { groups, from: GroupsSource::Api, trouble: None });
        }
        // A client that sets the register itself may write anything.
        let trouble = set
            .and_then(Result::err)
            .map(|why| format!("the register {}/{} is of no use: {why}", REGISTER.0, REGISTER.1));
        let from = if file.0.is_some() { GroupsSource::File } else { GroupsSource::Projects };
        Ok(BoardGroups { groups: file.0.clone(), from, trouble })
    }

    /// The groups that were listed, if any were.
    pub fn listed(&self) -> Option<&[Group]> {
        self.groups.as_deref()
    }

    /// The groups as the board shows them, those by project written out.
    pub fn spelled_out(self, workflows: &[WorkflowRow]) -> Vec<Group> {
        self.groups.unwrap_or_else(|| by_project(workflows))
    }
}

fn by_project(workflows: &[WorkflowRow]) -> Vec<Group> {
    let mut projects: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for row in workflows.iter().filter(|row| row.present) {
        projects.entry(&row.definition.project).or_default().push(row.id.to_string());
    }
    projects.into_iter().map(|(name, workflows)| Group { name: name.to_owned(), workflows }).collect()
}

/// The request that sets these groups; without any, the file's groups or those by project apply again.
pub fn request(groups: Option<&Groups>) -> SetRegister {
    let value = groups.and_then(Groups::value);
    SetRegister { bucket: REGISTER.0.to_owned(), key: REGISTER.1.to_owned(), value, reason: None }
}

/// Whether an event changes the groups.
pub fn is_change(event: &Event) -> bool {
    matches!(event, Event::Register { bucket, key, .. } if (bucket.as_str(), key.as_str()) == REGISTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_understood_says_why() {
        let said = |text: &str| Groups::parse(text).unwrap_err();
        assert!(said("{").contains("expected {\"groups\""));
        assert!(said(r#"{"groups": [{"name": "a"}]}"#).starts_with("missing field `workflows`"));
        assert!(said(r#"{"group": []}"#).starts_with("unknown field `group`"));
        let twice = r#"{"groups": [{"name": "a", "workflows": ["x"]}, {"name": "b", "workflows": ["x"]}]}"#;
        assert_eq!(said(twice), "the workflow \"x\" is in group \"a\" and in group \"b\", expected it once");
        let twice = r#"{"groups": [{"name": "a", "workflows": ["x", "x"]}]}"#;
        assert_eq!(said(twice), "the workflow \"x\" is twice in group \"a\", expected it once");
        assert_eq!(
            said(r#"{"groups": [{"name": "a", "workflows": [""]}]}"#),
            "\"\" in group \"a\" is no id of a workflow"
        );
        let blank = said(r#"{"groups": [{"name": " ", "workflows": []}]}"#);
        assert_eq!(blank, "\" \" is no name of a group, expected 1 to 200 bytes without invisible characters");
    }
}
