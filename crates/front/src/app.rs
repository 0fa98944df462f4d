//! The application that all routes work on, as the caller of a request may see and use it.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use kelos::Node;
use kelos_core as core;
use kelos_core::{Ask, Capacity, InspectCapacity, Inspection, Request};
use kelos_engine::executor::Reports;
use kelos_engine::prober::Prober;
use kelos_engine::reads::Lane;
use kelos_engine::{AskError, Handle};
use kelos_model::references::MissingConsent;
use kelos_model::{Actor, Probe, ProbeAnswer, SlotRef, Workflow};
use kelos_store::{Queries, StoreError};
use kelos_trust::{Grants, Right};
use tokio::sync::mpsc;

use crate::access::Access;
use crate::authority::Authority;
use crate::blocking::blocking;
use crate::fault::Fault;
use crate::groups::Groups;
use crate::guard::Hosts;
use crate::identity::{Credential, Identity, of_request};
use crate::limiter::Limiter;
use crate::limits::Quota;
use crate::links::Links;
use crate::metric_settings::MetricSettings;
use crate::scope::{CallerQueries, KnownProjects, View, seen_capacity, seen_inspection};

/// The application as routers hold it. A route takes an [`App`] as an argument instead, which is the same as its caller may see and use it.
#[derive(Clone)]
pub struct Front(App);

impl Front {
    /// The state of routers for an application.
    #[must_use]
    pub fn new(app: App) -> Front {
        Front(app)
    }
}

/// The application, for the caller of a request.
impl FromRequestParts<Front> for App {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, front: &Front) -> Result<App, Fault> {
        Ok(front.0.clone().for_caller(of_request(&parts.extensions)?))
    }
}

/// The application that all routes work on: a node, and how this server is set up; with the identity of a caller, as they may see and
/// use it. Cheap to clone.
#[derive(Clone)]
pub struct App {
    node: Node,
    version: Arc<str>,
    hosts: Hosts,
    prober: Prober,
    takes_deployments: bool,
    groups: Arc<Groups>,
    links: Arc<Links>,
    deploying: Arc<tokio::sync::Mutex<()>>,
    changing_schedules: Arc<tokio::sync::Mutex<()>>,
    access: Access,
    limiter: Limiter,
    metrics: MetricSettings,
    projects: Arc<KnownProjects>,
    /// The threads that it reads on.
    lane: Lane,
    /// The caller; none for the server itself, which may do everything.
    identity: Option<Arc<Identity>>,
    /// The engine's handle as the caller may read by it; none where that is the node's own.
    handle: Option<Handle>,
}

impl App {
    /// An application on a node, for requests to loopback names only.
    ///
    /// # Panics
    /// Outside of a tokio runtime: probes are made on the current one.
    #[must_use]
    pub fn new(node: Node, version: impl Into<Arc<str>>) -> App {
        let handle = node.handle().clone();
        let runtime = tokio::runtime::Handle::current();
        let prober = Prober::new(runtime, Arc::new(move || handle.now()), node.functions(), node.storage().clone());
        App {
            node,
            version: version.into(),
            hosts: Hosts::loopback(),
            prober,
            takes_deployments: false,
            groups: Arc::default(),
            links: Arc::default(),
            deploying: Arc::default(),
            changing_schedules: Arc::default(),
            access: Access::default(),
            limiter: Limiter::new(Quota::default()),
            metrics: MetricSettings::default(),
            projects: Arc::default(),
            lane: Lane::default(),
            identity: None,
            handle: None,
        }
    }

    /// The same for the caller of a request.
    fn for_caller(self, identity: Arc<Identity>) -> App {
        let sees_all = matches!(identity.credential, Credential::Open | Credential::Owner);
        let app = App { identity: Some(identity), ..self };
        if sees_all {
            return app;
        }
        let (own, all) = (app.clone(), app.node.handle().reader().clone());
        let reader = Arc::new(CallerQueries::new(all, Box::new(move || own.view_now())));
        let own = app.clone();
        // Without a view nothing is known of the caller's rights, so nothing is shown.
        let lens = move |slot: &SlotRef, found| match own.view_now() {
            Ok(None) => found,
            Ok(Some(view)) => seen_inspection(slot, found, &view),
            Err(_) => Inspection::default(),
        };
        let handle = app.node.handle().clone().seen_through(reader, Arc::new(lens));
        App { handle: Some(handle), ..app }
    }

