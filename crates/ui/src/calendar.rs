//! How much of each day is done, as months of days.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::response::Response;
use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use kelos_explain::periods::{self, CalendarQuery, CompletionCalendar, DayCompletion, Days, Selection};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::time::{Zone, format_short};
use maud::{Markup, html};
use serde::Deserialize;

use super::documents::Document;
use super::page::{Page, Tab, segment};
use super::selection::{Choices, SelectionFields, pairs};
use super::{asked, viewer, words};

/// Months of a page for one workflow, and for many.
const USUAL: [u32; 2] = [12, 3];
/// Months that buttons lead to.
const WIDTHS: [u32; 4] = [1, 3, 12, 36];
/// The most months: ten years.
const MOST: u32 = 120;

/// The query of the page.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalendarPageQuery {
    workflow: Option<String>,
    project: Option<String>,
    tag: Option<String>,
    zone: Option<String>,
    months: Option<String>,
    to: Option<String>,
}

/// The part of time that is shown, and of which workflows.
#[derive(Debug, Clone)]
struct CalendarView {
    of: Selection,
    /// The zone of the days, where the address names one; else it is that of the viewer.
    zone: Option<Zone>,
    usual_zone: Zone,
    months: u32,
    /// The first day of the last month; none follows the clock.
    to: Option<Date>,
    today: Date,
}

impl CalendarView {
    fn read(asked: CalendarPageQuery, now: jiff::Timestamp) -> Result<CalendarView, Fault> {
        let fields = SelectionFields { workflow: asked.workflow, project: asked.project, tag: asked.tag };
        let of = fields.read()?;
        let zone = asked::filled(asked.zone).map(|zone| asked::zone(&zone)).transpose()?;
        let usual = if of.workflow.is_some() { USUAL[0] } else { USUAL[1] };
        let months = asked::filled(asked.months).map_or(Ok(usual), |text| read_months(&text))?;
        let to = asked::filled(asked.to).map(|text| read_month(&text)).transpose()?;
        let usual_zone = viewer::current().zone;
        let today = Days::date(zone.as_ref().unwrap_or(&usual_zone), now);
        Ok(CalendarView { of, zone, usual_zone, months, to: to.filter(|to| *to < today.first_of_month()), today })
    }

    fn zone(&self) -> &Zone {
        self.zone.as_ref().unwrap_or(&self.usual_zone)
    }

    /// The first day of the last month.
    fn last_month(&self) -> Date {
        self.to.unwrap_or(self.today.first_of_month())
    }

    fn first_month(&self) -> Date {
        self.last_month().saturating_sub((i64::from(self.months) - 1).months())
    }

    fn query(&self) -> CalendarQuery {
        CalendarQuery {
            of: self.of.clone(),
            zone: self.zone().clone(),
            first: self.first_month(),
            last: self.last_month().last_of_month(),
        }
    }

    fn moved(&self, months: i64) -> CalendarView {
        let to = self.last_month().saturating_add(months.months());
        CalendarView { to: Some(to).filter(|to| *to < self.today.first_of_month()), ..self.clone() }
    }

    /// The parameters of the address besides the fields of the form.
    fn kept(&self) -> Vec<(&'static str, String)> {
        let mut kept = vec![("months", self.months.to_string())];
        kept.extend(self.to.map(|to| ("to", written_month(to))));
        kept.extend(self.zone.as_ref().map(|zone| ("zone", zone.name().to_owned())));
        kept
    }

    fn href(&self) -> String {
        let kept = self.kept().into_iter().map(|(name, value)| format!("{name}={}", segment(&value)));
        let all: Vec<String> = kept.chain(pairs(&self.of)).collect();
        format!("/ui/calendar?{}", all.join("&"))
    }
}

fn read_months(text: &str) -> Result<u32, Fault> {
    let read = text.parse().ok().filter(|months| (1..=MOST).contains(months));
    read.ok_or_else(|| asked::wrong("months", text, &format!("a number of months, 1 to {MOST}")))
}

/// The text of a month, such as `2026-03`.
fn written_month(day: Date) -> String {
    let first = day.first_of_month().to_string();
    first.strip_suffix("-01").unwrap_or(&first).to_owned()
}

fn read_month(text: &str) -> Result<Date, Fault> {
    let read = format!("{text}-01").parse::<Date>().ok().filter(|day| written_month(*day) == text);
    read.ok_or_else(|| asked::wrong("to", text, "a month such as 2026-03"))
}

