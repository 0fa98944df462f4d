//! The differences between the slots of a workflow in Celos and in Kelos.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::ranges::Range;
use kelos_model::{Slot, SlotState};
use serde::Serialize;

use crate::celos_db::{Record, Status};

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Discrepancy {
    /// The states differ.
    State {
        /// The status in Celos.
        celos: &'static str,
        /// The state in Kelos.
        kelos: SlotState,
    },
    /// The numbers of retries differ.
    Retries {
        /// The number in Celos.
        celos: u32,
        /// The number in Kelos.
        kelos: u32,
    },
    /// Only Celos has the slot.
    OnlyCelos {
        /// The status in Celos.
        celos: &'static str,
    },
    /// Only Kelos has the slot.
    OnlyKelos {
        /// The state in Kelos.
        kelos: SlotState,
    },
    /// Celos has the workflow, and no script here defines it.
    NotDefined,
    /// A script defines the workflow, and Celos does not have it.
    NotInCelos,
    /// Celos does not answer about the workflow.
    NoAnswer {
        /// The answer of Celos.
        why: String,
    },
}

impl std::fmt::Display for Discrepancy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Discrepancy::State { celos, kelos } => write!(f, "{celos} in Celos, {kelos} in Kelos"),
            Discrepancy::Retries { celos, kelos } => write!(f, "retry {celos} in Celos, retry {kelos} in Kelos"),
            Discrepancy::OnlyCelos { celos } => write!(f, "{celos} in Celos, no such slot in Kelos"),
            Discrepancy::OnlyKelos { kelos } => write!(f, "no such slot in Celos, {kelos} in Kelos"),
            Discrepancy::NotDefined => f.write_str("Celos has it, no script defines it for Kelos"),
            Discrepancy::NotInCelos => f.write_str("a script defines it, Celos does not have it"),
            Discrepancy::NoAnswer { why } => write!(f, "Celos does not answer: {why}"),
        }
    }
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) differences: Vec<(Timestamp, Discrepancy)>,
    pub(super) agreed: usize,
}

/// Compares the slots of a range.
pub(super) fn compare(
    ours: &BTreeMap<Timestamp, Slot>,
    theirs: &BTreeMap<Timestamp, Record>,
    range: Range,
    paused: bool,
) -> Comparison {
    let times: BTreeSet<&Timestamp> = ours.keys().chain(theirs.keys()).filter(|time| range.contains(**time)).collect();
    let mut compared = Comparison::default();
    for time in times {
        match difference(ours.get(time), theirs.get(time), paused) {
            Some(what) => compared.differences.push((*time, what)),
            None => compared.agreed += 1,
        }
    }
    compared
}

fn difference(ours: Option<&Slot>, theirs: Option<&Record>, paused: bool) -> Option<Discrepancy> {
    match (ours, theirs) {
        (None, None) => None,
        // The slots of a paused workflow are not planned here; Celos lists them as waiting.
        (None, Some(theirs)) if paused && theirs.status == Status::Waiting => None,
        (None, Some(theirs)) => Some(Discrepancy::OnlyCelos { celos: theirs.status.as_str() }),
        (Some(ours), None) => Some(Discrepancy::OnlyKelos { kelos: ours.state }),
        (Some(ours), Some(theirs)) if Status::of(ours.state) != theirs.status => {
            Some(Discrepancy::State { celos: theirs.status.as_str(), kelos: ours.state })
        }
        (Some(ours), Some(theirs)) if ours.retries != theirs.retry_count => {
            Some(Discrepancy::Retries { celos: theirs.retry_count, kelos: ours.retries })
        }
        (Some(_), Some(_)) => None,
    }
}
