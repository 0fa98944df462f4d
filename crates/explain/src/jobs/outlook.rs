//! The forecast of submitted jobs: the ancestors that would be opened, the jobs, and the descendants that become
//! possible when those succeed. Every job and every edge is visited once.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::{SlotRef, SlotState};
use kelos_store::{Queries, StoreError};

use super::{JobGroup, Jobs, Validity};

/// The most jobs of one answer.
pub const MOST_JOBS: usize = 100_000;

/// Blockers that are named; of the others there is a number.
const NAMED: usize = 5;

/// The jobs of a possible request to submit.
#[derive(Debug, Clone, Default)]
pub struct JobQuery {
    /// The jobs.
    pub jobs: Vec<SlotRef>,
    /// Whether those that have ended are to be opened again, with all that depends on them and has ended.
    pub readd: bool,
}

/// The forecast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// Each job once, after those that it waits for.
    pub jobs: Vec<JobForecast>,
    /// Whether there are more than [`MOST_JOBS`].
    pub is_cut: bool,
}

/// The forecast for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobForecast {
    /// The job.
    pub job: SlotRef,
    /// Its present state; none if it was never opened.
    pub state: Option<SlotState>,
    /// Its relation to the requested jobs.
    pub role: Role,
    /// Its future.
    pub fate: Fate,
    /// Whether a function of its workflow has the last word on whether it is worth running.
    pub is_asked: bool,
    /// The jobs that block it, the first of them.
    pub blocked_by: Vec<SlotRef>,
    /// The number of further blockers.
    pub more_blockers: usize,
    /// The reason for which it would wait for no other job though its workflow has dependencies.
    pub no_group: Option<String>,
    /// The reason for which it could never run: not all parents have valid job ids.
    pub no_way: Option<String>,
}

/// The relation of a job to the requested ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// One of them waits for it, or for something that waits for it.
    Ancestor,
    /// It is one of them.
    Asked,
    /// It becomes possible through them.
    Descendant,
}

/// The future of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It would be opened, or waits already, and would run.
    Runs,
    /// It is live already.
    UnderWay,
    /// It has ended, and would be left as it is.
    Ended,
    /// It would wait for what does not succeed by itself.
    Blocked,
    /// It would be skipped: it is not worth running.
    Skipped,
    /// It would be left alone: its workflow is paused.
    Paused,
}

impl Role {
    /// Its name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Ancestor => "ancestor",
            Role::Asked => "asked",
            Role::Descendant => "descendant",
        }
    }
}

impl Fate {
    /// Its name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Fate::Runs => "runs",
            Fate::UnderWay => "under-way",
            Fate::Ended => "ended",
            Fate::Blocked => "blocked",
            Fate::Skipped => "skipped",
            Fate::Paused => "paused",
        }
    }
}

/// The forecast of submitting jobs now, if all runs succeed.
///
/// # Errors
/// When the store can't be read.
pub fn outlook(jobs: &Jobs, reader: &dyn Queries, asked: &JobQuery) -> Result<Outlook, StoreError> {
    look(jobs, asked, &mut |job| Ok(reader.slot(job)?.map(|slot| slot.state)))
}

/// The same for any source of states.
pub(super) fn look<E>(
    jobs: &Jobs,
    asked: &JobQuery,
    state: &mut dyn FnMut(&SlotRef) -> Result<Option<SlotState>, E>,
) -> Result<Outlook, E> {
    let mut look = Look {
        jobs,
        state,
        states: BTreeMap::new(),
        asked: asked.jobs.iter().cloned().collect(),
        reopened: BTreeSet::new(),
        fates: BTreeMap::new(),
        found: Vec::new(),
        stack: Vec::new(),
        counts: BTreeMap::new(),
        pushed: BTreeSet::new(),
    };
    if asked.readd {
        look.reopen(&asked.jobs)?;
    }
    for job in &asked.jobs {
        look.settle(job)?;
    }
    look.push()?;
    Ok(look.close())
}

