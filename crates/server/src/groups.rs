//! Which workflows stand together on the board: as somebody set it by the API, or else as a file says, or else by project.
//!
//! What is set lies in a register, so the log tells who set it. The form is the one that Celos's interface reads.

use std::collections::BTreeMap;

use kelos_core::SetRegister;
use kelos_model::id::is_invisible;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Event, WorkflowId};
use kelos_store::{Queries, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The register that holds what was set.
const REGISTER: (&str, &str) = ("kelos", "board-groups");
/// Longest name of a group, in bytes.
const LONGEST_NAME: usize = 200;
/// Most groups.
const MOST: usize = 1_000;
/// What groups look like, for those who wrote something else.
const FORM: &str = "{\"groups\": [{\"name\": \"…\", \"workflows\": [\"…\"]}]}";

/// Workflows that stand together on the board; none means by project. Cheap to default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups(Option<Vec<Group>>);

/// Workflows that stand together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    /// What stands above them.
    pub(crate) name: String,
    /// Their ids, in the order in which they are shown. They need not be defined.
    pub(crate) workflows: Vec<String>,
}

/// What is read and kept.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupsState {
    groups: Vec<Group>,
    /// Where what the API gave came from; no part of what is kept.
    #[serde(default, skip_serializing)]
    #[expect(dead_code, reason = "what the API gives may be sent back as it is")]
    from: Option<String>,
}

/// What a server is started with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    groups: Option<Vec<Group>>,
    #[serde(default)]
    #[expect(dead_code, reason = "they are known, but read elsewhere")]
    links: serde::de::IgnoredAny,
    #[serde(default)]
    #[expect(dead_code, reason = "what is watched is read elsewhere")]
    watch: serde::de::IgnoredAny,
}

impl Groups {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong with it, and what was expected.
    pub fn parse(text: &str) -> Result<Groups, String> {
        let listed: GroupsState = serde_json::from_str(text).map_err(|error| format!("{error}; expected {FORM}"))?;
        checked(listed.groups).map(|groups| Groups(Some(groups)))
    }

    /// Reads the text of a file that a server is started with, which may have [links](crate::Links) as well or instead.
    ///
    /// # Errors
    /// What is wrong with it, and what was expected.
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

/// Who said which workflows stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SaidBy {
    /// Somebody, by the API.
    Api,
    /// The file that the server was started with.
    File,
    /// Nobody: they stand by project.
    Projects,
}

impl SaidBy {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            SaidBy::Api => "api",
            SaidBy::File => "file",
            SaidBy::Projects => "projects",
        }
    }
}

/// What holds now.
#[derive(Debug, Clone)]
pub(crate) struct InForce {
    groups: Option<Vec<Group>>,
    pub(crate) from: SaidBy,
    /// What is wrong with what was set, if it could not be used.
    pub(crate) trouble: Option<String>,
}

impl InForce {
    /// What was set, or else what the file says.
    pub(crate) fn read(reader: &dyn Queries, file: &Groups) -> Result<InForce, StoreError> {
        let set = reader.register(REGISTER.0, REGISTER.1)?.map(Groups::of_value);
        if let Some(Ok(Groups(groups))) = set {
            return Ok(InForce { groups, from: SaidBy::Api, trouble: None });
        }
        // Whoever sets the register itself may write anything.
        let trouble = set
            .and_then(Result::err)
            .map(|why| format!("the register {}/{} is of no use: {why}", REGISTER.0, REGISTER.1));
        let from = if file.0.is_some() { SaidBy::File } else { SaidBy::Projects };
        Ok(InForce { groups: file.0.clone(), from, trouble })
    }

    /// The groups that were listed, if any were.
    pub(crate) fn listed(&self) -> Option<&[Group]> {
        self.groups.as_deref()
    }

    /// The groups as the board shows them, those by project written out.
    pub(crate) fn spelled_out(self, workflows: &[WorkflowRow]) -> Vec<Group> {
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

/// What to ask of the engine so that these groups hold; without any, the file's or those by project.
pub(crate) fn request(groups: Option<&Groups>) -> SetRegister {
    let value = groups.and_then(Groups::value);
    SetRegister { bucket: REGISTER.0.to_owned(), key: REGISTER.1.to_owned(), value, reason: None }
}

/// Whether an event says that other groups hold.
pub(crate) fn is_change(event: &Event) -> bool {
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
