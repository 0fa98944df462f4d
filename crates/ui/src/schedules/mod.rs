//! Event schedules: all of them, each on its workflow's page, the programs that they run, and the facts that they wait for.

mod act;
mod list;
mod one;
mod recent;
mod slot;
mod words;

use axum::Router;
use axum::routing::{get, post};
use kelos_front::Front;

pub(super) use act::why;
pub(super) use one::{Own, facts, read, state, warnings};
pub(super) use slot::{Story, story};
pub(super) use words::{constraints, gates};

pub(super) fn router() -> Router<Front> {
    Router::new()
        .route("/ui/schedules", get(list::show))
        .route("/ui/schedules/{id}/{action}", post(act::act))
        .route("/ui/facts", get(recent::show))
}
