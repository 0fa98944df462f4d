//! Spark applications, by the real `spark-submit`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kelos_core::Input;
use kelos_engine::executor::{Executor, Reports, RunInput, Start};
use kelos_executors::{CommandExecutor, SparkExecutor, run_ref};
use kelos_model::run::Report;
use kelos_model::time::{CronSchedule, Schedule, parse_instant};
use kelos_model::workflow::Job;
use kelos_model::{Outcome, RunId, SlotKey, SlotRef, Workflow, WorkflowId};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::local_support::Fixture;

/// How long an application may take on a busy machine before a test gives up.
const DEADLINE: Duration = Duration::from_secs(240);

/// One run of one application.
struct Application {
    fixture: Fixture,
    start: Start,
    reported: UnboundedReceiver<Report>,
    reports: Reports,
}

impl Application {
    fn new(settings: impl FnOnce(&Fixture) -> Value) -> Self {
        let fixture = Fixture::new();
        std::fs::write(fixture.work("in"), "a b a\n").unwrap();
        let (send, reported) = unbounded_channel();
        let reports = Reports::new(move |input| {
            if let Input::RunReported { report, .. } = input {
                let _ = send.send(report);
            }
        });
        let start = start(settings(&fixture));
        Self { fixture, start, reported, reports }
    }

    /// An executor as a process has it that knows of no run.
    fn executor(&self) -> SparkExecutor {
        let runtime = tokio::runtime::Handle::current();
        SparkExecutor::new(CommandExecutor::new(self.fixture.launcher.clone(), runtime))
    }

    async fn report(&mut self) -> Report {
        tokio::time::timeout(DEADLINE, self.reported.recv()).await.expect("a report in time").unwrap()
    }

    async fn started(&mut self) -> String {
        match self.report().await {
            Report::Started { external_id } => external_id,
            other => panic!("expected that it has started, not {other:?}"),
        }
    }

    async fn outcome(&mut self) -> Outcome {
        match self.report().await {
            Report::Ended { outcome } => outcome,
            other => panic!("expected that it has ended, not {other:?}; {}", self.log()),
        }
    }

    fn log(&self) -> String {
        self.fixture.log(&run_ref(&self.start.run))
    }

    /// The words that the application has counted.
    fn counted(&self) -> String {
        std::fs::read_to_string(self.fixture.work("out").join("part-00000")).unwrap()
    }
}

fn start(settings: Value) -> Start {
    let settings = settings.as_object().unwrap().clone();
    let workflow = Workflow::new(
        WorkflowId::new("words").unwrap(),
        Schedule::Cron(CronSchedule::hourly()),
        Job::new("spark", settings.clone()),
    );
    let slot = SlotRef::new(workflow.id.clone(), SlotKey::Time(parse_instant("2016-01-01T05:00Z").unwrap()));
    Start {
        run: RunId { slot, number: 1 },
        workflow: Arc::new(workflow),
        settings,
        properties: Map::new(),
        given: RunInput::default(),
        worker: None,
        lease: None,
        earlier: Vec::new(),
    }
}

