//! What a script's world hands out and takes in while it runs: the Rust side of the prelude.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_model::template::KeyValues;
use kelos_model::time::{Cron, Zone, parse_instant};
use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::workflow::Source;
use kelos_model::{PoolId, SlotState, Workflow, WorkflowId};
use nix::time::{ClockId, clock_gettime};
use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Exception, Function, IntoJs, Object, Value};

use crate::apps::{Mistake, Settings};
use crate::closest;
use crate::code::{ProblemCode, ScriptRefusal};
use crate::draft::Draft;
use crate::events::{self, Events};
use crate::fault::{self, SourcePosition};
use crate::limits::Limits;
use crate::problem::Problem;
use crate::realm::{Recipe, Role};
use crate::session::{RegisterAsk, Session};
use crate::statement::with_names;
use crate::test_case::TestCase;

/// The end of a script's time, which the engine asks for while it runs: by what its thread has had of the processor, and by
/// the clock for the case that it gets next to nothing.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    until: Cell<Option<Instant>>,
    busy_until: Cell<Duration>,
    spare: Cell<Duration>,
    fired: Cell<bool>,
    starved: Cell<bool>,
}

impl Watch {
    /// Gives the script `time` of the processor, and what the limits allow by the clock, to the script and to the host.
    pub(crate) fn start(&self, time: Duration, limits: &Limits) {
        self.until.set(Some(Instant::now() + limits.wall()));
        self.spare.set(limits.host());
        self.go_on(time);
    }

    /// Gives the script `time` of the processor from now on.
    pub(crate) fn go_on(&self, time: Duration) {
        self.busy_until.set(processor_time() + time);
        self.fired.set(false);
    }

    /// Whether the time is over.
    pub(crate) fn is_over(&self) -> bool {
        let Some(until) = self.until.get() else { return false };
        let starved = Instant::now() >= until;
        let over = starved || processor_time() >= self.busy_until.get();
        if over {
            self.fired.set(true);
            self.starved.set(starved);
        }
        over
    }

    /// Whether a script was stopped since the start.
    pub(crate) fn fired(&self) -> bool {
        self.fired.get()
    }

    /// Whether what stopped it was the clock.
    pub(crate) fn starved(&self) -> bool {
        self.starved.get()
    }

    /// Does the host's part, whose time is not the script's, up to what is spare.
    fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        let (began, busy) = (Instant::now(), processor_time());
        let done = work();
        let given = began.elapsed().min(self.spare.get());
        self.spare.set(self.spare.get() - given);
        self.until.set(self.until.get().map(|until| until + given));
        let used = processor_time().saturating_sub(busy).min(given);
        self.busy_until.set(self.busy_until.get() + used);
        done
    }
}

