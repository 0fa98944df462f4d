//! Requests to a server over its native API.

use std::io::Read;
use std::ops::Deref;
use std::time::Duration;

use kelos_front::INSTANCE;
use kelos_model::nesting;
use kelos_tls::Trust;
use kelos_wire::{HealthDto, PageDto, ProblemDetailsDto};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use ureq::http::{HeaderValue, Response, StatusCode};
use ureq::typestate::WithBody;
use ureq::{Agent, Body, RequestBuilder};

use crate::address::Query;
use crate::agent;
use crate::credential::bearer;
use crate::failure::{Failure, UNREACHABLE};
use crate::location::Location;
use crate::trust::TrustOptions;

/// Rows on the longest page that a server gives.
const LONGEST_PAGE: usize = 1000;

/// Time limit for the beginning of an answer. The longest turns, such as a backfill of a year of minutes, take seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client of one server.
pub(crate) struct Client {
    agent: Agent,
    trust: Option<Trust>,
    base: String,
    user: Option<HeaderValue>,
    /// The token that it shows.
    token: Option<HeaderValue>,
    /// The name that the server must have; none where any server at the address will do.
    instance: Option<HeaderValue>,
}

impl Client {
    /// A client of the server that recorded its location, and of no other one that has its port by now.
    pub(crate) fn of(location: &Location, trust: &TrustOptions) -> Result<Client, Failure> {
        let instance = location.instance.as_ref().and_then(|name| HeaderValue::from_str(name).ok());
        let client = Client::over(&location.address, &trust.or_pin(location.pin))?;
        let token = trust.token.header(&client.base, location.owner.as_deref())?;
        Ok(Client { instance, token, ..client })
    }

    /// The same client, but one that waits for an answer no longer than this.
    pub(crate) fn patient_for(self, patience: Duration) -> Client {
        Client { agent: agent(patience, self.trust.as_ref()), ..self }
    }

