//! Against a real Oozie, with its HDFS and its YARN.

use std::time::{Duration, Instant};

use kelos_engine::executor::Executor as _;
use kelos_executors::http::{Http, Method, Url};
use kelos_executors::{OozieExecutor, OozieWaits};
use kelos_model::{Outcome, RunId};
use serde_json::{Value, json};

use super::support::{Heard, deferred, eventually, executor_of, run, start_with, started, talking, within};

/// Jobs that YARN does take their time on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

const WAITS: OozieWaits = OozieWaits {
    request: Duration::from_secs(30),
    shortest: Duration::from_millis(200),
    longest: Duration::from_secs(1),
    restart: Duration::from_secs(5),
    doubt: Duration::from_secs(6),
};

/// The servers, and a folder and an installation of this test's own.
struct Place {
    oozie: String,
    hdfs: String,
    webhdfs: String,
    job_tracker: String,
    own: String,
}

/// The same number for no two tests, nor for two times of one.
fn own_name(test: &str) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("{test}-{}-{}", std::process::id(), now.as_micros())
}

impl Place {
    fn of(test: &str) -> Option<Place> {
        Some(Place {
            oozie: kelos_test_servers::address("KELOS_TEST_OOZIE")?,
            hdfs: kelos_test_servers::address("KELOS_TEST_HDFS")?,
            webhdfs: kelos_test_servers::address("KELOS_TEST_WEBHDFS")?,
            job_tracker: kelos_test_servers::address("KELOS_TEST_JOB_TRACKER")?,
            own: own_name(test),
        })
    }

    fn executor(&self) -> OozieExecutor {
        executor_of(&self.oozie, &self.own, WAITS)
    }

    fn start(&self, run: RunId) -> kelos_engine::executor::Start {
        let properties = json!({
            "user.name": "celos",
            "oozie.wf.application.path": format!("{}/{}/workflow.xml", self.hdfs, self.folder()),
            "nameNode": self.hdfs,
            "jobTracker": self.job_tracker,
            "out": format!("{}/{}/out", self.hdfs, self.folder()),
            "odd": "a<b & c>\u{e4}\"'\n${wf:id()}",
        });
        start_with(&self.oozie, run, properties)
    }

    fn folder(&self) -> String {
        format!("tmp/{}", self.own)
    }

    async fn web(&self, method: Method, path: &str, operation: &str, body: &str) -> kelos_executors::http::Answer {
        let url = format!("{}/webhdfs/v1/{}/{path}?user.name=celos&op={operation}", self.webhdfs, self.folder());
        let http = Http::default();
        let first = http.send(http.request(method, Url::parse(&url).unwrap()).unwrap()).await.unwrap();
        let Some(target) = first.header("location") else { return first };
        http.send(http.request(Method::PUT, Url::parse(target).unwrap()).unwrap().body(body.to_owned())).await.unwrap()
    }

    /// Deploys a workflow with one action.
    async fn deploy(&self, action: &str) {
        let name = &self.own;
        self.deploy_xml(&format!(
            "<workflow-app xmlns='uri:oozie:workflow:0.5' name='{name}'><start to='work'/><action name='work'>{action}\
             <ok to='end'/><error to='fail'/></action><kill name='fail'><message>gave up</message></kill>\
             <end name='end'/></workflow-app>"
        ))
        .await;
    }

    async fn deploy_xml(&self, xml: &str) {
        let answer = self.web(Method::PUT, "workflow.xml", "CREATE&overwrite=true", xml).await;
        assert_eq!(answer.status, 201, "{}", answer.summary());
    }

    async fn has(&self, path: &str) -> bool {
        self.web(Method::GET, path, "GETFILESTATUS", "").await.status == 200
    }

    async fn ask(&self, method: Method, path: &str) -> Value {
        let http = Http::default();
        let url = format!("{}/v1/{path}user.name=celos", self.oozie);
        let answer = http.send(http.request(method, Url::parse(&url).unwrap()).unwrap()).await.unwrap();
        assert!(answer.status.is_success(), "{}", answer.summary());
        answer.json().map(|document| document.value().clone()).unwrap_or_default()
    }

    /// The jobs of this test's workflow: their ids and statuses.
    async fn jobs(&self) -> Vec<(String, String)> {
        let found = self.ask(Method::GET, &format!("jobs?filter=name%3D{}&len=1000&", self.own)).await;
        let text = |job: &Value, name: &str| job[name].as_str().unwrap().to_owned();
        found["workflows"].as_array().unwrap().iter().map(|job| (text(job, "id"), text(job, "status"))).collect()
    }

