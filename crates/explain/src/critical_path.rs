//! The critical path of a slot: the chain of slots and waits that decided when it ended, or keep it from ending.
//!
//! Read from the log, backwards: of the conditions that a slot waited for, the last one counts. If that was another
//! slot, the path continues there, at the moment of its success. The steps of a path cover its time without gaps, so
//! that their lengths add up to it. What is *absent*: how it would have been, had something been faster.

mod cause;
mod flow;
mod life;
mod moment;
mod parents;

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::time::text;
use kelos_model::{SlotRef, SlotState};
use kelos_store::{Queries, StoreError};

use flow::{Before, Flows};
use life::{Life, Phase};
use moment::Moment;
use parents::Relation;

/// Slots that a path has at the most. What is further back is left out.
pub const MOST_LINKS: usize = 100;

/// The chain of slots and waits that decided when a slot ended, or keep it from ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriticalPath {
    /// The slot at its end.
    pub slot: SlotRef,
    /// When it begins: when the first of its slots was planned, or opened again.
    pub from: Timestamp,
    /// When the slot ended; the present where it has not.
    pub until: Timestamp,
    /// Whether the slot has ended.
    pub is_over: bool,
    /// The slots on it, the furthest back first; the last one is the slot itself.
    pub links: Vec<Link>,
    /// The reason for which it is not traced further back, if that isn't its beginning.
    pub cut: Option<String>,
}

/// A slot on a path, and its share of the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The slot.
    pub slot: SlotRef,
    /// Its state when the path leaves it; none where it did not exist.
    pub state: Option<SlotState>,
    /// From when on the path is at this slot.
    pub from: Timestamp,
    /// The end of its share.
    pub until: Timestamp,
    /// The event that opened it, if the path begins here: `planned`, `reopened by ada`.
    pub opened: Option<String>,
    /// Its wait for the slot before it on the path.
    pub waited: Option<SlotWait>,
    /// The steps of the slot in its share of the time, oldest first, without gaps.
    pub steps: Vec<Step>,
    /// Further obstacles, as messages.
    pub besides: Vec<String>,
}

/// A wait for another slot, which has the time between for its own steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotWait {
    /// For which slot.
    pub on: SlotRef,
    /// The beginning of the wait.
    pub from: Timestamp,
    /// The end of the wait.
    pub until: Timestamp,
}

/// A stretch of time on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The kind of the step.
    pub kind: StepKind,
    /// From when on.
    pub from: Timestamp,
    /// The end of the step.
    pub until: Timestamp,
    /// The number of the run that it is about.
    pub run: Option<u32>,
    /// The condition that it waited for, or its outcome, in words; may be empty.
    pub words: String,
}

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// It waited for a condition that is no slot: a path, the clock, an evaluation.
    Waited,
    /// Its trigger was met and it waited for a permit.
    Queued,
    /// It was dispatched, and its executor had not confirmed the start.
    Starting,
    /// Its run went on.
    Ran,
    /// It waited for its retry.
    BackedOff,
    /// It had ended without success, or did not exist, while another slot waited for it.
    Stuck,
}

impl StepKind {
    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            StepKind::Waited => "waited",
            StepKind::Queued => "queued",
            StepKind::Starting => "starting",
            StepKind::Ran => "ran",
            StepKind::BackedOff => "backed-off",
            StepKind::Stuck => "stuck",
        }
    }
}

/// Milliseconds from one moment to another; none where the clock was put back between them.
fn millis(from: Timestamp, until: Timestamp) -> i64 {
    until.as_millisecond().saturating_sub(from.as_millisecond()).max(0)
}

impl Step {
    /// Its duration in milliseconds.
    #[must_use]
    pub fn millis(&self) -> i64 {
        millis(self.from, self.until)
    }

    /// Its kind and duration: `ran 2 min`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let took = text::took(self.from, self.until);
        let rest = if self.words.is_empty() { String::new() } else { format!(": {}", self.words) };
        let run = self.run.map(|run| format!(" (run {run})")).unwrap_or_default();
        match self.kind {
            StepKind::Waited => format!("waited {took}{rest}"),
            StepKind::Queued => format!("waited {took} for a permit"),
            StepKind::Starting => format!("waited {took} for its executor to confirm the start{rest}"),
            StepKind::Ran => format!("ran {took}{run}{rest}"),
            StepKind::BackedOff => format!("waited {took} for its retry"),
            StepKind::Stuck => format!("was not scheduled for {took}{rest}"),
        }
    }
}

impl Link {
    /// The time of the path at this slot, in milliseconds.
    #[must_use]
    pub fn millis(&self) -> i64 {
        millis(self.from, self.until)
    }
}

