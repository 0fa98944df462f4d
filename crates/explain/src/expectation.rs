//! When a slot is expected to end, and the comparison with its deadline in words. [`forecast`](crate::forecast) computes it.

use jiff::Timestamp;
use kelos_model::SlotRef;
use kelos_model::time::text;

pub use crate::run_times::RunTimes;

/// When a slot is expected to end, and what decides it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The end, if all runs take as long as they do as a rule.
    pub end: Timestamp,
    /// The end, if they all take as long as only one in ten does.
    pub latest: Timestamp,
    /// The slot on the way whose run takes longest; maybe the slot itself.
    pub decided_by: SlotRef,
    /// The durations of its workflow's runs.
    pub takes: RunTimes,
}

impl Expectation {
    /// Compares it with a deadline, in words: `will be late: expected 07:52, deadline 07:30; decided by …`.
    #[must_use]
    pub fn words(&self, deadline: Timestamp, is_late: bool) -> String {
        let [end, latest] = [self.end, self.latest].map(text::format_short);
        let deadline_words = text::format_short(deadline);
        let RunTimes { median, runs, .. } = self.takes;
        let took = text::took(Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH + median);
        let decides = format!("decided by {}, which takes {took} as a rule ({runs} runs)", self.decided_by.short());
        if is_late {
            format!("expected {end}; {decides}")
        } else if self.end > deadline {
            format!("will be late: expected {end}, deadline {deadline_words}; {decides}")
        } else if self.latest > deadline {
            format!(
                "may be late: expected {end}, but {latest} in one of ten cases, deadline {deadline_words}; {decides}"
            )
        } else {
            format!("expected {end}, deadline {deadline_words}; {decides}")
        }
    }
}
