//! Workers that share no folder with their server, as real processes: they are killed, stopped and cut off, and the ledger of their
//! commands shows that no two of one job were alive at once.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{Folder, Server, eventually, kelos, within};
use serde_json::Value;

/// The time until a lost worker is given up, with the shortest lease: also on a busy machine.
const LOST: Duration = Duration::from_secs(90);

/// Appends to a ledger for as long as it lives, whoever asks it to end politely, and ends by itself once there is a file `go`.
fn held(ledger: &Path) -> String {
    let (ledger, go) = (ledger.display(), ledger.with_file_name("go").display().to_string());
    format!(
        "trap '' TERM; echo out of {{date}}; while [ -e {ledger} ] && [ ! -e {go} ]; do echo $KELOS_RUN $(date +%s%N) >> {ledger}; sleep 0.02; done; \
         echo $KELOS_RUN $(date +%s%N) >> {ledger}"
    )
}

/// A server that leaves commands to workers, and a token for those.
struct Site {
    folder: Folder,
    server: Option<Server>,
    token: String,
    /// Further options of the server.
    options: Vec<String>,
}

impl Site {
    /// A site with a job that is held, whose description has these further properties.
    fn new(more: &Value) -> Site {
        Site::with(more, &[])
    }

    /// The same, whose server has these further options.
    fn with(more: &Value, options: &[&str]) -> Site {
        let folder = Folder::with(&[("ledger", "")]);
        let mut app = serde_json::json!({ "job_id": "{date}", "bash_cmd": held(&folder.path().join("ledger")) });
        let own = app.as_object_mut().expect("an object");
        own.extend(more.as_object().cloned().unwrap_or_default());
        folder.write("tasks.json", &serde_json::json!({ "app": app }).to_string());
        let mut site = Site {
            folder,
            server: None,
            token: String::new(),
            options: options.iter().map(|one| (*one).to_owned()).collect(),
        };
        site.start("0");
        site.token = site.folder.run(&["token", "add", "workers", "--role", "worker"]).ok().trim().to_owned();
        site
    }

    fn start(&mut self, port: &str) {
        let mut args = vec!["up", "--workers", "--lease", "15", "--port", port];
        args.extend(self.options.iter().map(String::as_str));
        self.server = Some(Server::start(self.folder.path(), &args, "kelos "));
    }

    fn address(&self) -> String {
        let text = std::fs::read_to_string(self.folder.path().join(".kelos/server.json")).expect("server.json");
        let written: Value = serde_json::from_str(&text).expect("JSON");
        written["address"].as_str().expect("an address").to_owned()
    }

    /// Starts a worker with a folder of its own.
    fn worker(&self, home: &Folder, address: &str, more: &[&str]) -> Server {
        let mut args = vec!["worker", "--server", address, "--dir", home.text(), "-n", "1"];
        args.extend(more);
        Server::run(kelos(&args).current_dir(home.path()).env("KELOS_TOKEN", &self.token), "asks ")
    }

    fn submit(&self, job: &str) {
        self.folder.run(&["submit", "-a", "app", "-j", job]).ok();
    }

    /// The numbers of runs in the ledger with the time of each of their entries.
    fn ledger(&self) -> Vec<(u32, u64)> {
        let text = std::fs::read_to_string(self.folder.path().join("ledger")).unwrap_or_default();
        let entry = |line: &str| line.split_once(' ').and_then(|(run, at)| Some((run.parse().ok()?, at.parse().ok()?)));
        text.lines().filter_map(entry).collect()
    }

    #[track_caller]
    fn begins(&self, run: u32) {
        within(LOST, "the run began", || self.ledger().iter().any(|(number, _)| *number == run).then_some(()));
    }

    fn results(&self, job: &str) -> Vec<String> {
        let why: Value = serde_json::from_str(&self.folder.run(&["why", "app", job, "--json"]).ok()).expect("JSON");
        let mut runs: Vec<(u64, String)> = why["runs"]
            .as_array()
            .into_iter()
            .flatten()
            // Of one that went back to the queue before a worker was told of it, nothing was done.
            .filter(|run| run["outcome"]["result"] != "refused")
            .map(|run| (run["number"].as_u64().expect("a number"), run["state"].as_str().expect("a state").to_owned()))
            .collect();
        runs.sort();
        runs.into_iter().map(|(_, state)| state).collect()
    }

