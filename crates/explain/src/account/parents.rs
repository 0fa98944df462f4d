//! The parents of a job in its explanation: how many have not succeeded, and which of them are obstacles.

use jiff::Timestamp;
use kelos_model::jobs::told;
use kelos_model::reason::words;
use kelos_model::time::text;
use kelos_model::{Answer, Finding, Reason, ReasonKind, Run, SlotRef, SlotState};
use kelos_store::{Queries, StoreError};

use crate::definitions::Definitions;
use crate::jobs::{self, Jobs, Relative, RelativeGroup};

/// Parents that are named in full; of more the first half, and a number.
const NAMED: usize = 6;
/// Parents that the tree of a trigger names.
const LEAVES: usize = 20;

/// The same to be brought up to date.
pub(super) fn part_mut(trigger: &mut Reason) -> Option<&mut Reason> {
    match trigger.kind {
        ReasonKind::Parents => Some(trigger),
        ReasonKind::And => trigger.nested.first_mut().and_then(part_mut),
        _ => None,
    }
}

/// The part of a trigger's tree that is about parents.
pub(super) fn part(trigger: &Reason) -> Option<&Reason> {
    match trigger.kind {
        ReasonKind::Parents => Some(trigger),
        ReasonKind::And => trigger.nested.first().and_then(part),
        _ => None,
    }
}

/// The obstacles of a job that waits for its parents, as of now.
pub(super) fn blockers(
    definitions: &Definitions<'_>,
    job: &SlotRef,
    now: Timestamp,
    part: &mut Reason,
) -> Result<Vec<String>, StoreError> {
    let (all, reader) = (definitions.jobs()?, definitions.reader());
    if let Some(fault) = all.faulty.get(&job.workflow) {
        return Ok(vec![format!("the dependencies of its workflow are invalid: {fault}")]);
    }
    if !all.knows_parents(job) {
        // Functions know them, which are not asked for this: what the scheduler last found has to do.
        return Ok(words::blockers(part));
    }
    let groups = jobs::parents(all, reader, job)?;
    let told = ParentSentence { jobs: all, reader, now };
    let several = groups.len() > 1;
    *part = tree(all, &groups, part);
    groups.iter().map(|group| told.group(group, several)).collect()
}

/// The part of a reason tree that is about parents, with their present states: those that have not succeeded, the worst
/// first.
fn tree(jobs: &Jobs, groups: &[RelativeGroup], part: &Reason) -> Reason {
    let leaf = |finding| Reason::leaf(ReasonKind::Job, Answer::NotYet, finding);
    let parent = |one: &Relative| {
        let slot = one.job.clone();
        leaf(match one.state {
            None => Finding::ParentMissing { slot },
            Some(state) => Finding::ParentIs { slot, state, paused: jobs.is_paused(&one.job, one.state) },
        })
    };
    let group = |group: &RelativeGroup| {
        let missing = missing(jobs, group);
        let is_met = missing.is_empty() && group.unwritable.is_empty();
        let nameless = group.unwritable.iter().map(|one| leaf(Finding::from(one)));
        Reason {
            kind: ReasonKind::Group,
            answer: if is_met { Answer::Met } else { Answer::NotYet },
            finding: Finding::GroupProgress {
                group: (groups.len() > 1).then(|| group.name.clone()),
                succeeded: group.succeeded() as u64,
                total: group.total() as u64,
            },
            nested: nameless.chain(missing.into_iter().map(parent)).take(LEAVES).collect(),
        }
    };
    let (finding, nested) = (part.finding.clone(), groups.iter().map(group).collect());
    Reason { kind: ReasonKind::Parents, answer: Answer::NotYet, finding, nested }
}

/// The jobs of a group that have not succeeded, the worst first.
fn missing<'a>(jobs: &Jobs, group: &'a RelativeGroup) -> Vec<&'a Relative> {
    let mut missing: Vec<&Relative> = group.jobs.iter().filter(|one| one.state != Some(SlotState::Succeeded)).collect();
    // A parent that needs a person comes first, be it to repair it or to resume it.
    missing.sort_by_key(|one| (!(is_bad(one) || jobs.is_paused(&one.job, one.state)), rank(one.state)));
    missing
}

