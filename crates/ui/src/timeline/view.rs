//! The part of the timeline that is shown, from the address bar.

use std::ops::Deref;

use jiff::Timestamp;
use kelos_explain::critical_path::CriticalPath;
use kelos_front::fault::Fault;
use kelos_model::{RunState, SlotRef};
use serde::Deserialize;

use crate::asked;
use crate::page::segment;
use crate::window::{SHORTEST, TimeWindow, Widths, WindowFields};

/// Hours that buttons lead to.
pub(super) const WIDTHS: [u32; 5] = [1, 6, 24, 72, 168];
/// The widths of windows: 31 days at the most.
const HOURS: Widths = Widths { usual: 6, most: 744 };

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

/// The part of the timeline that is shown, and how.
#[derive(Debug, Clone)]
pub(super) struct TimelineView {
    time: TimeWindow,
    pub(super) by: By,
    pub(super) find: String,
    pub(super) project: Option<String>,
    pub(super) tag: Option<String>,
    pub(super) state: Option<RunState>,
    /// The slot whose critical path is shown.
    pub(super) slot: Option<SlotRef>,
    pub(super) is_table: bool,
}

impl Deref for TimelineView {
    type Target = TimeWindow;

    fn deref(&self) -> &TimeWindow {
        &self.time
    }
}

impl TimelineView {
    /// Reads an address; the slot that it names was found by then.
    pub(super) fn read(asked: TimelineQuery, slot: Option<SlotRef>, now: Timestamp) -> Result<TimelineView, Fault> {
        let fields = WindowFields { from: asked.from, to: asked.to, hours: asked.hours, zone: asked.zone };
        Ok(TimelineView {
            time: TimeWindow::read(fields, HOURS, slot.is_some(), now)?,
            by: asked::filled(asked.by).map_or(Ok(By::Workflow), |by| read_by(&by))?,
            find: asked::filled(asked.find).unwrap_or_default(),
            project: asked::filled(asked.project),
            tag: asked::filled(asked.tag),
            state: asked::filled(asked.state).map(|state| read_state(&state)).transpose()?,
            slot,
            is_table: asked::filled(asked.form).map_or(Ok(false), |form| read_form(&form))?,
        })
    }

    fn at(&self, time: TimeWindow) -> TimelineView {
        TimelineView { time, ..self.clone() }
    }

    /// The same, with the whole of a critical path in its window, by default.
    pub(super) fn around(self, path: &CriticalPath) -> TimelineView {
        let margin = (path.millis() / 20).max(SHORTEST);
        let time = self.time.clone();
        self.at(time.around(path.from.as_millisecond() - margin, path.until.as_millisecond() + margin))
    }

    pub(super) fn earlier(&self) -> TimelineView {
        self.at(self.time.earlier())
    }

    /// The next window; none if it would be in the future.
    pub(super) fn later(&self) -> Option<TimelineView> {
        self.time.later().map(|time| self.at(time))
    }

    /// The same, twice as near, or half as near where `out` is.
    pub(super) fn zoomed(&self, out: bool) -> TimelineView {
        self.at(self.time.zoomed(out))
    }

    pub(super) fn of_now(&self, hours: u32) -> TimelineView {
        self.at(self.time.of_now(hours))
    }

    pub(super) fn by(&self, by: By) -> TimelineView {
        TimelineView { by, ..self.clone() }
    }

    /// The same in the zone that the viewer has chosen.
    pub(super) fn in_usual_zone(&self) -> TimelineView {
        self.at(self.time.in_usual_zone())
    }

    pub(super) fn as_table(&self, is_table: bool) -> TimelineView {
        TimelineView { is_table, ..self.clone() }
    }

    pub(super) fn without_slot(&self) -> TimelineView {
        TimelineView { slot: None, ..self.at(self.time.settled()) }
    }

    /// One row's part of the window.
    pub(super) fn narrowed(&self, find: &str, start: i64, end: i64) -> TimelineView {
        let margin = ((end - start) / 10).max(1_000);
        TimelineView { find: find.to_owned(), ..self.at(self.time.fixed(start - margin, end + margin)) }
    }

    /// The parameters of the address besides the window and the fields of a form.
    pub(super) fn kept(&self) -> Vec<(&'static str, String)> {
        let mut pairs = self.time.pairs();
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
}

/// The critical path of a slot, shown on the timeline.
pub(crate) fn path_href(slot: &SlotRef) -> String {
    format!("/ui/timeline?slot={}", segment(&slot_text(slot)))
}

fn slot_text(slot: &SlotRef) -> String {
    slot.short()
}

fn read_by(by: &str) -> Result<By, Fault> {
    match by {
        "workflow" => Ok(By::Workflow),
        "pool" => Ok(By::Pool),
        _ => Err(asked::wrong("by", by, "workflow or pool")),
    }
}

fn read_form(form: &str) -> Result<bool, Fault> {
    match form {
        "table" => Ok(true),
        "bars" => Ok(false),
        _ => Err(asked::wrong("as", form, "bars or table")),
    }
}

fn read_state(state: &str) -> Result<RunState, Fault> {
    let known = || RunState::ALL.map(RunState::as_str).join(", ");
    RunState::parse(state).ok_or_else(|| asked::wrong("state", state, &format!("one of {}", known())))
}

#[cfg(test)]
mod tests {
    use kelos_model::time::{format_short, parse_instant};

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
        format!("{} {}", format_short(range.start), format_short(range.end))
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