    /// A client of the server at an address.
    pub(crate) fn at(base: &str, trust: &TrustOptions) -> Result<Client, Failure> {
        let base = base.to_owned();
        let base = if base.contains("://") { base } else { format!("http://{base}") };
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(Failure::usage(format!(
                "use the server {base}: expected an address such as http://127.0.0.1:7437 or https://kelos.example"
            )));
        }
        // A client that pins a certificate must not be answered by anything else.
        if base.starts_with("http://") && trust.has_pin() {
            return Err(Failure::usage(format!("use the server {base}: a pin is given, expected https://")));
        }
        let client = Client::over(&base, trust)?;
        let token = trust.token.header(&client.base, None)?;
        Ok(Client { token, ..client })
    }

    /// The same client with a token; none shows none.
    pub(crate) fn with_token(self, token: Option<&str>) -> Result<Client, Failure> {
        let token = token.map(bearer).transpose()?;
        Ok(Client { token, ..self })
    }

    fn over(base: &str, trust: &TrustOptions) -> Result<Client, Failure> {
        let trust = base.starts_with("https://").then(|| trust.read()).transpose()?;
        let user = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
        let user = user.map(|user| user.trim().to_owned()).find(|user| (1..=200).contains(&user.len()));
        let user = HeaderValue::from_bytes(user.unwrap_or_else(|| "cli".to_owned()).as_bytes()).ok();
        let (agent, base) = (agent(PATIENCE, trust.as_ref()), base.trim_end_matches('/').to_owned());
        Ok(Client { agent, trust, base, user, token: None, instance: None })
    }

    /// A request with what goes with each.
    fn signed<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        let named = [("Kelos-User", &self.user), ("Authorization", &self.token), (INSTANCE, &self.instance)];
        let named = named.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        named.fold(request, |request, (name, value)| request.header(name, value))
    }

    /// Reads something.
    pub(crate) fn get<T: DeserializeOwned>(&self, doing: &str, path: &str, query: &Query) -> Result<T, Failure> {
        self.read(doing, self.open(doing, path, query)?)
    }

    /// The address of the server.
    pub(crate) fn address(&self) -> &str {
        &self.base
    }

    /// Reads how the server is, which it also says with the status that it does not work.
    pub(crate) fn health(&self) -> Result<Reply<HealthDto>, Failure> {
        let (doing, path) = ("ask how the server is", "/health");
        let request = self.signed(self.agent.get(self.url(path, &Query::new())));
        let answer = request.call().map_err(|error| self.unreachable(&error))?;
        if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
            return self.read(doing, answer);
        }
        self.read(doing, self.refused(doing, answer)?)
    }

    /// Reads its metrics, as Prometheus does.
    pub(crate) fn metrics(&self) -> Result<String, Failure> {
        let request = self.signed(self.agent.get(format!("{}/metrics", self.base)));
        let answer = request.call().map_err(|error| self.unreachable(&error))?;
        self.text(self.refused("read the metrics", answer)?)
    }

    /// Asks for something, and hands on an answer that is no JSON: its text or a stream.
    pub(crate) fn open(&self, doing: &str, path: &str, query: &Query) -> Result<Response<Body>, Failure> {
        let request = self.signed(self.agent.get(self.url(path, query)));
        let answer = request.call().map_err(|error| self.unreachable(&error))?;
        self.refused(doing, answer)
    }

    /// Asks for a change.
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        doing: &str,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.send(doing, self.agent.post(self.url(path, &Query::new())), body)
    }

    /// Puts something in its place.
    pub(crate) fn put<T: DeserializeOwned>(
        &self,
        doing: &str,
        path: &str,
        query: &Query,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.send(doing, self.agent.put(self.url(path, query)), body)
    }

    /// Changes a part of something.
    pub(crate) fn patch<T: DeserializeOwned>(
        &self,
        doing: &str,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.send(doing, self.agent.patch(self.url(path, &Query::new())), body)
    }

    /// Takes something away.
    pub(crate) fn delete<T: DeserializeOwned>(&self, doing: &str, path: &str, query: &Query) -> Result<T, Failure> {
        let request = self.signed(self.agent.delete(self.url(path, query)));
        let answer = request.call().map_err(|error| self.unreachable(&error))?;
        self.read(doing, self.refused(doing, answer)?)
    }

    /// Takes something away about which nothing is left to say.
    pub(crate) fn remove(&self, doing: &str, path: &str, query: &Query) -> Result<(), Failure> {
        let request = self.signed(self.agent.delete(self.url(path, query)));
        let answer = request.call().map_err(|error| self.unreachable(&error))?;
        self.refused(doing, answer).map(drop)
    }

    fn send<T: DeserializeOwned>(
        &self,
        doing: &str,
        request: RequestBuilder<WithBody>,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let body = serde_json::to_string(body).map_err(|error| Failure::bad(format!("{doing}: {error}")))?;
        let request = self.signed(request.header("content-type", "application/json"));
        let answer = request.send(body).map_err(|error| self.unreachable(&error))?;
        self.read(doing, self.refused(doing, answer)?)
    }

    /// Reads a list page by page, up to a number of rows, and says whether there is more.
    pub(crate) fn list<T: DeserializeOwned>(
        &self,
        doing: &str,
        path: &str,
        query: &Query,
        limit: usize,
    ) -> Result<(Vec<T>, bool), Failure> {
        let mut rows = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let mut query = query.clone();
            query.add("limit", (limit - rows.len()).min(LONGEST_PAGE));
            if let Some(cursor) = &cursor {
                query.add("cursor", cursor);
            }
            let page: PageDto<T> = self.get(doing, path, &query)?;
            rows.extend(page.items);
            cursor = page.next;
            if cursor.is_none() || rows.len() >= limit {
                return Ok((rows, cursor.is_some()));
            }
        }
    }

    /// The first row of a list that something is true of, among so many.
    pub(crate) fn find<T: DeserializeOwned>(
        &self,
        doing: &str,
        path: &str,
        query: &Query,
        limit: usize,
        is_it: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, Failure> {
        // Mostly it is one of the first.
        let (mut rows, mut cursor) = (20, None::<String>);
        let mut searched = 0;
        while searched < limit {
            let mut query = query.clone();
            query.add("limit", rows);
            query.add_some("cursor", cursor.as_ref());
            let page: PageDto<T> = self.get(doing, path, &query)?;
            if let Some(row) = page.items.into_iter().find(&is_it) {
                return Ok(Some(row));
            }
            (searched, rows, cursor) = (searched + rows, LONGEST_PAGE, page.next);
            if cursor.is_none() {
                break;
            }
        }
        Ok(None)
    }

    fn url(&self, path: &str, query: &Query) -> String {
        format!("{}/api/v1{path}{}", self.base, query.as_str())
    }

    fn read<T: DeserializeOwned>(&self, doing: &str, answer: Response<Body>) -> Result<T, Failure> {
        let text = self.text(answer)?;
        nesting::read(text.as_bytes()).map_err(|error| {
            let why = if error.is_data() {
                format!("{doing}: {} answered with JSON, but not as expected: {error}", self.base)
            } else {
                format!("{doing}: {} did not answer with JSON", self.base)
            };
            Failure::bad(why).hint("is that a Kelos server?")
        })
    }

    /// The text of an answer.
    pub(crate) fn text(&self, answer: Response<Body>) -> Result<String, Failure> {
        let mut bytes = Vec::new();
        let read = answer.into_body().into_reader().read_to_end(&mut bytes);
        read.map_err(|error| {
            Failure::new(UNREACHABLE, format!("read the answer of {} to its end: {error}", self.base))
        })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// An answer that says no, as a failure.
    fn refused(&self, doing: &str, answer: Response<Body>) -> Result<Response<Body>, Failure> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let text = self.text(answer)?;
        let Ok(problem) = serde_json::from_str::<ProblemDetailsDto>(&text) else {
            // Said by a server that has not read the request.
            if let Some(why) = text.trim().strip_prefix("failed to answer: ") {
                return Err(Failure::bad(format!("{doing}: {} answered: {why}", self.base)));
            }
            let failure = Failure::bad(format!("{doing}: {} answered {status}", self.base));
            return Err(failure.hint("is that a Kelos server?"));
        };
        let detail = problem.detail.strip_prefix("failed to ").unwrap_or(&problem.detail);
        let code = problem.code.as_str();
        if code == "other-server" {
            let why = format!(
                "reach the server of this folder at {}: it has ended, and another server uses its port",
                self.base
            );
            return Err(Failure::new(UNREACHABLE, why).hint("start one with `kelos up`"));
        }
        let message = format!("{doing}: {detail}");
        // Only the server knows what names a slot of a workflow.
        let is_usage = matches!(code, "bad-path" | "no-job-id");
        let failure = if is_usage { Failure::usage(message) } else { Failure::bad(message) };
        let failure = failure.refused(code);
        Err(match own_hint(code).or(problem.hint.as_deref()) {
            Some(hint) => failure.hint(hint),
            None => failure,
        })
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        if let Some(distrust) = agent::distrust(error) {
            let why = format!("trust the server at {}: {}", self.base, distrust.reason);
            return Failure::new(UNREACHABLE, why).hint(distrust.hint);
        }
        let why = match error {
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                "nothing is listening there".to_owned()
            }
            ureq::Error::HostNotFound => "there is no such host".to_owned(),
            ureq::Error::Timeout(ureq::Timeout::RecvResponse) => {
                let silence = format!("it accepts requests, but has not answered for {} s", PATIENCE.as_secs());
                return Failure::new(UNREACHABLE, format!("get an answer from the server at {}: {silence}", self.base))
                    .hint("it may be suspended or overloaded, and may still carry out the request later");
            }
            other => other.to_string(),
        };
        Failure::new(UNREACHABLE, format!("reach a server at {}: {why}", self.base))
            .hint("start one with `kelos up`, or give its address with --server URL or KELOS_SERVER")
    }
}

