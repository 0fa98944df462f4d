//! How deeply a definition is nested.

use serde_json::Value;

use super::{Job, Properties, Workflow};
use crate::nesting::{TooDeep, check_object};

impl Workflow {
    /// Checks the depth of each value that its author wrote: the trigger, settings and properties of jobs, inputs of steps, and values of
    /// parameters.
    ///
    /// # Errors
    /// If one has more levels than [`DEEPEST`](crate::nesting::DEEPEST): which one, and how many.
    pub fn check_nesting(&self) -> Result<(), String> {
        let said = |what: &str, found: Result<(), TooDeep>| found.map_err(|error| format!("{what} is {error}"));
        said("its trigger", self.trigger.check_nesting())?;
        said("its job", levels_of(&self.job))?;
        for one in &self.parameters {
            let default = one.default.as_ref().map_or(Ok(()), crate::nesting::check);
            said(&format!("the default of parameter {}", one.name), default)?;
        }
        for step in self.flow.iter().flat_map(|flow| &flow.steps) {
            said(&format!("the job of step {}", step.name), levels_of(&step.job))?;
            said(&format!("an input of step {}", step.name), check_object(step.inputs.values()))?;
        }
        Ok(())
    }
}

fn levels_of(job: &Job) -> Result<(), TooDeep> {
    let properties = match &job.properties {
        Properties::Fixed(fixed) => fixed.values().collect::<Vec<&Value>>(),
        Properties::Function(_) => Vec::new(),
    };
    check_object(job.settings.values().chain(properties))
}
