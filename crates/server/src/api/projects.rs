//! Projects: a list, and deployment for people who can't write to the folders of scripts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use kelos::not_shared;
use kelos_core::Refusal;
use kelos_door_celos::deploy::{
    Bundle, BundleFile, BundleFiles, BundleScripts, Content, DeployError, DeploymentPlan, HDFS_ROOT, HdfsRoot,
    ProjectName, Site, prepare,
};
use kelos_door_stolos::TasksJson;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::scope::View;
use kelos_model::project::of_script;
use kelos_model::workflow::{Provenance, WorkflowRow};
use kelos_model::{Actor, Workflow, WorkflowId};
use kelos_sandbox::{Folders, Problem, ProblemCode, TEST_FILE};
use kelos_storage::Place;
use kelos_store::{Queries, StoreError};
use kelos_trust::Right;
use kelos_wire::{BundleDto, DeploymentDto, ListDto, ProblemDetailsDto, ProblemDto, ProjectDto};
use serde::Deserialize;
use utoipa::IntoParams;

use super::definitions::ProgramDeployment;
use super::deployments::{Manner, ProjectPath, effect, failed, refuse_closed};
use super::dto::{FromLibrary, deployment};
use super::extract::{LargeBody, NoParameters, Path, Query};
use kelos_front::identity::Caller;

/// The options of an undeployment.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct Removal {
    /// Whether only to show what would change.
    #[serde(default)]
    plan: bool,
    /// The root in HDFS below which the folder of the project is removed, too; without it HDFS is not changed.
    hdfs_root: Option<String>,
}

fn bundle(given: BundleDto) -> Result<(Bundle, Option<String>), Fault> {
    let hdfs = given.hdfs.map(|files| files.into_iter().map(file).collect()).transpose()?;
    let scripts = match (given.workflow, given.files) {
        (Some(workflow), None) => BundleScripts::Single { workflow, defaults: given.defaults },
        (None, Some(files)) if given.defaults.is_none() => {
            let files = BundleFiles::new(files);
            let bad = |why: String| Fault::bad_request("bad-body", format!("failed to read `files`: {why}"));
            BundleScripts::Several(files.map_err(bad)?)
        }
        (_, Some(_)) => {
            let why = "expected either `files`, or `workflow` and `defaults`";
            return Err(Fault::bad_request("bad-body", why));
        }
        (None, None) => {
            let why = "expected `workflow`, the text of a script, or `files`, the texts of several";
            return Err(Fault::bad_request("bad-body", why));
        }
    };
    Ok((Bundle { scripts, hdfs }, given.hdfs_root))
}

fn file((path, text): (String, String)) -> Result<(String, BundleFile), Fault> {
    let bad = |reason: &str| Fault::bad_request("bad-body", format!("the file \"{path}\" of `hdfs` {reason}"));
    let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', '\0']);
    if !path.split('/').all(plain) {
        return Err(bad("has no relative path, expected names with / between them"));
    }
    let bytes = BASE64.decode(text).map_err(|_| bad("is not base64"))?;
    Ok((path, BundleFile { bytes: bytes.len() as u64, content: Content::Bytes(bytes) }))
}

/// The ids of workflows by deployment unit: the script that defines them, whatever the name of its
/// application. Schedules that people added to an application are deleted with it.
fn by_deployment(rows: &[WorkflowRow], scripts: &BTreeSet<String>) -> BTreeMap<String, Vec<String>> {
    let script = |row: &WorkflowRow| {
        let name = of_script(&row.definition.source.file);
        scripts.contains(name).then(|| name.to_owned())
    };
    let homes = rows.iter().filter_map(|row| Some((row.definition.project.as_str(), script(row)?)));
    let homes: BTreeMap<&str, String> = homes.collect();
    let mut workflows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows {
        let project = &row.definition.project;
        let home = script(row).or_else(|| homes.get(project.as_str()).cloned()).unwrap_or_else(|| project.clone());
        workflows.entry(home).or_default().push(row.id.to_string());
    }
    workflows
}

