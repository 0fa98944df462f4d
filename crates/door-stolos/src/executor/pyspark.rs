//! Modules of Python that Spark runs: an application of `spark-submit` that imports the module and calls its `main`.

use std::path::{Path, PathBuf};

use kelos_engine::executor::Start;
use kelos_engine::secrets::Secrets;
use kelos_executors::local::RunDirs;
use kelos_model::shell::Placeholders;
use kelos_model::variables::is_credential;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::translated::{JobValues, identifiers};

/// The application: it runs wherever Spark's driver does.
const RUNNER: &str = include_str!("pyspark.py");

/// The settings of a job. Those that Spark's executor reads itself are in `rest`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settings {
    module: String,
    #[serde(default)]
    conf: Map<String, Value>,
    #[serde(default)]
    env: Map<String, Value>,
    #[serde(default)]
    env_from_os: Vec<String>,
    #[serde(default)]
    uris: Vec<String>,
    read: Option<String>,
    write: Option<String>,
    partitions: Option<u32>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The settings of an application of Spark for a job. The application is kept in the folder of runs.
pub(super) fn application(start: &Start, runs: &RunDirs, secrets: &Secrets) -> Result<Map<String, Value>, String> {
    let asked = start.settings.get("runAs").and_then(Value::as_str);
    if let Some(user) = secrets.user(&start.workflow.project, asked)? {
        return Err(format!(
            "its project runs commands as the user \"{user}\", which jobs of pyspark can't: the application that imports their module is in \
             the folder of runs, which is the server's alone; use a bash_cmd with spark-submit"
        ));
    }
    let settings: Settings = serde_json::from_value(Value::Object(start.whole_settings()))
        .map_err(|error| format!("its settings make no sense: {error}"))?;
    let env = environment(&settings)?;
    let job = job(start, &settings)?;
    let mut conf = settings.conf;
    // A secret would stand on the command line of spark-submit there: the driver alone gets it.
    for (name, value) in env.iter().filter(|(_, value)| value.is_string()) {
        conf.entry(format!("spark.executorEnv.{name}")).or_insert_with(|| value.clone());
    }
    let name = format!("{}__{}", start.run.slot.workflow, start.run.slot.key.short());
    let mut application = settings.rest;
    application.extend([
        ("application".to_owned(), json!(runner(runs.root())?)),
        ("name".to_owned(), json!(name)),
        ("args".to_owned(), json!([job.to_string()])),
        ("conf".to_owned(), Value::Object(conf)),
        ("pyFiles".to_owned(), json!(settings.uris)),
        ("env".to_owned(), Value::Object(env)),
    ]);
    Ok(application)
}

/// The variables that the job sets, and those that it takes over from here.
fn environment(settings: &Settings) -> Result<Map<String, Value>, String> {
    let mut env = settings.env.clone();
    for name in &settings.env_from_os {
        if is_credential(name) {
            return Err(format!(
                "env_from_os names {name}, which is for secrets, and would show it in the list of processes: declare it in env, as \
                 in {{\"{name}\": {{\"secret\": \"env:{name}\"}}}}"
            ));
        }
        let value = std::env::var(name);
        let value = value.map_err(|_| format!("the variable {name}, which env_from_os names, is not set here"))?;
        env.insert(name.clone(), Value::String(value));
    }
    Ok(env)
}

/// The description of the job that the application gets.
fn job(start: &Start, settings: &Settings) -> Result<Value, String> {
    let values = JobValues::of(start);
    let fill = |text: &Option<String>| {
        let fill = |text: &String| Placeholders::read(text)?.fill(|name| values.get(name).map(str::to_owned));
        text.as_ref().map(fill).transpose()
    };
    Ok(json!({
        "module": settings.module, "app_name": start.run.slot.workflow, "job_id": start.run.slot.key.short(),
        "identifiers": identifiers(start), "read_fp": fill(&settings.read)?, "write_fp": fill(&settings.write)?,
        "minPartitions": settings.partitions,
    }))
}

/// The file of the application: written once for each version of it, whole or not at all.
fn runner(folder: &Path) -> Result<PathBuf, String> {
    let digest = kelos_executors::local::fnv1a_128(RUNNER.as_bytes());
    let path = folder.join(format!(".pyspark-{digest:032x}.py"));
    if !path.exists() {
        let write = || {
            std::fs::create_dir_all(folder)?;
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            std::io::Write::write_all(&mut file, RUNNER.as_bytes())?;
            file.persist(&path).map(drop).map_err(|error| error.error)
        };
        write().map_err(|error: std::io::Error| {
            format!("the application of Spark can't be written to {}: {error}", path.display())
        })?;
    }
    Ok(path)
}
