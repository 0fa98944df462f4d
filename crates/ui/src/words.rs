//! Spans, times and parts of a definition as people read them.

use jiff::Timestamp;
use kelos_model::SlotKey;
use kelos_model::retry::{Growth, MOST_AGAIN, OnUnknown, RetryPolicy};
use kelos_model::time::format_short;
use kelos_model::time::schedule::{Fold, Gap, Schedule};

use super::viewer;

pub(super) use kelos_model::time::text::{span, took};
pub(super) use kelos_model::trigger::node_words as trigger;

/// A moment in the chosen zone, with seconds if there are some, and nothing finer: `2016-01-01T12:00Z`, or `2016-01-01 13:00 CET`.
pub(super) fn moment(at: Timestamp) -> String {
    let whole = Timestamp::from_second(at.as_second()).unwrap_or(at);
    let zone = viewer::current().zone;
    if zone.name() == "UTC" {
        return format_short(whole);
    }
    let form = if whole.as_second() % 60 == 0 { "%Y-%m-%d %H:%M %Z" } else { "%Y-%m-%d %H:%M:%S %Z" };
    whole.to_zoned(zone.rules().clone()).strftime(form).to_string()
}

/// The time of day in the chosen zone, to the millisecond: `13:00:07.250`.
pub(super) fn clock(at: Timestamp) -> String {
    at.to_zoned(viewer::current().zone.rules().clone()).strftime("%H:%M:%S%.3f").to_string()
}

/// The key of a slot: its time to the second, or its id.
pub(super) fn key(key: &SlotKey) -> String {
    key.time().map_or_else(|| key.short(), moment)
}

/// `1 slot`, `2 slots`.
pub(super) fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// How long ago a moment is: `3 h 20 min ago`.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> String {
    match now.as_second() - at.as_second() {
        seconds if seconds < 1 => "just now".to_owned(),
        seconds => format!("{} ago", span(seconds)),
    }
}

/// How long it is until a moment: `in 5 min`.
pub(super) fn ahead(at: Timestamp, now: Timestamp) -> String {
    match at.as_second() - now.as_second() {
        seconds if seconds < 1 => "now".to_owned(),
        seconds => format!("in {}", span(seconds)),
    }
}

/// The times of slots; none if they are those of another workflow, which is shown as a link.
pub(super) fn cron(schedule: &Schedule) -> Option<String> {
    let cron = match schedule {
        Schedule::Cron(cron) => cron,
        Schedule::Calendar(calendar) => return Some(format!("{calendar}, once it has ended")),
        Schedule::Dependent(_) => return None,
    };
    let mut words = format!("{} in {}", cron.cron().as_str(), cron.zone().name());
    if cron.gap() == Gap::Skip {
        words += "; times skipped by daylight saving are skipped";
    }
    if cron.effective_fold() == Fold::Both && cron.zone().name() != "UTC" {
        words += "; times repeated by daylight saving are used twice";
    }
    Some(words)
}

/// A retry policy in words.
pub(super) fn retry(policy: &RetryPolicy) -> String {
    let mut words = match policy.count {
        0 => "failed slots are not retried".to_owned(),
        count => format!("failed slots are retried up to {}, {}", times(count), wait(policy)),
    };
    match policy.on_unknown {
        OnUnknown::Retry => {}
        OnUnknown::Fail => words += "; an unknown outcome counts as a failure",
        OnUnknown::Again => {
            words += &format!("; what has an unknown outcome is done again, up to {}", times(MOST_AGAIN))
        }
    }
    words
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn wait(policy: &RetryPolicy) -> String {
    let seconds = |seconds: u64| span(i64::try_from(seconds).unwrap_or(i64::MAX));
    if policy.delay_seconds == 0 {
        return "at once".to_owned();
    }
    let mut words = format!("after {}", seconds(policy.delay_seconds));
    if policy.growth == Growth::Exponential {
        words += ", doubling each time";
    }
    if let Some(cap) = policy.cap_seconds {
        words += &format!(", {} at the most", seconds(cap));
    }
    if policy.jitter_percent > 0 {
        words += &format!(", less up to {} % by chance", policy.jitter_percent);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_the_most() {
        let told: Vec<String> = [0, 45, 60, 200, 7500, 86_400, 273_661, -90].into_iter().map(span).collect();
        assert_eq!(told, ["0 s", "45 s", "1 min", "3 min 20 s", "2 h 5 min", "1 d", "3 d 4 h", "-1 min 30 s"]);
    }

    #[test]
    fn short_runs_are_told_to_the_tenth() {
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        assert_eq!(took(at(0), at(1_250)), "1.2 s");
        assert_eq!(took(at(0), at(61_000)), "1 min 1 s");
        assert_eq!(took(at(1_000), at(0)), "-1 s", "a clock that was put back");
    }

    #[test]
    fn retry_policies() {
        let policy = RetryPolicy { count: 3, delay_seconds: 60, growth: Growth::Exponential, ..RetryPolicy::default() };
        assert_eq!(retry(&RetryPolicy::default()), "failed slots are not retried");
        assert_eq!(retry(&RetryPolicy::immediate(1)), "failed slots are retried up to once, at once");
        let again = RetryPolicy { on_unknown: OnUnknown::Again, ..RetryPolicy::default() };
        let words = "failed slots are not retried; what has an unknown outcome is done again, up to 3 times";
        assert_eq!(retry(&again), words);
        assert_eq!(retry(&policy), "failed slots are retried up to 3 times, after 1 min, doubling each time");
    }
}
