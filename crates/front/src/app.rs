//! The application that all routes work on.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos::Node;
use kelos_core as core;
use kelos_core::{Capacity, InspectCapacity, Request};
use kelos_engine::executor::Reports;
use kelos_engine::prober::Prober;
use kelos_engine::{AskError, Handle};
use kelos_model::{Actor, Probe, ProbeAnswer};
use kelos_store::{Queries, StoreError};
use tokio::sync::mpsc;

use crate::groups::Groups;
use crate::guard::Hosts;
use crate::links::Links;

/// The application that all routes work on: a node, and how this server is set up. Cheap to clone.
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
    worker_token: Option<Arc<str>>,
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
            worker_token: None,
        }
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

    /// The groups of the file that the server was started with.
    pub fn groups_of_file(&self) -> &Arc<Groups> {
        &self.groups
    }

    /// The same, with its runs linked to these pages.
    #[must_use]
    pub fn with_links(self, links: Links) -> App {
        App { links: Arc::new(links), ..self }
    }

    /// The same, taking workers that show this token.
    #[must_use]
    pub fn with_worker_token(self, token: Option<Arc<str>>) -> App {
        App { worker_token: token, ..self }
    }

    /// The token that workers must show; none if the server takes no workers.
    pub fn worker_token(&self) -> Option<&Arc<str>> {
        self.worker_token.as_ref()
    }

    /// The links from runs to pages of other systems.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Whether projects may be deployed over HTTP.
    pub fn takes_deployments(&self) -> bool {
        self.takes_deployments
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

    /// The handle of the node's engine.
    pub fn handle(&self) -> &Handle {
        self.node.handle()
    }

    /// The version of the program, as clients see it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The host names that requests may be addressed to.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Reads on a thread that may block.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Queries) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let reader = self.node.reader().clone();
        match tokio::task::spawn_blocking(move || read(&*reader)).await {
            Ok(answer) => answer,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => {
                    Err(StoreError::Medium { doing: "read from the store".to_owned(), cause: error.to_string() })
                }
            },
        }
    }

    /// Sends a request to the engine, and waits for its answer.
    ///
    /// # Errors
    /// If the engine refuses the request or gives no answer.
    pub async fn ask<R: Request>(&self, by: &Actor, request: R) -> Result<R::Answer, AskError> {
        self.handle().ask(by, request).await
    }

    /// The use of places for runs and of permits. Only the scheduler's memory knows the order of those that wait.
    ///
    /// # Errors
    /// When the engine gives no answer.
    pub async fn capacity(&self) -> Result<Capacity, AskError> {
        self.ask(&Actor::system("server"), InspectCapacity).await
    }

    /// Waits until the engine has taken in, and committed, everything that was sent to it before.
    pub async fn settle(&self) -> Result<(), AskError> {
        self.handle().settled().await
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
