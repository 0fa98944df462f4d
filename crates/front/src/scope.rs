//! The part of a server that a caller may see: the workflows of their projects, and the names of what these depend on.

mod caller;
mod capacity;
mod reader;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use kelos_core::bucket_project;
use kelos_engine::Handle;
use kelos_model::project::of_script;
use kelos_model::references::{MissingConsent, Ownership};
use kelos_model::register::is_reserved;
use kelos_model::sharing::{Reference, Referent};
use kelos_model::workflow::WorkflowRow;
use kelos_model::{BackfillId, Event, Fact, Subject, Workflow, WorkflowId};
use kelos_store::StoreError;
use kelos_trust::Scope;

use crate::fault::Fault;

pub(crate) use caller::CallerQueries;
pub(crate) use capacity::{inspection as seen_inspection, seen as seen_capacity};
use reader::ScopedQueries;

/// The projects of all workflows, as they were defined at one moment.
#[derive(Debug, Default)]
pub struct Projects {
    sharing: Ownership,
    of: BTreeMap<WorkflowId, Arc<str>>,
    /// The workflows and the subjects of facts that each project's definitions name.
    named: BTreeMap<Arc<str>, (BTreeSet<WorkflowId>, BTreeSet<Subject>)>,
    /// The projects whose workflows a file defines.
    files: BTreeMap<String, BTreeSet<Arc<str>>>,
}

impl Projects {
    /// Those of these rows.
    #[must_use]
    pub fn of_rows(rows: &[WorkflowRow]) -> Projects {
        let sharing = Ownership::of(rows.iter().map(|row| (&*row.definition, row.present)));
        let mut projects = Projects { sharing, ..Projects::default() };
        for row in rows {
            let project: Arc<str> = row.definition.project.as_str().into();
            let (workflows, subjects) = projects.named.entry(project.clone()).or_default();
            workflows.extend(row.definition.trigger.upstream().into_iter().cloned());
            subjects.extend(row.definition.trigger.subjects());
            projects.files.entry(row.definition.source.file.clone()).or_default().insert(project.clone());
            projects.of.insert(row.id.clone(), project);
        }
        projects
    }

    /// The references that stand in the way of a definition which is about to be deployed.
    #[must_use]
    pub fn unshared_by(&self, definition: &Workflow) -> Vec<MissingConsent> {
        self.sharing.unshared_by(definition)
    }

    /// The consent that a script of a project lacks to read a bucket of registers.
    #[must_use]
    pub fn unshared_read(&self, project: &Arc<str>, bucket: &Arc<str>) -> Option<MissingConsent> {
        self.sharing.unshared_read(project, bucket)
    }

    /// The project of a workflow; none if no such workflow is known.
    #[must_use]
    pub fn of(&self, workflow: &WorkflowId) -> Option<&Arc<str>> {
        self.of.get(workflow)
    }
}

/// How old the known projects of workflows may be while something is committed that no request of this server has changed.
const FRESH: Duration = Duration::from_millis(200);
/// The share of the time that may be spent on reading the projects of workflows, as its reciprocal.
const SHARE: u32 = 20;

/// The projects of all workflows, read again when something was committed.
#[derive(Default)]
pub(crate) struct KnownProjects {
    known: RwLock<ReadProjects>,
    /// Grows whenever a request of this server may have changed definitions: what was read before is too old then.
    changes: AtomicU64,
}

/// The projects of workflows, when they were read, and how long that took.
#[derive(Default)]
struct ReadProjects {
    projects: Arc<Projects>,
    commit: Option<u64>,
    /// The number of changes that were made before they were read.
    changes: u64,
    read_at: Option<Instant>,
    cost: Duration,
}

impl KnownProjects {
    /// Has the next look read them again: whoever changes a definition sees it at once.
    pub(crate) fn outdate(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Those of this moment, or of a little before. May block.
    pub(crate) fn now(&self, handle: &Handle) -> Result<Arc<Projects>, StoreError> {
        let changes = self.changes.load(Ordering::SeqCst);
        let commit = *handle.watch_commits().borrow();
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            let is_fresh = known.read_at.is_some_and(|at| at.elapsed() < FRESH.max(known.cost * SHARE));
            if known.commit == Some(commit) || is_fresh && known.changes == changes {
                return Ok(known.projects.clone());
            }
        }
        let begun = Instant::now();
        let projects = Arc::new(Projects::of_rows(&handle.reader().workflows(None)?));
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let (read_at, cost) = (Some(Instant::now()), begun.elapsed());
        // A look that began earlier may end later.
        if known.changes <= changes {
            *known = ReadProjects { projects: projects.clone(), commit: Some(commit), changes, read_at, cost };
        }
        Ok(projects)
    }
}

