//! A stretch of time that a page shows, from its address: so many hours that follow the clock, or from one moment to another.

use jiff::civil::{Date, Time};
use jiff::{SignedDuration, Timestamp, ToSpan};
use kelos_front::fault::{Fault, plain};
use kelos_model::ranges::Range;
use kelos_model::time::{Zone, format_full, format_short};

use crate::asked;
use crate::viewer;

/// Shortest window, in milliseconds.
pub(super) const SHORTEST: i64 = 10_000;
/// Marks over the window at the most.
const MOST_MARKS: i64 = 12;
const MINUTE: i64 = 60_000;
const DAY: i64 = 1440 * MINUTE;
/// Distances of marks within days, in minutes.
const STEPS: [i64; 8] = [1, 5, 15, 30, 60, 180, 360, 720];
/// Distances of marks, in days.
const DAYS: [i64; 4] = [1, 2, 3, 7];
/// Distances of marks, in months.
const MONTHS: [i64; 4] = [1, 3, 6, 12];
/// Days of a short month.
const MONTH: i64 = 28;

/// How wide the windows of a page are, in hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Widths {
    /// The default.
    pub(super) usual: u32,
    /// The most.
    pub(super) most: u32,
}

/// The fields of an address that say what of time is shown.
#[derive(Debug, Clone, Default)]
pub(super) struct WindowFields {
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) hours: Option<String>,
    pub(super) zone: Option<String>,
}

/// The stretch of time that an address asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stretch {
    /// So many hours, up to now and on with the clock.
    Hours(u32),
    /// A fixed range.
    Fixed(Range),
    /// That of something else on the page, which the address names.
    Other,
}

/// The stretch of time that is shown.
#[derive(Debug, Clone)]
pub(super) struct TimeWindow {
    stretch: Stretch,
    pub(super) range: Range,
    /// The zone of the labels, where the address names one; else it is that of the viewer.
    pub(super) zone: Option<Zone>,
    usual_zone: Zone,
    pub(super) now: Timestamp,
    widths: Widths,
}

impl TimeWindow {
    /// Reads an address. If it says nothing of time, the window is that of something else where there is such a thing.
    pub(super) fn read(
        asked: WindowFields,
        widths: Widths,
        has_other: bool,
        now: Timestamp,
    ) -> Result<TimeWindow, Fault> {
        let zone = asked::filled(asked.zone).map(|zone| asked::zone(&zone)).transpose()?;
        let usual_zone = viewer::current().zone;
        let (from, to) = (asked::filled(asked.from), asked::filled(asked.to));
        let hours = asked::filled(asked.hours).map(|hours| widths.read_hours(&hours)).transpose()?;
        let stretch = match (from, to, hours) {
            (None, None, None) if has_other => Stretch::Other,
            (None, None, hours) => Stretch::Hours(hours.unwrap_or(widths.usual)),
            (from, to, hours) => {
                let read = |text: Option<String>| {
                    text.map(|text| asked::moment(&text, zone.as_ref().unwrap_or(&usual_zone))).transpose()
                };
                let (from, to) = (read(from)?, read(to)?);
                Stretch::Fixed(widths.range(from, to, hours.unwrap_or(widths.usual), now)?)
            }
        };
        let range = match stretch {
            Stretch::Fixed(range) => range,
            Stretch::Hours(hours) => widths.following(now, hours),
            Stretch::Other => widths.following(now, widths.usual),
        };
        Ok(TimeWindow { stretch, range, zone, usual_zone, now, widths })
    }

    /// The same with this range, where it is that of something else.
    pub(super) fn around(self, start: i64, end: i64) -> TimeWindow {
        if self.stretch != Stretch::Other {
            return self;
        }
        TimeWindow { range: self.widths.between(start, end), ..self }
    }

    /// The same as a fixed one, if it was that of something else.
    pub(super) fn settled(&self) -> TimeWindow {
        let stretch = if self.stretch == Stretch::Other { Stretch::Fixed(self.range) } else { self.stretch };
        TimeWindow { stretch, ..self.clone() }
    }

    /// Whether the window follows the clock.
    pub(super) fn follows(&self) -> bool {
        matches!(self.stretch, Stretch::Hours(_))
    }

    /// Whether the shown data may still change.
    pub(super) fn is_live(&self) -> bool {
        self.range.end >= self.now
    }

