//! The life of a slot: as stretches of time in each state, and as what happened.

use jiff::Timestamp;
use kelos_model::time::format_full;
use kelos_model::{Event, EventRecord, SlotEvent, SlotRef, SlotState};
use maud::{Markup, html};

use crate::page::{segment, slot_href};
use crate::state::look;
use crate::{events, time, words};

/// Lines of a slot's life that are shown, the newest.
const LIFE_SHOWN: usize = 200;
/// Stretches that are drawn, the newest.
const DRAWN: usize = 40;
/// A stretch that took less, in seconds, is not drawn.
const SHORTEST: f64 = 0.1;
/// Width of the drawing, in its own units.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 26.0;
/// A stretch that is narrower would not be seen.
const NARROWEST: f64 = 14.0;

/// A stretch of time in one state.
struct Stretch {
    state: SlotState,
    from: Timestamp,
    to: Timestamp,
    /// The live run, if there is one.
    run: Option<u32>,
}

impl Stretch {
    fn seconds(&self) -> f64 {
        (self.to.as_millisecond() - self.from.as_millisecond()).max(0) as f64 / 1000.0
    }

    /// `run 2 for 3 min 20 s`.
    fn told(&self) -> String {
        let took = words::took(self.from, self.to);
        match self.run {
            Some(run) => format!("run {run}: {took}"),
            None => format!("{}: {took}", self.state),
        }
    }
}

/// The stretches that a slot was live, up to a moment. Stretches between an end and a reopening are left out. The life may begin with a
/// reopening, where what was before it was removed.
fn stretches(life: &[&EventRecord], until: Timestamp) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let (mut state, mut dispatched): (Option<SlotState>, _) = (None, None);
    for (n, record) in life.iter().enumerate() {
        let Event::Slot { what, .. } = &record.event else { continue };
        if let SlotEvent::Dispatched { run, .. } = what {
            dispatched = Some(*run);
        }
        let Some(after) = SlotState::following(state, what) else { continue };
        let to = life.get(n + 1).map_or(until, |next| next.at).max(record.at);
        let run = dispatched.filter(|_| after == SlotState::Running);
        match stretches.last_mut().filter(|last| last.state == after && last.to == record.at) {
            _ if after.is_final() => {}
            Some(last) => last.to = to,
            None => stretches.push(Stretch { state: after, from: record.at, to, run }),
        }
        state = Some(after);
    }
    stretches
}

/// The life of a slot up to a moment; by default up to now.
pub(super) fn show(id: &SlotRef, life: &[EventRecord], at: Option<Timestamp>, now: Timestamp) -> Markup {
    let until = at.unwrap_or(now);
    let life: Vec<_> = life.iter().filter(|record| at.is_none_or(|at| record.at <= at)).collect();
    html! {
        h2 { "Its life" }
        @if life.is_empty() { p.soft { "Nothing has happened to it." } }
        (drawn(stretches(&life, until)))
        (list(id, &life))
    }
}

fn drawn(mut stretches: Vec<Stretch>) -> Markup {
    stretches.retain(|stretch| stretch.seconds() >= SHORTEST);
    let shown = &stretches[stretches.len().saturating_sub(DRAWN)..];
    if shown.is_empty() {
        return html! {};
    }
    let told = shown.iter().map(Stretch::told).collect::<Vec<_>>().join(", ");
    let mut begin = 0.0;
    let bars = shown.iter().zip(widths(shown)).map(|(stretch, width)| {
        begin += width;
        bar(stretch, begin - width, width)
    });
    html! {
        figure.stretches {
            svg role="img" aria-label=(told) viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" {
                @for bar in bars { (bar) }
            }
            ol.plain.inline {
                @for stretch in shown {
                    li { span.badge .(look(stretch.state).class) aria-hidden="true" { (look(stretch.state).letter) } " " (stretch.told()) }
                }
            }
        }
    }
}

