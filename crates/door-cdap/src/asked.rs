//! Requests: names in the path, parameters, and the sender.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use jiff::Timestamp;
use kelos_engine::Status;
use kelos_front::fault::{Fault, plain};
use kelos_front::identity::of_request;
use kelos_front::{App, Front};
use kelos_model::Actor;
use kelos_model::project::{DEFAULT_VERSION, ProjectName};

use super::catalogue::{ProgramName, told};
use super::kind::{self, Kind};

/// The names in a request's path, its parameters and its sender.
pub(super) struct CdapRequest {
    names: BTreeMap<String, String>,
    parameters: Vec<(String, String)>,
    pub(super) by: Actor,
}

impl FromRequestParts<Front> for CdapRequest {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, front: &Front) -> Result<CdapRequest, Fault> {
        let app = App::from_request_parts(parts, front).await?;
        check_leader(&app.handle().status())?;
        let by = of_request(&parts.extensions)?.actor.clone();
        let names = Path::<BTreeMap<String, String>>::from_request_parts(parts, front).await;
        let names = names.map_err(|rejection| plain::bad_request(rejection.body_text()))?.0;
        let parameters = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let parameters = parameters.map_err(|rejection| plain::bad_request(rejection.body_text()))?.0;
        check_repeated(&parameters)?;
        Ok(CdapRequest { names, parameters, by })
    }
}

/// The parameter that may be there several times.
const REPEATABLE: &str = "namespace";

fn check_repeated(parameters: &[(String, String)]) -> Result<(), Fault> {
    let mut known = BTreeSet::new();
    match parameters.iter().find(|(name, _)| name != REPEATABLE && !known.insert(name)) {
        Some((name, _)) => {
            Err(plain::bad_request(format!("the query parameter {name} is there twice, expected it once")))
        }
        None => Ok(()),
    }
}

/// Refuses requests while this server knows of no leader, because the stored state may be about to change.
fn check_leader(status: &Status) -> Result<(), Fault> {
    let why = match status {
        Status::Leading { .. } | Status::Standby => return Ok(()),
        Status::Starting => "it has not started yet".to_owned(),
        Status::Troubled { reason } | Status::Damaged { reason } => reason.clone(),
        Status::Stopped => "it has ended".to_owned(),
    };
    Err(plain::of(
        StatusCode::SERVICE_UNAVAILABLE,
        format!("failed to reach the service \"Core scheduler\": {why}; try again"),
    ))
}

impl CdapRequest {
    /// A name in the path, which the route has.
    pub(super) fn name(&self, name: &str) -> &str {
        self.names.get(name).map_or("", String::as_str)
    }

    /// The application in the path.
    pub(super) fn project(&self) -> Result<ProjectName, Fault> {
        let version = self.names.get("version").map_or(DEFAULT_VERSION, String::as_str);
        project(self.name("namespace"), self.name("app"), version)
    }

    /// The program in the path.
    pub(super) fn program(&self) -> Result<ProgramName, Fault> {
        let kind = self.name("kind");
        let kind = Kind::of_category(kind).ok_or_else(|| {
            plain::bad_request(format!("no kind of programs is called \"{kind}\", expected {}", kind::CATEGORIES))
        })?;
        Ok(ProgramName { project: self.project()?, kind, name: self.name("program").to_owned() })
    }

    /// A parameter.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The reason of the sender, a parameter of Kelos's own.
    pub(super) fn reason(&self) -> Option<String> {
        self.get("reason").filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// Each value of a parameter.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.parameters.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that must be there.
    pub(super) fn need(&self, name: &str) -> Result<&str, Fault> {
        let missing = || plain::bad_request(format!("the query parameter {name} is missing"));
        self.get(name).filter(|text| !text.is_empty()).ok_or_else(missing)
    }

    /// A parameter that is a number.
    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Fault> {
        let number = |text: &str| {
            let wrong = || plain::bad_request(format!("{name} is \"{text}\", expected a whole number"));
            text.parse().map_err(|_| wrong())
        };
        self.get(name).map(number).transpose()
    }

    /// The status that schedules are to have, as whether they are disabled.
    pub(super) fn disabled(&self) -> Result<Option<bool>, Fault> {
        match self.get("schedule-status").map(str::to_ascii_uppercase).as_deref() {
            None => Ok(None),
            Some("SCHEDULED") => Ok(Some(false)),
            Some("SUSPENDED") => Ok(Some(true)),
            Some(_) => {
                let text = self.get("schedule-status").unwrap_or_default();
                Err(plain::bad_request(format!("schedule-status is \"{text}\", expected SCHEDULED or SUSPENDED")))
            }
        }
    }
}

/// An application by its names; one whose names are ambiguous does not exist.
pub(super) fn project(namespace: &str, application: &str, version: &str) -> Result<ProjectName, Fault> {
    let project = ProjectName {
        namespace: namespace.to_owned(),
        application: application.to_owned(),
        version: version.to_owned(),
    };
    let there = project.is_sound();
    there.then(|| project.clone()).ok_or_else(|| plain::not_found(format!("no {}", told(&project))))
}

/// A moment in milliseconds since 1970; a number out of bounds is the first or the last moment.
pub(super) fn moment(millis: i64) -> Timestamp {
    let bound = if millis < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(millis).unwrap_or(bound)
}
