//! Two plots of a workflow: how long its runs took, and how many of its slots succeeded on each day of its zone.
//!
//! Drawings stretch to the width of the page, so their figures are written beside them as text.

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};
use kelos_explain::periods;
use kelos_model::ranges::Range;
use kelos_model::time::Zone;
use kelos_model::{Run, RunState, SlotState, WorkflowId};
use kelos_store::{Queries, StoreError, Tally};
use maud::{Markup, html};

use super::columns::TimeColumns;
use super::words;

/// Height of a drawing, in its own units; its width is one unit for each bar, times this.
const HEIGHT: f64 = 100.0;
const STEP: f64 = 10.0;
/// Bars that are no longer than this would not be seen.
const LEAST: f64 = 2.0;
/// Days of which the slots are counted.
const DAYS: u32 = 30;

/// A bar: a run that has ended.
struct Bar {
    number: u32,
    slot: String,
    seconds: f64,
    state: RunState,
    took: String,
}

/// The durations of finished runs, given newest first, as a plot with its words; nothing if there are too few.
pub(super) fn durations(runs: &[Run]) -> Option<Markup> {
    let bars: Vec<Bar> = runs.iter().rev().filter_map(bar).collect();
    let (first, last) = (bars.first()?, bars.last()?);
    if bars.len() < 2 {
        return None;
    }
    let longest = bars.iter().map(|bar| bar.seconds).fold(0.0, f64::max);
    let (middle, most) = (share(&bars, 5), share(&bars, 9));
    let good = bars.iter().filter(|bar| bar.state == RunState::Succeeded).count();
    let told = format!(
        "{good} of the latest {} runs succeeded. Median {}, p90 {}, maximum {}",
        bars.len(),
        told(middle),
        told(most),
        told(longest),
    );
    let width = bars.len() as f64 * STEP;
    Some(html! {
        figure.plot {
            div.scale aria-hidden="true" { span { (self::told(longest)) } span { (self::told(longest / 2.0)) } span { "0" } }
            svg role="img" aria-label=(told) viewBox=(format!("0 0 {width} {HEIGHT}")) preserveAspectRatio="none" {
                @for (n, bar) in bars.iter().enumerate() { (drawn(n, bar, longest)) }
                (line("middle", middle, longest, width))
                (line("most", most, longest, width))
            }
            div.ends aria-hidden="true" { span { (first.slot) } span { (last.slot) } }
            figcaption {
                (told) ". "
                span.key.middle { "half" } " " span.key.most { "p90" }
            }
        }
    })
}

fn bar(run: &Run) -> Option<Bar> {
    let (begin, end) = (run.started_at?, run.ended_at?);
    let millis = end.as_millisecond() - begin.as_millisecond();
    Some(Bar {
        number: run.id.number,
        slot: run.id.slot.key.time().map_or_else(|| run.id.slot.key.short(), words::moment),
        seconds: (millis.max(0) as f64) / 1000.0,
        state: run.state,
        took: words::took(begin, end),
    })
}

fn drawn(n: usize, bar: &Bar, longest: f64) -> Markup {
    let height = if longest > 0.0 { (bar.seconds / longest * HEIGHT).max(LEAST) } else { LEAST };
    let x = n as f64 * STEP + 1.0;
    html! {
        rect class=(format!("run-{}", bar.state.as_str())) x=(rounded(x)) y=(rounded(HEIGHT - height))
            width=(STEP - 2.0) height=(rounded(height)) {
            title { (bar.slot) " run " (bar.number) ": " (bar.state.as_str()) " after " (bar.took) }
        }
    }
}

fn line(class: &str, seconds: f64, longest: f64, width: f64) -> Markup {
    let y = if longest > 0.0 { rounded(HEIGHT - seconds / longest * HEIGHT) } else { HEIGHT };
    html! { line .(class) x1="0" x2=(width) y1=(y) y2=(y) vector-effect="non-scaling-stroke" {} }
}

