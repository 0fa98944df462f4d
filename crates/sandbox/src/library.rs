//! The state of each file: its text, its latest problems, its last good version.

use std::collections::{BTreeMap, btree_map};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use kelos_model::jobs::Fault;
use kelos_model::workflow::Source;
use kelos_model::{Workflow, WorkflowId};

use crate::apps::AppsFile;
use crate::code::{ProblemCode, fault_code};
use crate::desk::{KeptFunction, Uses};
use crate::digest::digest;
use crate::host::Host;
use crate::keyed::{KeyedSet, Misfit};
use crate::limits::{Folders, Limits};
use crate::load::{LoadResult, RegisterRead};
use crate::problem::Problem;
use crate::project::{Project, Projects, broken};
use crate::realm::EvaluationResult;
use crate::recipe::{Recipe, Role};
use crate::scan::{self, Stamp};
use crate::session::{Session, defaults_name};
use crate::worker::Worker;

/// A version of a file that was evaluated without an error, or was one before a restart.
pub(crate) struct GoodVersion {
    /// None where it is remembered from before a restart: its functions can't be called.
    pub(crate) recipe: Option<Arc<Recipe>>,
    pub(crate) kept: Vec<KeptFunction>,
    pub(crate) workflows: Vec<Arc<Workflow>>,
    /// The project that it is, with its name; none where it is remembered.
    project: Option<(String, Project)>,
}

/// The good version of each file.
pub(crate) type GoodVersions = BTreeMap<String, Arc<GoodVersion>>;

/// One file of the folder.
#[derive(Default)]
struct Entry {
    stamp: Option<Stamp>,
    /// The latest text that was evaluated, and with what.
    recipe: Option<Arc<Recipe>>,
    uses: Uses,
    /// The problems of the latest text.
    problems: Vec<Problem>,
    failed: bool,
    /// The workflows that the latest text defines, if it failed.
    refused: Vec<Arc<Workflow>>,
    /// When a file that was stopped is tried again.
    retry_at: Option<Instant>,
    good: Option<Arc<GoodVersion>>,
}

/// All files.
pub(crate) struct Library {
    folders: Folders,
    limits: Limits,
    host: Host,
    entries: BTreeMap<String, Entry>,
    apps: Option<AppsFile>,
    keyed: KeyedSet,
    recipes: u64,
}

impl Library {
    pub(crate) fn new(folders: Folders, limits: Limits, host: Host) -> Library {
        let apps = host.format.clone().zip(host.apps.clone()).map(|(format, source)| AppsFile::new(format, source));
        Library { folders, limits, host, entries: BTreeMap::new(), apps, keyed: KeyedSet::default(), recipes: 0 }
    }

    pub(crate) fn remember(&mut self, file: &str, workflows: Vec<Arc<Workflow>>) {
        self.keyed.remember(&workflows);
        if let Some(apps) = self.apps.as_mut().filter(|apps| apps.source.name() == file) {
            apps.workflows = workflows;
            return;
        }
        let entry = self.entries.entry(file.to_owned()).or_default();
        if entry.good.is_none() {
            entry.good = Some(Arc::new(GoodVersion { recipe: None, kept: Vec::new(), workflows, project: None }));
        }
    }

    pub(crate) fn published(&self) -> GoodVersions {
        self.entries.iter().filter_map(|(name, entry)| Some((name.clone(), entry.good.clone()?))).collect()
    }

