//! The stretch of time that the board shows, from the address bar: `time` and `zoom` as in Celos, `zone` and `order` besides.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Weekday;
use jiff::{SignedDuration, Timestamp};
use kelos_model::WorkflowId;
use kelos_model::time::{Zone, format_short, parse_instant};

use super::arrange::By;
use crate::columns::{TimeColumns, moment};
use crate::page::segment;
use crate::viewer::{self, Viewer};

/// Minutes of a column that buttons lead to.
pub(super) const ZOOMS: [u32; 9] = [1, 5, 15, 30, 60, 360, DAY, WEEK, 30 * DAY];
/// The default minutes of a column.
const USUAL_ZOOM: u32 = 60;
/// Minutes of an hour.
const HOUR: u32 = 60;
/// Minutes of the widest column that Celos knows.
pub(super) const DAY: u32 = 1_440;
pub(super) const WEEK: u32 = 7 * DAY;
/// The widest column: 30 days.
const WIDEST: u32 = 30 * DAY;
/// Columns where the room for them is not known: so many, of a week at the most.
const USUAL_COLUMNS: u32 = 48;
/// The same for columns of more than a day: weeks make a quarter.
const USUAL_WIDE_COLUMNS: u32 = 13;
/// Fewest and most columns.
const COLUMNS: std::ops::RangeInclusive<u32> = 4..=400;
/// Most minutes of all columns: 13 of the widest.
const MOST_MINUTES: u32 = 13 * WIDEST;
/// Pixels of a column, as in `board.css`.
const CELL: u32 = 24;
/// Pixels of a column of a day or more.
const WIDE_CELL: u32 = 44;
const MINUTE: i64 = 60_000;
/// Parameters that only the script reads.
const OTHERS: [&str; 4] = ["find", "only", "project", "tag"];

/// The stretch of time that is shown.
#[derive(Debug, Clone)]
pub(super) struct BoardView {
    /// The time that the newest column holds; none follows the clock.
    pub(super) time: Option<Timestamp>,
    /// Minutes of a column.
    pub(super) zoom: u32,
    /// The zone of the marks, where the address names one; else it is that of the viewer.
    pub(super) zone: Option<Zone>,
    /// Whether the oldest column comes first, where the address says so; else as the viewer has chosen.
    order: Option<bool>,
    /// How many columns there are, where the address says so; else as many as have room.
    count: Option<u32>,
    /// The grouping of its rows.
    pub(super) by: By,
    /// The flows whose steps are shown.
    unfolded: BTreeSet<WorkflowId>,
    now: Timestamp,
    viewer: Viewer,
    /// Parameters that only the script reads, as they came.
    others: BTreeMap<String, String>,
}

impl BoardView {
    /// Reads a query; the error is a sentence.
    pub(super) fn read(query: &str, now: Timestamp) -> Result<BoardView, String> {
        let mut given = parameters(query);
        let time = given.remove("time").filter(|text| !text.is_empty()).map(|text| {
            parse_instant(&text).map_err(|error| format!("The parameter \"time\" is not understood: {error}."))
        });
        let zone = given.remove("zone").filter(|zone| !zone.is_empty());
        let zone = zone.map(|zone| {
            Zone::parse(&zone).map_err(|error| format!("The parameter \"zone\" is not understood: {error}."))
        });
        let zoom = given.remove("zoom").filter(|text| !text.is_empty());
        let zoom = zoom.map_or(Ok(USUAL_ZOOM), |text| read_zoom(&text))?;
        let order =
            given.remove("order").filter(|order| !order.is_empty()).map(|order| read_order(&order)).transpose()?;
        let count =
            given.remove("columns").filter(|text| !text.is_empty()).map(|text| read_count(&text)).transpose()?;
        let by = given.remove("by").filter(|text| !text.is_empty()).map_or(Ok(By::default()), |text| read_by(&text))?;
        let unfolded = given.remove("unfold").unwrap_or_default();
        let unfolded = unfolded.split(',').filter_map(|id| WorkflowId::new(id).ok()).collect();
        given.retain(|name, value| OTHERS.contains(&name.as_str()) && !value.is_empty());
        Ok(BoardView {
            time: time.transpose()?,
            zoom,
            zone: zone.transpose()?,
            order,
            count,
            by,
            unfolded,
            now,
            viewer: viewer::current(),
            others: given,
        })
    }

