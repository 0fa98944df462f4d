//! Storage: what takes how much, how long it is kept, and what goes next.

use axum::response::Response;
use jiff::Timestamp;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::history::size_text;
use kelos_wire::{ClockLeapDto, FoldersDto, RunFoldersDto, StorageDto, WorkerStorageDto};
use maud::{Markup, html};

use super::page::{Page, Tab};
use super::{time, words};

/// Workflows that are listed.
const LISTED: usize = 100;

pub(super) async fn show(app: App) -> Result<Response, Fault> {
    let now = app.handle().now();
    let found = app.storage().await?;
    let body = html! {
        h1 { "Storage" }
        div #storage { (page(&found, now)) }
    };
    Ok(Page::new(&app, "Storage").at(Tab::Capacity).style("pages.css").show(&body))
}

fn page(found: &StorageDto, now: Timestamp) -> Markup {
    let is_agreed = found.consent.as_deref() != Some("missing");
    html! {
        p.headline {
            @match (&found.problem, &found.runs) {
                (Some(problem), _) => { span.badge.bad { "problem" } " Failed to " (problem) "." }
                (None, _) if found.clock_leap.is_some() && found.terms.is_some() => {
                    span.badge.waits { "waits" } " Nothing goes, because " (found.clock_leap.as_ref().map(ClockLeapDto::words).unwrap_or_default())
                    ": history may not be as old as it looks. If the clock is right, " code { "kelos storage --agree" }
                }
                (None, Some(runs)) if !is_agreed && found.terms.is_some() && runs.going.folders > 0 => {
                    span.badge.waits { "waits" } " " (folders(&runs.going)) " would go. They are from before the upgrade, and stay until somebody agrees: "
                    code { "kelos storage --agree" }
                }
                (None, _) => {
                    span.badge.good { "fine" } " Runs are kept: "
                    (found.terms.as_deref().unwrap_or("all of them, for ever")) "."
                }
            }
        }
        @if !found.projects.is_empty() {
            ul { @for own in &found.projects { li { b { (own.project) } ": " (own.terms) } } }
        }
        h2 { "Database" }
        p {
            @if let Some(bytes) = found.database.bytes { (size_text(bytes)) ", of which " (size_text(found.database.free_bytes.unwrap_or(0))) " are free; " }
            @if let Some(bytes) = found.database.log_bytes { (size_text(bytes)) " in its write-ahead log; " }
            (words::count(found.database.events, "event")) ", " (words::count(found.database.slots, "slot")) "."
        }
        @if let Some(until) = found.database.removed_until {
            p { (words::count(found.database.removed_events, "event")) " and " (words::count(found.database.removed_runs, "run"))
                " up to " (time::at(until.0)) " were removed. Slots stay." }
        }
        @if found.database.consent.as_deref() == Some("missing") && found.database.going_events > 0 {
            p { span.badge.waits { "waits" } " " (words::count(found.database.going_events, "event"))
                " would go. They stay until somebody agrees: " code { "kelos storage --agree" } }
        }
        h2 { "Folders of runs" }
        @match &found.runs {
            Some(runs) => (of_runs(found, runs, now)),
            None => p.soft { "They have not been looked at yet." },
        }
        @if !found.workers.is_empty() {
            h2 { "Folders of workers" }
            div.wide { table {
                thead { tr { th { "Worker" } th { "Folders" } th { "Size" } th { "Oldest" } th { "Removed" } th { "As of" } } }
                tbody { @for WorkerStorageDto { worker, runs } in &found.workers { tr {
                    td { (worker) } td { (runs.all.folders) } td { (size_text(runs.all.bytes)) }
                    td { @if let Some(at) = &runs.oldest_at { (time::at(at.0)) } }
                    td { (folders(&runs.removed)) } td { (time::at_and_ago(runs.looked_at.0, now)) }
                } } }
            } }
        }
    }
}

fn of_runs(found: &StorageDto, runs: &RunFoldersDto, now: Timestamp) -> Markup {
    html! {
        p { (folders(&runs.all)) ", as of " (time::at_and_ago(runs.looked_at.0, now)) "." }
        @if let (Some(at), Some(workflow)) = (&runs.next_at, &runs.next_workflow) {
            p { "The next one of " b { (workflow) } " goes at " (time::at(at.0)) ", and " (folders(&runs.soon)) " within seven days." }
        }
        @if runs.held.folders > 0 {
            p { (folders(&runs.held)) " are past their time and stay: they are live, or their outcome is not known." }
        }
        @if found.removed.folders > 0 { p { (folders(&found.removed)) " were removed since the server started." } }
        @if !runs.workflows.is_empty() {
            div.wide { table {
                thead { tr { th { "Workflow" } th { "Folders" } th { "Size" } } }
                tbody { @for one in runs.workflows.iter().take(LISTED) {
                    tr { td { (one.workflow) } td { (one.folders) } td { (size_text(one.bytes)) } }
                } }
            } }
        }
        @let more = runs.more_workflows + runs.workflows.len().saturating_sub(LISTED) as u64;
        @if more > 0 { p.soft { "And " (words::count(more, "more workflow")) "." } }
    }
}

fn folders(of: &FoldersDto) -> String {
    format!("{} with {}", words::count(of.folders, "folder"), size_text(of.bytes))
}

#[cfg(test)]
mod tests {
    use kelos_wire::{WorkerFoldersDto, WorkflowFoldersDto};

    use super::*;

    #[test]
    fn what_takes_how_much_is_shown_with_what_would_go() {
        let going = FoldersDto { folders: 3, bytes: 9000 };
        let workflows = vec![WorkflowFoldersDto { workflow: "a<b".to_owned(), folders: 5, bytes: 20_000 }];
        let runs = RunFoldersDto { going, workflows, ..RunFoldersDto::default() };
        let (terms, consent) = (Some("90 days".to_owned()), Some("missing".to_owned()));
        let found = StorageDto { terms, consent, runs: Some(runs), ..StorageDto::default() };
        let told = page(&found, Timestamp::UNIX_EPOCH).into_string();
        for part in ["3 folders with 9 kB would go", "kelos storage --agree", "a&lt;b", "20 kB"] {
            assert!(told.contains(part), "{part} is not in {told}");
        }
        let agreed = StorageDto { consent: Some("agreed".to_owned()), ..found };
        let told = page(&agreed, Timestamp::UNIX_EPOCH).into_string();
        assert!(told.contains("kept: 90 days") && !told.contains("Folders of workers"), "{told}");
        let runs = WorkerFoldersDto { all: FoldersDto { folders: 7, bytes: 5000 }, ..WorkerFoldersDto::default() };
        let workers = vec![WorkerStorageDto { worker: "gpu<1".to_owned(), runs }];
        let told = page(&StorageDto { workers, ..agreed }, Timestamp::UNIX_EPOCH).into_string();
        assert!(told.contains("<td>gpu&lt;1</td><td>7</td><td>5 kB</td>"), "{told}");
    }
}
