//! Where apps are described beside scripts: options of the commands that load a folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
#[cfg(feature = "redis")]
use kelos_door_stolos::RedisApps;
use kelos_door_stolos::{CommandApps, TasksJson};
use kelos_model::WorkflowId;
use kelos_model::jobs::{JobKeys, JobTemplate, Kind};
use kelos_model::workflow::WorkflowRow;
use kelos_sandbox::apps::{AppFormat, AppsSource};
#[cfg(feature = "redis")]
use kelos_tls::{Trust, TrustSettings};

use crate::failure::Failure;

/// The variable that holds the password of Redis.
#[cfg(feature = "redis")]
const PASSWORD: &str = "KELOS_REDIS_PASSWORD";
/// The file of apps, in a folder of scripts.
pub(crate) const TASKS_JSON: &str = "tasks.json";

/// Apps that are described beside the scripts.
#[derive(clap::Args, Default, Clone)]
pub(crate) struct Apps {
    /// File that describes the apps [default: tasks.json in the folder, if it exists]. identifiers.json beside it
    /// restricts the values of identifiers, and plugins/ holds job types of your own
    #[arg(long, value_name = "FILE", env = "STOLOS_TASKS_JSON", hide_env_values = true, value_hint = clap::ValueHint::FilePath)]
    pub(crate) tasks_json: Option<PathBuf>,
    /// Read the apps from Redis, as Stolos stores them, instead of a file: redis://localhost:6379/0?prefix=stolos/. The
    /// password comes from KELOS_REDIS_PASSWORD
    #[arg(long, value_name = "URL", env = "KELOS_TASKS_REDIS", hide_env_values = true, value_hint = clap::ValueHint::Url)]
    pub(crate) tasks_redis: Option<String>,
    /// Read the apps from what this command prints, in the format of tasks.json; it is asked again every thirty seconds. Its words are
    /// separated by white space, no shell is involved
    #[arg(
        long,
        value_name = "COMMAND",
        env = "KELOS_TASKS_COMMAND",
        hide_env_values = true,
        conflicts_with = "tasks_redis"
    )]
    pub(crate) tasks_command: Option<String>,
    /// Job id template of apps that have none, such as {date}_{client_id}
    #[arg(long, value_name = "TEMPLATE", env = "STOLOS_JOB_ID_DEFAULT_TEMPLATE", hide_env_values = true)]
    pub(crate) template: Option<String>,
}

/// The format of apps in `tasks.json`, and in scripts that describe apps in the same way.
pub(crate) fn format() -> Arc<dyn AppFormat> {
    Arc::new(TasksJson)
}

impl Apps {
    /// The apps that the environment names.
    pub(crate) fn of_environment() -> Apps {
        let said = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Apps {
            tasks_json: said("STOLOS_TASKS_JSON").map(PathBuf::from),
            template: said("STOLOS_JOB_ID_DEFAULT_TEMPLATE"),
            tasks_redis: said("KELOS_TASKS_REDIS"),
            tasks_command: said("KELOS_TASKS_COMMAND"),
        }
    }

    /// Whether it is said where apps are, be that here or in the variables of Stolos.
    pub(crate) fn are_named(&self) -> bool {
        let of_stolos = || Backend::of_stolos(|name| std::env::var(name).ok());
        let options = [self.tasks_redis.is_some(), self.tasks_command.is_some(), self.tasks_json.is_some()];
        options.contains(&true) || !matches!(of_stolos(), Ok(Backend::File))
    }

    /// The source of the apps of a folder.
    pub(crate) fn source(&self, dir: &Path) -> Result<AppsSource, Failure> {
        if let Some(template) = &self.template {
            JobTemplate::new(template).map_err(|error| Failure::usage(format!("use --template: {error}")))?;
        }
        let backend = match (&self.tasks_redis, &self.tasks_command) {
            (Some(address), _) => Backend::Redis(address.clone()),
            (None, Some(line)) => Backend::Command(line.clone()),
            (None, None) => Backend::of_stolos(|name| std::env::var(name).ok())?,
        };
        match backend {
            Backend::Redis(address) => return self.in_redis(&address, dir),
            Backend::Command(line) => {
                let apps = CommandApps::new(&line).map_err(Failure::usage)?;
                return apps
                    .source(dir, self.template.clone())
                    .map_err(|error| Failure::bad(format!("start a thread: {error}")));
            }
            Backend::File => {}
        }
        let path = match &self.tasks_json {
            None => dir.join(TASKS_JSON),
            Some(path) => std::fs::canonicalize(path)
                .map_err(|error| Failure::usage(format!("use {} as the file of apps: {error}", path.display())))?,
        };
        Ok(AppsSource::of_file(&path, self.template.clone()))
    }
}

