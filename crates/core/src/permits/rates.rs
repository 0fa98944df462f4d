//! Buckets of tokens: how many are there at a moment, and when more come.
//!
//! A bucket is one moment: the one at which it is full again. Tokens come at an even pace, so that says it all; what is taken moves the moment on.

use jiff::{SignedDuration, Timestamp};
use kelos_model::TokenRate;

/// A bucket of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bucket {
    /// The moment at which it is full again, to the nanosecond.
    pub(super) full_at: Timestamp,
}

impl Default for Bucket {
    fn default() -> Bucket {
        Bucket { full_at: Timestamp::MIN }
    }
}

impl Bucket {
    /// The number of whole tokens.
    pub(super) fn tokens(self, rate: &TokenRate, now: Timestamp) -> u32 {
        let gap = u128::try_from(self.full_at.duration_since(now).as_nanos()).unwrap_or(0);
        let missing = u32::try_from(gap.div_ceil(rate.interval().max(1))).unwrap_or(u32::MAX);
        rate.burst.saturating_sub(missing)
    }

    /// Takes tokens out.
    pub(super) fn take(&mut self, rate: &TokenRate, now: Timestamp, tokens: u32) {
        self.full_at = later(self.full_at.max(now), rate, tokens);
    }

    /// The first whole millisecond at which it has so many tokens.
    pub(super) fn moment_of(self, rate: &TokenRate, tokens: u32) -> Timestamp {
        let at = sooner(self.full_at, rate, rate.burst.saturating_sub(tokens));
        let rest = at.subsec_nanosecond().rem_euclid(1_000_000);
        match rest {
            0 => at,
            rest => at.checked_add(SignedDuration::from_nanos(i64::from(1_000_000 - rest))).unwrap_or(Timestamp::MAX),
        }
    }

    /// Has it be empty at worst: a slower rate, or a clock that was put back, leaves no debt.
    pub(super) fn forgive(&mut self, rate: &TokenRate, now: Timestamp) {
        self.full_at = self.full_at.min(later(now, rate, rate.burst));
    }
}

/// The moment that is so many tokens later.
fn later(from: Timestamp, rate: &TokenRate, tokens: u32) -> Timestamp {
    from.checked_add(time_of(rate, tokens)).unwrap_or(Timestamp::MAX)
}

fn sooner(from: Timestamp, rate: &TokenRate, tokens: u32) -> Timestamp {
    from.checked_sub(time_of(rate, tokens)).unwrap_or(Timestamp::MIN)
}

fn time_of(rate: &TokenRate, tokens: u32) -> SignedDuration {
    const SECOND: u128 = 1_000_000_000;
    let nanos = rate.interval().saturating_mul(u128::from(tokens));
    let seconds = i64::try_from(nanos / SECOND).unwrap_or(i64::MAX);
    SignedDuration::new(seconds, i32::try_from(nanos % SECOND).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: TokenRate = TokenRate { tokens: 3, millis: 1000, burst: 2 };

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn tokens_come_at_an_even_pace_up_to_the_burst() {
        let mut bucket = Bucket::default();
        assert_eq!(bucket.tokens(&RATE, at(0)), 2);
        bucket.take(&RATE, at(0), 2);
        assert_eq!(bucket.tokens(&RATE, at(333)), 0);
        assert_eq!(bucket.moment_of(&RATE, 1), at(334));
        assert_eq!(bucket.tokens(&RATE, at(334)), 1);
        assert_eq!(bucket.tokens(&RATE, at(9999)), 2);
    }

    #[test]
    fn a_rate_is_kept_over_many_tokens() {
        let rate = TokenRate { tokens: 3000, millis: 1000, burst: 1 };
        let (mut bucket, mut now, mut taken) = (Bucket::default(), at(0), 0);
        while now < at(10_000) {
            while bucket.tokens(&rate, now) > 0 {
                bucket.take(&rate, now, 1);
                taken += 1;
            }
            now = bucket.moment_of(&rate, 1);
        }
        // One token adds up, so at most one is taken in a millisecond.
        assert_eq!(taken, 10_000);
    }

    #[test]
    fn a_clock_that_was_put_back_leaves_no_debt() {
        let mut bucket = Bucket::default();
        bucket.take(&RATE, at(3_600_000), 2);
        bucket.forgive(&RATE, at(0));
        assert_eq!(bucket.tokens(&RATE, at(0)), 0);
        assert_eq!(bucket.tokens(&RATE, at(668)), 2);
    }

    #[test]
    fn the_slowest_rate_does_not_overflow() {
        let rate = TokenRate { tokens: 1, millis: TokenRate::LONGEST, burst: TokenRate::LARGEST_BURST };
        let mut bucket = Bucket::default();
        bucket.take(&rate, at(0), TokenRate::LARGEST_BURST);
        assert_eq!(bucket.full_at, Timestamp::MAX);
        bucket.forgive(&rate, at(0));
    }
}
