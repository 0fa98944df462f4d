//! What `kelos rerun --downstream` touched, or would touch, in words.

use serde_json::Value;

use crate::client::{items, number, text};
use crate::text::{self as words, count, short};

/// Slots that are printed of each kind.
const SLOTS_SHOWN: usize = 20;

/// Prints one answer of the server.
pub(crate) fn tell(opened: &Value, kill_live: bool) {
    let dry_run = opened["dryRun"].as_bool().unwrap_or(false);
    list(opened, "created", "planned");
    list(opened, "reopened", "opened again");
    list(opened, "killed", if kill_live { "killed and opened again" } else { "in the way, as they have a live run" });
    let untouched = usize::try_from(number(opened, "untouched")).unwrap_or(usize::MAX);
    if untouched > 0 {
        words::line(format!("{} left alone, as they wait for their triggers anyway", count(untouched, "slot")));
    }
    if dry_run {
        words::line("nothing was changed");
    }
}

fn list(opened: &Value, kind: &str, heading: &str) {
    let total = usize::try_from(number(&opened[kind], "count")).unwrap_or(usize::MAX);
    if total == 0 {
        return;
    }
    words::line(format!("{} {heading}", count(total, "slot")));
    for slot in items(&opened[kind], "slots").iter().take(SLOTS_SHOWN) {
        words::line(format!("  {}@{}", text(slot, "workflow"), short(text(slot, "time"))));
    }
    if total > SLOTS_SHOWN {
        words::line(format!("  and {} more", total - SLOTS_SHOWN));
    }
}
