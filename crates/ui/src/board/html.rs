//! The board as HTML: readable without the script, and the data of the script.

use std::collections::BTreeSet;

use kelos_model::SlotState;
use kelos_model::time::format_short;
use kelos_model::workflow::WorkflowRow;
use maud::{Markup, html};

use super::arrange::{By, GroupRows, Member};
use super::row::weight;
use super::steps::{self, StepCell, StepRow};
use super::view::{BoardView, DAY, WEEK, ZOOMS, order_name};
use super::{BoardData, verdict};
use crate::columns::TimeColumns;
use crate::documents::Document;
use crate::flow::{look_of_step, state_of_step};
use crate::jobs;
use crate::page::{DISPLAY, slot_href, workflow_href};
use crate::state::{is_trouble, look, meaning};

pub(super) fn board(view: &BoardView, groups: &[GroupRows<'_>], shown: &BoardData) -> Markup {
    if groups.is_empty() {
        let only_jobs = || html! { h1.unseen { "Board" } (jobs::below(&shown.jobs, &shown.failures, &shown.flows)) };
        return if shown.jobs.is_empty() { nothing(view, shown) } else { only_jobs() };
    }
    html! {
        h1.unseen { "Board" }
        (verdict::verdict(view, shown))
        @if let Some(trouble) = &shown.groups.trouble {
            p.note { "Groups that were set are left out: " (trouble) ". " a href="/ui/board/groups" { "Set others" } }
        }
        (bar(view, shown))
        (grid(view, groups, shown))
        (jobs::below(&shown.jobs, &shown.failures, &shown.flows))
        (legend())
        (selection())
    }
}

/// First steps, while there is no workflow.
fn nothing(view: &BoardView, shown: &BoardData) -> Markup {
    html! {
        section.empty #empty data-zone=(view.zone().name()) data-stream=(view.stream_query(shown.seq)) {
            h1 { "No workflows yet" }
            p { code { "kelos init FOLDER" } " writes a first project. Or write a script into the folder of workflows, such as " code { "workflows/first.js" } ":" }
            pre { (FIRST) }
            p { "It is picked up within a second, and its slots show up here by themselves. If they don't, " a href="/ui/problems" { "Problems" } " says why." }
            p.soft {
                code { "kelos check FOLDER" } " checks scripts before a server reads them; " code { "kelos plan FOLDER" } " simulates them. "
                (Document::FirstWorkflow.link("A first workflow, step by step"))
            }
        }
    }
}

const FIRST: &str = "kelos.workflow(\"first\", {
    schedule: \"hourly\",
    command: [\"date\"]
});";

fn zoom_name(minutes: u32) -> String {
    match minutes {
        WEEK => "1 w".to_owned(),
        days if days % DAY == 0 => format!("{} d", days / DAY),
        hours if hours % 60 == 0 => format!("{} h", hours / 60),
        minutes => format!("{minutes} min"),
    }
}

fn bar(view: &BoardView, shown: &BoardData) -> Markup {
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
            (filters(view, shown))
            span.spring {}
            span.group aria-label="Group rows by" role="group" {
                @for by in By::ALL {
                    a.button.go href=(view.grouped(by).href()) aria-current=[(by == view.by).then_some("true")] title={ "Rows by " (by.name()) } { (by_name(by)) }
                }
            }
            a.button href="/ui/board/groups" title="Choose the groups of workflows" { "Edit groups" }
            form method="post" action=(DISPLAY) {
                input type="hidden" name="back" value=(view.as_usual().href());
                button name="order" value=(order_name(!view.oldest_first())) title="Which end the newest column is at" {
                    @if view.oldest_first() { "Newest right" } @else { "Newest left" }
                }
            }
            @if let Some(zone) = &view.zone {
                a.button.go href=(view.in_usual_zone().href()) title="Times are in the zone of this address; change to yours" { "In " (zone.name()) " ×" }
            }
            span.soft #count role="status" {}
        }
    }
}

fn by_name(by: By) -> &'static str {
    match by {
        By::Groups => "Groups",
        By::Project => "Projects",
        By::Tag => "Tags",
    }
}