fn bar(stretch: &Stretch, x: f64, width: f64) -> Markup {
    let class = look(stretch.state).class;
    html! {
        rect class=(format!("stretch-{class}")) x=(format!("{x:.1}")) y="0" width=(format!("{:.1}", width - 1.0)) height=(HEIGHT) rx="2" {
            title { (stretch.told()) ", from " (words::moment(stretch.from)) }
        }
    }
}

/// How wide each is drawn: by its time, but wide enough to be seen.
fn widths(stretches: &[Stretch]) -> Vec<f64> {
    let total: f64 = stretches.iter().map(Stretch::seconds).sum();
    let free = WIDTH - NARROWEST * stretches.len() as f64;
    let share = |stretch: &Stretch| if total > 0.0 { stretch.seconds() / total } else { 1.0 / stretches.len() as f64 };
    stretches.iter().map(|stretch| NARROWEST + free * share(stretch)).collect()
}

fn list(id: &SlotRef, life: &[&EventRecord]) -> Markup {
    let hidden = life.len().saturating_sub(LIFE_SHOWN);
    html! {
        @if hidden > 0 { p.soft { (hidden) " earlier events are left out." } }
        ol.life {
            @for (n, record) in life.iter().enumerate().skip(hidden) {
                li {
                    a.when href=(format!("{}?at={}", slot_href(id), segment(&format_full(record.at))))
                        title="see it at that moment" { (time::at(record.at)) }
                    span.soft.after { (n.checked_sub(1).map(|before| after(life[before].at, record.at)).unwrap_or_default()) }
                    (events::what(record))
                }
            }
        }
    }
}

fn after(before: Timestamp, now: Timestamp) -> String {
    let is_seen = now.as_millisecond().abs_diff(before.as_millisecond()) >= 100;
    if is_seen { format!("+{}", words::took(before, now)) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use kelos_model::event::Origin;
    use kelos_model::{Actor, Answer, Finding, Outcome, Reason, ReasonKind, WorkflowId};

    use super::*;

    #[test]
    fn stretches_go_from_state_to_state_and_leave_out_what_is_over() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let slot = SlotRef::at(WorkflowId::new("w").unwrap(), at(0));
        let failed = Outcome::Failed { reason: "exited with status 3".to_owned(), exit_status: Some(3), code: None };
        let explanation = Reason::leaf(ReasonKind::Always, Answer::Met, Finding::Always);
        let explained = explanation.clone();
        let reopened = SlotEvent::Reopened { by: Actor::person("me"), reason: None, priority: 0, backfill: None };
        let events = [
            (0, SlotEvent::planned(Origin::Schedule, 0)),
            (5, SlotEvent::Looked { explanation: explanation.clone() }),
            (9, SlotEvent::TriggerMet { explanation }),
            (10, SlotEvent::Dispatched { run: 1, worker: None, batch: None }),
            (11, SlotEvent::Started { run: 1, external_id: "x".to_owned() }),
            (71, SlotEvent::Failed { run: 1, outcome: failed }),
            (1000, reopened),
            (1003, SlotEvent::TriggerMet { explanation: explained }),
        ];
        let record = |(n, (second, what)): (usize, (i64, SlotEvent))| EventRecord {
            seq: n as u64 + 1,
            previous: n as u64,
            at: at(second),
            event: Event::Slot { slot: slot.clone(), what },
        };
        let life: Vec<EventRecord> = events.into_iter().enumerate().map(record).collect();
        let life: Vec<&EventRecord> = life.iter().collect();
        let found = stretches(&life[..7], at(1003));
        let told: Vec<String> = found.iter().map(Stretch::told).collect();
        let expected = ["waiting: 9.0 s", "queued: 1.0 s", "dispatched: 1.0 s", "run 1: 1 min", "waiting: 3.0 s"];
        assert_eq!(told, expected);
        let told: Vec<String> = stretches(&life[6..], at(1004)).iter().map(Stretch::told).collect();
        assert_eq!(told, ["waiting: 3.0 s", "queued: 1.0 s"], "what was before it was removed");
        let wide = widths(&found);
        assert!(
            (wide.iter().sum::<f64>() - WIDTH).abs() < 0.001 && wide.iter().all(|one| *one >= NARROWEST),
            "{wide:?}"
        );
    }
}
