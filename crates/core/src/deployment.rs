//! Deployments of projects: their stored digests, and their effect on event schedules.

use std::collections::BTreeMap;

use kelos_model::Actor;
use kelos_model::workflow::Provenance;

/// Deployments, by project.
pub(crate) type Deployments = BTreeMap<String, Deployment>;

/// A deployment of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// The digest that identifies the deployed state, kept as a register; none if the project is no longer deployed.
    pub digest: Option<String>,
    /// Whether its event schedules are made to match its files. Otherwise they stay, except for those whose program is
    /// gone.
    pub update_schedules: bool,
    /// The actor, if known: anyone who can write the files can deploy them.
    pub by: Option<Actor>,
}

/// The bucket of registers with the digests of deployed files, by project.
pub const DEPLOYMENTS: &str = "kelos.deployments";

/// The bucket of registers with the deployed digests of one provenance, by project.
#[must_use]
pub fn deployments_of(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::File | Provenance::Api => DEPLOYMENTS,
        Provenance::Code => "kelos.deployments.code",
    }
}
