//! The executor for local commands.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kelos_engine::executor::{Executor, Reports, Start, check_variable};
use kelos_engine::secrets::{SecretError, Secrets};
use kelos_model::jobs::shown;
use kelos_model::run::Report;
use kelos_model::secret::{DeclaredSecret, secret_paths};
use kelos_model::shell::{ShellFault, ShellText, Trust, trust_of};
use kelos_model::time::format_full;
use kelos_model::{FailureCode, Outcome, RunId};
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use crate::local::{self, Check, Exit, Launcher, LocalError, RunRef, RunSecrets, RunSpec, StartError};

/// The wait before files that can't be read are tried again.
const FILE_TROUBLE: Duration = Duration::from_secs(2);

/// Runs local commands through shims, so that they outlive the server.
#[derive(Clone)]
pub struct CommandExecutor {
    launcher: Launcher,
    runtime: Handle,
    secrets: Secrets,
    /// Runs whose end is being waited for, so that a question about one doesn't make it two.
    watched: Arc<Mutex<BTreeSet<RunId>>>,
}

impl CommandExecutor {
    /// Runs commands with a launcher, watching them on a runtime.
    #[must_use]
    pub fn new(launcher: Launcher, runtime: Handle) -> Self {
        Self { launcher, runtime, secrets: Secrets::default(), watched: Arc::default() }
    }

    /// The same, with the secrets and the users that its operator allows.
    #[must_use]
    pub fn with_secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// The command of a run, with the secrets that it is given.
    async fn spec(&self, start: &Start) -> Result<RunSpec, Outcome> {
        let mut settings = start.whole_settings();
        check_secrets(&settings).map_err(Outcome::refused)?;
        let project = &start.workflow.project;
        let declared = take_declared(&mut settings);
        let filled = self.secrets.fill(project, &declared).await.map_err(SecretError::outcome)?;
        let mut spec = spec_of(start, &settings).map_err(Outcome::refused)?;
        let texts = filled.settings.into_iter().filter_map(|(name, value)| match value {
            Value::String(text) => Some((name, text)),
            _ => None,
        });
        spec.secrets = RunSecrets { env: texts.collect(), hidden: filled.values };
        let asked = settings.get("runAs").and_then(Value::as_str);
        spec.run_as = self.secrets.user(project, asked).map_err(Outcome::refused)?;
        Ok(spec)
    }

    /// Waits for the end of a run and reports it, unless that is being done already.
    async fn watch(&self, run: &RunId, reports: &Reports) {
        if !self.watched().insert(run.clone()) {
            return;
        }
        let exit = insist(run, || self.end_of(run)).await;
        self.watched().remove(run);
        report_end(&self.launcher, run, exit, reports).await;
    }

    /// Waits for the end of a run that has started. One without files has lost them, and nothing more will be known of it.
    async fn end_of(&self, run: &RunId) -> Result<Exit, LocalError> {
        match self.launcher.wait(&run_ref(run)).await {
            Err(LocalError::NotStarted(_)) => Ok(Exit::without_folder()),
            end => end,
        }
    }

    fn watched(&self) -> MutexGuard<'_, BTreeSet<RunId>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(work);
    }
}

/// The folder of a run's files.
#[must_use]
pub fn run_ref(run: &RunId) -> RunRef {
    RunRef::new(run.slot.workflow.as_str(), run.slot.key.given(), u64::from(run.number))
}

impl Executor for CommandExecutor {
    fn start(&self, start: Start, reports: Reports) {
        let this = self.clone();
        self.spawn(async move {
            let run = start.run.clone();
            let spec = match this.spec(&start).await {
                Ok(spec) => spec,
                Err(outcome) => return reports.run(&run, Report::Ended { outcome }),
            };
            match this.launcher.start(&spec).await {
                Ok(started) => {
                    reports.run(&run, Report::Started { external_id: started.external_id });
                    this.watch(&run, &reports).await;
                }
                Err(StartError::EmptyCommand(_)) => {
                    let reason = "its command is empty, expected a program and its arguments".to_owned();
                    reports.run(&run, Report::Ended { outcome: Outcome::refused(reason) });
                }
                Err(conflict @ StartError::Conflict { .. }) => {
                    let reason = format!("failed to {conflict}");
                    reports.run(&run, Report::Ended { outcome: Outcome::refused(reason) });
                }
                Err(error) => reports.run(&run, Report::Deferred { reason: format!("failed to {error}") }),
            }
        });
    }

    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        let confirmed = external_id.is_some();
        let (this, run) = (self.clone(), run.clone());
        self.spawn(async move {
            let known = insist(&run, || async { this.launcher.check(&run_ref(&run)).await }).await;
            match known {
                Check::NotStarted if confirmed => {
                    let reason = "its start was confirmed, and its files are gone".to_owned();
                    // So is the way to its processes.
                    reports.run(&run, Report::Ended { outcome: Outcome::Lost { reason } });
                }
                Check::NotStarted => reports.run(&run, Report::NeverStarted),
                Check::Running { external_id } => {
                    reports.run(&run, Report::Started { external_id });
                    this.watch(&run, &reports).await;
                }
                Check::Ended(exit) => report_end(&this.launcher, &run, exit, &reports).await,
            }
        });
    }

    fn cancel(&self, run: &RunId, _external_id: Option<&str>, reports: Reports) {
        let (this, run) = (self.clone(), run.clone());
        self.spawn(async move {
            let exit = insist(&run, || async { this.launcher.cancel(&run_ref(&run)).await }).await;
            this.launcher.keep_copy(&run_ref(&run)).await;
            reports.run(&run, Report::Ended { outcome: outcome_of(exit) });
        });
    }
}

