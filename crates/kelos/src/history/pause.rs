//! Pauses between the small portions of a look, so that it is in nobody's way.

use std::time::{Duration, Instant};

/// The longest portion without a pause.
const PORTION: Duration = Duration::from_millis(10);
/// A pause is so many times as long as the portion before it.
const REST: u32 = 4;
/// The longest pause.
const LONGEST: Duration = Duration::from_millis(500);

/// Pauses between portions.
pub(super) struct Pause {
    began: Instant,
}

impl Default for Pause {
    fn default() -> Pause {
        Pause { began: Instant::now() }
    }
}

impl Pause {
    /// Waits if a portion is done.
    pub(super) fn take(&mut self) {
        let worked = self.began.elapsed();
        if worked >= PORTION {
            std::thread::sleep((worked * REST).min(LONGEST));
            self.began = Instant::now();
        }
    }
}