/// The filters of the script, which shows them.
fn filters(view: &BoardView, shown: &BoardData) -> Markup {
    let present = || shown.workflows.iter().filter(|row| row.present).map(|row| &row.definition);
    let projects: BTreeSet<&str> = present().map(|definition| definition.project.as_str()).collect();
    let tags: BTreeSet<&str> = present().flat_map(|definition| &definition.about.tags).map(String::as_str).collect();
    html! {
        input #find type="search" placeholder="Find workflows (/)" aria-label="Find workflows" value=(view.other("find")) autocomplete="off" hidden;
        select #only aria-label="Only rows with" data-value=(view.other("only")) hidden {
            option value="" { "All rows" }
            option value="trouble" { "Only failing" }
            option value="paused" { "Only paused" }
            @for state in SlotState::ALL {
                option value=(state.as_str()) { (look(state).letter) " " (state.as_str()) }
            }
        }
        (choice("project", "All projects", &projects, view))
        (choice("tag", "All tags", &tags, view))
    }
}

/// A filter by one of these names, if there is more than one.
fn choice(name: &str, all: &str, names: &BTreeSet<&str>, view: &BoardView) -> Markup {
    let chosen = view.other(name);
    html! {
        @if names.len() > 1 || !chosen.is_empty() {
            select #(name) aria-label={ "Only rows of one " (name) } data-value=(chosen) hidden {
                option value="" { (all) }
                @for one in names { option value=(one) { (one) } }
                @if !chosen.is_empty() && !names.contains(chosen) { option value=(chosen) { (chosen) " (none)" } }
            }
        }
    }
}

