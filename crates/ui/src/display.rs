//! How pages are displayed: a form for the time zone, the theme and the direction, which cookies keep.

use axum::Form;
use axum::extract::Query;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::http::header;
use axum::response::Response;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::time::Zone;
use maud::{Markup, html};
use serde::Deserialize;

use super::page::{DISPLAY, Page, segment};
use super::viewer::{self, Choice, Theme};
use super::{asked, time};

/// Most groups of the board that stay folded: a cookie is small.
const MOST_FOLDED: usize = 2_500;

/// The page that one came from.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DisplayQuery {
    back: Option<String>,
}

/// Choices; what a form does not have stays.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DisplayForm {
    zone: Option<String>,
    /// `light`, `dark`, or `system`.
    theme: Option<String>,
    /// `newest` or `oldest` slots first.
    order: Option<String>,
    /// A group of the board to fold, or to unfold.
    fold: Option<String>,
    /// The page that follows.
    back: Option<String>,
}

pub(super) async fn show(wanted: Result<Query<DisplayQuery>, QueryRejection>, app: App) -> Result<Response, Fault> {
    let back = back(asked::query(wanted)?.back);
    let now = app.handle().now();
    let body = html! {
        h1 { "Display" }
        p { "What you choose is kept by this browser, for all pages. It is now " (time::at(now)) "." }
        (form(&back))
    };
    Ok(Page::new(&app, "Display").style("pages.css").show(&body))
}

fn form(back: &str) -> Markup {
    let chosen = viewer::current();
    let theme = chosen.theme.map_or(SYSTEM, Theme::name);
    let order = if chosen.oldest_first { "oldest" } else { "newest" };
    html! {
        form.display method="post" action=(DISPLAY) {
            input type="hidden" name="back" value=(back);
            p {
                label { "Time zone " input #display-zone name="zone" value=(chosen.zone.name()) required maxlength="60" autocomplete="off" spellcheck="false"; }
                " " button #display-own type="button" hidden { "Zone of this browser" }
            }
            p.soft { "UTC, or a name such as Europe/Berlin. Names of slots stay in UTC." }
            (choices("Theme", "theme", theme, &[(SYSTEM, "as the system"), ("light", "light"), ("dark", "dark")]))
            (choices("Slots", "order", order, &[("newest", "newest on the left"), ("oldest", "newest on the right")]))
            p { button.primary { "Save" } " " a.button href=(back) { "Cancel" } }
        }
    }
}

/// The theme of the system.
const SYSTEM: &str = "system";

fn choices(title: &str, name: &str, chosen: &str, of: &[(&str, &str)]) -> Markup {
    html! {
        fieldset {
            legend { (title) }
            @for (value, words) in of { label { input type="radio" name=(name) value=(value) checked[*value == chosen]; " " (words) } " " }
        }
    }
}

/// Keeps choices, and leads back.
pub(super) async fn save(sent: Result<Form<DisplayForm>, FormRejection>) -> Result<Response, Fault> {
    let sent = asked::form(sent)?;
    let mut kept = Vec::new();
    if let Some(name) = asked::filled(sent.zone) {
        let zone = Zone::parse(&name).map_err(|error| plain::bad_request(format!("{error}.")))?;
        kept.push(Choice::Zone.keep(zone.name()));
    }
    if let Some(theme) = asked::filled(sent.theme) {
        kept.push(Choice::Theme.keep(one_of("theme", theme, &[SYSTEM, "light", "dark"])?));
    }
    if let Some(order) = asked::filled(sent.order) {
        kept.push(Choice::Order.keep(one_of("order", order, &["newest", "oldest"])?));
    }
    if let Some(group) = sent.fold {
        kept.push(Choice::Folded.keep(&folded_with(group)));
    }
    let mut response = asked::back_to(&back(sent.back));
    for cookie in kept {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// The folded groups, with one of them the other way.
fn folded_with(group: String) -> String {
    let mut folded = viewer::current().folded;
    if !folded.remove(&group) {
        folded.insert(group);
    }
    let mut kept: Vec<String> = folded.into_iter().collect();
    while segment(&kept.join("\n")).to_string().len() > MOST_FOLDED {
        kept.pop();
    }
    kept.join("\n")
}

fn one_of(name: &str, given: String, names: &[&'static str]) -> Result<&'static str, Fault> {
    let found = names.iter().find(|one| **one == given);
    found.copied().ok_or_else(|| {
        plain::bad_request(format!("The field \"{name}\" is \"{given}\", expected one of: {}.", names.join(", ")))
    })
}

/// The page to go back to: one of this interface, and nothing else.
fn back(wanted: Option<String>) -> String {
    let is_own = |place: &String| {
        let rest = place.strip_prefix("/ui");
        let is_page = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
        is_page && place.bytes().all(|byte| (b'!'..=b'~').contains(&byte) && byte != b'\\')
    };
    wanted.filter(is_own).unwrap_or_else(|| "/ui".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_led_back_to_pages_of_this_interface_alone() {
        for place in ["/ui", "/ui?zoom=60&find=a", "/ui/stuck#x"] {
            assert_eq!(back(Some(place.to_owned())), place);
        }
        for place in ["//evil.example", "https://evil.example", "/uix", "", "/ui\r\nx: y", "/ui/\\evil", "/ui é"] {
            assert_eq!(back(Some(place.to_owned())), "/ui");
        }
    }
}
