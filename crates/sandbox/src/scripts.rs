//! The handle to all scripts.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use kelos_model::function::FunctionRef;
use kelos_model::jobs::{Direction, NamedJobs, Relation};
use kelos_model::probe::Verdict;
use kelos_model::template::KeyValues;
use kelos_model::{SlotKey, SlotRef, Workflow, WorkflowId};
use serde_json::{Map, Value};

use crate::code::ProblemCode;
use crate::host::Host;
use crate::library::{GoodVersion, GoodVersions, Library, worker_of};
use crate::limits::{Folders, Limits};
use crate::load::LoadResult;
use crate::problem::Problem;
use crate::realm::Call;
use crate::recipe::Recipe;
use crate::worker::Worker;

/// The reason for which a function of a script returned nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// The function is not there, or not the one that was meant.
    #[error("function {index} of {file} is not there: {reason}")]
    Unknown {
        /// The file that defined it.
        file: String,
        /// Its place among the functions of the file.
        index: u32,
        /// The reason.
        reason: &'static str,
    },
    /// The function threw, was stopped, or answered with something else than was expected.
    #[error("{0}")]
    Failed(Box<Problem>),
    /// The threads of the scripts have ended.
    #[error("scripts are not run any more")]
    Ended,
}

/// The scripts of a folder: loads them, and calls the functions that stay in them. All methods
/// block; clones share everything.
///
/// A function's world lives on from call to call while there is room for it, and is made again when
/// there isn't: variables that a function changes may be back at their first value at any call.
#[derive(Clone)]
pub struct Scripts {
    inner: Arc<Inner>,
}

struct Inner {
    library: Mutex<Library>,
    published: RwLock<GoodVersions>,
    host: Host,
    workers: Vec<Worker>,
}

impl std::fmt::Debug for Scripts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scripts").field("threads", &self.inner.workers.len()).finish_non_exhaustive()
    }
}

