//! A stand-in for Oozie in memory, whose jobs succeed after a while.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a job takes.
const WORK: Duration = Duration::from_millis(1500);

/// The stand-in.
pub(crate) struct Oozie {
    address: SocketAddr,
    jobs: Arc<Mutex<Vec<Job>>>,
}

struct Job {
    external_id: String,
    /// The folder that it writes.
    output: String,
    began: Option<Instant>,
    killed: Option<Instant>,
}

impl Job {
    fn status(&self) -> &'static str {
        match (self.began, self.killed) {
            (_, Some(_)) => "KILLED",
            (None, _) => "PREP",
            (Some(began), _) if began.elapsed() < WORK => "RUNNING",
            _ => "SUCCEEDED",
        }
    }
}

impl Oozie {
    pub(crate) fn start() -> Oozie {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let oozie = Oozie { address: listener.local_addr().expect("its address"), jobs: Arc::default() };
        let jobs = oozie.jobs.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let jobs = jobs.clone();
                std::thread::spawn(move || talk(client.ok()?, &jobs));
            }
        });
        oozie
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/oozie", self.address)
    }

    /// How many jobs of each folder have succeeded. No two of one folder may have been at work at a time.
    #[track_caller]
    pub(crate) fn succeeded(&self) -> BTreeMap<String, usize> {
        let jobs = self.jobs.lock().expect("jobs");
        let mut counts = BTreeMap::new();
        let mut ends: BTreeMap<&str, Instant> = BTreeMap::new();
        let mut begun: Vec<(Instant, &Job)> = jobs.iter().filter_map(|job| Some((job.began?, job))).collect();
        begun.sort_by_key(|(began, _)| *began);
        for (began, job) in begun {
            let end = job.killed.unwrap_or(began + WORK);
            let before = ends.insert(&job.output, end);
            assert!(before.is_none_or(|before| before <= began), "two jobs at a time write {}", job.output);
            if job.status() == "SUCCEEDED" {
                *counts.entry(job.output.clone()).or_default() += 1;
            }
        }
        counts
    }
}

/// Answers one request.
fn talk(mut client: TcpStream, jobs: &Mutex<Vec<Job>>) -> Option<()> {
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (method, target) = first.trim().split_once(' ')?;
    let target = target.split(' ').next()?;
    let body = String::from_utf8(body).ok()?;
    let (status, body) = answer(method, target, &body, jobs.lock().ok()?.as_mut());
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n");
    write!(client, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).ok()
}

/// The status and the body of an answer.
fn answer(method: &str, target: &str, body: &str, jobs: &mut Vec<Job>) -> (&'static str, String) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query: BTreeMap<String, String> = form(query);
    let job = path.rsplit_once("/job/").and_then(|(_, id)| id.trim_end_matches("-stub-W").parse::<usize>().ok());
    let job = job.and_then(|number| Some((number, jobs.get_mut(number)?)));
    let row = |number: usize, job: &Job| {
        format!("{{\"id\":\"{number}-stub-W\",\"status\":\"{}\",\"actions\":[]}}", job.status())
    };
    match (method, job) {
        ("POST", _) => {
            let external_id = property(body, "oozie.wf.external.id");
            jobs.push(Job { external_id, output: property(body, "outputPath"), began: None, killed: None });
            ("201 Created", format!("{{\"id\":\"{}-stub-W\"}}", jobs.len() - 1))
        }
        ("PUT", Some((_, job))) => {
            match query.get("action").map(String::as_str) {
                Some("start") => job.began = job.began.or(Some(Instant::now())),
                Some("kill") => job.killed = job.killed.or(Some(Instant::now())),
                _ => {}
            }
            ("200 OK", String::new())
        }
        ("GET", Some((number, job))) => ("200 OK", row(number, job)),
        ("GET", None) if query.contains_key("external-id") => {
            let found = jobs.iter().rposition(|job| job.external_id == query["external-id"]);
            ("200 OK", format!("{{\"id\":\"{}\"}}", found.map_or(String::new(), |number| format!("{number}-stub-W"))))
        }
        ("GET", None) if query.contains_key("filter") => {
            let asked = query["filter"].split(';').filter_map(|part| part.strip_prefix("id=")?.strip_suffix("-stub-W"));
            let asked = asked.filter_map(|id| id.parse::<usize>().ok());
            let rows: Vec<String> = asked.filter_map(|number| Some(row(number, jobs.get(number)?))).collect();
            ("200 OK", format!("{{\"total\":{},\"workflows\":[{}]}}", rows.len(), rows.join(",")))
        }
        _ => ("404 Not Found", String::new()),
    }
}

fn form(query: &str) -> BTreeMap<String, String> {
    let parsed = kelos_executors::http::Url::parse(&format!("http://stub/?{query}")).expect("a query");
    parsed.query_pairs().into_owned().collect()
}

/// The value of a property, in which nothing is escaped.
fn property(conf: &str, name: &str) -> String {
    let after = conf.split_once(&format!("<name>{name}</name><value>")).map_or("", |(_, after)| after);
    after.split_once("</value>").map_or("", |(value, _)| value).to_owned()
}