    /// The same, for requests to these hosts.
    #[must_use]
    pub fn with_hosts(self, hosts: Hosts) -> App {
        App { hosts, ..self }
    }

    /// The same, taking deployments or not: who may deploy can run any command.
    #[must_use]
    pub fn with_deployments(self, taken: bool) -> App {
        App { takes_deployments: taken, ..self }
    }

    /// The same, with these groups of workflows on the board, until the API sets others.
    #[must_use]
    pub fn with_groups(self, groups: Groups) -> App {
        App { groups: Arc::new(groups), ..self }
    }

    /// The groups of the file that the server was started with; none for callers who don't see all workflows, who have them by project.
    pub fn groups_of_file(&self) -> Arc<Groups> {
        if self.may(Right::View, None) { self.groups.clone() } else { Arc::default() }
    }

    /// The same, with its runs linked to these pages.
    #[must_use]
    pub fn with_links(self, links: Links) -> App {
        App { links: Arc::new(links), ..self }
    }

    /// The same, with this access.
    #[must_use]
    pub fn with_access(self, access: Access) -> App {
        App { access, ..self }
    }

    /// The same, with these limits on what one client may ask.
    #[must_use]
    pub fn with_limiter(self, limiter: Limiter) -> App {
        App { limiter, ..self }
    }

    /// The same, with these settings of metrics.
    #[must_use]
    pub fn with_metrics(self, metrics: MetricSettings) -> App {
        App { metrics, ..self }
    }

    /// The settings of metrics.
    #[must_use]
    pub fn metrics(&self) -> MetricSettings {
        self.metrics
    }

