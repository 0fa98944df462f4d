//! A window of the day, in a zone; it may reach over midnight.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::civil::Time;
use jiff::{SignedDuration, Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::zone::Zone;

/// An opening comes within so many days: clocks may leave it out on one, and at the date line a day is left out.
const DAYS_TO_LOOK: usize = 4;

/// The hours of each day from a time on, inclusive, until another, exclusive. To the minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WindowParts", into = "WindowParts")]
pub struct Window {
    start: DayTime,
    end: DayTime,
    zone: Zone,
}

#[derive(Serialize, Deserialize)]
struct WindowParts {
    start: String,
    end: String,
    #[serde(default)]
    zone: Zone,
}

/// A time of the day, with the text that it was given as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DayTime {
    text: Arc<str>,
    minute: i32,
}

/// The reason that a window is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// Not a time of the day.
    #[error("\"{text}\" is not a time of the day: expected HH:mm, from 00:00 to 23:59")]
    Time {
        /// The text as given.
        text: String,
    },
    /// It would never be open, or always.
    #[error("the window starts and ends at {text}: expected two different times")]
    Empty {
        /// The time as given.
        text: String,
    },
}

impl DayTime {
    /// The text that it was given as.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The time of the day.
    pub(crate) fn civil(&self) -> Option<Time> {
        let (hour, minute) = (self.minute / 60, self.minute % 60);
        Time::new(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0).ok()
    }
}

impl FromStr for DayTime {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<DayTime, WindowError> {
        let wrong = || WindowError::Time { text: text.to_owned() };
        let (hour, minute) = text.split_once(':').ok_or_else(wrong)?;
        let number = |text: &str, longest: usize, limit: i32| {
            let digits = !text.is_empty() && text.len() <= longest && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<i32>().ok().filter(|number| digits && *number < limit)
        };
        let hour = number(hour, 2, 24).ok_or_else(wrong)?;
        let minute = number(minute, 2, 60).filter(|_| minute.len() == 2).ok_or_else(wrong)?;
        Ok(DayTime { text: text.into(), minute: hour * 60 + minute })
    }
}

impl Window {
    /// A window from a time until another: `22:00` until `06:00`.
    ///
    /// # Errors
    /// When one of them is no time of the day, or both are the same.
    pub fn new(start: &str, end: &str, zone: Zone) -> Result<Window, WindowError> {
        let window = Window { start: start.parse()?, end: end.parse()?, zone };
        if window.start.minute == window.end.minute {
            return Err(WindowError::Empty { text: start.to_owned() });
        }
        Ok(window)
    }

    /// When it opens, as it was given.
    #[must_use]
    pub fn start(&self) -> &str {
        &self.start.text
    }

    /// When it closes, as it was given.
    #[must_use]
    pub fn end(&self) -> &str {
        &self.end.text
    }

    /// Its zone.
    #[must_use]
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Whether it is open at a moment.
    #[must_use]
    pub fn is_open(&self, at: Timestamp) -> bool {
        let clock = self.zone.rules().to_datetime(at);
        let minute = i32::from(clock.hour()) * 60 + i32::from(clock.minute());
        let (start, end) = (self.start.minute, self.end.minute);
        if start < end { start <= minute && minute < end } else { minute >= start || minute < end }
    }

    /// The first moment after another, at which it is closed, at which it is open: its clock says the opening time, or is put
    /// forward or back into the window. A day on which clocks leave out the whole window has no opening.
    #[must_use]
    pub fn opens_after(&self, closed: Timestamp) -> Option<Timestamp> {
        let rules = self.zone.rules();
        let today = rules.to_datetime(closed).date();
        let days = today.series(Span::new().days(1)).take(DAYS_TO_LOOK);
        let by_clock = days.filter_map(|day| Some(rules.to_ambiguous_timestamp(day.to_datetime(self.start.civil()?))));
        // Where clocks are put back, it says the time twice.
        let by_clock = by_clock.flat_map(|opening| [opening.earlier().ok(), opening.later().ok()]).flatten();
        let latest = closed.checked_add(SignedDuration::from_hours(24 * DAYS_TO_LOOK as i64)).ok()?;
        let changes = rules.following(closed).map(|change| change.timestamp()).take_while(|at| *at <= latest);
        by_clock.chain(changes).filter(|at| *at > closed && self.is_open(*at)).min()
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{} {}", self.start.text, self.end.text, self.zone)
    }
}

impl TryFrom<WindowParts> for Window {
    type Error = WindowError;
    fn try_from(parts: WindowParts) -> Result<Window, WindowError> {
        Window::new(&parts.start, &parts.end, parts.zone)
    }
}