    /// How many columns there are: as many as have room.
    pub(super) fn count(&self) -> u32 {
        let cell = if self.is_wide() { WIDE_CELL } else { CELL };
        let usual = if self.zoom > DAY { USUAL_WIDE_COLUMNS } else { (WEEK / self.zoom).min(USUAL_COLUMNS) };
        let fitting = self.viewer.room.map_or(usual, |room| room / cell);
        let most = (MOST_MINUTES / self.zoom).min(*COLUMNS.end());
        self.count.unwrap_or(fitting).clamp(*COLUMNS.start(), most)
    }

    /// The pixels that the viewer has for columns, if they count; none if the address says how many there are.
    pub(super) fn room(&self) -> Option<u32> {
        if self.count.is_some() { None } else { Some(self.viewer.room.unwrap_or(0)) }
    }

    /// Whether the viewer has folded this group.
    pub(super) fn is_folded(&self, group: &str) -> bool {
        self.viewer.folded.contains(group)
    }

    /// Whether the steps of a flow are shown.
    pub(super) fn is_unfolded(&self, flow: &WorkflowId) -> bool {
        self.unfolded.contains(flow)
    }

    /// The same with the steps of a flow, if they are not shown, or else without them.
    pub(super) fn toggled(&self, flow: &WorkflowId) -> BoardView {
        let mut view = self.clone();
        if !view.unfolded.remove(flow) {
            view.unfolded.insert(flow.clone());
        }
        view
    }

    /// Whether columns are wide enough for numbers: those of a day or more.
    pub(super) fn is_wide(&self) -> bool {
        self.zoom >= DAY
    }

    /// The usual width of a column, in milliseconds.
    pub(super) fn width(&self) -> i64 {
        i64::from(self.zoom) * MINUTE
    }

    /// The present.
    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// The time that the newest column holds.
    pub(super) fn newest(&self) -> Timestamp {
        self.time.unwrap_or(self.now)
    }

    /// The columns, oldest first; the newest one holds the newest time. Their edges are counted back from the midnight after it, of the zone that
    /// is shown. Columns of several hours, of days and of weeks, which begin on Mondays, begin at round times of its clock, so that
    /// they are wider or narrower where it changes.
    pub(super) fn columns(&self) -> TimeColumns {
        self.by_the_clock().unwrap_or_else(|| self.evenly())
    }

    /// Columns by the clock of the zone; none for other widths, and at the ends of time.
    fn by_the_clock(&self) -> Option<TimeColumns> {
        let is_part_of_day = self.zoom > HOUR && DAY.is_multiple_of(self.zoom);
        if !is_part_of_day && !self.zoom.is_multiple_of(DAY) {
            return None;
        }
        let (rules, newest) = (self.zone().rules(), self.newest());
        let mut next = newest.to_zoned(rules.clone()).date().tomorrow().ok()?;
        while self.zoom == WEEK && next.weekday() != Weekday::Monday {
            next = next.tomorrow().ok()?;
        }
        let (mut clock, zoom) = (next.at(0, 0, 0, 0), SignedDuration::from_mins(self.zoom.into()));
        let most = usize::try_from(self.count()).unwrap_or(usize::MAX).saturating_add(1);
        let mut edges = Vec::new();
        while edges.len() < most {
            let edge = rules.to_ambiguous_timestamp(clock).compatible().ok()?.as_millisecond();
            if edge > newest.as_millisecond() {
                edges = vec![edge];
            } else if edges.last().is_none_or(|later| edge < *later) {
                // A day that the zone leaves out has no column.
                edges.push(edge);
            }
            clock = clock.checked_sub(zoom).ok()?;
        }
        edges.reverse();
        TimeColumns::between(edges)
    }

    /// Columns of one width.
    fn evenly(&self) -> TimeColumns {
        let (width, time) = (self.width(), self.newest().as_millisecond());
        let rules = self.zone().rules();
        let tomorrow = self.newest().to_zoned(rules.clone()).date().tomorrow().ok();
        let begins = tomorrow.and_then(|date| rules.to_ambiguous_timestamp(date.at(0, 0, 0, 0)).compatible().ok());
        let day = i64::from(DAY) * MINUTE;
        let midnight = begins.map_or_else(|| (time.div_euclid(day) + 1).saturating_mul(day), Timestamp::as_millisecond);
        let back = (midnight - time + width - 1).div_euclid(width);
        let start = midnight - (back + i64::from(self.count()) - 1) * width;
        TimeColumns::of_width(start, width, self.count())
    }

    /// The beginnings of each column and of the one before it, in the zone that is shown and in the order in which they are shown.
    pub(super) fn edges(&self) -> Vec<(jiff::Zoned, jiff::Zoned)> {
        let columns = self.columns();
        let zoned = |millis| moment(millis).to_zoned(self.zone().rules().clone());
        let before = |column: u32| match column {
            0 => columns.edge(0).saturating_sub(self.width()),
            _ => columns.edge(column - 1),
        };
        let order = self.order().into_iter();
        order.map(|column| (zoned(columns.edge(column)), zoned(before(column)))).collect()
    }

