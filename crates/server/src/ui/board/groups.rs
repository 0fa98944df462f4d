//! Which workflows stand together: as a file says, in the form that Celos's interface reads, or else by project.

use std::collections::{BTreeMap, BTreeSet};

use kelos::model::WorkflowId;
use kelos::model::workflow::WorkflowRow;
use serde::Deserialize;

/// Workflows that stand together on the board; none means by project. Cheap to default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups(Option<Vec<Group>>);

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    workflows: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    groups: Vec<Group>,
}

/// The last group where a file names groups: what it does not mention.
const UNLISTED: &str = "Unlisted workflows";

impl Groups {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong with it, and what was expected.
    pub fn parse(text: &str) -> Result<Groups, String> {
        let file: File = serde_json::from_str(text).map_err(|error| {
            format!("{error}; expected {{\"groups\": [{{\"name\": \"…\", \"workflows\": [\"…\"]}}]}}")
        })?;
        let mut placed: BTreeMap<&str, &str> = BTreeMap::new();
        for group in &file.groups {
            for id in &group.workflows {
                if WorkflowId::new(id).is_err() {
                    return Err(format!("\"{id}\" in group \"{}\" is no id of a workflow", group.name));
                }
                if let Some(before) = placed.insert(id, &group.name) {
                    return Err(format!(
                        "the workflow \"{id}\" is in group \"{before}\" and in group \"{}\", expected it once",
                        group.name
                    ));
                }
            }
        }
        Ok(Groups(Some(file.groups)))
    }

    /// The groups of the board, in order, with those of `workflows` that are defined.
    pub(super) fn arrange<'a>(&'a self, workflows: &'a [WorkflowRow]) -> Vec<Arranged<'a>> {
        let present = workflows.iter().filter(|row| row.present);
        match &self.0 {
            None => by_project(present),
            Some(groups) => as_listed(groups, present.collect()),
        }
    }
}

/// A group of the board.
pub(super) struct Arranged<'a> {
    pub(super) name: &'a str,
    pub(super) members: Vec<Member<'a>>,
}

/// A row of the board.
pub(super) enum Member<'a> {
    Workflow(&'a WorkflowRow),
    /// It is listed, but there is no such workflow.
    Missing(&'a str),
}

fn by_project<'a>(rows: impl Iterator<Item = &'a WorkflowRow>) -> Vec<Arranged<'a>> {
    let mut groups: BTreeMap<&str, Vec<Member<'a>>> = BTreeMap::new();
    for row in rows {
        groups.entry(&row.definition.project).or_default().push(Member::Workflow(row));
    }
    groups.into_iter().map(|(name, members)| Arranged { name, members }).collect()
}

fn as_listed<'a>(groups: &'a [Group], rows: Vec<&'a WorkflowRow>) -> Vec<Arranged<'a>> {
    let known: BTreeMap<&str, &WorkflowRow> = rows.iter().map(|row| (row.id.as_str(), *row)).collect();
    let member = |id: &'a String| known.get(id.as_str()).map_or(Member::Missing(id), |row| Member::Workflow(row));
    let listed: BTreeSet<&str> = groups.iter().flat_map(|group| &group.workflows).map(String::as_str).collect();
    let mut arranged: Vec<_> = groups
        .iter()
        .map(|group| Arranged { name: &group.name, members: group.workflows.iter().map(member).collect() })
        .collect();
    let unlisted: Vec<_> =
        rows.into_iter().filter(|row| !listed.contains(row.id.as_str())).map(Member::Workflow).collect();
    if !unlisted.is_empty() {
        arranged.push(Arranged { name: UNLISTED, members: unlisted });
    }
    arranged
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
        assert_eq!(
            said(r#"{"groups": [{"name": "a", "workflows": [""]}]}"#),
            "\"\" in group \"a\" is no id of a workflow"
        );
    }
}
