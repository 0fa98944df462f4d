//! The frame that all pages share.

use axum::response::{Html, IntoResponse, Response};
use jiff::Timestamp;
use kelos_engine::{MENDING, Pace, Status};
use kelos_front::App;
use kelos_model::time::format_short;
use kelos_model::{SlotRef, WorkflowId};
use maud::{DOCTYPE, Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::viewer::Theme;
use super::{assets, viewer};

/// The tab of the navigation that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    /// All workflows over time.
    Board,
    /// The graph of workflows.
    Graph,
    /// Runs as bars over time.
    Timeline,
    /// How much of each day is done.
    Calendar,
    /// Event schedules.
    Schedules,
    /// Named requests over past slots.
    Backfills,
    /// Problems of definitions, executors and the server.
    Problems,
    /// The log.
    Activity,
    /// Slots that make no progress.
    Stuck,
    /// Places for runs, and pools.
    Capacity,
    /// Workers that run commands.
    Workers,
    /// Nodes that share a log.
    Nodes,
    /// Alerts, and the channels by which they are told.
    Alerts,
}

/// A tab's name, its link, and the key that opens it after `g`.
struct Place {
    tab: Tab,
    name: &'static str,
    href: &'static str,
    key: char,
}

/// All tabs, in their order.
const PLACES: &[Place] = &[
    Place { tab: Tab::Board, name: "Board", href: "/ui", key: 'b' },
    Place { tab: Tab::Graph, name: "Graph", href: "/ui/graph", key: 'g' },
    Place { tab: Tab::Timeline, name: "Timeline", href: "/ui/timeline", key: 'l' },
    Place { tab: Tab::Calendar, name: "Calendar", href: "/ui/calendar", key: 'd' },
    Place { tab: Tab::Schedules, name: "Schedules", href: "/ui/schedules", key: 'e' },
    Place { tab: Tab::Backfills, name: "Backfills", href: "/ui/backfills", key: 'k' },
    Place { tab: Tab::Stuck, name: "Stuck", href: "/ui/stuck", key: 's' },
    Place { tab: Tab::Capacity, name: "Capacity", href: "/ui/capacity", key: 'c' },
    Place { tab: Tab::Workers, name: "Workers", href: "/ui/workers", key: 'w' },
    Place { tab: Tab::Nodes, name: "Nodes", href: "/ui/nodes", key: 'n' },
    Place { tab: Tab::Problems, name: "Problems", href: "/ui/problems", key: 'p' },
    Place { tab: Tab::Alerts, name: "Alerts", href: "/ui/alerts", key: 'm' },
    Place { tab: Tab::Activity, name: "Activity", href: "/ui/activity", key: 'a' },
];

/// The state of the server, for the header.
struct Health {
    class: &'static str,
    word: &'static str,
    words: String,
}

/// A page but for its contents.
pub(super) struct Page<'a> {
    title: &'a str,
    here: Option<Tab>,
    /// The tabs that this server has nothing for.
    absent: Vec<Tab>,
    health: Option<Health>,
    version: Option<&'a str>,
    /// The server's clock, by which scripts tell how long ago something is.
    now: Option<Timestamp>,
    scripts: Vec<&'static str>,
    styles: Vec<&'static str>,
    filled: bool,
    /// The project of all that the page can change; none where it is of several, or of none.
    project: Option<&'a str>,
}

