//! Runs that ask for permits while they are live, in the lockstep: their wishes are given to both, and the answers compared.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_core::Input;
use kelos_model::run::Report;
use kelos_model::{Hold, Outcome, PermitAnswer, PoolId, RunId};

use super::Pair;
use crate::spec::{RunAnswer, SpecRequest};
use crate::workload::Workload;
use crate::world::{RunRequests, Wish, World};

/// A run that begins to want something, or wants it no more.
#[derive(Debug, Clone)]
pub(super) struct WishChange {
    run: RunId,
    wish: Wish,
    is_over: bool,
}

/// The requests of live runs as their executor knows them.
pub(super) struct Requests {
    are_made: bool,
    of_runs: BTreeMap<RunId, RunRequests>,
    /// The answers of the core.
    answers: Vec<RunAnswer>,
}

impl Requests {
    pub(super) fn new(workload: &Workload) -> Requests {
        let are_made = workload.has_runs_that_ask();
        Requests { are_made, of_runs: BTreeMap::new(), answers: Vec::new() }
    }

    /// All that live runs come to want, and what they stop wanting.
    pub(super) fn happenings(
        &self,
        going: &BTreeMap<RunId, (Timestamp, Outcome)>,
        world: &World,
    ) -> impl Iterator<Item = (Timestamp, WishChange)> + use<> {
        let mut changes = Vec::new();
        for (run, (ends_at, _)) in going.iter().filter(|_| self.are_made) {
            let Some(execution) = world.runs.get(run) else { continue };
            for wish in world.wishes(run) {
                let at = execution.started_at + wish.after;
                let over = at + wish.lasts;
                let change = |is_over| WishChange { run: run.clone(), wish: wish.clone(), is_over };
                changes.extend([(at, change(false)), (over, change(true))].into_iter().filter(|(at, _)| at < ends_at));
            }
        }
        changes.into_iter()
    }

    pub(super) fn answered(&mut self, answer: RunAnswer) {
        self.answers.push(answer);
    }
}

impl Pair {
    /// Gives both what a live run wants now.
    pub(super) fn wish(&mut self, change: &WishChange, is_late: bool) -> Result<(), String> {
        let WishChange { run, wish, is_over } = change;
        if !self.going.contains_key(run) {
            return Ok(());
        }
        let of_run = self.requests.of_runs.entry(run.clone()).or_default();
        of_run.change(wish.number, (!is_over).then(|| wish.wanted.clone()));
        self.report_requests(run, false, is_late)
    }

    fn report_requests(&mut self, run: &RunId, is_repeated: bool, is_late: bool) -> Result<(), String> {
        let Some(RunRequests { version, open }) = self.requests.of_runs.get(run) else { return Ok(()) };
        // The first report that a scheduler hears counts as a repeated one.
        self.spec.asks(run, open, is_repeated, self.now);
        let report = Report::Asks { version: *version, requests: open.clone() };
        self.tell(Input::RunReported { run: run.clone(), report }, is_late)
    }

    /// Tells another process what live runs want.
    pub(super) fn repeat_requests(&mut self) -> Result<(), String> {
        let live: Vec<RunId> = self.going.keys().cloned().collect();
        live.iter().try_for_each(|run| self.report_requests(run, true, false))
    }

    /// Compares the answers of both, and lets runs know them.
    pub(super) fn compare_answers(&mut self) -> Result<(), String> {
        let name = |(run, number, answer): &RunAnswer| format!("{run} {number} {answer:?}");
        let (core, spec) = (std::mem::take(&mut self.requests.answers), self.spec.take_answers());
        let sorted = |answers: &[RunAnswer]| {
            let mut names: Vec<String> = answers.iter().map(name).collect();
            names.sort();
            names
        };
        if sorted(&core) != sorted(&spec) {
            return Err(format!(
                "at {} the full scan answers {:?}, the core {:?}",
                self.now,
                sorted(&spec),
                sorted(&core)
            ));
        }
        for (run, number, answer) in core {
            if answer != PermitAnswer::Held
                && let Some(of_run) = self.requests.of_runs.get_mut(&run)
            {
                of_run.open.remove(&number);
            }
        }
        Ok(())
    }
}

/// Whether a run holds the same permits in both.
pub(super) fn are_same(found: &[Hold], wanted: &BTreeMap<u64, SpecRequest>) -> bool {
    let found: BTreeMap<u64, &BTreeMap<PoolId, u32>> = found.iter().map(|held| (held.request, &held.permits)).collect();
    let wanted = wanted.iter().filter(|(_, request)| request.answer == Some(PermitAnswer::Held));
    found == wanted.map(|(number, request)| (*number, &request.held)).collect()
}
