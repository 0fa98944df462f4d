//! The part of the timeline that is shown, from the address bar.

use jiff::{SignedDuration, Timestamp};
use kelos_explain::critical_path::CriticalPath;
use kelos_front::fault::{Fault, plain};
use kelos_model::ranges::Range;
use kelos_model::time::{Zone, format_full, format_short};
use kelos_model::{RunState, SlotRef};
use serde::Deserialize;

use crate::asked;
use crate::page::segment;
use crate::viewer;

/// Hours that buttons lead to.
pub(super) const WIDTHS: [u32; 5] = [1, 6, 24, 72, 168];
/// The default number of hours.
const USUAL_HOURS: u32 = 6;
/// Most hours: 31 days.
const MOST_HOURS: u32 = 744;
/// Shortest window, in milliseconds.
const SHORTEST: i64 = 10_000;
/// Marks over the window at the most.
const MOST_MARKS: i64 = 12;
const MINUTE: i64 = 60_000;
const DAY: i64 = 1440 * MINUTE;
/// Distances of marks, in minutes.
const STEPS: [i64; 12] = [1, 5, 15, 30, 60, 180, 360, 720, 1440, 2880, 4320, 10_080];

/// The query of the page.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimelineQuery {
    from: Option<String>,
    to: Option<String>,
    hours: Option<String>,
    zone: Option<String>,
    by: Option<String>,
    find: Option<String>,
    project: Option<String>,
    tag: Option<String>,
    state: Option<String>,
    pub(super) slot: Option<String>,
    #[serde(rename = "as")]
    form: Option<String>,
}

/// The subject of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Workflow,
    Pool,
}

/// The stretch of time that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Window {
    /// So many hours, up to now and on with the clock.
    Hours(u32),
    /// A fixed range.
    Fixed(Range),
    /// The stretch of the critical path.
    Path,
}

/// The part of the timeline that is shown, and how.
#[derive(Debug, Clone)]
pub(super) struct TimelineView {
    window: Window,
    pub(super) range: Range,
    /// The zone of the labels, where the address names one; else it is that of the viewer.
    pub(super) zone: Option<Zone>,
    usual_zone: Zone,
    pub(super) by: By,
    pub(super) find: String,
    pub(super) project: Option<String>,
    pub(super) tag: Option<String>,
    pub(super) state: Option<RunState>,
    /// The slot whose critical path is shown.
    pub(super) slot: Option<SlotRef>,
    pub(super) is_table: bool,
    pub(super) now: Timestamp,
}

impl TimelineView {
    /// Reads an address; the slot that it names was found by then.
    pub(super) fn read(asked: TimelineQuery, slot: Option<SlotRef>, now: Timestamp) -> Result<TimelineView, Fault> {
        let (from, to) = (asked::filled(asked.from), asked::filled(asked.to));
        let hours = asked::filled(asked.hours).map(|hours| read_hours(&hours)).transpose()?;
        let window = match (from, to, hours) {
            (None, None, None) if slot.is_some() => Window::Path,
            (None, None, hours) => Window::Hours(hours.unwrap_or(USUAL_HOURS)),
            (from, to, hours) => Window::Fixed(read_range(from, to, hours.unwrap_or(USUAL_HOURS), now)?),
        };
        let zone = asked::filled(asked.zone).map(|zone| read_zone(&zone)).transpose()?;
        let mut view = TimelineView {
            window,
            range: Range::new(now, now),
            zone,
            usual_zone: viewer::current().zone,
            by: asked::filled(asked.by).map_or(Ok(By::Workflow), |by| read_by(&by))?,
            find: asked::filled(asked.find).unwrap_or_default(),
            project: asked::filled(asked.project),
            tag: asked::filled(asked.tag),
            state: asked::filled(asked.state).map(|state| read_state(&state)).transpose()?,
            slot,
            is_table: asked::filled(asked.form).map_or(Ok(false), |form| read_form(&form))?,
            now,
        };
        view.range = view.shown_range();
        Ok(view)
    }

    fn shown_range(&self) -> Range {
        match self.window {
            Window::Fixed(range) => range,
            Window::Hours(hours) => following(self.now, hours),
            Window::Path => following(self.now, USUAL_HOURS),
        }
    }

    /// The same, with the whole of a critical path in its window, by default.
    pub(super) fn around(self, path: &CriticalPath) -> TimelineView {
        if self.window != Window::Path {
            return self;
        }
        let margin = (path.millis() / 20).max(SHORTEST);
        let range = between(path.from.as_millisecond() - margin, path.until.as_millisecond() + margin);
        TimelineView { range, ..self }
    }

