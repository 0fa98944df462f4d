//! Constraints in the explanation of a slot.

use jiff::Timestamp;
use kelos_core::Inspection;
use kelos_model::reason::words;
use kelos_model::{EventRecord, Reason, ReasonKind};

use super::{begins, explanation};

/// The last evaluation of the constraints since the slot last began to wait.
pub(super) fn last(history: &[EventRecord]) -> Option<(Reason, Timestamp)> {
    let since = history.iter().rev().take_while(|record| !begins(record));
    let mut told = since.filter_map(|record| Some((explanation(record)?, record.at)));
    told.find(|(told, _)| told.kind == ReasonKind::Constraints).map(|(told, at)| (told.clone(), at))
}

/// The constraints that hold a slot.
pub(super) fn blockers(constraints: Option<&Reason>, inspection: Option<&Inspection>) -> Vec<String> {
    let Some(constraints) = constraints else {
        return vec!["its constraints have not been evaluated yet".to_owned()];
    };
    let mut blockers = words::blockers(constraints);
    match inspection.map_or(0, |inspection| inspection.ahead) {
        0 => {}
        1 => blockers.push("1 slot that waits for the same limit is ahead".to_owned()),
        ahead => blockers.push(format!("{ahead} slots that wait for the same limit are ahead")),
    }
    blockers
}
