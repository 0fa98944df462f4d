//! The outputs of other slots that a run is given, because its own slot depends on them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::id::WorkflowId;
use crate::key::SlotRef;
use crate::workflow::flow::{InputMerge, formatted, formatted_key, listed_outputs};

/// The outputs of slots, merged by the rules by which those of steps are: a name that several workflows give becomes an object with the
/// value of each under the name of the workflow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GivenOutputs {
    values: Map<String, Value>,
    /// The workflows that gave each of them.
    givers: BTreeMap<String, BTreeSet<WorkflowId>>,
}

impl GivenOutputs {
    /// Merges the outputs of slots, which are in the order of their names. Those of a workflow in `lists` are a list, which has the name of
    /// the workflow; those of others are given as they are.
    #[must_use]
    pub fn merged(slots: &BTreeMap<SlotRef, Map<String, Value>>, lists: &BTreeSet<&WorkflowId>) -> GivenOutputs {
        let mut by_workflow: BTreeMap<&WorkflowId, Vec<&Map<String, Value>>> = BTreeMap::new();
        for (slot, outputs) in slots {
            by_workflow.entry(&slot.workflow).or_default().push(outputs);
        }
        by_workflow.retain(|_, all| all.iter().any(|outputs| !outputs.is_empty()));
        let named: Vec<(&WorkflowId, String)> =
            by_workflow.keys().map(|id| (*id, formatted_key(id.as_str()))).collect();
        let mut merge = InputMerge::new("", &Map::new(), &Map::new());
        let mut givers: BTreeMap<String, BTreeSet<WorkflowId>> = BTreeMap::new();
        for (id, label) in &named {
            let all = by_workflow.get(*id).map(Vec::as_slice).unwrap_or_default();
            let outputs = if lists.contains(*id) {
                let list = all.iter().map(|outputs| listed_outputs(label, outputs)).collect();
                Map::from_iter([(label.clone(), Value::Array(list))])
            } else {
                formatted(all.iter().flat_map(|outputs| (*outputs).clone()).collect())
            };
            for name in outputs.keys() {
                givers.entry(name.clone()).or_default().insert((*id).clone());
            }
            merge.add(label, &outputs);
        }
        GivenOutputs { values: merge.finish(&Map::new()), givers }
    }

    /// Whether nothing is given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The merged outputs, by formatted names.
    #[must_use]
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// The workflows that gave a value, in words: `extract gave it`.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<String> {
        let givers = self.givers.get(&formatted_key(name))?;
        Some(format!("{} gave it", listed(givers)))
    }

    /// The workflows that gave any of it: `clean and extract`.
    #[must_use]
    pub fn sources(&self) -> String {
        listed(&self.givers.values().flatten().cloned().collect())
    }
}

/// `a, b and c`.
fn listed(workflows: &BTreeSet<WorkflowId>) -> String {
    let mut names: Vec<&str> = workflows.iter().map(WorkflowId::as_str).collect();
    match names.pop() {
        Some(last) if !names.is_empty() => format!("{} and {last}", names.join(", ")),
        last => last.unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn id(name: &str) -> WorkflowId {
        name.parse().expect("an id")
    }

    fn merged(slots: &[(&str, i64, Value)], lists: &[&str]) -> GivenOutputs {
        let at = |name: &str, second: i64| SlotRef::at(id(name), Timestamp::from_second(second).expect("a time"));
        let slots = slots
            .iter()
            .map(|(name, second, outputs)| (at(name, *second), outputs.as_object().expect("an object").clone()));
        let lists: Vec<WorkflowId> = lists.iter().map(|name| id(name)).collect();
        GivenOutputs::merged(&slots.collect(), &lists.iter().collect())
    }

    #[test]
    fn what_several_workflows_give_is_labelled_by_them() {
        let given = merged(&[("a-b", 0, json!({"rows": 1, "day-of": 2})), ("c", 0, json!({"rows": 3}))], &[]);
        assert_eq!(Value::from(given.values().clone()), json!({"rows": {"a_b": 1, "c": 3}, "day_of": 2}));
        assert_eq!(given.source("rows").as_deref(), Some("a-b and c gave it"));
        assert_eq!(given.source("day-of").as_deref(), Some("a-b gave it"));
        assert_eq!((given.source("else"), given.sources()), (None, "a-b and c".to_owned()));
    }

    #[test]
    fn several_slots_of_a_workflow_are_a_list_in_order() {
        let hours =
            [("hour.ly", 7200, json!({"hour_ly": 2})), ("hour.ly", 0, json!({})), ("hour.ly", 3600, json!({"n": 1}))];
        let given = merged(&hours, &["hour.ly"]);
        assert_eq!(Value::from(given.values().clone()), json!({"hour_ly": [{}, {"n": 1}, 2]}));
        assert_eq!(given.source("hour_ly").as_deref(), Some("hour.ly gave it"));
        assert!(merged(&[("a", 0, json!({})), ("a", 1, json!({}))], &["a"]).is_empty(), "nobody gave anything");
    }
}
