//! A folder of scripts that feeds an engine: loaded at the start, and again whenever a file changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use kelos_model::trigger::Verdict;
use kelos_model::function::FunctionRef;
use kelos_model::{SlotKey, Workflow, WorkflowId};
use kelos_script::{Folders, Host, Limits, Loaded, Problem, Registers, Scripts};
use kelos_store::{Reader, StoreError};
use serde_json::{Map, Value};

use crate::engine::Handle;
use crate::job::Functions;

/// Scripts as a source of definitions and functions. Cheap to clone.
#[derive(Clone)]
pub struct ScriptFolder {
    scripts: Scripts,
    shown: Arc<RwLock<Vec<Problem>>>,
    last: Arc<Mutex<Option<Vec<Arc<Workflow>>>>>,
}

struct StoredRegisters(Arc<dyn Reader>);

impl Registers for StoredRegisters {
    fn get(&self, bucket: &str, key: &str) -> Result<Option<Value>, String> {
        self.0.register(bucket, key).map_err(|error| format!("failed to {error}"))
    }

    fn all(&self, bucket: &str) -> Result<Vec<(String, Value)>, String> {
        self.0.registers(bucket, "").map_err(|error| format!("failed to {error}"))
    }
}

impl ScriptFolder {
    /// Opens folders of scripts; nothing is evaluated yet. What the store remembers of their
    /// workflows stands in for files that are broken now.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn open(folders: Folders, limits: Limits, reader: Arc<dyn Reader>) -> Result<ScriptFolder, StoreError> {
        let remembered = reader.workflows()?;
        let host = Host::new(Arc::new(StoredRegisters(reader)), crate::prober::is_there);
        let scripts = Scripts::start(folders, limits, host).map_err(|error| StoreError::Medium {
            doing: "start a thread for scripts".to_owned(),
            cause: error.to_string(),
        })?;
        let mut files: BTreeMap<String, Vec<Arc<Workflow>>> = BTreeMap::new();
        for row in remembered.into_iter().filter(|row| row.present) {
            files.entry(row.definition.source.file.clone()).or_default().push(row.definition);
        }
        for (file, workflows) in files {
            scripts.remember(&file, workflows);
        }
        Ok(ScriptFolder { scripts, shown: Arc::default(), last: Arc::default() })
    }

    /// Loads what changed and tells the engine if the definitions are others than before. Blocks.
    pub fn reload(&self, handle: &Handle) -> Loaded {
        // One at a time, so that an older load never overwrites a newer one.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = self.scripts.load();
        let problems = loaded.problems.iter().cloned().chain(kelos_script::warnings(&loaded)).collect();
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = problems;
        let same = last.as_ref().is_some_and(|last| {
            last.len() == loaded.workflows.len() && last.iter().zip(&loaded.workflows).all(|(a, b)| Arc::ptr_eq(a, b))
        });
        if !same && handle.define(loaded.workflows.clone(), loaded.sources.clone()).is_ok() {
            *last = Some(loaded.workflows.clone());
        }
        loaded
    }

    /// Reloads from time to time on a thread of its own, until the engine has ended.
    ///
    /// # Errors
    /// When the thread can't be started.
    pub fn watch(&self, handle: Handle, every: Duration) -> std::io::Result<()> {
        let folder = self.clone();
        let watch = move || {
            while handle.status() != crate::engine::Status::Stopped {
                folder.reload(&handle);
                std::thread::park_timeout(every);
            }
        };
        std::thread::Builder::new().name("kelos-scripts".to_owned()).spawn(watch).map(|_| ())
    }

    /// What is wrong with the scripts, as of the latest load.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        self.shown.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Functions for ScriptFolder {
    fn properties(&self, function: &FunctionRef, workflow: &WorkflowId, key: &SlotKey) -> Result<Map<String, Value>, String> {
        self.scripts.properties(function, workflow, key).map_err(|error| error.to_string())
    }

    fn ask(&self, function: &FunctionRef, workflow: &WorkflowId, key: &SlotKey) -> Result<Verdict, String> {
        self.scripts.ask(function, workflow, key).map_err(|error| error.to_string())
    }
}