impl Scripts {
    /// Starts the threads that scripts run on. Nothing is loaded yet.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(folders: Folders, limits: Limits, host: Host) -> std::io::Result<Scripts> {
        let workers = (0..limits.threads.max(1)).map(|n| Worker::start(&limits, n)).collect::<Result<_, _>>()?;
        let library = Library::new(folders, limits, host.clone());
        let inner = Inner { library: Mutex::new(library), published: RwLock::default(), host, workers };
        Ok(Scripts { inner: Arc::new(inner) })
    }

    /// Seeds the last good version of a file after a restart: it is in use while the file is broken.
    /// Without effect once a good version was loaded.
    pub fn remember(&self, file: &str, workflows: Vec<Arc<Workflow>>) {
        let mut library = self.inner.library.lock().unwrap_or_else(PoisonError::into_inner);
        library.remember(file, workflows);
    }

    /// Reads the folder and evaluates the files that changed, or whose defaults files, registers or checked paths may
    /// have.
    #[must_use]
    pub fn load(&self) -> LoadResult {
        let mut library = self.inner.library.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = library.load(&self.inner.workers);
        *self.inner.published.write().unwrap_or_else(PoisonError::into_inner) = library.published();
        loaded
    }

    /// Asks a function for the properties of a slot's job.
    ///
    /// # Errors
    /// When the function is not there, throws, takes too long, or answers with something else.
    pub fn properties(
        &self,
        function: &FunctionRef,
        workflow: &WorkflowId,
        key: &SlotKey,
    ) -> Result<Map<String, Value>, CallError> {
        match self.call_of_slot(function, workflow, key)? {
            Value::Object(properties) => Ok(properties),
            other => Err(unexpected(function, "an object of properties", &other)),
        }
    }

    /// Asks a custom trigger about a slot.
    ///
    /// # Errors
    /// When the function is not there, throws, takes too long, or answers with something else.
    pub fn ask(&self, function: &FunctionRef, workflow: &WorkflowId, key: &SlotKey) -> Result<Verdict, CallError> {
        match self.call_of_slot(function, workflow, key)? {
            Value::Bool(true) => Ok(Verdict::Yes),
            Value::Bool(false) => Ok(Verdict::No),
            Value::String(word) if word == "never" => Ok(Verdict::Never),
            other => Err(unexpected(function, "true, false or \"never\"", &other)),
        }
    }

    /// Asks a function which jobs belong to a job.
    ///
    /// # Errors
    /// When the function is not there, throws, takes too long, or answers with something else.
    pub fn related(&self, relation: &Relation) -> Result<NamedJobs, CallError> {
        let (function, of) = (&relation.function, &relation.of);
        let job = job_json(of.workflow.as_str(), &relation.identifiers);
        let answer = self.call(function, Some(of.clone()), Some(job))?;
        let named = match relation.direction {
            Direction::Parents => serde_json::from_value(answer),
            Direction::Children => serde_json::from_value(answer)
                .map(|children: Vec<_>| children.into_iter().map(|ids| (relation.child.clone(), ids)).collect()),
        };
        named.map_err(|error| failed(function, ProblemCode::BadAnswer, error.to_string()))
    }

    /// Asks a function for the normal form of an identifier of a job id.
    ///
    /// # Errors
    /// When the function refuses it, is not there, takes too long, or answers with something else.
    pub fn normal(&self, function: &FunctionRef, text: &str) -> Result<String, CallError> {
        let answer = self.call(function, None, Some(serde_json::json!({ "text": text }).to_string()))?;
        match answer {
            Value::String(normal) => Ok(normal),
            other => Err(unexpected(function, "a text or a number", &other)),
        }
    }

    fn call_of_slot(&self, function: &FunctionRef, workflow: &WorkflowId, key: &SlotKey) -> Result<Value, CallError> {
        // Functions know no steps: they are asked about the run.
        let slot = SlotRef::new(workflow.clone(), key.of_run());
        let job = job_of(self.good(&function.file).as_deref(), &slot);
        self.call(function, Some(slot), job)
    }

    fn good(&self, file: &str) -> Option<Arc<GoodVersion>> {
        self.inner.published.read().unwrap_or_else(PoisonError::into_inner).get(file).cloned()
    }

    fn call(&self, function: &FunctionRef, slot: Option<SlotRef>, job: Option<String>) -> Result<Value, CallError> {
        let good = self.good(&function.file);
        let recipe = find(good.as_deref(), function).map_err(|reason| CallError::Unknown {
            file: function.file.clone(),
            index: function.index,
            reason,
        })?;
        let call = Call { recipe, index: function.index, slot, now: (self.inner.host.clock)(), job };
        let worker = worker_of(&function.file, &self.inner.workers).ok_or(CallError::Ended)?;
        let json =
            worker.call(call).ok_or(CallError::Ended)?.map_err(|problem| CallError::Failed(Box::new(problem)))?;
        serde_json::from_str(&json).map_err(|error| failed(function, ProblemCode::BadAnswer, error.to_string()))
    }
}

/// A job as functions are asked about it.
fn job_json(app: &str, identifiers: &[(Arc<str>, Arc<str>)]) -> String {
    let ids: Map<String, Value> =
        identifiers.iter().map(|(name, value)| (name.to_string(), Value::from(&**value))).collect();
    serde_json::json!({ "app": app, "ids": ids }).to_string()
}

/// The job of a key, as JSON; none if the key is a time.
fn job_of(good: Option<&GoodVersion>, slot: &SlotRef) -> Option<String> {
    slot.key.job()?;
    let defined = good?.workflows.iter().find(|one| one.id == slot.workflow)?;
    Some(job_json(slot.workflow.as_str(), KeyValues::of(&defined.keys, &slot.key).identifiers()))
}

fn find(good: Option<&GoodVersion>, function: &FunctionRef) -> Result<Arc<Recipe>, &'static str> {
    let good = good.ok_or("the file is not loaded")?;
    let recipe =
        good.recipe.as_ref().ok_or("the file was broken when Kelos started, and only its data is remembered")?;
    let index = usize::try_from(function.index).unwrap_or(usize::MAX);
    let kept = good.kept.get(index).ok_or("the file defines fewer functions now")?;
    match kept.digest == function.digest {
        true => Ok(recipe.clone()),
        false => Err("the function was changed since"),
    }
}

fn failed(function: &FunctionRef, code: ProblemCode, words: String) -> CallError {
    CallError::Failed(Box::new(Problem::error(&function.file, code, words)))
}

fn unexpected(function: &FunctionRef, expected: &str, found: &Value) -> CallError {
    failed(
        function,
        ProblemCode::BadAnswer,
        format!("expected function {} to return {expected}, not {found}", function.index),
    )
}
