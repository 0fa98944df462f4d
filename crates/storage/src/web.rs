//! HTTP for the file systems that use it: connections, whole answers, and errors.
//!
//! Absent: URLs in messages. They may contain signatures.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use kelos_tls::{Trust, explain};
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};

use crate::StorageError;
use crate::java::{Operation, first_line};
use crate::transfer::STALLED;

/// How long a connection may take. Short, because services of cloud machines are looked for where there are none.
const CONNECT: Duration = Duration::from_secs(3);
/// How long an unused connection is kept: less than servers keep theirs.
const IDLE_FOR: Duration = Duration::from_secs(20);
/// How many bytes of an answer are read: enough for a folder of 100 000 entries with long names.
const LARGEST_ANSWER: usize = 64 << 20;
/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// The clients: one that follows redirects, one that returns them.
#[derive(Clone)]
pub(crate) struct Web {
    pub(crate) following: Client,
    pub(crate) plain: Client,
}

/// A complete answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Web {
    pub(crate) fn new(trust: &Trust) -> Result<Self, String> {
        let client = |redirects| {
            Client::builder()
                .tls_backend_preconfigured(trust.config())
                .user_agent(concat!("kelos/", env!("CARGO_PKG_VERSION")))
                .default_headers([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))].into_iter().collect())
                .connect_timeout(CONNECT)
                .read_timeout(STALLED)
                .pool_idle_timeout(IDLE_FOR)
                .redirect(redirects)
                .build()
                .map_err(|error| format!("the HTTP client could not be set up: {}", root_of(&error)))
        };
        Ok(Self { following: client(Policy::limited(REDIRECTS))?, plain: client(Policy::none())? })
    }
}

/// Reads an answer to its end, whatever its status.
pub(crate) async fn whole(asked: &Operation<'_>, response: Response) -> Result<Answer, StorageError> {
    let (status, headers) = (response.status(), response.headers().clone());
    let mut pieces = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece: Bytes = piece.map_err(|error| fault(asked, error))?;
        if body.len() + piece.len() > LARGEST_ANSWER {
            return Err(asked.other(format!("the answer has more than {LARGEST_ANSWER} bytes")));
        }
        body.extend_from_slice(&piece);
    }
    Ok(Answer { status, headers, body })
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether it is a web page, as proxies and broken servers send.
    pub(crate) fn is_page(&self) -> bool {
        let start = self.body.trim_ascii_start();
        start.starts_with(b"<!") || start.get(..5).is_some_and(|tag| tag.eq_ignore_ascii_case(b"<html"))
    }

    /// The status and the first words, for messages.
    pub(crate) fn summary(&self) -> String {
        let words = if self.is_page() { String::new() } else { first_line(&String::from_utf8_lossy(&self.body)) };
        if words.is_empty() { self.status.to_string() } else { format!("{}: {words}", self.status) }
    }

    /// The error for a status, if the body has nothing better.
    pub(crate) fn fault(&self, asked: &Operation<'_>) -> StorageError {
        status_fault(asked, self.status, &self.summary())
    }
}

/// The error for a status that is no success.
pub(crate) fn status_fault(asked: &Operation<'_>, status: StatusCode, words: &str) -> StorageError {
    match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => asked.not_found(),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => asked.denied(words),
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => asked.login("the proxy wants to know who asks"),
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            asked.unreachable(words)
        }
        _ => asked.other(words),
    }
}

/// The error of a request without an answer.
pub(crate) fn fault(asked: &Operation<'_>, error: reqwest::Error) -> StorageError {
    let error = error.without_url();
    if error.is_builder() || error.is_redirect() {
        return asked.other(root_of(&error));
    }
    asked.unreachable(connection_words(&error))
}

/// The innermost cause, in few words.
fn connection_words(error: &reqwest::Error) -> String {
    if let Some(distrust) = explain(error) {
        return distrust.to_string();
    }
    let mut cause: &(dyn Error + 'static) = error;
    loop {
        if let Some(io) = cause.downcast_ref::<std::io::Error>()
            && io.get_ref().is_none()
        {
            return crate::java::words_of(io);
        }
        match cause.source() {
            Some(deeper) => cause = deeper,
            None => break,
        }
    }
    let words = cause.to_string();
    if words.contains("lookup address") {
        return "unknown host".to_owned();
    }
    if error.is_timeout() { "the connection timed out".to_owned() } else { first_line(&words) }
}

fn root_of(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    first_line(&cause.to_string())
}
