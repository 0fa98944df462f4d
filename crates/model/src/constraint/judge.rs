//! Judging constraints: a pure function of the circumstances.

use jiff::{SignedDuration, Timestamp};

use super::{Constraint, Gate, Otherwise, Window};
use crate::id::WorkflowId;
use crate::reason::Answer;
use crate::reason::{Finding, Reason, ReasonKind};

/// The circumstances of a slot that constraints are judged by.
#[derive(Debug, Clone)]
pub struct Circumstances<'a> {
    /// The clock.
    pub now: Timestamp,
    /// When the slot came to be.
    pub created: Timestamp,
    /// The program whose runs count.
    pub program: &'a WorkflowId,
    /// The number of its runs that are live, or about to start.
    pub active: u32,
    /// When the last run of it was started that succeeded, or may yet.
    pub last_start: Option<LastStart>,
    /// Whether the slot has run before: what would end another has it wait.
    pub again: bool,
}

/// The start of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastStart {
    /// When it was started; of one that is about to start, now.
    pub at: Timestamp,
    /// Whether the run has ended.
    pub over: bool,
}

/// The joint answer of all constraints of a slot.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Every constraint's answer, in order.
    pub explanation: Reason,
    /// When the clock alone may change the answer.
    pub wake: Option<Timestamp>,
    /// The number of live runs below which the answer may change, where nothing but their number makes the slot wait.
    pub room_below: Option<u32>,
    /// Whether the end of a run may change the answer before the clock does.
    pub until_end: bool,
}

/// Judges constraints. Those that end a slot speak last, once those that have it wait are met: what is so now is no
/// reason to abort what would not start now anyway.
#[must_use]
pub fn judge(constraints: &[Constraint], world: &Circumstances<'_>) -> Judgement {
    let looks: Vec<Look> = constraints.iter().map(|one| Look::at(one, world)).collect();
    let waits = |look: &&Look| !look.met && look.otherwise == Otherwise::Wait;
    let aborts = |look: &&Look| !look.met && look.otherwise == Otherwise::Abort;
    let waiting: Vec<&Look> = looks.iter().filter(waits).collect();
    let answer = match (waiting.is_empty(), looks.iter().any(|look| aborts(&look))) {
        (true, false) => Answer::Met,
        (true, true) => Answer::Never,
        (false, _) => Answer::NotYet,
    };
    // All that waits must be over, so the last of the known moments is the first that can change anything.
    let wake = waiting.iter().filter_map(|look| look.until).max();
    let limits: Option<Vec<u32>> = waiting.iter().map(|look| look.limit).collect();
    let room_below = limits.and_then(|limits| limits.into_iter().min());
    let until_end = waiting.iter().any(|look| look.until_end);
    let nested = looks.into_iter().map(|look| look.explain(answer)).collect();
    let explanation = Reason { kind: ReasonKind::Constraints, answer, finding: Finding::Constraints, nested };
    Judgement { explanation, wake, room_below, until_end }
}

/// The answer of one constraint, with what can change it.
struct Look {
    kind: ReasonKind,
    otherwise: Otherwise,
    met: bool,
    until: Option<Timestamp>,
    /// How many runs it allows, where it is about runs.
    limit: Option<u32>,
    /// Whether it waits for a live run.
    until_end: bool,
    finding: Finding,
}

impl Look {
    fn at(constraint: &Constraint, world: &Circumstances<'_>) -> Look {
        let otherwise = if world.again { Otherwise::Wait } else { constraint.otherwise };
        let (kind, met, until, finding) = match &constraint.gate {
            Gate::Concurrency(limit) => concurrency(*limit, world),
            Gate::Delay(millis) => delay(*millis, world),
            Gate::Window(window) => in_window(window, world.now),
            Gate::SinceLastRun(millis) => since_last_run(*millis, world),
        };
        let limit = if let Gate::Concurrency(limit) = constraint.gate { Some(limit) } else { None };
        let goes_on = world.last_start.is_some_and(|last| !last.over);
        let until_end = goes_on && kind == ReasonKind::SinceLastRun;
        Look { kind, otherwise, met, until, limit, until_end, finding }
    }

    fn explain(self, all: Answer) -> Reason {
        let answer = match (self.met, self.otherwise) {
            (true, _) => Answer::Met,
            (false, Otherwise::Abort) if all == Answer::Never => Answer::Never,
            (false, _) => Answer::NotYet,
        };
        Reason::leaf(self.kind, answer, self.finding)
    }
}

type Observation = (ReasonKind, bool, Option<Timestamp>, Finding);

fn concurrency(limit: u32, world: &Circumstances<'_>) -> Observation {
    let active = world.active;
    let finding = Finding::RunsCounted { program: world.program.clone(), active, limit };
    (ReasonKind::Concurrency, active < limit, None, finding)
}

fn delay(millis: u64, world: &Circumstances<'_>) -> Observation {
    let (now, until) = (world.now, later(world.created, millis));
    (ReasonKind::Delay, now >= until, Some(until), Finding::NotBefore { now, until })
}

fn in_window(window: &Window, now: Timestamp) -> Observation {
    let is_open = window.is_open(now);
    let (window, opens_at) = (window.clone(), if is_open { None } else { window.opens_after(now) });
    let finding =
        if is_open { Finding::WindowOpen { window } } else { Finding::WindowClosed { window, now, opens_at } };
    (ReasonKind::Window, is_open, opens_at, finding)
}

fn since_last_run(millis: u64, world: &Circumstances<'_>) -> Observation {
    let (program, now) = (world.program.clone(), world.now);
    let Some(last) = world.last_start else {
        return (ReasonKind::SinceLastRun, true, None, Finding::NoLastRun { program });
    };
    let until = later(last.at, millis);
    let finding = Finding::LastRun { program, started_at: last.at, over: last.over, now, until };
    (ReasonKind::SinceLastRun, now >= until, Some(until), finding)
}

fn later(at: Timestamp, millis: u64) -> Timestamp {
    let span = SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX));
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}
