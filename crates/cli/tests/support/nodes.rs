//! Several nodes over one log, on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::networks::Space;
use super::stores::Store;
use super::{Folder, Said, Server, eventually, kelos, kelos_within, run_in};

/// The header with the last entry that an answer knows of.
pub(crate) const ENTRY: &str = "kelos-entry";

/// How long a request may take: longer than a node waits for a leader.
const ANSWER: Duration = Duration::from_secs(30);

/// Bytes at the end of the log of a node that are printed when a test fails.
const TAIL: usize = 3000;

/// Nodes with folders of their own, in a folder of the test.
pub(crate) struct Nodes {
    pub(crate) folder: Folder,
    pub(crate) all: Vec<Node>,
}

/// A node, which may be down.
pub(crate) struct Node {
    pub(crate) name: String,
    store: String,
    /// Variables of its environment, beside the address of the log.
    variables: Vec<(String, String)>,
    dir: PathBuf,
    role: Role,
    options: Vec<String>,
    /// The network namespace in which it runs, if not that of the test.
    space: Option<PathBuf>,
    server: Option<Server>,
}

/// The command of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// `kelos serve`.
    Server,
    /// `kelos worker`, in its own folder of jobs.
    Worker,
}

/// The answer to a request.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The last entry of the log that the node knew of.
    pub(crate) entry: Option<u64>,
    pub(crate) body: Value,
}

impl Nodes {
    /// Nodes over a log in a folder, none of which is started.
    pub(crate) fn of_file(count: usize) -> Nodes {
        let folder = Folder::with(&[]);
        let store = format!("file:{}/log", folder.text());
        let variables = vec![vec![("KELOS_STORE".to_owned(), store)]; count];
        Nodes::with_variables(folder, variables)
    }

    /// Nodes over a real store, one for each host and port at which it is reached.
    pub(crate) fn through(folder: Folder, store: &Store, at: &[String]) -> Nodes {
        Nodes::with_variables(folder, at.iter().map(|at| store.variables(at)).collect())
    }

    fn with_variables(folder: Folder, variables: Vec<Vec<(String, String)>>) -> Nodes {
        let node = |(number, variables): (usize, Vec<(String, String)>)| Node {
            name: format!("n{number}"),
            store: variables.iter().find(|(name, _)| name == "KELOS_STORE").expect("the log").1.clone(),
            variables,
            dir: folder.path().to_owned(),
            role: Role::Server,
            options: Vec::new(),
            space: None,
            server: None,
        };
        let all = variables.into_iter().enumerate().map(node).collect();
        Nodes { folder, all }
    }

    /// Makes workers of all nodes, each in a copy of a folder of jobs.
    pub(crate) fn with_jobs(mut self, jobs: &Path) -> Nodes {
        for node in &mut self.all {
            node.role = Role::Worker;
            super::copy(jobs, &node.state());
        }
        self
    }

    /// Adds options to the command line of a node.
    pub(crate) fn with(mut self, node: usize, options: &[&str]) -> Nodes {
        self.all[node].options.extend(options.iter().map(|&option| option.to_owned()));
        self
    }

    /// Has a node run on a machine of a network.
    pub(crate) fn on(mut self, node: usize, machine: &Space) -> Nodes {
        self.all[node].space = Some(machine.path());
        self.with(node, &["--bind", &machine.address, "--insecure"])
    }

    /// The address of the log.
    pub(crate) fn store(&self) -> &str {
        &self.all[0].store
    }

    /// Runs a command in the folder of the test.
    pub(crate) fn run(&self, args: &[&str]) -> Said {
        run_in(self.folder.path(), args)
    }

    /// The number of the node that leads, as the nodes say that are up.
    pub(crate) fn leader(&self) -> Option<usize> {
        self.all.iter().position(Node::leads)
    }

    /// Waits until a node leads.
    #[track_caller]
    pub(crate) fn led(&self) -> usize {
        eventually("a node leads", || self.leader())
    }

    /// Deploys a project at a node.
    #[track_caller]
    pub(crate) fn deploy(&self, node: usize, name: &str, script: &str) -> String {
        self.folder.write(&format!("{name}/workflow.js"), script);
        let server = self.all[node].address();
        let words = ["deploy", "--workflowName", name, "--deployDir", name, "--no-hdfs", "--server", &server];
        self.run(&words).ok()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for node in &self.all {
                eprintln!("the end of the log of {}:\n{}", node.name, node.tail());
            }
        }
    }
}

