//! Capacity: places for all runs, pools, and workflows at their own limit.

use axum::response::Response;
use jiff::Timestamp;
use kelos_core::{Capacity, FullWorkflow, Holder, PoolState, RateState, Waiter};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::WorkflowId;
use kelos_model::time::format_short;
use maud::{Markup, html};

use super::documents::Document;
use super::page::{Page, Tab, slot_href, workflow_href};
use super::{time, words};

/// Permits that are drawn one by one; more of them are one bar.
const DRAWN: u32 = 40;

pub(super) async fn show(app: App) -> Result<Response, Fault> {
    let now = app.handle().now();
    let found = app.capacity().await?;
    let body = html! {
        // Waits get longer without an event.
        div data-events="" data-every="10" hidden {}
        h1 { "Capacity" }
        div #capacity data-live { (page(&found, now)) }
    };
    Ok(Page::new(&app, "Capacity").at(Tab::Capacity).style("pages.css").script("live.js").show(&body))
}

fn page(found: &Capacity, now: Timestamp) -> Markup {
    html! {
        (headline(found))
        (all_runs(found, now))
        h2 { "Pools" }
        @if found.pools.is_empty() { (no_pools()) }
        @for pool in &found.pools { (one_pool(pool, now)) }
        h2 { "Workflows at their own limit" }
        @if found.full.is_empty() {
            p.soft { "No slot waits for another run of its own workflow to end." }
        } @else {
            (full_workflows(found, now))
        }
        p.soft { a href="/ui/storage" { "Storage" } ": what takes how much on the disk, and how long it is kept." }
    }
}

/// Whether anything waits for a permit, in one sentence.
fn headline(found: &Capacity) -> Markup {
    let pools = found.pools.iter().filter(|pool| pool.queued > 0).count();
    let workflows = found.full.len() + found.more_full;
    html! {
        p.headline {
            @if found.queued == 0 && pools == 0 && workflows == 0 {
                span.badge.good { "fine" } " No slot waits for a permit."
            } @else {
                span.badge.waits { "queued" } " Slots wait "
                @let waits = [
                    (found.queued > 0).then(|| "for the global limit".to_owned()),
                    (pools > 0).then(|| format!("for the permits of {}", words::count(pools as u64, "pool"))),
                    (workflows > 0).then(|| format!("for runs of {} to end", words::count(workflows as u64, "workflow"))),
                ];
                (waits.into_iter().flatten().collect::<Vec<_>>().join(" and ")) "."
            }
        }
    }
}

fn all_runs(found: &Capacity, now: Timestamp) -> Markup {
    html! {
        article.pool {
            h2 #all-runs { "All runs" }
            (bar(u64::from(found.running), Some(found.limit)))
            @if !found.runs.is_empty() {
                p { "Held by " (list(found.runs.iter().map(|(id, runs)| workflow_runs(id, *runs)), found.more_runs as u64)) }
            }
            @if found.queued > 0 {
                p { (words::count(found.queued, "slot")) " " (verb(found.queued)) " for a permit:" }
                (line(&found.first, now))
            }
        }
    }
}

fn workflow_runs(id: &WorkflowId, runs: u32) -> Markup {
    html! { a href=(workflow_href(id)) { (id) } @if runs > 1 { " (" (runs) ")" } }
}

fn one_pool(pool: &PoolState, now: Timestamp) -> Markup {
    html! {
        article.pool id=(format!("pool-{}", pool.pool)) {
            h3 { (pool.pool) }
            @if pool.size.is_some() || pool.rate.is_none() { (bar(pool.held, pool.size)) }
            @if let Some(state) = &pool.rate { (tokens(state)) }
            @if pool.is_disputed {
                p.note { "Definitions give it different limits, and the smallest holds. " a href="/ui/problems" { "Problems" } " says which." }
            }
            @if pool.size.is_none() && pool.rate.is_none() { p.soft { "No workflow names it any more; live runs keep their permits until they end." } }
            @if !pool.holders.is_empty() {
                p { "Held by " (list(pool.holders.iter().map(|one| holder(one, now)), pool.more_holders)) }
            }
            @if pool.queued > 0 {
                p {
                    (words::count(pool.queued, "slot")) " " (verb(pool.queued)) " in the queue"
                    @if let Some(since) = pool.oldest_since { ", the longest since " (time::ago(since, now)) }
                    ":"
                }
                (line(&pool.first, now))
            }
        }
    }
}