struct ParentSentence<'a> {
    jobs: &'a Jobs,
    reader: &'a dyn Queries,
    now: Timestamp,
}

impl ParentSentence<'_> {
    /// `waits for 3 of 400 jobs: …`, with the name of the group where there are several
    fn group(&self, group: &RelativeGroup, several: bool) -> Result<String, StoreError> {
        if !group.unwritable.is_empty() {
            let by = if several { format!(" in group {}", group.name) } else { String::new() };
            return Ok(format!("blocked{by}: waits for {}", told(&group.unwritable)));
        }
        let missing = missing(self.jobs, group);
        let (dead, total) = (group.ended_badly().count(), group.jobs.len());
        let jobs = if total == 1 { "1 job".to_owned() } else { format!("{} of {total} jobs", missing.len()) };
        let start = match (dead > 0, several) {
            (false, true) => format!("waits for {jobs} of group {}", group.name),
            (false, false) => format!("waits for {jobs}"),
            (true, false) => format!("blocked: waits for {jobs}"),
            (true, true) => format!("blocked in group {}: waits for {jobs}", group.name),
        };
        let shown = if missing.len() > NAMED { NAMED / 2 } else { missing.len() };
        let mut named = missing.iter().take(shown).map(|one| self.parent(one)).collect::<Result<Vec<_>, _>>()?;
        if missing.len() > shown {
            named.push(format!("and {} more", missing.len() - shown));
        }
        Ok(format!("{start}: {}", named.join(", ")))
    }

    /// `app1@20140601_1 failed 2 h ago (run 5: exited with status 3)`
    fn parent(&self, one: &Relative) -> Result<String, StoreError> {
        let name = one.job.short();
        let pause = pause_words(self.jobs, one);
        let Some(state) = one.state else { return Ok(format!("{name} was never opened{pause}")) };
        let since = self.reader.slot(&one.job)?.map_or(self.now, |slot| slot.since);
        let ago = text::took(since, self.now);
        let run = if state == SlotState::Waiting { None } else { self.reader.slot_runs(&one.job)?.pop() };
        let run = run.map(|run| run_words(&run)).unwrap_or_default();
        Ok(match state {
            state if state.is_final() => format!("{name} {state} {ago} ago{run}"),
            SlotState::Waiting => format!("{name} has waited for {ago}{pause}"),
            SlotState::Running => format!("{name} has run for {ago}{run}"),
            state => format!("{name} has been {state} for {ago}{run}{pause}"),
        })
    }
}

/// Whether it has ended without success.
fn is_bad(one: &Relative) -> bool {
    one.state.is_some_and(|state| state.is_final() && state != SlotState::Succeeded)
}

/// ` (its workflow is paused)`, where that keeps it.
fn pause_words(jobs: &Jobs, one: &Relative) -> &'static str {
    if jobs.is_paused(&one.job, one.state) { " (its workflow is paused)" } else { "" }
}

/// The order of parents: those that need a person, then live ones, then waiting ones, then those that are about to be
/// opened.
fn rank(state: Option<SlotState>) -> u8 {
    match state {
        Some(state) if state.is_final() => 0,
        Some(SlotState::Waiting | SlotState::Held) => 2,
        Some(_) => 1,
        None => 3,
    }
}

/// ` (run 5: exited with status 3)`
fn run_words(run: &Run) -> String {
    match &run.outcome {
        Some(
            kelos_model::Outcome::Failed { reason, .. }
            | kelos_model::Outcome::Unknown { reason }
            | kelos_model::Outcome::Lost { reason },
        ) => {
            format!(" (run {}: {reason})", run.id.number)
        }
        _ => format!(" (run {})", run.id.number),
    }
}
