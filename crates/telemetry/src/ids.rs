//! The ids of runs for OpenLineage.

use kelos_engine::TraceIds;
use kelos_model::RunId;

/// The UUID of a run: of version 8, made from its name and what tells one log from another.
pub(crate) fn run_uuid(ids: &TraceIds, run: &RunId) -> String {
    let mut bytes = ids.of_lineage(run);
    bytes[6] = bytes[6] & 0x0F | 0x80;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use kelos_model::{SlotRef, WorkflowId};

    use super::*;

    #[test]
    fn uuids_are_of_version_8_and_each_run_has_its_own() {
        let workflow = WorkflowId::new("reports.daily").expect("an id");
        let slot = SlotRef::at(workflow, "2026-03-01T00:00Z".parse().expect("a time"));
        let [one, two] = [1, 2].map(|number| RunId { slot: slot.clone(), number });
        let (ids, others) = (TraceIds::new("a log"), TraceIds::new("another log"));
        let uuid = run_uuid(&ids, &one);
        assert_eq!((uuid.len(), &uuid[14..15]), (36, "8"), "{uuid}");
        assert!(["8", "9", "a", "b"].contains(&&uuid[19..20]), "{uuid}");
        assert_eq!(uuid, run_uuid(&ids, &one));
        assert_ne!(uuid, run_uuid(&ids, &two));
        assert_ne!(uuid, run_uuid(&others, &one));
    }
}