    async fn until_status(&self, status: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.jobs().await.iter().all(|(_, is)| is != status) {
            assert!(Instant::now() < deadline, "no job became {status}: {:?}", self.jobs().await);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

const MAKES: &str = "<fs><mkdir path='${out}/${year}-${hour}'/></fs>";
const SLEEPS: &str = "<shell xmlns='uri:oozie:shell-action:0.3'><job-tracker>${jobTracker}</job-tracker>\
                      <name-node>${nameNode}</name-node><exec>sleep</exec><argument>20</argument></shell>";

async fn end(heard: &Heard, run: &RunId) -> Outcome {
    within(PATIENCE, "an end", || heard.ends().into_iter().find(|(of, _)| of == run).map(|(_, outcome)| outcome)).await
}

/// Runs a test where the servers are up.
fn real<F: Future<Output = ()>>(test: &str, work: impl FnOnce(Place, Heard) -> F) {
    let Some(place) = Place::of(test) else { return };
    talking(work(place, Heard::default()));
}

#[test]
#[ignore = "needs a real server: servers/run with hdfs oozie -- cargo test -- --ignored real::"]
fn a_job_does_its_work() {
    real("makes", |place, heard| async move {
        place.deploy(MAKES).await;
        let executor = place.executor();
        let id = started(heard.start(&executor, place.start(run(1))).await);
        assert_eq!(end(&heard, &run(1)).await, Outcome::Succeeded);
        assert!(place.has("out/2013-17").await);
        let conf = place.ask(Method::GET, &format!("job/{id}?show=info&")).await["conf"].as_str().unwrap().to_owned();
        for part in ["<value>a&lt;b &amp; c&gt;", "<value>wf@2013-11-26T17:23Z</value>"] {
            assert!(conf.contains(part), "{conf}");
        }
    });
}

#[test]
#[ignore = "needs a real server: servers/run with hdfs oozie -- cargo test -- --ignored real::"]
fn a_job_that_nobody_recorded_is_found_and_not_submitted_again() {
    real("found", |place, heard| async move {
        place.deploy(MAKES).await;
        // This process hears the id and dies before it has written it down.
        let id = started(heard.start(&place.executor(), place.start(run(1))).await);
        let next = place.executor();
        assert_eq!(started(heard.check(&next, &run(1), None).await), id);
        assert_eq!(started(heard.start(&next, place.start(run(1))).await), id);
        assert_eq!(end(&heard, &run(1)).await, Outcome::Succeeded);
        assert_eq!(place.jobs().await, [(id, "SUCCEEDED".to_owned())]);
        let other = Heard::default();
        assert_eq!(other.check(&next, &run(2), None).await, kelos_model::run::Report::NeverStarted);
    });
}

#[test]
#[ignore = "needs a real server: servers/run with hdfs oozie -- cargo test -- --ignored real::"]
fn failures_say_what_oozie_says() {
    real("fails", |place, heard| async move {
        let executor = place.executor();
        let reason = deferred(heard.start(&executor, place.start(run(1))).await);
        assert!(reason.contains("does not exist") && reason.contains("; deploy the workflow's files"), "{reason}");
        place.deploy_xml("<workflow-app xmlns='uri:oozie:workflow:0.5' name='x'><start to='no'/></workflow-app>").await;
        heard.start(&executor, place.start(run(1))).await;
        let Outcome::Refused { reason, .. } = end(&heard, &run(1)).await else { panic!("{:?}", heard.all()) };
        assert!(reason.contains("E0701: XML schema error"), "{reason}");

        place.deploy("<fs><chmod path='${out}/absent' permissions='755' dir-files='false'/></fs>").await;
        started(heard.start(&executor, place.start(run(2))).await);
        let Outcome::Failed { reason, .. } = end(&heard, &run(2)).await else { panic!("{:?}", heard.all()) };
        assert!(
            reason.starts_with("action \"work\" of Oozie job ") && reason.contains("failed: FS009: chmod"),
            "{reason}"
        );

        let lost = Heard::default();
        started(lost.check(&executor, &run(3), Some("9999999-000000000000000-oozie-W")).await);
        assert!(matches!(end(&lost, &run(3)).await, Outcome::Unknown { .. }));
    });
}

#[test]
#[ignore = "needs a real server: servers/run with hdfs oozie -- cargo test -- --ignored real::"]
fn many_jobs_run_side_by_side() {
    const JOBS: u32 = 60;
    real("many", |place, heard| async move {
        place.deploy(MAKES).await;
        let (executor, began) = (place.executor(), Instant::now());
        for number in 1..=JOBS {
            executor.start(place.start(run(number)), heard.reports());
        }
        within(PATIENCE, "their ends", || (heard.ends().len() == JOBS as usize).then_some(())).await;
        println!("{JOBS} jobs in {:?}", began.elapsed());
        assert!(heard.ends().iter().all(|(_, outcome)| *outcome == Outcome::Succeeded), "{:?}", heard.ends());
        assert_eq!(place.jobs().await.len(), JOBS as usize);
    });
}

#[test]
#[ignore = "needs a real server: servers/run with hdfs oozie -- cargo test -- --ignored real::"]
fn a_suspended_job_waits_and_a_killed_one_ends() {
    real("halts", |place, heard| async move {
        place.deploy(SLEEPS).await;
        let executor = place.executor();
        let id = started(heard.start(&executor, place.start(run(1))).await);
        place.until_status("RUNNING").await;
        place.ask(Method::PUT, &format!("job/{id}?action=suspend&")).await;
        let note = eventually("a note", || executor.note(&run(1))).await;
        assert!(note.contains("is suspended in Oozie"), "{note}");
        place.ask(Method::PUT, &format!("job/{id}?action=resume&")).await;
        eventually("the note to go", || executor.note(&run(1)).is_none().then_some(())).await;
        assert_eq!(heard.ends(), []);
        executor.cancel(&run(1), Some(&id), heard.reports());
        assert_eq!(end(&heard, &run(1)).await, Outcome::Killed);
        assert_eq!(place.jobs().await, [(id.clone(), "KILLED".to_owned())]);

        // By somebody else, this time.
        let id = started(heard.start(&executor, place.start(run(2))).await);
        place.until_status("RUNNING").await;
        place.ask(Method::PUT, &format!("job/{id}?action=kill&")).await;
        let Outcome::Failed { reason, .. } = end(&heard, &run(2)).await else { panic!("{:?}", heard.all()) };
        assert!(reason.starts_with(&format!("Oozie job {id} was killed in Oozie")), "{reason}");
    });
}