    /// Reads the folder and evaluates the files that changed.
    pub(crate) fn load(&mut self, workers: &[Worker]) -> LoadResult {
        let session = Session::new(self.folders.defaults.clone(), self.limits.file_bytes, self.host.clone());
        let session = Arc::new(session);
        let mut loaded = LoadResult::default();
        let names = match scan::script_names(&self.folders.workflows) {
            Ok(names) => names,
            Err(error) => {
                loaded.problems.push(self.no_folder(&error));
                self.entries.keys().cloned().collect()
            }
        };
        if loaded.problems.is_empty() {
            self.entries.retain(|name, _| names.binary_search(name).is_ok());
        }
        let due: Vec<Arc<Recipe>> = match loaded.problems.is_empty() {
            true => names.iter().filter_map(|name| self.look(name, &session)).collect(),
            false => Vec::new(),
        };
        loaded.evaluated = due.len();
        loaded.unchanged = names.len() - due.len();
        for (number, evaluated) in evaluate(&due, workers) {
            self.settle(&due[number], evaluated);
        }
        if let Some(evaluated) = self.apps.as_mut().and_then(AppsFile::load) {
            loaded.evaluated += usize::from(evaluated);
            loaded.unchanged += usize::from(!evaluated);
        }
        self.merge(&mut loaded);
        loaded
    }

    fn no_folder(&self, error: &std::io::Error) -> Problem {
        let folder = self.folders.workflows.display().to_string();
        let mut problem = Problem::error(
            &folder,
            ProblemCode::FolderUnreadable,
            format!("the folder of workflows can't be read: {error}"),
        );
        problem.kept_last_good = self.entries.values().any(|entry| entry.good.is_some());
        problem
    }

    /// The recipe of a file that has to be evaluated.
    fn look(&mut self, name: &str, session: &Arc<Session>) -> Option<Arc<Recipe>> {
        let path: PathBuf = self.folders.workflows.join(name);
        let entry = self.entries.entry(name.to_owned()).or_default();
        let stamp = Stamp::of(&path).ok();
        let same = matches!((&stamp, &entry.stamp), (Some(now), Some(before)) if now.same_content(before));
        let known = entry.recipe.clone();
        let text = match &known {
            Some(recipe) if same => recipe.text.clone(),
            _ => match scan::script_text(&self.folders.workflows, name, self.limits.file_bytes) {
                Ok(text) => text,
                Err(problem) => {
                    entry.fail(vec![Problem::error(name, ProblemCode::FileUnreadable, format!("the file {problem}"))]);
                    entry.recipe = None;
                    entry.stamp = None;
                    return None;
                }
            },
        };
        entry.stamp = stamp;
        if known.is_some_and(|known| known.text == text && entry.is_current(&known.session, session)) {
            return None;
        }
        self.recipes += 1;
        Some(Arc::new(Recipe {
            number: self.recipes,
            file: name.into(),
            text,
            session: session.clone(),
            role: Role::Definitions,
        }))
    }

    /// Takes in what came of evaluating a file.
    fn settle(&mut self, recipe: &Arc<Recipe>, evaluated: EvaluationResult) {
        let wait = Duration::from_millis(self.limits.retry_stopped_millis);
        let Some(entry) = self.entries.get_mut(&*recipe.file) else {
            return;
        };
        entry.recipe = Some(recipe.clone());
        entry.uses = evaluated.uses;
        entry.retry_at = evaluated.timed_out.then(|| Instant::now() + wait);
        if evaluated.failed {
            entry.fail(evaluated.problems);
            entry.refused = evaluated.workflows.into_iter().map(Arc::new).collect();
            return;
        }
        entry.failed = false;
        entry.refused.clear();
        entry.problems = evaluated.problems;
        let before = entry.good.take();
        let before = before.as_ref().map_or(&[][..], |good| &good.workflows);
        let workflows = evaluated.workflows.into_iter().map(|workflow| same_or_new(before, workflow)).collect();
        let project = Project {
            digest: digest_of(recipe, &entry.uses),
            update_schedules: evaluated.update_schedules,
            is_whole: true,
        };
        let project = Some((evaluated.project, project));
        entry.good =
            Some(Arc::new(GoodVersion { recipe: Some(recipe.clone()), kept: evaluated.kept, workflows, project }));
    }

