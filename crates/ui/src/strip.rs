//! Strips of slots: a letter for each.

use kelos_model::{SlotRef, SlotState};
use kelos_store::SlotRow;
use maud::{Markup, html};

use crate::page::slot_href;
use crate::state::look;
use crate::{viewer, words};

/// Slots, newest first, in the direction that the viewer has chosen.
pub(super) fn strip(newest_first: &[SlotRow]) -> Markup {
    let squares = newest_first.iter().map(|row| square(&row.id, row.slot.state));
    let squares: Vec<Markup> = if viewer::current().oldest_first { squares.rev().collect() } else { squares.collect() };
    html! { p.strip { @for square in squares { (square) } } }
}

/// The letter of a slot in its colour, with the way to its page.
pub(super) fn square(slot: &SlotRef, state: SlotState) -> Markup {
    let look = look(state);
    let told = format!("{}: {}", words::key(&slot.key), state.as_str());
    html! { a.square .(look.class) href=(slot_href(slot)) title=(told) aria-label=(told) { (look.letter) } }
}
