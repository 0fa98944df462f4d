//! The door of Stolos: apps of a `tasks.json`, in a file or in Redis, and the kinds of jobs that they name.
//!
//! The words of that file stay in here. It is read as a whole into workflows with job ids, and everything that is wrong with it is
//! told at once, with its place. Scripts describe apps by the same words: [`TasksJson`] reads those, too. Absent: rules of which job
//! waits for which, which are the model's.

mod depends_on;
mod executor;
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

pub use executor::executors;
#[cfg(feature = "redis")]
pub use literal::literal;
#[cfg(feature = "redis")]
pub use redis::{RedisApps, RedisAppsError};
pub use tasks_json::{Tasks, TasksJson, apps, read};
