//! A folder of scripts that tests write and load.

#![allow(dead_code, unreachable_pub, missing_docs)]

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use kelos_model::{SlotKey, WorkflowId};
use kelos_sandbox::{Folders, Host, Limits, LoadResult, RegisterError, Registers, Scripts};
use serde_json::Value;
use tempfile::TempDir;

/// Registers that a test can change.
#[derive(Default)]
pub struct Store(pub Mutex<Vec<(String, String, Value)>>);

impl Registers for Store {
    fn get(&self, project: &str, bucket: &str, key: &str) -> Result<Option<Value>, RegisterError> {
        Ok(self.all(project, bucket)?.into_iter().find(|(known, _)| known == key).map(|(_, value)| value))
    }

    fn all(&self, _: &str, bucket: &str) -> Result<Vec<(String, Value)>, RegisterError> {
        let all = self.0.lock().unwrap();
        Ok(all
            .iter()
            .filter(|(known, ..)| known == bucket)
            .map(|(_, key, value)| (key.clone(), value.clone()))
            .collect())
    }
}

pub struct Folder {
    folder: TempDir,
    pub registers: Arc<Store>,
    pub scripts: Scripts,
}

impl Folder {
    pub fn new() -> Folder {
        Folder::with(Limits::default())
    }

    pub fn with(limits: Limits) -> Folder {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("workflows")).unwrap();
        fs::create_dir(folder.path().join("defaults")).unwrap();
        let folders = Folders { workflows: folder.path().join("workflows"), defaults: folder.path().join("defaults") };
        let registers = Arc::new(Store::default());
        let host = Host::new(registers.clone(), |uri| match uri.contains("broken") {
            true => Err("the name node is gone".to_owned()),
            false => Ok(uri.contains("there")),
        });
        let scripts =
            Scripts::start(folders, limits, host.with_format(std::sync::Arc::new(kelos_door_stolos::TasksJson)))
                .unwrap();
        Folder { folder, registers, scripts }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let name = if name.contains('/') { name.to_owned() } else { format!("workflows/{name}") };
        fs::write(self.path(&name), text).unwrap();
    }

    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path(&format!("workflows/{name}"))).unwrap();
    }

    pub fn load(&self) -> LoadResult {
        self.scripts.load()
    }
}

/// A whole definition.
pub fn workflow(id: &str) -> String {
    with(id, "celos.alwaysTrigger()", "celos.commandExternalService({command: [\"true\"]})")
}

/// A definition with a trigger and a service of its own.
pub fn with(id: &str, trigger: &str, service: &str) -> String {
    format!(
        "celos.defineWorkflow({{id: \"{id}\", schedule: celos.hourlySchedule(), \
         schedulingStrategy: celos.serialSchedulingStrategy(), trigger: {trigger}, externalService: {service}}});\n"
    )
}

pub fn ids(loaded: &LoadResult) -> Vec<&str> {
    loaded.workflows.iter().map(|workflow| workflow.id.as_str()).collect()
}

pub fn words(loaded: &LoadResult) -> Vec<String> {
    loaded.problems.iter().map(ToString::to_string).collect()
}

pub fn key() -> SlotKey {
    SlotKey::parse("2015-09-13T13:40Z").unwrap()
}

pub fn id(name: &str) -> WorkflowId {
    WorkflowId::new(name).unwrap()
}
