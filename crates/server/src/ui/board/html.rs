//! The board as HTML: what can be read without the script, and what the script needs.

use kelos::model::SlotState;
use kelos::model::workflow::WorkflowRow;
use maud::{Markup, html};

use super::Shown;
use super::groups::{Arranged, Member};
use super::view::{View, ZOOMS};
use crate::ui::page::workflow_href;
use crate::ui::state::{look, meaning};

pub(super) fn board(view: &View, groups: &[Arranged<'_>], shown: &Shown) -> Markup {
    if groups.is_empty() {
        return nothing();
    }
    html! {
        h1.unseen { "Board" }
        (bar(view))
        (grid(view, groups, shown))
        (legend())
        (selection())
    }
}

/// What to do where there is nothing yet.
fn nothing() -> Markup {
    html! {
        section.empty {
            h1 { "No workflows yet" }
            p { "Write a script into the folder of workflows, such as " code { "workflows/first.js" } ":" }
            pre { (FIRST) }
            p { "It is picked up within a second, and its slots show up here. If it doesn't, " a href="/ui/problems" { "Problems" } " says why." }
        }
    }
}

const FIRST: &str = "celos.defineWorkflow({
    id: \"first\",
    schedule: celos.minutelySchedule(),
    schedulingStrategy: celos.serialSchedulingStrategy(),
    trigger: celos.alwaysTrigger(),
    externalService: celos.commandExternalService({ command: [\"date\"] })
});";

fn zoom_name(minutes: u32) -> String {
    match minutes {
        1440 => "1 d".to_owned(),
        hours if hours % 60 == 0 => format!("{} h", hours / 60),
        minutes => format!("{minutes} min"),
    }
}

fn bar(view: &View) -> Markup {
    html! {
        div.bar role="toolbar" aria-label="What the board shows" {
            span.group {
                a.button.go #earlier href=(view.earlier().href()) title="Earlier ([)" { "‹ Earlier" }
                a.button.go #now href=(view.of_now().href()) aria-current=[view.time.is_none().then_some("true")] title="Follow the clock (n)" { "Now" }
                @if view.time.is_some() {
                    a.button.go #later href=(view.later().href()) title="Later (])" { "Later ›" }
                }
            }
            span.group aria-label="Width of a column" role="group" {
                @for zoom in ZOOMS {
                    a.button.go.zoom href=(view.zoomed(zoom).href()) aria-current=[(zoom == view.zoom).then_some("true")] { (zoom_name(zoom)) }
                }
            }
            input #find type="search" placeholder="Find workflows (/)" aria-label="Find workflows" value=(view.other("find")) autocomplete="off" hidden;
            select #only aria-label="Show only rows with" data-value=(view.other("only")) hidden {
                option value="" { "All rows" }
                option value="trouble" { "Only failing" }
                option value="paused" { "Only paused" }
                @for state in SlotState::ALL {
                    option value=(state.as_str()) { (look(state).letter) " " (state.as_str()) }
                }
            }
            span.spring {}
            a.button.go href=(view.turned().href()) title="Which end the newest column is at" {
                @if view.oldest_first { "Newest right" } @else { "Newest left" }
            }
            a.button.go #zone href=(view.in_utc().href()) data-zone=(view.zone_name()) title="Time zone of the marks" { (view.zone_name()) }
            span.soft #count role="status" {}
        }
    }
}

fn grid(view: &View, groups: &[Arranged<'_>], shown: &Shown) -> Markup {
    let columns = view.columns();
    html! {
        div.grid.wide[view.zoom >= 1440] #grid role="grid" aria-label="Workflows over time" aria-readonly="true" aria-multiselectable="true"
            data-start=(columns.start.as_millisecond()) data-width=(columns.width) data-count=(columns.count)
            data-order=(if view.oldest_first { "oldest" } else { "newest" })
            data-stream=(view.stream_query(shown.seq)) data-holds=[view.holds_for()]
        {
            (head(view))
            @for group in groups {
                section.rows role="rowgroup" aria-label=(group.name) {
                    div.row.heading role="row" { span.name role="rowheader" { (group.name) " " small { (group.members.len()) } } }
                    @for member in &group.members {
                        @match member {
                            Member::Workflow(row) => (workflow(row, shown)),
                            Member::Missing(id) => div.row.missing role="row" { span.name role="rowheader" title="It is listed in a group, but not defined" { (id) " (missing)" } },
                        }
                    }
                }
            }
        }
    }
}

/// Days above hours.
fn head(view: &View) -> Markup {
    let edges: Vec<_> = view.order().into_iter().map(|column| view.edge(column)).collect();
    let starts_day =
        |edge: &jiff::Zoned| view.zoom >= 1440 || (edge.hour() == 0 && i64::from(edge.minute()) < i64::from(view.zoom));
    html! {
        div.head role="rowgroup" {
            div.row role="row" {
                span.name role="columnheader" { (view.newest_shown()) }
                span.marks aria-hidden="true" {
                    @for edge in &edges {
                        @if starts_day(edge) { b.day title=(edge.strftime("%A %-d %B %Y")) { (edge.strftime("%d")) } } @else { i {} }
                    }
                }
            }
            div.row role="row" {
                span.name role="columnheader" { (edges.first().map(|edge| edge.strftime("%Z").to_string()).unwrap_or_default()) }
                span.marks {
                    @for edge in &edges {
                        i role="columnheader" title=(edge.strftime("%Y-%m-%d %H:%M %Z")) { (mark(view, edge)) }
                    }
                }
            }
        }
    }
}

/// An hour, or the minutes between hours; of days, which stand above, the name.
fn mark(view: &View, edge: &jiff::Zoned) -> Markup {
    html! {
        @if view.zoom >= 1440 { (edge.strftime("%a")) }
        @else if i64::from(edge.minute()) < i64::from(view.zoom) { (edge.strftime("%H")) }
        @else { small { (edge.strftime(":%M")) } }
    }
}

fn workflow(row: &WorkflowRow, shown: &Shown) -> Markup {
    let drawn = shown.rows.of(&row.id);
    let about = &row.definition.about;
    html! {
        div.row.paused[row.paused] role="row" data-w=(row.id) data-tags=[(!about.tags.is_empty()).then(|| about.tags.join(" "))] {
            span.name role="rowheader" {
                a href=(workflow_href(&row.id)) title=[about.description.as_deref()] { (row.id) }
                @if row.paused { em { "paused" } }
            }
            span.cells data-n=[Some(&drawn.counts).filter(|counts| !counts.is_empty())] { (drawn.letters) }
        }
    }
}

fn legend() -> Markup {
    html! {
        footer.legend {
            @for state in SlotState::ALL {
                span title=(meaning(state)) { b.(look(state).class) data-letter=(look(state).letter) data-word=(state.as_str()) { (look(state).letter) } " " (state.as_str()) }
            }
        }
    }
}

/// What can be done with selected cells; the script shows it.
fn selection() -> Markup {
    html! {
        div.selection #selection role="region" aria-label="Selection" hidden {
            strong #selected role="status" {}
            button.primary type="button" data-act="rerun" { "Rerun…" }
            button type="button" data-act="mark" { "Mark as succeeded…" }
            button type="button" data-act="skip" { "Skip…" }
            button.danger type="button" data-act="kill" { "Kill…" }
            button type="button" data-act="clear" { "Clear" }
        }
        dialog #act aria-labelledby="act-title" {
            h2 #act-title {}
            div #act-body {}
            progress #act-progress hidden {}
            form method="dialog" {
                button.primary #act-go type="button" {}
                " "
                button { "Close" }
            }
        }
    }
}
