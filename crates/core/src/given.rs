//! Arguments that requests give to slots: refused at once where the parameters of the workflow expect others.

use kelos_model::arguments::{ArgumentFault, kept_arguments};
use kelos_model::facts::ManualStart;
use kelos_model::parameter::{accept, strangers};
use kelos_model::run::beyond_largest;
use kelos_model::{Actor, Arguments, Collection, SlotEvent, SlotKey, SlotRef, SlotState, Workflow, WorkflowId};

use crate::{Core, Refusal};

impl Core {
    /// The arguments that a request gives to the next runs of a slot, in the normal forms of their kinds.
    pub(crate) fn accepted_by(&self, slot: &SlotRef, given: &Arguments) -> Result<Arguments, Refusal> {
        if let Some(repeats) = self.repeated_by(slot) {
            return self.accepted_by_step(slot, &repeats, given);
        }
        let definition = self.workflows.present(&slot.workflow)?.definition();
        let mut collected = self.slots.collected(slot).cloned().unwrap_or_else(|| Collection::new(self.now));
        collected.arguments.extend(given.clone());
        accepted(definition, &collected, &slot.key, given)
    }

    /// The same of a start.
    pub(crate) fn accepted_by_start(&self, id: &WorkflowId, given: &Arguments) -> Result<Arguments, Refusal> {
        let definition = self.workflows.present(id)?.definition();
        let asked = ManualStart { arguments: given.clone(), ..ManualStart::default() };
        let collected = Collection { asked: Some(asked), ..Collection::new(self.now) };
        accepted(definition, &collected, &SlotKey::Moment(self.now), given)
    }

    /// The same of all slots of a backfill, which have values for all parameters.
    pub(crate) fn accepted_by_all(&self, id: &WorkflowId, given: &Arguments) -> Result<Arguments, Refusal> {
        if let Some(bytes) = beyond_largest(given) {
            return Err(Refusal::ArgumentsTooLarge { bytes });
        }
        let definition = self.workflows.present(id)?.definition();
        accept(&definition.parameters, given)
            .map_err(|mistakes| Refusal::ArgumentsMismatched { workflow: id.clone(), mistakes })
    }

    /// Gives arguments to the next runs of a slot. One whose run is live keeps those that it has.
    pub(crate) fn set_arguments(&mut self, slot: &SlotRef, by: &Actor, arguments: &Arguments) {
        let is_idle = self.slots.state(slot).is_some_and(SlotState::is_idle);
        if is_idle && !arguments.is_empty() {
            self.record(slot, SlotEvent::ArgumentsSet { by: by.clone(), arguments: arguments.clone() });
        }
    }
}

/// Refuses arguments with which the next run could not be started, with all mistakes at once.
fn accepted(
    definition: &Workflow,
    collected: &Collection,
    key: &SlotKey,
    given: &Arguments,
) -> Result<Arguments, Refusal> {
    let mut mistakes = strangers(&definition.parameters, given);
    match kept_arguments(definition, Some(collected), key) {
        Err(ArgumentFault::Mismatched(more)) => mistakes.extend(more),
        // A slot that was given too much before may be opened again, and ends as it did.
        Err(ArgumentFault::TooLarge { bytes, .. }) if !given.is_empty() => {
            return Err(Refusal::ArgumentsTooLarge { bytes });
        }
        _ => {}
    }
    let all = accept(&definition.parameters, given).ok().filter(|_| mistakes.is_empty());
    all.ok_or_else(|| Refusal::ArgumentsMismatched { workflow: definition.id.clone(), mistakes })
}
