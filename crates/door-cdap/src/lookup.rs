//! Schedules by the program that triggers them, and enabling those that were disabled within a range of time.

use axum::Json;
use kelos_core::EnableByTime;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::project::{DEFAULT_VERSION, ProjectName};
use kelos_model::ranges::Range;
use kelos_model::trigger::Leaf;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{SlotState, Subject, Trigger, WorkflowId};
use serde_json::Value;

use super::asked::{self, CdapRequest};
use super::catalogue::{ProgramName, events, look};
use super::kind::{self, Kind};
use super::schedules::written;
use super::trigger::state_named;

/// Statuses that a program can have, and that no trigger waits for.
const PASSING: [&str; 2] = ["INITIALIZING", "RUNNING"];

pub(super) async fn triggered_by(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    let (program, states) = (triggering(&asked)?, states(&asked)?);
    let disabled = asked.disabled()?;
    look(&app, move |catalogue| {
        let program = catalogue.program_id(&program)?;
        let is_meant = |row: &&WorkflowRow| {
            events(row).is_some()
                && disabled.is_none_or(|disabled| disabled != row.enabled)
                && waits_for(&row.definition.trigger, &program, states.as_deref())
        };
        written(catalogue.all()?.iter().filter(is_meant), catalogue)
    })
    .await
}

fn triggering(asked: &CdapRequest) -> Result<ProgramName, Fault> {
    let (namespace, app) = (asked.need("trigger-namespace-id")?, asked.need("trigger-app-name")?);
    let category = asked.need("trigger-program-type")?;
    let name = asked.need("trigger-program-name")?.to_owned();
    let kind = Kind::of_category(category).ok_or_else(|| {
        let expected = kind::CATEGORIES;
        plain::bad_request(format!("trigger-program-type is \"{category}\", expected {expected}"))
    })?;
    let version = asked.get("trigger-app-version").unwrap_or(DEFAULT_VERSION);
    Ok(ProgramName { project: asked::project(namespace, app, version)?, kind, name })
}

/// The ends that count; none means all of them.
fn states(asked: &CdapRequest) -> Result<Option<Vec<SlotState>>, Fault> {
    let Some(text) = asked.get("trigger-program-statuses") else { return Ok(None) };
    let mut states = Vec::new();
    for status in text.split(',').map(str::trim) {
        let passing = PASSING.iter().any(|passing| passing.eq_ignore_ascii_case(status));
        match state_named(status) {
            Some(state) => states.push(state),
            None if passing => {}
            None => {
                return Err(plain::bad_request(format!(
                    "trigger-program-statuses has \"{status}\", expected INITIALIZING, RUNNING, COMPLETED, FAILED or \
                     KILLED with commas between"
                )));
            }
        }
    }
    Ok(Some(states))
}

fn waits_for(trigger: &Trigger, program: &WorkflowId, among: Option<&[SlotState]>) -> bool {
    let is_among = |subject: &Subject| match subject {
        Subject::Ended(_, state) => among.is_none_or(|among| among.contains(state)),
        _ => false,
    };
    trigger.has_leaf(|leaf| match leaf {
        Leaf::Facts(awaited) => awaited.program == Some(program) && awaited.subjects.iter().any(is_among),
        _ => false,
    })
}

pub(super) async fn re_enable(asked: CdapRequest, app: App) -> Result<(), Fault> {
    let time = |name: &str| Ok::<_, Fault>(asked::moment(asked.number(name)?.unwrap_or(0)));
    let range = Range::new(time("start-time-millis")?, time("end-time-millis")?);
    let namespace = asked.name("namespace").to_owned();
    let schedules = look(&app, move |catalogue| {
        let is_meant = |row: &&WorkflowRow| {
            events(row).is_some() && ProjectName::read(&row.definition.project).namespace == namespace
        };
        Ok(catalogue.all()?.iter().filter(is_meant).map(|row| row.id.clone()).collect())
    });
    let schedules = schedules.await?;
    app.ask(&asked.by, EnableByTime { schedules, range, reason: asked.reason() }).await?;
    Ok(())
}
