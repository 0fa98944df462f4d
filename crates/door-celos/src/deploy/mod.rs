//! Deploying a project to the folders that a server reads, and undeploying it.
//!
//! [`prepare`] reads and checks everything, and changes nothing; its result describes the changes, and
//! [`DeploymentPlan::carry_out`] makes them. HDFS comes before scripts, defaults before workflows, and each file is written atomically,
//! so that an interruption leaves a working version.
//!
//! Absent: printing, arguments, HTTP. Scripts are evaluated in their sandbox without access to the outside.

mod bundle;
mod carry_out;
mod change;
mod error;
mod hdfs;
mod inspect;
mod name;
mod oozie;
mod prepare;
mod site;
mod slots;
mod staging;
mod step;
mod target;

pub use bundle::{Bundle, BundleFile, BundleFiles, BundleScripts, Content};
pub use change::{Difference, FileChange, WorkflowChange, WorkflowDifference, changes_of};
pub use error::DeployError;
pub use inspect::{Definitions, Plan};
pub use name::ProjectName;
pub use prepare::{DeploymentPlan, prepare};
pub use site::{HDFS_ROOT, HdfsRoot, Site};
pub use slots::{Candidate, SlotEffect, Times, WINDOW, by_schedule, candidates, live, questions, unblocked};
pub use step::Step;
pub use target::{TargetFile, with_user};