pub(super) async fn show(
    wanted: Result<Query<CalendarPageQuery>, QueryRejection>,
    app: App,
) -> Result<Response, Fault> {
    let now = app.handle().now();
    let view = CalendarView::read(asked::query(wanted)?, now)?;
    let query = view.query();
    let (found, choices) = app
        .read(move |reader| Ok((periods::calendar(reader, &query, now)?, Choices::read(reader, &query.of)?)))
        .await?;
    let page = Page::new(&app, "Calendar").at(Tab::Calendar).style("pages.css").style("calendar.css");
    Ok(page.script("live.js").show(&page_of(&view, &found, &choices)))
}

fn page_of(view: &CalendarView, found: &CompletionCalendar, choices: &Choices) -> Markup {
    html! {
        @if view.to.is_none() { div data-events="" data-batch="2000" hidden {} }
        h1 { "Calendar" }
        (navigation(view))
        form.bar method="get" action="/ui/calendar" role="search" {
            @for (name, value) in view.kept() { input type="hidden" name=(name) value=(value); }
            (choices.fields(&view.of))
            button { "Show" }
        }
        (choices.note())
        div #days data-live {
            p.headline { (summary(found)) }
            @if found.is_partial {
                p.note { "Earlier days are left out: so many days of so many workflows are too much for a page. Choose a workflow, a project or a tag." }
            }
            @if found.days.iter().all(|day| day.total() == 0) { (nothing(found)) }
            div.months { @for days in months(&found.days).iter().rev() { (month(view, days)) } }
        }
        (legend())
    }
}

fn navigation(view: &CalendarView) -> Markup {
    let step = i64::from(view.months);
    html! {
        div.bar role="toolbar" aria-label="What of time is shown" {
            span.group {
                a.button #earlier href=(view.moved(-step).href()) { "‹ Earlier" }
                a.button #now href=(CalendarView { to: None, ..view.clone() }.href()) aria-current=[view.to.is_none().then_some("true")] { "Now" }
                @if view.to.is_some() { a.button #later href=(view.moved(step).href()) { "Later ›" } }
            }
            span.group role="group" aria-label="How many months" {
                @for months in WIDTHS {
                    a.button href=(CalendarView { months, ..view.clone() }.href()) aria-current=[(months == view.months).then_some("true")] { (words::count(months.into(), "month")) }
                }
            }
            @if let Some(zone) = &view.zone {
                a.button href=(CalendarView { zone: None, ..view.clone() }.href()) title="Days are those of the zone of this address; change to yours" { "In " (zone.name()) " ×" }
            }
        }
    }
}

/// `12 workflows, 90 days: 99 % of 2,160 slots done, 3 failed.`
fn summary(found: &CompletionCalendar) -> String {
    let sum = |part: fn(&DayCompletion) -> u64| found.days.iter().map(part).sum::<u64>();
    let (total, done) = (sum(DayCompletion::total), sum(|day| day.done));
    let of = words::count(found.workflows.len() as u64, "workflow");
    let days = words::count(found.days.len() as u64, "day");
    if total == 0 {
        return format!("{of}, {days}: no slots.");
    }
    let parts = [
        (sum(|day| day.failed), "failed"),
        (sum(|day| day.stuck), "to be retried"),
        (sum(|day| day.running), "running"),
        (sum(|day| day.to_do), "to do"),
        (sum(|day| day.ended), "killed or skipped"),
    ];
    let parts: String =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}")).collect();
    format!("{of}, {days}: {done} of {} done{parts}.", words::count(total, "slot"))
}

fn nothing(found: &CompletionCalendar) -> Markup {
    html! {
        section.empty {
            @if found.workflows.is_empty() { p { "No workflow with a schedule is chosen." } }
            @else { p { "There are no slots in these days, neither planned nor to come." } }
            p { (Document::Calendar.link("How to read the calendar")) }
        }
    }
}

/// The days by month.
fn months(days: &[DayCompletion]) -> Vec<&[DayCompletion]> {
    days.chunk_by(|one, next| (one.date.year(), one.date.month()) == (next.date.year(), next.date.month())).collect()
}