    /// The newest time to the minute, in the zone that is shown.
    pub(super) fn newest_shown(&self) -> String {
        self.newest().to_zoned(self.zone().rules().clone()).strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// The columns in the order in which they are shown.
    pub(super) fn order(&self) -> Vec<u32> {
        let columns = 0..self.count();
        if self.oldest_first() { columns.collect() } else { columns.rev().collect() }
    }

    /// The zone of the marks.
    pub(super) fn zone(&self) -> &Zone {
        self.zone.as_ref().unwrap_or(&self.viewer.zone)
    }

    /// Whether the oldest column comes first.
    pub(super) fn oldest_first(&self) -> bool {
        self.order.unwrap_or(self.viewer.oldest_first)
    }

    /// The query of the stream of changes: for these columns, whatever the time is by then.
    pub(super) fn stream_query(&self, seq: u64) -> String {
        // The time and the zone are always set, so that the script's columns are those of the page.
        let view = BoardView {
            others: BTreeMap::new(),
            time: Some(self.newest()),
            zone: Some(self.zone().clone()),
            order: Some(self.oldest_first()),
            count: Some(self.count()),
            by: By::default(),
            unfolded: BTreeSet::new(),
            ..self.clone()
        };
        format!("/ui/board/stream{}&after={seq}", view.query())
    }

    /// The address of this view.
    pub(super) fn href(&self) -> String {
        format!("/ui{}", self.query())
    }

    fn query(&self) -> String {
        let mut pairs = vec![format!("?zoom={}", self.zoom)];
        pairs.extend(self.time.map(|time| format!("time={}", segment(&format_short(time)))));
        pairs.extend(self.zone.as_ref().map(|zone| format!("zone={}", segment(zone.name()))));
        pairs.extend(self.order.map(|oldest| format!("order={}", order_name(oldest))));
        pairs.extend(self.count.map(|count| format!("columns={count}")));
        pairs.extend((self.by != By::default()).then(|| format!("by={}", self.by.name())));
        if !self.unfolded.is_empty() {
            let ids: Vec<String> = self.unfolded.iter().map(|id| segment(id.as_str()).to_string()).collect();
            pairs.push(format!("unfold={}", ids.join(",")));
        }
        pairs.extend(self.others.iter().map(|(name, value)| format!("{name}={}", segment(value))));
        pairs.join("&")
    }

    /// The same, at another time; past the present means to follow the clock.
    fn moved(&self, millis: i64) -> BoardView {
        // Whole minutes, for an address that people read.
        let time = moment(self.newest().as_millisecond().saturating_add(millis).div_euclid(MINUTE) * MINUTE);
        BoardView { time: Some(time).filter(|time| *time < self.now), ..self.clone() }
    }

    /// The step of the time navigation: most of the visible range, so that a part of it stays visible.
    fn step(&self) -> i64 {
        i64::from((self.count() * 3 / 4).max(1)) * self.width()
    }

    pub(super) fn earlier(&self) -> BoardView {
        self.moved(-self.step())
    }

    pub(super) fn later(&self) -> BoardView {
        self.moved(self.step())
    }

    pub(super) fn of_now(&self) -> BoardView {
        BoardView { time: None, ..self.clone() }
    }

    pub(super) fn zoomed(&self, zoom: u32) -> BoardView {
        BoardView { zoom, ..self.clone() }
    }

    pub(super) fn grouped(&self, by: By) -> BoardView {
        BoardView { by, ..self.clone() }
    }

    /// The same in the direction that the viewer has chosen.
    pub(super) fn as_usual(&self) -> BoardView {
        BoardView { order: None, ..self.clone() }
    }

    /// Only rows in trouble.
    pub(super) fn of_trouble(&self) -> BoardView {
        let mut view = self.clone();
        view.others.insert("only".to_owned(), "trouble".to_owned());
        view
    }

    /// The same in the zone that the viewer has chosen.
    pub(super) fn in_usual_zone(&self) -> BoardView {
        BoardView { zone: None, ..self.clone() }
    }

    /// A parameter that only the script reads.
    pub(super) fn other(&self, name: &str) -> &str {
        self.others.get(name).map_or("", String::as_str)
    }

    /// How long this view is valid before another column begins, if it follows the clock.
    pub(super) fn holds_for(&self) -> Option<i64> {
        let (_, end) = self.columns().bounds();
        self.time.is_none().then(|| end - self.now.as_millisecond())
    }
}

fn read_zoom(text: &str) -> Result<u32, String> {
    let read = text.parse::<i64>().map(|zoom| zoom.clamp(1, i64::from(WIDEST)));
    read.ok().and_then(|zoom| u32::try_from(zoom).ok()).ok_or_else(|| {
        format!("The parameter \"zoom\" is \"{text}\", expected the minutes of a column, 1 to {WIDEST}.")
    })
}

fn read_count(text: &str) -> Result<u32, String> {
    text.parse::<u32>().ok().filter(|count| COLUMNS.contains(count)).ok_or_else(|| {
        let (fewest, most) = (COLUMNS.start(), COLUMNS.end());
        format!("The parameter \"columns\" is \"{text}\", expected the number of columns, {fewest} to {most}.")
    })
}

fn read_order(text: &str) -> Result<bool, String> {
    let read = [true, false].into_iter().find(|oldest| order_name(*oldest) == text);
    read.ok_or_else(|| format!("The parameter \"order\" is \"{text}\", expected newest or oldest."))
}

/// The name of a direction, by what comes first.
pub(super) const fn order_name(oldest_first: bool) -> &'static str {
    if oldest_first { "oldest" } else { "newest" }
}

