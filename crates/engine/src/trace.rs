//! Ids of traces, as [W3C Trace Context](https://www.w3.org/TR/trace-context/) has them.
//!
//! They follow from the names of slots and runs: whoever knows a run knows its span, before it is sent and after a crash.

use std::fmt::Write;
use std::sync::{Arc, OnceLock};

use kelos_model::{RunId, SlotRef};
use kelos_store::{PageRequest, Queries, StoreError};
use sha2::{Digest, Sha256};

/// The ids of the traces of one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceIds {
    /// Tells the log from others, so that two installations with the same workflows have different traces.
    log: Arc<str>,
}

impl TraceIds {
    /// Those of a log with a name that no other log has.
    #[must_use]
    pub fn new(log: &str) -> TraceIds {
        TraceIds { log: log.into() }
    }

    /// Those of a log, by the digest of its first turn; none while it is empty.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn of_log(reader: &dyn Queries) -> Result<Option<TraceIds>, StoreError> {
        let first = reader.turns(PageRequest::oldest(1))?.rows.into_iter().next();
        Ok(first.map(|turn| TraceIds::new(&turn.digest.to_string())))
    }

    /// The trace of a slot, and of all its runs; of a step, that of the run of its flow.
    #[must_use]
    pub fn of_slot(&self, slot: &SlotRef) -> String {
        let root = SlotRef::new(slot.workflow.clone(), slot.key.of_run());
        hex(self.digest("trace", &root.to_string()).get(..16))
    }

    /// The span of a slot from when it was opened, at a position of the log, until its end.
    #[must_use]
    pub fn span_of_slot(&self, slot: &SlotRef, opened: u64) -> String {
        hex(self.digest("slot", &format!("{slot} {opened}")).get(..8))
    }

    /// The span of a run.
    #[must_use]
    pub fn span_of_run(&self, run: &RunId) -> String {
        hex(self.digest("run", &run.to_string()).get(..8))
    }

    /// The header and the variable that tells the job of a run in which span it is.
    #[must_use]
    pub fn traceparent(&self, run: &RunId) -> String {
        format!("00-{}-{}-01", self.of_slot(&run.slot), self.span_of_run(run))
    }

    /// Sixteen bytes by which events of lineage know a run.
    #[must_use]
    pub fn of_lineage(&self, run: &RunId) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(self.digest("lineage", &run.to_string())).for_each(|(to, from)| *to = from);
        bytes
    }

    fn digest(&self, kind: &str, name: &str) -> [u8; 32] {
        let mut hash = Sha256::new();
        // The lengths keep the parts apart, whatever is in them.
        for part in [&*self.log, kind, name] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hash.finalize().into()
    }
}

fn hex(bytes: Option<&[u8]>) -> String {
    bytes.unwrap_or_default().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The ids of the log that an engine writes, once it has a turn.
#[derive(Default)]
pub(crate) struct OwnTraces(OnceLock<TraceIds>);

impl OwnTraces {
    /// The context for a run, which the log has. A store that can't be read now leaves the run without one.
    pub(crate) fn parent(&self, reader: &dyn Queries, run: &RunId) -> Option<String> {
        if self.0.get().is_none()
            && let Ok(Some(ids)) = TraceIds::of_log(reader)
        {
            let _ = self.0.set(ids);
        }
        Some(self.0.get()?.traceparent(run))
    }
}

#[cfg(test)]
mod tests {
    use kelos_model::WorkflowId;

    use super::*;

    #[test]
    fn a_run_knows_its_span_and_steps_share_the_trace_of_their_run() {
        let workflow = WorkflowId::new("reports.daily").expect("an id");
        let slot = SlotRef::at(workflow.clone(), "2026-03-01T00:00Z".parse().expect("a time"));
        let ids = TraceIds::new("a log");
        let run = RunId { slot: slot.clone(), number: 3 };
        let parent = ids.traceparent(&run);
        let parts: Vec<&str> = parent.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [2, 32, 16, 2], "{parent}");
        assert_eq!((parts[1], parts[2]), (&*ids.of_slot(&slot), &*ids.span_of_run(&run)));
        assert_ne!(ids.span_of_slot(&slot, 1), ids.span_of_slot(&slot, 2));
        assert_ne!(TraceIds::new("another log").of_slot(&slot), ids.of_slot(&slot));
        let flow = kelos_model::SlotKey::parse("2026-03-01T00:00Z").expect("a key");
        let step = kelos_model::StepKey::named(&flow, "load").expect("a step");
        let step = SlotRef::new(workflow, kelos_model::SlotKey::Step(step));
        assert_eq!(ids.of_slot(&step), ids.of_slot(&slot));
    }
}
