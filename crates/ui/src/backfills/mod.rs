//! Backfills: all of them, asking for one with a preview, and one with its progress.

mod list;
mod new;
mod one;

use axum::Router;
use axum::routing::{get, post};
use jiff::Timestamp;
use kelos_explain::backfill::{Estimate, Progress};
use kelos_front::Front;
use kelos_model::backfill::{Backfill, BackfillMode};
use kelos_model::{BackfillId, SlotState};
use maud::{Markup, html};

use super::page::segment;
use super::state::{badge, look};
use super::words;

pub(super) use list::{Latest, latest};
pub(super) use new::form;

pub(super) fn router() -> Router<Front> {
    Router::new()
        .route("/ui/backfills", get(list::show))
        // Not below the others, where it would block the page of a backfill with that name.
        .route("/ui/new-backfill", get(new::show).post(new::create))
        .route("/ui/backfills/{id}", get(one::show))
        .route("/ui/backfills/{id}/{action}", post(one::act))
}

/// The address of a backfill's page.
pub(super) fn href(id: &BackfillId) -> String {
    format!("/ui/backfills/{}", segment(id.as_str()))
}

/// The order of states in a bar: done, failed, running, pending.
const BAR: [SlotState; 11] = [
    SlotState::Succeeded,
    SlotState::Skipped,
    SlotState::Killed,
    SlotState::Expired,
    SlotState::Failed,
    SlotState::Backoff,
    SlotState::Running,
    SlotState::Dispatched,
    SlotState::Queued,
    SlotState::Held,
    SlotState::Waiting,
];

/// Parts of a bar that are narrower than this, in percent, have no room for a letter.
const ROOM: f64 = 3.0;

/// A part of a bar, in percent of all.
struct Part {
    state: SlotState,
    start: f64,
    width: f64,
}

fn parts(far: &Progress) -> Vec<Part> {
    let all: u64 = far.counts.values().sum();
    let mut start = 0.0;
    let counted = BAR.iter().filter_map(|state| Some((*state, *far.counts.get(state)?)));
    let parts = counted.filter(|(_, slots)| *slots > 0).map(|(state, slots)| {
        let width = slots as f64 * 100.0 / all as f64;
        start += width;
        Part { state, start: start - width, width }
    });
    parts.collect()
}

/// The slots of a backfill by state, as a bar with letters; its words are for those who can't see it.
fn bar(far: &Progress) -> Markup {
    let counts =
        parts(far).iter().map(|part| format!("{} {}", far.counts[&part.state], part.state)).collect::<Vec<_>>();
    html! {
        svg.states role="img" aria-label=(counts.join(", ")) width="100%" height="22" {
            @for part in parts(far) {
                @let class = look(part.state).class;
                rect .(class) x=(percent(part.start)) width=(percent(part.width)) height="100%" {
                    title { (far.counts[&part.state]) " " (part.state.as_str()) }
                }
                @if part.width >= ROOM {
                    text .(class) x=(percent(part.start + part.width / 2.0)) y="50%" dy=".35em" text-anchor="middle" aria-hidden="true" {
                        (look(part.state).letter)
                    }
                }
            }
        }
    }
}

fn percent(share: f64) -> String {
    format!("{share:.3}%")
}

/// Whether it is active, as a coloured word.
fn standing(far: &Progress) -> Markup {
    let (class, word) = match far {
        Progress { backfill: Backfill { cancelled_at: Some(_), .. }, .. } => ("ended", "cancelled"),
        Progress { left: 0, .. } if far.failures() > 0 => ("bad", "ended"),
        Progress { left: 0, .. } => ("good", "ended"),
        Progress { backfill: Backfill { paused: Some(_), .. }, .. } => ("again", "paused"),
        _ => ("goes", "going on"),
    };
    html! { span.badge .(class) { (word) } }
}

/// When it will be done, as a sentence without its end.
fn done_when(estimate: &Estimate, now: Timestamp) -> String {
    match estimate {
        Estimate::Over => "all its slots have ended".to_owned(),
        Estimate::At(at, _) => {
            let seconds = at.as_second().saturating_sub(now.as_second()).max(0);
            format!("done in about {}, at {}", words::span(seconds), words::moment(*at))
        }
        Estimate::None(why) => format!("no estimate yet: {why}"),
    }
}

/// Each state's badge and number.
fn legend(far: &Progress) -> Markup {
    html! { @for part in parts(far) { span { (badge(part.state)) " " (far.counts[&part.state]) } " " } }
}

/// The effect on existing slots, in words.
const fn mode_words(mode: BackfillMode) -> &'static str {
    match mode {
        BackfillMode::Missing => "only slots that are missing",
        BackfillMode::Unsuccessful => "also those that ended without success",
        BackfillMode::All => "all of them again",
    }
}

/// The name of a mode in forms.
const fn mode_name(mode: BackfillMode) -> &'static str {
    match mode {
        BackfillMode::Missing => "missing",
        BackfillMode::Unsuccessful => "unsuccessful",
        BackfillMode::All => "all",
    }
}
