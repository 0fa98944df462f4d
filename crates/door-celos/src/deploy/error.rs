//! Why a project could not be deployed.

use kelos_sandbox::Problem;
use kelos_storage::StorageError;

use super::ProjectName;

/// Why a project could not be deployed. Messages complete "failed to …". But for [`DeployError::Incomplete`], nothing
/// has been changed.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// Files can't be named so.
    #[error("name a project \"{name}\": {reason}")]
    BadName {
        /// The name.
        name: String,
        /// What was expected.
        reason: String,
    },
    /// The target file says something else than it must.
    #[error("read the target file {place}: {reason}")]
    Target {
        /// Where it is.
        place: String,
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// The deployment directory is not laid out as it must be.
    #[error("deploy from {folder}: {reason}")]
    Layout {
        /// The deployment directory.
        folder: String,
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// A folder or a file of the target is not there.
    #[error("find the {what} {place}: {reason}")]
    Folder {
        /// Which one.
        what: &'static str,
        /// Where.
        place: String,
        /// What is there instead, and what to do.
        reason: String,
    },
    /// Nothing can be written to a folder of the target.
    #[error("write to the {what} {place}: {cause}")]
    NotWritable {
        /// Which folder.
        what: &'static str,
        /// Where.
        place: String,
        /// Why.
        cause: String,
    },
    /// The scripts have errors, or make some in those of others.
    #[error("{} {project}: {} would break", if *undeploy { "undeploy" } else { "deploy" }, breaking(problems))]
    Scripts {
        /// The project.
        project: ProjectName,
        /// Whether it was to go.
        undeploy: bool,
        /// What would be wrong.
        problems: Vec<Problem>,
    },
    /// What Oozie would find is not what the scripts say.
    #[error("deploy {project}: {reason}")]
    Oozie {
        /// The project.
        project: ProjectName,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// A place can't be named so.
    #[error("use \"{root}\" as the root in HDFS: {reason}")]
    HdfsRoot {
        /// What was given.
        root: String,
        /// What was expected.
        reason: String,
    },
    /// A place can't be looked at.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Scripts can't be checked on this machine.
    #[error("check the scripts on this machine: {0}")]
    Local(#[from] std::io::Error),
    /// It broke off in the middle.
    #[error("{step}: {cause}")]
    Incomplete {
        /// What was done before.
        done: Vec<String>,
        /// What was being done.
        step: String,
        /// Why it failed.
        cause: StorageError,
        /// What was left undone, that included.
        left: Vec<String>,
    },
}

fn breaking(problems: &[Problem]) -> String {
    let mut files: Vec<&str> = problems.iter().map(|problem| problem.file.as_str()).collect();
    files.dedup();
    files.join(", ")
}

impl DeployError {
    /// What to do about it.
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