impl<'a> Page<'a> {
    /// A page of the application.
    pub(super) fn new(app: &'a App, title: &'a str) -> Page<'a> {
        let now = Some(app.handle().now());
        let (takes_workers, is_node) = (app.node().desk().takes_workers(), app.node().log().is_some());
        let mut absent = Vec::new();
        absent.extend((!takes_workers).then_some(Tab::Workers));
        absent.extend((!is_node).then_some(Tab::Nodes));
        absent.extend(app.node().alerts().is_none().then_some(Tab::Alerts));
        Page { health: Some(health(app)), version: Some(app.version()), now, absent, ..Page::bare(title) }
    }

    /// A page that knows nothing of the application.
    pub(super) fn bare(title: &'a str) -> Page<'a> {
        Page {
            title,
            here: None,
            absent: vec![Tab::Workers, Tab::Nodes, Tab::Alerts],
            health: None,
            version: None,
            now: None,
            scripts: vec!["page.js"],
            styles: vec!["kelos.css"],
            filled: false,
            project: None,
        }
    }

    /// The same, of which everything that can be changed belongs to a project: who may not change that sees no forms.
    pub(super) fn of_project(self, project: &'a str) -> Page<'a> {
        Page { project: Some(project), ..self }
    }

    /// The same, as the page of a tab of the navigation.
    pub(super) fn at(self, tab: Tab) -> Page<'a> {
        Page { here: Some(tab), ..self }
    }

    /// The same, made livelier by this script.
    pub(super) fn script(mut self, name: &'static str) -> Page<'a> {
        self.scripts.push(name);
        self
    }

    /// The same, with this style sheet.
    pub(super) fn style(mut self, name: &'static str) -> Page<'a> {
        self.styles.push(name);
        self
    }

    /// The same, filling the window: the content scrolls.
    pub(super) fn filling(self) -> Page<'a> {
        Page { filled: true, ..self }
    }

    /// The whole page, with `body` in its middle.
    pub(super) fn show(&self, body: &Markup) -> Response {
        let page = html! {
            (DOCTYPE)
            html lang="en" data-theme=[viewer::current().theme.map(Theme::name)] data-zone=(viewer::current().zone.name())
                data-now=[self.now.map(|now| now.as_millisecond())]
            {
                (self.head())
                body.filled[self.filled].looks[!viewer::current().operates(self.project)] {
                    a.skip href="#main" { "Skip to the contents" }
                    (self.header())
                    (self.banner())
                    main #main tabindex="-1" { (body) }
                    (self.keys())
                }
            }
        };
        Html(page.into_string()).into_response()
    }

    fn head(&self) -> Markup {
        html! {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (self.title) " · Kelos" }
                link rel="icon" href=(ICON);
                @for name in &self.styles { link rel="stylesheet" href=(assets::href(name)); }
                // The first one tells styles that scripts run, which must be known before anything is painted.
                @for (index, name) in self.scripts.iter().enumerate() {
                    script src=(assets::href(name)) defer[index > 0] {}
                }
            }
        }
    }

    /// Warnings above everything else.
    fn banner(&self) -> Markup {
        let damaged = self.health.as_ref().filter(|health| health.word == "damaged");
        html! {
            @if let Some(health) = damaged {
                p.banner role="alert" {
                    strong { "The database is damaged, and nothing is scheduled." }
                    " It " (health.words) ". What can be read is shown. To repair it, " (MENDING) "."
                }
            }
        }
    }

    fn header(&self) -> Markup {
        html! {
            header.top {
                a.brand href="/ui" { "Kelos" }
                (self.places())
                span.spring {}
                @if let Some(health) = &self.health {
                    span #health.health .(health.class) title=(health.words) { (health.word) }
                }
                @if let Some(version) = self.version { small.version { "v" (version) } }
                @if let Some(name) = &viewer::current().name { a.button #account href=(ACCESS) title="Who you are, and sign out" { (name) } }
                a.button #display href=(display_href()) title="Time zone, theme, direction" aria-label={ "Display: times in " (viewer::current().zone.name()) } {
                    (viewer::current().zone.name())
                }
                button #theme type="button" hidden title="Light or dark (t)" { "Theme" }
                button #keys-button type="button" hidden title="Keys (?)" aria-haspopup="dialog" { "Keys" }
            }
        }
    }

    /// The tabs: side by side, or behind a button where there is no room for them.
    fn places(&self) -> Markup {
        let here = PLACES.iter().find(|place| self.here == Some(place.tab));
        html! {
            details.menu {
                summary.button { span.unseen { "Pages, here: " } (here.map_or("Menu", |place| place.name)) }
            }
            nav aria-label="Pages" {
                @for place in self.shown() {
                    a href=(place.href) data-key=(place.key) aria-current=[(self.here == Some(place.tab)).then_some("page")] {
                        (place.name)
                    }
                }
            }
        }
    }

    /// The sheet of keys; scripts of pages add theirs.
    fn keys(&self) -> Markup {
        html! {
            dialog #keys aria-labelledby="keys-title" {
                h2 #keys-title { "Keys" }
                dl {
                    dt { kbd { "?" } } dd { "this sheet" }
                    @for place in self.shown() { dt { kbd { "g" } " " kbd { (place.key) } } dd { "go to " (place.name) } }
                    dt { kbd { "t" } } dd { "light or dark" }
                    dt { kbd { "Esc" } } dd { "close, clear" }
                }
                form method="dialog" { button { "Close" } }
            }
        }
    }

    /// The tabs that this server has something for.
    fn shown(&self) -> impl Iterator<Item = &'static Place> {
        PLACES.iter().filter(|place| !self.absent.contains(&place.tab))
    }
}

fn health(app: &App) -> Health {
    let (class, word, words) = match (app.handle().status(), app.handle().pace()) {
        (Status::Leading { .. }, Pace::ByItself) => ("good", "leading", "it schedules automatically".to_owned()),
        (Status::Leading { .. }, Pace::Stepped) => ("good", "stepped", "it schedules only on request".to_owned()),
        (Status::Standby, _) => ("waits", "standby", "another server leads on the same database".to_owned()),
        (Status::Starting, _) => ("waits", "starting", "it has not led yet".to_owned()),
        (Status::Troubled { reason }, _) => ("bad", "troubled", format!("failed to {reason}")),
        (Status::Damaged { reason }, _) => ("bad", "damaged", format!("failed to {reason}")),
        (Status::Stopped, _) => ("bad", "stopped", "its engine has ended".to_owned()),
    };
    Health { class, word, words }
}

/// A square of a board, in a form that needs no request.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect \
                    width='16' height='16' rx='3' fill='%23135'/%3E%3Cpath d='M3 3h4v4H3zM9 3h4v4H9zM3 9h4v4H3z' \
                    fill='%237d8'/%3E%3Cpath d='M9 9h4v4H9z' fill='%23f86'/%3E%3C/svg%3E";

/// Bytes that are not escaped in a segment of a path.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');

/// A text as a segment of a path or a value of a query.
pub(super) fn segment(text: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(text, SEGMENT)
}

/// The address of the page about access.
pub(super) const ACCESS: &str = "/ui/access";

/// The address of the form for how pages are displayed.
pub(super) const DISPLAY: &str = "/ui/display";

/// The same, with the way back to the page that is shown.
fn display_href() -> String {
    format!("{DISPLAY}?back={}", segment(&viewer::current().place))
}

/// The address of a workflow's page.
pub(super) fn workflow_href(id: &WorkflowId) -> String {
    format!("/ui/workflows/{}", segment(id.as_str()))
}

/// The address of a slot's page.
pub(super) fn slot_href(slot: &SlotRef) -> String {
    // A job is marked by its ~.
    let key = slot.key.time().map_or_else(|| slot.key.to_string(), format_short);
    format!("{}/slots/{}", workflow_href(&slot.workflow), segment(&key))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_tabs_share_a_key() {
        let keys: BTreeSet<_> = PLACES.iter().map(|place| place.key).collect();
        assert_eq!(keys.len(), PLACES.len());
    }
}
