//! What slots collect, on the wire.

use std::collections::BTreeMap;

use kelos_explain::schedules::tallies;
use kelos_model::facts::{Asked, Tally};
use kelos_model::{Collected, Subject};
use serde::Serialize;
use utoipa::ToSchema;

use super::Instant;
use crate::secrets;

/// What a slot has collected of the facts that its trigger waits for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CollectedDto {
    /// Since when: timeouts and delays count from here.
    since: Instant,
    /// The same in words: `4 partitions of purchases`.
    words: Vec<String>,
    /// What came, by what it is about.
    tallies: Vec<TallyDto>,
    /// What somebody wants who had it go without its trigger.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<AskedDto>,
    /// Whether its trigger was met once; it stays so.
    met: bool,
}

/// What came about one thing.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TallyDto {
    /// What it is about: `partition:purchases`.
    about: String,
    /// How many facts.
    facts: u32,
    /// How much they count together: partitions.
    count: u64,
    /// The first of them, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<String>,
}

/// What somebody wants who had a slot go.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AskedDto {
    /// Arguments beside those of its workflow.
    arguments: BTreeMap<String, String>,
    /// Whether its constraints are passed over, too.
    unconstrained: bool,
    /// Who they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

impl From<&Collected> for CollectedDto {
    fn from(collected: &Collected) -> CollectedDto {
        CollectedDto {
            since: collected.since.into(),
            words: tallies(collected),
            tallies: collected.tallies.iter().map(TallyDto::from).collect(),
            asked: collected.asked.as_ref().map(AskedDto::from),
            met: collected.met,
        }
    }
}

impl From<(&Subject, &Tally)> for TallyDto {
    fn from((subject, tally): (&Subject, &Tally)) -> TallyDto {
        TallyDto {
            about: subject.to_string(),
            facts: tally.facts,
            count: tally.count,
            first: tally.first.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&Asked> for AskedDto {
    fn from(asked: &Asked) -> AskedDto {
        AskedDto {
            arguments: secrets::masked_texts(&asked.arguments),
            unconstrained: asked.unconstrained,
            by: asked.by.as_ref().map(ToString::to_string),
        }
    }
}
