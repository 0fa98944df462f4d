//! Documents with real servers: blocks of commands that need one, and Prometheus itself, set up as docs/metrics.md says: it has the
//! numbers, and understands the rules and the dashboard.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::desk::Desk;
use crate::marks::{self, Mark, Run};
use crate::root;

/// The command of the document.
const STARTED: &str = "prometheus --config.file=prometheus.yml";
/// The question of the document.
const ASKED: &str = "curl -s 'http://127.0.0.1:9090/api/v1/query?query=sum(kelos_leader)'";
/// How long anything may take; only what is broken needs it.
const PATIENCE: Duration = Duration::from_secs(60);

struct Prometheus {
    child: Child,
    address: String,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// Starts it in a folder, as the document does, but on a port that is free.
    fn start(folder: &Path) -> Prometheus {
        let program = std::env::var("KELOS_TEST_PROMETHEUS").expect("KELOS_TEST_PROMETHEUS, which servers/run sets");
        let log = folder.join("log");
        let child = Command::new(program)
            .args(STARTED.split(' ').skip(1))
            .arg("--web.listen-address=127.0.0.1:0")
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("a file"))
            .spawn()
            .expect("prometheus");
        let mut started = Prometheus { child, address: String::new() };
        let said = || fs::read_to_string(&log).unwrap_or_default();
        let listens = "\"Listening on\" address=";
        started.address = eventually(&said, || {
            let said = said();
            let rest = said.split_once(listens)?.1;
            rest.split_once('\n').map(|(address, _)| address.trim().to_owned())
        });
        started
    }

    /// Its answer to a request of its API; nothing while it starts.
    fn ask(&self, path: &str) -> Value {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let answer = agent.get(format!("http://{}/api/v1/{path}", self.address)).call();
        let text = answer.expect("an answer").body_mut().read_to_string().expect("a text");
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn query(&self, expression: &str) -> Value {
        let encoded = percent_encoding::utf8_percent_encode(expression, percent_encoding::NON_ALPHANUMERIC);
        self.ask(&format!("query?query={encoded}"))
    }
}

/// The first answer that there is.
fn eventually<T>(said: &dyn Fn() -> String, look: impl Fn() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "waited in vain: {}", said());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The file that the document shows, for a server at an address; times are shorter than people need them.
fn config(address: &str) -> String {
    let document = fs::read_to_string(root().join("docs/metrics.md")).expect("a document");
    let blocks = marks::blocks(&document).expect("marks");
    let is_it = |mark: &Mark| matches!(mark, Mark::File(name, _) if name == "prometheus.yml");
    let shown = blocks.into_iter().find(|block| is_it(&block.mark)).expect("prometheus.yml").text.join("\n");
    assert!(shown.contains("127.0.0.1:7437") && shown.contains("scrape_interval: 15s"), "{shown}");
    let shown = shown.replace("127.0.0.1:7437", address).replace("scrape_interval: 15s", "scrape_interval: 1s");
    format!("global: {{evaluation_interval: 1s}}\n{shown}\n")
}

/// The queries of the dashboard, with what Grafana puts in the place of its variables.
fn queries() -> Vec<String> {
    let text = fs::read_to_string(root().join("monitoring/grafana/kelos.json")).expect("the dashboard");
    let mut found = Vec::new();
    collect(&serde_json::from_str(&text).expect("JSON"), &mut found);
    let variables = [("$__rate_interval", "1m"), ("$project", ".*"), ("$workflow", ".*")];
    let put = |query: String| variables.iter().fold(query, |query, (name, value)| query.replace(name, value));
    found.into_iter().map(put).collect()
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("expr").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| collect(field, found));
        }
        Value::Array(all) => all.iter().for_each(|one| collect(one, found)),
        _ => {}
    }
}

/// The address of the database that `servers/run` started, with its password.
pub(crate) fn postgres() -> String {
    let of = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name}, which servers/run sets"));
    let password = fs::read_to_string(of("KELOS_TEST_POSTGRES_PASSWORD_FILE")).expect("a password");
    of("KELOS_TEST_POSTGRES").replacen('@', &format!(":{}@", password.trim()), 1)
}

#[test]
#[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
fn the_guide_to_several_machines_does_what_it_says() {
    let document = fs::read_to_string(root().join("docs/nodes.md")).expect("a document");
    let mut desk = Desk::new();
    let mut ran = 0;
    for block in marks::blocks(&document).expect("marks") {
        let server = block.server().map(str::to_owned);
        let done = match &block.mark {
            Mark::File(name, names) => {
                desk.write(name, names, &block.text);
                Ok(())
            }
            Mark::Run(run) if server.as_deref() == Some("postgres") => {
                ran += 1;
                desk.run(run, &block.text)
            }
            _ => Ok(()),
        };
        done.unwrap_or_else(|wrong| panic!("docs/nodes.md:{}: {wrong}", block.line));
    }
    assert!(ran > 5, "{ran} blocks were run");
}

#[test]
#[ignore = "needs a real server: servers/run with prometheus -- cargo test -- --ignored real::"]
fn prometheus_reads_a_server_as_the_document_says() {
    let mut desk = Desk::new();
    let served = Run { served: true, folder: "samples/quickstart".to_owned(), ..Run::default() };
    desk.run(&served, &[]).expect("a server");
    let folder = tempfile::tempdir().expect("a folder");
    let rules = root().join("monitoring/prometheus/kelos.rules.yml");
    fs::copy(rules, folder.path().join("kelos.rules.yml")).expect("a copy");
    let address = desk.address().trim_start_matches("http://").to_owned();
    fs::write(folder.path().join("prometheus.yml"), config(&address)).expect("a file");
    let prometheus = Prometheus::start(folder.path());

    let asked = ASKED.split("query=").nth(1).expect("a query").trim_end_matches('\'');
    let said = || prometheus.ask("targets").to_string();
    eventually(&said, || (prometheus.query(asked)["data"]["result"][0]["value"][1] == "1").then_some(()));
    eventually(&said, || {
        let rules = prometheus.ask("rules");
        let rules = rules["data"]["groups"][0]["rules"].as_array().filter(|rules| rules.len() > 5)?.clone();
        rules.iter().all(|rule| rule["health"] == "ok" && rule["type"] == "alerting").then_some(())
    });
    let queries = queries();
    assert!(queries.len() > 20, "{queries:?}");
    for query in &queries {
        let answer = prometheus.query(query);
        assert_eq!(answer["status"], "success", "{query}: {answer}");
    }
    let slots = "sum(kelos_slots{workflow=\"wordcount-nyc\"})";
    eventually(&said, || prometheus.query(slots)["data"]["result"][0]["value"][1].as_str().map(|_| ()));
}