    fn merge(&mut self, loaded: &mut LoadResult) {
        let mut by_id: BTreeMap<WorkflowId, Arc<Workflow>> = BTreeMap::new();
        for (name, entry) in &self.entries {
            if let Some(recipe) = &entry.recipe {
                loaded.sources.insert(name.clone(), recipe.text.clone());
                for (defaults, text) in recipe.session.read_texts() {
                    if entry.uses.defaults.contains(&defaults) {
                        loaded.sources.insert(format!("defaults/{}", defaults_name(&defaults)), text);
                    }
                }
            }
            loaded.problems.extend(entry.problems.iter().cloned());
            loaded.refused.extend(entry.refused.iter().cloned());
            loaded.reads.extend(entry.uses.registers.iter().map(|ask| RegisterRead {
                file: name.clone(),
                project: ask.project.as_str().into(),
                bucket: ask.bucket.as_str().into(),
            }));
            for workflow in entry.good.iter().flat_map(|good| &good.workflows) {
                let text = entry.recipe.as_ref().map(|recipe| &recipe.text);
                loaded.problems.extend(add(&mut by_id, workflow, text));
            }
        }
        if let Some(apps) = &self.apps {
            let text = apps.text();
            loaded.sources.extend(text.map(|text| (apps.source.name().to_owned(), text.clone())));
            loaded.problems.extend(apps.problems.iter().cloned());
            loaded.problems.extend(apps.workflows.iter().filter_map(|workflow| add(&mut by_id, workflow, text)));
        }
        loaded.projects = self.projects();
        self.fit(&mut by_id, loaded);
        loaded.workflows = by_id.into_values().collect();
    }

    /// The units of deployment that the files are.
    fn projects(&self) -> BTreeMap<String, Project> {
        let mut projects = Projects::default();
        for entry in self.entries.values() {
            let Some(good) = &entry.good else { continue };
            match &good.project {
                Some((name, project)) => {
                    projects.add(name, Project { is_whole: !entry.failed, ..project.clone() });
                }
                None => good.workflows.iter().for_each(|workflow| projects.add(&workflow.project, broken())),
            }
        }
        if let Some(apps) = &self.apps {
            let digest = apps.text().map(|text| digest(text)).unwrap_or_default();
            let project = Project { digest, update_schedules: None, is_whole: !apps.is_broken() };
            // All apps of a file are of one project.
            if let Some(first) = apps.workflows.first() {
                projects.add(&first.project, project);
            }
        }
        projects.all()
    }

    /// Fits workflows with job ids to each other, and reports those that don't fit.
    fn fit(&mut self, by_id: &mut BTreeMap<WorkflowId, Arc<Workflow>>, loaded: &mut LoadResult) {
        for Misfit { fault, source, kept_last_good } in self.keyed.settle(by_id) {
            let of_apps = self.apps.as_ref().filter(|apps| apps.source.name() == source.file);
            let problem = of_apps.and_then(|apps| apps.fault(fault));
            let problem = problem.unwrap_or_else(|| of_script(fault, source, loaded));
            loaded.problems.push(Problem { kept_last_good: *kept_last_good, ..problem });
        }
    }
}

/// Takes a workflow in; where there is one of that name already, that is the problem.
fn add(
    by_id: &mut BTreeMap<WorkflowId, Arc<Workflow>>,
    workflow: &Arc<Workflow>,
    text: Option<&Arc<str>>,
) -> Option<Problem> {
    match by_id.entry(workflow.id.clone()) {
        btree_map::Entry::Vacant(place) => {
            place.insert(workflow.clone());
            None
        }
        btree_map::Entry::Occupied(first) => Some(duplicate(first.get(), workflow, text)),
    }
}

/// A fault of a workflow that a script defines.
fn of_script(fault: &Fault, source: &Source, loaded: &LoadResult) -> Problem {
    let line = usize::try_from(source.line).unwrap_or(0).saturating_sub(1);
    let text = loaded.sources.get(&source.file).and_then(|text| text.lines().nth(line));
    Problem {
        line: source.line,
        column: u32::from(source.line > 0),
        workflow: Some(fault.workflow.clone()),
        source_line: text.map(str::to_owned),
        ..Problem::error(&source.file, fault_code(fault), fault.to_string())
    }
}

