//! The outside as the files of one load see it: each question is asked once, so that all files get the same answer, and
//! a file that is evaluated again for a later call gets the answers it got before.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use kelos_model::project::deployed_with;
use kelos_model::register::is_reserved;

use crate::files::NOT_THERE;
use crate::host::{Host, RegisterError, Sandbox};

/// A question of a script for registers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RegisterAsk {
    /// The project of the script.
    pub(crate) project: String,
    pub(crate) bucket: String,
    /// One key; none for all.
    pub(crate) key: Option<String>,
}

/// The outside as it was at one load.
pub(crate) struct Session {
    defaults: PathBuf,
    longest: u64,
    host: Host,
    /// The frozen clock of the evaluation.
    pub(crate) now: Timestamp,
    seen: Mutex<SessionCache>,
}

#[derive(Default)]
struct SessionCache {
    defaults: BTreeMap<String, Result<Arc<str>, String>>,
    registers: BTreeMap<RegisterAsk, Result<String, RegisterError>>,
    looks: BTreeMap<String, Result<bool, String>>,
}

impl Session {
    pub(crate) fn new(defaults: PathBuf, longest: u64, host: Host) -> Session {
        let now = (host.clock)();
        Session { defaults, longest, host, now, seen: Mutex::default() }
    }

    /// Whether nothing may be asked.
    pub(crate) fn dry(&self) -> bool {
        self.host.dry
    }

    /// The format of the apps that scripts describe.
    pub(crate) fn format(&self) -> Option<&std::sync::Arc<dyn crate::apps::AppFormat>> {
        self.host.format.as_ref()
    }

    /// The folder with more kinds of jobs.
    pub(crate) fn apps_folder(&self) -> Option<&Path> {
        self.host.apps.as_ref().map(crate::apps::AppsSource::folder)
    }

    /// The names of outside resources in a test; none outside of tests.
    pub(crate) fn sandbox(&self) -> Option<&Sandbox> {
        self.host.sandbox.as_ref()
    }

    /// The text of a defaults file.
    pub(crate) fn defaults_file(&self, name: &str) -> Result<Arc<str>, String> {
        self.once(|seen| &mut seen.defaults, name.to_owned(), || self.read_defaults(name))
    }

    /// Whether a defaults file does not exist.
    pub(crate) fn lacks_defaults(&self, name: &str) -> bool {
        let missing = format!("defaults file {name:?} {NOT_THERE}");
        self.defaults_file(name).is_err_and(|problem| problem.starts_with(&missing))
    }

    /// The JSON of a register, or of all registers of a bucket.
    pub(crate) fn register(&self, ask: &RegisterAsk) -> Result<String, RegisterError> {
        self.once(|seen| &mut seen.registers, ask.clone(), || self.register_now(ask))
    }

    /// The same, as it is at this moment.
    pub(crate) fn register_now(&self, ask: &RegisterAsk) -> Result<String, RegisterError> {
        let RegisterAsk { project, bucket, key } = ask;
        if is_reserved(bucket) {
            return Err(RegisterError::Reserved(bucket.clone()));
        }
        let registers = &self.host.registers;
        let json = match key {
            Some(key) => serde_json::to_string(&registers.get(project, bucket, key)?),
            None => serde_json::to_string(&registers.all(project, bucket)?),
        };
        json.map_err(|error| RegisterError::Unreadable(error.to_string()))
    }

    /// Whether something is at a URI.
    pub(crate) fn look(&self, uri: &str) -> Result<bool, String> {
        self.once(|seen| &mut seen.looks, uri.to_owned(), || self.look_now(uri))
    }

    /// The same, as it is at this moment.
    pub(crate) fn look_now(&self, uri: &str) -> Result<bool, String> {
        (self.host.look)(uri)
    }

    /// The texts of the defaults files that were read.
    pub(crate) fn read_texts(&self) -> Vec<(String, Arc<str>)> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = seen.defaults.iter();
        texts.filter_map(|(name, text)| Some((name.clone(), text.as_ref().ok()?.clone()))).collect()
    }

    /// Asks without holding the lock: the outside may be slow, and the first answer counts.
    fn once<K: Ord, V: Clone>(
        &self,
        part: impl Fn(&mut SessionCache) -> &mut BTreeMap<K, V>,
        key: K,
        ask: impl FnOnce() -> V,
    ) -> V {
        let lock = || self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let known = part(&mut lock()).get(&key).cloned();
        known.unwrap_or_else(|| {
            let answer = ask();
            part(&mut lock()).entry(key).or_insert(answer).clone()
        })
    }

    fn read_defaults(&self, name: &str) -> Result<Arc<str>, String> {
        let within = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if !within || name.contains(['\\', '\0']) {
            return Err(format!("expected the name of a file inside the defaults folder, not {name:?}"));
        }
        let path = self.defaults.join(defaults_name(name));
        crate::files::read_text(&path, self.longest).map_err(|problem| {
            // That of one project is looked for before that of all, and what else is there changes nothing.
            let advice = if deployed_with(name).is_some() { String::new() } else { self.advice(name) };
            format!("defaults file {name:?} {problem}{advice}")
        })
    }

    fn advice(&self, name: &str) -> String {
        let names = crate::scan::script_names(&self.defaults).unwrap_or_default();
        let names: Vec<&str> = names.iter().map(|name| name.trim_end_matches(".js")).collect();
        let bare = name.trim_end_matches(".js");
        match crate::closest(bare, names.iter().copied()) {
            Some(close) if close != name => format!("; did you mean {close:?}?"),
            _ if names.is_empty() => "; the defaults folder has no files".to_owned(),
            _ => format!("; the defaults folder has {}", names.join(", ")),
        }
    }
}

/// The file of the defaults folder that a name stands for: that of the name itself for a text, else a script without its `.js`.
pub(crate) fn defaults_name(name: &str) -> String {
    if is_text(name) { name.to_owned() } else { format!("{name}.js") }
}

/// Whether a name is that of a text, which no script is.
pub(crate) fn is_text(name: &str) -> bool {
    name.ends_with(".txt")
}
