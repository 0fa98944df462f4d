//! Moments in whole milliseconds: the resolution of keys and of the clock.

use jiff::{SignedDuration, Timestamp};

/// The shortest step of time keys.
pub(crate) const TICK: SignedDuration = SignedDuration::from_millis(1);

/// A moment in whole milliseconds; none if it has a fraction, which no key of a person or a schedule has.
pub(crate) fn millis(at: Timestamp) -> Option<i64> {
    (at.subsec_nanosecond() % 1_000_000 == 0).then(|| at.as_millisecond())
}

/// The moment of a number of milliseconds.
pub(crate) fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}