    /// Whether the window follows the clock.
    pub(super) fn follows(&self) -> bool {
        matches!(self.window, Window::Hours(_))
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
        matches!(self.window, Window::Hours(own) if own == hours)
    }

    fn fixed(&self, start: i64, end: i64) -> TimelineView {
        let range = between(start, end);
        TimelineView { window: Window::Fixed(range), range, ..self.clone() }
    }

    fn moved(&self, by: i64) -> TimelineView {
        // Whole seconds, for an address that people read.
        let by = by / 1000 * 1000;
        self.fixed(self.range.start.as_millisecond() + by, self.range.end.as_millisecond() + by)
    }

    pub(super) fn earlier(&self) -> TimelineView {
        self.moved(-self.width() * 3 / 4)
    }

    /// The next window; none if it would be in the future.
    pub(super) fn later(&self) -> Option<TimelineView> {
        (self.range.end < self.now).then(|| self.moved(self.width() * 3 / 4))
    }

    /// The same, twice as near, or half as near where `out` is.
    pub(super) fn zoomed(&self, out: bool) -> TimelineView {
        let (start, width) = (self.range.start.as_millisecond(), self.width());
        let (start, width) = if out { (start - width / 2, width * 2) } else { (start + width / 4, width / 2) };
        self.fixed(start, start + width)
    }

    pub(super) fn of_now(&self, hours: u32) -> TimelineView {
        let range = following(self.now, hours);
        TimelineView { window: Window::Hours(hours), range, ..self.clone() }
    }

    /// The number of hours for a window that follows the clock: the nearest to the current range.
    pub(super) fn hours(&self) -> u32 {
        match self.window {
            Window::Hours(hours) => hours,
            _ => u32::try_from((self.width() / (60 * MINUTE)).clamp(1, 168)).unwrap_or(USUAL_HOURS),
        }
    }

    pub(super) fn by(&self, by: By) -> TimelineView {
        TimelineView { by, ..self.clone() }
    }

    /// The same in the zone that the viewer has chosen.
    pub(super) fn in_usual_zone(&self) -> TimelineView {
        TimelineView { zone: None, ..self.clone() }
    }

    pub(super) fn as_table(&self, is_table: bool) -> TimelineView {
        TimelineView { is_table, ..self.clone() }
    }

    pub(super) fn without_slot(&self) -> TimelineView {
        let window = if self.window == Window::Path { Window::Fixed(self.range) } else { self.window };
        TimelineView { slot: None, window, ..self.clone() }
    }

    /// One row's part of the window.
    pub(super) fn narrowed(&self, find: &str, start: i64, end: i64) -> TimelineView {
        let margin = ((end - start) / 10).max(1_000);
        TimelineView { find: find.to_owned(), ..self.fixed(start - margin, end + margin) }
    }

    /// The zone of the labels.
    pub(super) fn zone(&self) -> &Zone {
        self.zone.as_ref().unwrap_or(&self.usual_zone)
    }

    /// The parameters of the address besides the window and the fields of a form.
    pub(super) fn kept(&self) -> Vec<(&'static str, String)> {
        let mut pairs = match self.window {
            Window::Hours(hours) => vec![("hours", hours.to_string())],
            Window::Fixed(range) => vec![("from", exact(range.start)), ("to", exact(range.end))],
            Window::Path => Vec::new(),
        };
        pairs.extend(self.zone.as_ref().map(|zone| ("zone", zone.name().to_owned())));
        pairs.extend((self.by == By::Pool).then(|| ("by", "pool".to_owned())));
        pairs.extend(self.slot.as_ref().map(|slot| ("slot", slot_text(slot))));
        pairs.extend(self.is_table.then(|| ("as", "table".to_owned())));
        pairs
    }

    /// The address of this view.
    pub(super) fn href(&self) -> String {
        let mut pairs = self.kept();
        pairs.extend((!self.find.is_empty()).then(|| ("find", self.find.clone())));
        pairs.extend(self.project.clone().map(|project| ("project", project)));
        pairs.extend(self.tag.clone().map(|tag| ("tag", tag)));
        pairs.extend(self.state.map(|state| ("state", state.as_str().to_owned())));
        let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", segment(value))).collect();
        format!("/ui/timeline?{}", pairs.join("&"))
    }

    /// A moment of the window as people read it.
    pub(super) fn told(&self, at: Timestamp, form: &str) -> String {
        at.to_zoned(self.zone().rules().clone()).strftime(form).to_string()
    }

