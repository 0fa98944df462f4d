//! The application that a file declares, and the schedules that it is building.

use kelos_model::project::ProjectName;
use serde::Deserialize;

use crate::problem::SourcePosition;

/// The arguments of `celos.application`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Application {
    namespace: Option<String>,
    name: Option<String>,
    version: Option<String>,
    pub(crate) update_schedules: Option<bool>,
}

impl Application {
    /// The full name: a part that the file doesn't give is that of `usual`.
    pub(crate) fn project(&self, usual: ProjectName) -> ProjectName {
        ProjectName {
            namespace: self.namespace.clone().unwrap_or(usual.namespace),
            application: self.name.clone().unwrap_or(usual.application),
            version: self.version.clone().unwrap_or(usual.version),
        }
    }
}

/// A schedule that a script is building.
#[derive(Debug)]
pub(crate) struct OpenSchedule {
    pub(crate) name: String,
    /// The call that began it.
    pub(crate) place: Option<SourcePosition>,
    pub(crate) stage: BuildStage,
}

/// The stage of building a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuildStage {
    /// It has no trigger yet.
    Open,
    /// It has its trigger.
    Built,
    /// It was defined.
    Taken,
}