/// Retries until the files of a run can be read: its command may still be running, so an error with files must not end
/// the run.
pub(crate) async fn insist<T, F: Future<Output = Result<T, LocalError>>>(run: &RunId, look: impl Fn() -> F) -> T {
    loop {
        match look().await {
            Ok(found) => return found,
            Err(error) => tracing::warn!(%run, "failed to {error}; trying again"),
        }
        tokio::time::sleep(FILE_TROUBLE).await;
    }
}

/// Reports that a run has ended, and before that what it gives. One that gave more than is kept did not succeed.
async fn report_end(launcher: &Launcher, run: &RunId, exit: Exit, reports: &Reports) {
    let outcome = match (launcher.outputs(&run_ref(run)).await, outcome_of(exit)) {
        (Err(failed), Outcome::Succeeded) => failed,
        (Ok(Some(outputs)), outcome) => {
            reports.run(run, Report::Gave { outputs });
            outcome
        }
        (_, outcome) => outcome,
    };
    // Before the end is reported: a worker that is told to end ends once that is known.
    launcher.keep_copy(&run_ref(run)).await;
    reports.run(run, Report::Ended { outcome });
}

pub(crate) fn outcome_of(exit: Exit) -> Outcome {
    let failed = |reason: String, exit_status, code| Outcome::Failed { reason, exit_status, code };
    match exit.outcome {
        local::Outcome::Exited { code: 0 } => Outcome::Succeeded,
        local::Outcome::Exited { code } => failed(format!("exited with status {code}"), Some(code), None),
        local::Outcome::Signalled { signal } => {
            failed(format!("ended by signal {signal}"), None, Some(FailureCode::SIGNAL))
        }
        local::Outcome::TimedOut => {
            let reason = "took longer than its timeout allows and was ended".to_owned();
            failed(reason, None, Some(FailureCode::TIMED_OUT))
        }
        local::Outcome::Killed => Outcome::Killed,
        local::Outcome::FailedToStart { error } => Outcome::refused(error),
        local::Outcome::Unknown { why } => Outcome::Unknown { reason: why },
        local::Outcome::Lost { why } => Outcome::Lost { reason: why },
    }
}

/// Refuses secrets where everybody on the machine would see them: in the words of a command, and in all that becomes one of them.
pub(crate) fn check_secrets(settings: &Map<String, Value>) -> Result<(), String> {
    for (path, declared) in secret_paths(settings) {
        declared.map_err(|why| format!("`{path}`: {why}"))?;
        if !path.starts_with("env.") {
            return Err(format!(
                "`{path}` declares a secret, which the list of processes would show: declare it as a variable of `env`, and have \
                 the command read that"
            ));
        }
    }
    Ok(())
}

/// Takes the variables out of settings whose values are secrets.
fn take_declared(settings: &mut Map<String, Value>) -> Map<String, Value> {
    let Some(Value::Object(env)) = settings.get_mut("env") else { return Map::new() };
    let (declared, plain) = std::mem::take(env)
        .into_iter()
        .partition(|(_, value)| DeclaredSecret::of(value).is_some_and(|read| read.is_ok()));
    *env = plain;
    declared
}

/// The run that the settings of a `command` job describe.
fn spec_of(start: &Start, settings: &Map<String, Value>) -> Result<RunSpec, String> {
    let argv = match (settings.get("shell"), settings.get("command")) {
        (Some(Value::String(text)), None) => vec!["/bin/sh".to_owned(), "-c".to_owned(), text.clone()],
        (None, Some(command)) => strings(command).ok_or("`command` must be a list of strings")?,
        (Some(_), Some(_)) => return Err("it has both `command` and `shell`, expected one of them".to_owned()),
        _ => return Err("it has neither `command` (a list of strings) nor `shell` (a text)".to_owned()),
    };
    let mut spec = RunSpec::new(run_ref(&start.run), start.run.to_string(), argv);
    spec.env = environment(start, settings)?;
    if let Some(Value::String(text)) = settings.get("shell") {
        judge(text, start, settings, &spec.env)?;
    }
    spec.notes = start.given.left_out().into_iter().collect();
    spec.project = start.workflow.project.clone();
    spec.lease = start.lease;
    spec.cwd = settings.get("cwd").and_then(Value::as_str).map(Into::into);
    spec.timeout = seconds(settings, "timeoutSeconds")?;
    spec.grace = seconds(settings, "graceSeconds")?;
    spec.log_limit_bytes = settings.get("logLimitBytes").and_then(Value::as_u64);
    Ok(spec)
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|one| one.as_str().map(str::to_owned)).collect()
}

