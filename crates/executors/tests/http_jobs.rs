//! Jobs of services that are asked by HTTP: starts that are repeated and lost, polling, ends on a person's word.

mod http_support;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use kelos_core::Input;
use kelos_engine::clock::{Clock, system_clock};
use kelos_engine::executor::{Executor, Reports, RunInput, Start};
use kelos_engine::secrets::Secrets;
use kelos_executors::http::Http;
use kelos_executors::{HttpExecutor, Records};
use kelos_model::run::Report;
use kelos_model::secret::AllowList;
use kelos_model::time::{CronSchedule, Schedule, parse_instant};
use kelos_model::workflow::Job;
use kelos_model::{Outcome, RunId, SlotKey, SlotRef, Workflow, WorkflowId};
use kelos_tls::Trust;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use http_support::{Reply, Service, ServiceRequest, answer};

/// The time after which a test gives up, on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

struct FixedRecords;

impl Records for FixedRecords {
    fn start_of(&self, run: &RunId) -> Result<Start, String> {
        Err(format!("look {run} up: nobody asks for that here"))
    }

    fn installation(&self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async { Ok("here".to_owned()) })
    }
}

/// One run of one job, and what is reported about it.
struct OneRun {
    executor: HttpExecutor,
    start: Start,
    reports: Reports,
    reported: UnboundedReceiver<Report>,
}

impl OneRun {
    fn new(settings: Value) -> Self {
        Self::with(settings, Http::default(), system_clock())
    }

