//! The declaration of a project: what others may see of it, and what they may send to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reference::Reference;
use crate::id::is_invisible;
use crate::project::is_short_for;

/// The name under which a declaration is for all other projects.
pub const EVERYONE: &str = "*";

/// Most names in the declaration of a project.
const MOST_NAMES: usize = 1000;

/// Longest name in a declaration, in bytes.
const LONGEST_NAME: usize = 500;

/// The declaration of a project: what it shares, by the name of the other project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shares(BTreeMap<Arc<str>, Share>);

/// The part of a declaration that is for one other project, or for all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Share {
    /// The things that definitions of the other project may see.
    #[serde(skip_serializing_if = "Sees::is_empty")]
    pub sees: Sees,
    /// The things that definitions and operators of the other project may send.
    #[serde(skip_serializing_if = "Sends::is_empty")]
    pub sends: Sends,
}

/// The names of what definitions of another project may see. The states of slots that they wait for need no declaration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sees {
    /// Datasets: the facts about their partitions.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub datasets: BTreeSet<Arc<str>>,
    /// Buckets of registers, which scripts of the other project read.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub registers: BTreeSet<Arc<str>>,
    /// Workflows: the arguments and the outputs of their runs.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub runs: BTreeSet<Arc<str>>,
    /// Signals, with their payloads.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub signals: BTreeSet<Arc<str>>,
}

/// The names of what definitions and operators of another project may send.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sends {
    /// Datasets whose partitions they may report.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub datasets: BTreeSet<Arc<str>>,
    /// Programs whose ends they may report.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub ends: BTreeSet<Arc<str>>,
    /// Signals that they may give.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub signals: BTreeSet<Arc<str>>,
    /// Workflows that they may start: event schedules run them, and jobs that wait for them open them.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub starts: BTreeSet<Arc<str>>,
}

/// A declaration that can't be used. Completes "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "read what the project shares: {0}; expected {{\"other-project\": {{sees: {{runs: […], datasets: […], signals: […], registers: […]}}, sends: \
     {{starts: […], ends: […], datasets: […], signals: […]}}}}}}, or \"*\" for all projects"
)]
pub struct SharesError(String);

impl Sees {
    fn is_empty(&self) -> bool {
        *self == Sees::default()
    }
}

impl Sends {
    fn is_empty(&self) -> bool {
        *self == Sends::default()
    }
}

impl Share {
    /// Whether the project that it is of allows a reference by it. Things may be named without the project before them.
    #[must_use]
    pub fn allows(&self, owner: &str, reference: &Reference) -> bool {
        let Share { sees, sends } = self;
        match reference {
            Reference::State(_) | Reference::Times(_) | Reference::End(_) => true,
            Reference::Runs(id) => names(&sees.runs, id),
            Reference::Partitions(name) => has_name(&sees.datasets, owner, name),
            Reference::Signal(name) => has_name(&sees.signals, owner, name),
            Reference::Registers(bucket) => has_name(&sees.registers, owner, bucket),
            Reference::Start(id) => names(&sends.starts, id),
            Reference::ReportEnd(id) => names(&sends.ends, id),
            Reference::ReportPartitions(name) => has_name(&sends.datasets, owner, name),
            Reference::GiveSignal(name) => has_name(&sends.signals, owner, name),
        }
    }

    /// All names in it.
    fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        let Share { sees, sends } = self;
        let Sees { runs, datasets, signals, registers } = sees;
        let seen = runs.iter().chain(datasets).chain(signals).chain(registers);
        let Sends { starts, ends, datasets, signals } = sends;
        seen.chain(starts).chain(ends).chain(datasets).chain(signals)
    }
}

/// Whether a workflow is among names, with or without the project before it.
fn names(all: &BTreeSet<Arc<str>>, id: &crate::id::WorkflowId) -> bool {
    all.contains(id.as_str()) || all.iter().any(|name| is_short_for(name, id))
}

/// Whether a name of a project's own is among names, with or without the project before it.
fn has_name(all: &BTreeSet<Arc<str>>, owner: &str, name: &str) -> bool {
    let short = name.strip_prefix(owner).and_then(|rest| rest.strip_prefix(['.', '/']));
    all.contains(name) || short.is_some_and(|short| all.contains(short))
}

impl Shares {
    /// Whether nothing is shared beyond the states of slots.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a declaration.
    ///
    /// # Errors
    /// When it has other fields, empty names, or too many.
    pub fn read(value: Value) -> Result<Shares, SharesError> {
        let shares: Shares = serde_json::from_value(value).map_err(|error| SharesError(error.to_string()))?;
        let all = || shares.0.iter().flat_map(|(project, shared)| std::iter::once(project).chain(shared.names()));
        let is_sound =
            |name: &str| !name.trim().is_empty() && name.len() <= LONGEST_NAME && !name.contains(is_invisible);
        if let Some(wrong) = all().find(|name| !is_sound(name)) {
            return Err(SharesError(format!("\"{}\" can't be the name of anything", wrong.escape_debug())));
        }
        match all().count() {
            count if count > MOST_NAMES => {
                Err(SharesError(format!("it has {count} names, at most {MOST_NAMES} are possible")))
            }
            _ => Ok(shares),
        }
    }

    /// Whether the project whose declaration it is allows another one a reference.
    #[must_use]
    pub fn allow(&self, owner: &str, project: &str, reference: &Reference) -> bool {
        [project, EVERYONE].iter().filter_map(|name| self.0.get(*name)).any(|shared| shared.allows(owner, reference))
    }

    /// The parts, by the name of the other project.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Share)> {
        self.0.iter().map(|(project, shared)| (&**project, shared))
    }
}

impl FromIterator<(Arc<str>, Share)> for Shares {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Share)>>(shared: I) -> Shares {
        Shares(shared.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_declaration_is_read_and_written_back_unchanged() {
        let json = json!({
            "*": {"sees": {"signals": ["open"]}},
            "reports": {"sees": {"runs": ["load"]}, "sends": {"starts": ["load"]}},
        });
        let shares = Shares::read(json.clone()).expect("a declaration");
        assert_eq!(serde_json::to_value(&shares).expect("json"), json);
    }

    #[test]
    fn a_thing_is_named_with_or_without_the_project_before_it() {
        let declared =
            |name: &str| Shares::read(json!({"reports": {"sees": {"registers": [name]}}})).expect("a declaration");
        let bucket = |name: &str| Reference::Registers(name.into());
        for (name, of, expected) in [
            ("state", "load.state", true),
            ("state", "load/state", true),
            ("load.state", "load.state", true),
            ("state", "state", true),
            ("state", "loader.state", false),
            ("ate", "load.state", false),
        ] {
            assert_eq!(declared(name).allow("load", "reports", &bucket(of)), expected, "{name} for {of}");
        }
    }

    #[test]
    fn a_wrong_declaration_says_what_was_expected() {
        for wrong in [
            json!({"a": {"see": {}}}),
            json!({"a": {"sees": {"outputs": []}}}),
            json!({"": {}}),
            json!({"a": {"sees": {"runs": [" "]}}}),
            json!([]),
            json!({"a": {"sees": {"runs": ["x\u{202e}"]}}}),
            json!({"a": {"sees": {"runs": (0..1001).map(|n| n.to_string()).collect::<Vec<_>>()}}}),
        ] {
            let error = Shares::read(wrong.clone()).expect_err(&wrong.to_string()).to_string();
            assert!(error.contains("expected {\"other-project\": {sees:"), "{error}");
        }
    }
}
