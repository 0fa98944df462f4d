//! A stand-in for Oozie's web service that holds its jobs in memory, and can be made to fail.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kelos_executors::http::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// How it takes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mood {
    Well,
    /// Answers all with a page, as a proxy does.
    Page(&'static str, &'static str),
    /// Refuses submissions, with this code and message.
    Refuses(&'static str, &'static str),
    /// Refuses to start jobs.
    RefusesStarts,
    /// Takes what changes something, and hangs up instead of answering.
    HangsUp,
    /// Asks everybody for Kerberos.
    Kerberos,
    /// Leads elsewhere.
    Redirects(&'static str),
    /// Takes this long for a submission, which comes about all the same.
    Slow(Duration),
    /// Does not know the filter `id`.
    NoBulk,
}

#[derive(Debug, Clone)]
pub(crate) struct StubJob {
    pub(crate) external_id: String,
    pub(crate) conf: String,
    pub(crate) status: &'static str,
    pub(crate) actions: &'static str,
    pub(crate) starts: usize,
}

#[derive(Default)]
struct State {
    mood: Option<Mood>,
    jobs: BTreeMap<String, StubJob>,
    /// Methods and paths with queries, in the order they came.
    requests: Vec<String>,
}

/// A stand-in that listens. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Stub {
    state: Arc<Mutex<State>>,
    address: SocketAddr,
    serving: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Stub {
    pub(crate) async fn start() -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stub = Stub { state: Arc::default(), address: listener.local_addr().unwrap(), serving: Arc::default() };
        stub.serve(listener);
        stub
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/oozie", self.address)
    }

    pub(crate) fn down(&self) {
        if let Some(serving) = self.serving.lock().unwrap().take() {
            serving.abort();
        }
    }

    pub(crate) async fn up(&self) {
        // The old listener goes when its task is dropped, a moment after it was aborted.
        let listener = loop {
            match TcpListener::bind(self.address).await {
                Ok(listener) => break listener,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        self.serve(listener);
    }

    pub(crate) fn mood(&self, mood: Mood) {
        self.state().mood = Some(mood);
    }

    pub(crate) fn jobs(&self) -> Vec<(String, StubJob)> {
        self.state().jobs.iter().map(|(id, job)| (id.clone(), job.clone())).collect()
    }

    /// The only job.
    pub(crate) fn job(&self) -> (String, StubJob) {
        let mut jobs = self.jobs();
        assert_eq!(jobs.len(), 1, "{jobs:?}");
        jobs.remove(0)
    }

    pub(crate) fn all_become(&self, status: &'static str, actions: &'static str) {
        for job in self.state().jobs.values_mut() {
            (job.status, job.actions) = (status, actions);
        }
    }

    pub(crate) fn forget_jobs(&self) {
        self.state().jobs.clear();
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn serve(&self, listener: TcpListener) {
        let stub = self.clone();
        let serving = tokio::spawn(async move {
            // Connections go down together with it.
            let mut open = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                open.spawn(stub.clone().talk(stream));
            }
        });
        *self.serving.lock().unwrap() = Some(serving);
    }

    async fn talk(self, mut stream: TcpStream) {
        let mut got = Vec::new();
        while let Some(request) = next_request(&mut stream, &mut got).await {
            // A task that is aborted may go on for a moment.
            if self.serving.lock().unwrap().is_none() {
                return;
            }
            let Some(answer) = self.answer(request).await else { return };
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    async fn answer(&self, request: Request) -> Option<String> {
        let mood = {
            let mut state = self.state();
            state.requests.push(format!("{} {}", request.method, request.target));
            state.mood.clone().unwrap_or(Mood::Well)
        };
        let changes = request.method != "GET";
        match mood {
            Mood::Page(status, page) => return Some(answer(status, "Content-Type: text/html\r\n", page)),
            Mood::Kerberos => {
                return Some(answer("401 Unauthorized", "WWW-Authenticate: Negotiate\r\n", "<html>no</html>"));
            }
            Mood::Redirects(to) => return Some(answer("302 Found", &format!("Location: {to}\r\n"), "")),
            Mood::HangsUp if changes => {
                self.oozie(&request, &mood);
                return None;
            }
            Mood::Slow(time) if request.method == "POST" => tokio::time::sleep(time).await,
            _ => {}
        }
        Some(self.oozie(&request, &mood))
    }

    fn oozie(&self, request: &Request, mood: &Mood) -> String {
        let url = Url::parse(&format!("http://stub{}", request.target)).unwrap();
        let query: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
        let path: Vec<&str> = url.path_segments().unwrap().collect();
        match (request.method.as_str(), path.as_slice(), mood) {
            ("POST", ["oozie", "v1", "jobs"], Mood::Refuses(code, message)) => refusal(code, message),
            ("POST", ["oozie", "v1", "jobs"], _) => self.submit(&request.body),
            ("GET", ["oozie", "v1", "jobs"], _) => match (query.get("external-id"), query.get("filter")) {
                (Some(external_id), _) => self.find(external_id),
                (None, Some(_)) if *mood == Mood::NoBulk => refusal("E0420", "E0420: Invalid jobs filter"),
                (None, filter) => self.list(filter.map_or("", String::as_str)),
            },
            ("GET", ["oozie", "v1", "job", id], _) => self.info(id),
            ("PUT", ["oozie", "v1", "job", id], _) => self.act(id, &query["action"], mood),
            _ => answer("404 Not Found", "Content-Type: text/html\r\n", "<html>what?</html>"),
        }
    }

    fn submit(&self, conf: &str) -> String {
        let jobs = &mut self.state().jobs;
        let id = format!("{:07}-stub-W", jobs.len() + 1);
        let external_id = value_of(conf, "oozie.wf.external.id").unwrap_or_default();
        let job = StubJob { external_id, conf: conf.to_owned(), status: "PREP", actions: "[]", starts: 0 };
        jobs.insert(id.clone(), job);
        answer("201 Created", JSON, &format!("{{\"id\":\"{id}\"}}"))
    }

    fn find(&self, external_id: &str) -> String {
        let state = self.state();
        let found = state.jobs.iter().rfind(|(_, job)| job.external_id == external_id).map_or("", |(id, _)| id);
        answer("200 OK", JSON, &format!("{{\"id\":\"{found}\"}}"))
    }

    fn list(&self, filter: &str) -> String {
        let state = self.state();
        let ids = filter.split(';').filter_map(|part| part.strip_prefix("id="));
        let jobs = ids.filter_map(|id| Some((id, state.jobs.get(id)?)));
        let jobs: Vec<String> =
            jobs.map(|(id, job)| format!("{{\"id\":\"{id}\",\"status\":\"{}\",\"actions\":[]}}", job.status)).collect();
        answer("200 OK", JSON, &format!("{{\"total\":{},\"workflows\":[{}]}}", jobs.len(), jobs.join(",")))
    }

    fn info(&self, id: &str) -> String {
        let state = self.state();
        let Some(job) = state.jobs.get(id) else { return no_such_job(id) };
        let StubJob { status, actions, .. } = job;
        answer("200 OK", JSON, &format!("{{\"id\":\"{id}\",\"status\":\"{status}\",\"actions\":{actions}}}"))
    }

    fn act(&self, id: &str, action: &str, mood: &Mood) -> String {
        let mut state = self.state();
        let Some(job) = state.jobs.get_mut(id) else { return no_such_job(id) };
        match (action, job.status) {
            ("start", _) if *mood == Mood::RefusesStarts => return refusal("E0607", "E0607: Other error"),
            ("start", "PREP") => (job.status, job.starts) = ("RUNNING", job.starts + 1),
            ("start", _) => return refusal("E0801", "E0801: Workflow already running"),
            ("kill", "PREP" | "RUNNING" | "SUSPENDED") => job.status = "KILLED",
            _ => {}
        }
        answer("200 OK", "", "")
    }
}

const JSON: &str = "Content-Type: application/json\r\n";

fn no_such_job(id: &str) -> String {
    refusal("E0604", &format!("E0604: Job does not exist [{id}]"))
}

/// As Oozie refuses: headers of its own, and a page of its web server.
fn refusal(code: &str, message: &str) -> String {
    let headers = format!("oozie-error-code: {code}\r\noozie-error-message: {message}\r\nContent-Type: text/html\r\n");
    answer("400 Bad Request", &headers, "<html>Bad Request</html>")
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// A property's value in a configuration, where nothing in it is escaped.
pub(crate) fn value_of(conf: &str, name: &str) -> Option<String> {
    let (_, after) = conf.split_once(&format!("<name>{name}</name><value>"))?;
    Some(after.split_once("</value>")?.0.to_owned())
}

struct Request {
    method: String,
    target: String,
    body: String,
}

/// Reads a request; what was read beyond it stays in `got`.
async fn next_request(stream: &mut TcpStream, got: &mut Vec<u8>) -> Option<Request> {
    loop {
        if let Some((request, length)) = whole_request(got) {
            got.drain(..length);
            return Some(request);
        }
        if stream.read_buf(got).await.ok()? == 0 {
            return None;
        }
    }
}

fn whole_request(got: &[u8]) -> Option<(Request, usize)> {
    let text = String::from_utf8_lossy(got);
    let (head, rest) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let length =
        lines.filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.map_or(0, |(_, value)| value.trim().parse().unwrap());
    let body = rest.get(..length)?.to_owned();
    Some((Request { method, target, body }, head.len() + 4 + length))
}