impl Entry {
    fn fail(&mut self, mut problems: Vec<Problem>) {
        for problem in problems.iter_mut().filter(|problem| problem.is_error()) {
            problem.kept_last_good = self.good.is_some();
        }
        self.problems = problems;
        self.failed = true;
        self.refused.clear();
    }

    /// Whether evaluating the same text again would yield the same.
    fn is_current(&self, before: &Session, now: &Session) -> bool {
        let retry = self.failed && self.retry_at.is_some_and(|at| Instant::now() >= at);
        let uses = &self.uses;
        !retry
            && !uses.looked
            && uses.defaults.iter().all(|name| before.defaults_file(name) == now.defaults_file(name))
            && uses.registers.iter().all(|ask| before.register(ask) == now.register(ask))
    }
}

/// A definition that did not change stays the very same.
fn same_or_new(before: &[Arc<Workflow>], workflow: Workflow) -> Arc<Workflow> {
    match before.iter().find(|old| ***old == workflow) {
        Some(old) => old.clone(),
        None => Arc::new(workflow),
    }
}

/// The digest of a version of a file: of its text, and of the defaults and registers that it used.
fn digest_of(recipe: &Recipe, uses: &Uses) -> String {
    let session = &recipe.session;
    let defaults = uses.defaults.iter().map(|name| session.defaults_file(name).map(|text| text.to_string()));
    let registers = uses.registers.iter().map(|ask| session.register(ask).map_err(|error| error.to_string()));
    let used: Vec<String> = defaults.chain(registers).map(|text| text.unwrap_or_else(|problem| problem)).collect();
    digest(&std::iter::once(&*recipe.text).chain(used.iter().map(String::as_str)).collect::<Vec<_>>().join("\0"))
}

fn duplicate(first: &Workflow, second: &Workflow, text: Option<&Arc<str>>) -> Problem {
    let (a, b) = (&first.source, &second.source);
    let message = format!(
        "Workflow with this ID already exists: {} is defined in {}:{} and in {}:{}; the first one is used",
        first.id, a.file, a.line, b.file, b.line
    );
    let line = usize::try_from(b.line).unwrap_or(0).saturating_sub(1);
    let text = text.and_then(|text| text.lines().nth(line));
    Problem {
        line: b.line,
        column: u32::from(b.line > 0),
        workflow: Some(second.id.clone()),
        source_line: text.map(str::to_owned),
        ..Problem::error(&b.file, ProblemCode::NameTaken, message)
    }
}

/// The worker of a file is always the same, because it keeps the file's world for calls.
pub(crate) fn worker_of<'a>(file: &str, workers: &'a [Worker]) -> Option<&'a Worker> {
    let sum = file.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
    workers.get(sum % workers.len().max(1))
}

/// Evaluates files on all workers. Each gets one at a time, so that calls need not wait for a whole load.
fn evaluate(due: &[Arc<Recipe>], workers: &[Worker]) -> Vec<(usize, EvaluationResult)> {
    let (reply, answers) = channel();
    let mut queues: Vec<std::collections::VecDeque<usize>> = vec![Default::default(); workers.len()];
    let place = |number: usize| {
        let worker = worker_of(&due[number].file, workers);
        worker.and_then(|worker| workers.iter().position(|one| std::ptr::eq(one, worker)))
    };
    for number in 0..due.len() {
        if let Some(place) = place(number) {
            queues[place].push_back(number);
        }
    }
    let mut open = 0;
    let mut next = |place: usize| match queues[place].pop_front() {
        Some(number) => usize::from(workers[place].evaluate(due[number].clone(), number, &reply)),
        None => 0,
    };
    for place in 0..workers.len() {
        open += next(place);
    }
    let mut done = Vec::with_capacity(due.len());
    while open > 0 {
        let Ok((number, evaluated)) = answers.recv() else {
            break;
        };
        open -= 1;
        if let Some(place) = place(number) {
            open += next(place);
        }
        done.push((number, evaluated));
    }
    done
}
