//! Answers of Celos.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::WorkflowId;
use kelos_model::time::parse_instant;
use serde::Deserialize;
use serde_json::Value;

use crate::celos_db::{Record, Status};

/// The answer of Celos about a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CelosWorkflow {
    /// Whether it is paused.
    pub paused: bool,
    /// Its slots of the last days; waiting ones for times without a record.
    pub slots: BTreeMap<Timestamp, Record>,
}

#[derive(Deserialize)]
struct List {
    ids: Vec<String>,
}

#[derive(Deserialize)]
struct Slots {
    #[serde(default)]
    paused: Value,
    slots: Vec<SlotAnswer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlotAnswer {
    time: String,
    status: String,
    #[serde(rename = "externalID")]
    external_id: Option<String>,
    #[serde(default)]
    retry_count: u32,
}

/// Reads the answer of `/workflow-list`.
///
/// # Errors
/// In words, if it has another form.
pub fn read_list(answer: &str) -> Result<Vec<WorkflowId>, String> {
    let list: List = serde_json::from_str(answer).map_err(|error| not_celos(&error))?;
    list.ids.iter().map(|id| WorkflowId::new(id).map_err(|error| error.to_string())).collect()
}

/// Reads the answer of `/workflow-slots`.
///
/// # Errors
/// In words, if it has another form.
pub fn read_slots(answer: &str) -> Result<CelosWorkflow, String> {
    let answer: Slots = serde_json::from_str(answer).map_err(|error| not_celos(&error))?;
    // Some clients have received it as a text.
    let paused = answer.paused.as_bool().unwrap_or(answer.paused == "true");
    let slots = answer.slots.into_iter().map(read_slot).collect::<Result<_, _>>()?;
    Ok(CelosWorkflow { paused, slots })
}

fn read_slot(slot: SlotAnswer) -> Result<(Timestamp, Record), String> {
    let time = parse_instant(&slot.time).map_err(|error| error.to_string())?;
    let status = Status::parse(&slot.status);
    let status = status.ok_or_else(|| format!("the status \"{}\" of {} is unknown", slot.status, slot.time))?;
    Ok((time, Record { status, external_id: slot.external_id, retry_count: slot.retry_count }))
}

fn not_celos(error: &serde_json::Error) -> String {
    format!("the answer is not one of Celos: {error}")
}
