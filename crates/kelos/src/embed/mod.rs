//! Jobs as async functions in your own program.
//!
//! A [`Job`] is metadata and an async function; a [`Project`] is a set of jobs, with a name and a version. [`Project::start`] runs it
//! inside of this program, on a store in memory or in a folder. What is defined here stands in the same graph, log and pages as
//! scripts, event schedules and jobs with ids.
//!
//! [`Job`] and [`Project`] are what a program defines; [`kelos::Job`](crate::Job) and [`kelos::Project`](crate::Project) are parts of definitions
//! as they are stored. In answers a job is a *workflow*, and what is run at one time of it, or by one start, is a *slot*.
//!
//! ```
//! use kelos::embed::{Context, Project, Retry, job};
//! use std::time::Duration;
//!
//! #[derive(serde::Deserialize, serde::Serialize)]
//! struct Order {
//!     items: u32,
//! }
//!
//! async fn bill(context: Context, order: Order, price: u32) -> Result<u32, String> {
//!     context.log(format!("{} items", order.items));
//!     Ok(order.items * price)
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bill = job("bill", bill).with(5).retry(Retry::fixed(Duration::from_secs(60)).times(3)).on_demand();
//! let project = Project::new("shop", "1.0").add(bill);
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let running = project.start().await?;
//! let ended = running.run("bill", &Order { items: 3 }).await?;
//! assert_eq!(ended.output::<u32>()?, 15);
//! running.stop().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok(())
//! # }
//! ```
//!
//! A function may run more than once for the same slot: a program that dies can't know whether what it had begun was done. The
//! name of the run, [`Context::run`], stays the same as long as Kelos counts it as one attempt.

mod call;
mod cancel;
mod changes;
mod circles;
mod command;
mod context;
mod definition;
mod draft;
mod failure;
mod finite;
mod flow_definition;
mod flow_run;
mod function;
mod hosts;
#[cfg(feature = "inbox")]
mod inbox;
mod input;
mod job;
mod locks;
mod mistakes;
mod outcome;
mod outlook;
mod output;
mod period;
mod placement;
mod platform;
mod project;
mod rehearsal;
mod rehearsed_flow;
mod request_error;
mod requests;
mod retry;
mod run_output;
mod running;
mod running_flow;
mod running_job;
mod scheduler;
mod signal_wait;
mod stage;
mod start_error;
mod steps;
mod typed;
mod waits;
#[cfg(feature = "worker")]
mod work_error;
#[cfg(feature = "worker")]
mod work_for;
#[cfg(feature = "worker")]
mod work_news;
#[cfg(feature = "worker")]
mod working;

pub use cancel::Cancel;
pub use changes::Changes;
pub use command::CommandError;
pub use context::{Context, PreviousFailure};
pub use definition::{Definition, IntoDefinition};
pub use failure::Failure;
pub use flow_definition::{Flow, flow};
pub use flow_run::{FlowRun, StepRun};
pub use hosts::{HostError, Hosts};
#[cfg(feature = "inbox")]
pub use inbox::{Inbox, InboxError, InboxWorkflow};
pub use input::{AtTime, Input, ScheduledTime, SlotInput};
pub use job::{AtTimes, ByCron, ByPeriods, Function, Job, JobId, job};
pub use kelos_model::Deadline;
pub use kelos_model::deadline::{DeadlineError, LocalDeadline};
pub use kelos_model::time::{Calendar, Dates, Zone};
pub use kelos_model::workers::LossPolicy;
pub use kelos_model::workflow::{HeldBack, HoldBack, PastSlots, PastTimes, WorkflowPast};
#[cfg(feature = "worker")]
pub use kelos_tls::TrustSettings;
pub use locks::Lock;
pub use mistakes::{Mistake, Mistakes};
pub use output::OutputError;
pub use period::{InPeriod, Period};
pub use platform::{Places, Platform, PlatformUse, Processes, Rate};
pub use project::Project;
pub use rehearsal::{Rehearsal, RehearsalError};
pub use rehearsed_flow::RehearsedFlow;
pub use request_error::RequestError;
pub use requests::{Permits, PlatformError};
pub use retry::Retry;
pub use running::{EndedSlot, RunningProject};
pub use running_flow::RunningFlow;
pub use running_job::RunningJob;
pub use scheduler::{Plan, PlannedSlot, PlannedSlots, Scheduler};
pub use signal_wait::{SignalError, SignalWait};
pub use start_error::StartError;
pub use steps::{Part, Step, StepFunction, signal, step};
#[cfg(feature = "worker")]
pub use work_error::WorkError;
#[cfg(feature = "worker")]
pub use work_for::RemoteProject;
#[cfg(feature = "worker")]
pub use work_news::WorkNews;
#[cfg(feature = "worker")]
pub use working::WorkingProject;
