//! What makes no sense in a trigger, whatever it belongs to.

use super::Trigger;
use crate::facts::ENDS;
use crate::nesting::{TooDeep, check_levels};
use crate::state::SlotState;

impl Trigger {
    /// How many triggers it is made of, itself among them.
    #[must_use]
    pub fn size(&self) -> usize {
        self.nested().iter().map(Trigger::size).sum::<usize>() + 1
    }

    /// Checks how deeply triggers are nested in each other, itself among them.
    ///
    /// # Errors
    /// If there are more levels than [`DEEPEST`](crate::nesting::DEEPEST).
    pub fn check_nesting(&self) -> Result<(), TooDeep> {
        let mut level = vec![self];
        let mut levels = 0;
        while !level.is_empty() {
            levels += 1;
            level = level.into_iter().flat_map(Trigger::nested).collect();
        }
        check_levels(levels)
    }

    /// Says what makes no sense in it, in words.
    ///
    /// # Errors
    /// When a leaf lacks what it is about, nothing is combined, or they are nested too deeply.
    pub fn check(&self) -> Result<(), String> {
        self.check_nesting().map_err(|error| format!("a trigger is {error}"))?;
        self.check_parts()
    }

    fn check_parts(&self) -> Result<(), String> {
        match self {
            Trigger::Partitions { dataset, .. } if dataset.is_empty() => {
                Err("a dataset without a name: expected one".to_owned())
            }
            Trigger::Partitions { dataset, count: 0 } => {
                Err(format!("0 partitions of {dataset} are met by anything: expected at least 1"))
            }
            Trigger::Partitions { dataset: name, .. } | Trigger::Signal { name } if name.contains(char::is_control) => {
                Err(format!("{name:?} has a control character: expected a name without any"))
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
            other => other.nested().iter().try_for_each(Trigger::check_parts),
        }
    }
}
