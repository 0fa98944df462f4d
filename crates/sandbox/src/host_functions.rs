//! The functions that the prelude finds on its `host` object.

use std::rc::Rc;

use kelos_model::similar::mistyped;
use kelos_model::time::{Calendar, Cron, Zone, parse_instant};
use kelos_model::workflow::ProjectVersion;
use kelos_model::{Deadline, PoolId, RunName, SlotState, StepName, WorkflowId};
use rquickjs::{Ctx, Function, IntoJs, Object, Value};

use kelos_model::secret::SecretSource;

use crate::closest;
use crate::code::{ProblemCode, refused};
use crate::desk::Desk;
use crate::problem::Severity;
use crate::recipe::Role;
use crate::written_path::check_written_path;
use crate::{events, fault};

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

/// Makes the `host` object of a world.
pub(crate) fn install<'js>(ctx: &Ctx<'js>, desk: &Rc<Desk>) -> rquickjs::Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    host.set("file", &*desk.file)?;
    host.set("states", SlotState::ALL.map(SlotState::as_str).to_vec())?;
    let sandbox = desk.session.sandbox();
    host.set("tested", sandbox.is_some() || desk.role == Role::Tests)?;
    host.set("prefix", sandbox.map_or("", |sandbox| &sandbox.prefix))?;
    host.set("suffix", sandbox.map_or("", |sandbox| &sandbox.suffix))?;
    let define = |name: &str, function: Function<'js>| host.set(name, function);
    define("id", Function::new(ctx.clone(), |id: String| words(WorkflowId::new(&id)))?)?;
    define("secret", Function::new(ctx.clone(), |source: String| SecretSource::parse(&source).err())?)?;
    define("stepName", Function::new(ctx.clone(), |name: String| words(StepName::new(&name)))?)?;
    define("runName", Function::new(ctx.clone(), |name: String| words(RunName::new(&name)))?)?;
    define("pool", Function::new(ctx.clone(), |name: String| words(PoolId::new(&name)))?)?;
    define("cron", Function::new(ctx.clone(), |text: String| words(Cron::parse(&text)))?)?;
    define("writtenPath", Function::new(ctx.clone(), |path: String| words(check_written_path(&path)))?)?;
    let calendar = |json: String| words(serde_json::from_str::<Calendar>(&json));
    define("calendar", Function::new(ctx.clone(), calendar)?)?;
    let deadline = |json: String| words(serde_json::from_str::<Deadline>(&json));
    define("deadline", Function::new(ctx.clone(), deadline)?)?;
    define("version", Function::new(ctx.clone(), |text: String| words(ProjectVersion::new(&text)))?)?;
    define("zone", Function::new(ctx.clone(), |name: String| words(Zone::parse(&name)))?)?;
    define(
        "closest",
        Function::new(ctx.clone(), |wrong: String, words: Vec<String>| {
            closest(&wrong, words.iter().map(String::as_str)).map(str::to_owned)
        })?,
    )?;
    define(
        "mistyped",
        Function::new(ctx.clone(), |wrong: String, words: Vec<String>| {
            mistyped(&wrong, words.iter().map(String::as_str)).map(str::to_owned)
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
    install_desk(ctx, &host, desk)?;
    events::install(ctx, &host, desk)?;
    Ok(host)
}

/// Adds the functions that read or change the desk.
fn install_desk<'js>(ctx: &Ctx<'js>, host: &Object<'js>, desk: &Rc<Desk>) -> rquickjs::Result<()> {
    let d = desk.clone();
    host.set("now", Function::new(ctx.clone(), move || d.now().as_millisecond() as f64)?)?;
    let d = desk.clone();
    let warn = move |message: String, stack: String, code: String| {
        d.warn(ProblemCode::read(&code).unwrap_or_default(), message, &stack);
    };
    host.set("warn", Function::new(ctx.clone(), warn)?)?;
    let d = desk.clone();
    let blame = move |message: String, stack: String, code: String| {
        d.blame(ProblemCode::read(&code).unwrap_or_default(), message, &stack);
    };
    host.set("blame", Function::new(ctx.clone(), blame)?)?;
    let d = desk.clone();
    let report_field = move |message: String, stack: String, code: String, field: String, is_error: bool| {
        let severity = if is_error { Severity::Error } else { Severity::Warning };
        d.report_field(severity, ProblemCode::read(&code).unwrap_or_default(), message, &stack, &field);
    };
    host.set("reportField", Function::new(ctx.clone(), report_field)?)?;
    let d = desk.clone();
    let blame_step = move |message: String, stack: String, code: String, step: String, text: String| {
        d.blame_step(ProblemCode::read(&code).unwrap_or_default(), message, &stack, [&step, &text]);
    };
    host.set("blameStep", Function::new(ctx.clone(), blame_step)?)?;
    let d = desk.clone();
    let thrown = move |text: String, told: String, stack: String| {
        d.thrown.replace(Some([text, told, stack]));
    };
    host.set("thrown", Function::new(ctx.clone(), thrown)?)?;
    let d = desk.clone();
    host.set("keep", Function::new(ctx.clone(), move |source: String, stack: String| d.keep(&source, &stack))?)?;
    let d = desk.clone();
    let definition = move |json: String, stack: String, call: String| refused(d.define(&json, &stack, &call));
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
    let dates = move |ctx: Ctx<'js>, name: String| answer(&ctx, d.dates(&name));
    host.set("dates", Function::new(ctx.clone(), dates)?)?;
    let d = desk.clone();
    let import = move |ctx: Ctx<'js>, name: String| d.import(&ctx, &name);
    host.set("importDefaults", Function::new(ctx.clone(), import)?)
}