    /// Milliseconds of the window.
    pub(super) fn width(&self) -> i64 {
        self.range.end.as_millisecond() - self.range.start.as_millisecond()
    }

    /// The place of a moment in the window, in percent of its width; beyond the window it is one of its ends.
    pub(super) fn percent(&self, at: Timestamp) -> f64 {
        let millis = (at.as_millisecond() - self.range.start.as_millisecond()).clamp(0, self.width());
        (millis as f64 * 100_000.0 / self.width() as f64).round() / 1_000.0
    }

    /// The same, as an attribute of SVG.
    pub(super) fn place(&self, at: Timestamp) -> String {
        format!("{}%", self.percent(at))
    }

    /// Whether the window has this width, in hours.
    pub(super) fn is_width(&self, hours: u32) -> bool {
        matches!(self.stretch, Stretch::Hours(own) if own == hours)
    }

    /// From one moment to another.
    pub(super) fn fixed(&self, start: i64, end: i64) -> TimeWindow {
        let range = self.widths.between(start, end);
        TimeWindow { stretch: Stretch::Fixed(range), range, ..self.clone() }
    }

    fn moved(&self, by: i64) -> TimeWindow {
        // Whole seconds, for an address that people read.
        let by = by / 1000 * 1000;
        self.fixed(self.range.start.as_millisecond() + by, self.range.end.as_millisecond() + by)
    }

    pub(super) fn earlier(&self) -> TimeWindow {
        self.moved(-self.width() * 3 / 4)
    }

    /// The next window; none if it would be in the future.
    pub(super) fn later(&self) -> Option<TimeWindow> {
        (self.range.end < self.now).then(|| self.moved(self.width() * 3 / 4))
    }

    /// The same, twice as near, or half as near where `out` is.
    pub(super) fn zoomed(&self, out: bool) -> TimeWindow {
        let (start, width) = (self.range.start.as_millisecond(), self.width());
        let (start, width) = if out { (start - width / 2, width * 2) } else { (start + width / 4, width / 2) };
        self.fixed(start, start + width)
    }

    pub(super) fn of_now(&self, hours: u32) -> TimeWindow {
        TimeWindow { stretch: Stretch::Hours(hours), range: self.widths.following(self.now, hours), ..self.clone() }
    }

    /// The number of hours for a window that follows the clock: the nearest to the current range, a week at the most.
    pub(super) fn hours(&self) -> u32 {
        match self.stretch {
            Stretch::Hours(hours) => hours,
            _ => u32::try_from((self.width() / (60 * MINUTE)).clamp(1, 168)).unwrap_or(self.widths.usual),
        }
    }

    /// The same in the zone that the viewer has chosen.
    pub(super) fn in_usual_zone(&self) -> TimeWindow {
        TimeWindow { zone: None, ..self.clone() }
    }

    /// The zone of the labels.
    pub(super) fn zone(&self) -> &Zone {
        self.zone.as_ref().unwrap_or(&self.usual_zone)
    }