/// The parents of a job that was reached from one of them: for each group, the number that has not succeeded.
struct Counts {
    groups: BTreeMap<std::sync::Arc<str>, usize>,
    /// Groups that can't be met, since a job that they want can't be named.
    hopeless: BTreeSet<std::sync::Arc<str>>,
    /// The parent from which it was reached, which is counted already.
    first: SlotRef,
}

/// A job whose ancestors are being visited.
struct Frame {
    job: SlotRef,
    groups: Vec<JobGroup>,
    /// The group that is examined, and the number of its parents that are settled.
    group: usize,
    settled: usize,
}

/// A group of a job that can't be met.
struct NoWay;

struct Look<'a, E> {
    jobs: &'a Jobs,
    state: &'a mut dyn FnMut(&SlotRef) -> Result<Option<SlotState>, E>,
    states: BTreeMap<SlotRef, Option<SlotState>>,
    asked: BTreeSet<SlotRef>,
    /// Ended jobs that would be opened again.
    reopened: BTreeSet<SlotRef>,
    /// Jobs with a settled future.
    fates: BTreeMap<SlotRef, Fate>,
    found: Vec<JobForecast>,
    stack: Vec<Frame>,
    counts: BTreeMap<SlotRef, Counts>,
    /// Jobs whose success was passed on to their children.
    pushed: BTreeSet<SlotRef>,
}