fn path(path: PathBuf) -> String {
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_missing_spark_submit_is_refused_with_a_hint() {
    let settings = json!({"application": "a.py", "env": {"SPARK_HOME": "/nowhere"}});
    let mut application = Application::new(|_| settings);
    application.executor().start(application.start.clone(), application.reports.clone());
    let Outcome::Refused { reason, .. } = application.outcome().await else { panic!("expected that it is refused") };
    assert_eq!(
        reason,
        "there is no program /nowhere/bin/spark-submit: set `sparkSubmit` in the job, or SPARK_HOME where the server is \
         started"
    );
}

mod real {
    use kelos_test_servers::address;

    use super::*;

    /// The application in Python, run by `spark-submit` itself.
    fn local(fixture: &Fixture, source: &str) -> Option<Value> {
        Some(json!({
            "sparkSubmit": address("KELOS_TEST_SPARK_SUBMIT")?, "application": address("KELOS_TEST_SPARK_APP")?,
            "args": [source, path(fixture.work("out"))], "master": "local[1]", "conf": {"spark.ui.enabled": false},
        }))
    }

    /// The application for the JVM, on the cluster.
    fn on_the_cluster(fixture: &Fixture, source: &str) -> Option<Value> {
        let memory = json!({"spark.driver.memory": "512m", "spark.executor.memory": "512m"});
        Some(json!({
            "sparkSubmit": address("KELOS_TEST_SPARK_SUBMIT")?, "application": address("KELOS_TEST_SPARK_JAR")?,
            "class": "Count", "args": [source, path(fixture.work("out"))], "master": address("KELOS_TEST_SPARK_MASTER")?,
            "deployMode": "cluster", "conf": memory,
        }))
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with spark -- cargo test -- --ignored real::"]
    async fn an_application_counts_words() {
        if address("KELOS_TEST_SPARK_SUBMIT").is_none() {
            return;
        }
        let mut application = Application::new(|fixture| local(fixture, &path(fixture.work("in"))).unwrap());
        application.executor().start(application.start.clone(), application.reports.clone());
        application.started().await;
        assert_eq!(application.outcome().await, Outcome::Succeeded);
        assert_eq!(application.counted(), "a 2\nb 1\n");
        assert!(application.log().contains("SparkContext"), "{}", application.log());
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with spark -- cargo test -- --ignored real::"]
    async fn an_application_that_fails_has_failed() {
        if address("KELOS_TEST_SPARK_SUBMIT").is_none() {
            return;
        }
        let mut application = Application::new(|fixture| local(fixture, "/nowhere/in").unwrap());
        application.executor().start(application.start.clone(), application.reports.clone());
        application.started().await;
        let reason = "exited with status 1".to_owned();
        assert_eq!(application.outcome().await, Outcome::Failed { reason, exit_status: Some(1), code: None });
        assert!(application.log().contains("Input path does not exist"), "{}", application.log());
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with spark -- cargo test -- --ignored real::"]
    async fn an_application_is_waited_for_and_killed_by_another_process() {
        if address("KELOS_TEST_SPARK_SUBMIT").is_none() {
            return;
        }
        // Reading from a pipe that nobody writes to takes for ever.
        let mut application = Application::new(|fixture| local(fixture, &path(fixture.work("pipe"))).unwrap());
        let pipe = application.fixture.work("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        application.executor().start(application.start.clone(), application.reports.clone());
        let external_id = application.started().await;
        let another = application.executor();
        another.check(&application.start.run, Some(&external_id), application.reports.clone());
        assert_eq!(application.started().await, external_id);
        another.cancel(&application.start.run, Some(&external_id), application.reports.clone());
        assert_eq!(application.outcome().await, Outcome::Killed);
    }

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with spark -- cargo test -- --ignored real::"]
    async fn on_a_cluster_the_end_of_the_application_is_waited_for() {
        if address("KELOS_TEST_SPARK_MASTER").is_none() {
            return;
        }
        let mut application = Application::new(|fixture| on_the_cluster(fixture, &path(fixture.work("in"))).unwrap());
        application.executor().start(application.start.clone(), application.reports.clone());
        application.started().await;
        assert_eq!(application.outcome().await, Outcome::Succeeded, "{}", application.log());
        assert_eq!(application.counted(), "a 2\nb 1\n");
        let mut application = Application::new(|fixture| on_the_cluster(fixture, "/nowhere/in").unwrap());
        application.executor().start(application.start.clone(), application.reports.clone());
        application.started().await;
        let reason = "exited with status 1".to_owned();
        assert_eq!(application.outcome().await, Outcome::Failed { reason, exit_status: Some(1), code: None });
        assert!(
            application.log().contains("kelos: spark-submit says that the driver is FAILED"),
            "{}",
            application.log()
        );
    }
}
