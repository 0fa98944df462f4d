//! HDFS over HTTP, as served by name nodes and gateways.
//!
//! Absent: Kerberos over HTTP; use a delegation token instead.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde_json::Value;
use tokio::io::AsyncRead;

use crate::file_system::{MOST_ENTRIES, too_many};
use crate::java::Operation;
use crate::local::{file_name, unfinished_name};
use crate::transfer::{Source, body, collect, fill, in_time};
use crate::web::{Answer, fault, whole};
use crate::{Entry, FileSystem, Kind, StorageError};

/// The characters that are escaped in a path, besides those that are not ASCII.
const IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b';')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The credentials of requests.
#[derive(Clone, Default)]
pub(crate) struct Identity {
    /// The user, whom clusters without Kerberos accept.
    pub(crate) user: Option<String>,
    /// A delegation token.
    pub(crate) token: Option<String>,
}

/// The files of one cluster.
pub(crate) struct WebHdfsFiles {
    endpoint: String,
    /// The base URL of each name node: `http://host:port`.
    servers: Vec<String>,
    /// The index of the name node that answered last.
    active: AtomicUsize,
    identity: Identity,
    client: Client,
}

impl WebHdfsFiles {
    /// Creates a client without contacting a server; there must be at least one.
    pub(crate) fn new(endpoint: String, servers: Vec<String>, identity: Identity, client: Client) -> Self {
        Self { endpoint, servers, active: AtomicUsize::new(0), identity, client }
    }

    fn asked<'a>(&'a self, what: &'static str, path: &'a str) -> Operation<'a> {
        Operation { what, endpoint: &self.endpoint, path }
    }

    fn url(&self, asked: &Operation<'_>, server: &str, operation: &str) -> Result<Url, StorageError> {
        let path = utf8_percent_encode(asked.path, IN_PATH);
        let mut url = format!("{server}/webhdfs/v1{path}?op={operation}");
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        match (&self.identity.token, &self.identity.user) {
            (Some(token), _) => url += &format!("&delegation={}", encoded(token)),
            (None, Some(user)) => url += &format!("&user.name={}", encoded(user)),
            (None, None) => {}
        }
        Url::parse(&url).map_err(|error| asked.other(error.to_string()))
    }

    /// Asks the name node that answered last, then each other one, as long as they can't be reached or are standbys.
    async fn ask(&self, asked: &Operation<'_>, method: Method, operation: &str) -> Result<Answer, StorageError> {
        let first = self.active.load(Ordering::Relaxed);
        let mut last = asked.unreachable("it has no name node");
        for turn in 0..self.servers.len() {
            let index = (first + turn) % self.servers.len();
            match self.ask_one(asked, &method, operation, &self.servers[index]).await {
                Err(error @ StorageError::Unreachable { .. }) => last = error,
                other => {
                    self.active.store(index, Ordering::Relaxed);
                    return other;
                }
            }
        }
        Err(last)
    }

    async fn ask_one(
        &self,
        asked: &Operation<'_>,
        method: &Method,
        operation: &str,
        server: &str,
    ) -> Result<Answer, StorageError> {
        let url = self.url(asked, server, operation)?;
        let sent = self.client.request(method.clone(), url).send().await;
        let answer = whole(asked, sent.map_err(|error| fault(asked, error))?).await?;
        if answer.status.is_success() || answer.status.is_redirection() {
            Ok(answer)
        } else {
            Err(refusal(asked, &answer))
        }
    }

    /// The answer as JSON. Anything else is not from WebHDFS.
    async fn json(&self, asked: &Operation<'_>, method: Method, operation: &str) -> Result<Value, StorageError> {
        let answer = self.ask(asked, method, operation).await?;
        serde_json::from_slice(&answer.body).map_err(|_| no_json(asked, &answer))
    }

    /// The data node to which a name node redirects those who read or write the content of a file.
    async fn data_node(&self, asked: &Operation<'_>, method: Method, operation: &str) -> Result<Url, StorageError> {
        let answer = self.ask(asked, method, operation).await?;
        let in_body =
            || serde_json::from_slice::<Value>(&answer.body).ok()?.get("Location")?.as_str().map(str::to_owned);
        let location = answer.header(LOCATION.as_str()).map(str::to_owned).or_else(in_body);
        let url = location.and_then(|location| Url::parse(&location).ok()).ok_or_else(|| no_json(asked, &answer))?;
        if self.servers.iter().all(|server| server.starts_with("https:")) && url.scheme() != "https" {
            return Err(asked.other("the name node sends to a data node without encryption"));
        }
        Ok(url)
    }

    async fn opened(&self, asked: &Operation<'_>) -> Result<Response, StorageError> {
        let url = self.data_node(asked, Method::GET, "OPEN").await?;
        let response = self.client.get(url).send().await.map_err(|error| of_data_node(asked, error))?;
        if response.status().is_success() { Ok(response) } else { Err(refusal(asked, &whole(asked, response).await?)) }
    }

    async fn create(
        &self,
        asked: &Operation<'_>,
        content: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Result<(), StorageError> {
        let url = self.data_node(asked, Method::PUT, "CREATE&overwrite=true&permission=644").await?;
        let (filling, body) = body();
        let request = self.client.put(url).header(CONTENT_TYPE, "application/octet-stream").body(body);
        let place = asked.place();
        let (filled, sent) = tokio::join!(fill(&place, content, filling), request.send());
        filled?;
        let answer = whole(asked, sent.map_err(|error| of_data_node(asked, error))?).await?;
        if answer.status == StatusCode::CREATED { Ok(()) } else { Err(refusal(asked, &answer)) }
    }

    async fn replace(&self, unfinished: &str, path: &str) -> Result<(), StorageError> {
        let asked = self.asked("write", unfinished);
        self.moved(&asked, path, "OVERWRITE").await
    }

    async fn moved(&self, asked: &Operation<'_>, to: &str, option: &str) -> Result<(), StorageError> {
        let to = utf8_percent_encode(to, NON_ALPHANUMERIC);
        let operation = format!("RENAME&destination={to}&renameoptions={option}");
        self.ask(asked, Method::PUT, &operation).await.map(drop)
    }
}

