//! Projects that programs deploy: each has its definitions in force until it is deployed again, whether or not the program is there.

use std::collections::BTreeSet;

use kelos_model::Actor;
use kelos_model::workflow::Provenance;

use crate::deployment::{Deployment, Deployments};
use crate::requests::DefinedVersion;
use crate::{Core, DeployProject, Refusal};

impl Core {
    /// Puts the definitions of a program's project into force, in place of those that it had. Those of other programs stay.
    pub(crate) fn deploy_project(&mut self, request: DeployProject, by: Actor) -> Result<Vec<DefinedVersion>, Refusal> {
        let DeployProject { project, definitions, digest, dry_run } = request;
        self.workflows.check_deployed(&project, &definitions)?;
        let ids: BTreeSet<_> = definitions.iter().map(|one| one.id.clone()).collect();
        if !dry_run {
            let mut all = self.workflows.of_programs();
            all.retain(|one| one.project != project);
            all.extend(definitions);
            let deployment = Deployment { digest, update_schedules: true, by: Some(by) };
            self.define(Provenance::Code, all, &Deployments::from([(project, deployment)]));
        }
        let version = |id| Some(DefinedVersion { version: self.workflows.present(&id).ok()?.version(), workflow: id });
        Ok(ids.into_iter().filter_map(version).collect())
    }
}
