//! What is scarce: permits of a pool, and how fast they may be taken.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::id::PoolId;

/// The permits that a run takes of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolUse {
    /// The pool.
    pub pool: PoolId,
    /// How many permits it has, as this definition has it; where definitions disagree, the smallest size holds.
    pub size: u32,
    /// How many of them each run takes.
    pub permits: u32,
    /// How fast permits may be taken; none where only their number is limited. Where definitions disagree, the slowest holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<TokenRate>,
}

impl PoolUse {
    /// The size of a pool that is limited by its rate alone.
    pub const BOUNDLESS: u32 = u32::MAX;

    /// The size, where it is a limit.
    #[must_use]
    pub fn limit(&self) -> Option<u32> {
        Some(self.size).filter(|size| *size != Self::BOUNDLESS)
    }

    /// The sentence about a use that can never be granted.
    #[must_use]
    pub fn flaw(&self) -> Option<String> {
        let PoolUse { pool, size, permits, rate } = self;
        if *permits == 0 {
            return Some(format!("takes no permit of \"{pool}\": expected at least one"));
        }
        if permits > size {
            return Some(format!("takes {permits} permits of \"{pool}\", which has {size}"));
        }
        let rate = rate.as_ref()?;
        rate.flaw().map(|flaw| format!("takes permits of \"{pool}\", {flaw}")).or_else(|| {
            let burst = rate.burst;
            (*permits > burst).then(|| {
                format!(
                    "takes {permits} tokens of \"{pool}\", of which at most {burst} add up: expected a larger burst"
                )
            })
        })
    }
}

/// How fast permits may be taken: each takes a token from a bucket, which fills at an even pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenRate {
    /// How many tokens come in the time.
    pub tokens: u32,
    /// The time, in milliseconds.
    pub millis: u64,
    /// How many tokens add up while nobody takes them.
    pub burst: u32,
}

impl TokenRate {
    /// The longest time: 366 days.
    pub const LONGEST: u64 = 366 * 24 * 3_600_000;
    /// The largest number of tokens that add up.
    pub const LARGEST_BURST: u32 = 1_000_000;

    /// The nanoseconds from one token to the next, rounded up.
    #[must_use]
    pub fn interval(&self) -> u128 {
        (u128::from(self.millis) * 1_000_000).div_ceil(u128::from(self.tokens.max(1)))
    }

    fn flaw(&self) -> Option<String> {
        let TokenRate { tokens, millis, burst } = self;
        match () {
            () if *tokens == 0 => Some("whose rate is zero: expected at least one token in its time".to_owned()),
            () if *millis == 0 || *millis > Self::LONGEST => {
                Some("whose rate is of no such time: expected a time from a millisecond to 366 days".to_owned())
            }
            () if *burst == 0 || *burst > Self::LARGEST_BURST => {
                Some(format!("whose burst is {burst}: expected from 1 to {}", Self::LARGEST_BURST))
            }
            () => None,
        }
    }
}

/// By speed: a slower rate is less, and of two of one speed that of the smaller burst.
impl Ord for TokenRate {
    fn cmp(&self, other: &Self) -> Ordering {
        let speed = |one: &TokenRate, other: &TokenRate| u128::from(one.tokens) * u128::from(other.millis);
        let rest = |one: &TokenRate| (one.burst, one.tokens, one.millis);
        speed(self, other).cmp(&speed(other, self)).then_with(|| rest(self).cmp(&rest(other)))
    }
}

impl PartialOrd for TokenRate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `60 in 60 s, 10 at once`
impl std::fmt::Display for TokenRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let TokenRate { tokens, millis, burst } = self;
        match millis % 1000 {
            0 => write!(f, "{tokens} in {} s", millis / 1000)?,
            _ => write!(f, "{tokens} in {millis} ms")?,
        }
        write!(f, ", {burst} at once")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(tokens: u32, millis: u64, burst: u32) -> TokenRate {
        TokenRate { tokens, millis, burst }
    }

    #[test]
    fn the_slowest_rate_comes_first() {
        let mut rates = [rate(2, 1000, 1), rate(60, 60_000, 9), rate(1, 1000, 4), rate(1, 2000, 99)];
        rates.sort();
        assert_eq!(rates, [rate(1, 2000, 99), rate(1, 1000, 4), rate(60, 60_000, 9), rate(2, 1000, 1)]);
    }

    #[test]
    fn more_than_a_thousand_a_second_are_possible() {
        assert_eq!(rate(3000, 1000, 1).interval(), 333_334);
        assert_eq!(rate(1, TokenRate::LONGEST, 1).interval(), u128::from(TokenRate::LONGEST) * 1_000_000);
    }

    #[test]
    fn what_can_never_be_granted_is_said() {
        let pool = PoolId::new("crm").unwrap();
        let flaw = |size, permits, rate| PoolUse { pool: pool.clone(), size, permits, rate }.flaw().unwrap_or_default();
        assert_eq!(flaw(2, 3, None), "takes 3 permits of \"crm\", which has 2");
        assert_eq!(
            flaw(PoolUse::BOUNDLESS, 1, Some(rate(0, 1000, 1))),
            "takes permits of \"crm\", whose rate is zero: expected at least one token in its time"
        );
        assert_eq!(
            flaw(9, 5, Some(rate(1, 1000, 4))),
            "takes 5 tokens of \"crm\", of which at most 4 add up: expected a larger burst"
        );
        assert_eq!(flaw(9, 4, Some(rate(1, 1000, 4))), "");
    }
}