/// The rate of a pool, and when its next token comes.
fn tokens(state: &RateState) -> Markup {
    html! {
        p {
            b { (state.tokens) " of " (state.rate.burst) " tokens" } " there: " (state.rate)
            @if let (0, Some(next)) = (state.tokens, state.next) { "; the next comes at " (format_short(next)) }
        }
    }
}

/// How much is used: a square for each permit if there are few, and the same in words.
fn bar(held: u64, size: Option<u32>) -> Markup {
    let of = size.map_or_else(|| "none".to_owned(), |size| size.to_string());
    let full = size.is_none_or(|size| held >= u64::from(size));
    html! {
        div.permits {
            @match size {
                Some(size) if size <= DRAWN => {
                    span.squares aria-hidden="true" {
                        @for place in 0..u64::from(size) { i.taken[place < held].full[full] {} }
                    }
                }
                _ => { meter.full[full] min="0" max=(size.unwrap_or(1)) value=(held) aria-hidden="true" {} }
            }
            b { (held) " of " (of) } " taken"
            @if full && held > 0 { " " span.badge.again { "full" } }
        }
    }
}

fn holder(one: &Holder, now: Timestamp) -> Markup {
    let slot = &one.run.slot;
    html! {
        a href=(slot_href(slot)) { (slot.short()) }
        @if one.permits != 1 { " (" (one.permits) " permits)" }
        @if one.is_within { " within its run" }
        " " span.soft { (time::ago(one.since, now)) }
    }
}

/// The first in a line, in the order in which they go.
fn line(first: &[Waiter], now: Timestamp) -> Markup {
    html! {
        ol.line-up {
            @for one in first { li { (waiter(one, now)) } }
        }
    }
}

fn waiter(one: &Waiter, now: Timestamp) -> Markup {
    html! {
        a href=(slot_href(&one.slot)) { (one.slot.short()) }
        @if one.permits != 1 { " takes " (one.permits) }
        @if one.priority != 0 { ", priority " (one.priority) }
        @if one.is_within { ", within its run, asked " } @else { ", queued " }
        (time::ago(one.since, now))
        @if one.behind > 0 { span.soft { ", and " (one.behind) " more of its workflow" } }
    }
}

fn list(of: impl Iterator<Item = Markup>, more: u64) -> Markup {
    html! {
        span.holders {
            @for one in of { span { (one) } }
            @if more > 0 { span.soft { "and " (more) " more" } }
        }
    }
}

fn verb(number: u64) -> &'static str {
    if number == 1 { "waits" } else { "wait" }
}

fn full_workflows(found: &Capacity, now: Timestamp) -> Markup {
    html! {
        div.wide { table {
            thead { tr { th { "Workflow" } th { "Runs" } th { "Queued" } th { "Next" } } }
            tbody { @for one in &found.full { (full_workflow(one, now)) } }
        } }
        @if found.more_full > 0 { p.soft { "and " (words::count(found.more_full as u64, "workflow")) " more" } }
    }
}

fn full_workflow(one: &FullWorkflow, now: Timestamp) -> Markup {
    html! {
        tr {
            td { a href=(workflow_href(&one.workflow)) { (one.workflow) } }
            td { (bar(u64::from(one.active), Some(one.concurrency))) }
            td { (one.queued) }
            td {
                a href=(slot_href(&one.first.slot)) { (time::key(&one.first.slot.key)) }
                ", queued " (time::ago(one.first.since, now))
            }
        }
    }
}

/// The purpose of pools, while there is none.
fn no_pools() -> Markup {
    html! {
        div.narrow {
            p { "No workflow names a pool. A pool limits how many runs of several workflows use something at once: a cluster, a database, licences." }
            pre { code { "var SPARK = celos.pool(\"spark\", 4);      // four permits for all who name it\n\nkelos.workflow(\"report\", {\n    pools: [SPARK],                        // each run takes one\n    …\n});\nkelos.workflow(\"rebuild\", {\n    pools: [celos.pool(\"spark\", 4, 2)],    // each run takes two\n    …\n});" } }
            p.soft { "A run gets all its permits or waits. Put the pool into a file of the defaults folder to share it between files. " (Document::Capacity.link("More about capacity")) }
        }
    }
}
