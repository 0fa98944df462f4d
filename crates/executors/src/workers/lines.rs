//! The line of a worker to several nodes: where one does not answer, the next one is asked, and all of them are known after a while.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kelos_wire::{AssignmentDto, NodesDto, OfferRequest};
use serde::Serialize;

use super::line::{AddressError, RemoteLine, is_passing};
use super::{Door, NoAnswer};
use crate::http::{Answer, Http, Method, Url};

/// The interval at which a worker asks which nodes there are.
const LEARN_EVERY: Duration = Duration::from_secs(60);

/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most addresses that are kept.
const MOST: usize = 50;

/// A line to whichever node answers. Cheap to clone.
#[derive(Clone)]
pub struct WorkerLine(Arc<LineState>);

struct LineState {
    token: Option<Arc<str>>,
    http: Http,
    nodes: Mutex<KnownNodes>,
}

/// The addresses of nodes.
struct KnownNodes {
    /// The named addresses first, then the learned ones.
    addresses: Vec<String>,
    named: usize,
    /// The one that is asked.
    at: usize,
    learned: Option<Instant>,
}

impl KnownNodes {
    fn address(&self) -> &str {
        &self.addresses[self.at]
    }

    /// Goes on to the next address, if the one that failed is still the one that is asked.
    fn go_on(&mut self, failed: &str) {
        if self.address() == failed {
            self.at = (self.at + 1) % self.addresses.len();
        }
    }

    /// Keeps the addresses of nodes after the named ones. An address that only makes sense on the machine of its node is left out,
    /// and one without TLS where TLS was named.
    fn learn(&mut self, found: impl Iterator<Item = String>) {
        let present = self.address().to_owned();
        let first = self.addresses[0].clone();
        let is_usable = |address: &String| {
            (is_local(&first) || !is_local(address))
                && (first.starts_with("http://") || address.starts_with("https://"))
        };
        self.addresses.truncate(self.named);
        for address in found.filter(is_usable) {
            if self.addresses.len() < MOST && !self.addresses.contains(&address) {
                self.addresses.push(address);
            }
        }
        self.at = self.addresses.iter().position(|address| *address == present).unwrap_or(0);
    }
}

/// Whether an address leads to the machine on which it is used.
fn is_local(address: &str) -> bool {
    let host = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    host == "localhost" || host == "[::1]" || host.starts_with("127.")
}

impl WorkerLine {
    /// The addresses in texts of one or more, with commas between them, in full and each once.
    ///
    /// # Errors
    /// When one of them is no address over HTTP, or there is none.
    pub fn addresses<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Vec<String>, AddressError> {
        let mut named = Vec::new();
        for text in texts.into_iter().flat_map(|text| text.split(',')) {
            let address = RemoteLine::address(text.trim())?;
            if !named.contains(&address) {
                named.push(address);
            }
        }
        if named.is_empty() { RemoteLine::address("").map(|address| vec![address]) } else { Ok(named) }
    }

    /// A line to the nodes at these [addresses](WorkerLine::addresses), of which there is one at least.
    #[must_use]
    pub fn of(named: Vec<String>, token: Option<Arc<str>>, http: Http) -> WorkerLine {
        let nodes = KnownNodes { named: named.len(), addresses: named, at: 0, learned: None };
        WorkerLine(Arc::new(LineState { token, http, nodes: Mutex::new(nodes) }))
    }

    /// The addresses that were named.
    #[must_use]
    pub fn named(&self) -> Vec<String> {
        let nodes = self.nodes();
        nodes.addresses[..nodes.named].to_vec()
    }

    /// The first address that was named.
    #[must_use]
    pub fn first(&self) -> String {
        self.nodes().addresses[0].clone()
    }

    /// Whether requests show a token.
    #[must_use]
    pub fn has_token(&self) -> bool {
        self.0.token.is_some()
    }

