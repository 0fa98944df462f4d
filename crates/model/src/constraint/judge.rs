//! Judging constraints: a pure function of the circumstances.

use jiff::{SignedDuration, Timestamp};

use super::{Constraint, Gate, Otherwise, Window};
use crate::id::WorkflowId;
use crate::time::text::format_short;
use crate::trigger::{Answer, Evidence, Explanation, TriggerKind};

/// What constraints look at.
#[derive(Debug, Clone)]
pub struct Circumstances<'a> {
    /// The clock.
    pub now: Timestamp,
    /// When the slot came to be.
    pub created: Timestamp,
    /// Whose runs count.
    pub program: &'a WorkflowId,
    /// Runs of it that go on, or are about to start.
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

/// What constraints say together.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Every constraint's answer, in order.
    pub explanation: Explanation,
    /// When the clock alone may change the answer.
    pub wake: Option<Timestamp>,
    /// Where nothing but the number of runs has it wait: the answer may change once there are fewer than this.
    pub room_below: Option<u32>,
    /// Whether the end of a run may change the answer before the clock does.
    pub until_end: bool,
}

/// Judges constraints. Those that end a slot speak last, once those that have it wait are met: what is so now is no
/// reason to end what would not go now anyway.
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
    let text = match answer {
        Answer::Met => "All constraints are met",
        Answer::NotYet => "Constraints have it wait",
        Answer::Never => "A constraint that is not met ends it",
    };
    let nested = looks.into_iter().map(|look| look.explain(answer)).collect();
    let explanation =
        Explanation { kind: TriggerKind::Constraints, answer, text: text.to_owned(), evidence: None, nested };
    Judgement { explanation, wake, room_below, until_end }
}

/// What one constraint sees.
struct Look {
    kind: TriggerKind,
    otherwise: Otherwise,
    met: bool,
    until: Option<Timestamp>,
    /// How many runs it allows, where it is about runs.
    limit: Option<u32>,
    /// Whether a run that goes on is what it looks at.
    until_end: bool,
    now: Timestamp,
    text: String,
}

impl Look {
    fn at(constraint: &Constraint, world: &Circumstances<'_>) -> Look {
        let otherwise = if world.again { Otherwise::Wait } else { constraint.otherwise };
        let (kind, met, until, text) = match &constraint.gate {
            Gate::Concurrency(limit) => concurrency(*limit, world),
            Gate::Delay(millis) => delay(*millis, world),
            Gate::Window(window) => in_window(window, world.now),
            Gate::SinceLastRun(millis) => since_last_run(*millis, world),
        };
        let limit = if let Gate::Concurrency(limit) = constraint.gate { Some(limit) } else { None };
        let goes_on = world.last_start.is_some_and(|last| !last.over);
        let until_end = goes_on && kind == TriggerKind::SinceLastRun;
        Look { kind, otherwise, met, until, limit, until_end, now: world.now, text }
    }

    fn explain(self, all: Answer) -> Explanation {
        let answer = match (self.met, self.otherwise) {
            (true, _) => Answer::Met,
            (false, Otherwise::Abort) if all == Answer::Never => Answer::Never,
            (false, _) => Answer::NotYet,
        };
        let evidence = self.until.map(|until| Evidence::Clock { now: self.now, until });
        Explanation { kind: self.kind, answer, text: self.text, evidence, nested: Vec::new() }
    }
}

type Seen = (TriggerKind, bool, Option<Timestamp>, String);

fn concurrency(limit: u32, world: &Circumstances<'_>) -> Seen {
    let (active, program) = (world.active, world.program);
    let going = match active {
        0 => format!("No run of {program} goes on"),
        1 => format!("A run of {program} goes on"),
        more => format!("{more} runs of {program} go on"),
    };
    let text =
        if limit == 1 { format!("{going}, one at a time may") } else { format!("{going}, {limit} at a time may") };
    (TriggerKind::Concurrency, active < limit, None, text)
}

fn delay(millis: u64, world: &Circumstances<'_>) -> Seen {
    let until = later(world.created, millis);
    let text = format!("It is to wait until {}", format_short(until));
    (TriggerKind::Delay, world.now >= until, Some(until), text)
}

fn in_window(window: &Window, now: Timestamp) -> Seen {
    if window.is_open(now) {
        return (TriggerKind::Window, true, None, format!("The window {window} is open"));
    }
    let opens = window.opens_after(now);
    let when = opens.map_or_else(|| "never".to_owned(), |at| format!("at {}", format_short(at)));
    (TriggerKind::Window, false, opens, format!("The window {window} is closed, and opens {when}"))
}

fn since_last_run(millis: u64, world: &Circumstances<'_>) -> Seen {
    let program = world.program;
    let Some(last) = world.last_start else {
        return (TriggerKind::SinceLastRun, true, None, format!("No run of {program} has succeeded yet"));
    };
    let until = later(last.at, millis);
    let run = if last.over {
        format!("The last successful run of {program}")
    } else {
        format!("A run of {program} that goes on")
    };
    let (started, next) = (format_short(last.at), format_short(until));
    let text = format!("{run} was started at {started}, the next may go at {next}");
    (TriggerKind::SinceLastRun, world.now >= until, Some(until), text)
}

fn later(at: Timestamp, millis: u64) -> Timestamp {
    let span = SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX));
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}
