//! Where apps are described beside scripts: options of the commands that load a folder.

use std::path::{Path, PathBuf};

use kelos::script::AppsSource;
use kelos_model::jobs::JobTemplate;

use crate::failure::Failure;

/// The file of apps, in a folder of scripts.
pub(crate) const TASKS_JSON: &str = "tasks.json";

/// Apps that are described beside the scripts.
#[derive(clap::Args, Default, Clone)]
pub(crate) struct Apps {
    /// The file of apps [default: tasks.json in the folder, if it exists]; beside it identifiers.json says what may
    /// stand for each identifier, and plugins/ has own kinds of jobs
    #[arg(long, value_name = "FILE", env = "STOLOS_TASKS_JSON", hide_env_values = true, value_hint = clap::ValueHint::FilePath)]
    pub(crate) tasks_json: Option<PathBuf>,
    /// The template of job ids of apps that have none, such as {date}_{client_id}
    #[arg(long, value_name = "TEMPLATE", env = "STOLOS_JOB_ID_DEFAULT_TEMPLATE", hide_env_values = true)]
    pub(crate) template: Option<String>,
}

impl Apps {
    /// Where the apps of a folder are.
    pub(crate) fn source(&self, dir: &Path) -> Result<AppsSource, Failure> {
        if let Some(template) = &self.template {
            JobTemplate::new(template).map_err(|error| Failure::usage(format!("use --template: {error}")))?;
        }
        let path = match &self.tasks_json {
            None => dir.join(TASKS_JSON),
            Some(path) => std::fs::canonicalize(path)
                .map_err(|error| Failure::usage(format!("use {} as the file of apps: {error}", path.display())))?,
        };
        Ok(AppsSource::of_file(&path, self.template.clone()))
    }
}