/// Refuses to set registers of buckets that belong to Kelos itself.
///
/// # Errors
/// When the bucket is one of them.
pub fn refuse_reserved(bucket: &str) -> Result<(), Fault> {
    if !is_reserved(bucket) {
        return Ok(());
    }
    let what =
        format!("the bucket \"{bucket}\" belongs to Kelos itself, expected a name that does not begin with \"kelos\"");
    Err(Fault::new(StatusCode::FORBIDDEN, "reserved-bucket", what))
}

/// The part of a server that a caller may see.
#[derive(Debug)]
pub struct View {
    scope: Scope,
    projects: Arc<Projects>,
    /// Workflows of other projects that visible definitions name: of them the states of slots are seen, and nothing else.
    border: BTreeSet<WorkflowId>,
    subjects: BTreeSet<Subject>,
}

impl View {
    /// The view of the projects in a scope.
    #[must_use]
    pub fn new(scope: Scope, projects: Arc<Projects>) -> View {
        let seen = projects.named.iter().filter(|(project, _)| scope.has(project)).map(|(_, named)| named);
        let (mut border, mut subjects) = (BTreeSet::new(), BTreeSet::new());
        for (workflows, told) in seen {
            border.extend(workflows.iter().cloned());
            subjects.extend(told.iter().cloned());
        }
        border.retain(|workflow| projects.of(workflow).is_none_or(|project| !scope.has(project)));
        View { scope, projects, border, subjects }
    }

    /// Whether a project is seen.
    #[must_use]
    pub fn has_project(&self, project: &str) -> bool {
        self.scope.has(project)
    }

    /// Whether a workflow is seen.
    #[must_use]
    pub fn has(&self, workflow: &WorkflowId) -> bool {
        self.projects.of(workflow).is_some_and(|project| self.scope.has(project))
    }

    /// Whether the states of slots of a workflow are seen, but nothing else of it.
    #[must_use]
    pub fn borders_on(&self, workflow: &WorkflowId) -> bool {
        self.border.contains(workflow)
    }

    /// The workflows that are seen.
    pub fn workflows(&self) -> impl Iterator<Item = &WorkflowId> {
        self.projects.of.iter().filter(|(_, project)| self.scope.has(project)).map(|(workflow, _)| workflow)
    }

    /// Whether a bucket of registers belongs to a project that is seen.
    #[must_use]
    pub fn has_bucket(&self, bucket: &str) -> bool {
        self.scope.covers(bucket_project(&self.projects.sharing, bucket, &self.scope).as_deref())
    }

    /// Whether a script is seen: it has the name of a project, or defines workflows of one.
    #[must_use]
    pub fn has_file(&self, file: &str) -> bool {
        let name = file.strip_prefix("defaults/").unwrap_or(file);
        let by_name = name.ends_with(".js") && self.scope.has(of_script(name));
        by_name || self.projects.files.get(file).is_some_and(|projects| projects.iter().any(|one| self.scope.has(one)))
    }

    /// Whether a fact is seen: what it is about belongs to a project that is seen, or a visible definition waits for it and its project
    /// shares it. The end of a run has its arguments and outputs with it, so that waiting for it is not enough.
    #[must_use]
    pub fn has_fact(&self, fact: &Fact) -> bool {
        if let Some(run) = fact.what.run_of_flow() {
            return self.has(&run.workflow);
        }
        let subject = fact.what.subject();
        let Some(referent) = Referent::of_subject(&subject) else { return self.subjects.contains(&subject) };
        if self.projects.sharing.owner(&referent).is_some_and(|owner| self.scope.has(owner)) {
            return true;
        }
        let reference = match referent {
            Referent::Workflow(program) => Reference::Runs(program),
            Referent::Dataset(dataset) => Reference::Partitions(dataset),
            Referent::Signal(name) => Reference::Signal(name),
            Referent::Bucket(bucket) => Reference::Registers(bucket),
        };
        let waiting = self
            .projects
            .named
            .iter()
            .filter(|(project, (_, awaited))| self.scope.has(project) && awaited.contains(&subject));
        waiting.into_iter().any(|(project, _)| self.projects.sharing.allows(project, &reference))
    }

    /// Whether an event is seen; `workflow_of` gives the workflow of a backfill.
    pub fn has_event<E>(
        &self,
        event: &Event,
        workflow_of: impl FnOnce(&BackfillId) -> Result<Option<WorkflowId>, E>,
    ) -> Result<bool, E> {
        Ok(match event {
            Event::Slot { slot, .. } => self.has(&slot.workflow),
            Event::Workflow { workflow, .. } => self.has(workflow),
            Event::Backfill { backfill, .. } => workflow_of(backfill)?.is_some_and(|workflow| self.has(&workflow)),
            Event::Fact { fact, .. } => self.has_fact(fact),
            Event::Register { bucket, .. } => self.has_bucket(bucket),
            Event::Access { .. } => false,
        })
    }
}
