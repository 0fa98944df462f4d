//! Executors whose jobs become jobs of another one: what they add is a reading of settings.

use std::sync::Arc;

use kelos_engine::executor::{Executor, Reports, Start};
use kelos_model::run::Report;
use kelos_model::template::KeyValues;
use kelos_model::{Outcome, RunId};
use serde_json::{Map, Value};

use crate::options::{MAX_RETRY, WATCH, option_names, option_value};

type Translate = Arc<dyn Fn(&Start) -> Result<Map<String, Value>, String> + Send + Sync>;

/// Hands jobs on to another executor, with settings that it understands.
#[derive(Clone)]
pub(super) struct TranslatingExecutor<E> {
    inner: E,
    translate: Translate,
}

impl<E> TranslatingExecutor<E> {
    /// `translate` converts the settings for `inner`, or returns the reason for which a job can't be run.
    pub(super) fn new(
        inner: E,
        translate: impl Fn(&Start) -> Result<Map<String, Value>, String> + Send + Sync + 'static,
    ) -> TranslatingExecutor<E> {
        TranslatingExecutor { inner, translate: Arc::new(translate) }
    }
}

impl<E: Executor> Executor for TranslatingExecutor<E> {
    fn start(&self, mut start: Start, reports: Reports) {
        match (self.translate)(&start) {
            Ok(settings) => {
                (start.settings, start.properties) = (settings, Map::new());
                self.inner.start(start, reports);
            }
            Err(reason) => reports.run(&start.run, Report::Ended { outcome: Outcome::refused(reason) }),
        }
    }

    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        self.inner.check(run, external_id, reports);
    }

    fn cancel(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        self.inner.cancel(run, external_id, reports);
    }

    fn note(&self, run: &RunId) -> Option<String> {
        self.inner.note(run)
    }
}

/// The values of the placeholders `{name}` in a job.
pub(super) struct JobValues(Vec<(String, String)>);

impl JobValues {
    /// Those of a run: of its key, `app_name` and `job_id`, and the options of Stolos's runner.
    pub(super) fn of(start: &Start) -> JobValues {
        let slot = &start.run.slot;
        let values = start.given.values(&start.workflow, &slot.key);
        let named = values.named().into_iter().map(|(name, value)| (name.into_owned(), value));
        let always = [("app_name".to_owned(), slot.workflow.to_string()), ("job_id".to_owned(), slot.key.short())];
        JobValues(named.chain(always).chain(options(start)).collect())
    }

    #[cfg(test)]
    pub(super) fn from_pairs(all: &[(&str, &str)]) -> JobValues {
        JobValues(all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}

/// The options of Stolos's runner: those of the app, or else the variables of this process.
fn options(start: &Start) -> impl Iterator<Item = (String, String)> {
    let attempts = start.workflow.retry.count.saturating_add(1).to_string();
    let seconds = start.settings.get("timeoutSeconds").map(ToString::to_string);
    option_names().filter_map(move |name| {
        let value = match name {
            MAX_RETRY => Some(attempts.clone()),
            WATCH if seconds.is_some() => seconds.clone(),
            _ => option_value(name, |variable| std::env::var(variable).ok()),
        };
        Some((name.to_owned(), value?))
    })
}

/// The identifiers of a job as programs read them: those of integer kind as numbers.
pub(super) fn identifiers(start: &Start) -> Map<String, Value> {
    use kelos_model::jobs::Kind;
    let values = KeyValues::of(&start.workflow.keys, &start.subject());
    let kinds = start.workflow.keys.jobs().map(|jobs| &jobs.identifiers);
    let typed = |name: &str, value: &str| match kinds.and_then(|kinds| kinds.get(name)) {
        Some(Kind::Integer { .. }) => value.parse::<i64>().map_or_else(|_| value.into(), Value::from),
        _ => Value::from(value),
    };
    values.identifiers().iter().map(|(name, value)| (name.to_string(), typed(name, value))).collect()
}
