//! Strips of slots: a letter for each.

use kelos_model::{SlotRef, SlotState};
use maud::{Markup, html};

use crate::page::slot_href;
use crate::state::look;

/// The letter of a slot in its colour, with the way to its page.
pub(super) fn square(slot: &SlotRef, state: SlotState) -> Markup {
    let look = look(state);
    let told = format!("{}: {}", slot.key.short(), state.as_str());
    html! { a.square .(look.class) href=(slot_href(slot)) title=(told) aria-label=(told) { (look.letter) } }
}