    #[track_caller]
    fn ends(&self, job: &str, results: &[&str]) {
        within(LOST, "the job ended", || (self.results(job) == results).then_some(()));
    }

    /// The first run was lost, the second one succeeded, and at no time were both alive.
    #[track_caller]
    fn second_follows_first(&self, job: &str) {
        within(LOST, "another run began", || self.ledger().iter().any(|(number, _)| *number > 1).then_some(()));
        self.folder.write("go", "");
        self.ends(job, &["unknown", "succeeded"]);
        let ledger = self.ledger();
        let last_of_first = ledger.iter().filter(|(run, _)| *run == 1).map(|(_, at)| *at).max().expect("entries");
        let first_of_second = ledger.iter().filter(|(run, _)| *run > 1).map(|(_, at)| *at).min().expect("entries");
        assert!(last_of_first < first_of_second, "run 1 lived until {last_of_first}, run 2 from {first_of_second}");
    }

    fn workers(&self) -> Vec<Value> {
        let text = self.folder.run(&["workers", "--json"]).ok();
        let listed: Value = serde_json::from_str(&text).expect("JSON");
        listed["items"].as_array().cloned().unwrap_or_default()
    }

    /// The folders that the only worker told of.
    fn told(&self) -> Value {
        let text = self.folder.run(&["storage", "--json"]).ok();
        let found: Value = serde_json::from_str(&text).expect("JSON");
        found["workers"][0]["runs"].clone()
    }

    /// The answer to a request for the output of the first run of a job, as the API gives it.
    fn output(&self, job: &str) -> (u16, Value) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let address = format!("{}/api/v1/workflows/app/slots/~{job}/runs/1/log", self.address());
        let token =
            std::fs::read_to_string(self.folder.path().join(".kelos/owner.token")).expect("the token of the owner");
        let asked = agent.get(address).header("authorization", format!("Bearer {}", token.trim())).call();
        let mut answer = asked.expect("an answer");
        let text = answer.body_mut().read_to_string().expect("text");
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or_default())
    }

    #[track_caller]
    fn has_workers(&self, count: usize) {
        within(LOST, "the workers are there", || (self.workers().len() == count).then_some(()));
    }
}

/// A way to a server that can be cut, in each direction.
struct Cable {
    address: String,
    up: Arc<AtomicBool>,
    down: Arc<AtomicBool>,
}

impl Cable {
    fn to(address: &str) -> Cable {
        let to = address.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let (up, down) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(true)));
        let (forth, back) = (up.clone(), down.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&to) else { continue };
                let pairs = [
                    (client.try_clone(), server.try_clone(), forth.clone()),
                    (server.try_clone(), client.try_clone(), back.clone()),
                ];
                for (from, into, open) in pairs {
                    let (Ok(from), Ok(into)) = (from, into) else { continue };
                    std::thread::spawn(move || carry(from, into, &open));
                }
            }
        });
        Cable { address, up, down }
    }

    fn set(&self, up: bool, down: bool) {
        self.up.store(up, Ordering::SeqCst);
        self.down.store(down, Ordering::SeqCst);
    }
}

/// Carries bytes one way; those that come while the way is cut are lost, with their connection.
fn carry(mut from: TcpStream, mut into: TcpStream, open: &AtomicBool) {
    let mut buffer = [0; 16 << 10];
    let mut is_whole = true;
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 {
            break;
        }
        is_whole &= open.load(Ordering::SeqCst);
        if !is_whole {
            continue;
        }
        if into.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = into.shutdown(Shutdown::Both);
}

fn nothing() -> Value {
    serde_json::json!({})
}

#[test]
fn the_command_of_a_killed_worker_is_over_before_its_job_is_run_again() {
    let site = Site::new(&nothing());
    let (one, two) = (Folder::with(&[]), Folder::with(&[]));
    let victim = site.worker(&one, &site.address(), &[]);
    site.submit("20260101");
    site.begins(1);
    let _other = site.worker(&two, &site.address(), &[]);
    victim.crash();
    site.second_follows_first("20260101");
}