fn grid(view: &BoardView, groups: &[GroupRows<'_>], shown: &BoardData) -> Markup {
    let columns = view.columns();
    html! {
        div.grid.wide[view.is_wide()] #grid role="grid" aria-label="Workflows over time" aria-readonly="true" aria-multiselectable="true"
            data-start=(columns.bounds().0) data-width=(view.width()) data-count=(columns.count()) data-edges=[uneven(&columns)]
            data-room=[view.room()] data-order=(order_name(view.oldest_first()))
            data-zone=(view.zone().name()) data-stream=(view.stream_query(shown.seq)) data-holds=[view.holds_for()]
        {
            (head(view))
            @for group in groups {
                div.rows.folded[view.is_folded(group.name)] role="rowgroup" aria-label=(group.name) {
                    (heading(view, group, shown))
                    @for member in &group.members {
                        @match member {
                            Member::Workflow(row) => (workflow(view, row, shown)),
                            Member::Missing(id) => div.row.missing role="row" { span.name role="rowheader" title="It is listed in a group, but not defined" { (id) " (missing)" } },
                        }
                    }
                }
            }
        }
    }
}

/// The name of a group, which folds it, and what is shown of it while it is folded.
fn heading(view: &BoardView, group: &GroupRows<'_>, shown: &BoardData) -> Markup {
    let is_folded = view.is_folded(group.name);
    let all = is_folded.then(|| shown.rows.of_all(group.workflows().map(|row| &row.id)));
    html! {
        div.row.heading role="row" {
            span.name role="rowheader" {
                form method="post" action=(DISPLAY) {
                    input type="hidden" name="back" value=(view.href());
                    button.fold name="fold" value=(group.name) aria-expanded=(!is_folded) title="Fold or unfold" { (group.name) }
                }
                small { (group.members.len()) }
            }
            @match &all {
                Some(all) => span.cells.worst data-n=[Some(&all.counts).filter(|counts| !counts.is_empty())] { (all.letters) },
                None => span.cells.worst {},
            }
        }
    }
}

/// The edges of columns that are not all of one width: where they begin, and where the last one ends.
fn uneven(columns: &TimeColumns) -> Option<String> {
    let edges = || columns.edges().iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    (!columns.are_even()).then(edges)
}

/// Days above hours, months above weeks.
fn head(view: &BoardView) -> Markup {
    let edges = view.edges();
    let zone = edges.first().map(|(edge, _)| edge.strftime("%Z").to_string());
    html! {
        div.head role="rowgroup" {
            div.row role="row" {
                span.name role="columnheader" { (view.newest_shown()) }
                span.marks aria-hidden="true" {
                    @for (edge, before) in &edges {
                        @if let Some(begun) = begun(view, edge, before) {
                            b.day title=(edge.strftime("%A %-d %B %Y")) { (begun) }
                        } @else { i {} }
                    }
                }
            }
            div.row role="row" {
                span.name role="columnheader" { (zone.unwrap_or_default()) }
                span.marks {
                    @for (edge, _) in &edges {
                        i role="columnheader" title=(edge.strftime("%Y-%m-%d %H:%M %Z")) { (mark(view, edge)) }
                    }
                }
            }
        }
    }
}

/// The day, or the month, that begins with a column.
fn begun(view: &BoardView, edge: &jiff::Zoned, before: &jiff::Zoned) -> Option<String> {
    let (day, month) = (edge.date() != before.date(), edge.date().first_of_month() != before.date().first_of_month());
    match view.zoom {
        WEEK.. => month.then(|| edge.strftime("%b").to_string()),
        _ => day.then(|| edge.strftime("%d").to_string()),
    }
}

/// An hour, or the minutes between hours; for days, which are in the line above, the name; for weeks the day on which they begin.
fn mark(view: &BoardView, edge: &jiff::Zoned) -> Markup {
    html! {
        @if view.zoom >= WEEK { (edge.strftime("%d")) }
        @else if view.zoom >= DAY { (edge.strftime("%a")) }
        @else if i64::from(edge.minute()) < i64::from(view.zoom) { (edge.strftime("%H")) }
        @else { small { (edge.strftime(":%M")) } }
    }
}

fn workflow(view: &BoardView, row: &WorkflowRow, shown: &BoardData) -> Markup {
    let drawn = shown.rows.of(&row.id);
    let about = &row.definition.about;
    html! {
        div.row.paused[row.paused] role="row" data-w=(row.id) data-project=(row.definition.project) data-tags=[(!about.tags.is_empty()).then(|| about.tags.join("\n"))] {
            span.name role="rowheader" {
                @if steps::unfolds(row) {
                    a.unfold href=(view.toggled(&row.id).href()) aria-expanded=(view.is_unfolded(&row.id)) aria-label={ "Steps of " (row.id) } title="Show or hide its steps" {}
                }
                a href=(workflow_href(&row.id)) title=[about.description.as_deref()] { (row.id) }
                @if row.paused { em { "paused" } } @else if !row.enabled { em title="disabled" { "off" } }
            }
            span.cells data-n=[Some(&drawn.counts).filter(|counts| !counts.is_empty())] { (drawn.letters) }
        }
        @for step in shown.unfolded.get(&row.id).into_iter().flatten() { (step_row(view, step)) }
    }
}

fn step_row(view: &BoardView, step: &StepRow) -> Markup {
    html! {
        div.row.step role="row" {
            span.name role="rowheader" { (step.name) }
            span.cells {
                @for column in view.order() {
                    @if let Some(cell) = step.cell(column) { (step_cell(step, cell)) } @else { i role="gridcell" { "." } }
                }
            }
        }
    }
}

fn step_cell(step: &StepRow, cell: &StepCell) -> Markup {
    let (class, letter) = look_of_step(cell.state);
    let time = cell.id.key.of_run().time().map(format_short).unwrap_or_default();
    let title = format!("{} of {time}: {}", step.name, state_of_step(cell.state));
    html! {
        i.(class) role="gridcell" data-n=[(cell.count > 1).then_some(cell.count)] {
            a href=(slot_href(&cell.id)) title=(title) aria-label=(title) { @if let Some(letter) = letter { (letter) } }
        }
    }
}

fn legend() -> Markup {
    html! {
        footer.legend {
            @for state in SlotState::ALL {
                span title=(meaning(state)) { b.(look(state).class) data-trouble[is_trouble(state)] data-letter=(look(state).letter) data-weight=(weight(state)) data-word=(state.as_str()) { (look(state).letter) } " " (state.as_str()) }
            }
            span title="It has not succeeded, and its deadline has passed" { i.corner {} " late" }
            span #here aria-hidden="true" {}
            span #cell-why.unseen role="status" {}
        }
    }
}

/// The actions on selected cells; the script shows them.
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
