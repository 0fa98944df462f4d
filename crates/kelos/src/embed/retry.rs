//! Retries in words of code.

use std::time::Duration;

use kelos_model::RetryPolicy;
use kelos_model::retry::Growth;

/// The wait before the first retry, and the longest, where a job says nothing else.
const FIRST: Duration = Duration::from_secs(5 * 60);
const LONGEST: Duration = Duration::from_secs(6 * 3600);

/// The retries of a failed slot. By default for ever: after 5 minutes, then 10, 20 and so on, up to 6 hours.
///
/// ```
/// use std::time::Duration;
/// use kelos::embed::Retry;
///
/// let patient = Retry::exponential(Duration::from_secs(30)).at_most(Duration::from_secs(3600)).jitter(20).times(8);
/// assert_eq!(patient, Retry::exponential(Duration::from_secs(30)).times(8).jitter(20).at_most(Duration::from_secs(3600)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry(RetryPolicy);

impl Default for Retry {
    fn default() -> Self {
        Retry::exponential(FIRST).at_most(LONGEST)
    }
}

impl Retry {
    /// A wait that doubles with each retry.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kelos::embed::Retry;
    ///
    /// // After one minute, two, four and so on.
    /// let retry = Retry::exponential(Duration::from_secs(60));
    /// ```
    #[must_use]
    pub fn exponential(first: Duration) -> Retry {
        Retry(RetryPolicy { growth: Growth::Exponential, ..Retry::fixed(first).0 })
    }

    /// The same wait before each retry.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kelos::embed::Retry;
    ///
    /// let retry = Retry::fixed(Duration::from_secs(60));
    /// ```
    #[must_use]
    pub fn fixed(wait: Duration) -> Retry {
        // A wait of less than a second is one of a second: what fails at once would fail a thousand times a second.
        let delay_seconds = wait.as_secs().max(u64::from(!wait.is_zero()));
        Retry(RetryPolicy { count: u32::MAX, delay_seconds, ..RetryPolicy::default() })
    }

    /// No retry: the first failure is the end.
    ///
    /// ```
    /// let retry = kelos::embed::Retry::never();
    /// ```
    #[must_use]
    pub fn never() -> Retry {
        Retry(RetryPolicy::default())
    }

    /// No wait is longer than this.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kelos::embed::Retry;
    ///
    /// let retry = Retry::exponential(Duration::from_secs(60)).at_most(Duration::from_secs(3600));
    /// ```
    #[must_use]
    pub fn at_most(mut self, wait: Duration) -> Retry {
        self.0.cap_seconds = Some(wait.as_secs());
        self
    }

    /// Up to this share of each wait, in percent, is left out, so that many slots that failed together don't come back together.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kelos::embed::Retry;
    ///
    /// // From 48 to 60 seconds.
    /// let retry = Retry::fixed(Duration::from_secs(60)).jitter(20);
    /// ```
    #[must_use]
    pub fn jitter(mut self, percent: u8) -> Retry {
        self.0.jitter_percent = percent.min(100);
        self
    }

    /// So many retries after the first attempt, and no more.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kelos::embed::Retry;
    ///
    /// let retry = Retry::fixed(Duration::from_secs(60)).times(3);
    /// ```
    #[must_use]
    pub fn times(mut self, count: u32) -> Retry {
        self.0.count = count;
        self
    }

    pub(super) fn policy(self) -> RetryPolicy {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_that_of_cuttle_with_a_cap() {
        let policy = Retry::default().policy();
        let waits: Vec<u64> = [1, 2, 3, 8, 40].iter().map(|retry| wait(policy, *retry)).collect();
        assert_eq!(waits, [300, 600, 1200, 21_600, 21_600]);
        assert_eq!(policy.count, u32::MAX);
    }

    #[test]
    fn short_waits_are_seconds_and_none_is_none() {
        assert_eq!(wait(Retry::fixed(Duration::from_millis(10)).policy(), 1), 1);
        assert_eq!(wait(Retry::fixed(Duration::ZERO).policy(), 1), 0);
        assert_eq!(Retry::never().policy().count, 0);
    }

    fn wait(policy: RetryPolicy, retry: u32) -> u64 {
        let start = jiff::Timestamp::UNIX_EPOCH;
        policy.due(retry, start, 0).as_second().cast_unsigned()
    }
}
