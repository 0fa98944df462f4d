//! A reason as of a later moment than that at which it was stored. A look that finds no other answers leaves no line in the log;
//! what was counted, when a window opens next, and what was seen beside the answer are read from elsewhere.

use jiff::Timestamp;

use super::{Finding, Reason};
use crate::facts::{Collection, Subject};
use crate::probe::{Probe, ProbeAnswer};

impl Reason {
    /// The same with what the outside world said last, and when, where that is the same answer. No answer changes.
    #[must_use]
    pub fn with_answers(mut self, answers: &[(Probe, ProbeAnswer)]) -> Reason {
        if let Finding::ProbeAnswered { probe, verdict, detail, looked_at } = &mut self.finding
            && let Some((_, last)) = answers.iter().find(|(asked, _)| asked == probe)
            && (last.verdict == *verdict && last.at >= *looked_at)
        {
            (*detail, *looked_at) = (last.detail.clone(), last.at);
        }
        self.nested = self.nested.into_iter().map(|nested| nested.with_answers(answers)).collect();
        self
    }

    /// The same as of a moment, by what the slot has collected until then. No answer changes.
    #[must_use]
    pub fn as_of(mut self, moment: Timestamp, collected: Option<&Collection>) -> Reason {
        match &mut self.finding {
            Finding::PartitionsCounted { dataset, have, .. } => {
                let tally = collected.and_then(|collected| collected.of(&Subject::Partitions(dataset.clone())));
                *have = tally.map_or(*have, |tally| tally.count);
            }
            Finding::WindowClosed { window, opens_at, .. } if !window.is_open(moment) => {
                *opens_at = window.opens_after(moment);
            }
            _ => {}
        }
        self.nested = self.nested.into_iter().map(|nested| nested.as_of(moment, collected)).collect();
        self
    }
}
