//! Deployment of projects whose functions a program has: the program sends its definitions, and works for the server.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use kelos::not_shared;
use kelos_core::{DefinedVersion, DeployProject};
use kelos_door_celos::deploy::{Plan, ProjectName, changes_of};
use kelos_engine::reads::Lane;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::identity::Caller;
use kelos_model::Workflow;
use kelos_model::flow::{FLOW, SIGNAL};
use kelos_model::workers::FUNCTION;
use kelos_model::workflow::Provenance;
use kelos_trust::Right;
use kelos_wire::{DeploymentDto, ProblemDetailsDto, ProjectDefinitionsDto};

use super::deployments::{Manner, ProjectPath, effect, failed, refuse_closed};
use super::dto::deployment;
use super::extract::{LargeBody, Path, Query};

/// Deploys the definitions of a program's project: they replace those that it had. A program with the same definitions changes nothing,
/// and needs no right but that of a worker.
#[utoipa::path(
    put,
    path = "/projects/{id}/definitions",
    tag = "projects",
    params(ProjectPath, Manner),
    request_body(content = Object, description = "`workflows`: the definitions, as the program has them"),
    responses(
        (status = 200, description = "What was changed, or would be", body = DeploymentDto),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn put_definitions(
    Path(path): Path<ProjectPath>,
    Query(manner): Query<Manner>,
    Caller(by): Caller,
    app: App,
    LargeBody(body): LargeBody<ProjectDefinitionsDto>,
) -> Result<Json<DeploymentDto>, Fault> {
    let project = ProjectName::new(path.id).map_err(|error| failed(&error))?;
    let definitions = body.workflows.into_iter().map(|one| Arc::new(one).given_by(Provenance::Code)).collect();
    check(project.as_str(), &definitions)?;
    let deployment = ProgramDeployment { project, definitions, undeploy: false };
    deployment.carry_out(&app, &by, manner.plan).await
}

/// Refuses what is no definition of a program's project.
fn check(project: &str, definitions: &Vec<Arc<Workflow>>) -> Result<(), Fault> {
    for one in definitions {
        let bad = |what: String| Fault::bad_request("bad-definitions", format!("the workflow {} {what}", one.id));
        if one.project != project {
            return Err(bad(format!("is of the project {}, expected {project}", one.project)));
        }
        if let Some(zero) = one.limit_of_zero() {
            return Err(bad(zero));
        }
        let steps = one.flow.iter().flat_map(|flow| &flow.steps).map(|step| &step.job);
        let mut others = steps.chain([&one.job]).map(|job| job.executor.as_str());
        if let Some(other) = others.find(|executor| ![FUNCTION, FLOW, SIGNAL].contains(executor)) {
            return Err(bad(format!("has a job of the executor {other}, expected functions of the program")));
        }
    }
    Ok(())
}

/// A deployment of a project whose functions a program has.
pub(super) struct ProgramDeployment {
    project: ProjectName,
    definitions: Vec<Arc<Workflow>>,
    undeploy: bool,
}

impl ProgramDeployment {
    /// The removal of a project, if it is a program's.
    pub(super) async fn removal(app: &App, project: &str) -> Result<Option<ProgramDeployment>, Fault> {
        let Ok(project) = ProjectName::new(project) else { return Ok(None) };
        let is_its = !present(app, project.as_str()).await?.is_empty();
        Ok(is_its.then_some(ProgramDeployment { project, definitions: Vec::new(), undeploy: true }))
    }

    pub(super) async fn carry_out(
        self,
        app: &App,
        by: &kelos_model::Actor,
        is_plan: bool,
    ) -> Result<Json<DeploymentDto>, Fault> {
        let ProgramDeployment { project, definitions, undeploy } = self;
        // One deployment at a time: what a plan says is what is done.
        let _one_at_a_time = app.deploying().await;
        app.settle().await?;
        let before = present(app, project.as_str()).await?;
        let same = before.len() == definitions.len() && definitions.iter().all(|one| before.contains(one));
        // Nothing is no definition that a worker could have: whether there is a project of that name is not said.
        let is_worker = same && !definitions.is_empty() && app.may(Right::Work, Some(project.as_str()));
        if !is_worker {
            refuse_closed(app)?;
            app.require(Right::Author, Some(project.as_str()), "a deployment")?;
        }
        let digest = (!undeploy).then(|| digest(&definitions));
        let request = DeployProject {
            project: project.to_string(),
            definitions: definitions.clone(),
            digest,
            dry_run: is_plan || same,
        };
        let warnings = match same {
            true => Vec::new(),
            false => app.unshared_by(definitions.clone(), Vec::new()).await?.iter().map(not_shared).collect(),
        };
        let versions = if is_worker { app.handle().ask(by, request).await? } else { app.ask(by, request).await? };
        let plan = Plan {
            undeploy,
            files: Vec::new(),
            workflows: changes_of(&before, &definitions),
            slots: if same { Default::default() } else { effect(app, &before, &definitions).await? },
            warnings,
            notes: Vec::new(),
            project,
        };
        if !is_plan && !same {
            tracing::info!("{by} deployed the project {}", plan.project);
        }
        let versions = versions.into_iter().map(|DefinedVersion { workflow, version }| (workflow.to_string(), version));
        let versions = if is_plan { BTreeMap::new() } else { versions.collect() };
        Ok(Json(DeploymentDto { versions, ..deployment(&plan, !is_plan) }))
    }
}

/// The definitions of a program's project that are in force.
async fn present(app: &App, project: &str) -> Result<Vec<Arc<Workflow>>, Fault> {
    let rows = app.node().reader().clone();
    let rows = Lane::Requests.read("read from the store", move || rows.workflows(None)).await;
    let rows = rows
        .map_err(|error| Fault::new(StatusCode::SERVICE_UNAVAILABLE, "not-deployed", format!("failed to {error}")))?;
    let own = rows.into_iter().filter(|row| row.present && row.definition.project == project);
    Ok(own.map(|row| row.definition).filter(|one| one.provenance() == Provenance::Code).collect())
}

/// The digest of definitions.
fn digest(definitions: &[Arc<Workflow>]) -> String {
    let text: Vec<u8> = definitions.iter().flat_map(|one| serde_json::to_vec(one).unwrap_or_default()).collect();
    format!("{:032x}", kelos_executors::local::fnv1a_128(&text))
}