#[test]
fn a_worker_that_is_stopped_beyond_its_lease_is_not_believed_and_begins_anew() {
    let site = Site::new(&nothing());
    let (one, two) = (Folder::with(&[]), Folder::with(&[]));
    let sleeper = site.worker(&one, &site.address(), &[]);
    site.submit("20260101");
    site.begins(1);
    let other = site.worker(&two, &site.address(), &[]);
    sleeper.signal("STOP");
    site.second_follows_first("20260101");
    assert!(other.stop().success());
    sleeper.signal("CONT");
    site.submit("20260102");
    site.ends("20260102", &["succeeded"]);
    assert_eq!(site.results("20260101"), ["unknown", "succeeded"], "what it said late does not count");
    assert!(sleeper.stop().success());
}

/// A worker is cut off in some way, and comes back.
fn cut_off(up: bool, down: bool) {
    let site = Site::new(&nothing());
    let (one, two) = (Folder::with(&[]), Folder::with(&[]));
    let cable = Cable::to(&site.address());
    let lonely = site.worker(&one, &cable.address, &[]);
    site.submit("20260101");
    site.begins(1);
    let other = site.worker(&two, &site.address(), &[]);
    cable.set(up, down);
    site.second_follows_first("20260101");
    assert!(other.stop().success());
    cable.set(true, true);
    site.submit("20260102");
    site.ends("20260102", &["succeeded"]);
    assert!(lonely.stop().success());
}

#[test]
fn a_worker_that_is_cut_off_loses_its_run_after_its_command_is_over() {
    cut_off(false, false);
}

#[test]
fn a_worker_that_hears_nothing_loses_its_run_after_its_command_is_over() {
    cut_off(true, false);
}

#[test]
fn a_worker_that_is_not_heard_loses_its_run_after_its_command_is_over() {
    cut_off(false, true);
}

#[test]
fn a_run_outlives_its_server_and_its_end_is_reported_to_the_next() {
    let mut site = Site::new(&nothing());
    let home = Folder::with(&[]);
    let address = site.address();
    let port = address.rsplit(':').next().expect("a port").to_owned();
    let worker = site.worker(&home, &address, &[]);
    site.submit("20260101");
    site.begins(1);
    site.server.take().expect("a server").crash();
    site.start(&port);
    site.folder.write("go", "");
    site.ends("20260101", &["succeeded"]);
    assert!(worker.stop().success());
}

#[test]
fn a_worker_that_is_started_again_goes_on_with_its_runs() {
    let site = Site::new(&nothing());
    let home = Folder::with(&[]);
    let worker = site.worker(&home, &site.address(), &[]);
    site.submit("20260101");
    site.begins(1);
    worker.crash();
    let worker = site.worker(&home, &site.address(), &[]);
    site.folder.write("go", "");
    site.ends("20260101", &["succeeded"]);
    assert!(worker.stop().success());
}

#[test]
fn a_job_may_wait_for_its_worker_and_one_whose_loss_ends_it_is_not_tried_again() {
    let site = Site::new(&serde_json::json!({ "on_lost": "wait 10m" }));
    let home = Folder::with(&[]);
    site.worker(&home, &site.address(), &[]).crash();
    let worker = site.worker(&home, &site.address(), &[]);
    site.submit("20260101");
    site.begins(1);
    // The command may begin before the server has heard of its start.
    within(LOST, "the start is known", || (site.folder.states("app") == ["running"]).then_some(()));
    worker.crash();
    within(LOST, "the worker is away", || {
        site.workers().iter().any(|worker| worker["awaySince"].is_string()).then_some(())
    });
    let said = site.folder.run(&["logs", "app", "20260101"]).fails(1);
    assert!(said.contains("it is on worker ") && said.contains("which is away since "), "{said}");
    let worker = site.worker(&home, &site.address(), &[]);
    site.folder.write("go", "");
    site.ends("20260101", &["succeeded"]);
    assert!(worker.stop().success());

    let site = Site::new(&serde_json::json!({ "on_lost": "end" }));
    let home = Folder::with(&[]);
    let worker = site.worker(&home, &site.address(), &[]);
    site.submit("20260101");
    site.begins(1);
    worker.crash();
    within(LOST, "the job failed", || {
        let states = site.folder.states("app");
        (states == ["failed"]).then_some(())
    });
}

