//! Slots of another scheduler, which are imported before the simulation begins.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use kelos_door_celos::celos_db::{Record, SlotRecord, Status, WorkflowRecords};
use kelos_door_celos::import::{Arrival, Definitions, ImportOptions, import_known, takeover};
use kelos_model::{RunId, SlotRef, SlotState, WorkflowId};
use kelos_store::Journal;

use crate::rng::Rng;
use crate::workload::{Workload, schedules};

/// How far back imported slots may lie.
const REACH: SignedDuration = SignedDuration::from_hours(30);

/// The imported slots, by workflow.
pub struct Past {
    kept: BTreeMap<WorkflowId, WorkflowRecords>,
}

impl Past {
    /// The past of a seed; half of them have none.
    #[must_use]
    pub fn new(seed: u64, workload: &Workload) -> Past {
        let mut rng = Rng::new(seed ^ 0x9A57);
        let mut kept = BTreeMap::new();
        let (_, all) = &workload.definitions[0];
        // More than one live job may exceed the limits of this scheduler.
        let mut running = false;
        // Nothing that was imported is a run of a flow.
        let is_flow = |id: &WorkflowId| all.iter().any(|one| one.id == *id && one.flow.is_some());
        for (id, schedule) in schedules(all).into_iter().filter(|(id, _)| !is_flow(id)) {
            if rng.percent(50) {
                continue;
            }
            let may_run = all.iter().any(|one| one.id == id && one.concurrency != Some(0));
            let mut mine = WorkflowRecords { paused: rng.percent(10), ..WorkflowRecords::default() };
            for time in schedule.times(workload.start - REACH, workload.start) {
                let status = *rng.pick(&Status::ALL);
                let too_many = status == Status::Running && (running || !may_run);
                if rng.percent(40) && !too_many {
                    running |= status == Status::Running;
                    mine.slots.insert(time, SlotRecord::Record(record(&mut rng, status)));
                }
            }
            kept.insert(id, mine);
        }
        Past { kept }
    }

    /// Imports the slots, in their state at the beginning of the simulation.
    ///
    /// # Errors
    /// When the store fails.
    pub fn import(&self, store: &mut dyn Journal, workload: &Workload) -> Result<(), String> {
        let (start, all) = &workload.definitions[0];
        let workflows = all.iter().map(|one| (one.id.clone(), one.clone())).collect();
        let definitions = Definitions { workflows, sources: BTreeMap::new() };
        let options = ImportOptions { now: *start, as_of: *start, revive: false, dry_run: false };
        let imported = import_known(store, &self.kept, &BTreeMap::new(), &definitions, &options);
        imported.map(|_| ()).map_err(|error| format!("failed to {error}"))
    }

    /// The imported slots.
    pub fn arrivals(&self, workload: &Workload) -> impl Iterator<Item = (SlotRef, Arrival)> + '_ {
        let start = workload.start;
        self.kept.iter().flat_map(move |(id, kept)| {
            let arrivals = takeover(kept, start, false).into_iter();
            arrivals.map(|arrival| (SlotRef::at(id.clone(), arrival.time), arrival))
        })
    }

    /// The workflows that are imported paused.
    pub fn paused(&self) -> impl Iterator<Item = &WorkflowId> {
        self.kept.iter().filter(|(_, kept)| kept.paused).map(|(id, _)| id)
    }

    /// The live run of an imported slot.
    #[must_use]
    pub fn running(&self, workload: &Workload) -> Option<RunId> {
        let mut going = self.arrivals(workload).filter(|(_, arrival)| arrival.state == SlotState::Running);
        going.next().map(|(slot, _)| RunId { slot, number: 1 })
    }
}

fn record(rng: &mut Rng, status: Status) -> Record {
    let submitted = !matches!(status, Status::Waiting | Status::Ready | Status::WaitTimeout);
    let external_id = (submitted && (status != Status::Killed || rng.percent(50))).then(|| "past".to_owned());
    Record { status, external_id, retry_count: u32::try_from(rng.below(3)).unwrap_or(0) }
}
