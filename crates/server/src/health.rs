//! Whether a server works and is ready: what `/api/v1/health` shows and load balancers ask for.

use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use kelos_engine::reads::Lane;
use kelos_engine::{Pace, Status};
use kelos_front::{App, Front};
use kelos_trust::Right;

/// The longest time since a node of several last had all that the log has, with which it is ready.
const MOST_LAG: Duration = Duration::from_secs(10);

/// The health of a server.
pub(crate) struct Health {
    /// A code, see [`HealthDto`](kelos_wire::HealthDto).
    pub(crate) status: &'static str,
    /// The problem, in words that complete "failed to …".
    pub(crate) reason: Option<String>,
    /// The position of the last event; none if the store can't be read.
    pub(crate) last_seq: Option<u64>,
    /// The time since the node last had all that the log has; none if it is no node of several.
    lag: Option<Option<Duration>>,
}

impl Health {
    /// The health by now, whoever asks.
    pub(crate) async fn of(app: &App) -> Health {
        let handle = app.node().handle();
        let (mut status, mut reason) = match (handle.status(), handle.pace()) {
            (Status::Leading { .. }, Pace::ByItself) => ("leading", None),
            (Status::Leading { .. }, Pace::Stepped) => ("stepped", None),
            (Status::Standby, _) => ("standby", None),
            (Status::Starting, _) => ("starting", None),
            (Status::Troubled { reason }, _) => ("troubled", Some(reason)),
            (Status::Damaged { reason }, _) => ("damaged", Some(reason)),
            (Status::Stopped, _) => ("stopped", None),
        };
        if status == "leading"
            && app.node().log().is_some_and(|log| log.lease_remaining().is_none_or(|left| left.is_zero()))
        {
            let why = "lead: the lease of this node has run out, was taken by another one, or was given back";
            (status, reason) = ("troubled", Some(why.to_owned()));
        }
        if status == "standby" {
            // The obstacle to its leading, if there is one.
            reason = app.node().log().and_then(|log| log.status().trouble);
        }
        // The engine may be idle: only a read shows whether the store can be read.
        let reader = handle.reader().clone();
        let last_seq = match Lane::Health.read("read from the store", move || reader.last_seq()).await {
            Ok(last_seq) => Some(last_seq),
            Err(error) => {
                if status != "damaged" {
                    (status, reason) = ("troubled", Some(error.to_string()));
                }
                None
            }
        };
        Health { status, reason, last_seq, lag: app.node().log().map(kelos_store::log::LogState::lag) }
    }

    /// Whether it schedules, or stands by.
    pub(crate) fn works(&self) -> bool {
        matches!(self.status, "leading" | "stepped" | "standby")
    }

    /// The reason for which requests should go elsewhere; none if the server is ready.
    pub(crate) fn obstacle(&self) -> Option<String> {
        let words = match self.status {
            "starting" => "the definitions are not taken in yet",
            "troubled" => {
                "no change can be made: the store can't be read or written, this node is not sure to lead, or a check of the scheduler failed"
            }
            "damaged" => "what is stored is damaged",
            "stopped" => "the server is stopping",
            _ => return self.late(),
        };
        Some(words.to_owned())
    }

    fn late(&self) -> Option<String> {
        let most = MOST_LAG.as_secs();
        match self.lag? {
            Some(lag) if lag <= MOST_LAG => None,
            Some(lag) => Some(format!(
                "this node last had all that the log has {} s ago, expected at most {most} s",
                lag.as_secs()
            )),
            None => Some("this node has not read the log to its end yet".to_owned()),
        }
    }
}

/// The routes for those who restart servers and send requests to them.
pub(crate) fn router() -> Router<Front> {
    Router::new().route("/health/live", get(live)).route("/health/ready", get(ready))
}

async fn live() -> Response {
    answer(StatusCode::OK, "live\n".to_owned())
}

async fn ready(app: App) -> Response {
    let health = Health::of(&app).await;
    let Some(obstacle) = health.obstacle() else { return answer(StatusCode::OK, "ready\n".to_owned()) };
    // Errors name addresses and files.
    let why = health.reason.filter(|_| app.may(Right::View, None)).map(|reason| format!(": failed to {reason}"));
    let words = format!("not ready: {obstacle}{}\n", why.unwrap_or_default());
    answer(StatusCode::SERVICE_UNAVAILABLE, words)
}

/// An answer in plain text that nobody keeps.
pub(crate) fn answer(status: StatusCode, words: String) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, words).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(status: &'static str, lag: Option<Option<u64>>) -> Health {
        let lag = lag.map(|lag| lag.map(Duration::from_secs));
        Health { status, reason: None, last_seq: Some(1), lag }
    }

    #[test]
    fn a_server_that_does_not_work_or_is_behind_is_not_ready() {
        for ready in [health("leading", None), health("stepped", None), health("standby", Some(Some(10)))] {
            assert_eq!(ready.obstacle(), None);
        }
        let obstacles = [
            (health("starting", None), "the definitions are not taken in yet"),
            (health("damaged", None), "what is stored is damaged"),
            (health("standby", Some(None)), "this node has not read the log to its end yet"),
            (
                health("standby", Some(Some(25))),
                "this node last had all that the log has 25 s ago, expected at most 10 s",
            ),
        ];
        for (health, words) in obstacles {
            assert_eq!(health.obstacle().as_deref(), Some(words));
        }
    }
}
