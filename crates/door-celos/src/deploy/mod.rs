//! Bringing a project to where a server reads it, and taking it away again.
//!
//! [`prepare`] reads and checks everything, and changes nothing; what it gives says what would happen, and
//! [`DeploymentPlan::carry_out`] does it. HDFS comes before scripts, defaults before workflows, and each file appears whole,
//! so that whatever breaks off leaves a version at work that works.
//!
//! Absent: printing, arguments, HTTP. Scripts are evaluated in their sandbox and ask nothing of the outside.

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
mod target;

pub use bundle::{Bundle, BundleFile, Content};
pub use carry_out::Step;
pub use change::{Difference, FileChange, WorkflowChange, WorkflowDifference};
pub use error::DeployError;
pub use inspect::{Definitions, Plan};
pub use name::ProjectName;
pub use prepare::{DeploymentPlan, prepare};
pub use site::{HDFS_ROOT, HdfsRoot, Site};
pub use slots::{Candidate, SlotEffect, Times, WINDOW, by_schedule, candidates, live, questions, unblocked};
pub use target::{TargetFile, with_user};
