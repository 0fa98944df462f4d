//! Workers: those that run commands for this server, and the runs that each has.

use axum::response::Response;
use jiff::Timestamp;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_wire::WorkerDto;
use maud::{Markup, html};

use super::documents::Document;
use super::page::{Page, Tab};
use super::{time, words};

/// Runs of a worker that are named; the others are counted.
const NAMED: usize = 5;

pub(super) async fn show(app: App) -> Result<Response, Fault> {
    let now = app.handle().now();
    let found = app.workers().await?;
    let takes = app.node().desk().takes_workers();
    let body = html! {
        // Workers fall silent without an event.
        div data-events="" data-every="5" hidden {}
        h1 { "Workers" }
        div #workers data-live { (page(&found, takes, now)) }
    };
    Ok(Page::new(&app, "Workers").at(Tab::Workers).style("pages.css").script("live.js").show(&body))
}

fn page(found: &[WorkerDto], takes: bool, now: Timestamp) -> Markup {
    html! {
        (headline(found, takes))
        @if found.is_empty() {
            @if takes { pre { code { "kelos worker --server URL --token-file worker.token --labels gpu,eu" } } }
            @else { pre { code { "kelos up --workers" } } }
            p.soft { (Document::Workers.link("More about workers")) }
        } @else {
            div.wide { table {
                thead { tr {
                    th { "Worker" } th { "State" } th { "Machine" } th { "Labels" } th { "Runs" } th { "Room for" } th { "Version" } th { "Since" }
                } }
                tbody { @for worker in found { (one_worker(worker, now)) } }
            } }
        }
    }
}

/// Whether runs find a worker, in one sentence.
fn headline(found: &[WorkerDto], takes: bool) -> Markup {
    let away = found.iter().filter(|worker| worker.away_since.is_some()).count() as u64;
    let there = found.len() as u64 - away;
    html! {
        p.headline {
            @if !takes { span.badge.ended { "none" } " This server runs commands itself, and takes no workers." }
            @else if there == 0 { span.badge.bad { "none" } " No worker is connected, and no command starts." }
            @else if away > 0 { span.badge.again { "away" } " " (words::count(there, "worker")) " connected, " (away) " away." }
            @else { span.badge.good { "fine" } " " (words::count(there, "worker")) " connected." }
        }
    }
}

fn one_worker(worker: &WorkerDto, now: Timestamp) -> Markup {
    let workflows = worker.workflows.join(", ");
    html! {
        tr {
            td { b { (worker.name) } @if !workflows.is_empty() { br; span.soft { "only " (workflows) } } }
            td { (standing(worker, now)) }
            td {
                (or_dash(&worker.host))
                @if !worker.remote { br; span.soft { "in the folder of the server" } }
                @if let Some(outputs) = &worker.outputs { br; span.soft { "copies its output to " (outputs) } }
            }
            td { (or_dash(&worker.labels.join(", "))) }
            td {
                (worker.runs.len())
                @if !worker.runs.is_empty() { ": " (worker.runs.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ")) }
                @if worker.runs.len() > NAMED { span.soft { " and " (worker.runs.len() - NAMED) " more" } }
            }
            td { (worker.free) }
            td { (worker.version.as_deref().unwrap_or("–")) }
            td { @match worker.since { Some(since) => (time::at_and_ago(since.0, now)), None => "–" } }
        }
    }
}

fn standing(worker: &WorkerDto, now: Timestamp) -> Markup {
    match (worker.away_since, worker.leaves) {
        (Some(since), _) => html! { span.badge.bad { "away" } " since " (time::at_and_ago(since.0, now)) },
        (None, true) => html! { span.badge.waits { "drains" } },
        (None, false) => html! { span.badge.good { "connected" } },
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker() -> WorkerDto {
        WorkerDto {
            name: "gpu1:3f0c".to_owned(),
            workflows: Vec::new(),
            project: None,
            labels: vec!["eu".to_owned(), "gpu".to_owned()],
            free: 5,
            runs: (1..=7).map(|number| format!("app@{number}#1")).collect(),
            remote: true,
            version: Some("0.1.0".to_owned()),
            host: "gpu1".to_owned(),
            outputs: Some("s3://bucket/outputs".to_owned()),
            since: Some(Timestamp::UNIX_EPOCH.into()),
            leaves: false,
            away_since: None,
        }
    }

    #[test]
    fn workers_are_shown_with_their_labels_runs_and_state() {
        let now = Timestamp::from_second(600).unwrap();
        let drains =
            WorkerDto { leaves: true, remote: false, runs: Vec::new(), workflows: vec!["app".to_owned()], ..worker() };
        let away = WorkerDto { away_since: Some(Timestamp::from_second(540).unwrap().into()), ..worker() };
        let page = page(&[worker(), drains, away], true, now).into_string();
        let texts = [
            "eu, gpu",
            "7: app@1#1, app@2#1",
            "and 2 more",
            ">drains<",
            "only app",
            "copies its output to s3://bucket/outputs",
            "in the folder of the server",
            "1 min ago",
            "2 workers connected, 1 away",
        ];
        for text in texts {
            assert!(page.contains(text), "{text} is not in {page}");
        }
    }

    #[test]
    fn a_server_without_workers_says_how_to_have_some() {
        let now = Timestamp::UNIX_EPOCH;
        assert!(page(&[], true, now).into_string().contains("kelos worker --server URL"));
        assert!(page(&[], false, now).into_string().contains("kelos up --workers"));
    }
}
