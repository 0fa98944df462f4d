//! The judge of what runs are given of the outputs of others: the log and the definitions alone say it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::event::{Event, WorkflowEvent};
use kelos_model::{Arguments, Batch, EventRecord, Slot, SlotEvent, SlotRef, SlotState, Workflow, WorkflowId};
use kelos_store::Queries;

use crate::apps::Apps;
use crate::inputs::{Dispatch, RunRecord, RunRecords};
use crate::workload::Workload;
use crate::world::{Scan, World, WorldView};

/// The state of all slots as the log has told it so far.
struct OutputsWatch<'a> {
    workload: &'a Workload,
    reader: &'a dyn Queries,
    slots: BTreeMap<SlotRef, Slot>,
    runs: RunRecords,
    /// The definitions in force.
    present: BTreeMap<WorkflowId, Arc<Workflow>>,
    /// The relations of jobs and the schedules that follow from these, until they change.
    relations: Option<(Apps, Scan)>,
    /// The slots that one run serves, as far as they were dispatched.
    lot: Vec<SlotRef>,
    batch: Option<Batch>,
    /// The inputs that runs are to be given which were just dispatched.
    expected: BTreeMap<SlotRef, Option<Arguments>>,
}

/// Checks what each run in the log is given.
///
/// # Errors
/// The violation.
pub(super) fn hold(workload: &Workload, reader: &dyn Queries, log: &[EventRecord]) -> Result<(), String> {
    let (slots, runs, present, relations, expected) = Default::default();
    let (lot, batch) = Default::default();
    let mut watch = OutputsWatch { workload, reader, slots, runs, present, relations, lot, batch, expected };
    for record in log {
        watch.see(record).map_err(|wrong| format!("event {}, {:?}: {wrong}", record.seq, record.event))?;
    }
    watch.expect()
}

impl OutputsWatch<'_> {
    fn see(&mut self, record: &EventRecord) -> Result<(), String> {
        match &record.event {
            Event::Workflow { workflow, what } => {
                self.expect()?;
                self.define(workflow, what)
            }
            Event::Slot { slot, what } => {
                match what {
                    SlotEvent::Dispatched { batch, .. } if slot.key.step().is_none() => {
                        if batch.is_none() || *batch != self.batch {
                            self.expect()?;
                        }
                        self.batch = *batch;
                        self.lot.push(slot.clone());
                    }
                    _ => self.expect()?,
                }
                self.judge(slot, what)?;
                super::fold(&mut self.slots, record)?;
                self.follow(slot, what);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn define(&mut self, id: &WorkflowId, what: &WorkflowEvent) -> Result<(), String> {
        match what {
            WorkflowEvent::Defined { version, .. } => {
                let past = self.reader.definitions(id, Some(*version)).map_err(|error| error.to_string())?;
                let definition = past.into_iter().next().ok_or("there is no such definition")?.definition;
                self.present.insert(id.clone(), Arc::new(definition));
                self.relations = None;
            }
            WorkflowEvent::Removed { .. } => {
                self.present.remove(id);
                self.relations = None;
            }
            _ => {}
        }
        Ok(())
    }

    /// Works out what the run is to be given that was dispatched last.
    fn expect(&mut self) -> Result<(), String> {
        let lot = std::mem::take(&mut self.lot);
        let Some(first) = lot.first() else { return Ok(()) };
        let present = &self.present;
        let (apps, times) = self.relations.get_or_insert_with(|| {
            let all: Vec<Arc<Workflow>> = present.values().cloned().collect();
            (Apps::of(&all, &self.workload.meant), Scan::of(all.iter()))
        });
        let workflow = self.present.get(&first.workflow).ok_or("a slot of no workflow is dispatched")?;
        let state = |slot: &SlotRef| self.slots.get(slot).map(|slot| slot.state);
        let (now, world) = (Timestamp::UNIX_EPOCH, World::new(0));
        let facts = WorldView { now, past: None, world: &world, state: &state, times, collected: None };
        let dispatch = Dispatch { state: &state, runs: &self.runs, apps, facts: &facts };
        let collected = self.slots.get(first).and_then(|slot| slot.collected.as_deref());
        let inputs = dispatch.inputs(workflow, &lot, collected);
        self.expected.extend(lot.into_iter().map(|slot| (slot, inputs.clone())));
        Ok(())
    }

    fn judge(&mut self, slot: &SlotRef, what: &SlotEvent) -> Result<(), String> {
        match (self.expected.remove(slot).flatten(), what) {
            (None, SlotEvent::Given { .. }) => Err("it is to be given nothing".to_owned()),
            (Some(wanted), SlotEvent::Given { inputs, .. }) if *inputs == wanted => Ok(()),
            (Some(wanted), _) => Err(format!("it is to be given {wanted:?}")),
            (None, _) => Ok(()),
        }
    }

    fn follow(&mut self, slot: &SlotRef, what: &SlotEvent) {
        if slot.key.step().is_some() {
            return;
        }
        let runs = self.runs.entry(slot.clone()).or_default();
        match what {
            SlotEvent::Dispatched { .. } => runs.push(RunRecord::default()),
            SlotEvent::Imported { external_id: Some(_), state, .. } => {
                runs.push(RunRecord { succeeded: *state == SlotState::Succeeded, ..RunRecord::default() });
            }
            SlotEvent::Gave { outputs, .. } => {
                runs.last_mut().into_iter().for_each(|run| run.outputs.clone_from(outputs));
            }
            SlotEvent::Succeeded { .. } | SlotEvent::Recovered { .. } => {
                runs.last_mut().into_iter().for_each(|run| run.succeeded = true);
            }
            _ => {}
        }
    }
}
