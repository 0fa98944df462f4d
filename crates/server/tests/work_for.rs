//! Programs whose functions run for a server: a real server on a port of this machine, and programs that reach it over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kelos::embed::{
    Calendar, Context, Job, LossPolicy, Period, Places, Project, RemoteProject, Retry, WorkError, WorkNews,
    WorkingProject, flow, job, step,
};
use kelos::{CatchUp, MemoryStore, Node, NodeConfig, RunState, SlotKey, SlotRef, SlotState, Status};
use kelos_core::{FireRequest, Kill};
use kelos_executors::http::Method;
use kelos_executors::workers::{RemoteLine, SHORTEST_LEASE};
use kelos_explain::why::why;
use kelos_front::{Access, AccessSettings, App};
use kelos_model::{Actor, Run, StepKey};
use kelos_sandbox::Folders;
use kelos_server::{Limits, router, serve};
use kelos_store::Queries;
use kelos_tls::Trust;
use kelos_trust::Rules;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

/// Nothing takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// The token of the owner, who may do everything but work.
const OWNER: &str = "the token of the owner";

/// A server with its port.
struct Server {
    node: Node,
    address: String,
    folder: TempDir,
    end: watch::Sender<bool>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Server {
    /// A server that runs commands itself, and asks its callers who they are.
    async fn start() -> Server {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["workflows", "defaults", "runs"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        let mut config = NodeConfig::new(path("runs"), Vec::new());
        config.folders = Some(Folders { workflows: path("workflows"), defaults: path("defaults") });
        config.reload_every = Duration::from_secs(86_400);
        config.remote_lease = SHORTEST_LEASE;
        let node = Node::start(config, Box::new(MemoryStore::new()), tokio::runtime::Handle::current()).unwrap();
        let leading = |status: &Status| matches!(status, Status::Leading { .. });
        tokio::time::timeout(PATIENCE, node.handle().watch_status().wait_for(leading)).await.unwrap().unwrap();
        let settings = AccessSettings {
            required: true,
            rules: Rules::default(),
            owner: Some(OWNER.into()),
            ..AccessSettings::default()
        };
        let app = App::new(node.clone(), "1.2.3").with_access(Access::new(settings));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (end, mut ended) = watch::channel(false);
        let ended = async move {
            let _ = ended.wait_for(|ended| *ended).await;
        };
        let task = tokio::spawn(serve(listener, router(app), Limits::of_process(), ended));
        Server { node, address, folder, end, task }
    }

    async fn stop(self) {
        self.node.stop().await;
        self.end.send_replace(true);
        self.task.abort();
    }

    /// A token with these roles.
    async fn token(&self, roles: &[&str]) -> String {
        let client = RemoteLine::client(&Trust::default());
        let line = RemoteLine::of(self.address.clone(), Some(OWNER.into()), client);
        let name = format!("t{}", roles.join("-").replace('@', "-"));
        let request = json!({ "name": name, "roles": roles });
        let made = line.send(Method::POST, "/api/v1/tokens", &request).await.unwrap().json().unwrap().value().clone();
        made["secret"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    fn reader(&self) -> &Arc<dyn Queries> {
        self.node.reader()
    }

    async fn fire(&self, workflow: &str, arguments: Value) -> SlotRef {
        let arguments = arguments.as_object().cloned().unwrap_or_else(Map::new).into_iter().collect();
        let request = FireRequest {
            workflow: workflow.parse().unwrap(),
            arguments,
            key: None,
            priority: 0,
            unconstrained: false,
            reason: None,
        };
        self.node.handle().ask(&Actor::person("ann"), request).await.unwrap().slot
    }

    /// Waits until something holds that can only change with a commit.
    async fn until<T>(&self, what: &str, find: impl Fn(&dyn Queries) -> Option<T>) -> T {
        let mut commits = self.node.handle().watch_commits();
        let wait = async {
            loop {
                commits.mark_unchanged();
                if let Some(found) = find(&**self.reader()) {
                    return found;
                }
                commits.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what} never came to hold"))
    }

    async fn ends(&self, slot: &SlotRef) -> (SlotState, Vec<Run>) {
        let is_over = |reader: &dyn Queries| reader.slot(slot).unwrap().filter(|one| one.state.is_final());
        let state = self.until("the end", is_over).await.state;
        (state, self.reader().slot_runs(slot).unwrap())
    }

    async fn runs(&self, slot: &SlotRef, number: u32) -> Run {
        let find = |reader: &dyn Queries| {
            let runs = reader.slot_runs(slot).unwrap();
            runs.into_iter().find(|run| run.id.number == number && run.state == RunState::Running)
        };
        self.until("the run", find).await
    }

    async fn why(&self, slot: &SlotRef) -> String {
        why(self.node.handle(), slot, None).await.unwrap().blockers.join("; ")
    }
}

/// A program that works for a server, with its events and a folder of its own.
struct Program {
    working: WorkingProject,
    news: mpsc::UnboundedReceiver<WorkNews>,
}

impl Program {
    async fn start(server: &Server, project: Project, token: &str, folder: &TempDir) -> Program {
        Program::with(server, project, token, folder, |remote| remote).await
    }

    async fn with(
        server: &Server,
        project: Project,
        token: &str,
        folder: &TempDir,
        more: impl Fn(RemoteProject) -> RemoteProject,
    ) -> Program {
        let (tell, news) = mpsc::unbounded_channel();
        let remote = project.work_for(&server.address).token(token).folder(folder.path()).at_a_time(4);
        let remote = remote.on_news(move |news| drop(tell.send(news.clone())));
        let working = more(remote).start().await.unwrap_or_else(|error| panic!("failed to {error}"));
        Program { working, news }
    }

    async fn hears(&mut self, is_it: impl Fn(&WorkNews) -> bool) -> WorkNews {
        let heard = async {
            loop {
                let news = self.news.recv().await.expect("news");
                if is_it(&news) {
                    return news;
                }
            }
        };
        tokio::time::timeout(PATIENCE, heard).await.expect("the news never came")
    }
}

async fn add(context: Context, pair: (u32, u32), more: u32) -> Result<u32, String> {
    context.log(format!("adding {} and {}", pair.0, pair.1));
    Ok(pair.0 + pair.1 + more)
}

fn adding(more: u32) -> Job<(u32, u32)> {
    job("add", add).with(more).on_demand()
}

const ROLES: [&str; 2] = ["worker", "author@reports"];

#[tokio::test(flavor = "multi_thread")]
async fn a_function_of_another_program_runs_for_the_server() {
    let server = Server::start().await;
    let (token, folder) = (server.token(&ROLES).await, TempDir::new().unwrap());
    let program = Program::start(&server, Project::new("reports", "1.0").add(adding(1)), &token, &folder).await;
    assert_eq!(program.working.changes(), ["new: add"]);
    let slot = server.fire("add", json!({ "input": [2, 3] })).await;
    let (state, runs) = server.ends(&slot).await;
    assert_eq!(state, SlotState::Succeeded, "{runs:?}");
    assert_eq!(runs[0].outputs.as_deref(), json!({ "output": 6 }).as_object());
    let output = server.node.output(&runs[0].id).await.last_line().await.unwrap();
    assert_eq!(output.as_deref(), Some("adding 2 and 3"));
    program.working.stop().await;
    let waiting = server.fire("add", json!({ "input": [1, 1] })).await;
    let expected = "no worker that is connected has the project reports as it was deployed last, version 1.0";
    assert_eq!(server.why(&waiting).await, expected);
    // The same definitions need no right but that of a worker, and change nothing.
    let worker = server.token(&["worker"]).await;
    let again = Program::start(&server, Project::new("reports", "1.0").add(adding(5)), &worker, &folder).await;
    assert!(again.working.changes().is_empty(), "{:?}", again.working.changes());
    assert_eq!(server.ends(&waiting).await.1[0].outputs.as_deref(), json!({ "output": 7 }).as_object());
    again.working.stop().await;
    server.stop().await;
}

/// A function that says when it began, and ends when it may.
#[derive(Clone)]
struct Gate {
    began: mpsc::UnboundedSender<String>,
    may_end: Arc<Semaphore>,
}

impl Gate {
    fn new() -> (Gate, mpsc::UnboundedReceiver<String>) {
        let (began, begins) = mpsc::unbounded_channel();
        (Gate { began, may_end: Arc::new(Semaphore::new(0)) }, begins)
    }
}

async fn held(context: Context, (): (), gate: Gate) -> Result<&'static str, String> {
    let _ = gate.began.send(context.run().to_string());
    tokio::select! {
        _ = gate.may_end.acquire() => Ok("done"),
        () = context.cancel().asked() => Err("asked to end".to_owned()),
    }
}

async fn next(begins: &mut mpsc::UnboundedReceiver<String>) -> String {
    tokio::time::timeout(PATIENCE, begins.recv()).await.expect("no run began").expect("a run")
}

async fn flaky(context: Context, (): (), tries: Arc<AtomicU32>) -> Result<usize, String> {
    let failures: Vec<String> = context.previous_failures().into_iter().map(|failure| failure.reason).collect();
    match tries.fetch_add(1, Ordering::SeqCst) {
        0 => Err("the disk is full".to_owned()),
        _ if failures == ["the disk is full"] => Ok(failures.len()),
        _ => Err(format!("{failures:?}")),
    }
}

#[derive(serde::Deserialize, serde::Serialize)]
struct Counted {
    rows: u32,
}

async fn count(context: Context, _: (), machines: Places) -> Result<Counted, String> {
    let _machine = context.on(&machines).await.map_err(|error| error.to_string())?;
    Ok(Counted { rows: 3 })
}

async fn report(_: Context, counted: Counted, _: ()) -> Result<String, String> {
    Ok(format!("{} rows", counted.rows))
}

async fn hour(_: Context, hour: Period, _: ()) -> Result<String, String> {
    Ok(hour.start.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn series_flows_and_retries_are_the_servers_and_their_functions_the_programs() {
    let server = Server::start().await;
    let (token, folder) = (server.token(&ROLES).await, TempDir::new().unwrap());
    let machines = Places::new("machines", 1);
    let part = step("count", count).with(machines.clone()).may_use(&machines) >> step("report", report).with(());
    let soon = Retry::fixed(Duration::from_millis(1)).times(2);
    let flaky = job("flaky", flaky).with(Arc::default()).retry(soon).on_demand();
    let hours = job("hours", hour).with(()).every(&Calendar::hourly()).catch_up(CatchUp::All);
    let since = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(3);
    let project = Project::new("reports", "1.0")
        .add(flow("nightly", part))
        .add(flaky)
        .add(hours.since(Calendar::hourly().period_with(since).expect("a period").start));
    let program = Program::start(&server, project, &token, &folder).await;
    let run = server.fire("nightly", json!({})).await;
    let (state, _) = server.ends(&run).await;
    let steps: Vec<_> = server.reader().steps(&run, kelos_store::PageRequest::newest(9)).unwrap().rows;
    let steps: Vec<_> = steps.iter().flat_map(|step| server.reader().slot_runs(&step.id).unwrap()).collect();
    assert_eq!(state, SlotState::Succeeded, "{steps:?}");
    let key = StepKey::named(&run.key, "report").expect("a step");
    let runs = server.reader().slot_runs(&SlotRef::new(run.workflow.clone(), SlotKey::Step(key))).unwrap();
    assert_eq!(runs[0].outputs.as_deref(), json!({ "report": "3 rows" }).as_object());
    let (state, runs) = server.ends(&server.fire("flaky", json!({})).await).await;
    assert_eq!((state, runs.len()), (SlotState::Succeeded, 2), "{runs:?}");
    let done = |reader: &dyn Queries| {
        let filter = kelos_store::SlotFilter { workflow: Some("hours".parse().unwrap()), ..Default::default() };
        let rows = reader.slots(&filter, kelos_store::PageRequest::newest(10)).unwrap().rows;
        (rows.iter().filter(|slot| slot.slot.state == SlotState::Succeeded).count() >= 2).then_some(())
    };
    server.until("the hours", done).await;
    program.working.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_ends_a_function_and_a_program_that_is_told_to_stop_drains() {
    let server = Server::start().await;
    let (token, folder) = (server.token(&ROLES).await, TempDir::new().unwrap());
    let (gate, mut begins) = Gate::new();
    let project = Project::new("reports", "1.0").add(job("held", held).with(gate.clone()).on_demand());
    let program = Program::start(&server, project, &token, &folder).await;
    let slot = server.fire("held", json!({})).await;
    next(&mut begins).await;
    server.runs(&slot, 1).await;
    let kill = Kill { slot: slot.clone(), reason: None };
    server.node.handle().ask(&Actor::person("ann"), kill).await.unwrap();
    let killed = |reader: &dyn Queries| reader.slot_runs(&slot).unwrap().pop().filter(|run| run.state.is_final());
    assert_eq!(server.until("the kill", killed).await.state, RunState::Killed);
    let slot = server.fire("held", json!({})).await;
    next(&mut begins).await;
    let stopping = tokio::spawn(program.working.stop());
    assert!(!stopping.is_finished(), "it waits for its run");
    gate.may_end.add_permits(1);
    assert_eq!(server.ends(&slot).await.0, SlotState::Succeeded);
    tokio::time::timeout(PATIENCE, stopping).await.expect("it never stopped").unwrap();
    assert!(server.node.desk().workers().is_empty());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_deployment_wins_and_the_older_program_hears_of_it() {
    let server = Server::start().await;
    let token = server.token(&ROLES).await;
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let project = |version: &str, more| Project::new("reports", version).add(adding(more));
    let mut old = Program::start(&server, project("1.0", 1), &token, &one).await;
    let new = Program::start(&server, project("2.0", 2), &token, &two).await;
    assert_eq!(new.working.changes(), ["changed: add (version)"]);
    for _ in 0..5 {
        let (_, runs) = server.ends(&server.fire("add", json!({ "input": [1, 1] })).await).await;
        // A run that was dispatched to the older program, before the core had heard of it, was withdrawn.
        assert_eq!(runs.last().unwrap().outputs.as_deref(), json!({ "output": 4 }).as_object());
    }
    let told = old.hears(|news| matches!(news, WorkNews::Outdated(_))).await;
    assert_eq!(told, WorkNews::Outdated(vec!["add".to_owned()]));
    new.working.stop().await;
    let slot = server.fire("add", json!({ "input": [1, 1] })).await;
    let expected = "no worker that is connected has the project reports as it was deployed last, version 2.0; the program that is \
                    connected has another definition of it";
    assert_eq!(server.why(&slot).await, expected);
    old.working.stop().await;
    // It comes back with the version before, which is the newest deployment then.
    let back = Program::start(&server, project("1.0", 1), &token, &one).await;
    assert_eq!(server.ends(&slot).await.1.last().unwrap().outputs.as_deref(), json!({ "output": 3 }).as_object());
    back.working.stop().await;
    server.stop().await;
}

#[test]
fn a_program_that_died_says_what_is_lost_when_it_comes_back() {
    let of_server = tokio::runtime::Runtime::new().unwrap();
    let (gate, mut begins) = Gate::new();
    let folder = TempDir::new().unwrap();
    let project = || {
        let retried = job("retried", held).with(gate.clone()).retry(Retry::fixed(Duration::from_millis(1)).times(1));
        let ended = job("ended", held).with(gate.clone()).on_lost(LossPolicy::End);
        let again = job("again", held).with(gate.clone()).retry(Retry::never());
        Project::new("reports", "1.0").add(retried.on_demand()).add(ended.on_demand()).add(again.on_demand())
    };
    let server = of_server.block_on(Server::start());
    let token = of_server.block_on(server.token(&ROLES));
    let of_program = tokio::runtime::Runtime::new().unwrap();
    let program = of_program.block_on(Program::start(&server, project(), &token, &folder));
    let [retried, ended, again] = of_server.block_on(async {
        let mut slots = Vec::new();
        for id in ["retried", "ended", "again"] {
            slots.push(server.fire(id, json!({})).await);
        }
        for slot in &slots {
            next(&mut begins).await;
            server.runs(slot, 1).await;
        }
        <[_; 3]>::try_from(slots).expect("three slots")
    });
    // Once its runtime is gone it can give nothing back, as if it had been killed.
    of_program.shutdown_timeout(PATIENCE);
    drop(program);
    gate.may_end.add_permits(9);
    of_server.block_on(async {
        let back = Program::start(&server, project(), &token, &folder).await;
        let (state, runs) = server.ends(&retried).await;
        assert_eq!((state, runs.len()), (SlotState::Succeeded, 2));
        let outcome = runs[0].outcome.as_ref().map(ToString::to_string).unwrap_or_default();
        assert!(outcome.contains("the program that did it has ended"), "{outcome}");
        let (state, runs) = server.ends(&ended).await;
        assert_eq!((state, runs.len()), (SlotState::Failed, 1), "no attempt follows: {runs:?}");
        let (state, runs) = server.ends(&again).await;
        assert_eq!((state, runs.len()), (SlotState::Succeeded, 2), "a crash is no failure: {runs:?}");
        back.working.stop().await;
        server.stop().await;
    });
}

/// The error of a start that is refused.
async fn refused(remote: RemoteProject) -> String {
    let started = tokio::time::timeout(PATIENCE, remote.start()).await.expect("no answer");
    started.err().map(|error| format!("failed to {error}")).expect("it was taken")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_refuses_is_said_with_a_hint() {
    let server = Server::start().await;
    let token = server.token(&ROLES).await;
    let folder = || TempDir::new().unwrap().keep();
    let remote = |project: Project, token: &str| project.work_for(&server.address).token(token).folder(folder());
    let reports = || Project::new("reports", "1.0").add(adding(1));
    let told = refused(remote(reports(), "kelos_nonsense")).await;
    assert!(told.contains("deploy the project reports to http") && told.contains("--role author@reports"), "{told}");
    let worker = server.token(&["worker"]).await;
    let told = refused(remote(reports(), &worker)).await;
    assert!(told.contains("hint: the token needs the role author@reports"), "{told}");
    let told = refused(remote(Project::new("others", "1.0").add(adding(1)), &token)).await;
    assert!(told.contains("needs the role author for the project others"), "{told}");
    let script = "celos.defineWorkflow({ id: 'add', schedule: celos.hourlySchedule(), schedulingStrategy: \
                  celos.serialSchedulingStrategy(), trigger: celos.alwaysTrigger(), externalService: \
                  celos.oozieExternalService({}, 'http://oozie') });";
    std::fs::write(server.folder.path().join("workflows/reports.js"), script).unwrap();
    server.node.reload().await;
    let told = refused(remote(reports(), &token)).await;
    assert!(told.contains("the project \"reports\" is defined by the file reports.js"), "{told}");
    let told = refused(Project::new("reports", "1.0").work_for("ftp://kelos").token("t")).await;
    assert_eq!(told, "failed to use the server ftp://kelos: expected an address such as https://kelos.example");
    let told = refused(remote(reports(), &token).labels(["two words"])).await;
    assert!(told.contains("use \"two words\" as a label of workers"), "{told}");
    let taken = TempDir::new().unwrap();
    let spare = server.token(&["worker", "author@spare"]).await;
    let program = Program::start(&server, Project::new("spare", "1.0"), &spare, &taken).await;
    let told = refused(remote(Project::new("spare", "1.0"), &spare).folder(taken.path())).await;
    assert!(told.contains("another worker is running there") && told.contains("`.folder(path)`"), "{told}");
    program.working.stop().await;
    server.stop().await;
}

async fn approved(_: Context, (): (), (): ()) -> Result<(), String> {
    Ok(())
}

#[tokio::test]
async fn what_needs_another_scheduler_is_a_mistake_of_the_definition() {
    let waits = step("pay", approved).with(()).may_wait_for::<String>("approval");
    let project = Project::new("reports", "1.0").add(flow("purchase", waits));
    let Err(WorkError::Mistakes(mistakes)) = project.work_for("http://127.0.0.1:1").token("t").start().await else {
        panic!("it was taken")
    };
    let said = "step \"pay\": its function waits for signals, and the project works for a server";
    assert!(mistakes.to_string().contains(said), "{mistakes}");
    let placed = job("add", add).with(1).runs_on(["gpu"]).on_demand();
    let started = Project::new("reports", "1.0").add(placed).start().await;
    let told = started.err().expect("a mistake").to_string();
    assert!(told.contains("its runs are placed on workers, and this program runs all of them itself"), "{told}");
    let bad = job("add", add).with(1).runs_on(["two words"]).on_demand();
    let told = Project::new("reports", "1.0").add(bad).check().expect_err("a mistake").to_string();
    assert!(told.contains("failed to use \"two words\" as a label"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_choose_the_program() {
    let server = Server::start().await;
    let token = server.token(&ROLES).await;
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let project = |more| Project::new("reports", "1.0").add(job("add", add).with(more).runs_on(["gpu"]).on_demand());
    let mut plain = Program::start(&server, project(1), &token, &one).await;
    plain.hears(|news| *news == WorkNews::Connected).await;
    let slot = server.fire("add", json!({ "input": [1, 1] })).await;
    assert_eq!(server.why(&slot).await, "it waits for a worker with the label gpu; the only worker lacks it");
    let gpu = Program::with(&server, project(2), &token, &two, |remote| remote.labels(["gpu"])).await;
    assert_eq!(server.ends(&slot).await.1.last().unwrap().outputs.as_deref(), json!({ "output": 4 }).as_object());
    plain.working.stop().await;
    gpu.working.stop().await;
    server.stop().await;
}
