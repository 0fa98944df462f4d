//! The executor for Spark applications: `spark-submit` as a local command.
//!
//! Absent: processes. They are the command executor's, which this one gives a command to.

use std::path::{Path, PathBuf};

use kelos_engine::executor::{Executor, Reports, Start};
use kelos_model::run::Report;
use kelos_model::{Outcome, RunId};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::CommandExecutor;
use crate::command::check_secrets;

/// On a standalone cluster spark-submit prints how the driver ended, and always exits with 0.
const TELLING: &str = include_str!("spark.sh");

/// Submits Spark applications, and waits for their end.
#[derive(Clone)]
pub struct SparkExecutor {
    commands: CommandExecutor,
}

impl SparkExecutor {
    /// Runs `spark-submit` as the commands of an executor.
    #[must_use]
    pub fn new(commands: CommandExecutor) -> Self {
        Self { commands }
    }
}

impl Executor for SparkExecutor {
    fn start(&self, mut start: Start, reports: Reports) {
        match command(start.whole_settings(), &Places::of_this_process()) {
            Ok(command) => {
                (start.settings, start.properties) = (command, Map::new());
                self.commands.start(start, reports);
            }
            Err(reason) => reports.run(&start.run, Report::Ended { outcome: Outcome::refused(reason) }),
        }
    }

    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        self.commands.check(run, external_id, reports);
    }

    fn cancel(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        self.commands.cancel(run, external_id, reports);
    }
}

/// The settings of a job. Those that the command executor reads itself are in `rest`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settings {
    application: String,
    #[serde(default)]
    args: Vec<String>,
    class: Option<String>,
    master: Option<String>,
    deploy_mode: Option<String>,
    name: Option<String>,
    #[serde(default)]
    conf: Map<String, Value>,
    #[serde(default)]
    jars: Vec<String>,
    #[serde(default)]
    py_files: Vec<String>,
    spark_submit: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The places where `spark-submit` may be.
struct Places {
    spark_home: Option<PathBuf>,
    path: Vec<PathBuf>,
}

impl Places {
    fn of_this_process() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self {
            spark_home: std::env::var_os("SPARK_HOME").map(PathBuf::from),
            path: std::env::split_paths(&path).collect(),
        }
    }
}

/// The settings of the command that submits an application.
fn command(settings: Map<String, Value>, places: &Places) -> Result<Map<String, Value>, String> {
    check_secrets(&settings)?;
    let settings: Settings = serde_json::from_value(Value::Object(settings))
        .map_err(|error| format!("its settings make no sense: {error}"))?;
    let program = program(&settings, places)?;
    let mut argv = telling(&settings);
    argv.push(program);
    argv.extend(options(&settings));
    argv.push(settings.application);
    argv.extend(settings.args);
    let mut command = settings.rest;
    command.insert("command".to_owned(), json!(argv));
    Ok(command)
}

/// The wrapper that makes the exit status show the application's end, where that of spark-submit might not.
fn telling(settings: &Settings) -> Vec<String> {
    let standalone = settings.master.as_deref().map(|master| master.starts_with("spark://"));
    if settings.deploy_mode.as_deref() != Some("cluster") || standalone == Some(false) {
        return Vec::new();
    }
    let strict = if standalone == Some(true) { "STRICT=1\n" } else { "" };
    ["/bin/sh", "-c", &format!("{strict}{TELLING}"), "spark-submit"].map(str::to_owned).into()
}

fn options(settings: &Settings) -> Vec<String> {
    let mut options = Vec::new();
    let mut give = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            options.extend([name.to_owned(), value]);
        }
    };
    let list = |items: &[String]| (!items.is_empty()).then(|| items.join(","));
    give("--master", settings.master.clone());
    give("--deploy-mode", settings.deploy_mode.clone());
    give("--name", settings.name.clone());
    give("--class", settings.class.clone());
    give("--jars", list(&settings.jars));
    give("--py-files", list(&settings.py_files));
    for (name, value) in waiting(settings).iter().chain(&settings.conf) {
        give("--conf", Some(format!("{name}={}", text(value))));
    }
    options
}

