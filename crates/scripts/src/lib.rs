//! A folder of scripts that feeds an engine: loaded at the start, and again whenever a file changes.

mod missed;
mod registers;
mod tell;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use kelos_engine::job::Functions;
use kelos_engine::{Definitions, Handle, Project, Status};
use kelos_model::function::FunctionRef;
use kelos_model::jobs::{NamedJobs, Relation};
use kelos_model::probe::Verdict;
use kelos_model::secret::AllowList;
use kelos_model::workflow::{PastSlots, Provenance, WorkflowRow};
use kelos_model::{Actor, SlotKey, Workflow, WorkflowId};
use kelos_sandbox::apps::{AppFormat, AppsSource};
use kelos_sandbox::{Folders, Host, Limits, LoadResult, Problem, Scripts};
use kelos_store::{Queries, StoreError};
use serde_json::{Map, Value};

use missed::{MISSED, MissingFiles};
use registers::{Consents, StoredRegisters};
use tell::FolderWatch;

/// The time after a change during which files are read again: a modification time that is younger proves nothing.
const SETTLES: Duration = Duration::from_secs(5);

/// The interval of checks that a watched folder is still the same, and the engine alive.
const GLANCE: Duration = Duration::from_secs(10);

/// The interval of reading the files although no change was reported.
const SELDOM: Duration = Duration::from_secs(300);

/// A file that is being written gets so long to be finished.
const WRITTEN: Duration = Duration::from_millis(100);

/// Scripts as a source of definitions and functions. Cheap to clone.
#[derive(Clone)]
pub struct ScriptFolder {
    scripts: Scripts,
    folders: Folders,
    /// The folder of the apps beside the scripts.
    beside: Option<PathBuf>,
    /// Whether changes of those apps have to be polled for.
    polls: bool,
    /// Whether a script asked for a register or a path: what it defines may then change without its file.
    asked: Arc<AtomicBool>,
    /// The registers that projects share with scripts of others.
    consents: Arc<Consents>,
    shown: Arc<RwLock<Vec<Problem>>>,
    last: Arc<Mutex<Option<Definitions>>>,
    /// The actors of the deployments that are under way, by project.
    deployers: Arc<Mutex<BTreeMap<String, Actor>>>,
    /// Whether deployment updates schedules where a project does not say.
    update_schedules: bool,
    described: Option<Arc<AppsState>>,
    serves: Option<UriCheck>,
    /// The secrets and users that projects may use.
    allowed: AllowList,
    /// How far back from now slots are planned.
    window: SignedDuration,
    /// The past slots that the definitions opened which were first sent to the engine.
    past: Arc<RwLock<PastSlots>>,
}

/// The planning window where nothing is said.
const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The reason why the file system of a URI can't be served, if so.
type UriCheck = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// The source of the apps beside the scripts, and their number at the latest load: their file may be deleted.
struct AppsState {
    apps: AppsSource,
    count: AtomicUsize,
}

impl AppsState {
    /// Counts the apps of a load. Returns a warning if all were removed together with the file that described them.
    fn count(&self, loaded: &LoadResult) -> Option<String> {
        let name = self.apps.name();
        let now = loaded.workflows.iter().filter(|workflow| workflow.source.file == name).count();
        let before = self.count.swap(now, Ordering::Relaxed);
        let is_gone = now == 0 && before > 0 && !self.apps.is_there();
        is_gone.then(|| match before {
            1 => format!("{name} is gone: 1 workflow of it is not defined any more"),
            _ => format!("{name} is gone: {before} workflows of it are not defined any more"),
        })
    }
}

