//! What makes no sense in a trigger, whatever it belongs to.

use super::Trigger;
use crate::facts::ENDS;
use crate::state::SlotState;

impl Trigger {
    /// How many triggers it is made of, itself among them.
    #[must_use]
    pub fn size(&self) -> usize {
        self.nested().iter().map(Trigger::size).sum::<usize>() + 1
    }

    /// Says what makes no sense in it, in words.
    ///
    /// # Errors
    /// When a leaf lacks what it is about, or nothing is combined.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Trigger::Partitions { dataset, .. } if dataset.is_empty() => {
                Err("a dataset without a name: expected one".to_owned())
            }
            Trigger::Partitions { dataset, count: 0 } => {
                Err(format!("0 partitions of {dataset} are met by anything: expected at least 1"))
            }
            Trigger::Signal { name } if name.is_empty() => Err("a signal without a name: expected one".to_owned()),
            Trigger::Ended { program, states } => {
                let known = !states.is_empty() && states.iter().all(|state| ENDS.contains(state));
                let ends = ENDS.map(SlotState::as_str).join(", ");
                known.then_some(()).ok_or_else(|| format!("expected how {program} ends: some of {ends}"))
            }
            Trigger::And { triggers } | Trigger::Or { triggers } if triggers.is_empty() => {
                Err("an `and` or `or` of nothing: expected triggers in it".to_owned())
            }
            other => other.nested().iter().try_for_each(Trigger::check),
        }
    }
}
