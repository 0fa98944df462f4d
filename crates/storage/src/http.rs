//! Files of web servers: stat and read, without list and changes.

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, LAST_MODIFIED, RANGE};
use reqwest::{Client, Method, Response, StatusCode, Url};
use tokio::io::AsyncRead;

use crate::java::Operation;
use crate::transfer::{Source, collect, in_time};
use crate::web::{fault, status_fault};
use crate::{Entry, FileSystem, Kind, StorageError};

/// The files of one web server.
pub(crate) struct HttpFiles {
    endpoint: String,
    client: Client,
}

impl HttpFiles {
    pub(crate) fn new(endpoint: String, client: Client) -> Self {
        Self { endpoint, client }
    }

    /// The operation for messages, its path without the query, which may contain a signature.
    fn asked<'a>(&'a self, what: &'static str, path: &'a str) -> Operation<'a> {
        let path = path.split('?').next().unwrap_or(path);
        Operation { what, endpoint: &self.endpoint, path }
    }

    fn url(&self, asked: &Operation<'_>, path: &str) -> Result<Url, StorageError> {
        Url::parse(&format!("{}{path}", self.endpoint)).map_err(|error| asked.other(error.to_string()))
    }

    async fn ask(&self, asked: &Operation<'_>, method: Method, path: &str) -> Result<Response, StorageError> {
        let is_look = method == Method::GET && asked.what == LOOK;
        let mut request = self.client.request(method, self.url(asked, path)?);
        if is_look {
            request = request.header(RANGE, "bytes=0-0");
        }
        request.send().await.map_err(|error| fault(asked, error))
    }

    fn changes_nothing(&self, what: &'static str, path: &str) -> StorageError {
        self.asked(what, path).unsupported("files of web servers can be looked at and read only")
    }
}

const LOOK: &str = "look at";

#[async_trait]
impl FileSystem for HttpFiles {
    async fn stat(&self, path: &str) -> Result<Option<Entry>, StorageError> {
        let asked = self.asked(LOOK, path);
        let mut response = self.ask(&asked, Method::HEAD, path).await?;
        if wants_get(response.status()) {
            response = self.ask(&asked, Method::GET, path).await?;
        }
        let status = response.status();
        match status {
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
            StatusCode::RANGE_NOT_SATISFIABLE => Ok(Some(entry(path, response.headers()))),
            _ if status.is_success() => Ok(Some(entry(path, response.headers()))),
            _ => Err(status_fault(&asked, status, &status.to_string())),
        }
    }

    async fn list(&self, folder: &str) -> Result<Option<Vec<Entry>>, StorageError> {
        let asked = self.asked("list", folder);
        Err(asked.unsupported("web servers have no way of listing; wait for a file that is written last"))
    }

    async fn read(&self, path: &str, limit: u64) -> Result<Bytes, StorageError> {
        let asked = self.asked("read", path);
        let response = in_time(&self.endpoint, self.ask(&asked, Method::GET, path)).await??;
        if !response.status().is_success() {
            return Err(status_fault(&asked, response.status(), &response.status().to_string()));
        }
        let place = asked.place();
        if response.content_length().is_some_and(|length| length > limit) {
            return Err(StorageError::too_large(&place, limit));
        }
        let source = Source { endpoint: &self.endpoint, place: &place };
        collect(response.bytes_stream(), limit, source, |error| fault(&asked, error)).await
    }

    async fn put(&self, path: &str, _: &mut (dyn AsyncRead + Send + Unpin)) -> Result<(), StorageError> {
        Err(self.changes_nothing("write", path))
    }

    async fn make_folder(&self, path: &str) -> Result<(), StorageError> {
        Err(self.changes_nothing("make the folder", path))
    }

    async fn rename(&self, from: &str, _: &str) -> Result<(), StorageError> {
        Err(self.changes_nothing("rename", from))
    }

    async fn remove(&self, path: &str) -> Result<(), StorageError> {
        Err(self.changes_nothing("remove", path))
    }
}

/// Whether a server that gives this answer to HEAD may give another to GET: some support only GET, and a signature holds for one of both.
fn wants_get(status: StatusCode) -> bool {
    matches!(status, StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED)
}

fn entry(path: &str, headers: &HeaderMap) -> Entry {
    let path = path.split('?').next().unwrap_or(path);
    let modified = text(headers, LAST_MODIFIED.as_str()).and_then(time_of);
    Entry { name: crate::local::file_name(path), kind: Kind::File, bytes: size(headers), modified }
}

/// The size of the whole file: the number after the slash of a range, else the length.
fn size(headers: &HeaderMap) -> u64 {
    let of_range = text(headers, CONTENT_RANGE.as_str()).and_then(|range| range.rsplit_once('/')?.1.parse().ok());
    of_range.or_else(|| text(headers, CONTENT_LENGTH.as_str())?.parse().ok()).unwrap_or(0)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn time_of(text: &str) -> Option<Timestamp> {
    DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok()
}