impl ScriptFolder {
    /// Opens folders of scripts, and the apps beside them, which `format` parses; nothing is evaluated yet. For files
    /// that are broken now, the workflows in the store are used. `look` checks whether something exists at a URI.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn open(
        folders: Folders,
        format: Arc<dyn AppFormat>,
        apps: Option<AppsSource>,
        limits: Limits,
        reader: Arc<dyn Queries>,
        look: impl Fn(&str) -> Result<bool, String> + Send + Sync + 'static,
    ) -> Result<ScriptFolder, StoreError> {
        let remembered = reader.workflows(None)?;
        let asked = Arc::new(AtomicBool::new(false));
        let looked = asked.clone();
        let is_there = move |uri: &str| {
            looked.store(true, Ordering::Relaxed);
            look(uri)
        };
        let consents = Consents::new(reader.clone());
        let registers = StoredRegisters::new(reader, asked.clone(), consents.clone());
        let beside = apps.as_ref().map(|apps| apps.folder().to_owned());
        let polls = apps.as_ref().is_some_and(|apps| !apps.is_of_files());
        let host = Host::new(Arc::new(registers), is_there).with_format(format).with_apps(apps.clone());
        let scripts = Scripts::start(folders.clone(), limits, host).map_err(|error| StoreError::Medium {
            doing: "start a thread for scripts".to_owned(),
            cause: error.to_string(),
        })?;
        let mut files: BTreeMap<String, Vec<Arc<Workflow>>> = BTreeMap::new();
        let of_files = |row: &WorkflowRow| row.present && row.definition.provenance() == Provenance::File;
        for row in remembered.into_iter().filter(of_files) {
            files.entry(row.definition.source.file.clone()).or_default().push(row.definition);
        }
        let described = apps.map(|apps| {
            let count = files.get(apps.name()).map_or(0, Vec::len);
            Arc::new(AppsState { apps, count: AtomicUsize::new(count) })
        });
        for (file, workflows) in files {
            scripts.remember(&file, workflows);
        }
        let (shown, last, deployers, past) = Default::default();
        Ok(ScriptFolder {
            scripts,
            folders,
            beside,
            polls,
            asked,
            consents,
            shown,
            last,
            deployers,
            update_schedules: true,
            described,
            serves: None,
            allowed: AllowList::default(),
            window: WEEK,
            past,
        })
    }

    /// Reports paths of triggers that `serves` gives a reason against. It must not wait for a server.
    #[must_use]
    pub fn serving(self, serves: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static) -> ScriptFolder {
        ScriptFolder { serves: Some(Arc::new(serves)), ..self }
    }

    /// Reports jobs that name secrets, or users of the system, that are not in this list.
    #[must_use]
    pub fn allowing(self, allowed: AllowList) -> ScriptFolder {
        ScriptFolder { allowed, ..self }
    }

    /// Keeps projects apart: a script reads registers of other projects only with their consent.
    #[must_use]
    pub fn isolating(self, isolated: bool) -> ScriptFolder {
        if isolated {
            self.consents.isolate();
        }
        self
    }

    /// Counts past slots by another planning window.
    #[must_use]
    pub fn planning(self, window: SignedDuration) -> ScriptFolder {
        ScriptFolder { window, ..self }
    }

    /// Sets whether deployment updates schedules, for projects that don't say so themselves.
    #[must_use]
    pub fn updating_schedules(self, update_schedules: bool) -> ScriptFolder {
        ScriptFolder { update_schedules, ..self }
    }

    /// Loads the files that changed, and sends the definitions to the engine if they differ from before. Blocks.
    pub fn reload(&self, handle: &Handle) -> LoadResult {
        self.reload_unless(handle, |_, _| false)
    }

    /// The same, but sends nothing if `waits` decides, by the definitions before and now, that it is too early.
    fn reload_unless(
        &self,
        handle: &Handle,
        mut waits: impl FnMut(Option<&Definitions>, &Definitions) -> bool,
    ) -> LoadResult {
        // One at a time, so that an older load never overwrites a newer one.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        self.consents.outdate();
        let loaded = self.scripts.load();
        let problems = self.all_problems(&loaded);
        let before =
            std::mem::replace(&mut *self.shown.write().unwrap_or_else(PoisonError::into_inner), problems.clone());
        tell_news(last.is_none(), &before, &problems);
        if let Some(gone) = self.described.as_ref().and_then(|described| described.count(&loaded)) {
            tracing::warn!("{gone}");
        }
        let definitions = self.definitions(&loaded);
        let same = last.as_ref().is_some_and(|last| are_same(last, &definitions));
        let is_early = waits(last.as_ref(), &definitions);
        if !same && !is_early {
            self.tell_past_slots(last.is_none(), &definitions, handle);
            if handle.deploy(definitions.clone()).is_ok() {
                *last = Some(definitions);
            }
        }
        loaded
    }

    /// Counts the past slots that definitions will open or hold back, and logs them. Those of the first load have a log target of their own.
    fn tell_past_slots(&self, first: bool, definitions: &Definitions, handle: &Handle) {
        let Ok(rows) = handle.reader().workflows(None) else { return };
        let past = PastSlots::of(&definitions.all, &rows, self.window, handle.now());
        for line in past.lines() {
            match first {
                true => tracing::info!(target: "kelos::first_load::past", "{line}"),
                false => tracing::info!("{line}"),
            }
        }
        if first {
            *self.past.write().unwrap_or_else(PoisonError::into_inner) = past;
        }
    }

    /// The past slots that the first load opened.
    #[must_use]
    pub fn past_slots(&self) -> PastSlots {
        self.past.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn all_problems(&self, loaded: &LoadResult) -> Vec<Problem> {
        let mut problems = [&loaded.problems[..], &kelos_sandbox::warnings(loaded)].concat();
        problems.extend(self.serves.iter().flat_map(|serves| kelos_sandbox::unserved(loaded, &**serves)));
        problems.extend(kelos_sandbox::not_allowed(loaded, &self.allowed));
        problems
    }

    fn definitions(&self, loaded: &LoadResult) -> Definitions {
        let project = |one: &kelos_sandbox::Project| Project {
            digest: one.is_whole.then(|| one.digest.clone()),
            update_schedules: one.update_schedules.unwrap_or(self.update_schedules),
        };
        Definitions {
            provenance: Provenance::File,
            all: loaded.workflows.clone(),
            sources: loaded.sources.clone(),
            projects: loaded.projects.iter().map(|(name, one)| (name.clone(), project(one))).collect(),
            deployers: self.deployers.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            is_whole: !loaded.problems.iter().any(|problem| problem.is_error() && !self.is_of_one_app(problem)),
        }
    }

    /// Whether a problem is that of an app which is described beside the scripts: everything else is known.
    fn is_of_one_app(&self, problem: &Problem) -> bool {
        let of_apps = self.described.as_ref().is_some_and(|described| described.apps.name() == problem.file);
        of_apps && problem.workflow.is_some()
    }

    /// Sets the actor who deploys a project from now on, or ends the deployment: what is read of it meanwhile is
    /// recorded as theirs.
    pub fn deployed_by(&self, project: &str, by: Option<Actor>) {
        let mut deployers = self.deployers.lock().unwrap_or_else(PoisonError::into_inner);
        match by {
            Some(by) => deployers.insert(project.to_owned(), by),
            None => deployers.remove(project),
        };
    }

    /// The folders of the scripts.
    #[must_use]
    pub fn folders(&self) -> Folders {
        self.folders.clone()
    }

    /// Reloads on a thread of its own until the engine has ended: periodically, or, where the system reports changes
    /// and the scripts depend on nothing else, on each change. A file that disappears is waited for a while. Before files are read,
    /// `before` is called.
    ///
    /// # Errors
    /// When the thread can't be started.
    pub fn watch(&self, handle: Handle, every: Duration, before: impl Fn() + Send + 'static) -> std::io::Result<()> {
        let folder = self.clone();
        let watch = move || {
            let mut told = FolderWatch::listen(&folder.folders, folder.beside.as_deref());
            let mut settled_at = Instant::now() + SETTLES;
            let mut missed = MissingFiles::default();
            while handle.status() != Status::Stopped {
                folder.asked.store(false, Ordering::Relaxed);
                before();
                let loaded = folder.reload_unless(&handle, |before, now| missed.waits(before, now, Instant::now()));
                let rests = loaded.evaluated == 0
                    && !missed.any()
                    && !folder.polls
                    && !loaded.problems.iter().any(Problem::is_error)
                    && !folder.asked.load(Ordering::Relaxed);
                let changed = match &told {
                    Some(told) if rests && Instant::now() >= settled_at => wait_for_change(told, &handle),
                    _ => {
                        std::thread::park_timeout(if missed.any() { every.min(MISSED) } else { every });
                        told.as_ref().is_some_and(|told| told.changed_within(Duration::ZERO))
                    }
                };
                if changed {
                    settled_at = Instant::now() + SETTLES;
                    // Before the files are read, so that no change is missed.
                    told = FolderWatch::listen(&folder.folders, folder.beside.as_deref());
                }
            }
        };
        std::thread::Builder::new().name("kelos-scripts".to_owned()).spawn(watch).map(|_| ())
    }

    /// The functions that stayed in the scripts.
    #[must_use]
    pub fn functions(&self) -> ScriptFunctions {
        ScriptFunctions(self.scripts.clone())
    }

    /// The problems of the scripts, as of the latest load.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        self.shown.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether the engine would learn nothing. A definition that did not change is the very same one.
fn are_same(a: &Definitions, b: &Definitions) -> bool {
    let same_workflows = a.all.len() == b.all.len() && a.all.iter().zip(&b.all).all(|(a, b)| Arc::ptr_eq(a, b));
    same_workflows && a.projects == b.projects && a.is_whole == b.is_whole
}

/// Logs new problems, and that the last one was solved. Those of the first load have log targets of their own, so that
/// a program that shows them otherwise, or doesn't need warnings, can filter them.
fn tell_news(first: bool, before: &[Problem], now: &[Problem]) {
    for problem in now.iter().filter(|problem| !before.contains(problem)) {
        let kept = if problem.kept_last_good { "; its last good version stays in force" } else { "" };
        match (first, problem.is_error()) {
            (true, true) => tracing::warn!(target: "kelos::first_load", "{problem}{kept}"),
            (true, false) => tracing::warn!(target: "kelos::first_load::warnings", "{problem}{kept}"),
            (false, _) => tracing::warn!("{problem}{kept}"),
        }
    }
    if now.is_empty() && !before.is_empty() {
        tracing::info!("all scripts are good again");
    }
}

/// Waits for a change, for the time of the next check without one, or for the engine's end.
fn wait_for_change(told: &FolderWatch, handle: &Handle) -> bool {
    let look_at = Instant::now() + SELDOM;
    while Instant::now() < look_at && handle.status() != Status::Stopped {
        if told.changed_within(GLANCE) {
            std::thread::sleep(WRITTEN);
            return true;
        }
    }
    false
}

/// The functions that stayed in loaded scripts, as the engine calls them.
#[derive(Debug, Clone)]
pub struct ScriptFunctions(pub Scripts);

impl Functions for ScriptFunctions {
    fn properties(
        &self,
        function: &FunctionRef,
        workflow: &WorkflowId,
        key: &SlotKey,
    ) -> Result<Map<String, Value>, String> {
        self.0.properties(function, workflow, key).map_err(|error| error.to_string())
    }

    fn ask(&self, function: &FunctionRef, workflow: &WorkflowId, key: &SlotKey) -> Result<Verdict, String> {
        self.0.ask(function, workflow, key).map_err(|error| error.to_string())
    }

    fn related(&self, relation: &Relation) -> Result<NamedJobs, String> {
        self.0.related(relation).map_err(|error| error.to_string())
    }

    fn normal(&self, function: &FunctionRef, text: &str) -> Result<String, String> {
        self.0.normal(function, text).map_err(|error| error.to_string())
    }
}