/// The settings that make spark-submit wait until the application has ended, where it would not by default. Those of
/// the job come later on the command line, and take precedence.
/// says comes later on the command line, and wins.
fn waiting(settings: &Settings) -> Map<String, Value> {
    let mut conf = Map::new();
    if settings.deploy_mode.as_deref() == Some("cluster") {
        for kind in ["yarn", "standalone", "kubernetes"] {
            let infix = if kind == "kubernetes" { "submission" } else { "submit" };
            conf.insert(format!("spark.{kind}.{infix}.waitAppCompletion"), Value::Bool(true));
        }
    }
    conf
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Finds `spark-submit`: by the settings of the job, below the `SPARK_HOME` of the job or the server, on the path.
fn program(settings: &Settings, places: &Places) -> Result<String, String> {
    const HINT: &str = "set `sparkSubmit` in the job, or SPARK_HOME where the server is started";
    if let Some(given) = &settings.spark_submit {
        let there = !given.contains('/') || Path::new(given).is_file();
        return if there { Ok(given.clone()) } else { Err(format!("there is no program {given} (`sparkSubmit`)")) };
    }
    let own_home = settings.rest.get("env").and_then(|env| env.get("SPARK_HOME")).and_then(Value::as_str);
    if let Some(home) = own_home.map(PathBuf::from).or_else(|| places.spark_home.clone()) {
        let program = home.join("bin/spark-submit");
        return match program.is_file() {
            true => Ok(program.to_string_lossy().into_owned()),
            false => Err(format!("there is no program {}: {HINT}", program.display())),
        };
    }
    let on_path = places.path.iter().map(|folder| folder.join("spark-submit")).find(|program| program.is_file());
    on_path
        .map(|program| program.to_string_lossy().into_owned())
        .ok_or_else(|| format!("there is no spark-submit on the server's PATH: {HINT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nowhere() -> Places {
        Places { spark_home: None, path: vec!["/nowhere".into()] }
    }

    fn made(settings: Value) -> Result<Map<String, Value>, String> {
        command(settings.as_object().unwrap().clone(), &nowhere())
    }

    #[test]
    fn a_job_becomes_a_command_line() {
        let made = made(json!({
            "application": "/jobs/a.jar", "args": ["in", "out"], "class": "org.example.A", "master": "yarn",
            "deployMode": "cluster", "name": "a", "conf": {"spark.executor.memory": "1g", "spark.x": 2},
            "jars": ["b.jar", "c.jar"], "sparkSubmit": "spark-submit", "env": {"A": "1"}, "timeoutSeconds": 9,
        }));
        let made = made.unwrap();
        assert_eq!(
            made["command"],
            json!([
                "spark-submit",
                "--master",
                "yarn",
                "--deploy-mode",
                "cluster",
                "--name",
                "a",
                "--class",
                "org.example.A",
                "--jars",
                "b.jar,c.jar",
                "--conf",
                "spark.yarn.submit.waitAppCompletion=true",
                "--conf",
                "spark.standalone.submit.waitAppCompletion=true",
                "--conf",
                "spark.kubernetes.submission.waitAppCompletion=true",
                "--conf",
                "spark.executor.memory=1g",
                "--conf",
                "spark.x=2",
                "/jobs/a.jar",
                "in",
                "out"
            ])
        );
        assert_eq!((&made["env"], &made["timeoutSeconds"]), (&json!({"A": "1"}), &json!(9)));
    }

    /// The exit status of the wrapper for this output and exit status of spark-submit.
    fn exit_status(master: &str, says: &str, status: i32) -> Option<i32> {
        let made =
            made(json!({"application": "a.jar", "deployMode": "cluster", "master": master, "sparkSubmit": "sh"}));
        let command = made.unwrap()["command"].clone();
        let mut argv: Vec<&str> = command.as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let program = argv.iter().position(|word| *word == "sh").unwrap();
        argv.truncate(program + 1);
        let script = format!("echo '{says}'; exit {status}");
        argv.extend(["-c", &script]);
        let output = std::process::Command::new(argv[0]).args(&argv[1..]).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).starts_with(says));
        output.status.code()
    }

    #[test]
    fn on_a_standalone_cluster_what_it_says_counts() {
        let says = |state: &str| {
            format!("INFO ClientEndpoint: State of driver driver-1-0002 is {state}, exiting spark-submit JVM.")
        };
        assert_eq!(exit_status("spark://m:7077", &says("FINISHED"), 0), Some(0));
        assert_eq!(exit_status("spark://m:7077", &says("FAILED"), 0), Some(1));
        assert_eq!(exit_status("spark://m:7077", "", 0), Some(1));
        assert_eq!(exit_status("spark://m:7077", &says("FINISHED"), 7), Some(7));
    }

    #[test]
    fn elsewhere_the_exit_status_counts() {
        let made = made(json!({"application": "a.jar", "deployMode": "cluster", "master": "yarn", "sparkSubmit": "x"}));
        assert_eq!(made.unwrap()["command"][0], "x");
    }

    #[test]
    fn a_missing_spark_submit_is_told_with_a_hint() {
        assert_eq!(
            made(json!({"application": "a.py"})).unwrap_err(),
            "there is no spark-submit on the server's PATH: set `sparkSubmit` in the job, or SPARK_HOME where the \
             server is started"
        );
        assert_eq!(
            made(json!({"application": "a.py", "env": {"SPARK_HOME": "/nowhere"}})).unwrap_err(),
            "there is no program /nowhere/bin/spark-submit: set `sparkSubmit` in the job, or SPARK_HOME where the \
             server is started"
        );
        assert_eq!(
            made(json!({"application": "a.py", "sparkSubmit": "/nowhere/x"})).unwrap_err(),
            "there is no program /nowhere/x (`sparkSubmit`)"
        );
    }

    #[test]
    fn settings_without_an_application_are_refused() {
        assert_eq!(made(json!({})).unwrap_err(), "its settings make no sense: missing field `application`");
    }
}
