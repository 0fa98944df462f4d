//! Apps that are described beside the scripts, in a `tasks.json` or what is kept like one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kelos_model::jobs::Fault;
use kelos_model::{Workflow, WorkflowId};

use super::{AppFormat, Apps, Mistake, Position, Settings};
use crate::code::{ProblemCode, fault_code};
use crate::files;
use crate::problem::{Problem, Severity};

/// Longest text that describes apps.
const LONGEST: u64 = 64 << 20;

/// The most mistakes, and the most warnings, that are reported one by one.
const TOLD: usize = 100;

/// The file beside the apps that defines the kinds of identifiers.
const IDENTIFIERS: &str = "identifiers.json";

type Text = Arc<dyn Fn() -> Result<Option<Arc<str>>, String> + Send + Sync>;

/// A source of app descriptions: a file, or a text that something else keeps.
#[derive(Clone)]
pub struct AppsSource {
    /// Its name in problems.
    name: String,
    text: Text,
    /// The folder of `identifiers.json` and of plugins with more kinds of jobs.
    folder: PathBuf,
    template: Option<String>,
    /// Whether changes of its folder are all that has to be watched.
    of_files: bool,
}

impl AppsSource {
    /// A file; where it is not there are no apps. Apps without a template of job ids have `template`.
    #[must_use]
    pub fn of_file(path: &Path, template: Option<String>) -> AppsSource {
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let path = path.to_owned();
        let text = move || optional(&path);
        AppsSource { name, text: Arc::new(text), folder, template, of_files: true }
    }

    /// A text that something else keeps: `text` returns it, none if there are no apps, or an error message.
    pub fn of(
        name: &str,
        folder: &Path,
        template: Option<String>,
        text: impl Fn() -> Result<Option<Arc<str>>, String> + Send + Sync + 'static,
    ) -> AppsSource {
        let (name, folder) = (name.to_owned(), folder.to_owned());
        AppsSource { name, text: Arc::new(text), folder, template, of_files: false }
    }

    /// Its name in problems.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder whose files say more about its apps.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it changes only when something in its folder does.
    #[must_use]
    pub fn is_of_files(&self) -> bool {
        self.of_files
    }

    /// Whether there is anything.
    #[must_use]
    pub fn is_there(&self) -> bool {
        !matches!((self.text)(), Ok(None))
    }

    fn identifiers(&self) -> Result<Option<Arc<str>>, String> {
        optional(&self.folder.join(IDENTIFIERS))
    }
}

/// The text of a file that need not be there.
fn optional(path: &Path) -> Result<Option<Arc<str>>, String> {
    if !files::may_be_there(path) {
        return Ok(None);
    }
    files::read_text(path, LONGEST).map(Some).map_err(|why| format!("the file {why}"))
}

impl fmt::Debug for AppsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppsSource").field("name", &self.name).field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The texts that apps are read from.
#[derive(Clone, PartialEq, Eq)]
struct Texts {
    apps: Arc<str>,
    identifiers: Option<Arc<str>>,
}

/// Described apps, as they were last read.
pub(crate) struct AppsFile {
    format: Arc<dyn AppFormat>,
    pub(crate) source: AppsSource,
    texts: Option<Texts>,
    /// The problems of the latest texts.
    pub(crate) problems: Vec<Problem>,
    failed: bool,
    /// Whether some of the apps have a mistake: what is wrong may be a program that is not there yet.
    has_mistakes: bool,
    /// The apps of the last good version.
    pub(crate) workflows: Vec<Arc<Workflow>>,
    read: Apps,
}

impl AppsFile {
    pub(crate) fn new(format: Arc<dyn AppFormat>, source: AppsSource) -> AppsFile {
        AppsFile {
            format,
            source,
            texts: None,
            problems: Vec::new(),
            failed: false,
            has_mistakes: false,
            workflows: Vec::new(),
            read: Apps::default(),
        }
    }

    /// Whether what they say now is not what is in force.
    pub(crate) fn is_broken(&self) -> bool {
        self.failed
    }

    /// The text of the apps, where it could be read.
    pub(crate) fn text(&self) -> Option<&Arc<str>> {
        self.texts.as_ref().map(|texts| &texts.apps)
    }

    /// Reads the texts again if they changed. True if they had to be parsed, none if there are no apps.
    pub(crate) fn load(&mut self) -> Option<bool> {
        let (apps, identifiers) = match ((self.source.text)(), self.source.identifiers()) {
            (Ok(None), _) => {
                *self = AppsFile::new(self.format.clone(), self.source.clone());
                return None;
            }
            (Ok(Some(apps)), Ok(identifiers)) => (apps, identifiers),
            (Err(why), _) => {
                self.fail(vec![Problem::error(&self.source.name, ProblemCode::FileUnreadable, why)]);
                return Some(true);
            }
            (_, Err(why)) => {
                self.fail(vec![Problem::error(IDENTIFIERS, ProblemCode::FileUnreadable, why)]);
                return Some(true);
            }
        };
        let texts = Texts { apps, identifiers };
        if !self.failed && !self.has_mistakes && self.texts.as_ref() == Some(&texts) {
            return Some(false);
        }
        self.texts = Some(texts.clone());
        self.read(&texts);
        Some(true)
    }