/// Lists projects, ascending by name: those that have a script or a workflow.
#[utoipa::path(get, path = "/projects", tag = "projects", responses(
    (status = 200, description = "The projects", body = ListDto<ProjectDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn list(_: Query<NoParameters>, app: App) -> Result<Json<ListDto<ProjectDto>>, Fault> {
    let rows = app.read(|reader| reader.workflows(None)).await?;
    let rows: Vec<WorkflowRow> = rows.into_iter().filter(|row| row.present).collect();
    let (mut scripts, mut defaults) = (BTreeSet::new(), BTreeSet::new());
    if let Some(folders) = app.node().folders() {
        scripts = script_names(&app, &folders.workflows).await?;
        defaults = script_names(&app, &folders.defaults).await?;
    }
    let mut workflows = by_deployment(&rows, &scripts);
    let view = app.view().await?;
    let is_seen = |name: &String| {
        workflows.contains_key(name) || view.as_ref().is_none_or(|view| view.has_file(&format!("{name}.js")))
    };
    let names: BTreeSet<String> = workflows.keys().chain(&scripts).filter(|name| is_seen(name)).cloned().collect();
    let problems = match &view {
        Some(view) => app.node().problems().into_iter().map(|one| without_others(one, view)).collect(),
        None => app.node().problems(),
    };
    let project = |name: String| {
        let is_own = |problem: &&Problem| {
            let file = problem.file.strip_prefix("defaults/").unwrap_or(&problem.file);
            of_script(file) == name
        };
        ProjectDto {
            workflows: workflows.remove(&name).unwrap_or_default(),
            has_script: scripts.contains(&name),
            has_defaults: defaults.contains(&name),
            problems: problems.iter().filter(is_own).cloned().map(ProblemDto::from_library).collect(),
            name,
        }
    };
    Ok(Json(ListDto { items: names.into_iter().map(project).collect() }))
}

/// The projects of the scripts in a folder, by the names of these.
async fn script_names(app: &App, folder: &std::path::Path) -> Result<BTreeSet<String>, Fault> {
    let place = local(app, folder)?;
    let entries = place.files.list(&place.path).await.map_err(|error| failed(&error.into()))?.unwrap_or_default();
    let names = entries.into_iter().map(|entry| entry.name).filter(|name| name.ends_with(".js"));
    let scripts = names.filter(|name| !name.starts_with('.') && !name.ends_with(TEST_FILE));
    Ok(scripts.map(|name| of_script(&name).to_owned()).collect())
}

/// Deploys a project: its scripts are checked, and replace the existing ones.
#[utoipa::path(
    put,
    path = "/projects/{id}",
    tag = "projects",
    params(ProjectPath, Manner),
    request_body = BundleDto,
    responses(
        (status = 200, description = "What was changed, or would be", body = DeploymentDto),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn put(
    Path(path): Path<ProjectPath>,
    Query(manner): Query<Manner>,
    Caller(by): Caller,
    app: App,
    LargeBody(body): LargeBody<BundleDto>,
) -> Result<Json<DeploymentDto>, Fault> {
    let (bundle, root) = bundle(body)?;
    let root = HdfsRoot::of_storage(root.as_deref().unwrap_or(HDFS_ROOT), app.node().storage().clone());
    let root = root.map_err(|error| failed(&error))?;
    Deployment { project: path.id, bundle: Some(bundle), root, plan: manner.plan, by }.carry_out(&app).await
}

/// Takes a project away: its scripts go, and its slots are left alone. One that is not there is fine too.
#[utoipa::path(delete, path = "/projects/{id}", tag = "projects", params(ProjectPath, Removal), responses(
    (status = 200, description = "What was changed, or would be", body = DeploymentDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn delete(
    Path(path): Path<ProjectPath>,
    Query(removal): Query<Removal>,
    Caller(by): Caller,
    app: App,
) -> Result<Json<DeploymentDto>, Fault> {
    if let Some(deployment) = ProgramDeployment::removal(&app, &path.id).await? {
        return deployment.carry_out(&app, &by, removal.plan).await;
    }
    let root = HdfsRoot::of_storage(removal.hdfs_root.as_deref().unwrap_or(HDFS_ROOT), app.node().storage().clone());
    let root = root.map_err(|error| failed(&error))?;
    let root = if removal.hdfs_root.is_some() { root } else { root.left_alone() };
    Deployment { project: path.id, bundle: None, root, plan: removal.plan, by }.carry_out(&app).await
}

struct Deployment {
    project: String,
    bundle: Option<Bundle>,
    root: HdfsRoot,
    plan: bool,
    by: Actor,
}

impl Deployment {
    async fn carry_out(self, app: &App) -> Result<Json<DeploymentDto>, Fault> {
        refuse_closed(app)?;
        let project = ProjectName::new(self.project).map_err(|error| failed(&error))?;
        app.require(Right::Author, Some(project.as_str()), "a deployment")?;
        let site = site(app, self.root)?;
        // One deployment at a time, so that no other request writes in between; and a standby answers that it is one.
        let _one_at_a_time = app.deploying().await;
        app.settle().await?;
        let prepared = prepare(project.clone(), self.bundle, site, app.handle().now()).await;
        let mut prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Err(failed(&concealed(app, error, &project).await?)),
        };
        let changed = foresee(app, &mut prepared, self.plan).await?;
        if !self.plan {
            let begun = app.node().begin_deployment().await;
            begun.map_err(|error| {
                Fault::new(StatusCode::SERVICE_UNAVAILABLE, "not-deployed", format!("failed to {error}"))
            })?;
            app.node().deployed_by(project.as_str(), Some(self.by.clone()));
            let written = prepared.carry_out(|_| ()).await;
            if written.is_ok() {
                app.node().reload().await;
            }
            app.node().deployed_by(project.as_str(), None);
            written.map_err(|error| failed(&error))?;
            let verb = if prepared.plan().undeploy { "undeployed" } else { "deployed" };
            tracing::info!("{} {verb} the project {project}", self.by);
            app.settle().await?;
            // Other nodes have it before this is answered.
            let published = app.node().publish(&self.by).await;
            published.map_err(|error| {
                let hint = "do the same again: what is on the disk of this node is not yet what the others have";
                Fault::new(StatusCode::SERVICE_UNAVAILABLE, "not-deployed", format!("failed to {error}"))
                    .with_hint(hint)
            })?;
            refuse_dormant(app, &project, &changed)?;
        }
        Ok(Json(deployment(prepared.plan(), !self.plan)))
    }
}

fn site(app: &App, hdfs: HdfsRoot) -> Result<Site, Fault> {
    let Some(Folders { workflows, defaults }) = app.node().folders() else {
        let why = "this server reads no scripts";
        return Err(Fault::conflict("no-scripts", why));
    };
    Ok(Site {
        workflows: local(app, &workflows)?,
        defaults: local(app, &defaults)?,
        hdfs,
        format: Arc::new(TasksJson),
        notes: Vec::new(),
    })
}

fn local(app: &App, folder: &std::path::Path) -> Result<Place, Fault> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    app.node().storage().place(&folder.to_string_lossy()).map_err(|error| failed(&error.into()))
}

/// A workflow of a project whose name is another's, and whose that is. Event schedules that people made are replaced.
fn taken_name(
    reader: &dyn Queries,
    workflows: &[Arc<Workflow>],
) -> Result<Option<(WorkflowId, Provenance)>, StoreError> {
    let rows = reader.workflows(None)?.into_iter().filter(|row| row.present);
    let holders: BTreeMap<WorkflowId, Provenance> = rows
        .map(|row| (row.id, row.definition.provenance()))
        .filter(|(_, holder)| *holder != Provenance::File)
        .collect();
    let replaces = |one: &Workflow, holder| holder == Provenance::Api && one.keys.events().is_some();
    let holder = |one: &Arc<Workflow>| holders.get(&one.id).copied().filter(|holder| !replaces(one, *holder));
    Ok(workflows.iter().find_map(|one| Some((one.id.clone(), holder(one)?))))
}

/// Refuses a deployment of which the turn that defined it left something out, because another project took its consent back after the
/// deployment was checked. What was written lies dormant until the consent is there again.
fn refuse_dormant(app: &App, project: &ProjectName, changed: &BTreeSet<WorkflowId>) -> Result<(), Fault> {
    let is_of_it = |problem: &Problem| match &problem.workflow {
        Some(workflow) => changed.contains(workflow),
        None => project.owns_source(&problem.file),
    };
    let problems = app.node().problems();
    let dormant = problems.into_iter().find(|one| one.code == ProblemCode::NotShared && is_of_it(one));
    dormant.map_or(Ok(()), |problem| {
        let why = format!("the project was written, and {}", problem.message);
        let fault = Fault::new(StatusCode::FORBIDDEN, "not-shared", why);
        Err(match problem.hint {
            Some(hint) => fault.with_hint(hint),
            None => fault,
        })
    })
}

/// Adds the effect on existing slots, and returns the workflows that change. A project that would take a name of another's is refused.
async fn foresee(app: &App, prepared: &mut DeploymentPlan, is_plan: bool) -> Result<BTreeSet<WorkflowId>, Fault> {
    // A script may name another project for what it defines.
    let (before, after) = (&prepared.before().workflows, &prepared.after().workflows);
    let changed =
        after.iter().filter(|one| !before.contains(one)).chain(before.iter().filter(|one| !after.contains(one)));
    for project in changed.map(|one| one.project.as_str()).collect::<BTreeSet<_>>() {
        app.require(Right::Author, Some(project), "a deployment")?;
    }
    let known: BTreeSet<_> = prepared.before().workflows.iter().map(|one| one.id.clone()).collect();
    let new: Vec<_> = prepared.after().workflows.iter().filter(|one| !known.contains(&one.id)).cloned().collect();
    if let Some((id, holder)) = app.read(move |reader| taken_name(reader, &new)).await? {
        let why = format!("{id} can't be defined by the project: a workflow of that name is {}", holder.whose());
        return Err(Fault::conflict("name-taken", why).with_hint("give it another name, or take the other one away"));
    }
    let changed: Vec<Arc<Workflow>> = after.iter().filter(|one| !before.contains(one)).cloned().collect();
    let ids = changed.iter().map(|one| one.id.clone()).collect();
    let project = &prepared.plan().project;
    let reads = prepared.after().reads.iter().filter(|read| project.owns_source(&read.file));
    let reads = reads.map(|read| (read.project.clone(), read.bucket.clone())).collect();
    let unshared = app.unshared_by(changed, reads).await?;
    if is_plan {
        prepared.warn(unshared.iter().map(not_shared).collect());
    } else if let Some(unshared) = unshared.into_iter().next() {
        return Err(Refusal::NotShared(Box::new(unshared)).into());
    }
    let effect = effect(app, &prepared.before().workflows, &prepared.after().workflows).await?;
    prepared.set_slots(effect);
    Ok(ids)
}

/// An error of a deployment without what the caller may not know: the files and lines of other projects.
async fn concealed(app: &App, error: DeployError, project: &ProjectName) -> Result<DeployError, Fault> {
    let (DeployError::Scripts { project: name, undeploy, problems }, Some(view)) = (&error, app.view().await?) else {
        return Ok(error);
    };
    let own = format!("{project}.js");
    let concealed = |problem: &Problem| match view.has_file(&problem.file) {
        true => without_others(problem.clone(), &view),
        false if problem.code == ProblemCode::NameTaken => {
            without_others(Problem { file: own.clone(), ..problem.clone() }, &view)
        }
        false => Problem::error(&own, problem.code, "definitions of another project would break".to_owned()),
    };
    let problems = problems.iter().map(concealed).collect();
    Ok(DeployError::Scripts { project: name.clone(), undeploy: *undeploy, problems })
}

/// A problem without what a caller may not know: where another project defines the name that is taken.
pub(super) fn without_others(problem: Problem, view: &View) -> Problem {
    let id = problem.workflow.as_ref().filter(|_| problem.code == ProblemCode::NameTaken);
    match id.filter(|id| !view.has(id)) {
        Some(id) => {
            let words = format!("a workflow named {id} exists already, expected a new name");
            Problem::error(&problem.file, problem.code, words)
        }
        None => problem,
    }
}
