//! Those who know the runs whose folders there are: the log of a node, and the disk of a worker on another machine.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kelos_executors::local::{FoundRun, LocalError, WalkEntry, is_new, walk};
use kelos_executors::workers::{DiskError, HeldRuns};
use kelos_model::history::{Situation, Term};
use kelos_store::{Queries, StoreError};

use super::consent::{Consent, are_new, consent};
use super::names::{Names, standing};

/// A sweep that failed. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub(super) enum SweepError {
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder of the runs can't be read.
    #[error(transparent)]
    Folder(#[from] LocalError),
    /// The notes of a worker can't be read.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Somebody who knows the runs below some folders.
pub(super) trait Witness {
    /// The workflows of the folders, for one look.
    fn names(&mut self) -> Result<Names, SweepError>;

    /// The consent to remove folders.
    fn consent(&self) -> Result<Consent, SweepError>;

    /// The state of affairs around a run below one of the folders.
    fn situation(&self, root: &Path, run: &FoundRun, names: &Names) -> Result<Situation, SweepError>;
}

/// The log of a node.
pub(super) struct LogWitness<'a> {
    pub(super) reader: &'a dyn Queries,
    /// The folders of its runs.
    pub(super) roots: &'a [PathBuf],
    /// The terms on which they are kept.
    pub(super) term: Option<&'a Term>,
    pub(super) now: Timestamp,
}

impl Witness for LogWitness<'_> {
    fn names(&mut self) -> Result<Names, SweepError> {
        Ok(Names::read(self.reader)?)
    }

    fn consent(&self) -> Result<Consent, SweepError> {
        Ok(consent(self.reader, self.term, self.now, || Ok(are_new(self.roots)))?)
    }

    fn situation(&self, root: &Path, run: &FoundRun, names: &Names) -> Result<Situation, SweepError> {
        match names.workflow(&run.workflow).zip(run.given_key(root)) {
            Some((workflow, key)) => Ok(standing(self.reader, workflow, (&key, run.number), &|| run.has_ended(root))?),
            None => Ok(Situation::Unknown),
        }
    }
}

/// The disk of a worker on another machine.
pub(super) struct DiskWitness<'a> {
    pub(super) held: &'a HeldRuns,
    /// Whether somebody said on this machine how long folders are kept.
    pub(super) is_agreed: bool,
    /// Whether projects have terms of their own, so that it matters which one a workflow has.
    pub(super) by_project: bool,
    /// The folders of runs that were not over at the beginning of the look.
    pub(super) open: BTreeSet<PathBuf>,
}

impl Witness for DiskWitness<'_> {
    fn names(&mut self) -> Result<Names, SweepError> {
        // Before the folders are seen: a run that ends meanwhile is one that is not over.
        self.open = self.held.folders()?;
        let mut projects = BTreeMap::new();
        if self.by_project {
            walk(self.held.root(), &mut |found| {
                if let WalkEntry::Run(run) = found
                    && !projects.contains_key(&run.workflow)
                    && let Some(project) = run.project(self.held.root())
                {
                    projects.insert(run.workflow, project);
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(Names::of_projects(projects))
    }

    fn consent(&self) -> Result<Consent, SweepError> {
        Ok(match (is_new(self.held.root()), self.is_agreed) {
            (true, _) => Consent::New,
            (false, true) => Consent::Agreed,
            (false, false) => Consent::Missing,
        })
    }

    fn situation(&self, root: &Path, run: &FoundRun, _: &Names) -> Result<Situation, SweepError> {
        Ok(match (run.has_ended(root), self.open.contains(&run.dir(root))) {
            (true, false) => Situation::Settled,
            (true, true) => Situation::Live,
            (false, _) => Situation::Unknown,
        })
    }
}
