//! The definitions that explanations of many slots share: read once, when they are first needed.

use std::cell::OnceCell;

use kelos_model::paths::PathGraph;
use kelos_model::workflow::WorkflowRow;
use kelos_store::{Queries, StoreError};

use crate::jobs::Jobs;
use crate::paths;

/// Everything that is defined, as far as it was needed.
pub(crate) struct Definitions<'a> {
    reader: &'a dyn Queries,
    rows: OnceCell<Vec<WorkflowRow>>,
    jobs: OnceCell<Jobs>,
    paths: OnceCell<PathGraph>,
}

impl<'a> Definitions<'a> {
    pub(crate) fn new(reader: &'a dyn Queries) -> Definitions<'a> {
        Definitions { reader, rows: OnceCell::new(), jobs: OnceCell::new(), paths: OnceCell::new() }
    }

    pub(crate) fn reader(&self) -> &'a dyn Queries {
        self.reader
    }

    /// All workflows that were ever defined.
    pub(crate) fn rows(&self) -> Result<&[WorkflowRow], StoreError> {
        if let Some(rows) = self.rows.get() {
            return Ok(rows);
        }
        let rows = self.reader.workflows(None)?;
        Ok(self.rows.get_or_init(|| rows))
    }

    /// The relation between jobs.
    pub(crate) fn jobs(&self) -> Result<&Jobs, StoreError> {
        if let Some(jobs) = self.jobs.get() {
            return Ok(jobs);
        }
        let jobs = Jobs::of(self.rows()?);
        Ok(self.jobs.get_or_init(|| jobs))
    }

    /// The relation between slots by the paths that they write and wait for.
    pub(crate) fn paths(&self) -> Result<&PathGraph, StoreError> {
        if let Some(paths) = self.paths.get() {
            return Ok(paths);
        }
        let paths = paths::graph(self.rows()?);
        Ok(self.paths.get_or_init(|| paths))
    }
}
