//! The one HTTP client of a node: pooled connections, a timeout for every request, answers of limited size.
//!
//! Absent: the contents of requests and the meaning of answers, which belong to executors. Redirects are not followed,
//! because a secret must only be sent to the intended host.

use std::error::Error;
use std::time::Duration;

use kelos_engine::secrets::Mask;
use kelos_model::json::{Document, JsonError};
use kelos_tls::{Trust, explain};
pub use reqwest::header;
use reqwest::header::{HeaderMap, HeaderValue};
pub use reqwest::{Method, RequestBuilder, StatusCode};
pub use url::Url;

/// The timeout of a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// The default timeout of a whole request.
const REQUEST: Duration = Duration::from_secs(30);
/// Connections to one server that are kept open.
const IDLE: usize = 16;
/// The idle timeout of connections: less than that of usual servers.
const IDLE_FOR: Duration = Duration::from_secs(20);
/// More of an answer than this is not read.
const LARGEST_ANSWER: usize = 8 << 20;
/// More of an answer than this is not shown.
const LONGEST_WORDS: usize = 200;

/// A node's HTTP client. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Http {
    client: Result<reqwest::Client, String>,
}

/// The reason for which there is no answer. Messages complete "failed to …" and never contain a URL's query, a header
/// or a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The server can't have seen the request.
    #[error("{0}")]
    NotSent(String),
    /// It isn't known whether the server got the request.
    #[error("{0}")]
    NoAnswer(String),
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, as far as it was read.
    pub body: Vec<u8>,
    /// The reason for which the body was not read to its end, if so.
    pub cut: Option<String>,
}

impl Default for Http {
    /// A client that trusts the authorities of the system.
    fn default() -> Self {
        Self::new(&Trust::default())
    }
}

impl Http {
    /// A client with the patience of this module, and this trust in servers of `https:`.
    #[must_use]
    pub fn new(trust: &Trust) -> Self {
        Self::with_patience(trust, CONNECT, REQUEST)
    }

    /// A client with these timeouts for a connection, and for a whole answer. It never fails: an error is reported at
    /// the first request.
    #[must_use]
    pub fn with_patience(trust: &Trust, connect: Duration, request: Duration) -> Self {
        // A service that is not told may answer in any encoding.
        let plain = [(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"))];
        let client = reqwest::Client::builder()
            .default_headers(plain.into_iter().collect())
            .tls_backend_preconfigured(trust.config())
            .user_agent(concat!("kelos/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(connect)
            .timeout(request)
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(IDLE)
            .pool_idle_timeout(IDLE_FOR)
            .build();
        Self { client: client.map_err(|error| format!("set up the HTTP client: {}", cause(&error))) }
    }

    /// Begins a request, to be filled in and given to [`Http::send`].
    ///
    /// # Errors
    /// When the client could not be set up.
    pub fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, HttpError> {
        let client = self.client.as_ref().map_err(|words| HttpError::NotSent(words.clone()))?;
        Ok(client.request(method, url))
    }

    /// Sends a request and reads the whole answer, whatever its status.
    ///
    /// # Errors
    /// When there is no answer in time, or it is too large.
    pub async fn send(&self, request: RequestBuilder) -> Result<Answer, HttpError> {
        let mut answer = self.send_and_hear(request).await?;
        answer.cut.take().map_or(Ok(answer), |why| Err(HttpError::NoAnswer(why)))
    }

    /// Sends a request and reads as much of the answer as arrives in time and is not too large: its status decides,
    /// even if its body is cut.
    ///
    /// # Errors
    /// When no status arrives in time.
    pub async fn send_and_hear(&self, request: RequestBuilder) -> Result<Answer, HttpError> {
        let mut response = request.send().await.map_err(error_of)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut answer = Answer { status, headers, body: Vec::new(), cut: None };
        loop {
            match response.chunk().await {
                Ok(None) => return Ok(answer),
                Ok(Some(chunk)) if answer.body.len() + chunk.len() <= LARGEST_ANSWER => {
                    answer.body.extend_from_slice(&chunk);
                }
                Ok(Some(_)) => {
                    answer.cut = Some(format!("read the answer: it has more than {LARGEST_ANSWER} bytes"));
                    return Ok(answer);
                }
                Err(error) => {
                    let (HttpError::NotSent(why) | HttpError::NoAnswer(why)) = error_of(error);
                    answer.cut = Some(why);
                    return Ok(answer);
                }
            }
        }
    }
}

impl Answer {
    /// The answer with secrets hidden in it: what a service repeats of a request must not be kept or shown.
    #[must_use]
    pub fn masked(self, mask: &Mask) -> Answer {
        if mask.is_empty() {
            return self;
        }
        let shown = |bytes: &[u8]| {
            let mut stream = mask.stream();
            let mut shown = stream.push(bytes);
            shown.extend(stream.finish());
            shown
        };
        let headers = self
            .headers
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), HeaderValue::from_bytes(&shown(value.as_bytes())).ok()?)));
        Answer { body: shown(&self.body), headers: headers.collect(), ..self }
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// If it is none.
    pub fn json(&self) -> Result<Document, JsonError> {
        Document::read(&self.body)
    }

    /// A header as text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether the body is a page for people, as proxies and servers in trouble send.
    #[must_use]
    pub fn is_html(&self) -> bool {
        let declared = self.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
        declared
            || self.body.trim_ascii_start().starts_with(b"<!")
            || self.body.trim_ascii_start().starts_with(b"<html")
    }

    /// The first words of the body in one line, without the marks of a page.
    #[must_use]
    pub fn words(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let text = if self.is_html() { without_marks(&text) } else { text.into_owned() };
        shortened(&text)
    }

    /// The status and the first words, for people: `404 Not Found: no such job`.
    #[must_use]
    pub fn summary(&self) -> String {
        let words = self.words();
        if words.is_empty() { self.status.to_string() } else { format!("{}: {words}", self.status) }
    }

    /// The wait that a server asks for in `Retry-After`, if it is given in seconds.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.header("retry-after")?.trim().parse().ok().map(Duration::from_secs)
    }
}

