//! The parts that deployments of both kinds share: of scripts, and of the definitions of programs.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use kelos_door_celos::deploy::{DeployError, SlotEffect, candidates, live, questions, unblocked};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::known::KnownFacts;
use kelos_model::time::resolve;
use kelos_model::trigger::SlotTimes;
use kelos_model::{Workflow, WorkflowId};
use serde::Deserialize;
use utoipa::IntoParams;

/// A project in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ProjectPath {
    /// The name of the project.
    pub(super) id: String,
}

/// The options of a deployment.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Manner {
    /// Whether only to show what would change.
    #[serde(default)]
    pub(super) plan: bool,
}

/// Refuses deployments where the server accepts none.
pub(super) fn refuse_closed(app: &App) -> Result<(), Fault> {
    if app.takes_deployments() {
        return Ok(());
    }
    let why = "this server does not accept deployments, because anyone who can reach it could run commands";
    let hint = "start it with --allow-deploy, or deploy to its folders with a target file";
    Err(Fault::new(StatusCode::FORBIDDEN, "deployments-off", why).with_hint(hint))
}

/// The times of the slots of a project's workflows.
fn times(workflows: &[Arc<Workflow>]) -> BTreeMap<WorkflowId, SlotTimes> {
    let named = workflows.iter().filter_map(|one| Some((one.id.clone(), one.keys.schedule()?)));
    let mut schedules = resolve(&named.collect());
    let times = |one: &Arc<Workflow>| {
        let schedule = schedules.remove(&one.id)?.ok()?;
        Some((one.id.clone(), SlotTimes::new(&schedule, one.bounds(&schedule))))
    };
    workflows.iter().filter_map(times).collect()
}

/// The effect of changed definitions on existing slots.
pub(super) async fn effect(app: &App, before: &[Arc<Workflow>], after: &[Arc<Workflow>]) -> Result<SlotEffect, Fault> {
    let (now, times) = (app.handle().now(), times(after));
    let (before, after) = (before.to_vec(), after.to_vec());
    let read = app.read(move |reader| Ok((live(reader, &before, &after, now)?, candidates(reader, &before, &after)?)));
    let (mut effect, candidates) = read.await?;
    let nothing = KnownFacts::nothing(now, times);
    let (slots, probes) = questions(&candidates, &nothing);
    let known = nothing.with(app, slots.into_iter().collect(), probes.into_iter().collect()).await?;
    effect.unblocked = unblocked(&candidates, &known);
    Ok(effect)
}

/// The fault for a deployment that failed.
pub(super) fn failed(error: &DeployError) -> Fault {
    let detail = format!("failed to {error}");
    let problem = match error {
        DeployError::BadName { .. } => Fault::bad_request("bad-path", detail),
        DeployError::HdfsRoot { .. } => Fault::bad_request("bad-query", detail),
        DeployError::Scripts { problems, .. } => {
            let all: Vec<String> = problems.iter().map(|one| format!("{one} [{}]", one.code)).collect();
            Fault::bad_request("bad-scripts", format!("{detail}: {}", all.join("; ")))
        }
        DeployError::Layout { .. } | DeployError::Oozie { .. } | DeployError::Target { .. } => {
            Fault::bad_request("bad-project", detail)
        }
        DeployError::Incomplete { done, left, .. } => {
            let list = |steps: &[String]| if steps.is_empty() { "nothing".to_owned() } else { steps.join(", ") };
            let detail = format!("{detail}; done: {}; not done: {}", list(done), list(left));
            Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "not-deployed", detail)
        }
        _ => Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "not-deployed", detail),
    };
    match error.hint() {
        Some(hint) => problem.with_hint(hint),
        None => problem,
    }
}