fn read_by(text: &str) -> Result<By, String> {
    By::ALL
        .into_iter()
        .find(|by| by.name() == text)
        .ok_or_else(|| format!("The parameter \"by\" is \"{text}\", expected groups, project or tag."))
}

/// The parameters of a query by name, the last of each.
pub(crate) fn parameters(query: &str) -> BTreeMap<String, String> {
    let decoded = |text: &str| {
        let text = text.replace('+', " ");
        percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(query: &str) -> BoardView {
        BoardView::read(query, parse_instant("2015-09-13T15:01Z").unwrap()).unwrap()
    }

    fn edges(query: &str) -> (String, u32, String) {
        let columns = view(query).columns();
        let (start, end) = columns.bounds();
        (format_short(moment(start)), columns.count(), format_short(moment(end)))
    }

    #[test]
    fn columns_are_counted_back_from_the_next_midnight() {
        let expect = |from: &str, count, to: &str| (from.to_owned(), count, to.to_owned());
        assert_eq!(edges(""), expect("2015-09-11T16:00Z", 48, "2015-09-13T16:00Z"));
        assert_eq!(edges("zoom=1440"), expect("2015-09-07T00:00Z", 7, "2015-09-14T00:00Z"));
        assert_eq!(edges("zoom=1"), expect("2015-09-13T14:14Z", 48, "2015-09-13T15:02Z"));
        assert_eq!(edges("zoom=7"), expect("2015-09-13T09:32Z", 48, "2015-09-13T15:08Z"));
        assert_eq!(edges("zoom=10080"), expect("2015-06-15T00:00Z", 13, "2015-09-14T00:00Z"));
        assert_eq!(edges("zoom=10080&time=2015-09-14T00:00Z"), expect("2015-06-22T00:00Z", 13, "2015-09-21T00:00Z"));
        assert_eq!(edges("zoom=43200"), expect("2014-08-20T00:00Z", 13, "2015-09-14T00:00Z"));
        assert_eq!(edges("time=2015-09-13T15:00Z"), expect("2015-09-11T16:00Z", 48, "2015-09-13T16:00Z"));
        assert_eq!(edges("time=2015-09-13T00:00Z"), expect("2015-09-11T01:00Z", 48, "2015-09-13T01:00Z"));
    }

    #[test]
    fn days_are_those_of_the_zone_whose_clocks_change() {
        let in_zone = |query: &str| {
            let columns = view(query).columns();
            let hours: Vec<i64> = columns.edges().windows(2).map(|edges| (edges[1] - edges[0]) / 3_600_000).collect();
            let (start, end) = columns.bounds();
            (format_short(moment(start)), hours, format_short(moment(end)))
        };
        let expect = |from: &str, hours: &[i64], to: &str| (from.to_owned(), hours.to_vec(), to.to_owned());
        let berlin = "zoom=1440&zone=Europe/Berlin&columns=4&time=";
        let autumn = in_zone(&format!("{berlin}2026-10-25T22:15Z"));
        assert_eq!(autumn, expect("2026-10-21T22:00Z", &[24, 24, 24, 25], "2026-10-25T23:00Z"));
        // A quarter past midnight in Berlin is still the day before in UTC.
        let spring = in_zone(&format!("{berlin}2026-03-29T22:15Z"));
        assert_eq!(spring, expect("2026-03-26T23:00Z", &[24, 24, 23, 24], "2026-03-30T22:00Z"));
        let weeks = in_zone("zoom=10080&zone=Europe/Berlin&columns=4&time=2026-10-28T12:00Z");
        assert_eq!(weeks, expect("2026-10-04T22:00Z", &[168, 168, 169, 168], "2026-11-01T23:00Z"));
        let quarters = in_zone("zoom=360&zone=Europe/Berlin&columns=5&time=2026-10-25T21:00Z");
        assert_eq!(quarters, expect("2026-10-24T16:00Z", &[6, 7, 6, 6, 6], "2026-10-25T23:00Z"));
        // Samoa had no 30 December 2011.
        let samoa = in_zone("zoom=1440&zone=Pacific/Apia&columns=4&time=2011-12-31T12:00Z");
        assert_eq!(samoa, expect("2011-12-28T10:00Z", &[24, 24, 24, 24], "2012-01-01T10:00Z"));
        let kolkata = in_zone("zoom=60&zone=Asia/Kolkata&columns=4&time=2026-10-25T12:10Z");
        assert_eq!(kolkata, expect("2026-10-25T08:30Z", &[1, 1, 1, 1], "2026-10-25T12:30Z"));
        let marks = view(&format!("{berlin}2026-10-25T22:15Z&order=oldest")).edges();
        let marks: Vec<String> = marks.iter().map(|(edge, _)| edge.strftime("%a %-d %H:%M").to_string()).collect();
        assert_eq!(marks, ["Thu 22 00:00", "Fri 23 00:00", "Sat 24 00:00", "Sun 25 00:00"]);
        assert!(view(&format!("{berlin}2026-10-25T22:15Z")).stream_query(1).contains("&zone=Europe%2FBerlin&"));
    }

    #[test]
    fn zoom_is_clamped_and_nonsense_named() {
        assert_eq!((view("zoom=0").zoom, view("zoom=99999").zoom, view("zoom=-3").zoom), (1, 43_200, 1));
        let now = Timestamp::UNIX_EPOCH;
        assert!(BoardView::read("zoom=x", now).unwrap_err().contains("expected the minutes of a column"));
        assert!(BoardView::read("by=size", now).unwrap_err().contains("expected groups, project or tag"));
        assert!(
            BoardView::read("time=yesterday", now).unwrap_err().starts_with("The parameter \"time\" is not understood")
        );
        assert!(BoardView::read("zone=Moon", now).unwrap_err().contains("unknown time zone \"Moon\""));
        assert!(BoardView::read("order=left", now).unwrap_err().contains("expected newest or oldest"));
    }

    #[test]
    fn columns_are_as_many_as_have_room() {
        let in_room = |room: u32, query: &str| {
            let viewer = Viewer { room: Some(room), ..Viewer::default() };
            viewer.sync_scope(|| view(query).count())
        };
        assert_eq!((in_room(1_175, ""), in_room(2_300, ""), in_room(262, "")), (48, 95, 10));
        assert_eq!((in_room(1_175, "zoom=1440"), in_room(1_175, "zoom=43200")), (26, 13));
        assert_eq!((in_room(0, ""), in_room(u32::MAX, "zoom=1"), in_room(500, "columns=7")), (4, 400, 7));
        let stream = view("zoom=1440").stream_query(9);
        assert!(stream.contains("&columns=7&") || stream.contains("&columns=7"), "{stream}");
        for wrong in ["columns=x", "columns=3", "columns=-1", "columns=401"] {
            assert!(BoardView::read(wrong, Timestamp::UNIX_EPOCH).unwrap_err().contains("4 to 400"), "{wrong}");
        }
    }

    #[test]
    fn an_address_says_the_view_again() {
        let address = "/ui?zoom=15&time=2015-09-12T00:00Z&zone=Europe%2FBerlin&order=oldest&by=tag&find=a%20b";
        assert_eq!(view(address.split_once('?').unwrap().1).href(), address);
        assert_eq!(view("time=2015-09-13T12:00Z").later().href(), "/ui?zoom=60");
        assert_eq!(view("").earlier().href(), "/ui?zoom=60&time=2015-09-12T03:01Z");
    }

    #[test]
    fn the_ends_of_time_are_shown_too() {
        for time in ["-009999-01-02T01:59:59Z", "9999-12-30T22:00:00Z"] {
            let view = BoardView { time: time.parse().ok(), ..view("") };
            assert!(view.time.is_some());
            let _ = (view.columns(), view.earlier().href(), view.later().href(), view.edges());
        }
    }
}
