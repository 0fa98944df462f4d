//! Nodes over one log: two or three processes, each with a state of its own, and a log that fails.
//!
//! A seed decides about the workload, the faults, and the clocks. Every node runs the real loop over the real
//! [`LogJournal`](kelos_store::log::LogJournal); what it commands is done by one set of fake executors. Threads take turns on a virtual
//! time, so that a node can stand still at any request to the log, and in the middle of a turn.

mod handle;
mod hub;
mod journal;
mod ledger;
mod log;
mod node;
mod reign;
mod relay;
mod site;
mod workers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jiff::SignedDuration;
use kelos_core::PlantedBreach;
use kelos_store::log::Log;

use crate::Figures;
use crate::rng::Rng;
use crate::workload::Workload;
use handle::NodeHandle;
use ledger::NEWEST;
use node::NodeLife;
pub use site::{Hindrance, Plant};
use site::{Plan, Site};

/// Seeds from here on leave runs to workers on machines of their own; in those before, the executors of the leader do them.
const FIRST_WITH_WORKERS: u64 = 4_000_000;

/// How long after the last fault one node must lead: a lease may have to run out, by the slowest clock, and a request of before may still be
/// on its way.
const SOON: SignedDuration = SignedDuration::from_mins(60);

/// How long after the last fault everything must have settled.
const SETTLING: SignedDuration = SignedDuration::from_hours(8);

/// How long a standby may lag behind.
const LAG: SignedDuration = SignedDuration::from_mins(3);

/// Three nodes, and nothing that goes wrong.
const CALM: Plan = Plan {
    nodes: 3,
    is_fenced_by_position: true,
    loses: false,
    upgrades: false,
    has_workers: false,
    plant: None,
    hindrance: None,
};

/// How long a hindrance lasts. Another node leads by then: clocks are compared each twenty minutes, and the lease lasts ten.
const HINDERED: SignedDuration = SignedDuration::from_mins(45);

/// Runs a seed, and judges it.
///
/// # Errors
/// The finding of the judges.
pub fn run(seed: u64) -> Result<Figures, String> {
    let mut rng = Rng::new(seed ^ 0x3AC41);
    let plan = Plan {
        nodes: if rng.percent(50) { 2 } else { 3 },
        is_fenced_by_position: rng.percent(40),
        loses: rng.percent(15),
        upgrades: Rng::new(seed ^ 0x0F02).percent(30),
        has_workers: seed >= FIRST_WITH_WORKERS,
        plant: None,
        hindrance: None,
    };
    let per_mille = *rng.pick(&[0, 2, 8, 25]);
    through(seed, plan, per_mille, None)
}

/// The same with an invariant of one workflow that breaks on purpose: it is frozen whichever node leads, no node stops leading for it, and
/// no other workflow is affected.
///
/// # Errors
/// The finding of the judges.
pub fn breached(seed: u64) -> Result<Figures, String> {
    let plan = Plan { nodes: 3, is_fenced_by_position: false, ..CALM };
    let breach = crate::planted::of(seed, &Workload::new(seed));
    through(seed, plan, 8, breach)
}

/// The same with a bug that is planted, which the judges must find in one of some seeds.
///
/// # Errors
/// The finding of the judges.
pub fn planted(seed: u64, plant: Plant) -> Result<Figures, String> {
    through(seed, Plan { has_workers: plant.is_of_workers(), plant: Some(plant), ..CALM }, 25, None)
}

/// The same with nothing that fails but this, which befalls each leader in turn: another node must lead soon, and the one of before must
/// not.
///
/// # Errors
/// The finding of the judges.
pub fn hindered(seed: u64, hindrance: Hindrance) -> Result<Figures, String> {
    through(seed, Plan { hindrance: Some(hindrance), ..CALM }, 0, None)
}