    /// The limits on what one client may ask.
    #[must_use]
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// The access to the server.
    #[must_use]
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The identity of the caller; none for the server itself.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_deref()
    }

    /// The links from runs to pages of other systems.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Whether projects may be deployed over HTTP: if it was allowed, or callers have to show who they are.
    pub fn takes_deployments(&self) -> bool {
        self.takes_deployments || self.access.is_required()
    }

    /// Waits until no other deployment is under way.
    pub async fn deploying(&self) -> tokio::sync::OwnedMutexGuard<()> {
        self.deploying.clone().lock_owned().await
    }

    /// Waits until no other request changes a part of an event schedule, because such a request reads it and writes all of it.
    pub async fn changing_schedules(&self) -> tokio::sync::OwnedMutexGuard<()> {
        self.changing_schedules.clone().lock_owned().await
    }

    /// The node that the server belongs to.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The handle of the node's engine, which reads what the caller may see. To request something of the scheduler there is
    /// [`App::ask`], which checks the right.
    pub fn handle(&self) -> &Handle {
        self.handle.as_ref().unwrap_or_else(|| self.node.handle())
    }

    /// The version of the program, as clients see it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The host names that requests may be addressed to.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Reads on a thread that may block: as if nothing existed but what the caller may see.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Queries) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let reader = self.handle().reader().clone();
        self.lane.read("read from the store", move || read(&*reader)).await
    }

    /// The same for a stream, which reads on the threads of streams.
    #[must_use]
    pub fn on_stream(self) -> App {
        App { lane: Lane::Streams, ..self }
    }

    /// The part of the server that the caller may see; none if they may see everything.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn view(&self) -> Result<Option<Arc<View>>, StoreError> {
        if self.grants().is_none_or(|grants| grants.allow(Right::View, None)) {
            return Ok(None);
        }
        let app = self.clone();
        blocking(move || app.view_now()).await
    }

    /// The workflows that the caller may run as a worker; none for all.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn work(&self) -> Result<Option<Arc<View>>, StoreError> {
        let Some(grants) = self.grants().filter(|grants| !grants.allow(Right::Work, None)) else { return Ok(None) };
        let app = self.clone();
        let view = move || Ok(View::new(grants.scope(Right::Work), app.projects.now(app.node.handle())?));
        blocking(view).await.map(|view| Some(Arc::new(view)))
    }

    /// The same, where reading may block.
    fn view_now(&self) -> Result<Option<Arc<View>>, StoreError> {
        let Some(grants) = self.grants().filter(|grants| !grants.allow(Right::View, None)) else { return Ok(None) };
        Ok(Some(Arc::new(View::new(grants.scope(Right::View), self.projects.now(self.node.handle())?))))
    }

    /// The grants of the caller by now; none for the server itself.
    fn grants(&self) -> Option<Grants> {
        let identity = self.identity.as_deref()?;
        Some(self.access.grants_now(self.node.handle(), identity))
    }

    /// Whether the caller has a right for a project; for none, for all projects.
    #[must_use]
    pub fn may(&self, right: Right, project: Option<&str>) -> bool {
        self.grants().is_none_or(|grants| grants.allow(right, project))
    }

    /// Refuses callers without a right for a project; for none, without the right for all projects.
    ///
    /// # Errors
    /// When the caller lacks it.
    pub fn require(&self, right: Right, project: Option<&str>, action: &str) -> Result<(), AskError> {
        self.authority().map_or(Ok(()), |authority| authority.require(right, project, action))
    }

    /// The check of what the caller may do; none for the server itself.
    fn authority(&self) -> Option<Authority<'_>> {
        let (node, access) = (&self.node, &self.access);
        Some(Authority { node, access, identity: self.identity()?, grants: self.grants()? })
    }

    /// Sends a request to the engine, and waits for its answer, if the caller may ask for it.
    ///
    /// # Errors
    /// If the caller lacks the right, or the engine refuses the request or gives no answer.
    pub async fn ask<R: Request>(&self, by: &Actor, request: R) -> Result<R::Answer, AskError> {
        // For the server itself and for servers that ask for no credential there is nothing to look at.
        let is_open = |authority: &Authority<'_>| matches!(authority.identity.credential, Credential::Open);
        let authority = self.authority().filter(|authority| !is_open(authority));
        let warrant = authority.as_ref().map(|authority| Arc::new(authority.warrant()));
        let changes_definitions = Into::<Ask>::into(request.clone()).changes_definitions();
        let answer = self.handle().ask_under(by, warrant, request).await;
        if changes_definitions {
            // The author of a change sees it at once.
            self.projects.outdate();
        }
        if let (Some(authority), Err(error)) = (authority, &answer) {
            authority.note(error);
        }
        answer
    }

    /// The use of places for runs and of permits. Only the scheduler's memory knows the order of those that wait.
    ///
    /// # Errors
    /// When the engine gives no answer.
    pub async fn capacity(&self) -> Result<Capacity, AskError> {
        let capacity = self.handle().ask(&Actor::system("server"), InspectCapacity).await?;
        let view = self.view().await.map_err(|error| AskError::NoAnswer(error.to_string()))?;
        Ok(match view {
            Some(view) => seen_capacity(capacity, &view),
            None => capacity,
        })
    }

    /// The references that stand in the way of definitions which are about to be deployed, and of the registers that their scripts read,
    /// each with its project and its bucket, because other projects don't share what they are to; none on a server without access control.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn unshared_by(
        &self,
        definitions: Vec<Arc<Workflow>>,
        reads: Vec<(Arc<str>, Arc<str>)>,
    ) -> Result<Vec<MissingConsent>, StoreError> {
        if !self.access.is_required() {
            return Ok(Vec::new());
        }
        let app = self.clone();
        let read = move || {
            let projects = app.projects.now(app.node.handle())?;
            let of_scripts = reads.iter().filter_map(|(project, bucket)| projects.unshared_read(project, bucket));
            Ok(definitions.iter().flat_map(|one| projects.unshared_by(one)).chain(of_scripts).collect())
        };
        blocking(read).await
    }

    /// Has the next look at what callers may see read the projects of workflows again, because another node may have changed them.
    pub fn read_projects_anew(&self) {
        self.projects.outdate();
    }

    /// Waits until the engine has taken in, and committed, everything that was sent to it before.
    pub async fn settle(&self) -> Result<(), AskError> {
        let settled = self.handle().settled().await.map(drop);
        self.projects.outdate();
        settled
    }

    /// Looks at the outside world now, past whatever the engine knows about it.
    pub async fn look(&self, probes: Vec<Probe>) -> BTreeMap<Probe, ProbeAnswer> {
        let (send, mut answers) = mpsc::unbounded_channel();
        let reports = Reports::new(move |input| {
            let _ = send.send(input);
        });
        self.prober.ask(probes, &reports);
        drop(reports);
        let mut found = BTreeMap::new();
        // Each question gets an answer; the channel closes with the last one.
        while let Some(input) = answers.recv().await {
            if let core::Input::ProbeAnswered { probe, answer } = input {
                found.insert(probe, answer);
            }
        }
        found
    }
}