    /// The marks above the window, with their texts: a day at its beginning.
    pub(super) fn marks(&self) -> Vec<(Timestamp, String)> {
        let (start, end) = (self.range.start.as_millisecond(), self.range.end.as_millisecond());
        let fits = |step: &&i64| self.width() / (**step * MINUTE) <= MOST_MARKS;
        let step = STEPS.iter().find(fits).map_or(self.width() / MOST_MARKS, |minutes| minutes * MINUTE).max(1);
        let offset = i64::from(self.zone().rules().to_offset(self.range.start).seconds()) * 1000;
        let mut at = (start + offset).div_euclid(step) * step - offset;
        let mut marks = Vec::new();
        while at < end {
            if at >= start {
                let begins_day = (at + offset).rem_euclid(DAY) == 0;
                marks.push((moment(at), self.told(moment(at), if begins_day { "%a %-d %b" } else { "%H:%M" })));
            }
            at += step;
        }
        marks
    }
}

/// The critical path of a slot, shown on the timeline.
pub(crate) fn path_href(slot: &SlotRef) -> String {
    format!("/ui/timeline?slot={}", segment(&slot_text(slot)))
}

fn slot_text(slot: &SlotRef) -> String {
    slot.short()
}

/// Whole seconds as short as they are.
fn exact(at: Timestamp) -> String {
    if at.as_millisecond() % 1000 == 0 { format_short(at) } else { format_full(at) }
}

fn moment(millis: i64) -> Timestamp {
    let (least, most) = (Timestamp::MIN.as_millisecond(), Timestamp::MAX.as_millisecond());
    Timestamp::from_millisecond(millis.clamp(least, most)).unwrap_or_default()
}

/// From one moment to another, neither too short nor too long.
fn between(start: i64, end: i64) -> Range {
    let most = i64::from(MOST_HOURS) * 60 * MINUTE;
    let middle = start.midpoint(end);
    let half = ((end - start).clamp(SHORTEST, most) + 1) / 2;
    let low = Timestamp::MIN.as_millisecond() + half;
    let high = Timestamp::MAX.as_millisecond() - half;
    let middle = middle.clamp(low, high);
    Range::new(moment(middle - half), moment(middle + half))
}

/// The last hours, and a little of the future, so that the edge moves only now and then.
fn following(now: Timestamp, hours: u32) -> Range {
    let width = i64::from(hours) * 60 * MINUTE;
    let step = (width / 24).max(MINUTE);
    let end = (now.as_millisecond().div_euclid(step) + 1) * step;
    between(end - width, end)
}

fn wrong(name: &str, given: &str, expected: &str) -> Fault {
    plain::bad_request(format!("The parameter \"{name}\" is \"{given}\", expected {expected}."))
}

fn read_hours(text: &str) -> Result<u32, Fault> {
    let read = text.parse().ok().filter(|hours| (1..=MOST_HOURS).contains(hours));
    read.ok_or_else(|| wrong("hours", text, &format!("a number of hours, 1 to {MOST_HOURS}")))
}

fn read_range(from: Option<String>, to: Option<String>, hours: u32, now: Timestamp) -> Result<Range, Fault> {
    let width = SignedDuration::from_hours(i64::from(hours)).as_millis() as i64;
    let read = |text: Option<String>| text.map(|text| asked::moment(&text)).transpose();
    let (from, to) = (read(from)?.map(|at| at.as_millisecond()), read(to)?.map(|at| at.as_millisecond()));
    let (start, end) = match (from, to) {
        (Some(start), Some(end)) => (start, end),
        (Some(start), None) => (start, start + width),
        (None, end) => (end.unwrap_or(now.as_millisecond()) - width, end.unwrap_or(now.as_millisecond())),
    };
    if start >= end {
        return Err(plain::bad_request("The parameter \"from\" must be before \"to\".".to_owned()));
    }
    Ok(between(start, end))
}

fn read_zone(zone: &str) -> Result<Zone, Fault> {
    Zone::parse(zone).map_err(|_| wrong("zone", zone, "UTC or a name such as Europe/Berlin"))
}

fn read_by(by: &str) -> Result<By, Fault> {
    match by {
        "workflow" => Ok(By::Workflow),
        "pool" => Ok(By::Pool),
        _ => Err(wrong("by", by, "workflow or pool")),
    }
}

fn read_form(form: &str) -> Result<bool, Fault> {
    match form {
        "table" => Ok(true),
        "bars" => Ok(false),
        _ => Err(wrong("as", form, "bars or table")),
    }
}

fn read_state(state: &str) -> Result<RunState, Fault> {
    let known = || RunState::ALL.map(RunState::as_str).join(", ");
    RunState::parse(state).ok_or_else(|| wrong("state", state, &format!("one of {}", known())))
}

