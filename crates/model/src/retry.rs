//! How often a failed slot is tried again, and after what wait.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::run::{FailureCode, Outcome};

/// The growth of the wait from one retry to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Growth {
    /// The same wait each time.
    #[default]
    Fixed,
    /// Twice the wait before.
    Exponential,
}

/// The treatment of a slot whose run ended with an unknown outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnknown {
    /// It counts as a failed attempt: it is tried again while retries are left.
    #[default]
    Retry,
    /// The slot fails at once and waits for a person, because running twice would do harm.
    Fail,
    /// It is done again, [`MOST_AGAIN`] times at most, and uses up no retry; from then on it counts as a failed attempt. Only attempts that
    /// are known to have ended are unknown; one that may still be running is lost.
    Again,
}

/// How often attempts with an unknown outcome are done again between two openings of a slot.
pub const MOST_AGAIN: u32 = 3;

/// The retry policy of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryPolicy {
    /// Retries after the first attempt; 0 means one attempt.
    pub count: u32,
    /// Wait before the first retry, in seconds.
    pub delay_seconds: u64,
    /// The growth of the wait.
    pub growth: Growth,
    /// No wait is longer than this, in seconds.
    pub cap_seconds: Option<u64>,
    /// Up to this share of the wait, in percent, is taken off by a draw that the run's id seeds, so
    /// that many slots that failed together don't come back together.
    pub jitter_percent: u8,
    /// The treatment of an unknown outcome.
    pub on_unknown: OnUnknown,
}

impl RetryPolicy {
    /// Whether no attempt follows one that ended so, however many are left: the job may still be running, or have been done.
    #[must_use]
    pub fn gives_up(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Lost { .. } => true,
            // The next would be given the same.
            Outcome::Refused { code: Some(code), .. } => *code == FailureCode::ARGUMENTS_TOO_LARGE,
            Outcome::Failed { code: Some(code), .. } => *code == FailureCode::FINAL,
            Outcome::Unknown { .. } => self.on_unknown == OnUnknown::Fail,
            _ => false,
        }
    }

    /// The number of times for which a slot is done again with this end, given how often it has been since it was opened; none where the
    /// attempt counts as failed.
    #[must_use]
    pub fn done_again(&self, outcome: &Outcome, before: u32) -> Option<u32> {
        let is_unknown = matches!(outcome, Outcome::Unknown { .. });
        let is_allowed = self.on_unknown == OnUnknown::Again && before < MOST_AGAIN;
        (is_unknown && is_allowed).then_some(before + 1)
    }

    /// A policy of `count` immediate retries, which is what Celos's `maxRetryCount` means.
    #[must_use]
    pub fn immediate(count: u32) -> Self {
        Self { count, ..Self::default() }
    }

    /// When retry number `retry` (from 1) of a run that ended at `ended` is due. `seed` decides the jitter.
    #[must_use]
    pub fn due(&self, retry: u32, ended: Timestamp, seed: u64) -> Timestamp {
        let wait = self.wait_millis(retry, seed);
        let wait = SignedDuration::from_millis(i64::try_from(wait).unwrap_or(i64::MAX));
        ended.checked_add(wait).unwrap_or(Timestamp::MAX)
    }

    fn wait_millis(&self, retry: u32, seed: u64) -> u64 {
        let factor = match self.growth {
            Growth::Fixed => 1,
            Growth::Exponential => 1_u64.checked_shl(retry.saturating_sub(1)).unwrap_or(u64::MAX),
        };
        let seconds = self.delay_seconds.saturating_mul(factor);
        let seconds = self.cap_seconds.map_or(seconds, |cap| seconds.min(cap));
        let whole = seconds.saturating_mul(1000);
        let span = whole / 100 * u64::from(self.jitter_percent.min(100));
        if span == 0 { whole } else { whole - scramble(seed ^ u64::from(retry)) % (span + 1) }
    }
}

/// A fixed bijection of 64 bits (splitmix64's finaliser): a draw without a generator's state.
#[must_use]
pub fn scramble(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(policy: RetryPolicy, retry: u32) -> i64 {
        (policy.due(retry, Timestamp::UNIX_EPOCH, 7)).as_millisecond()
    }

    #[test]
    fn exponential_waits_double_up_to_the_cap() {
        let policy = RetryPolicy {
            count: 9,
            delay_seconds: 10,
            growth: Growth::Exponential,
            cap_seconds: Some(60),
            ..RetryPolicy::default()
        };
        assert_eq!([1, 2, 3, 4, 64, 65].map(|n| wait(policy, n)), [10_000, 20_000, 40_000, 60_000, 60_000, 60_000]);
    }

    #[test]
    fn what_is_unknown_is_done_again_three_times_and_nothing_else_is() {
        let (unknown, lost) = (Outcome::Unknown { reason: "?".to_owned() }, Outcome::Lost { reason: "?".to_owned() });
        let policy = RetryPolicy { on_unknown: OnUnknown::Again, ..RetryPolicy::default() };
        assert_eq!(
            [0, 1, 2, 3, 4].map(|before| policy.done_again(&unknown, before)),
            [Some(1), Some(2), Some(3), None, None]
        );
        for outcome in [lost, Outcome::Killed, Outcome::refused("no")] {
            assert_eq!(policy.done_again(&outcome, 0), None, "{outcome}");
        }
        for on_unknown in [OnUnknown::Retry, OnUnknown::Fail] {
            assert_eq!(RetryPolicy { on_unknown, ..policy }.done_again(&unknown, 0), None, "{on_unknown:?}");
        }
    }

    #[test]
    fn jitter_takes_off_at_most_its_share_and_is_the_same_for_the_same_seed() {
        let policy = RetryPolicy { count: 1, delay_seconds: 100, jitter_percent: 20, ..RetryPolicy::default() };
        for seed in 0..1000 {
            let due = policy.due(1, Timestamp::UNIX_EPOCH, seed).as_millisecond();
            assert!((80_000..=100_000).contains(&due), "{due}");
            assert_eq!(due, policy.due(1, Timestamp::UNIX_EPOCH, seed).as_millisecond());
        }
    }
}