/// An HTTP agent with a time limit for the beginning of an answer.
fn agent(patience: Duration, trust: Option<&Trust>) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(patience.min(Duration::from_secs(5))))
        .timeout_recv_response(Some(patience))
        .user_agent(concat!("kelos/", env!("CARGO_PKG_VERSION")));
    agent::agent(config.build(), trust)
}

/// The hint for a refusal, in terms of commands instead of HTTP.
fn own_hint(code: &str) -> Option<&'static str> {
    Some(match code {
        "workflow-not-found" => "`kelos ls` lists the workflows, `kelos check` says which scripts are broken",
        "slot-not-found" => "`kelos slots WORKFLOW` lists its slots, `kelos why` says why one is missing",
        "step-not-found" | "signal-not-found" => "`kelos steps WORKFLOW RUN` lists the steps, and what they wait for",
        "never-ran" => "`kelos steps WORKFLOW RUN` lists the steps, with --items STEP the items of a list",
        "only-waits" => "`kelos resume WORKFLOW --run RUN --from STEP` waits for it again",
        "no-flow" => "`kelos steps WORKFLOW` shows the newest run of a flow",
        "nothing-to-resume" => "--from STEP does that step and all after it again, `kelos rerun` the whole run",
        "schedule-not-found" => "`kelos schedules` lists the event schedules",
        "backfill-not-found" => "`kelos backfills` lists the backfills",
        "program-not-found" => "`kelos ls` lists the workflows",
        "not-startable" => {
            "`kelos submit -a WORKFLOW -j JOB_ID` opens a job, `kelos rerun WORKFLOW JOB_ID` runs one again"
        }
        "already-enabled" | "already-disabled" => "`kelos schedule status` prints its status",
        "not-in-schedule" => "`kelos slots WORKFLOW` lists its slots, `kelos ls` shows its schedule",
        "still-live" => "`kelos kill` ends it first",
        "run-alive" => "`kelos kill` ends it first; mark it once its run is gone",
        "downstream-live" => "--kill-live kills them first; or wait until they have ended",
        "no-credential" | "unknown-token" => "`kelos login` keeps a token; KELOS_TOKEN_FILE and KELOS_TOKEN name one",
        "forbidden" => "`kelos whoami` says who you are here, and what you may do",
        "reason-missing" => "give one with --reason",
        "standby" => "send the request to the leader, with --server URL",
        _ => return None,
    })
}

/// An answer: what it means, and word for word what was said, which is what `--json` prints. So nothing is lost of what a newer
/// server says and this program does not know.
#[derive(Debug, Clone)]
pub(crate) struct Reply<T> {
    meaning: T,
    said: Value,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Reply<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let said = Value::deserialize(deserializer)?;
        let meaning = T::deserialize(&said).map_err(serde::de::Error::custom)?;
        Ok(Reply { meaning, said })
    }
}

impl<T> Serialize for Reply<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.said.serialize(serializer)
    }
}

impl<T> Deref for Reply<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.meaning
    }
}