#[test]
fn output_is_read_through_the_server() {
    let site = Site::new(&nothing());
    let home = Folder::with(&[]);
    let worker = site.worker(&home, &site.address(), &[]);
    site.submit("20260101");
    site.begins(1);
    eventually("the output is there", || {
        let said = site.folder.run(&["logs", "app", "20260101"]);
        said.out.contains("out of 20260101").then_some(())
    });
    site.folder.write("go", "");
    site.ends("20260101", &["succeeded"]);
    let said = site.folder.run(&["logs", "app", "20260101"]).ok();
    assert_eq!(said.trim(), "out of 20260101");
    let page = crate::support::run(&["ls", "--server", &site.address()]);
    assert_eq!(page.code, 0);
    assert!(worker.stop().success());
    within(LOST, "the worker has left", || site.workers().is_empty().then_some(()));
    let said = site.folder.run(&["logs", "app", "20260101"]).fails(1);
    assert!(said.contains("which is away"), "{said}");
}

#[test]
fn finished_output_is_read_from_its_copy_while_its_worker_is_away() {
    let (outputs, home) = (Folder::with(&[]), Folder::with(&[]));
    let place = format!("file:{}", outputs.text());
    let site = Site::with(&nothing(), &["--outputs", &place]);
    site.folder.write("go", "");
    let worker = site.worker(&home, &site.address(), &["--outputs", &place]);
    within(LOST, "the worker is there", || (site.workers().len() == 1).then_some(()));
    assert_eq!(site.workers()[0]["outputs"], place);
    site.submit("20260101");
    site.ends("20260101", &["succeeded"]);
    assert!(worker.stop().success());
    within(LOST, "the worker has left", || site.workers().is_empty().then_some(()));
    std::fs::remove_dir_all(home.path().join("runs")).expect("the disk of the worker is gone");
    let said = site.folder.run(&["logs", "app", "20260101"]).ok();
    assert_eq!(said.trim(), "out of 20260101");
    assert!(outputs.path().join("app/%7E20260101/1/exit.json").exists(), "the path of a copy is that of its run");

    let said = Folder::with(&[]).run(&["up", "--port", "0", "--outputs", "https://a.example/b"]).fails(2);
    assert!(said.contains("nothing can be written to a web server"), "{said}");
    let said = Folder::with(&[]).run(&["up", "--port", "0", "--outputs", "ftp://a/b"]).fails(2);
    assert!(said.contains("use the place of --outputs: failed to "), "{said}");
    let said = crate::support::run(&["worker", "--outputs", &place]).fails(2);
    assert!(said.contains("--server"), "{said}");
}

#[test]
fn folders_on_the_disk_of_a_worker_go_by_their_age_once_the_server_has_their_end() {
    let settings = r#"{"history": {"days": 5, "runs": 0}}"#;
    let (site, home) = (Site::new(&nothing()), Folder::with(&[("history.json", settings)]));
    site.folder.write("go", "");
    let worker = site.worker(&home, &site.address(), &[]);
    for job in ["20260101", "20260102"] {
        site.submit(job);
        site.ends(job, &["succeeded"]);
    }
    assert!(worker.stop().success());
    assert!(home.path().join("runs/.bounded").is_file(), "the folder is a new one");
    let [old, young] = ["20260101", "20260102"].map(|job| home.path().join(format!("runs/app/%7E{job}/1")));
    let exit = std::fs::File::options().write(true).open(old.join("exit.json")).expect("an outcome");
    exit.set_modified(std::time::SystemTime::now() - Duration::from_secs(6 * 86_400)).expect("an older one");
    let worker = site.worker(&home, &site.address(), &["--config", "history.json"]);
    within(LOST, "the folder is gone", || (!old.exists()).then_some(()));
    assert!(young.join("exit.json").is_file());
    site.has_workers(1);
    let said = site.folder.run(&["logs", "app", "20260101"]).fails(1);
    assert!(said.contains("it was removed on ") && said.contains("after 5 days"), "{said}");
    within(LOST, "the server has heard of it", || (site.told()["removed"]["folders"] == 1).then_some(()));
    assert_eq!(site.told()["all"]["folders"], 1);
    assert!(site.told()["oldestAt"].is_string(), "{}", site.told());
    let lines = site.folder.run(&["storage"]).ok();
    assert!(lines.contains("worker     ") && lines.contains("; 1 folder with "), "{lines}");
    let (status, problem) = site.output("20260101");
    assert_eq!((status, &problem["code"]), (410, &Value::from("output-removed")), "{problem}");
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(detail.starts_with("failed to read the output of run ") && detail.ends_with(", after 5 days"), "{detail}");
    assert_eq!(site.folder.run(&["logs", "app", "20260102"]).ok().trim(), "out of 20260102");
    assert!(worker.stop().success());
}