impl Apps {
    /// Apps that are kept in Redis.
    #[cfg(feature = "redis")]
    fn in_redis(&self, address: &str, dir: &Path) -> Result<AppsSource, Failure> {
        let password = std::env::var(PASSWORD).ok();
        let trust = Trust::new(TrustSettings::of_environment()).map_err(Failure::usage)?;
        let apps = RedisApps::new(address, password.as_deref(), &trust);
        let source = apps.and_then(|apps| apps.source(dir, self.template.clone()));
        source.map_err(|error| Failure::usage(error.to_string()))
    }

    #[cfg(not(feature = "redis"))]
    fn in_redis(&self, _: &str, _: &Path) -> Result<AppsSource, Failure> {
        let why = "take the apps from Redis: this program was built without its client, the feature `redis`";
        Err(Failure::usage(why.to_owned()))
    }
}

/// The place of the apps.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// A file.
    File,
    /// Redis, at this address.
    Redis(String),
    /// A command, which prints them.
    Command(String),
}

impl Backend {
    /// The place that the variables of Stolos name.
    pub(crate) fn of_stolos(variable: impl Fn(&str) -> Option<String>) -> Result<Backend, Failure> {
        let variable =
            |name: &str, usual: &str| variable(&format!("STOLOS_{name}")).unwrap_or_else(|| usual.to_owned());
        let backend = variable("CONFIGURATION_BACKEND", "json");
        let (host, port) = (variable("REDIS_HOST", "localhost"), variable("REDIS_PORT", "6379"));
        let (database, prefix) = (variable("REDIS_DB", "0"), variable("REDIS_KEY_PREFIX", "stolos/"));
        if let Some(line) = backend.strip_prefix("exec:") {
            return Ok(Backend::Command(line.to_owned()));
        }
        match &*backend {
            "json" | "" => Ok(Backend::File),
            "redis" | "majorityredis" => {
                Ok(Backend::Redis(format!("redis://{host}:{port}/{database}?prefix={prefix}")))
            }
            _ => Err(Failure::usage(format!(
                "find the apps: STOLOS_CONFIGURATION_BACKEND is \"{backend}\", expected json, redis or exec:COMMAND: code of Python is not \
                 called, but a program that prints what it has can be"
            ))),
        }
    }
}

/// A job that somebody could submit: of the last app that nothing depends on.
pub(crate) fn example(rows: &[WorkflowRow], now: Timestamp) -> Option<(String, String)> {
    let keyed = || rows.iter().filter_map(|row| Some((&row.definition, row.definition.keys.jobs()?)));
    let parents: BTreeSet<&WorkflowId> = keyed().flat_map(|(_, jobs)| jobs.parents()).collect();
    let leaves = keyed().filter(|(workflow, _)| !parents.contains(&workflow.id));
    let (last, jobs) = leaves.max_by_key(|(workflow, _)| (&workflow.source.file, workflow.source.line))?;
    let values: Vec<Arc<str>> = jobs.template.identifiers().map(|name| value(jobs, name, now)).collect();
    let id = jobs.normal(&jobs.template.fill(&values)).ok()?;
    Some((last.id.to_string(), id.to_string()))
}

/// Something that may stand for an identifier.
fn value(jobs: &JobKeys, name: &Arc<str>, now: Timestamp) -> Arc<str> {
    if let Some(first) = jobs.domains.get(name).and_then(|domain| domain.first()) {
        return first.clone();
    }
    match jobs.identifiers.get(name) {
        Some(Kind::Date { form }) => form.write(now.to_zoned(TimeZone::UTC).date()).into(),
        Some(Kind::Integer { min, .. }) => min.unwrap_or(1).to_string().into(),
        Some(Kind::Choice { of }) => of.first().cloned().unwrap_or_default(),
        _ => "x".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::Backend;

    #[test]
    fn the_variables_of_stolos_name_a_file_redis_or_a_command_and_nothing_else() {
        let of = |backend: &'static str| {
            Backend::of_stolos(move |name| (name == "STOLOS_CONFIGURATION_BACKEND").then(|| backend.to_owned()))
        };
        assert_eq!(Backend::of_stolos(|_| None).unwrap(), Backend::File);
        assert_eq!(of("json").unwrap(), Backend::File);
        assert_eq!(of("redis").unwrap(), Backend::Redis("redis://localhost:6379/0?prefix=stolos/".to_owned()));
        assert_eq!(of("exec:bin/tasks --all").unwrap(), Backend::Command("bin/tasks --all".to_owned()));
        let said = of("mypython.module.mybackend.MyMapping").unwrap_err().message;
        assert!(said.contains("expected json, redis or exec:COMMAND"), "{said}");
    }
}
