//! The state of one script's world, and the operations of the prelude on it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::mistakes::parameter_mistakes;
use kelos_model::project::{OF_DEPLOYMENT, ProjectName, deployed_with, of_script};
use kelos_model::secret::masks::first_mask;
use kelos_model::sharing::Shares;
use kelos_model::template::KeyValues;
use kelos_model::time::Dates;
use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::workflow::Source;
use kelos_model::{Workflow, WorkflowId};
use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Exception, Value};

use crate::application::{Application, OpenSchedule};
use crate::apps::{Mistake, Settings};
use crate::code::{ProblemCode, ScriptRefusal};
use crate::digest::digest;
use crate::draft::Draft;
use crate::fault;
use crate::problem::{Problem, Severity, SourcePosition};
use crate::recipe::{Recipe, Role};
use crate::session::{RegisterAsk, Session, is_text};
use crate::statement::with_names;
use crate::test_case::TestCase;
use crate::watch::Watch;

/// The most problems of one file that are reported without ending its evaluation.
const MOST_PROBLEMS: usize = 100;

/// The inputs from outside that a file used while it was evaluated.
#[derive(Debug, Clone, Default)]
pub(crate) struct Uses {
    pub(crate) defaults: BTreeSet<String>,
    pub(crate) registers: BTreeSet<RegisterAsk>,
    pub(crate) looked: bool,
}

/// A function that stayed in a script.
#[derive(Debug, Clone)]
pub(crate) struct KeptFunction {
    pub(crate) digest: String,
    pub(crate) place: Option<SourcePosition>,
}

/// The Rust side of one world.
pub(crate) struct Desk {
    pub(crate) file: Arc<str>,
    text: Arc<str>,
    pub(crate) session: Arc<Session>,
    pub(crate) role: Role,
    pub(crate) watch: Watch,
    /// The present time of a call; none while the file is evaluated.
    pub(crate) calling: Cell<Option<Timestamp>>,
    importing: RefCell<Vec<String>>,
    pub(crate) workflows: RefCell<Vec<Workflow>>,
    /// The index of each workflow in that list.
    places: RefCell<BTreeMap<WorkflowId, usize>>,
    pub(crate) tests: RefCell<Vec<TestCase>>,
    /// Warnings, and errors that don't end the evaluation.
    pub(crate) problems: RefCell<Vec<Problem>>,
    pub(crate) kept: RefCell<Vec<KeptFunction>>,
    pub(crate) uses: RefCell<Uses>,
    /// The application that the file declared.
    pub(crate) application: RefCell<Option<Application>>,
    /// The declaration of the file: what its project shares with others, once it has said so.
    pub(crate) shares: RefCell<Option<Shares>>,
    pub(crate) open_schedules: RefCell<Vec<OpenSchedule>>,
    /// The text that was thrown last as Celos throws it, its message for people, and the stack.
    pub(crate) thrown: RefCell<Option<[String; 3]>>,
}

impl Desk {
    pub(crate) fn new(recipe: &Recipe) -> Desk {
        Desk {
            file: recipe.file.clone(),
            text: recipe.text.clone(),
            session: recipe.session.clone(),
            role: recipe.role,
            watch: Watch::default(),
            calling: Cell::default(),
            importing: RefCell::default(),
            workflows: RefCell::default(),
            places: RefCell::default(),
            tests: RefCell::default(),
            problems: RefCell::default(),
            kept: RefCell::default(),
            uses: RefCell::default(),
            application: RefCell::default(),
            shares: RefCell::default(),
            open_schedules: RefCell::default(),
            thrown: RefCell::default(),
        }
    }

    /// The source text of the file that a position names.
    pub(crate) fn source(&self, file: &str) -> Option<Arc<str>> {
        if file == &*self.file {
            return Some(self.text.clone());
        }
        let name = file.strip_prefix("defaults/")?.strip_suffix(".js")?;
        self.uses.borrow().defaults.contains(name).then(|| self.session.defaults_file(name).ok())?
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.calling.get().unwrap_or(self.session.now)
    }

    pub(crate) fn warn(&self, code: ProblemCode, message: String, stack: &str) {
        self.report(Severity::Warning, code, message, stack);
    }

