//! The door of Stolos: apps of a `tasks.json`, in a file, in Redis or printed by a command; the kinds of jobs that they name; and the
//! import of what a Stolos knows of its jobs.
//!
//! The format of that file is known only here. It is read as a whole into workflows with job ids, and all mistakes in
//! it are reported at once, with their positions. Scripts describe apps in the same format: [`TasksJson`] reads those,
//! too. Absent: the rules of dependencies between jobs, which are in the model.

mod command_apps;
mod depends_on;
mod executor;
mod followed;
pub mod import;
mod json;
#[cfg(feature = "redis")]
mod literal;
mod options;
#[cfg(feature = "redis")]
mod redis;
mod run_by;
mod tasks_json;

#[cfg(test)]
mod tests;

pub use command_apps::CommandApps;
pub use executor::executors;
#[cfg(feature = "redis")]
pub use literal::literal;
#[cfg(feature = "redis")]
pub use redis::{RedisApps, RedisAppsError};
pub use tasks_json::{Tasks, TasksJson, apps, read};
