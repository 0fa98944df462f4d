//! Namespaces, applications and programs, as far as clients of schedules need them: lists, and starting a run.

use std::collections::BTreeSet;

use axum::Json;
use axum::body::Bytes;
use axum::http::StatusCode;
use kelos_core::FireRequest;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::Arguments;
use kelos_model::project::{DEFAULT_NAMESPACE, ProjectName};
use kelos_model::workflow::WorkflowRow;
use kelos_store::StoreError;
use serde_json::{Value, json};

use super::asked::CdapRequest;
use super::catalogue::{Catalogue, events, look};
use super::fields::{self, Field};

/// The namespaces that there are: the usual one, and those of applications.
fn all_namespaces(catalogue: &Catalogue<'_>) -> Result<BTreeSet<String>, StoreError> {
    let named = |row: &WorkflowRow| ProjectName::read(&row.definition.project).namespace;
    Ok(catalogue.all()?.iter().map(named).chain([DEFAULT_NAMESPACE.to_owned()]).collect())
}

fn namespace_json(name: &str) -> Value {
    json!({ "name": name, "description": "", "config": {} })
}

/// The namespace in the path, which must be there.
fn need_namespace(catalogue: &Catalogue<'_>, name: &str) -> Result<(), Fault> {
    let there = all_namespaces(catalogue)?.contains(name);
    there.then_some(()).ok_or_else(|| plain::not_found(format!("no namespace \"{name}\": it has no application")))
}

pub(super) async fn namespaces(_: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    look(&app, |catalogue| Ok(Json(all_namespaces(catalogue)?.iter().map(|name| namespace_json(name)).collect()))).await
}

pub(super) async fn namespace(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    let name = asked.name("namespace").to_owned();
    look(&app, move |catalogue| {
        need_namespace(catalogue, &name)?;
        Ok(Json(namespace_json(&name)))
    })
    .await
}

pub(super) async fn apps(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    let namespace = asked.name("namespace").to_owned();
    look(&app, move |catalogue| {
        need_namespace(catalogue, &namespace)?;
        let projects: BTreeSet<ProjectName> =
            catalogue.all()?.iter().map(|row| ProjectName::read(&row.definition.project)).collect();
        let own = projects.iter().filter(|project| project.namespace == namespace);
        Ok(Json(own.map(app_json).collect()))
    })
    .await
}

fn app_json(project: &ProjectName) -> Value {
    json!({ "type": "App", "name": project.application, "version": project.version, "description": "" })
}

pub(super) async fn app(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    let project = asked.project()?;
    look(&app, move |catalogue| {
        let rows = catalogue.of_project(&project)?;
        let programs = rows.iter().filter(|row| events(row).is_none());
        let programs = programs.map(|row| program_json(catalogue, row, &project)).collect::<Result<Vec<_>, _>>()?;
        Ok(Json(json!({
            "name": project.application, "appVersion": project.version, "description": "", "programs": programs,
        })))
    })
    .await
}

fn program_json(catalogue: &Catalogue<'_>, row: &WorkflowRow, project: &ProjectName) -> Result<Value, StoreError> {
    let program = catalogue.program_name(&row.id)?;
    let description = row.definition.about.description.as_deref().unwrap_or_default();
    Ok(json!({
        "app": project.application, "type": program.kind.pretty, "name": program.name, "description": description,
    }))
}

/// Applications come from files here.
pub(super) async fn deploy(asked: CdapRequest) -> Fault {
    let name = Some(asked.name("app")).filter(|name| !name.is_empty()).unwrap_or("NAME");
    plain::of(
        StatusCode::NOT_IMPLEMENTED,
        format!(
            "applications are deployed as files here: put {name}.js into the folder of definitions, or deploy it through \
             /api/v1/projects; app.deploy.update.schedules is said there"
        ),
    )
}

pub(super) async fn start(asked: CdapRequest, app: App, body: Bytes) -> Result<(), Fault> {
    let arguments = arguments(&body)?;
    let program = asked.program()?;
    let workflow = look(&app, move |catalogue| catalogue.need_program(&program)).await?;
    if !workflow.definition.keys.can_be_started() {
        let told = format!("{} has job ids: submit a job instead", workflow.id);
        return Err(plain::conflict(told));
    }
    let request =
        FireRequest { workflow: workflow.id, arguments, key: None, priority: 0, unconstrained: false, reason: None };
    app.ask(&asked.by, request).await?;
    Ok(())
}

/// The arguments of a run, or nothing. Numbers and truth values count as their texts.
fn arguments(body: &[u8]) -> Result<Arguments, Fault> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Arguments::new());
    }
    let body = fields::json(body)?;
    if body.is_null() {
        return Ok(Arguments::new());
    }
    let one = |(name, field): (&str, Field<'_>)| Ok((name.to_owned(), field.argument()?.into()));
    Field::whole(&body).entries()?.into_iter().map(one).collect()
}
