//! The records that the executor needs: the jobs that runs were started with, and the name of this installation.

use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use kelos_core::SetRegister;
use kelos_engine::Handle;
use kelos_engine::executor::{RunInput, Start};
use kelos_engine::job::{self, Functions};
use kelos_model::{Actor, Run, RunId, Workflow};
use kelos_store::{Queries, StoreError};
use serde_json::Value;
use tokio::sync::OnceCell;

/// The register that holds the name of this installation.
const INSTALLATION: (&str, &str) = ("kelos", "installation");

/// The records of runs that an executor did not start itself.
pub trait Records: Send + Sync {
    /// A run with its job filled in, as it was defined when the run was dispatched. Blocks.
    ///
    /// # Errors
    /// In words that complete "failed to …".
    fn start_of(&self, run: &RunId) -> Result<Start, String>;

    /// A name that no other installation has, and that never changes: two of them may use one Oozie, with slots and
    /// runs of the same names.
    fn installation(&self) -> BoxFuture<'_, Result<String, String>>;
}

/// The records of a node: its store, its scripts, and a register for the name.
pub struct NodeRecords {
    reader: Arc<dyn Queries>,
    functions: Arc<dyn Functions>,
    handle: OnceLock<Handle>,
    name: OnceCell<String>,
}

impl NodeRecords {
    /// Records of a store.
    #[must_use]
    pub fn new(reader: Arc<dyn Queries>, functions: Arc<dyn Functions>) -> Self {
        Self { reader, functions, handle: OnceLock::new(), name: OnceCell::new() }
    }

    /// Hands the engine over that keeps the store, once it is up.
    pub fn connect(&self, handle: Handle) {
        // A second one would be of the same node.
        let _ = self.handle.set(handle);
    }

    async fn find_or_make(&self) -> Result<String, String> {
        let (reader, (bucket, key)) = (self.reader.clone(), INSTALLATION);
        let known = tokio::task::spawn_blocking(move || reader.register(bucket, key)).await;
        let known = known.map_err(|error| format!("read the name of this installation: {error}"))?;
        if let Some(Value::String(name)) = known.map_err(|error| error.to_string())? {
            return Ok(name);
        }
        let handle = self.handle.get().ok_or("name this installation: the scheduler is not up yet")?;
        let name = crate::local::unique().map_err(|error| format!("name this installation: {error}"))?;
        let value = Some(Value::String(name.clone()));
        let ask = SetRegister { bucket: bucket.to_owned(), key: key.to_owned(), value, reason: None };
        handle.ask(&Actor::system("oozie"), ask).await.map_err(|error| format!("name this installation: {error}"))?;
        Ok(name)
    }

    fn record(&self, run: &RunId) -> Result<Option<Run>, StoreError> {
        Ok(self.reader.slot_runs(&run.slot)?.into_iter().find(|known| known.id == *run))
    }

    /// The definition that was in force when the run was dispatched; the present one where that is not known. A run that
    /// was imported before its workflow had a script belongs to the first one that there was.
    fn definition(&self, run: &RunId) -> Result<Option<Workflow>, StoreError> {
        let workflow = &run.slot.workflow;
        let dispatched = self.record(run)?.map(|known| known.dispatched_at);
        let mut all = self.reader.definitions(workflow, None)?;
        all.retain(|past| past.definition.job.settings.contains_key("url"));
        all.sort_by_key(|past| past.version);
        let at_the_time = all.iter().rposition(|past| dispatched.is_none_or(|at| past.at <= at));
        let chosen = at_the_time.or((!all.is_empty()).then_some(0));
        Ok(chosen.map(|chosen| all.swap_remove(chosen).definition))
    }
}

impl Records for NodeRecords {
    fn start_of(&self, run: &RunId) -> Result<Start, String> {
        let definition = self.definition(run).map_err(|error| error.to_string())?;
        let none = || format!("look up where {run} runs: no script says which Oozie; put its workflow's script back");
        let workflow = Arc::new(definition.ok_or_else(none)?);
        let slot = self.reader.slot(&run.slot).map_err(|error| error.to_string())?;
        let record = self.record(run).map_err(|error| error.to_string())?;
        let (inputs, batch) = record.map(|record| (record.arguments, record.batch)).unwrap_or_default();
        let collected = slot.as_ref().and_then(|slot| slot.collected.as_deref());
        let given = RunInput::of(&workflow, &run.slot.key, collected, inputs).serving(batch);
        job::fill(run, &workflow, given.clone(), &*self.functions).or_else(|why| {
            // The Oozie is known all the same, and so everything but the user.
            tracing::warn!(%run, "failed to fill in the properties of its job again: {why}");
            let (settings, properties) = (workflow.job.settings.clone(), serde_json::Map::new());
            Ok(Start {
                run: run.clone(),
                workflow,
                settings,
                properties,
                given,
                worker: None,
                lease: None,
                earlier: Vec::new(),
            })
        })
    }

    fn installation(&self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async { self.name.get_or_try_init(|| self.find_or_make()).await.cloned() })
    }
}