fn through(seed: u64, plan: Plan, per_mille: u64, breach: Option<PlantedBreach>) -> Result<Figures, String> {
    let mut workload = Workload::new(seed);
    workload.config.planted = breach;
    workload.config.by_workers.clear();
    workload.workers.clear();
    workload.shifts.clear();
    if plan.has_workers {
        workers::leave_to_workers(&mut workload);
    }
    let place = Arc::new(Site::new(seed, workload, plan, per_mille));
    let lives: Vec<NodeLife> = (0..plan.nodes).map(|index| NodeLife::new(&place, index, seed)).collect();
    let handles: Vec<Arc<NodeHandle>> = lives.iter().map(|life| life.handle.clone()).collect();
    std::thread::scope(|scope| {
        for life in lives {
            let place = place.clone();
            scope.spawn(move || {
                let index = life.handle.index;
                if catch_unwind(AssertUnwindSafe(|| life.run())).is_err() {
                    place.fail(format!("node {index} panicked"));
                }
                place.relay.leave();
            });
        }
        if let Err(wrong) = accompany(&place, &handles, seed) {
            place.fail(wrong);
        }
        place.relay.end();
    });
    let mut common = place.common();
    match common.failure.take() {
        Some(wrong) => Err(wrong),
        None => common.ledger.judge().map(|()| Figures { entries: common.ledger.last(), ..common.figures }),
    }
}

/// Accompanies the nodes: the store loses its end, the faults stop, and the time comes by which one must lead.
fn accompany(place: &Site, handles: &[Arc<NodeHandle>], seed: u64) -> Result<(), String> {
    let (me, end) = (place.plan.nodes, place.workload.end);
    let until = |moment| place.relay.sleep(me, moment);
    place.relay.join(me);
    if place.plan.loses {
        let span = end.as_second() - place.workload.start.as_second();
        let mut rng = Rng::new(seed ^ 0x7A11);
        until(place.workload.start + SignedDuration::from_secs(rng.between(span / 4, span / 2)));
        place.lose_the_end(handles, me, &mut rng)?;
        until(end);
        if let Some(silent) = handles.iter().find(|handle| handle.is_silently_ahead()) {
            return Err(format!("node {} has entries that the log has lost, and went on without a word", silent.index));
        }
        if place.has_only_a_lost_snapshot() {
            // Only what a node has could be put back, which is not simulated.
            return Ok(());
        }
        // A person has decided to accept the loss.
        handles.iter().filter(|handle| handle.is_or_gets_ahead()).for_each(|handle| handle.wipe());
    } else if place.plan.upgrades {
        raise_the_form(place, handles, seed);
    } else if let Some(hindrance) = place.plan.hindrance {
        hinder_leaders(place, handles, hindrance)?;
    }
    until(end);
    place.common().per_mille = 0;
    handles.iter().for_each(|handle| handle.set_skew(SignedDuration::ZERO));
    until(end + SOON);
    let leaders = handles.iter().filter(|handle| handle.leads()).count();
    if leaders != 1 && !place.relay.is_over() {
        let each: Vec<String> = handles.iter().map(|handle| handle.told()).collect();
        return Err(format!("{leaders} nodes lead {SOON:#} after the last fault: {}", each.join("; ")));
    }
    until(end + SETTLING);
    if place.relay.is_over() {
        return Ok(());
    }
    let expected = place.common().ledger.last_before(place.relay.now() - LAG);
    match handles.iter().find(|handle| handle.followed() < expected) {
        Some(behind) => {
            Err(format!("node {} has followed {} of {expected} entries at last", behind.index, behind.followed()))
        }
        None => Ok(()),
    }
}