impl CriticalPath {
    /// Its duration in milliseconds.
    #[must_use]
    pub fn millis(&self) -> i64 {
        millis(self.from, self.until)
    }

    /// The share of the path that so many milliseconds are, in percent.
    #[must_use]
    pub fn percent(&self, millis: i64) -> f64 {
        if self.millis() == 0 { 0.0 } else { millis as f64 * 100.0 / self.millis() as f64 }
    }

    /// The steps of a link's slot in one sentence: `waited 41 min for wordcount-lax@…, of which 38 min: File … is not
    /// ready; ran 2 min (run 1)`.
    #[must_use]
    pub fn sentence(&self, link: &Link) -> String {
        let mut parts: Vec<String> = link.opened.iter().cloned().collect();
        parts.extend(link.waited.as_ref().map(|waited| self.waited_words(waited)));
        let told = |step: &&Step| step.millis() >= TOLD_MILLIS || step.kind == StepKind::Ran;
        parts.extend(link.steps.iter().filter(told).map(Step::sentence));
        parts.join("; ")
    }

    /// A wait for another slot, with what took most of it.
    fn waited_words(&self, waited: &SlotWait) -> String {
        let words = format!("waited {} for {}", text::took(waited.from, waited.until), waited.on.short());
        let within = |step: &Step| millis(step.from.max(waited.from), step.until.min(waited.until));
        let before = self.links.iter().take_while(|link| link.waited.as_ref() != Some(waited));
        let largest = before.flat_map(|link| &link.steps).max_by_key(|step| within(step));
        let share = largest.filter(|step| within(step) * 2 >= millis(waited.from, waited.until));
        match share.filter(|step| within(step) >= TOLD_MILLIS && step.kind == StepKind::Waited) {
            Some(step) => {
                let from = step.from.max(waited.from);
                format!("{words}, of which {}: {}", text::took(from, step.until), step.words)
            }
            None => words,
        }
    }
}

/// Shorter waits are left out of sentences.
const TOLD_MILLIS: i64 = 100;

/// The critical path of a slot, as of a moment; none where the slot does not exist. Blocks.
///
/// # Errors
/// When the store can't be read.
pub fn read(reader: &dyn Queries, slot: &SlotRef, now: Timestamp) -> Result<Option<CriticalPath>, StoreError> {
    let Some(life) = Life::read(reader, slot, u64::MAX)? else { return Ok(None) };
    let is_over = life.ended().is_some();
    let until = life.ended().unwrap_or(now);
    let (relation, flows) = (Relation::default(), Flows::default());
    let walk = Walk { reader, relation, flows, links: Vec::new(), seen: BTreeSet::new(), cut: None };
    let (mut links, cut) = walk.back(life, Moment { seq: u64::MAX, at: until })?;
    links.reverse();
    let from = links.first().map_or(until, |link| link.from);
    Ok(Some(CriticalPath { slot: slot.clone(), from, until, is_over, links, cut }))
}

/// A way back along the log.
struct Walk<'a> {
    reader: &'a dyn Queries,
    relation: Relation,
    flows: Flows,
    links: Vec<Link>,
    seen: BTreeSet<SlotRef>,
    cut: Option<String>,
}

/// The slot where a path continues.
struct Next {
    slot: SlotRef,
    /// Up to where its log counts.
    to: Moment,
    /// Since when it was waited for.
    since: Timestamp,
}