#[cfg(test)]
mod tests {
    use kelos_model::time::parse_instant;

    use super::*;

    fn at(text: &str) -> Timestamp {
        parse_instant(text).unwrap()
    }

    fn view(query: &str) -> TimelineView {
        let uri: axum::http::Uri = format!("/ui/timeline?{query}").parse().unwrap();
        let asked = axum::extract::Query::<TimelineQuery>::try_from_uri(&uri).unwrap().0;
        let slot = asked.slot.as_deref().map(|text| {
            let (id, time) = text.rsplit_once('@').unwrap();
            SlotRef::at(kelos_model::WorkflowId::new(id).unwrap(), at(time))
        });
        TimelineView::read(asked, slot, at("2015-09-13T15:01Z")).ok().unwrap()
    }

    fn window(query: &str) -> String {
        let range = view(query).range;
        format!("{} {}", exact(range.start), exact(range.end))
    }

    #[test]
    fn windows_follow_the_clock_or_stay() {
        assert_eq!(window(""), "2015-09-13T09:15Z 2015-09-13T15:15Z");
        assert_eq!(window("hours=1"), "2015-09-13T14:02:30Z 2015-09-13T15:02:30Z");
        assert_eq!(window("from=2015-09-12&to=2015-09-13"), "2015-09-12T00:00Z 2015-09-13T00:00Z");
        assert_eq!(window("from=2015-09-12&hours=2"), "2015-09-12T00:00Z 2015-09-12T02:00Z");
        assert_eq!(window("to=2015-09-12"), "2015-09-11T18:00Z 2015-09-12T00:00Z");
        assert_eq!(window("from=2015-01-01&to=2015-12-31"), "2015-06-16T12:00Z 2015-07-17T12:00Z");
        assert_eq!(
            window("from=2015-09-12T00:00:00Z&to=2015-09-12T00:00:02Z"),
            "2015-09-11T23:59:56Z 2015-09-12T00:00:06Z"
        );
    }

    #[test]
    fn an_address_says_the_view_again() {
        let address = "from=2015-09-12T00:00Z&to=2015-09-12T06:00Z&zone=Europe%2FBerlin&by=pool&slot=a%40b%402015-09-12T01:00Z\
                       &as=table&find=x%20y&project=p&tag=t&state=failed";
        assert_eq!(view(address).href(), format!("/ui/timeline?{address}"));
        assert_eq!(view("").href(), "/ui/timeline?hours=6");
        assert_eq!(view("hours=6").earlier().href(), "/ui/timeline?from=2015-09-13T04:45Z&to=2015-09-13T10:45Z");
        assert!(view("hours=6").later().is_none());
        let zoomed = view("from=2015-09-12T00:00Z&to=2015-09-12T04:00Z");
        assert_eq!(zoomed.zoomed(false).href(), "/ui/timeline?from=2015-09-12T01:00Z&to=2015-09-12T03:00Z");
        assert_eq!(zoomed.zoomed(true).href(), "/ui/timeline?from=2015-09-11T22:00Z&to=2015-09-12T06:00Z");
    }

    #[test]
    fn marks_stand_at_round_times_of_the_zone() {
        let told = |query: &str| view(query).marks().into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        let hours = told("from=2015-09-12T21:10Z&to=2015-09-13T03:10Z");
        assert_eq!(hours.join(" "), "21:30 22:00 22:30 23:00 23:30 Sun 13 Sep 00:30 01:00 01:30 02:00 02:30 03:00");
        let berlin = told("from=2015-09-12T00:00Z&to=2015-09-14T00:00Z&zone=Europe/Berlin");
        assert_eq!(berlin.join(" "), "06:00 12:00 18:00 Sun 13 Sep 06:00 12:00 18:00 Mon 14 Sep");
        assert!(told("hours=744").len() <= 13);
    }

    #[test]
    fn the_ends_of_time_are_shown_too() {
        for query in ["to=-009999-01-03", "from=9999-12-29", "to=-9998-01-03", "from=9999-12-29T00:00Z&hours=744"] {
            let uri: axum::http::Uri = format!("/ui/timeline?{query}").parse().unwrap();
            let asked = axum::extract::Query::<TimelineQuery>::try_from_uri(&uri).unwrap().0;
            let Ok(view) = TimelineView::read(asked, None, Timestamp::UNIX_EPOCH) else { continue };
            let _ =
                (view.earlier().href(), view.later().map(|view| view.href()), view.zoomed(true).marks(), view.marks());
        }
    }
}