/// Hinders the leader, again and again, until the workload ends.
fn hinder_leaders(place: &Site, handles: &[Arc<NodeHandle>], hindrance: Hindrance) -> Result<(), String> {
    let (me, end) = (place.plan.nodes, place.workload.end);
    let rest = |time: SignedDuration| place.relay.sleep(me, place.relay.now() + time);
    while !place.relay.is_over() && place.relay.now() + HINDERED * 2 < end {
        rest(HINDERED);
        let Some(leader) = handles.iter().find(|handle| handle.leads()) else {
            return Err(format!("no node leads {HINDERED:#} after the last trouble of a leader"));
        };
        match hindrance {
            Hindrance::FullDisk => leader.body().disk.fill(true),
            Hindrance::WrongClock => leader.set_skew(SignedDuration::from_mins(30)),
            Hindrance::OutOfReach => {
                handles.iter().filter(|one| one.index != leader.index).for_each(|one| one.depose_the_leader());
            }
        }
        rest(HINDERED);
        // A disk that nothing is written to is not known to be full.
        let is_idle = hindrance == Hindrance::FullDisk && !leader.is_troubled();
        if leader.leads() && !is_idle {
            return Err(format!(
                "node {} still leads {HINDERED:#} after {hindrance:?}: {}",
                leader.index,
                leader.told()
            ));
        }
        if !handles.iter().any(|handle| handle.leads()) {
            return Err(format!("no node leads {HINDERED:#} after {hindrance:?}"));
        }
        leader.body().disk.fill(false);
        leader.set_skew(SignedDuration::ZERO);
    }
    Ok(())
}

/// Raises the form of entries once all nodes that run can read it; in one seed of three somebody does so before, by mistake.
fn raise_the_form(place: &Site, handles: &[Arc<NodeHandle>], seed: u64) {
    let (me, end) = (place.plan.nodes, place.workload.end);
    let span = end.as_second() - place.workload.start.as_second();
    let mut rng = Rng::new(seed ^ 0x4A15);
    let is_hasty = rng.percent(33);
    let mut next = place.workload.start + SignedDuration::from_secs(rng.between(span / 4, span * 9 / 10));
    while next < end && !place.relay.is_over() {
        place.relay.sleep(me, next);
        let may = is_hasty || handles.iter().all(|handle| handle.reads(NEWEST));
        if may && handles.iter().any(|handle| handle.raise(NEWEST)) {
            place.common().figures.raised += 1;
        }
        if place.least() == NEWEST {
            return;
        }
        next = place.relay.now() + SignedDuration::from_secs(rng.between(30, 900));
    }
}

impl Site {
    /// The least form that a leader must know.
    fn least(&self) -> u32 {
        self.log.connect().lease().map_or(1, |lease| lease.least())
    }

    /// Whether the snapshot of the log is of an entry that the log has lost: it was stored while that happened.
    fn has_only_a_lost_snapshot(&self) -> bool {
        let mut log = self.log.connect();
        let (last, snapshot) = (log.ends().map(|ends| ends.last), log.snapshot());
        matches!((last, snapshot), (Ok(last), Ok(Some(snapshot))) if snapshot > last)
    }

    /// The epoch in force.
    fn log_epoch(&self) -> u64 {
        self.log.connect().lease().map_or(0, |lease| lease.epoch)
    }

    /// The epoch whose leader alone may perform commands. One that deposed another begins with its plug.
    fn performing_epoch(&self) -> u64 {
        let lease = self.log.connect().lease().unwrap_or_default();
        if lease.holder.deposed.is_some() { self.common().ledger.epoch() } else { lease.epoch }
    }

    /// Loses the last entries, as a store does whose replica was promoted before it had them.
    fn lose_the_end(&self, handles: &[Arc<NodeHandle>], me: usize, rng: &mut Rng) -> Result<(), String> {
        while handles.iter().any(|handle| handle.is_appending()) && !self.relay.is_over() {
            self.relay.sleep(me, self.relay.now() + SignedDuration::from_secs(7));
        }
        let mut log = self.log.connect();
        let wrong = |error: kelos_store::log::LogError| format!("failed to {error}");
        let (ends, snapshot) = (log.ends().map_err(wrong)?, log.snapshot().map_err(wrong)?.unwrap_or(0));
        let kept = ends.last.saturating_sub(u64::try_from(rng.between(1, 4)).unwrap_or(1)).max(snapshot);
        self.log.lose_after(kept);
        let mut common = self.common();
        common.lost_after = Some(kept);
        common.late.clear();
        common.epochs.retain(|position, _| *position <= kept);
        common.ledger.lose_after(kept);
        drop(common);
        handles.iter().for_each(|handle| handle.loses_after(kept));
        Ok(())
    }
}