impl<E> Look<'_, E> {
    fn stored(&mut self, job: &SlotRef) -> Result<Option<SlotState>, E> {
        if let Some(known) = self.states.get(job) {
            return Ok(*known);
        }
        let found = (self.state)(job)?;
        self.states.insert(job.clone(), found);
        Ok(found)
    }

    /// The state of a job after the request: none if it was never opened.
    fn standing(&mut self, job: &SlotRef) -> Result<Option<SlotState>, E> {
        let stored = self.stored(job)?;
        Ok(if self.reopened.contains(job) { Some(SlotState::Waiting) } else { stored })
    }

    fn is_full(&self) -> bool {
        self.states.len() >= MOST_JOBS
    }

    /// Notes what would be opened again: what has ended of the jobs and of all that depends on them.
    fn reopen(&mut self, jobs: &[SlotRef]) -> Result<(), E> {
        let mut queue: Vec<SlotRef> = Vec::new();
        for job in jobs {
            if self.stored(job)?.is_some_and(SlotState::is_final) && self.reopened.insert(job.clone()) {
                queue.push(job.clone());
            }
        }
        let mut seen: BTreeSet<SlotRef> = queue.iter().cloned().collect();
        while let Some(job) = queue.pop() {
            for (child, _) in self.jobs.waiting_for(&job) {
                if self.is_full() || !seen.insert(child.clone()) {
                    continue;
                }
                if let Some(state) = self.stored(&child)? {
                    if state.is_final() {
                        self.reopened.insert(child.clone());
                    }
                    queue.push(child);
                }
            }
        }
        Ok(())
    }

    /// Finds out what becomes of a job, its ancestors first.
    fn settle(&mut self, job: &SlotRef) -> Result<(), E> {
        self.begin(job)?;
        while let Some(mut frame) = self.stack.pop() {
            match self.advance(&mut frame)? {
                Some(parent) => {
                    self.stack.push(frame);
                    self.begin(&parent)?;
                }
                None => self.decide(frame)?,
            }
        }
        Ok(())
    }

    /// Settles a job at once, or begins with its ancestors.
    fn begin(&mut self, job: &SlotRef) -> Result<(), E> {
        if self.fates.contains_key(job) {
            return Ok(());
        }
        match self.standing(job)? {
            state if self.jobs.is_paused(job, state) => self.note(job, Fate::Paused, &[]),
            Some(SlotState::Waiting) | None if self.jobs.validity(job) == Validity::No => {
                self.note(job, Fate::Skipped, &[])
            }
            Some(SlotState::Waiting) | None if self.is_full() => self.note(job, Fate::Runs, &[]),
            Some(SlotState::Waiting) | None => {
                let groups = self.jobs.groups(job);
                self.stack.push(Frame { job: job.clone(), groups, group: 0, settled: 0 });
            }
            Some(state) if state.is_final() => self.note(job, Fate::Ended, &[]),
            Some(_) => self.note(job, Fate::UnderWay, &[]),
        }
        Ok(())
    }

    /// The next parent of the examined group to settle; none if the job can be decided.
    fn advance(&mut self, frame: &mut Frame) -> Result<Option<SlotRef>, E> {
        if frame.group == 0 && frame.settled == 0 && self.has_all_of_some(&frame.groups)? {
            return Ok(None);
        }
        while let Some(group) = frame.groups.get(frame.group) {
            let is_way = frame.settled > 0 || !self.is_dead(group)?;
            match if is_way { self.unsettled(&group.jobs, &mut frame.settled) } else { Err(NoWay) } {
                Ok(next) => return Ok(next),
                Err(NoWay) => (frame.group, frame.settled) = (frame.group + 1, 0),
            }
        }
        Ok(None)
    }

    /// The first parent from a position on that is not settled, unless one was settled in vain.
    fn unsettled(&self, group: &[SlotRef], from: &mut usize) -> Result<Option<SlotRef>, NoWay> {
        while let Some(parent) = group.get(*from) {
            match self.fates.get(parent) {
                None => return Ok(Some(parent.clone())),
                Some(Fate::Skipped) => return Err(NoWay),
                Some(_) => *from += 1,
            }
        }
        Ok(None)
    }

    fn has_all_of_some(&mut self, groups: &[JobGroup]) -> Result<bool, E> {
        for group in groups {
            let mut all = group.unwritable.is_empty();
            for parent in &group.jobs {
                all &= self.standing(parent)? == Some(SlotState::Succeeded);
            }
            if all {
                return Ok(true);
            }
        }
        Ok(groups.is_empty())
    }

    fn is_dead(&mut self, group: &JobGroup) -> Result<bool, E> {
        for parent in &group.jobs {
            if self.is_dead_end(parent)? {
                return Ok(true);
            }
        }
        Ok(!group.unwritable.is_empty())
    }

    /// Whether a job has ended without success, or would.
    fn is_dead_end(&mut self, job: &SlotRef) -> Result<bool, E> {
        let ended = self.standing(job)?.is_some_and(|state| state.is_final() && state != SlotState::Succeeded);
        Ok(ended || self.fates.get(job) == Some(&Fate::Skipped))
    }

    fn decide(&mut self, frame: Frame) -> Result<(), E> {
        if self.has_all_of_some(&frame.groups)? {
            self.note(&frame.job, Fate::Runs, &[]);
            return Ok(());
        }
        let mut blockers = Vec::new();
        match frame.groups.get(frame.group) {
            Some(way) => {
                let blocked = |parent: &&SlotRef| matches!(self.fates.get(*parent), Some(Fate::Blocked | Fate::Paused));
                blockers.extend(way.jobs.iter().filter(blocked).cloned());
            }
            None => {
                for parent in frame.groups.iter().flat_map(|group| &group.jobs) {
                    if self.is_dead_end(parent)? && !blockers.contains(parent) {
                        blockers.push(parent.clone());
                    }
                }
            }
        }
        let is_stuck = !blockers.is_empty() || frame.groups.get(frame.group).is_none();
        let fate = if is_stuck { Fate::Blocked } else { Fate::Runs };
        self.note(&frame.job, fate, &blockers);
        Ok(())
    }

    fn note(&mut self, job: &SlotRef, fate: Fate, blockers: &[SlotRef]) {
        let role = if self.asked.contains(job) { Role::Asked } else { Role::Ancestor };
        self.list(job, role, fate, blockers);
    }

    fn list(&mut self, job: &SlotRef, role: Role, fate: Fate, blockers: &[SlotRef]) {
        self.fates.insert(job.clone(), fate);
        self.found.push(JobForecast {
            state: self.states.get(job).copied().flatten(),
            role,
            fate,
            is_asked: fate == Fate::Runs && self.jobs.validity(job) == Validity::Asked,
            blocked_by: blockers.iter().take(NAMED).cloned().collect(),
            more_blockers: blockers.len().saturating_sub(NAMED),
            // A job that has run before needs no warning; a descendant has a group.
            no_group: if fate == Fate::Runs && role != Role::Descendant { self.jobs.no_group(job) } else { None },
            no_way: if fate == Fate::Blocked { self.jobs.no_way(job) } else { None },
            job: job.clone(),
        });
    }

    /// Follows what becomes possible when what runs succeeds.
    fn push(&mut self) -> Result<(), E> {
        let runs = |one: &&JobForecast| one.fate == Fate::Runs;
        let mut queue: std::collections::VecDeque<SlotRef> =
            self.found.iter().filter(runs).map(|one| one.job.clone()).collect();
        while let Some(parent) = queue.pop_front() {
            if !self.pushed.insert(parent.clone()) {
                continue;
            }
            for (child, group) in self.jobs.waiting_for(&parent) {
                if !self.is_full() && self.is_released(&parent, &child, &group)? {
                    // Only parents without valid ids are left: it is opened, and then waits for ever.
                    let is_stuck = self.counts.get(&child).is_some_and(|counts| counts.hopeless.contains(&group));
                    let fate = self.fate_of(&child, if is_stuck { Fate::Blocked } else { Fate::Runs });
                    self.list(&child, Role::Descendant, fate, &[]);
                    if fate == Fate::Runs {
                        queue.push_back(child);
                    }
                }
            }
        }
        self.list_held_back();
        Ok(())
    }

    /// The future of a job that waits, unless something of its own decides.
    fn fate_of(&self, job: &SlotRef, otherwise: Fate) -> Fate {
        match self.jobs.validity(job) {
            _ if self.jobs.is_paused(job, Some(SlotState::Waiting)) => Fate::Paused,
            Validity::No => Fate::Skipped,
            Validity::Yes | Validity::Asked => otherwise,
        }
    }

    /// Whether the success of this parent opens a child.
    fn is_released(&mut self, parent: &SlotRef, child: &SlotRef, group: &str) -> Result<bool, E> {
        if self.fates.contains_key(child) || !matches!(self.standing(child)?, None | Some(SlotState::Waiting)) {
            return Ok(false);
        }
        if !self.counts.contains_key(child) {
            let counts = self.count(parent, child)?;
            self.counts.insert(child.clone(), counts);
        }
        let Some(counts) = self.counts.get_mut(child) else { return Ok(false) };
        let is_way = !counts.hopeless.contains(group) || counts.hopeless.len() == counts.groups.len();
        let Some(missing) = counts.groups.get_mut(group) else { return Ok(false) };
        if counts.first != *parent {
            *missing = missing.saturating_sub(1);
        }
        Ok(*missing == 0 && is_way)
    }

    /// The number of parents of each group that have not succeeded, and are not about to.
    fn count(&mut self, first: &SlotRef, child: &SlotRef) -> Result<Counts, E> {
        let mut groups = BTreeMap::new();
        let mut hopeless = BTreeSet::new();
        for JobGroup { name, jobs, unwritable } in self.jobs.groups(child) {
            let mut missing = 0;
            if !unwritable.is_empty() {
                hopeless.insert(name.clone());
            }
            for parent in &jobs {
                let is_there = self.pushed.contains(parent)
                    || match self.standing(parent)? {
                        Some(SlotState::Succeeded) => true,
                        // A live parent counts as successful; a waiting one is counted when it is found to run.
                        Some(state) => {
                            !state.is_final()
                                && state != SlotState::Waiting
                                && !self.jobs.is_paused(parent, Some(state))
                        }
                        None => false,
                    };
                missing += usize::from(!is_there);
            }
            groups.insert(name, missing);
        }
        Ok(Counts { groups, hopeless, first: first.clone() })
    }

    /// Lists the jobs that would be opened again and do not run by this request.
    fn list_held_back(&mut self) {
        let rest: Vec<SlotRef> = self.reopened.iter().filter(|job| !self.fates.contains_key(*job)).cloned().collect();
        for job in rest {
            let fate = self.fate_of(&job, Fate::Blocked);
            self.list(&job, Role::Descendant, fate, &[]);
        }
    }

    fn close(self) -> Outlook {
        Outlook { is_cut: self.is_full(), jobs: self.found }
    }
}
