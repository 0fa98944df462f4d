//! Alerts: what is open, the rules, and the channels with a button that tries each.

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::response::Response;
use jiff::Timestamp;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::identity::Caller;
use kelos_wire::{AlertChannelDto, AlertDto, AlertRuleDto, AlertsDto};
use maud::{Markup, html};
use serde::Deserialize;

use super::documents::Document;
use super::page::{Page, Tab};
use super::{asked, time, words};

/// The address of the page.
pub(super) const ALERTS: &str = "/ui/alerts";

/// The form of the button of a channel.
#[derive(Deserialize)]
pub(super) struct TestForm {
    channel: String,
}

pub(super) async fn show(app: App) -> Result<Response, Fault> {
    let now = app.handle().now();
    let found = app.alerts().await?;
    let body = html! {
        // Quiet hours end, and channels come back, without an event.
        div data-events="" data-every="5" hidden {}
        h1 { "Alerts" }
        div #alerts data-live { (page(&found, now)) }
    };
    Ok(Page::new(&app, "Alerts").at(Tab::Alerts).style("pages.css").script("live.js").show(&body))
}

pub(super) async fn test(
    app: App,
    Caller(who): Caller,
    fields: Result<Form<TestForm>, FormRejection>,
) -> Result<Response, Fault> {
    app.test_channel(&asked::form(fields)?.channel, &who).await?;
    Ok(asked::back_to(ALERTS))
}

fn page(found: &AlertsDto, now: Timestamp) -> Markup {
    html! {
        (headline(found))
        @if !found.open.is_empty() { (list("Since", &found.open, now)) }
        @if !found.news.is_empty() {
            h2 { "In the last hour" }
            (list("When", &found.news, now))
        }
        @if !found.channels.is_empty() {
            h2 { "Channels" }
            div.wide { table {
                thead { tr { th { "Channel" } th { "State" } th { "Kind" } th { "Sent" } th { "Waiting" } th { "Last" } th { "Test" } } }
                tbody { @for channel in &found.channels { (one_channel(channel, now)) } }
            } }
        }
        @if !found.rules.is_empty() {
            h2 { "Rules" }
            div.wide { table {
                thead { tr { th { "Rule" } th { "When" } th { "Only" } th { "To" } th { "Timing" } } }
                tbody { @for rule in &found.rules { (one_rule(rule)) } }
            } }
        }
        p.soft { (Document::Alerts.link("More about alerts")) }
    }
}

/// How many alerts are open, in one sentence.
fn headline(found: &AlertsDto) -> Markup {
    html! {
        p.headline {
            @if let Some(problem) = &found.problem { span.badge.bad { "troubled" } " It failed to " (problem) "." }
            @else if !found.open.is_empty() { span.badge.bad { "open" } " " (words::count(found.open.len() as u64, "alert")) " open." }
            @else if found.channels.is_empty() { span.badge.ended { "none" } " Nobody is told of anything: there are no channels." }
            @else { span.badge.good { "fine" } " No alert is open." }
        }
    }
}

fn list(when: &str, alerts: &[AlertDto], now: Timestamp) -> Markup {
    html! {
        div.wide { table.cards {
            thead { tr { th { (when) } th { "Condition" } th { "What" } th { "Told by" } } }
            tbody { @for alert in alerts { (one_alert(alert, now)) } }
        } }
    }
}

fn one_alert(alert: &AlertDto, now: Timestamp) -> Markup {
    html! {
        tr {
            td { (time::at_and_ago(alert.opened_at.0, now)) }
            td { (alert.condition) }
            td.sentence { (alert.words) @if alert.count > 1 { p.note { (alert.count) " in all" } } }
            td data-head="Told by" { @if alert.told.is_empty() { "–" } @else { (alert.told.join(", ")) } }
        }
    }
}

fn one_channel(channel: &AlertChannelDto, now: Timestamp) -> Markup {
    html! {
        tr {
            td { b { (channel.name) } }
            td {
                @if let Some(problem) = &channel.problem { span.badge.bad { "away" } p.note { "It failed to " (problem) "." } }
                @else if channel.sent_at.is_some() { span.badge.good { "fine" } }
                @else { span.badge.waits { "not used" } }
            }
            td { (channel.kind) }
            td { (channel.sent) }
            td { (channel.waiting) }
            td { @match &channel.sent_at { Some(at) => (time::at_and_ago(at.0, now)), None => "–" } }
            td { form method="post" action="/ui/alerts/test" { button name="channel" value=(channel.name) { "Test" } } }
        }
    }
}

fn one_rule(rule: &AlertRuleDto) -> Markup {
    let or_dash = |text: &str| if text.is_empty() { "–".to_owned() } else { text.to_owned() };
    html! {
        tr {
            td { b { (rule.name) } }
            td { (rule.when.join(", ")) }
            td { (or_dash(&rule.only)) }
            td { (rule.to.join(", ")) }
            td { (or_dash(&rule.timing)) }
        }
    }
}
