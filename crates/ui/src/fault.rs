//! Faults as pages.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kelos_front::fault::Fault;
use maud::html;

use super::page::Page;

/// The page of a fault.
pub(super) fn page(fault: &Fault) -> Response {
    let title = fault.title();
    let body = html! {
        section.narrow {
            h1 { (title) }
            p { (sentence(fault)) }
            p { a href="/ui" { "Go to the board" } }
        }
    };
    let status = if fault.code == "store-unreadable" { StatusCode::SERVICE_UNAVAILABLE } else { fault.status };
    (status, Page::bare(title).show(&body)).into_response()
}

/// The description of a fault as a sentence.
fn sentence(fault: &Fault) -> String {
    let hint = match &fault.hint {
        _ if fault.code.starts_with("store-") => {
            ". Reload the page in a moment; if it still fails, check the server's log and the disk with its database"
                .to_owned()
        }
        Some(hint) => format!("; {hint}"),
        None => String::new(),
    };
    let first = fault.what.chars().next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let rest: String = fault.what.chars().skip(1).collect();
    let end = if hint.is_empty() && rest.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{rest}{hint}{end}")
}