impl From<Window> for WindowParts {
    fn from(window: Window) -> WindowParts {
        WindowParts { start: window.start.text.to_string(), end: window.end.text.to_string(), zone: window.zone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacific(start: &str, end: &str) -> Window {
        Window::new(start, end, Zone::parse("PST").expect("a zone")).expect("a window")
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).expect("an instant")
    }

    fn wait_minutes(window: &Window, millis: i64) -> Option<i64> {
        let now = at(millis);
        (!window.is_open(now))
            .then(|| (window.opens_after(now).expect("an opening").as_millisecond() - millis) / 60_000)
    }

    const AT_15_24: i64 = 1_494_368_640_000;
    const AT_17_00: i64 = 1_494_374_400_000;
    const AT_05_00: i64 = 1_494_331_200_000;
    const HOUR: i64 = 3_600_000;

    #[test]
    fn vectors_of_the_reference_within_a_day() {
        let window = pacific("16:00", "17:00");
        assert_eq!(wait_minutes(&window, AT_15_24), Some(36));
        let just_before = at(AT_17_00 - HOUR - 1);
        assert!(!window.is_open(just_before));
        assert_eq!(window.opens_after(just_before), Some(at(AT_17_00 - HOUR)));
        assert_eq!(wait_minutes(&window, AT_17_00 - HOUR), None);
        assert_eq!(wait_minutes(&window, AT_17_00), Some(23 * 60));
    }

    #[test]
    fn vectors_of_the_reference_over_midnight() {
        let window = pacific("22:00", "06:00");
        assert_eq!(wait_minutes(&window, AT_15_24), Some(6 * 60 + 36));
        assert_eq!(wait_minutes(&window, AT_17_00 + 5 * HOUR), None);
        assert_eq!(wait_minutes(&window, AT_17_00), Some(5 * 60));
        assert_eq!(wait_minutes(&window, AT_05_00), None);
        assert_eq!(wait_minutes(&window, AT_05_00 + HOUR), Some(16 * 60));
        assert_eq!(wait_minutes(&window, AT_05_00 + 2 * HOUR), Some(15 * 60));
    }

    #[test]
    fn odd_windows_are_refused() {
        let message = |start, end| Window::new(start, end, Zone::utc()).expect_err("no window").to_string();
        assert_eq!(message("06:00", "6:00"), "the window starts and ends at 06:00: expected two different times");
        for odd in ["25:00", "10:75", "10:5", "10:05x", "", "10", "-1:00", "010:00"] {
            assert!(message(odd, "06:00").contains("expected HH:mm"), "{odd}");
        }
        assert_eq!(Window::new("3:17", "06:00", Zone::utc()).expect("a window").start(), "3:17");
    }

    fn berlin(start: &str, end: &str) -> Window {
        Window::new(start, end, Zone::parse("Europe/Berlin").expect("a zone")).expect("a window")
    }

    fn instant(text: &str) -> Timestamp {
        text.parse().expect("an instant")
    }

    #[test]
    fn an_opening_that_clocks_leave_out_comes_when_they_are_put_forward() {
        // On 2021-03-28 clocks in Berlin go from 02:00 to 03:00.
        let night = instant("2021-03-28T00:00Z");
        assert_eq!(berlin("02:30", "04:00").opens_after(night), Some(instant("2021-03-28T01:00Z")));
        assert_eq!(berlin("02:30", "02:50").opens_after(night), Some(instant("2021-03-29T00:30Z")));
    }

    #[test]
    fn clocks_that_are_put_back_open_a_window_twice() {
        // On 2021-10-31 clocks in Berlin go from 03:00 to 02:00.
        let window = berlin("02:15", "02:45");
        let first = instant("2021-10-31T00:15Z");
        assert_eq!(window.opens_after(first - SignedDuration::from_mins(1)), Some(first));
        assert_eq!(window.opens_after(instant("2021-10-31T00:45Z")), Some(instant("2021-10-31T01:15Z")));
        assert_eq!(
            berlin("01:00", "02:30").opens_after(instant("2021-10-31T00:30Z")),
            Some(instant("2021-10-31T01:00Z"))
        );
    }

    #[test]
    fn an_opening_is_the_first_moment_at_which_it_is_open() {
        for window in [berlin("02:30", "04:00"), berlin("22:00", "02:10"), berlin("02:10", "02:50")] {
            for start in ["2021-03-27T20:00Z", "2021-10-30T20:00Z"] {
                let mut opens = None;
                for minute in (0..48 * 60).rev() {
                    let now = instant(start) + SignedDuration::from_mins(minute);
                    if window.is_open(now) {
                        opens = Some(now);
                    } else if opens.is_some() {
                        assert_eq!(window.opens_after(now), opens, "{window} at {now}");
                    }
                }
            }
        }
    }
}