/// How long so many tenths of the runs took at the most.
fn share(bars: &[Bar], tenths: usize) -> f64 {
    let mut seconds: Vec<f64> = bars.iter().map(|bar| bar.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let at = (seconds.len() * tenths).div_ceil(10).saturating_sub(1);
    seconds.get(at).copied().unwrap_or(0.0)
}

/// Seconds in words, with tenths if they are few.
fn told(seconds: f64) -> String {
    let millis = (seconds * 1000.0).round() as i64;
    match (Timestamp::from_millisecond(0), Timestamp::from_millisecond(millis)) {
        (Ok(from), Ok(to)) => words::took(from, to),
        _ => words::span(seconds as i64),
    }
}

fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// The days of a zone up to now, of which slots are counted.
pub(super) struct Days {
    dates: Vec<Date>,
    columns: TimeColumns,
}

impl Days {
    /// The last days, ending with that of now.
    pub(super) fn up_to(now: Timestamp, zone: &Zone) -> Days {
        let today = now.to_zoned(zone.rules().clone()).date();
        let first = today.saturating_sub(i64::from(DAYS - 1).days());
        let days = periods::Days::of(zone, first, today);
        let (dates, ranges): (Vec<Date>, Vec<Range>) = days.each().unzip();
        let ends = ranges.last().map(|last| last.end);
        let edges = ranges.iter().map(|range| range.start).chain(ends).map(Timestamp::as_millisecond).collect();
        let none = || TimeColumns::of_width(now.as_millisecond(), 0, 0);
        Days { dates, columns: TimeColumns::between(edges).unwrap_or_else(none) }
    }

    /// The slots of a workflow in each.
    pub(super) fn tallies(&self, reader: &dyn Queries, workflow: &WorkflowId) -> Result<Vec<Tally>, StoreError> {
        Ok(self.columns.tallies(reader, Some(workflow))?.remove(workflow).unwrap_or_default())
    }

    fn date(&self, day: usize) -> String {
        self.dates.get(day).map(ToString::to_string).unwrap_or_default()
    }
}

/// The slots of a day that have ended.
#[derive(Clone, Copy, Default)]
struct Day {
    good: u64,
    bad: u64,
    other: u64,
}

impl Day {
    fn total(self) -> u64 {
        self.good + self.bad + self.other
    }

    fn add(&mut self, tally: &Tally) {
        match tally.state {
            SlotState::Succeeded => self.good += u64::from(tally.count),
            SlotState::Failed | SlotState::Expired => self.bad += u64::from(tally.count),
            state if state.is_final() => self.other += u64::from(tally.count),
            _ => {}
        }
    }
}

/// The share of each day's slots that succeeded; none while none has ended.
pub(super) fn successes(days: &Days, tallies: &[Tally]) -> Option<Markup> {
    let mut all = vec![Day::default(); days.dates.len()];
    for tally in tallies {
        all.get_mut(tally.column as usize)?.add(tally);
    }
    let first = all.iter().position(|day| day.total() > 0)?;
    let (good, total) = all.iter().fold((0, 0), |(good, total), day| (good + day.good, total + day.total()));
    let number = all.len() - first;
    let told = format!(
        "{} of {} that ended in the latest {} succeeded: {}",
        good,
        words::count(total, "slot"),
        words::count(number as u64, "day"),
        percent(good, total)
    );
    let width = number as f64 * STEP;
    Some(html! {
        figure.plot {
            div.scale aria-hidden="true" { span { "100 %" } span { "50 %" } span { "0 %" } }
            svg role="img" aria-label=(told) viewBox=(format!("0 0 {width} {HEIGHT}")) preserveAspectRatio="none" {
                @for (n, day) in all[first..].iter().enumerate() { (stacked(n, *day, &days.date(first + n))) }
            }
            div.ends aria-hidden="true" { span { (days.date(first)) } @if number > 1 { span { (days.date(all.len() - 1)) } } }
            figcaption { (told) "." }
        }
    })
}

/// A day as a bar: what succeeded below, what did not above it.
fn stacked(n: usize, day: Day, date: &str) -> Markup {
    let total = day.total();
    let high = |slots: u64| if total == 0 { 0.0 } else { slots as f64 / total as f64 * HEIGHT };
    let told =
        format!("{date}: {} of {} succeeded, {}", day.good, words::count(total, "slot"), percent(day.good, total));
    let parts = [("run-succeeded", day.good), ("run-killed", day.other), ("run-failed", day.bad)];
    let mut top = HEIGHT;
    let mut drawn = Vec::new();
    for (class, slots) in parts.into_iter().filter(|(_, slots)| *slots > 0) {
        top -= high(slots);
        drawn.push((class, top, high(slots)));
    }
    html! {
        g {
            @for (class, y, height) in drawn {
                rect class=(class) x=(n as f64 * STEP + 1.0) y=(rounded(y)) width=(STEP - 2.0) height=(rounded(height)) {}
            }
            @if total > 0 { title { (told) } }
        }
    }
}

/// Never 100 % where one did not, and never 0 % where one did.
fn percent(part: u64, of: u64) -> String {
    match (part, of) {
        (_, 0) => "none".to_owned(),
        (part, of) => format!("{} %", (part * 1000 / of) as f64 / 10.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_zone() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        let days = Days::up_to("2026-10-31T23:30:00Z".parse().unwrap(), &berlin);
        assert_eq!((days.date(0), days.date(29)), ("2026-10-03".to_owned(), "2026-11-01".to_owned()));
        let hours: Vec<i64> = days
            .columns
            .edges()
            .windows(2)
            .map(|edges| (edges[1] - edges[0]) / 3_600_000)
            .filter(|hours| *hours != 24)
            .collect();
        assert_eq!(hours, [25], "the day on which the clocks are put back");
    }

    #[test]
    fn days_end_with_today_and_are_counted_apart() {
        let days = Days::up_to("2015-09-13T15:00:00Z".parse().unwrap(), &Zone::utc());
        assert_eq!((days.date(0), days.date(29)), ("2015-08-15".to_owned(), "2015-09-13".to_owned()));
        let tally = |column, state, slots| Tally { column, state, count: slots };
        let tallies = [
            tally(28, SlotState::Succeeded, 23),
            tally(28, SlotState::Failed, 1),
            tally(29, SlotState::Succeeded, 10),
            tally(29, SlotState::Waiting, 5),
        ];
        let drawn = successes(&days, &tallies).unwrap().into_string();
        assert!(drawn.contains("33 of 34 slots that ended in the latest 2 days succeeded: 97 %"), "{drawn}");
        assert!(drawn.contains("<title>2015-09-12: 23 of 24 slots succeeded, 95.8 %</title>"), "{drawn}");
        assert!(successes(&days, &[tally(29, SlotState::Waiting, 5)]).is_none());
    }
}