/// What this thread has had of the processor.
fn processor_time() -> Duration {
    // It can't fail for the thread that asks; the clock still stops a script if it does.
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// What a file depended on while it was evaluated.
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
    session: Arc<Session>,
    pub(crate) role: Role,
    pub(crate) watch: Watch,
    /// The present time of a call; none while the file is evaluated.
    pub(crate) calling: Cell<Option<Timestamp>>,
    importing: RefCell<Vec<String>>,
    pub(crate) workflows: RefCell<Vec<Workflow>>,
    /// Where each of them is in that list.
    places: RefCell<BTreeMap<WorkflowId, usize>>,
    pub(crate) tests: RefCell<Vec<TestCase>>,
    pub(crate) warnings: RefCell<Vec<Problem>>,
    pub(crate) kept: RefCell<Vec<KeptFunction>>,
    pub(crate) uses: RefCell<Uses>,
    pub(crate) events: RefCell<Events>,
    /// The text that was thrown last as Celos throws it, what people are told of it, and the stack.
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
            warnings: RefCell::default(),
            kept: RefCell::default(),
            uses: RefCell::default(),
            events: RefCell::default(),
            thrown: RefCell::default(),
        }
    }

    /// The text that a place's file name stands for.
    pub(crate) fn source(&self, file: &str) -> Option<Arc<str>> {
        if file == &*self.file {
            return Some(self.text.clone());
        }
        let name = file.strip_prefix("defaults/")?.strip_suffix(".js")?;
        self.uses.borrow().defaults.contains(name).then(|| self.session.defaults_file(name).ok())?
    }

    fn now(&self) -> Timestamp {
        self.calling.get().unwrap_or(self.session.now)
    }

    fn warn(&self, code: ProblemCode, message: String, stack: &str) {
        if self.calling.get().is_none() {
            let warning = fault::warning(&self.file, code, message, stack, &|file| self.source(file));
            // A loop that repeats a mistake says it once.
            let mut warnings = self.warnings.borrow_mut();
            if warnings.len() < 100 && !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }

    fn keep(&self, source: &str, stack: &str) -> String {
        let digest = digest(source);
        let place = fault::places(stack).into_iter().next();
        self.kept.borrow_mut().push(KeptFunction { digest: digest.clone(), place });
        digest
    }

    fn define(&self, json: &str, stack: &str) -> Result<(), ScriptRefusal> {
        if self.calling.get().is_some() {
            let words = "celos.defineWorkflow: workflows can be defined only while the file is evaluated";
            return Err(ScriptRefusal::new(ProblemCode::OutOfPlace, words));
        }
        if self.role == Role::Tests {
            let words = "celos.defineWorkflow: workflows are defined by scripts of the workflows folder, which tests \
                         find there: expected only tests in this file";
            return Err(ScriptRefusal::new(ProblemCode::OutOfPlace, words));
        }
        let draft = Draft::parse(json)?;
        self.add(draft.workflow(&self.file, self.line(stack))?)
    }

    /// Takes in apps that a script describes; where they stand nobody knows but for the call.
    fn define_jobs(&self, apps: &str, template: &str, kinds: [&str; 2], stack: &str) -> Result<(), ScriptRefusal> {
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
            self.add(Workflow { source: Source::file(&*self.file, line), ..workflow })?;
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
        let mut workflows = self.workflows.borrow_mut();
        self.places.borrow_mut().insert(workflow.id.clone(), workflows.len());
        workflows.push(Workflow { project: self.project().to_string(), ..workflow });
        Ok(())
    }

    /// Looks at the workflow of an id, where the file has defined it by now.
    pub(crate) fn defined<T>(&self, id: &WorkflowId, look: impl FnOnce(&Workflow) -> T) -> Option<T> {
        let place = self.places.borrow().get(id).copied()?;
        self.workflows.borrow().get(place).map(look)
    }

    fn test(&self, name: String, json: &str, stack: &str) -> Result<(), ScriptRefusal> {
        let mut tests = self.tests.borrow_mut();
        if let Some(first) = tests.iter().find(|test| test.name == name) {
            let words = format!("kelos.test {name:?}: there is a test of this name in line {}", first.line);
            return Err(ScriptRefusal::new(ProblemCode::NameTaken, words));
        }
        let plan = serde_json::from_str(json).map_err(|error| format!("kelos.test {name:?}: {error}"))?;
        tests.push(TestCase { name, line: self.line(stack), plan });
        Ok(())
    }

    /// The JSON of registers, or a problem after an exclamation mark.
    fn register(&self, bucket: String, key: Option<String>) -> String {
        let ask = (bucket, key);
        if self.session.dry() {
            let what = format!("registers of bucket {:?} are taken to be empty: checking reads none", ask.0);
            self.warn(ProblemCode::NotAsked, what, "");
        }
        let answer = self.watch.aside(|| match self.calling.get() {
            Some(_) => self.session.register_now(&ask),
            None => self.session.register(&ask),
        });
        self.uses.borrow_mut().registers.insert(ask);
        answer.unwrap_or_else(|problem| format!("!{problem}"))
    }

    fn probe(&self, path: String, base: String, millis: i64) -> Result<bool, String> {
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

    /// Evaluates a defaults file in the global scope.
    fn import<'js>(&self, ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<Value<'js>> {
        let refuse = |words: String| refuse_import(ctx, &words);
        if self.importing.borrow().iter().any(|open| open == name) {
            let circle = self.importing.borrow().join(" -> ");
            return Err(refuse(format!("celos.importDefaults: defaults files import each other: {circle} -> {name}")));
        }
        self.uses.borrow_mut().defaults.insert(name.to_owned());
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

/// How scripts are evaluated: in the global scope, in the forgiving mode that old scripts need.
pub(crate) fn options(filename: String) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(filename);
    options
}

/// A digest that stays the same from release to release (FNV-1a).
pub(crate) fn digest(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// An answer for the prelude, or a problem as a text.
fn answer<'js, T: IntoJs<'js>>(ctx: &Ctx<'js>, answer: Result<T, String>) -> rquickjs::Result<Value<'js>> {
    match answer {
        Ok(value) => value.into_js(ctx),
        Err(problem) => problem.into_js(ctx),
    }
}

fn words<T, E: ToString>(checked: Result<T, E>) -> Option<String> {
    checked.err().map(|error| error.to_string())
}

/// The code and the words of what is refused.
pub(crate) fn refused(checked: Result<(), ScriptRefusal>) -> Option<Vec<String>> {
    checked.err().map(ScriptRefusal::told)
}

/// The object that the prelude knows as `host`.
pub(crate) fn hand_out<'js>(ctx: &Ctx<'js>, desk: &Rc<Desk>) -> rquickjs::Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    host.set("file", &*desk.file)?;
    host.set("states", SlotState::ALL.map(SlotState::as_str).to_vec())?;
    let sandbox = desk.session.sandbox();
    host.set("tested", sandbox.is_some() || desk.role == Role::Tests)?;
    host.set("prefix", sandbox.map_or("", |sandbox| &sandbox.prefix))?;
    host.set("suffix", sandbox.map_or("", |sandbox| &sandbox.suffix))?;
    let define = |name: &str, function: Function<'js>| host.set(name, function);
    define("id", Function::new(ctx.clone(), |id: String| words(WorkflowId::new(&id)))?)?;
    define("pool", Function::new(ctx.clone(), |name: String| words(PoolId::new(&name)))?)?;
    define("cron", Function::new(ctx.clone(), |text: String| words(Cron::parse(&text)))?)?;
    define("zone", Function::new(ctx.clone(), |name: String| words(Zone::parse(&name)))?)?;
    define(
        "closest",
        Function::new(ctx.clone(), |wrong: String, words: Vec<String>| {
            closest(&wrong, words.iter().map(String::as_str)).map(str::to_owned)
        })?,
    )?;
    define(
        "same",
        Function::new(ctx.clone(), |looked: Option<String>, called: String| {
            fault::same_statement(looked.as_deref(), &called).then_some(looked).flatten()
        })?,
    )?;
    let instant = |ctx: Ctx<'js>, text: String| {
        let read = parse_instant(&text).map(|at| at.as_millisecond() as f64);
        answer(&ctx, read.map_err(|error| error.to_string()))
    };
    define("instant", Function::new(ctx.clone(), instant)?)?;
    hand_out_desk(ctx, &host, desk)?;
    events::hand_out(ctx, &host, desk)?;
    Ok(host)
}

/// The part that reads or changes the desk.
fn hand_out_desk<'js>(ctx: &Ctx<'js>, host: &Object<'js>, desk: &Rc<Desk>) -> rquickjs::Result<()> {
    let d = desk.clone();
    host.set("now", Function::new(ctx.clone(), move || d.now().as_millisecond() as f64)?)?;
    let d = desk.clone();
    let warn = move |message: String, stack: String, code: String| {
        d.warn(ProblemCode::read(&code).unwrap_or_default(), message, &stack);
    };
    host.set("warn", Function::new(ctx.clone(), warn)?)?;
    let d = desk.clone();
    let thrown = move |text: String, told: String, stack: String| {
        d.thrown.replace(Some([text, told, stack]));
    };
    host.set("thrown", Function::new(ctx.clone(), thrown)?)?;
    let d = desk.clone();
    host.set("keep", Function::new(ctx.clone(), move |source: String, stack: String| d.keep(&source, &stack))?)?;
    let d = desk.clone();
    let definition = move |json: String, stack: String| refused(d.define(&json, &stack));
    host.set("define", Function::new(ctx.clone(), definition)?)?;
    let d = desk.clone();
    let jobs = move |apps: String, template: String, kinds: String, checks: String, stack: String| {
        refused(d.define_jobs(&apps, &template, [&kinds, &checks], &stack))
    };
    host.set("defineJobs", Function::new(ctx.clone(), jobs)?)?;
    let d = desk.clone();
    let test = move |name: String, json: String, stack: String| refused(d.test(name, &json, &stack));
    host.set("test", Function::new(ctx.clone(), test)?)?;
    let d = desk.clone();
    host.set(
        "register",
        Function::new(ctx.clone(), move |bucket: String, key: String| d.register(bucket, Some(key)))?,
    )?;
    let d = desk.clone();
    host.set("registers", Function::new(ctx.clone(), move |bucket: String| d.register(bucket, None))?)?;
    let d = desk.clone();
    let probe =
        move |ctx: Ctx<'js>, path: String, base: String, millis: f64| answer(&ctx, d.probe(path, base, millis as i64));
    host.set("probe", Function::new(ctx.clone(), probe)?)?;
    let d = desk.clone();
    let import = move |ctx: Ctx<'js>, name: String| d.import(&ctx, &name);
    host.set("importDefaults", Function::new(ctx.clone(), import)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(wall_millis: u64) -> Limits {
        Limits { wall_millis, ..Limits::default() }
    }

    #[test]
    fn a_script_that_gets_no_processor_keeps_its_time() {
        let watch = Watch::default();
        watch.start(Duration::from_millis(500), &limits(600_000));
        // Nothing comes: the thread has the clock go on without it.
        let (_open, nothing) = std::sync::mpsc::channel::<()>();
        assert!(nothing.recv_timeout(Duration::from_millis(600)).is_err());
        assert!(!watch.is_over() && !watch.fired());
        while !watch.is_over() {}
        assert!(watch.fired() && !watch.starved());
    }

    #[test]
    fn the_clock_ends_what_never_gets_its_share() {
        let watch = Watch::default();
        watch.start(Duration::from_secs(60), &limits(0));
        assert!(watch.is_over() && watch.fired() && watch.starved());
    }
}
