//! Nodes: those that share the log of this server, and the changes of leader.

use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_wire::{LeaderDto, NodeStateDto, NodesDto};
use maud::{Markup, html};

use super::documents::Document;
use super::page::{Page, Tab};
use super::{time, words};

/// The silence after which a node is shown as silent: it reports every second.
const SILENT: u64 = 10_000;

pub(super) async fn show(app: App) -> Result<Response, Fault> {
    let now = app.handle().now();
    let found = app.nodes().await?;
    let body = html! {
        // Nodes fall silent without an event.
        div data-events="" data-every="5" hidden {}
        h1 { "Nodes" }
        div #nodes data-live { (page(&found, now)) }
    };
    Ok(Page::new(&app, "Nodes").at(Tab::Nodes).style("pages.css").script("live.js").show(&body))
}

fn page(found: &NodesDto, now: Timestamp) -> Markup {
    let Some(store) = &found.store else {
        return html! {
            p { "This server has a log of its own. Several servers that share one are nodes: one leads, and another takes over if it ends." }
            p.soft { (Document::Nodes.link("More about nodes")) }
        };
    };
    html! {
        (headline(found, now))
        div.wide { table {
            thead { tr { th { "Node" } th { "Role" } th { "Address" } th { "Version" } th { "Behind" } th { "Heard" } th { "Load" } } }
            tbody { @for node in &found.nodes { (one_node(node, now)) } }
        } }
        p.soft { "The log is " code { (store) } ", with " (entries(found.last_entry)) "." }
        h2 { "Changes of leader" }
        div.wide { table {
            thead { tr { th { "Since" } th { "Leader" } th { "Reason" } th { "Epoch" } } }
            tbody { @for leader in &found.leaders { (change(leader, now)) } }
        } }
    }
}

/// The leader, since when and why, and whether a node could take over.
fn headline(found: &NodesDto, now: Timestamp) -> Markup {
    let ready = found.nodes.iter().filter(|node| !node.leads && !is_silent(node) && node.trouble.is_none()).count();
    html! {
        p.headline {
            @match found.nodes.iter().find(|node| node.leads) {
                Some(leader) => {
                    @if ready == 0 { span.badge.again { "alone" } } @else { span.badge.good { "fine" } }
                    " " b { (leader.name) } " leads"
                    @if let Some(change) = found.leaders.first() { " since " (time::at_and_ago(change.since.0, now)) ": " (change.reason) }
                    ". "
                    @if ready == 0 { "No other node could take over." }
                    @else { (words::count(ready as u64, "other node")) " could take over." }
                }
                None => { span.badge.waits { "standby" } " No node leads at the moment." }
            }
        }
    }
}

fn one_node(node: &NodeStateDto, now: Timestamp) -> Markup {
    html! {
        tr {
            td { b { (node.name) } }
            td {
                @if node.leads { span.badge.good { "leads" } }
                @else if is_silent(node) { span.badge.bad { "silent" } }
                @else if node.trouble.is_some() { span.badge.bad { "troubled" } }
                @else { span.badge.waits { "stands by" } }
                @for trouble in [&node.trouble, &node.unreached].into_iter().flatten() { p.note { "It failed to " (trouble) "." } }
            }
            td { @match node.address.as_deref() { Some(address) if is_web(address) => a href={ (address) "/ui" } { (address) }, other => (other.unwrap_or("–")) } }
            td { (node.version) }
            td { (entries(node.behind)) }
            td { (heard(node, now)) }
            td { (node.load.map_or_else(|| "–".to_owned(), |load| format!("{load:.2}"))) }
        }
    }
}

/// A report of a node every second is no news.
fn heard(node: &NodeStateDto, now: Timestamp) -> Markup {
    if !is_silent(node) {
        return html! { "now" };
    }
    let silence = SignedDuration::from_millis(i64::try_from(node.heard_millis).unwrap_or(i64::MAX));
    now.checked_sub(silence).map_or_else(|_| html! { "–" }, |at| time::ago(at, now))
}

fn entries(number: u64) -> String {
    if number == 1 { "1 entry".to_owned() } else { format!("{number} entries") }
}

fn is_silent(node: &NodeStateDto) -> bool {
    node.heard_millis >= SILENT
}

/// Whether an address that a node told of itself can be a link.
fn is_web(address: &str) -> bool {
    address.starts_with("http://") || address.starts_with("https://")
}

fn change(leader: &LeaderDto, now: Timestamp) -> Markup {
    html! {
        tr {
            td { (time::at_and_ago(leader.since.0, now)) }
            td { (leader.node) }
            td { (leader.reason) }
            td { (leader.epoch) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, leads: bool) -> NodeStateDto {
        NodeStateDto {
            name: name.to_owned(),
            address: Some("https://a.example".to_owned()),
            version: "0.1.0".to_owned(),
            leads,
            reads: 1,
            followed: 40,
            behind: u64::from(!leads) * 2,
            heard_millis: 0,
            load: Some(0.5),
            trouble: None,
            unreached: None,
            clock_ahead_millis: None,
        }
    }

    fn shown(nodes: Vec<NodeStateDto>) -> String {
        let since = Timestamp::from_second(1_000_000_000).unwrap();
        let leader = LeaderDto {
            epoch: 7,
            node: "one".to_owned(),
            address: None,
            since: since.into(),
            reason: "two was silent".to_owned(),
        };
        let found =
            NodesDto { store: Some("file:log".to_owned()), last_entry: 42, writes: 1, nodes, leaders: vec![leader] };
        page(&found, since + SignedDuration::from_secs(60)).into_string()
    }

    #[test]
    fn the_leader_its_lag_and_the_reason_of_the_change_are_shown() {
        let page = shown(vec![node("one", true), node("two", false)]);
        for text in [
            "<b>one</b> leads since",
            "two was silent",
            "1 other node could take over",
            "2 entries",
            "42 entries",
            "0.50",
        ] {
            assert!(page.contains(text), "{text} is not in {page}");
        }
    }

    #[test]
    fn a_silent_node_can_not_take_over_and_only_addresses_of_the_web_are_links() {
        let silent =
            NodeStateDto { heard_millis: 30_000, address: Some("javascript:x".to_owned()), ..node("two", false) };
        let page = shown(vec![node("one", true), silent]);
        for text in ["No other node could take over", ">silent<", "30 s ago"] {
            assert!(page.contains(text), "{text} is not in {page}");
        }
        assert!(!page.contains("href=\"javascript"), "{page}");
        assert!(shown(vec![node("two", false)]).contains("No node leads at the moment"));
    }
}
