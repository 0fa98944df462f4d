//! What `kelos rerun --downstream` touched, or would touch, in words.

use serde_json::Value;

use crate::client::{items, number, slot as name};
use crate::text::{self as words, count};

/// Slots that are printed of each kind.
const SLOTS_SHOWN: usize = 20;

/// Prints one answer of the server.
pub(crate) fn tell(opened: &Value, kill_live: bool) {
    let dry_run = opened["dryRun"].as_bool().unwrap_or(false);
    let to_be = if dry_run { "to be " } else { "" };
    let killed = if kill_live { format!("{to_be}killed and reopened") } else { "blocking, with a live run".to_owned() };
    list(opened, "created", &format!("{to_be}planned"));
    list(opened, "reopened", &format!("{to_be}reopened"));
    list(opened, "killed", &killed);
    let untouched = usize::try_from(number(opened, "untouched")).unwrap_or(usize::MAX);
    if untouched > 0 {
        words::line(format!("{} unchanged, waiting already", count(untouched, "slot")));
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
        words::line(format!("  {}", name(slot)));
    }
    if total > SLOTS_SHOWN {
        words::line(format!("  and {} more", total - SLOTS_SHOWN));
    }
}
