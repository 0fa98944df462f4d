//! The board: all workflows over time, at one glance.

use axum::extract::State;
use axum::response::Response;
use maud::html;

use super::page::{Page, Tab};
use super::trouble::Trouble;
use crate::app::App;

pub(super) async fn show(State(app): State<App>) -> Result<Response, Trouble> {
    let rows = app.read(|reader| reader.workflows()).await?;
    let body = html! {
        @if rows.iter().all(|row| !row.present) {
            section.narrow { h1 { "No workflows yet" } }
        }
    };
    Ok(Page::new(&app, "Board").at(Tab::Board).filling().show(&body))
}
