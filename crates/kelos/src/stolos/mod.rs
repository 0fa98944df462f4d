//! What users of Stolos bring: a `tasks.json`, read into keyed workflows.
//!
//! The words of that file stay in here. It is read as a whole, and everything that is wrong with it is told at once, with its place.

mod depends_on;
mod json;
mod settings;
mod tasks_json;

#[cfg(test)]
mod tests;

pub use json::{Mistake, Place};
pub use settings::{Settings, SettingsError};
pub use tasks_json::{Task, Tasks, read};
