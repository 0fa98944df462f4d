//! A benchmark: a million waiting slots, as after a restart. It measures the time until each was evaluated, and their
//! memory.
//!
//! `cargo run --release -p kelos-core --example waiting_bench [SLOTS]`

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark has a clock and arguments")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Instant;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Config, Core, Input, Past, RestoredState};
use kelos_model::ranges::Range;
use kelos_model::time::{Cron, CronSchedule, schedule::Schedule};
use kelos_model::trigger::Trigger;
use kelos_model::workflow::{DefinedVersion, Job, Moments, PlanState, WorkflowRow};
use kelos_model::{BackfillId, FactKey, Run, Slot, SlotRef, SlotState, Workflow, WorkflowId};
use serde_json::Map;

/// A past without slots.
struct Empty;

impl Past for Empty {
    type Error = Infallible;

    fn slots(&mut self, _: &[SlotRef]) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
        Ok(Vec::new())
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

fn resident_mb() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident = pages.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok());
    resident.unwrap_or(f64::NAN) * 4096.0 / 1e6
}

fn id(name: &str) -> WorkflowId {
    WorkflowId::new(name).expect("a name")
}

fn moment(text: &str) -> Timestamp {
    text.parse().expect("a moment")
}

/// A workflow by the minute whose schedule starts late, so that all its slots are requested.
fn patient(name: &str, trigger: Trigger) -> WorkflowRow {
    let every_minute = Schedule::Cron(CronSchedule::utc(Cron::parse("0 * * * * ?").expect("an expression")));
    let mut workflow = Workflow::new(id(name), every_minute, Job::new("instant", Map::new()));
    workflow.start_time = Some(moment("2199-01-01T00:00:00Z"));
    workflow.trigger = trigger;
    WorkflowRow {
        id: workflow.id.clone(),
        definition: workflow.into(),
        version: 1,
        present: true,
        enabled: true,
        paused: false,
        planned: PlanState::default(),
        moments: Moments::default(),
    }
}

/// Slots of a workflow in the state in which backfills have left them.
fn waiting(workflow: &WorkflowRow, slots: i64) -> impl Iterator<Item = (SlotRef, Slot)> {
    let first = moment("2020-01-01T00:00:00Z");
    let asked = moment("2026-01-01T00:00:00Z");
    let id = workflow.id.clone();
    (0..slots).map(move |n| {
        let at = SlotRef::at(id.clone(), first + SignedDuration::from_mins(n));
        let backfill = BackfillId::new(&format!("{id}-{}", n / 100_000)).expect("a name");
        let mut slot = Slot::new(SlotState::Waiting, asked);
        slot.priority = -1;
        slot.backfill = Some(backfill);
        slot.requested = true;
        slot.asked_at = Some(asked);
        slot.last_event = n.unsigned_abs() + 1;
        (at, slot)
    })
}

fn main() {
    let all: i64 = std::env::args().nth(1).map_or(1_000_000, |slots| slots.parse().expect("a number of slots"));
    let clock = patient("for-the-clock", Trigger::Delay { seconds: 40 * 366 * 86_400 });
    let others = patient("for-others", Trigger::Success { workflow: id("for-the-clock-too") });
    let mut upstream = patient("for-the-clock-too", Trigger::Always);
    upstream.present = true;
    let rows = vec![clock, others, upstream];
    // The digests of their reasons from before the restart, so that no evaluation has anything new to log.
    let mut said: BTreeMap<WorkflowId, Vec<u32>> = BTreeMap::new();
    for round in 0..=3 {
        let before = resident_mb();
        let mut slots: Vec<_> = rows.iter().take(2).flat_map(|row| waiting(row, all / 2)).collect();
        let mut told: BTreeMap<WorkflowId, usize> = BTreeMap::new();
        for (id, slot) in &mut slots {
            let n = told.entry(id.workflow.clone()).or_default();
            slot.said = said.get(&id.workflow).and_then(|said| said.get(*n)).copied().unwrap_or(0);
            *n += 1;
        }
        let given = resident_mb();
        let restored =
            RestoredState { seq: all.unsigned_abs(), workflows: rows.clone(), slots, ..RestoredState::default() };
        let now = moment("2026-06-01T00:00:00Z");
        let begin = Instant::now();
        let (mut core, _) = Core::restore(Config::default(), restored, now);
        let restored = begin.elapsed();
        let after = resident_mb();
        let definitions = rows.iter().map(|row| row.definition.clone()).collect();
        let input = Input::Definitions {
            provenance: kelos_model::workflow::Provenance::File,
            all: definitions,
            deployed: BTreeMap::new(),
        };
        core.step(now, input, &mut Empty).expect("invariants hold");
        let (mut turns, mut events) = (0, 0);
        while core.is_due(now) {
            let woke = Input::Woke { only: None, look_again: false };
            let step = core.step(now, woke, &mut Empty).expect("invariants hold");
            events += step.events.len();
            // The slots of a workflow are evaluated in order.
            for (id, slot) in core.rows().slots {
                said.entry(id.workflow).or_default().push(slot.said);
            }
            core.settle();
            turns += 1;
        }
        if round == 0 {
            continue;
        }
        println!(
            "round {round}: {} slots restored in {restored:.0?}, all looked at {:.0?} after the start in {turns} turns, {events} events; \
             {before:.0} MB before, {given:.0} MB with the store's rows, {after:.0} MB restored, {:.0} MB in the end",
            core.live_slots(),
            begin.elapsed(),
            resident_mb()
        );
    }
}
