//! The projects for which somebody has a right.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The projects for which somebody has a right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All, also those that are still to come.
    All,
    /// These; possibly none.
    Only(BTreeSet<Arc<str>>),
}

impl Scope {
    /// Whether a project is in it.
    #[must_use]
    pub fn has(&self, project: &str) -> bool {
        match self {
            Scope::All => true,
            Scope::Only(projects) => projects.contains(project),
        }
    }

    /// Whether something is in it that belongs to a project, or to none: what belongs to none needs the right for all projects.
    #[must_use]
    pub fn covers(&self, project: Option<&str>) -> bool {
        match (self, project) {
            (Scope::All, _) => true,
            (Scope::Only(_), None) => false,
            (Scope::Only(projects), Some(project)) => projects.contains(project),
        }
    }
}
