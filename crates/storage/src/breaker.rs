//! The circuit breaker: when calls to a failing server stop, and when it is tried again.
//!
//! Absent: clocks, waiting, calls. Moments come in, answers go out.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::StorageError;

/// How many failures in a row open the breaker of an endpoint.
pub(crate) const FAILURES: u32 = 3;
/// The first pause of a broken endpoint. It doubles with each trial that fails.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause of a broken endpoint.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A moment on both clocks: one for arithmetic, one for display.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) instant: Instant,
    pub(crate) time: Timestamp,
}

/// The answer to a caller who is about to make a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Make it.
    Call,
    /// Make it as the trial that decides about all others; its end must be reported by `trial_ended`.
    Trial,
    /// Don't make it.
    Refused(Outage),
}

/// The outage of a broken endpoint, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outage {
    pub(crate) since: Timestamp,
    pub(crate) cause: String,
    pub(crate) next_try: Duration,
    /// How long it might have been tried, and nobody did.
    pub(crate) idle: Duration,
}

/// The breaker of one endpoint.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    failures: u32,
    /// The first failure of those in a row, and the message of the last one.
    failing: Option<(Timestamp, String)>,
    pause: Option<Pause>,
}

#[derive(Debug)]
struct Pause {
    length: Duration,
    ends: Instant,
    trial_under_way: bool,
}

impl Breaker {
    /// Whether a call may be made.
    pub(crate) fn admit(&mut self, now: Moment) -> Admission {
        if let Some(trouble) = self.trouble(now) {
            return Admission::Refused(trouble);
        }
        match &mut self.pause {
            Some(pause) => {
                pause.trial_under_way = true;
                Admission::Trial
            }
            None => Admission::Call,
        }
    }

    /// The outage for which a call would be refused now.
    pub(crate) fn trouble(&self, now: Moment) -> Option<Outage> {
        let pause = self.pause.as_ref()?;
        if now.instant >= pause.ends && !pause.trial_under_way { None } else { self.state(now) }
    }

    /// The outage while the endpoint is broken, whether a trial is due or not.
    pub(crate) fn state(&self, now: Moment) -> Option<Outage> {
        let (pause, (since, cause)) = (self.pause.as_ref()?, self.failing.as_ref()?);
        let next_try = pause.ends.saturating_duration_since(now.instant);
        let idle =
            if pause.trial_under_way { Duration::ZERO } else { now.instant.saturating_duration_since(pause.ends) };
        Some(Outage { since: *since, cause: cause.clone(), next_try, idle })
    }

    /// Records an answer to a call, whatever it was: the endpoint is well.
    pub(crate) fn answered(&mut self) {
        *self = Self::default();
    }

    /// Records the failure of a call for a reason that any other call would have failed for.
    pub(crate) fn failed(&mut self, now: Moment, error: &StorageError, was_trial: bool) {
        // A call from before it broke adds nothing.
        if self.pause.is_some() && !was_trial {
            return;
        }
        let since = self.failing.as_ref().map_or_else(|| whole_seconds(now.time), |(since, _)| *since);
        self.failing = Some((since, error.cause()));
        self.failures = self.failures.saturating_add(1);
        if self.failures < FAILURES {
            return;
        }
        let length = self.pause.as_ref().map_or(FIRST_PAUSE, |last| (last.length * 2).min(LONGEST_PAUSE));
        self.pause = Some(Pause { length, ends: now.instant + length, trial_under_way: false });
    }

    /// Records a trial that its caller gave up; the next call may be a trial at once.
    pub(crate) fn trial_abandoned(&mut self) {
        if let Some(pause) = &mut self.pause {
            pause.trial_under_way = false;
        }
    }
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        start: Instant,
        breaker: Breaker,
    }

    impl Scene {
        fn new() -> Self {
            Self { start: Instant::now(), breaker: Breaker::default() }
        }

        fn at(&self, seconds: u64) -> Moment {
            let time = Timestamp::from_second(1_800_000_000 + i64::try_from(seconds).unwrap()).unwrap();
            Moment { instant: self.start + Duration::from_secs(seconds), time }
        }

        fn fail(&mut self, seconds: u64, was_trial: bool) {
            let refused = StorageError::Unreachable { endpoint: "e".into(), detail: "connection refused".into() };
            let now = self.at(seconds);
            self.breaker.failed(now, &refused, was_trial);
        }

        fn admit(&mut self, seconds: u64) -> Admission {
            let now = self.at(seconds);
            self.breaker.admit(now)
        }

        fn broken_at(seconds: u64) -> Self {
            let mut scene = Self::new();
            (0..FAILURES).for_each(|_| scene.fail(seconds, false));
            scene
        }
    }

    #[test]
    fn breaks_after_failures_in_a_row_only() {
        let mut scene = Scene::new();
        scene.fail(0, false);
        scene.fail(0, false);
        scene.breaker.answered();
        scene.fail(1, false);
        scene.fail(1, false);
        assert_eq!(scene.admit(1), Admission::Call);
        scene.fail(2, false);
        assert!(matches!(scene.admit(2), Admission::Refused(_)));
    }

    #[test]
    fn tells_since_when_and_what_and_when_it_goes_on() {
        let mut scene = Scene::new();
        (5..8).for_each(|at| scene.fail(at, false));
        let told = Outage {
            since: scene.at(5).time,
            cause: "connection refused".to_owned(),
            next_try: Duration::from_secs(1),
            idle: Duration::ZERO,
        };
        assert_eq!(scene.admit(7), Admission::Refused(told));
        let idle = |scene: &Scene, seconds: u64| scene.breaker.state(scene.at(seconds)).unwrap().idle.as_secs();
        assert_eq!((idle(&scene, 8), idle(&scene, 108)), (0, 100));
        assert_eq!(scene.admit(108), Admission::Trial);
        assert_eq!(idle(&scene, 118), 0, "it is tried");
    }

    #[test]
    fn one_trial_at_a_time_and_ever_longer_pauses() {
        let mut scene = Scene::broken_at(0);
        let (mut now, mut pauses) = (1, Vec::new());
        for _ in 0..8 {
            assert_eq!(scene.admit(now), Admission::Trial);
            assert!(matches!(scene.admit(now), Admission::Refused(_)), "a second trial");
            scene.fail(now, true);
            let pause = scene.breaker.state(scene.at(now)).unwrap().next_try.as_secs();
            pauses.push(pause);
            now += pause;
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn a_trial_that_is_answered_closes_it() {
        let mut scene = Scene::broken_at(0);
        assert_eq!(scene.admit(1), Admission::Trial);
        scene.breaker.answered();
        assert_eq!(scene.admit(1), Admission::Call);
        assert!(scene.breaker.state(scene.at(1)).is_none());
    }

    #[test]
    fn calls_from_before_do_not_lengthen_the_pause() {
        let mut scene = Scene::broken_at(0);
        (0..20).for_each(|_| scene.fail(0, false));
        assert_eq!(scene.admit(1), Admission::Trial);
    }

    #[test]
    fn an_abandoned_trial_makes_place_for_another() {
        let mut scene = Scene::broken_at(0);
        assert_eq!(scene.admit(1), Admission::Trial);
        scene.breaker.trial_abandoned();
        assert_eq!(scene.admit(1), Admission::Trial);
    }
}