    /// The parameters of the address.
    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = match self.stretch {
            Stretch::Hours(hours) => vec![("hours", hours.to_string())],
            Stretch::Fixed(range) => vec![("from", exact(range.start)), ("to", exact(range.end))],
            Stretch::Other => Vec::new(),
        };
        pairs.extend(self.zone.as_ref().map(|zone| ("zone", zone.name().to_owned())));
        pairs
    }

    /// A moment of the window as people read it.
    pub(super) fn told(&self, at: Timestamp, form: &str) -> String {
        at.to_zoned(self.zone().rules().clone()).strftime(form).to_string()
    }

    /// The marks above the window, with their texts: a day at its beginning.
    pub(super) fn marks(&self) -> Vec<(Timestamp, String)> {
        let fits = |step: i64| self.width() / step <= MOST_MARKS;
        if let Some(minutes) = STEPS.into_iter().find(|minutes| fits(minutes * MINUTE)) {
            return self.marks_in_days(minutes);
        }
        if let Some(days) = DAYS.into_iter().find(|days| fits(days * DAY)) {
            let begins = |date: &Date| {
                (date.since(Date::new(1970, 1, 1).unwrap_or(*date)).map_or(0, |span| i64::from(span.get_days())))
                    .rem_euclid(days)
                    == 0
            };
            return self.marks_of_days(begins, "%a %-d %b");
        }
        let months = MONTHS.into_iter().find(|months| fits(months * MONTH * DAY)).unwrap_or(12);
        let begins = |date: &Date| date.day() == 1 && i64::from(date.month() - 1).rem_euclid(months) == 0;
        self.marks_of_days(begins, "%b %Y")
    }

    /// By the clock of the zone, so that the marks are at round times also after a day of 23 or 25 hours.
    fn marks_in_days(&self, minutes: i64) -> Vec<(Timestamp, String)> {
        let zone = self.zone().rules();
        let mut marks: Vec<(Timestamp, String)> = Vec::new();
        let first = self.range.start.to_zoned(zone.clone()).date();
        for date in first.series(1.day()) {
            let begin = date.to_datetime(Time::midnight());
            for time in begin.series(minutes.minutes()).take_while(|time| time.date() == date) {
                let Ok(at) = time.to_zoned(zone.clone()) else { return marks };
                if at.timestamp() >= self.range.end {
                    return marks;
                }
                let is_new = marks.last().is_none_or(|(last, _)| *last < at.timestamp());
                if at.timestamp() >= self.range.start && is_new {
                    let form = if at.time() == Time::midnight() { "%a %-d %b" } else { "%H:%M" };
                    marks.push((at.timestamp(), at.strftime(form).to_string()));
                }
            }
        }
        marks
    }

    fn marks_of_days(&self, begins: impl Fn(&Date) -> bool, form: &str) -> Vec<(Timestamp, String)> {
        let zone = self.zone().rules();
        let mut marks = Vec::new();
        let mut date = self.range.start.to_zoned(zone.clone()).date();
        while let Ok(day) = date.to_zoned(zone.clone()) {
            if day.timestamp() >= self.range.end {
                break;
            }
            if day.timestamp() >= self.range.start && begins(&date) {
                marks.push((day.timestamp(), day.strftime(form).to_string()));
            }
            let Ok(next) = date.checked_add(1.day()) else { break };
            date = next;
        }
        marks
    }
}

/// Whole seconds as short as they are.
fn exact(at: Timestamp) -> String {
    if at.as_millisecond() % 1000 == 0 { format_short(at) } else { format_full(at) }
}

fn moment(millis: i64) -> Timestamp {
    let (least, most) = (Timestamp::MIN.as_millisecond(), Timestamp::MAX.as_millisecond());
    Timestamp::from_millisecond(millis.clamp(least, most)).unwrap_or_default()
}

impl Widths {
    /// From one moment to another, neither too short nor too long.
    fn between(self, start: i64, end: i64) -> Range {
        let most = i64::from(self.most) * 60 * MINUTE;
        let middle = start.midpoint(end);
        let half = ((end - start).clamp(SHORTEST, most) + 1) / 2;
        let low = Timestamp::MIN.as_millisecond() + half;
        let high = Timestamp::MAX.as_millisecond() - half;
        let middle = middle.clamp(low, high);
        Range::new(moment(middle - half), moment(middle + half))
    }

    /// The last hours, and a little of the future, so that the edge moves only now and then.
    fn following(self, now: Timestamp, hours: u32) -> Range {
        let width = i64::from(hours) * 60 * MINUTE;
        let step = (width / 24).max(MINUTE);
        let end = (now.as_millisecond().div_euclid(step) + 1) * step;
        self.between(end - width, end)
    }

    fn read_hours(self, text: &str) -> Result<u32, Fault> {
        let read = text.parse().ok().filter(|hours| (1..=self.most).contains(hours));
        read.ok_or_else(|| asked::wrong("hours", text, &format!("a number of hours, 1 to {}", self.most)))
    }

    fn range(self, from: Option<Timestamp>, to: Option<Timestamp>, hours: u32, now: Timestamp) -> Result<Range, Fault> {
        let width = SignedDuration::from_hours(i64::from(hours)).as_millis() as i64;
        let (from, to) = (from.map(|at| at.as_millisecond()), to.map(|at| at.as_millisecond()));
        let (start, end) = match (from, to) {
            (Some(start), Some(end)) => (start, end),
            (Some(start), None) => (start, start + width),
            (None, end) => (end.unwrap_or(now.as_millisecond()) - width, end.unwrap_or(now.as_millisecond())),
        };
        if start >= end {
            return Err(plain::bad_request("The parameter \"from\" must be before \"to\".".to_owned()));
        }
        Ok(self.between(start, end))
    }
}