    fn read(&mut self, texts: &Texts) {
        let settings = match Settings::new(self.source.template.as_deref(), texts.identifiers.as_deref()) {
            Ok(settings) => Settings { folder: Some(self.source.folder.clone()), ..settings },
            Err(error) => {
                return self.fail(vec![Problem::error(
                    IDENTIFIERS,
                    ProblemCode::BadIdentifiers,
                    format!("failed to {error}"),
                )]);
            }
        };
        match self.format.apps(&texts.apps, &self.source.name, &settings) {
            Err(mistakes) => {
                let told = mistakes.iter().take(TOLD).map(|mistake| self.problem(mistake));
                let more = self.more(mistakes.len(), "mistakes");
                self.fail(told.chain(more).collect());
            }
            Ok(mut apps) => {
                self.failed = false;
                self.has_mistakes = !apps.mistakes.is_empty();
                let read = std::mem::take(&mut apps.workflows);
                let kept = self.take(read);
                self.problems = self.mistakes(&apps, &kept);
                self.problems.extend(self.warnings(&apps));
                self.read = apps;
            }
        }
    }

    /// Takes apps in. One with a mistake stays as it was when it had none, where that is known; gives those.
    fn take(&mut self, read: Vec<Workflow>) -> BTreeSet<WorkflowId> {
        let mut known: BTreeMap<WorkflowId, Arc<Workflow>> =
            std::mem::take(&mut self.workflows).into_iter().map(|one| (one.id.clone(), one)).collect();
        let mut kept = BTreeSet::new();
        for workflow in read {
            let one = match known.remove(&workflow.id) {
                Some(old) if *old == workflow => old,
                Some(old) if has_mistake(&workflow) && !has_mistake(&old) => {
                    kept.insert(workflow.id.clone());
                    old
                }
                _ => Arc::new(workflow),
            };
            self.workflows.push(one);
        }
        kept
    }

    /// The mistakes in apps as problems, each with the app that contains it.
    fn mistakes(&self, apps: &Apps, kept: &BTreeSet<WorkflowId>) -> Vec<Problem> {
        let mistake = |mistake: &Mistake| {
            let workflow = apps.at(mistake.place).cloned();
            let kept_last_good = workflow.as_ref().is_some_and(|id| kept.contains(id));
            Problem { workflow, kept_last_good, ..self.problem(mistake) }
        };
        let more = self.more(apps.mistakes.len(), "mistakes");
        apps.mistakes.iter().take(TOLD).map(mistake).chain(more).collect()
    }

    /// The warnings as problems, each with the app that contains it.
    fn warnings(&self, apps: &Apps) -> Vec<Problem> {
        let places = apps.in_order();
        let warning = |warning: &Mistake| {
            let app = places.partition_point(|(place, _)| *place <= warning.place).checked_sub(1);
            let workflow = app.and_then(|at| places.get(at)).map(|(_, id)| (*id).clone());
            Problem { severity: Severity::Warning, workflow, ..self.problem(warning) }
        };
        let more = self.more(apps.warnings.len(), "warnings");
        let more = more.map(|more| Problem { severity: Severity::Warning, ..more });
        apps.warnings.iter().take(TOLD).map(warning).chain(more).collect()
    }

    /// A last problem with the number of those that were not reported.
    fn more(&self, all: usize, what: &str) -> Option<Problem> {
        let more = all.checked_sub(TOLD).filter(|more| *more > 0)?;
        Some(Problem::error(&self.source.name, ProblemCode::MoreAlike, format!("and {more} more {what}")))
    }

    fn fail(&mut self, mut problems: Vec<Problem>) {
        for problem in &mut problems {
            problem.kept_last_good = !self.workflows.is_empty();
        }
        self.problems = problems;
        self.failed = true;
    }

    fn problem(&self, mistake: &Mistake) -> Problem {
        self.at(mistake.place, mistake.code, mistake.what.clone())
    }

    fn at(&self, place: Position, code: ProblemCode, what: String) -> Problem {
        let text = self.text().and_then(|text| text.lines().nth(place.line.saturating_sub(1)));
        Problem {
            line: u32::try_from(place.line).unwrap_or(0),
            column: u32::try_from(place.column).unwrap_or(0),
            source_line: text.map(str::to_owned),
            ..Problem::error(&self.source.name, code, what)
        }
    }

    /// A fault between apps as a problem, if one of these apps has it.
    pub(crate) fn fault(&self, fault: &Fault) -> Option<Problem> {
        let problem = self.at(self.read.place(fault)?, fault_code(fault), fault.to_string());
        Some(Problem { workflow: Some(fault.workflow.clone()), ..problem })
    }
}

/// Whether what describes an app has a mistake.
fn has_mistake(workflow: &Workflow) -> bool {
    workflow.keys.jobs().is_some_and(|keys| keys.mistake.is_some())
}