    fn with(settings: Value, http: Http, clock: Clock) -> Self {
        let executor = HttpExecutor::new(http, Arc::new(FixedRecords), clock, tokio::runtime::Handle::current())
            .with_secrets(Secrets::new(AllowList::parse(r#"{"secrets": {"*": ["file:/tmp/*"]}}"#).unwrap()));
        let (send, reported) = unbounded_channel();
        let reports = Reports::new(move |input| {
            if let Input::RunReported { report, .. } = input {
                let _ = send.send(report);
            }
        });
        Self { executor, start: start(settings), reports, reported }
    }

    /// The same run, in a process that knows nothing of it.
    fn after_a_restart(self) -> Self {
        let settings = Value::Object(self.start.settings.clone());
        Self::new(settings)
    }

    fn start(&self) {
        self.executor.start(self.start.clone(), self.reports.clone());
    }

    fn check(&self, external_id: Option<&str>) {
        self.executor.check(&self.start.run, external_id, self.reports.clone());
    }

    fn cancel(&self, external_id: Option<&str>) {
        self.executor.cancel(&self.start.run, external_id, self.reports.clone());
    }

    async fn report(&mut self) -> Report {
        tokio::time::timeout(DEADLINE, self.reported.recv()).await.expect("a report in time").unwrap()
    }

    async fn external_id(&mut self) -> String {
        match self.report().await {
            Report::Started { external_id } => external_id,
            other => panic!("expected that it has started, not {other:?}"),
        }
    }

    async fn deferred(&mut self) -> String {
        match self.report().await {
            Report::Deferred { reason } => reason,
            other => panic!("expected that it is deferred, not {other:?}"),
        }
    }

    async fn outcome(&mut self) -> Outcome {
        match self.report().await {
            Report::Ended { outcome } => outcome,
            other => panic!("expected that it has ended, not {other:?}"),
        }
    }

    /// The outcome in words.
    async fn ended(&mut self) -> String {
        self.outcome().await.to_string()
    }
}

fn start(settings: Value) -> Start {
    let settings = settings.as_object().unwrap().clone();
    let workflow = Workflow::new(
        WorkflowId::new("words").unwrap(),
        Schedule::Cron(CronSchedule::hourly()),
        Job::new("http", settings.clone()),
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

/// A job that is polled at the shortest interval.
fn polled(service: &Service) -> Value {
    json!({
        "url": format!("{}/jobs", service.address),
        "body": {"day": "01"},
        "poll": {
            "url": "/jobs/${answer/id}",
            "everySeconds": 0.01,
            "done": {"/status": ["OK", "FINE"]},
            "failed": {"/status": "BAD"},
            "message": "/why",
        },
        "cancel": {},
    })
}

/// Accepts every job, and answers each check of a status by a function.
async fn service(status: impl Fn(&ServiceRequest) -> Reply + Send + Sync + 'static) -> Service {
    Service::new(move |asked| match asked.line.as_str() {
        "POST /jobs" => answer(201, r#"{"id": 7}"#),
        _ => status(asked),
    })
    .await
}

/// One answer after the other; the last one for ever.
fn in_turn(replies: &'static [(u16, &'static str)]) -> impl Fn(&ServiceRequest) -> Reply + Send + Sync + 'static {
    let next = AtomicU32::new(0);
    move |_| {
        let n = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap();
        let (status, body) = replies[n.min(replies.len() - 1)];
        answer(status, body)
    }
}

#[tokio::test]
async fn a_job_without_polling_has_ended_with_its_answer() {
    let service = Service::new(|_| answer(204, "")).await;
    let settings = json!({"url": format!("{}/go", service.address), "headers": {"X-Team": "words"}, "body": "go"});
    let mut job = OneRun::new(settings);
    job.start();
    assert_eq!(job.outcome().await, Outcome::Succeeded);
    let asked = &service.asked()[0];
    assert_eq!((asked.line.as_str(), asked.body.as_str()), ("POST /go", "go"));
    assert_eq!(asked.header("idempotency-key"), Some("here/words@2016-01-01T05:00:00.000Z#1"));
    assert_eq!(
        (asked.header("x-team"), asked.header("content-type")),
        (Some("words"), Some("text/plain; charset=utf-8"))
    );
}

#[tokio::test]
async fn a_job_is_polled_until_it_is_done() {
    let service = service(in_turn(&[(200, r#"{"status": "RUNS"}"#), (200, r#"{"status": "FINE"}"#)])).await;
    let mut job = OneRun::new(polled(&service));
    job.start();
    assert!(job.external_id().await.starts_with(&format!("{}/jobs/7 {{", service.address)));
    assert_eq!(job.outcome().await, Outcome::Succeeded);
    assert_eq!(service.lines(), ["POST /jobs", "GET /jobs/7", "GET /jobs/7"]);
    assert_eq!(service.asked()[0].body, r#"{"day":"01"}"#);
}

#[tokio::test]
async fn a_failure_is_told_in_the_words_of_the_service() {
    let service = service(in_turn(&[(200, r#"{"status": "BAD", "why": "no\n input"}"#)])).await;
    let mut job = OneRun::new(polled(&service));
    job.start();
    job.external_id().await;
    assert_eq!(job.ended().await, "no input");
}

#[tokio::test]
async fn a_status_that_can_not_be_had_is_asked_for_again() {
    let replies: &[(u16, &str)] =
        &[(503, "busy"), (404, ""), (200, "<html>proxy</html>"), (200, r#"{"status": "OK"}"#)];
    let service = service(in_turn(replies)).await;
    let mut job = OneRun::new(polled(&service));
    job.start();
    job.external_id().await;
    assert_eq!(job.outcome().await, Outcome::Succeeded);
}

#[tokio::test]
async fn a_job_that_the_service_removed_is_lost() {
    let service = service(in_turn(&[(200, r#"{"status": "RUNS"}"#), (410, "purged")])).await;
    let mut job = OneRun::new(polled(&service));
    job.start();
    job.external_id().await;
    let Outcome::Lost { reason } = job.outcome().await else { panic!("not lost") };
    assert_eq!(reason, "the service took it, and does not know it any more: it answered 410 Gone: purged");
}

#[tokio::test]
async fn a_job_that_the_service_does_not_know_for_an_hour_is_lost() {
    let service = service(in_turn(&[(404, ""), (200, r#"{"status": "RUNS"}"#), (404, "")])).await;
    let now = Arc::new(Mutex::new(Timestamp::from_second(1_451_620_800).unwrap()));
    let clock = now.clone();
    // Each look at the clock takes 20 minutes.
    let tick = move || {
        let mut now = clock.lock().unwrap();
        *now += jiff::SignedDuration::from_mins(20);
        *now
    };
    let mut job = OneRun::with(polled(&service), Http::default(), Arc::new(tick));
    job.start();
    job.external_id().await;
    let Outcome::Lost { reason } = job.outcome().await else { panic!("not lost") };
    assert!(reason.ends_with("it answered 404 Not Found"), "{reason}");
    assert_eq!(service.lines().len(), 7, "one start, two looks, and four within an hour: {:?}", service.lines());
}

#[tokio::test]
async fn trouble_with_the_status_is_told_while_it_lasts() {
    let service = service(|_| answer(500, "<html><h1>Oh</h1>no</html>")).await;
    let mut job = OneRun::new(polled(&service));
    job.start();
    job.external_id().await;
    let told = async {
        loop {
            if let Some(note) = job.executor.note(&job.start.run) {
                return note;
            }
            tokio::task::yield_now().await;
        }
    };
    let note = tokio::time::timeout(DEADLINE, told).await.unwrap();
    let expected = "/jobs/7 answered 500 Internal Server Error: Oh no";
    assert!(note.starts_with("its status can't be had: http://127.0.0.1:") && note.ends_with(expected), "{note}");
}

#[tokio::test]
async fn another_process_goes_on_with_what_the_external_id_says() {
    let done = Arc::new(Mutex::new("RUNS"));
    let shown = done.clone();
    let service = service(move |_| answer(200, &json!({"status": *shown.lock().unwrap()}).to_string())).await;
    let mut job = OneRun::new(polled(&service));
    job.start();
    let external_id = job.external_id().await;
    let mut job = job.after_a_restart();
    job.check(Some(&external_id));
    assert_eq!(job.external_id().await, external_id);
    // A repeated check meanwhile reports the same, and watches once.
    job.check(Some(&external_id));
    assert_eq!(job.external_id().await, external_id);
    *done.lock().unwrap() = "OK";
    assert_eq!(job.outcome().await, Outcome::Succeeded);
}

#[tokio::test]
async fn a_start_that_nobody_confirmed_is_asked_for_again_with_the_same_key() {
    let hung_up = AtomicU32::new(0);
    let service = Service::new(move |_| match hung_up.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::HangUp,
        _ => answer(200, ""),
    })
    .await;
    let mut job = OneRun::new(json!({"url": service.address}));
    job.start();
    let reason = job.deferred().await;
    assert!(reason.starts_with("failed to hear from 127.0.0.1:"), "{reason}");
    job.check(None);
    assert_eq!(job.report().await, Report::NeverStarted);
    job.start();
    assert_eq!(job.outcome().await, Outcome::Succeeded);
    let keys: Vec<_> =
        service.asked().iter().map(|asked| asked.header("idempotency-key").unwrap().to_owned()).collect();
    assert_eq!(keys, ["here/words@2016-01-01T05:00:00.000Z#1"; 2]);
}

#[tokio::test]
async fn a_service_that_is_down_defers() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut job = OneRun::new(json!({"url": format!("http://{address}/?token=secret")}));
    job.start();
    let reason = job.deferred().await;
    assert!(reason.starts_with(&format!("failed to connect to {address}: ")), "{reason}");
    assert!(!reason.contains("secret"), "{reason}");
    // It was surely not taken.
    job.cancel(None);
    assert_eq!(job.outcome().await, Outcome::Killed);
}

#[tokio::test]
async fn a_service_that_is_silent_defers_and_leaves_doubt() {
    let service = Service::new(|_| Reply::Silence).await;
    let http = Http::with_patience(&Trust::default(), Duration::from_secs(5), Duration::from_millis(50));
    let mut job = OneRun::with(json!({"url": service.address}), http, system_clock());
    job.start();
    let reason = job.deferred().await;
    assert!(reason.ends_with(": no answer in time"), "{reason}");
    job.cancel(None);
    let reason = "it was given up while nobody knew whether the service had taken it".to_owned();
    assert_eq!(job.outcome().await, Outcome::Lost { reason });
}

#[tokio::test]
async fn a_busy_service_is_left_alone_as_long_as_it_asks() {
    let service =
        Service::new(|_| Reply::Answer(429, "retry-after: 3600\r\n".to_owned(), "slow down".to_owned())).await;
    let mut job = OneRun::new(json!({"url": service.address}));
    for _ in 0..3 {
        job.start();
        assert_eq!(job.deferred().await, format!("{}/ answered 429 Too Many Requests: slow down", service.address));
    }
    assert_eq!(service.lines().len(), 1);
}

#[tokio::test]
async fn what_a_service_refuses_is_refused() {
    let service = Service::new(|asked| match asked.line.as_str() {
        "POST /moved" => Reply::Answer(302, "location: /other\r\n".to_owned(), String::new()),
        "POST /odd" => answer(200, ""),
        _ => answer(422, r#"{"error": "no such day"}"#),
    })
    .await;
    let refused = async |path: &str, expect: Value| {
        let mut job = OneRun::new(json!({"url": format!("{}{path}", service.address), "expect": expect}));
        job.start();
        job.ended().await.replace(&service.address, "http://svc")
    };
    assert_eq!(
        refused("/jobs", json!(["2xx"])).await,
        "could not be started: http://svc/jobs answered 422 Unprocessable Entity: {\"error\": \"no such day\"}"
    );
    assert_eq!(
        refused("/moved", json!(["2xx"])).await,
        "could not be started: http://svc/moved answered 302 Found; redirections are not followed, give the final \
         address as `url`"
    );
    assert_eq!(
        refused("/odd", json!([202])).await,
        "outcome unknown: http://svc/odd answered 200 OK, which is none of the statuses of `expect`"
    );
    assert_eq!(refused("/jobs", json!([422])).await, "succeeded");
}

#[tokio::test]
async fn an_answer_that_can_not_be_polled_leaves_the_outcome_unknown() {
    let service = Service::new(|_| answer(202, "{}")).await;
    let mut job = OneRun::new(polled(&service));
    job.start();
    assert_eq!(
        job.ended().await,
        "outcome unknown: the service took it, and can't be asked about it: its answer has no text or number at /id: {}"
    );
}

#[tokio::test]
async fn a_killed_job_is_ended_by_the_service() {
    let killed = Arc::new(AtomicU32::new(0));
    let seen = killed.clone();
    let service = service(move |asked| match (asked.line.as_str(), seen.load(Ordering::Relaxed)) {
        ("DELETE /jobs/7", 0) => {
            seen.store(1, Ordering::Relaxed);
            answer(503, "busy")
        }
        ("DELETE /jobs/7", _) => {
            seen.store(2, Ordering::Relaxed);
            answer(202, "")
        }
        (_, 2) => answer(404, ""),
        _ => answer(200, r#"{"status": "RUNS"}"#),
    })
    .await;
    let mut job = OneRun::new(polled(&service));
    job.start();
    let external_id = job.external_id().await;
    job.cancel(Some(&external_id));
    assert_eq!(job.outcome().await, Outcome::Killed);
    assert_eq!(killed.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_job_of_another_process_is_ended_too() {
    let service = service(|asked| match asked.line.as_str() {
        "DELETE /jobs/7" => answer(200, ""),
        _ => answer(200, r#"{"status": "BAD"}"#),
    })
    .await;
    let mut settings = polled(&service);
    settings["poll"]["everySeconds"] = json!(3600);
    let mut job = OneRun::new(settings);
    job.start();
    let external_id = job.external_id().await;
    let mut job = job.after_a_restart();
    job.cancel(Some(&external_id));
    assert_eq!(job.outcome().await, Outcome::Killed);
    job.cancel(Some("4711"));
    let reason = "what the service called it can't be read any more".to_owned();
    assert_eq!(job.outcome().await, Outcome::Lost { reason }, "it may go on there");
}

#[tokio::test]
async fn a_killed_job_that_can_not_be_ended_is_given_up() {
    let service = service(|_| answer(200, r#"{"status": "RUNS"}"#)).await;
    let mut settings = polled(&service);
    settings.as_object_mut().unwrap().remove("cancel");
    let mut job = OneRun::new(settings);
    job.start();
    let external_id = job.external_id().await;
    job.cancel(Some(&external_id));
    let reason = "it was given up: the job has no `cancel`, so the service may go on with it".to_owned();
    assert_eq!(job.outcome().await, Outcome::Lost { reason });
}

#[tokio::test]
async fn a_job_that_takes_too_long_is_ended_and_has_failed() {
    let service = service(|asked| match asked.line.as_str() {
        "DELETE /jobs/7" => answer(200, ""),
        _ => answer(200, r#"{"status": "RUNS"}"#),
    })
    .await;
    let now = Arc::new(Mutex::new(Timestamp::from_second(1_451_620_800).unwrap()));
    let clock = now.clone();
    let mut settings = polled(&service);
    settings["poll"]["timeoutSeconds"] = json!(60);
    let mut job = OneRun::with(settings, Http::default(), Arc::new(move || *clock.lock().unwrap()));
    job.start();
    job.external_id().await;
    *now.lock().unwrap() += jiff::SignedDuration::from_secs(60);
    assert_eq!(job.ended().await, "took longer than its timeout allows");
    assert_eq!(service.lines().last().unwrap(), "DELETE /jobs/7");
}

/// A file with a secret, and the source that names it.
fn secret_file(value: &str) -> (tempfile::NamedTempFile, String) {
    let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    std::fs::write(file.path(), value).unwrap();
    let source = format!("file:{}", file.path().display());
    (file, source)
}

#[tokio::test]
async fn a_secret_goes_to_the_host_of_the_start_alone() {
    let other = Service::new(|_| answer(200, r#"{"status": "OK"}"#)).await;
    let link = json!({"link": format!("{}/status", other.address)}).to_string();
    let service = Service::new(move |_| answer(201, &link)).await;
    let (_file, source) = secret_file("hunter2\n");
    let mut job = OneRun::new(json!({
        "url": service.address,
        "headers": {"Authorization": {"secret": source, "prefix": "Bearer "}, "X-Team": "words"},
        "body": {"user": "me", "password": {"secret": source}},
        "poll": {"url": "${answer/link}", "everySeconds": 0.01, "done": {"/status": "OK"}},
    }));
    job.start();
    let external_id = job.external_id().await;
    assert!(external_id.contains(&source) && !external_id.contains("hunter2"), "{external_id}");
    assert_eq!(job.outcome().await, Outcome::Succeeded);
    assert_eq!(service.asked()[0].header("authorization"), Some("Bearer hunter2"));
    assert_eq!(service.asked()[0].body, r#"{"user":"me","password":"hunter2"}"#);
    assert_eq!((other.asked()[0].header("authorization"), other.asked()[0].header("x-team")), (None, Some("words")));
}

/// A hostile or a careless service repeats what it was sent, where it ends up in the log of events.
#[tokio::test]
async fn a_secret_that_a_service_repeats_is_hidden() {
    let (_file, source) = secret_file("hunter2");
    let headers = json!({"Authorization": {"secret": source, "prefix": "Bearer "}});
    let service = Service::new(|_| answer(400, "no right with Bearer hunter2 or aHVudGVyMg==")).await;
    let mut job = OneRun::new(json!({"url": service.address, "headers": headers}));
    job.start();
    let told = job.ended().await;
    assert!(told.contains("no right with Bearer •••••• or ••••••") && !told.contains("hunter2"), "{told}");

    let polled = Service::new(|asked| match asked.line.split(' ').next() {
        Some("POST") => answer(201, r#"{"id": "hunter2"}"#),
        _ => answer(200, r#"{"status": "FAILED", "why": "bad token hunter2"}"#),
    })
    .await;
    let poll = json!({
        "url": "/jobs/${answer/id}", "everySeconds": 0.01, "done": {"/status": "OK"}, "failed": {"/status": "FAILED"}, "message": "/why",
    });
    let mut job = OneRun::new(json!({"url": polled.address, "headers": headers, "poll": poll}));
    job.start();
    let external_id = job.external_id().await;
    assert!(!external_id.contains("hunter2"), "{external_id}");
    assert_eq!(job.ended().await, "bad token ••••••");
}

#[tokio::test]
async fn a_secret_that_can_not_be_read_fails_the_run() {
    let mut job =
        OneRun::new(json!({"url": "http://127.0.0.1:1", "headers": {"A": {"secret": "file:/tmp/kelos/not/there"}}}));
    job.start();
    let outcome = job.outcome().await;
    let Outcome::Failed { reason, code, .. } = outcome else { panic!("expected a failure, not {outcome:?}") };
    assert_eq!(reason, "failed to read the secret file:/tmp/kelos/not/there: No such file or directory (os error 2)");
    assert_eq!(code.unwrap().as_str(), "secret-unread");
    // The form of older definitions, whose variable has to be allowed, too.
    let mut job = OneRun::new(json!({"url": "http://127.0.0.1:1", "headers": {"A": {"env": "HOME"}}}));
    job.start();
    let told = job.ended().await;
    assert!(told.contains("the secret env:HOME is not allowed for the project \"words\""), "{told}");
}

/// An answer that was too large, or broke off, made the same start again, and the job was done once for each.
#[tokio::test]
async fn a_start_that_was_accepted_is_never_asked_for_again() {
    let head =
        |length: usize| format!("HTTP/1.1 201 x\r\ncontent-length: {length}\r\nlocation: /jobs/7\r\n\r\n").into_bytes();
    let large = [head(9 << 20), vec![b' '; 9 << 20]].concat();
    let cut = [head(100), b"{\"id\": ".to_vec()].concat();
    let chunk = b"HTTP/1.1 200 x\r\nlocation: /jobs/7\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_vec();
    let no_json = [head(1), b"{".to_vec()].concat();
    let bare = b"HTTP/1.1 200 OK\r\nlocation: /jobs/7\r\n\r\n".to_vec();
    for body in [large, cut, chunk, no_json, bare] {
        let started = move |asked: &ServiceRequest| match &*asked.line {
            line if line.starts_with("POST") => Reply::Bytes(body.clone()),
            _ => answer(200, r#"{"status": "OK"}"#),
        };
        let service = Service::new(started).await;
        let jobs = format!("{}/jobs", service.address);
        let mut run = OneRun::new(json!({"url": jobs}));
        run.start();
        assert_eq!(run.ended().await, "succeeded");
        // The URL of its status is in a header, which was kept.
        let mut run = OneRun::new(json!({"url": jobs, "poll": {"everySeconds": 0.01, "done": {"/status": "OK"}}}));
        run.start();
        run.external_id().await;
        assert_eq!(run.ended().await, "succeeded");
        let mut run = OneRun::new(polled(&service));
        run.start();
        // It does the job: an outcome that is only unknown would have the retry policy start another attempt.
        let Outcome::Lost { reason } = run.outcome().await else { panic!("not lost") };
        assert!(reason.contains("the service took it, and can't be asked about it"), "{reason}");
        assert_eq!(service.lines().iter().filter(|line| line.starts_with("POST")).count(), 3, "one for each run");
    }
}

#[tokio::test]
async fn what_a_service_calls_a_job_leads_to_no_other_path() {
    for id in ["..", ".", "../../admin", "x?y#z", "%2e%2e"] {
        let created = json!({ "id": id }).to_string();
        let service = Service::new(move |asked: &ServiceRequest| match &*asked.line {
            "POST /jobs" => answer(201, &created),
            _ => answer(200, r#"{"status": "OK"}"#),
        })
        .await;
        let mut run = OneRun::new(polled(&service));
        run.start();
        if id.chars().all(|letter| letter == '.') {
            let told = run.ended().await;
            assert!(told.contains("expected a name that is not empty, . or .."), "{told}");
        } else {
            run.external_id().await;
            assert_eq!(run.ended().await, "succeeded");
        }
        for line in service.lines().iter().skip(1) {
            let path = line.strip_prefix("GET /jobs/").unwrap_or_else(|| panic!("{line}"));
            assert!(!path.contains(['/', '?', '#']), "{line}");
        }
    }
}
