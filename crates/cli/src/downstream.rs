//! What `kelos rerun --downstream` touched, or would touch, in words.

use kelos_wire::{DownstreamDto, TouchedSlotsDto};

use crate::text::{self as words, count};

/// Slots that are printed of each kind.
const SLOTS_SHOWN: usize = 20;

/// Prints one answer of the server.
pub(crate) fn tell(opened: &DownstreamDto, kill_live: bool) {
    let to_be = if opened.dry_run { "to be " } else { "" };
    let killed = if kill_live { format!("{to_be}killed and reopened") } else { "blocking, with a live run".to_owned() };
    list(&opened.created, &format!("{to_be}planned"));
    list(&opened.reopened, &format!("{to_be}reopened"));
    list(&opened.killed, &killed);
    let untouched = usize::try_from(opened.untouched).unwrap_or(usize::MAX);
    if untouched > 0 {
        words::line(format!("{} unchanged, waiting already", count(untouched, "slot")));
    }
    if opened.dry_run {
        words::line("nothing was changed");
    }
}

fn list(touched: &TouchedSlotsDto, heading: &str) {
    if touched.count == 0 {
        return;
    }
    words::line(format!("{} {heading}", count(touched.count, "slot")));
    for slot in touched.slots.iter().take(SLOTS_SHOWN) {
        words::line(format!("  {slot}"));
    }
    if touched.count > SLOTS_SHOWN {
        words::line(format!("  and {} more", touched.count - SLOTS_SHOWN));
    }
}
