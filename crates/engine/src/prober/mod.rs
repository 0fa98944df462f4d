//! Probes of the outside: few requests answer all slots that wait for one file system.
//!
//! Questions are grouped by endpoint, and each endpoint is asked separately: a slow or dead one delays the slots that
//! wait for it, and nothing else. The cost and the duration of requests are limited by [`Storage`]; the prober ensures
//! that each question gets an answer, if only that it could not be asked.

mod conditions;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kelos_core::Input;
use kelos_model::probe::{Conditions, Verdict};
use kelos_model::{Probe, ProbeAnswer};
use kelos_storage::{Entry, FileSystem, Kind, Place, Storage, StorageError};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::executor::Reports;
use crate::job::Functions;
use conditions::looks_within;

pub use conditions::{Judgement, judge};
use walk::Fill;

/// Calls of script functions under way at a time.
const CALLS_AT_A_TIME: usize = 16;

/// The time limit for a script function.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers probes. Cheap to clone.
#[derive(Clone)]
pub struct Prober {
    runtime: Handle,
    clock: Clock,
    functions: Arc<dyn Functions>,
    storage: Storage,
    places: Arc<Semaphore>,
    fills: Arc<Mutex<BTreeMap<String, Arc<Fill>>>>,
}

/// A question about a path.
struct PathQuestion {
    probe: Probe,
    place: Place,
    conditions: Conditions,
}

impl Prober {
    /// A prober that works on a runtime, and checks paths through a storage.
    #[must_use]
    pub fn new(runtime: Handle, clock: Clock, functions: Arc<dyn Functions>, storage: Storage) -> Self {
        let places = Arc::new(Semaphore::new(CALLS_AT_A_TIME));
        Self { runtime, clock, functions, storage, places, fills: Arc::default() }
    }

    /// Asks these questions; each gets an answer, if only that it could not be asked.
    pub fn ask(&self, probes: Vec<Probe>, reports: &Reports) {
        let mut endpoints: BTreeMap<String, Vec<PathQuestion>> = BTreeMap::new();
        for probe in probes {
            let Probe::Path { uri, conditions } = &probe else {
                self.call(probe, reports);
                continue;
            };
            match self.storage.place(uri) {
                Ok(place) => {
                    let asked = PathQuestion { conditions: conditions.clone(), probe, place };
                    endpoints.entry(asked.place.endpoint.clone()).or_default().push(asked);
                }
                Err(error) => reports.deliver(self.answer(probe, failed(&error))),
            }
        }
        for (endpoint, asked) in endpoints {
            self.look(&endpoint, asked, reports);
        }
    }

    /// Checks the paths of one endpoint.
    fn look(&self, endpoint: &str, asked: Vec<PathQuestion>, reports: &Reports) {
        let (prober, reports, fill) = (self.clone(), reports.clone(), self.fill(endpoint));
        self.runtime.spawn(async move {
            let Some(files) = asked.first().map(|one| one.place.files.clone()) else { return };
            let (paths, of_path) = distinct_paths(&asked);
            for (index, found) in walk::look(&*files, &fill, &paths).await {
                for one in of_path.get(index).into_iter().flatten().filter_map(|one| asked.get(*one)) {
                    let judgement = prober.judge(one, &found, &*files).await;
                    reports.deliver(prober.answer(one.probe.clone(), judgement));
                }
            }
        });
    }

    async fn judge(
        &self,
        asked: &PathQuestion,
        found: &Result<Option<Entry>, StorageError>,
        files: &dyn FileSystem,
    ) -> Judgement {
        let (conditions, path) = (&asked.conditions, &asked.place.path);
        let found = match found {
            Ok(found) => found.as_ref(),
            Err(error) => return failed(error),
        };
        let is_folder = found.is_some_and(|entry| entry.kind == Kind::Folder);
        let within = if is_folder && looks_within(conditions) { files.list(path).await } else { Ok(None) };
        match within {
            Ok(within) => judge(conditions, found, &within.unwrap_or_default(), (self.clock)()),
            Err(error) => failed(&error),
        }
    }

    fn fill(&self, endpoint: &str) -> Arc<Fill> {
        let mut fills = self.fills.lock().unwrap_or_else(PoisonError::into_inner);
        fills.entry(endpoint.to_owned()).or_default().clone()
    }

    fn call(&self, probe: Probe, reports: &Reports) {
        let Probe::Function { function, workflow, key } = probe.clone() else { return };
        let (prober, reports) = (self.clone(), reports.clone());
        self.runtime.spawn(async move {
            let functions = prober.functions.clone();
            let said = prober.within_patience(move || functions.ask(&function, &workflow, &key)).await;
            let judgement = match said.and_then(|said| said) {
                Ok(verdict) => (verdict, String::new()),
                Err(reason) => (Verdict::Failed, reason),
            };
            reports.deliver(prober.answer(probe, judgement));
        });
    }

    /// Makes a blocking call on a thread of its own; one that hangs keeps its place until it returns.
    async fn within_patience<T: Send + 'static>(&self, call: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
        let place = tokio::time::timeout(PATIENCE, self.places.clone().acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            return Err(format!("no place to call it within {} s: earlier calls hang", PATIENCE.as_secs()));
        };
        let work = tokio::task::spawn_blocking(move || {
            let _place = place;
            call()
        });
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(Ok(said)) => Ok(said),
            Ok(Err(_)) => Err("the call ended in a panic".to_owned()),
            Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
        }
    }

    fn answer(&self, probe: Probe, (verdict, detail): Judgement) -> Input {
        let at: Timestamp = (self.clock)();
        Input::ProbeAnswered { probe, answer: ProbeAnswer { verdict, detail, at } }
    }
}

/// Checks at once whether something exists at a URI, for scripts that need to know while they are loaded. Blocks, so it
/// must not be called on a thread of the runtime.
///
/// # Errors
/// A message, when it can't be checked.
pub fn is_there(storage: &Storage, runtime: &Handle, uri: &str) -> Result<bool, String> {
    let look = || -> Result<bool, StorageError> {
        let place = storage.place(uri)?;
        Ok(runtime.block_on(place.files.stat(&place.path))?.is_some())
    };
    look().map_err(|error| format!("failed to {error}"))
}

fn failed(error: &StorageError) -> Judgement {
    (Verdict::Failed, format!("failed to {error}"))
}

/// The paths that are asked about, each once, and who asks about it.
fn distinct_paths(asked: &[PathQuestion]) -> (Vec<String>, Vec<Vec<usize>>) {
    let paths: BTreeSet<&str> = asked.iter().map(|one| one.place.path.as_str()).collect();
    let paths: Vec<String> = paths.into_iter().map(str::to_owned).collect();
    let mut of_path = vec![Vec::new(); paths.len()];
    for (index, one) in asked.iter().enumerate() {
        if let Some(askers) = paths.binary_search(&one.place.path).ok().and_then(|at| of_path.get_mut(at)) {
            askers.push(index);
        }
    }
    (paths, of_path)
}

#[cfg(test)]
mod tests;
