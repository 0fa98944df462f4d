//! The time limits of a script, held against the clock of its thread and the clock on the wall.

use std::cell::Cell;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use crate::limits::Limits;

/// The end of a script's time, which the engine asks for while it runs: by what its thread has had of the processor, and by
/// the clock for the case that it gets next to nothing.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    until: Cell<Option<Instant>>,
    busy_until: Cell<Duration>,
    spare: Cell<Duration>,
    fired: Cell<bool>,
    starved: Cell<bool>,
}

impl Watch {
    /// Gives the script `time` of the processor, and what the limits allow by the clock, to the script and to the host.
    pub(crate) fn start(&self, time: Duration, limits: &Limits) {
        self.until.set(Some(Instant::now() + limits.wall()));
        self.spare.set(limits.host());
        self.go_on(time);
    }

    /// Gives the script `time` of the processor from now on.
    pub(crate) fn go_on(&self, time: Duration) {
        self.busy_until.set(processor_time() + time);
        self.fired.set(false);
    }

    /// Whether the time is over.
    pub(crate) fn is_over(&self) -> bool {
        let Some(until) = self.until.get() else { return false };
        let starved = Instant::now() >= until;
        let over = starved || processor_time() >= self.busy_until.get();
        if over {
            self.fired.set(true);
            self.starved.set(starved);
        }
        over
    }

    /// Whether a script was stopped since the start.
    pub(crate) fn fired(&self) -> bool {
        self.fired.get()
    }

    /// Whether what stopped it was the clock.
    pub(crate) fn starved(&self) -> bool {
        self.starved.get()
    }

    /// Does the host's part, whose time is not the script's, up to what is spare.
    pub(crate) fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        let (began, busy) = (Instant::now(), processor_time());
        let done = work();
        let given = began.elapsed().min(self.spare.get());
        self.spare.set(self.spare.get() - given);
        self.until.set(self.until.get().map(|until| until + given));
        let used = processor_time().saturating_sub(busy).min(given);
        self.busy_until.set(self.busy_until.get() + used);
        done
    }
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    // It can't fail for the thread that asks; the clock still stops a script if it does.
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(wall_millis: u64) -> Limits {
        Limits { wall_millis, ..Limits::default() }
    }

    #[test]
    fn a_script_that_gets_no_processor_keeps_its_time() {
        let watch = Watch::default();
        watch.start(Duration::from_millis(500), &limits(600_000));
        // Nothing arrives: the thread sleeps while the clock runs.
        let (_open, nothing) = std::sync::mpsc::channel::<()>();
        assert!(nothing.recv_timeout(Duration::from_millis(600)).is_err());
        assert!(!watch.is_over() && !watch.fired());
        while !watch.is_over() {}
        assert!(watch.fired() && !watch.starved());
    }

    #[test]
    fn the_clock_ends_what_never_gets_its_share() {
        let watch = Watch::default();
        watch.start(Duration::from_secs(60), &limits(0));
        assert!(watch.is_over() && watch.fired() && watch.starved());
    }
}