#[async_trait]
impl FileSystem for WebHdfsFiles {
    async fn stat(&self, path: &str) -> Result<Option<Entry>, StorageError> {
        let asked = self.asked("look at", path);
        match self.json(&asked, Method::GET, "GETFILESTATUS").await {
            Err(StorageError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
            Ok(answer) => {
                let status = answer.get("FileStatus").ok_or_else(|| asked.other("the answer has no FileStatus"))?;
                Ok(Some(entry(file_name(path), status)))
            }
        }
    }

    async fn list(&self, folder: &str) -> Result<Option<Vec<Entry>>, StorageError> {
        let asked = self.asked("list", folder);
        let answer = match self.json(&asked, Method::GET, "LISTSTATUS").await {
            Err(StorageError::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        let found = answer.pointer("/FileStatuses/FileStatus").and_then(Value::as_array);
        let statuses = found.ok_or_else(|| asked.other("the answer has no FileStatuses"))?;
        if statuses.len() > MOST_ENTRIES {
            return Err(too_many(&asked.place()));
        }
        let mut entries: Vec<Entry> = statuses.iter().map(|status| entry(name_in(status), status)).collect();
        // A file is listed as itself, without a name.
        if entries.first().is_some_and(|first| first.name.is_empty()) {
            return Ok(None);
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Some(entries))
    }

    async fn read(&self, path: &str, limit: u64) -> Result<Bytes, StorageError> {
        let asked = self.asked("read", path);
        let response = in_time(&self.endpoint, self.opened(&asked)).await??;
        let place = asked.place();
        if response.content_length().is_some_and(|length| length > limit) {
            return Err(StorageError::too_large(&place, limit));
        }
        let source = Source { endpoint: &self.endpoint, place: &place };
        collect(response.bytes_stream(), limit, source, |error| of_data_node(&asked, error)).await
    }

    async fn put(&self, path: &str, content: &mut (dyn AsyncRead + Send + Unpin)) -> Result<(), StorageError> {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let unfinished = format!("{folder}/{}", unfinished_name(path));
        let written = match self.create(&self.asked("write", &unfinished), content).await {
            Ok(()) => self.replace(&unfinished, path).await,
            Err(error) => Err(error),
        };
        if written.is_err() {
            let _ = self.remove(&unfinished).await;
        }
        written
    }

    async fn make_folder(&self, path: &str) -> Result<(), StorageError> {
        let asked = self.asked("make the folder", path);
        let answer = self.json(&asked, Method::PUT, "MKDIRS&permission=755").await?;
        if is_done(&answer) { Ok(()) } else { Err(asked.other("the name node did not make it")) }
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), StorageError> {
        self.moved(&self.asked("rename", from), to, "NONE").await
    }

    async fn remove(&self, path: &str) -> Result<(), StorageError> {
        let asked = self.asked("remove", path);
        match self.json(&asked, Method::DELETE, "DELETE&recursive=true").await {
            // It answers false if nothing exists there.
            Ok(_) | Err(StorageError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn is_done(answer: &Value) -> bool {
    answer.get("boolean").and_then(Value::as_bool).unwrap_or(false)
}

fn name_in(status: &Value) -> String {
    status.get("pathSuffix").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn entry(name: String, status: &Value) -> Entry {
    let number = |key: &str| status.get(key).and_then(Value::as_u64).unwrap_or(0);
    let is_folder = status.get("type").and_then(Value::as_str) == Some("DIRECTORY");
    let modified = i64::try_from(number("modificationTime")).ok();
    let modified = modified.and_then(|at| Timestamp::from_millisecond(at).ok());
    let (kind, bytes) = if is_folder { (Kind::Folder, 0) } else { (Kind::File, number("length")) };
    Entry { name, kind, bytes, modified }
}

/// The error of an answer that is no success: the name node's exception, else its status.
fn refusal(asked: &Operation<'_>, answer: &Answer) -> StorageError {
    let parsed = serde_json::from_slice::<Value>(&answer.body).ok();
    let exception = parsed.as_ref().and_then(|answer| answer.get("RemoteException"));
    let text = |key: &str| exception?.get(key)?.as_str();
    if answer.status == StatusCode::UNAUTHORIZED {
        return asked.login(login_hint(answer));
    }
    match (text("exception"), text("message")) {
        (Some(class), message) => asked.exception(class, message.unwrap_or_default()),
        // A name node gives a reason for a 404; other servers answer 404 because they don't have WebHDFS.
        _ if answer.status == StatusCode::NOT_FOUND => no_json(asked, answer),
        _ if answer.is_page() && !answer.status.is_server_error() => no_json(asked, answer),
        _ => answer.fault(asked),
    }
}

fn login_hint(answer: &Answer) -> String {
    let wants_kerberos = answer.header("www-authenticate").is_some_and(|ways| ways.contains("Negotiate"));
    if wants_kerberos {
        "it wants Kerberos over HTTP (SPNEGO), which webhdfs: does not have; use hdfs:, or set KELOS_WEBHDFS_TOKEN"
            .to_owned()
    } else {
        format!("it answered {}; set HADOOP_USER_NAME or KELOS_WEBHDFS_TOKEN", answer.status)
    }
}

fn no_json(asked: &Operation<'_>, answer: &Answer) -> StorageError {
    let what = if answer.is_page() { "a web page" } else { "no JSON" };
    let status = answer.status;
    asked.unreachable(format!(
        "expected the JSON of WebHDFS, and got {what} ({status}): is it the right port, or a proxy?"
    ))
}

/// The error of a data node, with its name, which must be resolvable on this side, too.
fn of_data_node(asked: &Operation<'_>, error: reqwest::Error) -> StorageError {
    let host = error.url().and_then(|url| Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?)));
    match (fault(asked, error), host) {
        (StorageError::Unreachable { detail, .. }, Some(host)) => {
            asked.other(format!("the data node {host}: {detail}"))
        }
        (error, _) => error,
    }
}