    /// Reports an error and goes on, so that all of a file are found at once; the file is refused at its end.
    pub(crate) fn blame(&self, code: ProblemCode, message: String, stack: &str) {
        self.report(Severity::Error, code, message, stack);
    }

    fn report(&self, severity: Severity, code: ProblemCode, message: String, stack: &str) {
        let problem = Problem { severity, ..Problem::error(&self.file, code, message) };
        self.note(fault::at_stack(problem, stack, &|file| self.source(file)));
    }

    /// Reports a problem, unless a function is called later, outside of the evaluation.
    pub(crate) fn note(&self, problem: Problem) {
        // A mistake that a loop repeats is reported once.
        let mut problems = self.problems.borrow_mut();
        if self.calling.get().is_none() && problems.len() < MOST_PROBLEMS && !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    pub(crate) fn keep(&self, source: &str, stack: &str) -> String {
        let digest = digest(source);
        let place = fault::places(stack).into_iter().next();
        self.kept.borrow_mut().push(KeptFunction { digest: digest.clone(), place });
        digest
    }

    /// Defines a workflow; `call` is the function that a script called for it, for messages.
    pub(crate) fn define(&self, json: &str, stack: &str, call: &str) -> Result<(), ScriptRefusal> {
        if self.calling.get().is_some() {
            let words = format!("{call}: workflows can be defined only while the file is evaluated");
            return Err(ScriptRefusal::new(ProblemCode::OutOfPlace, words));
        }
        if self.role == Role::Tests {
            let words = format!(
                "{call}: workflows are defined by scripts of the workflows folder, which tests find there: expected \
                 only tests in this file"
            );
            return Err(ScriptRefusal::new(ProblemCode::OutOfPlace, words));
        }
        let draft = Draft::parse(json).and_then(|draft| draft.workflow(&self.file, self.line(stack)));
        let workflow = draft.map_err(|error| format!("{call}: {error}"))?;
        self.judge_flow(&workflow, stack, call);
        self.add(workflow)
    }

    /// Defines the apps that a script describes. Their positions are known only as the line of the call.
    pub(crate) fn define_jobs(
        &self,
        apps: &str,
        template: &str,
        kinds: [&str; 2],
        stack: &str,
    ) -> Result<(), ScriptRefusal> {
        const WHERE: &str = "celos.defineJobGraph";
        if self.calling.get().is_some() || self.role == Role::Tests {
            let words =
                format!("{WHERE}: apps can be defined only while a script of the workflows folder is evaluated");
            return Err(ScriptRefusal::new(ProblemCode::OutOfPlace, words));
        }
        let template = Some(template).filter(|template| !template.is_empty());
        let settings = Settings::of_script(template, kinds)
            .map_err(|error| ScriptRefusal::new(ProblemCode::BadIdentifiers, format!("{WHERE}: failed to {error}")))?;
        let settings = Settings { folder: self.session.apps_folder().map(std::path::Path::to_owned), ..settings };
        let refused = |mistakes: Vec<Mistake>| {
            let told: Vec<&str> = mistakes.iter().map(|mistake| mistake.what.as_str()).collect();
            let code = mistakes.first().map_or(ProblemCode::BadApp, |mistake| mistake.code);
            ScriptRefusal::new(code, format!("{WHERE}: {}", told.join("; ")))
        };
        let format = self.session.format().ok_or_else(|| {
            ScriptRefusal::new(
                ProblemCode::OutOfPlace,
                format!("{WHERE}: this program was built without a format of apps"),
            )
        })?;
        let mut apps = format.apps(apps, &self.file, &settings).map_err(refused)?;
        // A call is taken as a whole, as any other.
        let mistakes = std::mem::take(&mut apps.mistakes);
        if !mistakes.is_empty() {
            return Err(refused(mistakes));
        }
        for warning in &apps.warnings {
            self.warn(warning.code, format!("{WHERE}: {}", warning.what), stack);
        }
        let line = self.line(stack);
        for workflow in apps.workflows {
            self.judge_flow(&workflow, stack, WHERE);
            self.add(Workflow { source: Source::file(&*self.file, line), ..workflow })?;
        }
        Ok(())
    }

    /// The project of the file: the application that it declares, or else the one it was deployed with or its own name.
    pub(crate) fn project(&self) -> ProjectName {
        let of_file = ProjectName::read(of_script(&self.file));
        match &*self.application.borrow() {
            None => of_file,
            Some(application) => application.project(of_file),
        }
    }

    /// Takes what the project of the file shares with others.
    pub(crate) fn share(&self, json: &str) -> Result<(), ScriptRefusal> {
        self.is_defining()?;
        let value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let shares = Shares::read(value)
            .map_err(|error| ScriptRefusal::new(ProblemCode::BadArgument, format!("failed to {error}")))?;
        if self.shares.replace(Some(shares)).is_some() {
            let words = "the file has said already what its project shares: expected that once";
            return Err(ScriptRefusal::new(ProblemCode::OutOfPlace, words));
        }
        Ok(())
    }

    /// Whether deploying the file updates schedules; none if it doesn't say.
    pub(crate) fn update_schedules(&self) -> Option<bool> {
        self.application.borrow().as_ref()?.update_schedules
    }

    /// Refuses a definition outside of the evaluation of a file of definitions.
    pub(crate) fn is_defining(&self) -> Result<(), ScriptRefusal> {
        if self.calling.get().is_some() || self.role == Role::Tests {
            let words = "expected only while a script of the workflows folder is evaluated";
            return Err(ScriptRefusal::new(ProblemCode::OutOfPlace, words));
        }
        Ok(())
    }

    /// The line of this file that a call was made from.
    pub(crate) fn line(&self, stack: &str) -> u32 {
        fault::places(stack).iter().find(|place| place.file == *self.file).map_or(0, |place| place.line)
    }

    /// Adds a workflow of this file's project, the first of its name.
    pub(crate) fn add(&self, workflow: Workflow) -> Result<(), ScriptRefusal> {
        if let Some(line) = self.defined(&workflow.id, |first| first.source.line) {
            let words =
                format!("Workflow with this ID already exists: {} (defined in line {line} of this file)", workflow.id);
            return Err(ScriptRefusal::new(ProblemCode::NameTaken, words));
        }
        // Those of an event schedule are known once its program is.
        let mistakes = parameter_mistakes(&workflow);
        if workflow.keys.events().is_none() && !mistakes.is_empty() {
            let words = format!("the parameters of {:?} are wrong: {}", workflow.id.as_str(), mistakes.join("; "));
            return Err(ScriptRefusal::new(ProblemCode::BadArgument, words));
        }
        workflow.check_nesting().map_err(|problem| {
            ScriptRefusal::new(ProblemCode::BadArgument, format!("{:?}: {problem}", workflow.id.as_str()))
        })?;
        if let Some(masked) = first_mask(&workflow.job.settings) {
            let words =
                format!("{masked} of {:?} is the mask of a value: expected the value itself", workflow.id.as_str());
            return Err(ScriptRefusal::new(ProblemCode::BadArgument, words));
        }
        let mut workflows = self.workflows.borrow_mut();
        self.places.borrow_mut().insert(workflow.id.clone(), workflows.len());
        workflows.push(Workflow { project: self.project().to_string(), ..workflow });
        Ok(())
    }

    /// Applies `look` to the workflow with this id, if the file has defined it by now.
    pub(crate) fn defined<T>(&self, id: &WorkflowId, look: impl FnOnce(&Workflow) -> T) -> Option<T> {
        let place = self.places.borrow().get(id).copied()?;
        self.workflows.borrow().get(place).map(look)
    }

    pub(crate) fn test(&self, name: String, json: &str, stack: &str) -> Result<(), ScriptRefusal> {
        let mut tests = self.tests.borrow_mut();
        if let Some(first) = tests.iter().find(|test| test.name == name) {
            let words = format!("kelos.test {name:?}: there is a test of this name in line {}", first.line);
            return Err(ScriptRefusal::new(ProblemCode::NameTaken, words));
        }
        let plan = serde_json::from_str(json).map_err(|error| format!("kelos.test {name:?}: {error}"))?;
        tests.push(TestCase { name, line: self.line(stack), plan });
        Ok(())
    }

    /// The JSON of registers, or the code and the words of a problem after an exclamation mark.
    pub(crate) fn register(&self, bucket: String, key: Option<String>) -> String {
        let ask = RegisterAsk { project: self.project().to_string(), bucket, key };
        if self.session.dry() {
            let what = format!("registers of bucket {:?} are taken to be empty: checking reads none", ask.bucket);
            self.warn(ProblemCode::NotAsked, what, "");
        }
        let answer = self.watch.aside(|| match self.calling.get() {
            Some(_) => self.session.register_now(&ask),
            None => self.session.register(&ask),
        });
        self.uses.borrow_mut().registers.insert(ask);
        answer.unwrap_or_else(|error| format!("!{} {error}", error.code().as_str()))
    }

    pub(crate) fn probe(&self, path: String, base: String, millis: i64) -> Result<bool, String> {
        let at = Timestamp::from_millisecond(millis).map_err(|error| error.to_string())?;
        let check = PathCheck::new(FileSystem::Hdfs, &path, &base);
        let uri = check.uri(&KeyValues::at(at));
        if self.session.dry() {
            let what = format!("celos.hdfsCheck of {uri} is taken to be false: checking looks at nothing");
            self.warn(ProblemCode::NotAsked, what, "");
        }
        self.uses.borrow_mut().looked = true;
        self.watch.aside(|| match self.calling.get() {
            Some(_) => self.session.look_now(&uri),
            None => self.session.look(&uri),
        })
    }

    /// The dates of a text in the defaults folder.
    pub(crate) fn dates(&self, name: &str) -> Result<Vec<String>, String> {
        if !is_text(name) {
            return Err(format!("expected the name of a .txt file in the defaults folder, not {name:?}"));
        }
        let text = self.watch.aside(|| self.session.defaults_file(&self.meant(name)))?;
        let dates = text.parse::<Dates>().map_err(|error| format!("{error}, in defaults/{name}"))?;
        Ok(dates.iter().map(|date| date.to_string()).collect())
    }

    /// The name of the defaults file that a script means, which is noted: that of its own deployment, or else that of all.
    fn meant(&self, name: &str) -> String {
        let mut uses = self.uses.borrow_mut();
        if let Some(project) = deployed_with(&self.file) {
            let own = format!("{project}{OF_DEPLOYMENT}{name}");
            // One that is missing is noted, too: it may come.
            uses.defaults.insert(own.clone());
            if !self.session.lacks_defaults(&own) {
                return own;
            }
        }
        uses.defaults.insert(name.to_owned());
        name.to_owned()
    }

    /// Evaluates a defaults file in the global scope.
    pub(crate) fn import<'js>(&self, ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<Value<'js>> {
        let refuse = |words: String| refuse_import(ctx, &words);
        let name = &self.watch.aside(|| self.meant(name));
        if self.importing.borrow().iter().any(|open| open == name) {
            let circle = self.importing.borrow().join(" -> ");
            return Err(refuse(format!("celos.importDefaults: defaults files import each other: {circle} -> {name}")));
        }
        let text = self.watch.aside(|| self.session.defaults_file(name));
        let text = text.map_err(|problem| refuse(format!("celos.importDefaults: {problem}")))?;
        self.importing.borrow_mut().push(name.to_owned());
        let file = || options(format!("defaults/{name}.js"));
        // A text that only Rhino can read fails before any of it runs.
        let named = with_names(&text).filter(|_| !is_readable(ctx, &text));
        let done = ctx.eval_with_options(named.as_deref().unwrap_or(&text).as_bytes(), file());
        self.importing.borrow_mut().pop();
        done
    }
}

/// Throws what is wrong with an import.
fn refuse_import(ctx: &Ctx<'_>, words: &str) -> rquickjs::Error {
    match Exception::from_message(ctx.clone(), words) {
        Ok(exception) => match exception.set(fault::CODE, ProblemCode::ImportFailed.as_str()) {
            Ok(()) => exception.throw(),
            Err(error) => error,
        },
        Err(error) => error,
    }
}

/// Whether the engine can read a text. Nothing of it runs.
fn is_readable(ctx: &Ctx<'_>, text: &str) -> bool {
    let uncalled = format!("(function () {{{text}\n}})");
    let readable = ctx.eval_with_options::<Value<'_>, _>(uncalled, options("uncalled".to_owned())).is_ok();
    if !readable {
        drop(ctx.catch());
    }
    readable
}

/// The options of evaluation: in the global scope, and in the sloppy mode that old scripts need.
pub(crate) fn options(filename: String) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(filename);
    options
}