#[test]
fn only_a_worker_with_all_labels_gets_a_run() {
    let site = Site::new(&serde_json::json!({ "runs_on": ["gpu", "eu"] }));
    site.folder.write("go", "");
    let (one, two) = (Folder::with(&[]), Folder::with(&[]));
    let _plain = site.worker(&one, &site.address(), &["--labels", "eu"]);
    site.submit("20260101");
    site.has_workers(1);
    let why = "it waits for a worker with the labels eu and gpu; the only worker lacks them";
    within(LOST, "the reason is told", || site.folder.run(&["why", "app", "20260101"]).out.contains(why).then_some(()));
    let _both = site.worker(&two, &site.address(), &["--labels", "gpu,eu,ssd"]);
    site.ends("20260101", &["succeeded"]);
    let table = site.folder.run(&["workers"]).ok();
    assert!(table.contains("eu, gpu, ssd") && table.contains("connected"), "{table}");
}

#[test]
fn slots_of_schedules_and_steps_of_flows_are_run_by_workers_too() {
    let mut site = Site::new(&nothing());
    let script = r#"
        kelos.workflow("hours", { schedule: "0 0 1 1 *", catchUp: "skip", shell: "echo hour $KELOS_TIME", runsOn: "a" });
        kelos.flow("etl", { runsOn: ["a"], steps: {
            get: { shell: "echo '{\"rows\": 12}' > $KELOS_OUTPUTS" },
            put: { needs: "get", shell: "echo has $KELOS_ARG_rows", runsOn: "b" },
        } });
    "#;
    site.folder.write("workflows/jobs.js", script);
    site.server.take().expect("a server").stop();
    site.start("0");
    let (one, two) = (Folder::with(&[]), Folder::with(&[]));
    let _a = site.worker(&one, &site.address(), &["--labels", "a"]);
    let _b = site.worker(&two, &site.address(), &["--labels", "b"]);
    site.folder.run(&["rerun", "hours", "2026-01-01T00:00Z"]).ok();
    site.folder.run(&["start", "etl"]).ok();
    within(LOST, "both ended", || {
        (site.folder.states("hours") == ["succeeded"]
            && site.folder.states("etl").iter().all(|state| state == "succeeded")
            && !site.folder.states("etl").is_empty())
        .then_some(())
    });
    let said = site.folder.run(&["logs", "hours", "2026-01-01T00:00Z"]).ok();
    assert_eq!(said.trim(), "hour 2026-01-01T00:00:00.000Z");
    assert!(!site.folder.path().join(".kelos/runs/hours").exists(), "the server ran it itself");
}

#[test]
fn a_worker_is_told_what_is_wrong_with_its_token_its_server_and_its_folder() {
    let site = Site::new(&nothing());
    let home = Folder::with(&[]);
    let address = site.address();
    let args = ["worker", "--server", &*address, "--dir", home.text()];
    let with = |token: Option<&str>| {
        let mut command: Command = kelos(&args);
        command.current_dir(home.path()).env_remove("KELOS_TOKEN").env("HOME", home.path());
        command.envs(token.map(|token| ("KELOS_TOKEN", token)));
        crate::support::Said::of(command.output().expect("it runs"))
    };
    let said = with(None).fails(1);
    assert!(
        said.contains("hint: this worker shows no token: `kelos token add NAME --role worker` makes one"),
        "{said}"
    );
    let said = with(Some("kelos_wrong")).fails(1);
    assert!(said.contains("does not show the token of this server"), "{said}");
    let viewer = site.folder.run(&["token", "add", "viewer", "--role", "view"]).ok();
    let said = with(Some(viewer.trim())).fails(1);
    assert!(said.contains("needs the role worker"), "{said}");
    let _running = site.worker(&home, &address, &[]);
    let said = with(Some(&site.token)).fails(1);
    assert!(said.contains("another worker is running there") && said.contains("--dir names another folder"), "{said}");
    let said = crate::support::run(&["worker", "--server", "ftp://x", "--token-file", "/dev/null"]).fails(2);
    assert!(said.contains("expected an address such as https://kelos.example"), "{said}");
    let said = crate::support::run(&["worker", "--server", "x", "--labels", "a b"]).fails(2);
    assert!(said.contains("expected 1 to 63 letters"), "{said}");
}
