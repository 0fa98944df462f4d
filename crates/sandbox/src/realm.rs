//! One file's world: a runtime of its own, limited in memory, stack and time.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use kelos_model::{SlotRef, Workflow};
use rquickjs::context::intrinsic;
use rquickjs::{Context, Ctx, Function, Module, Persistent, Runtime, Value, WriteOptions};

use crate::code::ProblemCode;
use crate::desk::{self, Desk, KeptFunction, Uses};
use crate::fault::{self, PRELUDE, StopReason, ThrownValue};
use crate::host_functions;
use crate::limits::Limits;
use crate::problem::{Problem, Severity};
use crate::recipe::{Recipe, Role};
use crate::statement::with_names;
use crate::test_case::{TestCase, TestFunction};

/// The built-in objects of a world. Left out: typed arrays (and with them `Atomics.wait`, which
/// blocks where nothing can stop it), weak references, `performance` (a clock), DOM errors.
type Builtins = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::Promise,
);

const PRELUDE_TEXT: &str = concat!(
    include_str!("prelude.js"),
    include_str!("prelude_time.js"),
    include_str!("prelude_events.js"),
    include_str!("prelude_workflow.js"),
    include_str!("prelude_kelos.js"),
    include_str!("prelude_flow.js"),
    include_str!("prelude_services.js"),
    include_str!("prelude_jobs.js")
);

const TEST_PRELUDE_TEXT: &str = concat!(
    include_str!("prelude.js"),
    include_str!("prelude_time.js"),
    include_str!("prelude_events.js"),
    include_str!("prelude_workflow.js"),
    include_str!("prelude_kelos.js"),
    include_str!("prelude_flow.js"),
    include_str!("prelude_services.js"),
    include_str!("prelude_jobs.js"),
    include_str!("prelude_test.js")
);

/// The result of evaluating a file.
#[derive(Debug, Default)]
pub(crate) struct EvaluationResult {
    /// The workflows; where the file failed, those that it had defined by then.
    pub(crate) workflows: Vec<Workflow>,
    /// The tests of a test file.
    pub(crate) tests: Vec<TestCase>,
    pub(crate) kept: Vec<KeptFunction>,
    /// The project that the file is.
    pub(crate) project: String,
    /// Whether deploying the file updates schedules; none if it doesn't say.
    pub(crate) update_schedules: Option<bool>,
    /// Warnings, and the errors of a file that failed.
    pub(crate) problems: Vec<Problem>,
    pub(crate) failed: bool,
    /// Whether it was stopped for its time: it may fare better another time.
    pub(crate) timed_out: bool,
    pub(crate) uses: Uses,
}

/// A call of a function that stayed in a script.
pub(crate) struct Call {
    pub(crate) recipe: Arc<Recipe>,
    pub(crate) index: u32,
    /// The slot that it is about; none where it is about an identifier alone.
    pub(crate) slot: Option<SlotRef>,
    pub(crate) now: Timestamp,
    /// The job that the call is about, as JSON, if it is about one.
    pub(crate) job: Option<String>,
}

/// A world with a script in it. The fields are dropped in order: a function must not outlive its runtime.
pub(crate) struct Realm {
    call: Option<Persistent<Function<'static>>>,
    call_test: Option<Persistent<Function<'static>>>,
    context: Context,
    runtime: Runtime,
    desk: Rc<Desk>,
    limits: Limits,
    file: Arc<str>,
    timed_out: Cell<bool>,
    /// Whether its script was never stopped for its time or its memory.
    sound: Cell<bool>,
}

/// The prelude, compiled once per process: compiling it takes longer than all the rest of a world.
fn prelude(role: Role) -> rquickjs::Result<&'static [u8]> {
    static DEFINITIONS: OnceLock<Vec<u8>> = OnceLock::new();
    static TESTS: OnceLock<Vec<u8>> = OnceLock::new();
    let (kept, text) = match role {
        Role::Definitions => (&DEFINITIONS, PRELUDE_TEXT),
        Role::Tests => (&TESTS, TEST_PRELUDE_TEXT),
    };
    if let Some(compiled) = kept.get() {
        return Ok(compiled);
    }
    let context = Context::custom::<Builtins>(&Runtime::new()?)?;
    // The prelude's source and positions are never shown, and it loads faster without them.
    let options = WriteOptions { strip_source: true, strip_debug: true, ..WriteOptions::default() };
    let compiled = context.with(|ctx| Module::declare(ctx, PRELUDE, text)?.write(options))?;
    Ok(kept.get_or_init(|| compiled))
}

