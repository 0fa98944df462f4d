//! Durations that are counted by range. Written by one thread, read by anybody, and neither ever waits for the other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the ranges in which durations are counted, in seconds; one more range has what is longer.
pub const BOUNDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// Durations that were counted by range.
#[derive(Debug, Default)]
pub struct Durations {
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

/// Durations at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CountedDurations {
    /// Their number in each range of [`BOUNDS`], each counted in one range; the last has those that were longer.
    pub counts: [u64; BOUNDS.len() + 1],
    /// Their sum.
    pub sum: Duration,
}

impl Durations {
    /// Counts one.
    pub fn add(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let range = BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.counts.get(range) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Those that were counted by now.
    #[must_use]
    pub fn now(&self) -> CountedDurations {
        let counts = std::array::from_fn(|range| self.counts[range].load(Ordering::Relaxed));
        CountedDurations { counts, sum: Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_range_that_ends_with_it() {
        let durations = Durations::default();
        for micros in [0, 500, 501, 5_000_000, 5_000_001] {
            durations.add(Duration::from_micros(micros));
        }
        let CountedDurations { counts, sum } = durations.now();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(sum, Duration::from_micros(10_001_002));
    }
}
