//! The server as it says it is: its status, frozen workflows and failures.

use kelos_wire::HealthDto;

use super::named;
use crate::doctor::diagnosis::Diagnosis;

const CHECK: &str = "server";

/// The server of an installation.
#[derive(Debug, Clone)]
pub(in crate::doctor) enum Server {
    /// It answered, at this address.
    Up { address: String, health: Box<HealthDto> },
    /// It was named or recorded, and did not answer; the reason completes "failed to …".
    Silent { reason: String, hint: Option<String> },
    /// None is recorded in the folder of state.
    NotRecorded {
        /// The process that leads on the database, if one does.
        leader: Option<String>,
        /// The way to start one, in words.
        start: String,
    },
}

/// Judges the server.
pub(in crate::doctor) fn judge(server: &Server) -> Vec<Diagnosis> {
    match server {
        Server::Up { address, health } => up(address, health),
        Server::Silent { reason, hint } => {
            let advice = hint.clone().unwrap_or_else(|| "start it, or name another with --server".to_owned());
            vec![Diagnosis::wrong(CHECK, format!("failed to {reason}"), advice)]
        }
        Server::NotRecorded { leader: Some(leader), .. } => {
            let words = format!("{leader} leads on the database; its address is not known here, so it was not asked");
            vec![Diagnosis::warning(CHECK, words, "name it: kelos doctor --server URL, beside --db or --state")]
        }
        Server::NotRecorded { leader: None, start } => {
            vec![Diagnosis::warning(CHECK, "no server runs: nothing is scheduled", start.clone())]
        }
    }
}

fn up(address: &str, health: &HealthDto) -> Vec<Diagnosis> {
    let reason = || health.reason.clone().unwrap_or_else(|| "it does not say why".to_owned());
    let hint = |otherwise: &str| health.hint.clone().unwrap_or_else(|| otherwise.to_owned());
    let mut found = Vec::new();
    match health.status.as_str() {
        "leading" | "stepped" | "standby" => {}
        "starting" => found.push(Diagnosis::warning(CHECK, format!("{address} is starting"), "ask again in a minute")),
        "damaged" => {
            let words = format!("{address} schedules nothing, its database is damaged: {}", reason());
            found.push(Diagnosis::wrong(CHECK, words, hint("stop it, and run `kelos verify`")));
        }
        status => {
            let words = format!("{address} is {status}: {}", reason());
            found.push(Diagnosis::wrong(CHECK, words, hint("it tries again by itself; its log says more")));
        }
    }
    if !health.frozen.is_empty() {
        let frozen: Vec<String> =
            health.frozen.iter().map(|one| format!("{} ({})", one.workflow, one.freeze.text)).collect();
        let words = format!("frozen by a broken invariant: {}", named(&frozen));
        found.push(Diagnosis::wrong(CHECK, words, "report it; `kelos resume WORKFLOW` goes on"));
    }
    if let Some(failures) = health.failures.filter(|failures| *failures > 0) {
        let words = match failures {
            1 => "1 slot has failed and is not repaired".to_owned(),
            many => format!("{many} slots have failed and are not repaired"),
        };
        found.push(Diagnosis::warning(CHECK, words, "`kelos failures` says why, and what waits for them"));
    }
    if found.is_empty() {
        let status = match health.status.as_str() {
            "leading" => "leads and schedules",
            "stepped" => "leads, and schedules when it is asked to",
            _ => "stands by",
        };
        found.push(Diagnosis::ok(CHECK, format!("{address} {status}")));
    }
    found
}

#[cfg(test)]
mod tests {
    use kelos_wire::{FreezeDto, FrozenDto};

    use super::*;

    fn told(server: &Server) -> Vec<String> {
        judge(server).iter().map(|one| format!("{:?} {}", one.level, one.found)).collect()
    }

    fn with(status: &'static str, change: impl Fn(&mut HealthDto)) -> Server {
        let mut health = HealthDto { status: status.into(), ..HealthDto::default() };
        change(&mut health);
        Server::Up { address: "http://a".to_owned(), health: Box::new(health) }
    }

    #[test]
    fn a_server_is_as_it_says() {
        assert_eq!(told(&with("leading", |_| {})), ["Ok http://a leads and schedules"]);
        assert_eq!(told(&with("standby", |_| {})), ["Ok http://a stands by"]);
        assert_eq!(told(&with("starting", |_| {})), ["Warning http://a is starting"]);
        let troubled = with("troubled", |health| health.reason = Some("failed to write".to_owned()));
        assert_eq!(told(&troubled), ["Wrong http://a is troubled: failed to write"]);
        let damaged = with("damaged", |health| health.reason = Some("failed to read".to_owned()));
        assert_eq!(told(&damaged), ["Wrong http://a schedules nothing, its database is damaged: failed to read"]);
    }

    #[test]
    fn frozen_workflows_are_wrong_and_failures_a_warning() {
        let server = with("leading", |health| {
            let freeze = FreezeDto { text: "two live runs".to_owned(), ..FreezeDto::default() };
            health.frozen = vec![FrozenDto { workflow: "w".to_owned(), freeze }];
            health.failures = Some(2);
        });
        assert_eq!(
            told(&server),
            [
                "Wrong frozen by a broken invariant: w (two live runs)",
                "Warning 2 slots have failed and are not repaired"
            ]
        );
    }

    #[test]
    fn a_server_that_does_not_answer_is_wrong_and_one_that_was_never_started_is_not() {
        let silent = Server::Silent { reason: "reach a server at http://a: refused".to_owned(), hint: None };
        assert_eq!(told(&silent), ["Wrong failed to reach a server at http://a: refused"]);
        let none = |leader: Option<&str>| Server::NotRecorded {
            leader: leader.map(str::to_owned),
            start: "kelos up".to_owned(),
        };
        assert_eq!(told(&none(None)), ["Warning no server runs: nothing is scheduled"]);
        assert!(told(&none(Some("h:7")))[0].starts_with("Warning h:7 leads on the database; its address is not known"));
    }
}
