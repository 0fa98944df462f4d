//! Deployments of projects: the digest that is kept of each, and what one does to its event schedules.

use std::collections::BTreeMap;

use kelos_model::Actor;
use kelos_model::workflow::Provenance;

/// Deployments, by project.
pub(crate) type Deployments = BTreeMap<String, Deployment>;

/// How a project is deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// Tells what is deployed from what was deployed before; kept as a register. None where it is deployed no more.
    pub digest: Option<String>,
    /// Whether its event schedules are made what its files say. Otherwise they stay, but for those whose program is gone.
    pub update_schedules: bool,
    /// Who deployed it, where that is known: whoever may write its files need not say.
    pub by: Option<Actor>,
}

/// The bucket of registers that holds, by project, what was deployed last of files.
pub const DEPLOYMENTS: &str = "kelos.deployments";

/// The bucket that holds, by project, what was deployed last of one provenance.
#[must_use]
pub fn deployments_of(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::File | Provenance::Api => DEPLOYMENTS,
        Provenance::Code => "kelos.deployments.code",
    }
}