impl Node {
    /// The folder of its state.
    pub(crate) fn state(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    fn log(&self) -> PathBuf {
        self.dir.join(format!("{}.log", self.name))
    }

    fn tail(&self) -> String {
        let text = std::fs::read(self.log()).unwrap_or_default();
        String::from_utf8_lossy(&text[text.len().saturating_sub(TAIL)..]).into_owned()
    }

    /// Starts it, and waits until it answers.
    #[track_caller]
    pub(crate) fn start(&mut self) {
        let state = self.state();
        let state = state.to_str().expect("text");
        let (words, until) = match self.role {
            Role::Server => (["serve", "--state", state], "kelos deploy --server"),
            Role::Worker => (["worker", state, "--at-a-time=2"], "is running at"),
        };
        let mut command = self.space.as_ref().map_or_else(|| kelos(&[]), |space| kelos_within(space));
        command.args(words);
        command.args(["--port", "0", "--node", &self.name]).args(&self.options).current_dir(&self.dir);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stderr(File::options().create(true).append(true).open(self.log()).expect("a file"));
        self.server = Some(Server::run(&mut command, until));
    }

    /// The address at which it answers.
    pub(crate) fn address(&self) -> String {
        self.up().address().to_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.up().pid()
    }

    pub(crate) fn is_up(&self) -> bool {
        self.server.is_some()
    }

    #[track_caller]
    fn up(&self) -> &Server {
        self.server.as_ref().expect("a node that is up")
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.take().crash();
    }

    /// Asks it to end, and waits until it has.
    #[track_caller]
    pub(crate) fn stop(&mut self) {
        assert!(self.take().stop().success(), "{}", self.tail());
    }

    /// Gives the process away, as that of a node which is to end.
    pub(crate) fn take(&mut self) -> Server {
        self.server.take().expect("a node that is up")
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        self.up().signal(name);
    }

    fn leads(&self) -> bool {
        self.server.is_some() && self.get("/api/v1/health").is_some_and(|answer| answer.body["status"] == "leading")
    }

    /// Reads something; none where it does not answer.
    pub(crate) fn get(&self, path: &str) -> Option<Answer> {
        Answer::of(agent().get(format!("{}{path}", self.address())).call())
    }

    /// Writes a register; none where it does not answer.
    pub(crate) fn put(&self, key: &str, value: u64) -> Option<Answer> {
        let url = format!("{}/api/v1/registers/test/{key}", self.address());
        let request = agent().put(url).header("content-type", "application/json");
        Answer::of(request.send(value.to_string()))
    }

    /// The value of a register, as this node has it.
    pub(crate) fn register(&self, key: &str) -> Option<u64> {
        self.get(&format!("/api/v1/registers/test/{key}"))?.body["value"].as_u64()
    }

    /// All numbers in a bucket, by key, as this node has them.
    pub(crate) fn registers(&self, bucket: &str) -> Option<BTreeMap<String, u64>> {
        let found = self.get(&format!("/api/v1/registers/{bucket}"))?;
        let register = |item: &Value| Some((item["key"].as_str()?.to_owned(), item["value"].as_u64()?));
        found.body["items"].as_array()?.iter().map(register).collect()
    }

    /// The content of its disk that only it has: the command that was run with its folder and its log.
    pub(crate) fn recover(&self, more: &[&str]) -> Said {
        let state = self.state();
        let words = ["recover", "--store", &self.store, "--state", state.to_str().expect("text")];
        run_in(&self.dir, &[&words[..], more].concat())
    }
}

impl Answer {
    fn of(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Option<Answer> {
        let mut answer = answer.ok()?;
        let entry = answer.headers().get(ENTRY).and_then(|entry| entry.to_str().ok()?.parse().ok());
        let text = answer.body_mut().read_to_string().ok()?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Some(Answer { status: answer.status().as_u16(), entry, body })
    }
}

/// A client that takes refusals for answers, and has no connection to a node that has died.
fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(ANSWER)).build().into()
}

/// A ledger to which commands write when they start and end.
pub(crate) struct Ledger(PathBuf);

impl Ledger {
    pub(crate) fn new(folder: &Path) -> Ledger {
        Ledger(folder.join("ledger"))
    }

    /// A shell command that writes its start, does something, and writes its end.
    pub(crate) fn around(&self, shell: &str) -> String {
        let line = |word: &str| format!("echo {word} $KELOS_RUN_ID $(date +%s%N) >> {}", self.0.display());
        format!("{}; {shell}; {}", line("start"), line("end"))
    }

    /// The words of each line: what, which run, and when.
    pub(crate) fn lines(&self) -> Vec<(String, String, u128)> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        let line = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            Some((words.next()?, words.next()?, words.next()?.parse().ok()?))
        };
        text.lines().map(|text| line(text).expect("a line of the ledger")).collect()
    }

    /// The number of starts, and slots of which a run started while the one before had not ended, or twice.
    pub(crate) fn overlaps(&self) -> (usize, Vec<String>) {
        let mut lines = self.lines();
        lines.sort_by_key(|(_, _, at)| *at);
        let (mut live, mut starts, mut overlaps) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        for (what, run, _) in &lines {
            let slot = run.rsplit_once('#').map_or(run.as_str(), |(slot, _)| slot);
            if what == "end" {
                live.remove(slot);
            } else {
                if let Some(before) = live.insert(slot.to_owned(), run.clone()) {
                    overlaps.push(format!("{before} and {run}"));
                }
                if !starts.insert(run.clone()) {
                    overlaps.push(format!("{run} twice"));
                }
            }
        }
        (starts.len(), overlaps)
    }

    /// Starts and ends of the runs of a workflow.
    pub(crate) fn counts(&self, workflow: &str) -> (usize, usize) {
        let lines = self.lines();
        let of = |word: &str| {
            let begins = format!("{workflow}@");
            lines.iter().filter(|(what, run, _)| what == word && run.starts_with(&begins)).count()
        };
        (of("start"), of("end"))
    }
}
