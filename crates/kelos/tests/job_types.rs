//! Kinds of jobs of a `tasks.json`, by the executors of a node: bash, pyspark and people's own.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kelos::local_executors;
use kelos_core::Input;
use kelos_door_stolos::apps;
use kelos_engine::executor::{Reports, RunInput, Start};
use kelos_engine::secrets::Secrets;
use kelos_executors::run_ref;
use kelos_model::run::Report;
use kelos_model::{Outcome, RunId, SlotRef, Workflow};
use kelos_sandbox::apps::Settings;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::local_support::Fixture;

/// How long a job may take on a busy machine before a test gives up.
const DEADLINE: Duration = Duration::from_secs(240);

/// An app and the place where its jobs are run.
struct Bench {
    fixture: Fixture,
    workflow: Arc<Workflow>,
}

impl Bench {
    /// The one app of a file that says this of it.
    fn new(app: Value) -> Bench {
        let fixture = Fixture::new();
        Bench { workflow: read(&app, &fixture), fixture }
    }

    fn start(&self, job_id: &str) -> Start {
        let key = self.workflow.keys.read(job_id).unwrap();
        Start {
            run: RunId { slot: SlotRef::new(self.workflow.id.clone(), key), number: 1 },
            workflow: self.workflow.clone(),
            settings: self.workflow.job.settings.clone(),
            properties: Map::new(),
            given: RunInput::default(),
            worker: None,
            lease: None,
            earlier: Vec::new(),
        }
    }

    /// How a job ended, and what it printed.
    async fn run(&self, job_id: &str) -> (Outcome, String) {
        let start = self.start(job_id);
        let (reports, mut reported) = reports();
        let executors =
            local_executors(&self.fixture.launcher, &Secrets::default(), &tokio::runtime::Handle::current());
        executors.get(&self.workflow.job.executor).start(start.clone(), reports);
        let outcome = end(&mut reported).await;
        let log = self.fixture.launcher.dirs().path(&run_ref(&start.run)).join("log");
        (outcome, std::fs::read_to_string(log).unwrap_or_default())
    }
}

fn read(app: &Value, fixture: &Fixture) -> Arc<Workflow> {
    let identifiers = r#"{"date": "date", "n": "integer"}"#;
    let mut settings = Settings::new(Some("{date}_{n}_{x}"), Some(identifiers)).unwrap();
    settings.folder = Some(fixture.work(""));
    let read = apps(&json!({ "app": app }).to_string(), "tasks.json", &settings);
    Arc::new(read.unwrap().workflows.remove(0))
}

fn reports() -> (Reports, UnboundedReceiver<Report>) {
    let (send, reported) = unbounded_channel();
    let reports = Reports::new(move |input| {
        if let Input::RunReported { report, .. } = input {
            let _ = send.send(report);
        }
    });
    (reports, reported)
}

async fn end(reported: &mut UnboundedReceiver<Report>) -> Outcome {
    loop {
        let report = tokio::time::timeout(DEADLINE, reported.recv()).await.expect("a report in time").unwrap();
        match report {
            Report::Ended { outcome } => return outcome,
            Report::Started { .. } => {}
            other => panic!("expected that it starts and ends, not {other:?}"),
        }
    }
}

