//! Roots in words.

use kelos_model::event::Event;
use kelos_model::time::text;
use kelos_model::{Outcome, Run, SlotState};
use kelos_wire::words::Act;

use super::{Root, WayStep};
use crate::account::Account;
use crate::graph::{Obstacle, ObstacleKind};

/// Slots at each end of a way that a sentence names.
const TOLD_AT_EACH_END: usize = 3;

/// An obstacle of a slot, as the rest of a sentence about the slot.
pub(super) fn words(why: &Account, obstacle: &Obstacle) -> String {
    let words = &obstacle.words;
    match (obstacle.kind, &obstacle.path) {
        (ObstacleKind::Failed, _) => failed(why),
        (ObstacleKind::Killed, _) => format!("was {}", killed(why)),
        (ObstacleKind::Expired | ObstacleKind::Circle, _) => words.clone(),
        (ObstacleKind::Skipped, _) => format!("was {words}"),
        (ObstacleKind::Missing, _) => format!("does not exist: {words}"),
        (ObstacleKind::Frozen | ObstacleKind::Paused | ObstacleKind::Undefined, _) => format!("waits, and {words}"),
        (ObstacleKind::Backoff, _) => format!("waits for its retry: {words}"),
        (ObstacleKind::UnderWay, _) => format!("is under way: {words}"),
        (ObstacleKind::Held | ObstacleKind::Queued, _) => format!("is {words}"),
        (ObstacleKind::Outside, Some(path)) => format!("waits for {path}, which is not there"),
        (ObstacleKind::Outside | ObstacleKind::Clock | ObstacleKind::Trigger, _) => format!("waits: {words}"),
    }
}

/// `failed at 2016-01-01T00:04Z (run 1: exited with status 3)`
fn failed(why: &Account) -> String {
    let at = why.since.map(|since| format!(" at {}", text::format_short(since))).unwrap_or_default();
    let reason = |run: &Run| match &run.outcome {
        Some(Outcome::Failed { reason, .. } | Outcome::Unknown { reason } | Outcome::Lost { reason }) => {
            format!(" (run {}: {reason})", run.id.number)
        }
        _ => format!(" (run {})", run.id.number),
    };
    format!("failed{at}{}", why.runs.last().map(reason).unwrap_or_default())
}

/// `killed by ann at 2016-01-01T00:04Z (too late)`
fn killed(why: &Account) -> String {
    let at = why.since.map(|since| format!(" at {}", text::format_short(since))).unwrap_or_default();
    let act = why.decision.as_ref().and_then(|decision| match &decision.event {
        Event::Slot { what, .. } => Act::of_slot(what).map(|act| act.with(&at)),
        _ => None,
    });
    act.unwrap_or_else(|| format!("killed{at}"))
}

impl Root {
    /// The way to it and what it is, as the rest of a sentence about the slot that was asked about: `waits for b@…, which
    /// waits for c@…, which failed at …`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let far = self.left_out > 0 || self.way.len() > 2 * TOLD_AT_EACH_END + 1;
        let from_end = self.way.len().saturating_sub(TOLD_AT_EACH_END);
        let (mut sentence, mut connector) = (String::new(), "");
        for (n, pair) in self.way.windows(2).enumerate() {
            let [waiter, step] = pair else { continue };
            let name = step.slot.short();
            match n + 1 {
                n if far && n > TOLD_AT_EACH_END && n < from_end => {}
                n if far && n == from_end => {
                    let hidden = from_end - TOLD_AT_EACH_END - 1 + self.left_out;
                    sentence.push_str(&format!("{connector}waits, through {hidden} more slots, for {name}"));
                    connector = ", which ";
                }
                _ => {
                    let (phrase, next) = phrase(waiter, step);
                    sentence.push_str(&format!("{connector}{phrase}"));
                    connector = next;
                }
            }
        }
        format!("{sentence}{connector}{}", self.cause)
    }
}

/// A step of a way, and the words between it and what follows.
fn phrase(waiter: &WayStep, step: &WayStep) -> (String, &'static str) {
    let (verb, name) = (verb(waiter.state), step.slot.short());
    match &step.writes {
        Some(path) => (format!("{verb} {path}, which is not there; {name} writes it"), ", and it "),
        None => (format!("{verb} {name}"), ", which "),
    }
}

/// The verb between a slot in a state and the next one on the way.
fn verb(state: Option<SlotState>) -> &'static str {
    match state {
        Some(SlotState::Expired) => "expired while it waited for",
        Some(SlotState::Skipped) => "was skipped while it waited for",
        _ => "waits for",
    }
}