fn seconds(settings: &Map<String, Value>, name: &str) -> Result<Option<Duration>, String> {
    let Some(value) = settings.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    let seconds = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.map(Some).ok_or_else(|| format!("`{name}` is {value}, expected a number of seconds"))
}

/// Refuses a text in which a shell would evaluate the value of a variable that others may set.
fn judge(
    text: &str,
    start: &Start,
    settings: &Map<String, Value>,
    env: &BTreeMap<String, String>,
) -> Result<(), String> {
    let own = |settings: &Map<String, Value>, name: &str| settings.get("env").and_then(|env| env.get(name)).cloned();
    // Values of the definition itself come from the author of the command.
    let is_fixed = |name: &str| {
        let defined = own(&start.workflow.job.settings, name);
        defined.is_some() && defined == own(settings, name)
    };
    let variable = |name: &str| env.get(name).filter(|_| !is_fixed(name)).map(|value| trust_of(value));
    match evaluated(text, variable) {
        None => Ok(()),
        Some(fault) => {
            let value = env.get(&fault.name).map_or("", String::as_str);
            Err(format!("its command can't be given \"{}\": {fault}", shown(value)))
        }
    }
}

/// A variable that a shell would evaluate in a text, though it may be anything.
#[must_use]
pub fn evaluated(text: &str, variable: impl Fn(&str) -> Option<Trust>) -> Option<ShellFault> {
    ShellText::of_variables(text).faults(|_| Trust::Free, variable).into_iter().next()
}

/// Whether a value may be a variable of that name: an identifier called PATH must not choose what is executed, an argument called
/// `BASH_FUNC_ls%%` be a function of bash, and one called `http_proxy` say through whom programs speak.
fn is_ours(name: &str) -> bool {
    let speaks_to_programs = name.ends_with("_proxy") || name.starts_with("npm_config_");
    name.contains(|letter: char| letter.is_ascii_lowercase()) && is_usual(name) && !speaks_to_programs
}

/// Whether a name consists of what identifiers and arguments are usually called by.
fn is_usual(name: &str) -> bool {
    name.chars().all(|letter: char| letter.is_alphanumeric() || "_-.".contains(letter))
}

/// The slot's values under their own names (so that `${year}` means the same in a shell text as in a
/// template), the run's under `KELOS_…`, and then what the job sets.
fn environment(start: &Start, settings: &Map<String, Value>) -> Result<BTreeMap<String, String>, String> {
    let slot = &start.run.slot;
    let values = start.given.values(&start.workflow, &slot.key);
    // Of two with the same name the first one counts.
    let named = values.named().into_iter().rev().filter(|(name, _)| is_ours(name));
    let left_out = start.given.left_out();
    let is_there = |name: &str| left_out.is_none() || !start.given.is_of_facts(name);
    let mut env: BTreeMap<String, String> =
        named.filter(|(name, _)| is_there(name)).map(|(name, value)| (name.into_owned(), value)).collect();
    env.iter().try_for_each(|(name, value)| check_variable(name, value))?;
    env.extend(start.given.variables()?);
    env.insert("KELOS_WORKFLOW".to_owned(), slot.workflow.to_string());
    env.insert("KELOS_SLOT".to_owned(), slot.short());
    let key = start.subject();
    env.insert("KELOS_TIME".to_owned(), key.given());
    if let Some(period) = start.workflow.keys.period_of_run(&key, start.given.batch.as_ref()) {
        env.insert("KELOS_END".to_owned(), format_full(period.end));
    }
    if let Some((last, slots)) = start.given.extent(&start.workflow, &slot.key) {
        env.insert("KELOS_LAST".to_owned(), format_full(last));
        env.insert("KELOS_SLOTS".to_owned(), slots.to_string());
    }
    env.insert("KELOS_RUN".to_owned(), start.run.number.to_string());
    let Some(own) = settings.get("env") else { return Ok(env) };
    let own = own.as_object().ok_or("`env` must be an object of strings")?;
    for (name, value) in own {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Err(format!("`env.{name}` is {value}, expected a string")),
        };
        check_variable(name, &value)?;
        env.insert(name.clone(), value);
    }
    Ok(env)
}