fn program(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_command_is_given_the_values_of_its_job() {
    let bench = Bench::new(json!({
        "bash_cmd": "echo {app_name}-{job_id} {n} {year} {x:raw} $x '{{}}'; echo to stderr >&2", "timeout": 60,
    }));
    let (outcome, log) = bench.run("20140601_007_a").await;
    assert_eq!(outcome, Outcome::Succeeded);
    assert_eq!(log, "app-20140601_7_a 7 2014 a a {}\nto stderr\n");
}

/// Values of job ids were pasted into the text of the shell.
#[tokio::test]
async fn fault_13_what_stands_in_a_job_id_is_not_run() {
    let bench = Bench::new(json!({ "bash_cmd": "printf '%s|' {x} '{x}' \"{x}\" \"$(printf %s {x})\"" }));
    for evil in ["; echo $HOME", "$(touch INJECTED)", "`id`", "' \" ; id #", "*"] {
        let (outcome, log) = bench.run(&format!("20140601_1_{evil}")).await;
        assert_eq!(outcome, Outcome::Succeeded);
        assert_eq!(log, format!("{evil}|").repeat(4));
    }
}

/// A job whose command was missing was run again and again, and no attempt was counted.
#[tokio::test]
async fn fault_5_a_job_without_a_command_is_refused() {
    let (outcome, _) = Bench::new(json!({})).run("20140601_1_a").await;
    let reason = "there is nothing to run: give its app a bash_cmd".to_owned();
    assert_eq!(outcome, Outcome::refused(reason));
    let mut bench = Bench::new(json!({ "bash_cmd": "echo {x}" }));
    let mut older = Workflow::clone(&bench.workflow);
    older.job.settings.insert("shell".to_owned(), json!("echo {client}"));
    bench.workflow = Arc::new(older);
    let reason = "its command has {client}, which is not known".to_owned();
    assert_eq!(bench.run("20140601_1_a").await.0, Outcome::refused(reason));
    let (outcome, _) = Bench::new(json!({ "bash_cmd": "no-such-program-anywhere" })).run("20140601_1_a").await;
    assert_eq!(
        outcome,
        Outcome::Failed { reason: "exited with status 127".to_owned(), exit_status: Some(127), code: None }
    );
}

#[tokio::test]
async fn a_program_of_ones_own_reads_its_job_and_says_how_it_went() {
    let fixture = Fixture::new();
    program(&fixture.work("plugins/count"), "#!/bin/sh\ncat\necho \" for $KELOS_WORKFLOW\"\nexit 3\n");
    let workflow = read(&json!({ "job_type": "count", "max_retry": 2, "table": "${year} {x}" }), &fixture);
    let bench = Bench { fixture, workflow };
    let (outcome, log) = bench.run("20140601_7_a'b").await;
    assert_eq!(
        outcome,
        Outcome::Failed { reason: "exited with status 3".to_owned(), exit_status: Some(3), code: None }
    );
    let job: Value = serde_json::from_str(log.strip_suffix(" for app\n").unwrap()).unwrap();
    let expected = json!({
        "app": "app", "jobId": "20140601_7_a'b", "identifiers": { "date": "20140601", "n": 7, "x": "a'b" }, "run": 1,
        "config": { "job_type": "count", "max_retry": 2, "table": "${year} {x}" },
    });
    assert_eq!(job, expected);
    std::fs::remove_file(bench.fixture.work("plugins/count")).unwrap();
    let mut again = bench.start("20140601_7_c");
    again.run.number = 2;
    let (reports, mut reported) = reports();
    let executors = local_executors(&bench.fixture.launcher, &Secrets::default(), &tokio::runtime::Handle::current());
    executors.get("plugin").start(again, reports);
    let Outcome::Refused { reason, .. } = end(&mut reported).await else { panic!("expected that it is refused") };
    assert!(reason.starts_with("there is no "), "{reason}");
}

#[tokio::test]
async fn a_variable_that_is_not_set_is_told_before_spark_is_started() {
    let bench = Bench::new(json!({ "job_type": "pyspark", "pymodule": "m", "env_from_os": ["KELOS_TEST_NOT_SET"] }));
    let reason = "the variable KELOS_TEST_NOT_SET, which env_from_os names, is not set here".to_owned();
    assert_eq!(bench.run("20140601_1_a").await.0, Outcome::refused(reason));
}

mod real {
    use kelos_test_servers::address;

    use super::*;

    const MODULE: &str = r#"
import os

def main(MAIN):
    BODY
"#;

    /// Runs a module on the Spark that there is, and gives what it wrote; none where there is no Spark.
    async fn wrote(parameters: &str, body: &str) -> Option<(Outcome, String, String)> {
        let submit = address("KELOS_TEST_SPARK_SUBMIT")?;
        let fixture = Fixture::new();
        let module = MODULE.replace("MAIN", parameters).replace("BODY", body);
        std::fs::write(fixture.work("job.py"), module).unwrap();
        std::fs::write(fixture.work("in-20140601"), "a b\nc\n").unwrap();
        let work = fixture.work("").display().to_string();
        let workflow = read(
            &json!({
                "job_type": "pyspark", "pymodule": "job", "spark_conf": { "spark.master": "local[1]", "spark.ui.enabled": false },
                "env": { "OUT": format!("{work}/out"), "PYTHONPATH": work }, "env_from_os": ["HOME"],
                "uris": [format!("{work}/job.py")], "read_fp": format!("{work}/in-{{date}}"),
                "write_fp": format!("{work}/out-{{n}}"),
            }),
            &fixture,
        );
        let mut own = Workflow::clone(&workflow);
        own.job.settings.insert("sparkSubmit".to_owned(), json!(submit));
        let bench = Bench { fixture, workflow: Arc::new(own) };
        let (outcome, log) = bench.run("20140601_7_x").await;
        let file = |name: &str| std::fs::read_to_string(bench.fixture.work(name)).unwrap_or_default();
        Some((outcome, file("out") + &file("out-7/part-00000"), log))
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with spark -- cargo test -- --ignored real::"]
    async fn a_module_is_called_by_what_it_asks_for() {
        let write = "open(os.environ[\"OUT\"], \"w\").write";
        let with_context =
            format!("{write}(f'{{sc.parallelize([1, 2]).sum()}} {{date}} {{n + 1}} {{ns.job_id}} {{sc.appName}}')");
        let Some((outcome, out, log)) = wrote("sc, ns, date, n, **rest", &with_context).await else { return };
        assert_eq!((outcome, &*out), (Outcome::Succeeded, "3 20140601 8 20140601_7_x app__20140601_7_x"), "{log}");
        let with_file = format!("{write}(f'{{textFile.count()}} {{x}}')");
        let Some((outcome, out, log)) = wrote("textFile, x", &with_file).await else { return };
        assert_eq!((outcome, &*out), (Outcome::Succeeded, "2 x"), "{log}");
        let Some((outcome, out, log)) = wrote("element, **ids", "return f'{element} {ids[\"n\"]}'").await else {
            return;
        };
        assert_eq!((outcome, &*out), (Outcome::Succeeded, "a b 7\nc 7\n"), "{log}");
        let Some((outcome, _, log)) = wrote("sc", "raise ValueError('no such client')").await else { return };
        assert_eq!(
            outcome,
            Outcome::Failed { reason: "exited with status 1".to_owned(), exit_status: Some(1), code: None }
        );
        assert!(log.contains("no such client"), "{log}");
    }
}
