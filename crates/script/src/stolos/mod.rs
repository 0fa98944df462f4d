//! What users of Stolos bring: a `tasks.json`, read into keyed workflows. Scripts describe apps by the same words.
//!
//! The words of that file stay in here. It is read as a whole, and everything that is wrong with it is told at once, with its place.

mod depends_on;
mod json;
mod options;
mod placeholder;
mod run_by;
mod settings;
mod shell;
mod tasks_json;

#[cfg(test)]
mod tests;

pub use json::{Mistake, Place};
pub use options::{MAX_RETRY, WATCH, option_names, option_value};
pub use placeholder::{Piece, Placeholders};
pub use run_by::plugin;
pub use settings::{Settings, SettingsError};
pub use shell::{Manner, ShellFault, ShellText, Trust, is_plain, trust_of};
pub(crate) use tasks_json::keyed;
pub use tasks_json::{Apps, Tasks, apps, read};
