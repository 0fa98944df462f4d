//! The slots that left memory, as the store would have them. They are read only to be found absent or final.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use kelos_core::Past;
use kelos_model::ranges::Range;
use kelos_model::workflow::DefinedVersion;
use kelos_model::{FactKey, Run, Slot, SlotRef, Workflow, WorkflowId};

/// Slots that are final.
#[derive(Default)]
pub(crate) struct FinishedSlots(pub(crate) BTreeMap<SlotRef, Slot>);

impl Past for FinishedSlots {
    type Error = Infallible;

    fn slots(&mut self, ids: &[SlotRef]) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
        Ok(ids.iter().filter_map(|id| self.0.get_key_value(id)).map(|(id, slot)| (id.clone(), slot.clone())).collect())
    }

    fn range(&mut self, _: &WorkflowId, _: Range) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
        Ok(Vec::new())
    }

    fn facts(&mut self, _: &[FactKey]) -> Result<Vec<FactKey>, Infallible> {
        Ok(Vec::new())
    }

    fn definitions(&mut self, _: &WorkflowId) -> Result<Vec<DefinedVersion>, Infallible> {
        Ok(Vec::new())
    }

    fn definition(&mut self, _: &WorkflowId, _: u32) -> Result<Option<Arc<Workflow>>, Infallible> {
        Ok(None)
    }

    fn steps(&mut self, _: &SlotRef) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
        Ok(Vec::new())
    }

    fn runs(&mut self, _: &[u64]) -> Result<Vec<Run>, Infallible> {
        Ok(Vec::new())
    }
}