fn month(view: &CalendarView, days: &[DayCompletion]) -> Markup {
    let Some(first) = days.first() else { return html! {} };
    let name = first.date.strftime("%B %Y").to_string();
    let before = first.date.first_of_month();
    let last = first.date.last_of_month();
    let weeks = weeks(before, last);
    html! {
        table.month {
            caption { (name) }
            thead { tr { @for day in Weekday::Monday.cycle_forward().take(7) { th scope="col" abbr=(format!("{day:?}")) { (format!("{day:?}").get(..2).unwrap_or_default()) } } } }
            tbody {
                @for week in weeks {
                    tr {
                        @for date in week {
                            @match date {
                                None => td {},
                                Some(date) => (day(view, date, days.iter().find(|day| day.date == date))),
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The days of a month, by weeks from Monday on.
fn weeks(first: Date, last: Date) -> Vec<Vec<Option<Date>>> {
    let blank = usize::try_from(first.weekday().to_monday_zero_offset()).unwrap_or_default();
    let dates = (0..i64::from(last.day())).map(|day| Some(first.saturating_add(day.days())));
    let cells: Vec<Option<Date>> = std::iter::repeat_n(None, blank).chain(dates).collect();
    cells.chunks(7).map(<[Option<Date>]>::to_vec).collect()
}

fn day(view: &CalendarView, date: Date, day: Option<&DayCompletion>) -> Markup {
    let number = date.day();
    let shown = day.and_then(|day| Some((day, day.percent()?)));
    html! {
        td {
            @if let Some((day, percent)) = shown {
                a.day .(format!("done-{}", percent / 10)) .trouble[day.failed > 0] .stuck-day[day.stuck > 0] .out-of-range[day.out_of_range > 0]
                    href=(focus_href(view, day)) title=(told(day))
                    aria-current=[(date == view.today).then_some("date")]
                {
                    b { (number) } " " span { (percent) " %" } " " span.unseen { (told(day)) }
                    @if day.failed > 0 { i { "F " (day.failed) } } @else if day.stuck > 0 { i { "B " (day.stuck) } }
                }
            } @else { span.day.no-slots { b { (number) } } }
        }
    }
}

/// `2026-03-29: 23 of 24 slots done, 1 failed`.
fn told(day: &DayCompletion) -> String {
    let parts = [
        (day.failed, "failed"),
        (day.stuck, "to be retried"),
        (day.running, "running"),
        (day.to_do, "to do"),
        (day.ended, "killed or skipped"),
        (day.out_of_range, "done out of range"),
    ];
    let parts: String =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}")).collect();
    format!("{}: {} of {} done{parts}", day.date, day.done, words::count(day.total(), "slot"))
}

/// The address of the focus page of a day.
fn focus_href(view: &CalendarView, day: &DayCompletion) -> String {
    let mut all = vec![
        format!("from={}", segment(&format_short(day.range.start))),
        format!("to={}", segment(&format_short(day.range.end))),
    ];
    all.extend(view.zone.as_ref().map(|zone| format!("zone={}", segment(zone.name()))));
    all.extend(pairs(&view.of));
    format!("/ui/focus?{}", all.join("&"))
}

fn legend() -> Markup {
    html! {
        p.legend.soft {
            "Each day: how many of a hundred of its slots have succeeded. "
            b { "F" } " failed or expired, " b { "B" } " to be retried, hatched: some are done out of range, of workflows that start later, end earlier or were removed. A slot belongs to the day of its time, a period to the day in which it begins; "
            "what is still to be planned counts as to do. " (Document::Calendar.link("More"))
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn view(query: &str) -> Result<CalendarView, Fault> {
        let uri: axum::http::Uri = format!("/ui/calendar?{query}").parse().unwrap();
        let asked = Query::<CalendarPageQuery>::try_from_uri(&uri).unwrap().0;
        CalendarView::read(asked, "2026-03-29T23:30:00Z".parse().unwrap())
    }

    fn days(query: &str) -> String {
        let query = view(query).ok().unwrap().query();
        format!("{} {}", query.first, query.last)
    }

    #[test]
    fn months_follow_the_clock_in_their_zone() {
        assert_eq!(days(""), "2026-01-01 2026-03-31");
        assert_eq!(days("months=1"), "2026-03-01 2026-03-31");
        assert_eq!(days("workflow=w"), "2025-04-01 2026-03-31");
        assert_eq!(days("to=2026-02&months=2"), "2026-01-01 2026-02-28");
        assert_eq!(days("to=2030-02&months=2"), "2026-02-01 2026-03-31");
        assert_eq!(days("to=-009999-01&months=120"), "-009999-01-01 -009999-01-31");
        let address = "months=3&to=2026-01&zone=Europe%2FParis&workflow=a%40b&project=p&tag=t";
        assert_eq!(view(address).ok().unwrap().href(), format!("/ui/calendar?{address}"));
    }

    #[test]
    fn mistakes_are_named() {
        let said = |query: &str| view(query).err().unwrap().what;
        assert_eq!(said("months=0"), "The parameter \"months\" is \"0\", expected a number of months, 1 to 120.");
        assert_eq!(said("to=2026-3"), "The parameter \"to\" is \"2026-3\", expected a month such as 2026-03.");
        assert!(said("zone=Moon").contains("expected UTC or a name such as Europe/Berlin"));
    }

    #[test]
    fn weeks_begin_on_mondays() {
        let march = weeks(date(2026, 3, 1), date(2026, 3, 31));
        assert_eq!(march.len(), 6);
        assert_eq!(march[0][6], Some(date(2026, 3, 1)));
        assert_eq!(march[5], [Some(date(2026, 3, 30)), Some(date(2026, 3, 31))]);
    }
}