#[allow(unsafe_code)]
fn load_prelude<'js>(ctx: &Ctx<'js>, role: Role) -> rquickjs::Result<Module<'js, rquickjs::module::Evaluated>> {
    let compiled = prelude(role)?;
    // SAFETY: the bytes are what this very process's engine has just written, and they are never freed.
    let module = unsafe { Module::load(ctx.clone(), compiled) }?;
    Ok(module.eval()?.0)
}

impl Realm {
    fn empty(recipe: &Recipe, limits: &Limits) -> rquickjs::Result<Realm> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(limits.memory_bytes);
        runtime.set_max_stack_size(limits.stack_bytes);
        runtime.set_gc_threshold(limits.memory_bytes / 8);
        let context = Context::custom::<Builtins>(&runtime)?;
        let desk = Rc::new(Desk::new(recipe));
        let watched = desk.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || watched.watch.is_over())));
        Ok(Realm {
            call: None,
            call_test: None,
            context,
            runtime,
            desk,
            limits: limits.clone(),
            file: recipe.file.clone(),
            timed_out: Cell::new(false),
            sound: Cell::new(true),
        })
    }

    /// Makes a world and evaluates the file in it. One that can't be read because of function statements without a name, which
    /// Rhino takes, is evaluated with names for them.
    pub(crate) fn evaluate(recipe: &Recipe, limits: &Limits) -> (Option<Realm>, EvaluationResult) {
        let (realm, evaluated) = Realm::evaluate_text(recipe, limits, &recipe.text);
        let unreadable = evaluated.problems.iter().any(|one| one.is_error() && one.message.starts_with("SyntaxError"));
        match unreadable.then(|| with_names(&recipe.text)).flatten() {
            Some(named) => Realm::evaluate_text(recipe, limits, &named),
            None => (realm, evaluated),
        }
    }

    fn evaluate_text(recipe: &Recipe, limits: &Limits, text: &str) -> (Option<Realm>, EvaluationResult) {
        let opened = Realm::empty(recipe, limits).and_then(|mut realm| {
            realm.open()?;
            Ok(realm)
        });
        match opened {
            Ok(realm) => {
                let evaluated = realm.run(text);
                (Some(realm), evaluated)
            }
            Err(error) => {
                let problem = Problem::error(
                    &recipe.file,
                    ProblemCode::Bug,
                    format!("failed to make a world for the script: {error}"),
                );
                (None, EvaluationResult { problems: vec![problem], failed: true, ..EvaluationResult::default() })
            }
        }
    }

    fn open(&mut self) -> rquickjs::Result<()> {
        let role = self.desk.role;
        let (call, call_test) = self.context.with(|ctx| {
            let prelude = load_prelude(&ctx, role)?;
            let host = host_functions::install(&ctx, &self.desk)?;
            let function = |name: &str| prelude.get::<_, Function<'_>>(name);
            function("install")?.call::<_, ()>((host,))?;
            if role == Role::Tests {
                function("installTests")?.call::<_, ()>(())?;
                return Ok((None, Some(Persistent::save(&ctx, function("callTest")?))));
            }
            rquickjs::Result::Ok((Some(Persistent::save(&ctx, function("call")?)), None))
        })?;
        (self.call, self.call_test) = (call, call_test);
        Ok(())
    }

    fn run(&self, text: &str) -> EvaluationResult {
        self.desk.watch.start(self.limits.load(), &self.limits);
        let options = desk::options(self.file.to_string());
        let done = self.context.with(|ctx| {
            let done = ctx.eval_with_options::<Value<'_>, _>(text.as_bytes(), options);
            done.map(drop).map_err(|error| self.thrown(&ctx, &error))
        });
        let desk = &self.desk;
        let done = done.map_err(|thrown| self.problem(thrown, self.limits.load_millis)).and_then(|()| desk.finish());
        let mut evaluated = EvaluationResult {
            workflows: desk.workflows.take(),
            tests: desk.tests.take(),
            kept: desk.kept.borrow().clone(),
            project: desk.project().to_string(),
            update_schedules: desk.update_schedules(),
            problems: desk.problems.take(),
            uses: desk.uses.borrow().clone(),
            ..EvaluationResult::default()
        };
        if done.is_ok() && self.runtime.is_job_pending() {
            let words = "the file left promises behind, which are never resolved: workflows have to be defined at once";
            let warning = Problem {
                severity: Severity::Warning,
                ..Problem::error(&self.file, ProblemCode::PromisesLeft, words.to_owned())
            };
            evaluated.problems.push(warning);
        }
        evaluated.failed = evaluated.problems.iter().any(Problem::is_error);
        if let Err(problem) = done {
            evaluated.problems.push(problem);
            evaluated.failed = true;
            evaluated.timed_out = self.timed_out.get();
        }
        evaluated
    }

    /// Calls a kept function; the answer is JSON.
    pub(crate) fn call(&self, call: &Call) -> Result<String, Problem> {
        let (index, now) = (call.index, call.now);
        self.desk.calling.set(Some(now));
        self.desk.watch.start(self.limits.call(), &self.limits);
        let answer = self.context.with(|ctx| {
            let slot = call.slot.as_ref();
            // A job has its id in place of a time, which is not read.
            let ms = slot.and_then(|slot| slot.key.time()).map_or(0, Timestamp::as_millisecond) as f64;
            let workflow = slot.map_or("", |slot| slot.workflow.as_str());
            let arguments = (index, workflow, ms, now.as_millisecond() as f64, call.job.as_deref());
            let answer = match self.call.clone() {
                Some(call) => call.restore(&ctx).and_then(|call| call.call::<_, String>(arguments)),
                None => Err(rquickjs::Error::Unknown),
            };
            answer.map_err(|error| self.thrown(&ctx, &error))
        });
        answer.map_err(|thrown| {
            let mut problem = self.problem(thrown, self.limits.call_millis);
            let kept = self.desk.kept.borrow();
            let place = usize::try_from(index).ok().and_then(|index| kept.get(index)?.place.clone());
            if problem.line == 0 {
                fault::locate(&mut problem, place.as_slice(), &|file| self.desk.source(file));
            }
            problem.workflow = call.slot.as_ref().map(|slot| slot.workflow.clone());
            problem
        })
    }

    /// Calls a function of a test; argument and answer are JSON.
    pub(crate) fn call_test(&self, function: TestFunction, argument: &str) -> Result<String, Problem> {
        if !self.is_sound() {
            let words = "it was stopped before for its time or its memory, and its functions can't be called any more";
            return Err(Problem::error(&self.file, ProblemCode::FunctionGone, words.to_owned()));
        }
        self.desk.watch.start(self.limits.call(), &self.limits);
        let answer = self.context.with(|ctx| {
            let answer = match self.call_test.clone() {
                Some(call) => call.restore(&ctx).and_then(|call| call.call::<_, String>((function, argument))),
                None => Err(rquickjs::Error::Unknown),
            };
            answer.map_err(|error| self.thrown(&ctx, &error))
        });
        answer.map_err(|thrown| self.problem(thrown, self.limits.call_millis))
    }

    /// Whether the world may be used again: not after it ran out of time or memory.
    pub(crate) fn is_sound(&self) -> bool {
        self.sound.get()
    }

    fn thrown(&self, ctx: &Ctx<'_>, error: &rquickjs::Error) -> ThrownValue {
        if self.desk.watch.fired() {
            self.timed_out.set(true);
        }
        if !error.is_exception() {
            return ThrownValue::words(format!("failed to run the script: {error}"));
        }
        // Reading the exception may run the script's code, which gets a little more time.
        self.desk.watch.go_on(self.limits.call());
        ThrownValue::take(ctx, self.desk.thrown.borrow().as_ref())
    }

    fn problem(&self, thrown: ThrownValue, millis: u64) -> Problem {
        let limit = self.limits.memory_bytes;
        let full = || usize::try_from(self.runtime.memory_usage().malloc_size).is_ok_and(|used| used > limit / 4);
        let stopped = match self.timed_out.get() {
            true if self.desk.watch.starved() => Some(StopReason::Starved(self.limits.wall_millis)),
            true => Some(StopReason::Time(millis)),
            false => thrown.is_memory(full).then_some(StopReason::Memory(limit)),
        };
        self.sound.set(stopped.is_none() && !thrown.is_null());
        thrown.problem(&self.file, stopped, &|file| self.desk.source(file))
    }
}