/// A URL as it may be shown: without name, password, query and fragment.
#[must_use]
pub fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    // These refuse only URLs that have no host, and so no such part either.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.to_string()
}

/// A text in one line, and not longer than people read.
fn shortened(text: &str) -> String {
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(LONGEST_WORDS) {
        words.truncate(end);
        words.push('…');
    }
    words
}

/// The text between the marks of a page, but for that of its scripts and styles.
fn without_marks(page: &str) -> String {
    let mut text = String::new();
    let mut hidden = false;
    for part in page.split('<') {
        let (mark, after) = part.split_once('>').unwrap_or(("", part));
        let mark = mark.trim_start().to_ascii_lowercase();
        if mark.starts_with("script") || mark.starts_with("style") {
            hidden = true;
        } else if !mark.is_empty() {
            hidden = false;
        }
        if !hidden {
            text.push_str(after);
            text.push(' ');
        }
    }
    text
}

fn error_of(error: reqwest::Error) -> HttpError {
    let place = error.url().map(|url| format!(" {}", place_of(url))).unwrap_or_default();
    if error.is_builder() {
        return HttpError::NotSent(format!("make the request: {}", cause(&error)));
    }
    if error.is_connect() {
        let why = if error.is_timeout() { "no answer in time".to_owned() } else { cause(&error) };
        return HttpError::NotSent(format!("connect to{place}: {why}"));
    }
    let why = if error.is_timeout() { "no answer in time".to_owned() } else { cause(&error) };
    HttpError::NoAnswer(format!("hear from{place}: {why}"))
}

fn place_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or("its host");
    url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The innermost cause, which is what people can do something about.
fn cause(error: &(dyn Error + 'static)) -> String {
    if let Some(distrust) = explain(error) {
        return distrust.to_string();
    }
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &str) -> Answer {
        Answer { status: StatusCode::BAD_GATEWAY, headers: HeaderMap::new(), body: body.into(), cut: None }
    }

    #[test]
    fn words_are_short_and_without_marks() {
        let page =
            "<!DOCTYPE html>\n<html><head><style>p { a: b }</style><title>Bad\n Gateway</title></head><p>Try later";
        assert_eq!(answer(page).summary(), "502 Bad Gateway: Bad Gateway Try later");
        assert_eq!(answer("").summary(), "502 Bad Gateway");
        assert_eq!(answer(&"x ".repeat(500)).words().chars().count(), LONGEST_WORDS + 1);
    }

    #[test]
    fn urls_are_shown_without_what_may_be_secret() {
        let url = Url::parse("http://me:pass@host:81/a/b?token=1#x").unwrap();
        assert_eq!(shown(&url), "http://host:81/a/b");
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_can_not_have_seen_a_request() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = Url::parse(&format!("http://{}/?token=secret", listener.local_addr().unwrap())).unwrap();
        drop(listener);
        let http = Http::default();
        let error = http.send(http.request(Method::GET, url).unwrap()).await.unwrap_err();
        let HttpError::NotSent(words) = error else { panic!("{error:?}") };
        assert!(words.starts_with("connect to 127.0.0.1:") && words.contains("refused"), "{words}");
        assert!(!words.contains("secret"), "{words}");
    }
}
