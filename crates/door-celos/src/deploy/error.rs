//! Errors of deployments.

use kelos_sandbox::Problem;
use kelos_storage::StorageError;

/// An error of a deployment. Messages complete "failed to …". Except for [`DeployError::Incomplete`], nothing
/// has been changed.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The name can't be a name of files.
    #[error("name a project \"{name}\": {reason}")]
    BadName {
        /// The name.
        name: String,
        /// A description of what was expected.
        reason: String,
    },
    /// The target file is invalid.
    #[error("read the target file {place}: {reason}")]
    Target {
        /// The target file.
        place: String,
        /// The reason, and what was expected.
        reason: String,
    },
    /// The layout of the deployment directory is invalid.
    #[error("deploy from {folder}: {reason}")]
    Layout {
        /// The deployment directory.
        folder: String,
        /// The reason, and what was expected.
        reason: String,
    },
    /// A folder or a file of the target does not exist.
    #[error("find the {what} {place}: {reason}")]
    Folder {
        /// The name of the setting.
        what: &'static str,
        /// The path.
        place: String,
        /// The reason, and what to do.
        reason: String,
    },
    /// A folder of the target is not writable.
    #[error("write to the {what} {place}: {cause}")]
    NotWritable {
        /// The name of the setting.
        what: &'static str,
        /// The path.
        place: String,
        /// The cause.
        cause: String,
    },
    /// The scripts have errors, or cause errors in other scripts.
    #[error("{} {project}: {} would break", if *undeploy { "undeploy" } else { "deploy" }, breaking(problems))]
    Scripts {
        /// The project.
        project: String,
        /// Whether the project was to be removed.
        undeploy: bool,
        /// The problems that the change would cause.
        problems: Vec<Problem>,
    },
    /// The files for Oozie don't match the scripts.
    #[error("deploy {project}: {reason}")]
    Oozie {
        /// The project.
        project: String,
        /// The reason, and what to do.
        reason: String,
    },
    /// The root in HDFS is invalid.
    #[error("use \"{root}\" as the root in HDFS: {reason}")]
    HdfsRoot {
        /// The root as given.
        root: String,
        /// A description of what was expected.
        reason: String,
    },
    /// A place can't be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Scripts can't be checked on this machine.
    #[error("check the scripts on this machine: {0}")]
    Local(#[from] std::io::Error),
    /// A step failed.
    #[error("{step}: {cause}")]
    Incomplete {
        /// The steps that were done.
        done: Vec<String>,
        /// The step that failed.
        step: String,
        /// The cause of the failure.
        cause: StorageError,
        /// The steps that were not done, including the failed one.
        left: Vec<String>,
    },
}

fn breaking(problems: &[Problem]) -> String {
    let mut files: Vec<&str> = problems.iter().map(|problem| problem.file.as_str()).collect();
    files.dedup();
    files.join(", ")
}

impl DeployError {
    /// Advice for the user.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Scripts { .. } => Some("nothing was changed"),
            Self::Folder { what: "core-site.xml" | "hdfs-site.xml", .. } => {
                Some("nothing was changed; correct the target file, or leave HDFS as it is (--no-hdfs)")
            }
            Self::NotWritable { .. } => Some(
                "nothing was changed; give the user that deploys the right to write there, or deploy as another one (CELOS_CI_USERNAME)",
            ),
            Self::Incomplete { .. } => {
                Some("what is not done is as it was; once that is mended, do the same again: it goes on from there")
            }
            _ => None,
        }
    }
}
