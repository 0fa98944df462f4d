//! The definitions in scripts, for an import: each workflow is imported with its own definition.

use std::sync::Arc;

use kelos_sandbox::apps::AppFormat;
use kelos_sandbox::{Folders, Host, Limits, Problem, RegisterError, Scripts};
use serde_json::Value;

use super::Definitions;
use crate::celos_db::Registers;

/// Registers of a database that is not imported yet.
struct Theirs(Registers);

impl kelos_sandbox::Registers for Theirs {
    fn get(&self, _project: &str, bucket: &str, key: &str) -> Result<Option<Value>, RegisterError> {
        Ok(self.0.get(&(bucket.to_owned(), key.to_owned())).cloned())
    }

    fn all(&self, _project: &str, bucket: &str) -> Result<Vec<(String, Value)>, RegisterError> {
        let mine = self.0.iter().filter(|((of, _), _)| of == bucket);
        Ok(mine.map(|((_, key), value)| (key.clone(), value.clone())).collect())
    }
}

impl Definitions {
    /// Loads the scripts of a folder, with the registers that they will find, and returns their problems.
    /// Probes of paths are answered with no.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn load(
        folders: Folders,
        format: Arc<dyn AppFormat>,
        registers: Registers,
    ) -> std::io::Result<(Definitions, Vec<Problem>)> {
        let host = Host::new(Arc::new(Theirs(registers)), |_| Ok(false)).with_format(format);
        let loaded = Scripts::start(folders, Limits::default(), host)?.load();
        let workflows = loaded.workflows.into_iter().map(|one| (one.id.clone(), one)).collect();
        let problems = loaded.problems.into_iter().filter(Problem::is_error).collect();
        Ok((Definitions { workflows, sources: loaded.sources }, problems))
    }
}