impl Walk<'_> {
    /// All links, from the last to the first.
    fn back(mut self, life: Life, to: Moment) -> Result<(Vec<Link>, Option<String>), StoreError> {
        let mut here = Some((life, to));
        while let Some((life, to)) = here.take() {
            self.seen.insert(life.slot.clone());
            let Some(next) = self.link(&life, to)? else { break };
            // From its first step the path goes back to a run.
            if !flow::is_run_of(&next.slot, &life.slot) && self.is_cut(&next.slot) {
                break;
            }
            match flow::life_before(self.reader, &life.slot, (&next.slot, next.to))? {
                Some(life) => here = Some((life, next.to)),
                None => self.links.push(missing(next)),
            }
        }
        Ok((self.links, self.cut))
    }

    fn is_cut(&mut self, next: &SlotRef) -> bool {
        if self.seen.contains(next) {
            self.cut = Some(format!("slot {} is waited for by itself", next.short()));
        } else if self.links.len() >= MOST_LINKS {
            self.cut = Some(format!("more than {MOST_LINKS} slots are on it; {} is the next one back", next.short()));
        }
        self.cut.is_some()
    }

    /// Goes back through a slot's life until another slot takes over, and returns that one.
    fn link(&mut self, life: &Life, to: Moment) -> Result<Option<Next>, StoreError> {
        let (mut steps, mut besides, mut next) = (Vec::new(), Vec::new(), None);
        for phase in life.phases.iter().rev() {
            let until = phase.until.unwrap_or(to.at);
            let before = self.before(life, phase, until)?;
            if let Some(Before { slot, at }) = before {
                steps.extend(Step::waited(at, until, looked()));
                next = Some((Next { slot, to: Moment { at, ..to }, since: phase.from }, at));
                break;
            }
            if phase.state != SlotState::Waiting {
                steps.extend(life.step(phase, until, self.links.is_empty()));
                continue;
            }
            if life.slot.key.step().is_some() {
                steps.extend(Step::waited(phase.from, until, self.flows.signal(self.reader, life)?));
                continue;
            }
            let cause = cause::of(self.reader, &self.relation, life, phase, to)?;
            besides.extend(cause.besides);
            if let Some((slot, moment)) = cause.slot {
                // Conditions before the other slot's end decided nothing.
                steps.extend(Step::waited(moment.at, until, looked()));
                next = Some((Next { slot, to: moment, since: phase.from }, moment.at));
                break;
            }
            steps.extend(Step::waited(cause.at, until, looked()));
            steps.extend(Step::waited(phase.from, cause.at, cause.words));
        }
        if next.is_none() {
            let opener = self.flows.opener(self.reader, life)?;
            next = opener.map(|Before { slot, at }| (Next { slot, to: Moment { at, ..to }, since: life.opened }, at));
        }
        steps.reverse();
        let from = next.as_ref().map_or(life.opened, |(_, at)| *at).min(to.at);
        let waited = next.as_ref().map(|(next, at)| SlotWait { on: next.slot.clone(), from: next.since, until: *at });
        // Those before a step ended before it was opened.
        let waited = waited.filter(|waited| life.slot.key.step().is_none() || waited.from < waited.until);
        let opened = next.is_none().then(|| life.opened_words.clone());
        let (slot, state) = (life.slot.clone(), Some(life.state));
        self.links.push(Link { slot, state, from, until: to.at, opened, waited, steps, besides });
        Ok(next.map(|(next, _)| next))
    }
}

impl Walk<'_> {
    /// The step that a run of a flow, or a step of one, spent a phase with.
    fn before(&mut self, life: &Life, phase: &Phase, until: Timestamp) -> Result<Option<Before>, StoreError> {
        match phase.state {
            SlotState::Running => self.flows.last_step(self.reader, life, phase, until),
            SlotState::Waiting if until > phase.from => self.flows.awaited(self.reader, life, until),
            _ => Ok(None),
        }
    }
}

fn looked() -> String {
    "to be evaluated".to_owned()
}

/// The link of a slot that is waited for and does not exist.
fn missing(next: Next) -> Link {
    let (from, until) = (next.since, next.to.at);
    let step = Step { kind: StepKind::Stuck, from, until, run: None, words: "it does not exist".to_owned() };
    let (slot, steps) = (next.slot, vec![step]);
    Link { slot, state: None, from, until, opened: None, waited: None, steps, besides: Vec::new() }
}

impl Step {
    /// A wait, if it took any time.
    fn waited(from: Timestamp, until: Timestamp, words: String) -> Option<Step> {
        let step = Step { kind: StepKind::Waited, from, until, run: None, words };
        (step.millis() > 0).then_some(step)
    }
}

impl Life {
    /// The step for a phase other than waiting, if it took any time.
    fn step(&self, phase: &Phase, until: Timestamp, is_target: bool) -> Option<Step> {
        let (kind, words) = match phase.state {
            SlotState::Held => (StepKind::Waited, "until its constraints were met".to_owned()),
            SlotState::Queued => (StepKind::Queued, String::new()),
            SlotState::Dispatched => (StepKind::Starting, self.put_off(phase)),
            SlotState::Running => (StepKind::Ran, self.ending(phase)),
            SlotState::Backoff => (StepKind::BackedOff, String::new()),
            SlotState::Succeeded | SlotState::Waiting => return None,
            _ if is_target => return None,
            state => (StepKind::Stuck, format!("it had {}", ended_words(state))),
        };
        let run = matches!(kind, StepKind::Ran | StepKind::Starting).then_some(phase.run);
        let step = Step { kind, from: phase.from, until, run, words };
        (step.millis() > 0 || kind == StepKind::Ran).then_some(step)
    }
}

fn ended_words(state: SlotState) -> String {
    match state {
        SlotState::Skipped | SlotState::Killed => format!("been {state}"),
        state => state.to_string(),
    }
}

#[cfg(test)]
mod tests;
