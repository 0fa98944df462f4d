//! The types of what signals say, for programs that signal.

use std::collections::BTreeMap;

use kelos_model::WorkflowId;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Whether a value is of a type; in words if it is not.
pub(in crate::embed) type SignalType = fn(&Value) -> Result<(), String>;

/// The check of a type.
pub(super) fn type_of<T: DeserializeOwned>() -> SignalType {
    |value| {
        let read = serde_path_to_error::deserialize::<_, T>(value.clone());
        read.map(drop).map_err(|error| {
            let path = error.path().to_string();
            let place = if path == "." { String::new() } else { format!("at {path}: ") };
            format!("{place}{}", error.into_inner())
        })
    }
}

/// The types of the signals of a program's flows.
#[derive(Debug, Clone, Default)]
pub(in crate::embed) struct SignalTypes(BTreeMap<(WorkflowId, String), Vec<SignalType>>);

impl SignalTypes {
    /// Takes the types of a flow's signals.
    pub(in crate::embed) fn add<'s>(
        &mut self,
        flow: &WorkflowId,
        signals: impl Iterator<Item = (&'s str, SignalType)>,
    ) {
        for (signal, fits) in signals {
            self.0.entry((flow.clone(), signal.to_owned())).or_default().push(fits);
        }
    }

    /// Whether all steps that wait for a signal can read a value.
    ///
    /// # Errors
    /// In words, if one can't.
    pub(in crate::embed) fn check(&self, flow: &WorkflowId, signal: &str, value: &Value) -> Result<(), String> {
        let types = self.0.get(&(flow.clone(), signal.to_owned()));
        types.into_iter().flatten().try_for_each(|fits| fits(value))
    }
}