    /// Sends a request, whose path has [escaped](super::escaped) names, to the node that is asked at present. If that does not answer, or
    /// can't do it now, the next request goes to the next node.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn send(&self, method: Method, path: &str, body: &impl Serialize) -> Result<Answer, NoAnswer> {
        let (address, line) = self.present();
        let answer = line.send(method, path, body).await;
        let is_away = match &answer {
            Ok(answer) => is_passing(answer.status),
            Err(error) => matches!(error, NoAnswer::Away(_)),
        };
        if is_away {
            self.nodes().go_on(&address);
        }
        answer
    }

    /// The address that is asked at present, and the line to it.
    fn present(&self) -> (String, RemoteLine) {
        let address = self.nodes().address().to_owned();
        (address.clone(), RemoteLine::of(address, self.0.token.clone(), self.0.http.clone()))
    }

    fn nodes(&self) -> MutexGuard<'_, KnownNodes> {
        self.0.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a node that answers which others there are, now and then.
    fn learn_from(&self, address: String) {
        {
            let mut nodes = self.nodes();
            if nodes.learned.is_some_and(|at| at.elapsed() < LEARN_EVERY) {
                return;
            }
            nodes.learned = Some(Instant::now());
        }
        let line = self.clone();
        tokio::spawn(async move {
            let Some(found) = line.ask(&address).await else { return };
            let found = found.nodes.into_iter().filter_map(|node| node.address);
            line.nodes().learn(found.map(|address| address.trim_end_matches('/').to_owned()));
        });
    }

    async fn ask(&self, address: &str) -> Option<NodesDto> {
        let url = Url::parse(&format!("{address}/api/v1/nodes")).ok()?;
        let request = self.0.http.request(Method::GET, url).ok()?.timeout(PATIENCE);
        let request = match &self.0.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let answer = self.0.http.send(request).await.ok()?;
        answer.status.is_success().then(|| serde_json::from_slice(&answer.body).ok()).flatten()
    }
}

impl Door for WorkerLine {
    async fn say(&self, worker: &str, offer: &OfferRequest, patience: Duration) -> Result<AssignmentDto, NoAnswer> {
        let (address, line) = self.present();
        let answer = line.say(worker, offer, patience).await;
        match &answer {
            Ok(_) => self.learn_from(address),
            Err(NoAnswer::Away(_)) => self.nodes().go_on(&address),
            Err(_) => {}
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(named: &[&str]) -> KnownNodes {
        let addresses: Vec<String> = named.iter().map(|&address| address.to_owned()).collect();
        KnownNodes { named: addresses.len(), addresses, at: 0, learned: None }
    }

    fn learn(nodes: &mut KnownNodes, found: &[&str]) {
        nodes.learn(found.iter().map(|&address| address.to_owned()));
    }

    #[test]
    fn the_next_node_is_asked_where_one_does_not_answer() {
        let mut known = nodes(&["https://a", "https://b"]);
        known.go_on("https://a");
        known.go_on("https://a");
        assert_eq!(known.address(), "https://b");
        learn(&mut known, &["https://c", "https://a"]);
        assert_eq!((known.address(), known.addresses.len()), ("https://b", 3));
        known.go_on("https://b");
        assert_eq!(known.address(), "https://c");
        // It is gone.
        learn(&mut known, &["https://a"]);
        assert_eq!(known.address(), "https://a");
    }

    #[test]
    fn addresses_that_lead_elsewhere_are_not_learned() {
        let mut known = nodes(&["https://a"]);
        learn(&mut known, &["https://127.0.0.1:7", "http://b", "https://localhost", "https://c"]);
        assert_eq!(known.addresses, ["https://a", "https://c"]);
        let mut known = nodes(&["http://127.0.0.1:1"]);
        learn(&mut known, &["http://127.0.0.1:2"]);
        assert_eq!(known.addresses.len(), 2);
    }

    #[test]
    fn several_addresses_are_named_in_one_text_or_in_several() {
        let read = |texts: &[&str]| WorkerLine::addresses(texts.iter().copied());
        assert_eq!(read(&["https://a/, b:7", "https://a"]).unwrap(), ["https://a", "http://b:7"]);
        assert!(read(&["https://a,ftp://b"]).is_err() && read(&[]).is_err() && read(&[""]).is_err());
    }

    /// A port that takes connections and never answers, as a process that stands still does.
    fn silent() -> (std::net::TcpListener, String) {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", port.local_addr().unwrap());
        (port, address)
    }

    #[tokio::test]
    async fn a_node_that_takes_connections_and_does_not_answer_is_left() {
        let ((_first, one), (_second, other)) = (silent(), silent());
        let http = RemoteLine::client(&kelos_tls::Trust::default());
        let line = WorkerLine::of(vec![one.clone(), other.clone()], None, http);
        let said = line.say("w", &OfferRequest::default(), Duration::from_millis(50)).await;
        assert!(matches!(said, Err(NoAnswer::Away(_))), "{said:?}");
        assert_eq!(line.nodes().address(), other);
        // One that has something else to say has not waited in vain.
        let word = OfferRequest::default();
        let waits = line.say("w", &word, Duration::from_secs(60));
        assert!(tokio::time::timeout(Duration::from_millis(50), waits).await.is_err());
        assert_eq!(line.nodes().address(), other);
    }
}
