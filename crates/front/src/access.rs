//! The access to a server: who comes in, by which credential, and what is on record of it.

mod ledger;
mod visits;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use kelos_core::{RecordAccess, SetRegister};
use kelos_engine::{AskError, Handle, Status};
use kelos_model::register::ACCESS_BUCKET;
use kelos_model::{AccessEvent, Actor, ActorKind};
use kelos_store::{Queries, RegisterKeys, StoreError};
use kelos_trust::{
    AccountName, Directory, Grant, Grants, PasswordHash, Provider, Right, Role, Rules, Session, SessionKey, Token,
    TokenId, Tries, same,
};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;

use self::ledger::Ledger;
use crate::address::ClientAddress;
use crate::certificate::ClientCertificate;
use crate::evidence::{ClientEvidence, EVIDENCE};
use crate::fault::Fault;
use crate::identity::{Credential, Door, Identity, claimed};

/// How old the known users and tokens may be while other servers change them.
const FRESH: Duration = Duration::from_secs(1);
/// Passwords that are hashed at a time: each takes 19 MiB and a core.
const HASHES: usize = 2;
/// How often the use of a token is noted in the store.
const USE_NOTED_EVERY: SignedDuration = SignedDuration::from_hours(1);
/// The name of the cookie of a session, and of one that only comes over TLS.
const COOKIES: [&str; 2] = ["kelos-session", "__Host-kelos-session"];
/// How long a browser keeps it, in seconds.
const KEPT: u32 = 12 * 3600;

/// The access to a server. Cheap to clone.
#[derive(Clone)]
pub struct Access(Arc<AccessState>);

struct AccessState {
    required: bool,
    rules: Rules,
    provider: Option<Arc<dyn Provider>>,
    key: SessionKey,
    owner: Option<Arc<str>>,
    worker: Option<Arc<str>>,
    nodes: Option<Arc<str>>,
    open_to_workers: bool,
    known: RwLock<DirectoryOfCommit>,
    tries: Mutex<Tries>,
    ledger: Mutex<Ledger>,
    /// When tokens were last used, while this server runs.
    used: Mutex<BTreeMap<TokenId, Timestamp>>,
    hashing: Arc<Semaphore>,
    asking: Semaphore,
}

/// The directory, and the commit and the moment at which it was read.
struct DirectoryOfCommit {
    directory: Arc<Directory>,
    commit: Option<u64>,
    read_at: Instant,
    /// The changes that were made here since the last reading began, with their numbers: a reading may miss them.
    changes: VecDeque<(u64, String, Option<Value>)>,
    /// Counts the changes that were made here.
    changed: u64,
}

impl DirectoryOfCommit {
    /// Takes over what was read when there were so many changes.
    fn renew(&mut self, mut directory: Directory, commit: u64, changed: u64) -> Arc<Directory> {
        self.changes.retain(|(number, ..)| *number > changed);
        self.changes.iter().for_each(|(_, key, value)| change(&mut directory, key, value.as_ref()));
        (self.directory, self.commit, self.read_at) = (Arc::new(directory), Some(commit), Instant::now());
        self.directory.clone()
    }

    /// Takes over a change that was made here. What else there is stays, so that a change costs the same among many records.
    fn change(&mut self, key: String, value: Option<Value>) {
        change(Arc::make_mut(&mut self.directory), &key, value.as_ref());
        self.changed += 1;
        self.changes.push_back((self.changed, key, value));
    }
}

fn change(directory: &mut Directory, key: &str, value: Option<&Value>) {
    if let Err(error) = directory.change(key, value) {
        tracing::error!("failed to {error}; it gives nobody access");
    }
}

/// The settings of the access to a server.
#[derive(Default)]
pub struct AccessSettings {
    /// Whether a credential is required. If not, everybody who reaches the port may do everything.
    pub required: bool,
    /// The rules beside users and tokens.
    pub rules: Rules,
    /// The provider at which people may sign in.
    pub provider: Option<Arc<dyn Provider>>,
    /// The key of sessions; none for one that ends with the process.
    pub key: Option<SessionKey>,
    /// The token of the server's owner.
    pub owner: Option<Arc<str>>,
    /// The token of workers on the same machine; none if the server takes no workers.
    pub worker: Option<Arc<str>>,
    /// The token of the nodes over one log; none for a server with its own log.
    pub nodes: Option<Arc<str>>,
    /// Whether workers and other nodes need no credential where none is required: those of one node of several.
    pub open_to_workers: bool,
}

impl Default for Access {
    fn default() -> Access {
        Access::new(AccessSettings::default())
    }
}

impl Access {
    /// The access by these settings.
    #[must_use]
    pub fn new(settings: AccessSettings) -> Access {
        let AccessSettings { required, rules, provider, key, owner, worker, nodes, open_to_workers } = settings;
        // Without randomness no session can be signed either, so none is ever known by this key.
        let key = key.or_else(|| SessionKey::draw().ok()).unwrap_or_else(|| SessionKey::from_bytes([0; 32]));
        let known = DirectoryOfCommit {
            directory: Arc::default(),
            commit: None,
            read_at: Instant::now(),
            changes: VecDeque::new(),
            changed: 0,
        };
        Access(Arc::new(AccessState {
            required,
            rules,
            provider,
            key,
            owner,
            worker,
            nodes,
            open_to_workers,
            known: RwLock::new(known),
            tries: Mutex::default(),
            ledger: Mutex::default(),
            used: Mutex::default(),
            hashing: Arc::new(Semaphore::new(HASHES)),
            asking: Semaphore::new(visits::ASKED),
        }))
    }

    /// Whether a credential is required.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.0.required
    }

    /// The token by which a node is known to those that share its log and its key of sessions.
    #[must_use]
    pub fn token_of_nodes(&self) -> Option<Arc<str>> {
        self.0.nodes.clone()
    }

    /// Whether the server takes workers.
    #[must_use]
    pub fn takes_workers(&self) -> bool {
        self.0.worker.is_some() || self.0.open_to_workers
    }

    /// The rules beside users and tokens.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.0.rules
    }

    /// The users and tokens. They are read again when something was committed, at most once in a second.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn directory(&self, handle: &Handle) -> Result<Arc<Directory>, StoreError> {
        let commit = *handle.watch_commits().borrow();
        let changed = {
            let known = self.0.known.read().unwrap_or_else(PoisonError::into_inner);
            if known.commit == Some(commit) || known.commit.is_some() && known.read_at.elapsed() < FRESH {
                return Ok(known.directory.clone());
            }
            known.changed
        };
        let directory = read_directory(&**handle.reader())?;
        Ok(self.0.known.write().unwrap_or_else(PoisonError::into_inner).renew(directory, commit, changed))
    }

    /// The identity of a request.
    ///
    /// # Errors
    /// When the request shows a credential that is not known, or the store can't be read.
    pub fn identify(
        &self,
        handle: &Handle,
        headers: &HeaderMap,
        extensions: &Extensions,
        door: Door,
    ) -> Result<Identity, Fault> {
        let client = extensions.get::<ClientAddress>().copied();
        let from = client.map(|client| client.ip);
        if let Some(shown) = headers.get(header::AUTHORIZATION) {
            match self.of_token(handle, headers, shown, from, door)? {
                Some(identity) => return Ok(identity),
                None if self.0.required => {
                    self.record(
                        handle,
                        Actor::unknown("token").with_address(from),
                        AccessEvent::SignInFailed { times: 1 },
                    );
                    let what = "the token is not known, was revoked or has expired";
                    let hint = "`kelos token list` has the tokens, `kelos token add` makes one";
                    return Err(Fault::new(StatusCode::UNAUTHORIZED, "unknown-token", what).with_hint(hint));
                }
                None => {}
            }
        }
        if !self.0.required {
            let grants = open(self.0.open_to_workers);
            return Ok(Identity::new(claimed(headers, door)?, grants, Credential::Open, from));
        }
        let directory = self.directory(handle)?;
        let identity = self.of_session(&directory, headers, handle, from);
        let identity = match identity {
            Some(identity) => Some(identity),
            None => self.of_proxy(&directory, headers, client)?,
        };
        let identity = identity.or_else(|| self.of_certificate(extensions, from));
        let rule = from.and_then(|from| self.0.rules.of_address(from));
        let by_address = || {
            rule.map(|rule| {
                let grants = Grants::of(rule.roles.clone());
                Identity::new(Actor::new(ActorKind::Token, rule.name.as_str()), grants, Credential::Address, from)
            })
        };
        let nobody = || Identity::new(Actor::unknown(door.name()), Grants::none(), Credential::Missing, from);
        Ok(identity.or_else(by_address).unwrap_or_else(nobody))
    }

    /// The account of the client of a request that this node saw, signed for the leader to which the request is sent on.
    #[must_use]
    pub fn vouch(&self, handle: &Handle, method: &Method, uri: &Uri, seen: &Extensions) -> Option<HeaderValue> {
        ClientEvidence::sign(&self.0.key, (method, uri), seen, handle.now())
    }

    /// Takes the client of a request that another node has sent on for what that node saw of it, if the two nodes have the same key of
    /// sessions.
    pub fn believe(&self, handle: &Handle, request: &mut Request) {
        let Some(header) = request.headers_mut().remove(EVIDENCE) else { return };
        let of = (request.method(), request.uri());
        match ClientEvidence::read(&self.0.key, of, &header, handle.now()) {
            Some(evidence) => evidence.put(request.extensions_mut()),
            None if self.0.required => tracing::warn!(
                "what a node saw of the client of a request is not believed: its `session.key` is another one, or its clock is off; the node \
                 itself is taken for the client"
            ),
            None => {}
        }
    }

    /// The identity of a token in `Authorization`: as a bearer's, or as the password of a client that knows only names and passwords.
    fn of_token(
        &self,
        handle: &Handle,
        headers: &HeaderMap,
        shown: &HeaderValue,
        from: Option<IpAddr>,
        door: Door,
    ) -> Result<Option<Identity>, Fault> {
        let Some(text) = token_of(shown) else { return Ok(None) };
        let is = |token: &Option<Arc<str>>| token.as_ref().is_some_and(|own| same(own.as_bytes(), text.as_bytes()));
        if is(&self.0.owner) {
            return Ok(Some(Identity::new(claimed(headers, door)?, Grants::all(), Credential::Owner, from)));
        }
        let own = [(&self.0.worker, "worker", Credential::Worker), (&self.0.nodes, "node", Credential::Node)];
        if let Some((_, name, credential)) = own.into_iter().find(|(token, ..)| is(token)) {
            let grants = Grants::of(vec![Grant::everywhere(Role::Worker)]);
            return Ok(Some(Identity::new(Actor::new(ActorKind::Worker, name), grants, credential, from)));
        }
        let Some(token) = Token::read(&text) else { return Ok(None) };
        let directory = self.directory(handle)?;
        let admitted = directory.admit_token(&token, handle.now());
        if admitted.is_some() {
            self.note_use(handle, &directory, token.id());
        }
        Ok(admitted.map(|(record, grants)| {
            // A person's own token acts for the person; its id says that it was the token.
            let actor = match &record.owner {
                Some(owner) => Actor::person(owner.as_str()),
                None => Actor::new(ActorKind::Token, record.name.as_str()),
            };
            Identity::new(actor, grants, Credential::Token(token.id().clone()), from)
        }))
    }

    /// Notes that a token is in use: in memory each time, and in the store once in an hour.
    fn note_use(&self, handle: &Handle, directory: &Directory, id: &TokenId) {
        let now = handle.now();
        let before = self.0.used.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), now);
        let known = before.max(directory.last_use(id));
        if known.is_some_and(|known| now.duration_since(known) < USE_NOTED_EVERY) || handle.status() == Status::Standby
        {
            return;
        }
        let (access, handle, key) = (self.clone(), handle.clone(), Directory::key_of_use(id));
        tokio::spawn(async move {
            let by = Actor::system("server");
            let noted = access.set(&handle, &by, key, Some(Value::String(now.to_string())), None);
            if let Err(error) = noted.await {
                tracing::warn!("failed to note the use of a token: failed to {error}");
            }
        });
    }

    /// When a token was last used, to the hour after a restart.
    #[must_use]
    pub fn last_use(&self, handle: &Handle, id: &TokenId) -> Option<Timestamp> {
        let here = self.0.used.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied();
        here.max(self.directory(handle).ok().and_then(|directory| directory.last_use(id)))
    }

    fn of_session(
        &self,
        directory: &Directory,
        headers: &HeaderMap,
        handle: &Handle,
        from: Option<IpAddr>,
    ) -> Option<Identity> {
        let session = cookies(headers, COOKIES).find_map(|text| self.0.key.read(text, handle.now()))?;
        let grants = self.session_grants(directory, &session)?;
        let proof = self.0.key.proof(&session.id);
        let actor = Actor::person(session.user.as_str());
        Some(Identity::new(actor, grants, Credential::Session { session: Box::new(session), proof }, from))
    }

    fn session_grants(&self, directory: &Directory, session: &Session) -> Option<Grants> {
        match &session.provider {
            None => directory.admit_session(session).map(|user| Grants::of(user.roles.clone())),
            Some(_) if directory.has_ended(session) => None,
            Some(_) => self.vouched(directory, &session.user, session.groups.iter().map(String::as_str)),
        }
    }

    /// The grants of somebody whom a proxy or a provider vouches for: those of their groups, and those of the user of their name.
    fn vouched<'a>(
        &self,
        directory: &Directory,
        name: &str,
        groups: impl IntoIterator<Item = &'a str>,
    ) -> Option<Grants> {
        let user = directory.user(name);
        if user.is_some_and(|user| user.disabled) {
            return None;
        }
        let own = user.map(|user| user.roles.clone()).unwrap_or_default();
        Some(Grants::of(own.into_iter().chain(self.0.rules.of_groups(groups)).collect()))
    }

    fn of_proxy(
        &self,
        directory: &Directory,
        headers: &HeaderMap,
        client: Option<ClientAddress>,
    ) -> Result<Option<Identity>, Fault> {
        let Some(client) = client else { return Ok(None) };
        let Some(proxy) = self.0.rules.proxy_at(client.peer) else { return Ok(None) };
        let mut named = headers.get_all(proxy.user.as_str()).into_iter();
        let Some(name) = named.next() else { return Ok(None) };
        let bad = |why: String| Fault::bad_request("bad-header", format!("the header `{}`: {why}", proxy.user));
        if named.next().is_some() {
            return Err(bad("it is there more than once".to_owned()));
        }
        let name = AccountName::new(name.to_str().unwrap_or_default()).map_err(|error| bad(error.to_string()))?;
        let groups = headers.get(proxy.groups.as_str()).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let grants = self.vouched(directory, name.as_str(), groups.split(',').map(str::trim));
        let actor = Actor::person(name.as_str());
        Ok(grants.map(|grants| Identity::new(actor, grants, Credential::Proxy, Some(client.ip))))
    }

    /// The identity of a client certificate for which there is a rule.
    fn of_certificate(&self, extensions: &Extensions, from: Option<IpAddr>) -> Option<Identity> {
        let certificate = extensions.get::<ClientCertificate>()?;
        let (name, grants) = self.0.rules.of_certificate(certificate.names.iter().map(String::as_str))?;
        Some(Identity::new(Actor::new(ActorKind::Token, name), grants, Credential::Certificate, from))
    }

    /// The grants of an identity by now: tokens and sessions may have been revoked meanwhile, and roles changed.
    #[must_use]
    pub fn grants_now(&self, handle: &Handle, identity: &Identity) -> Grants {
        let Ok(directory) = self.directory(handle) else { return Grants::none() };
        match &identity.credential {
            Credential::Token(id) => {
                let found = directory.tokens().find(|(known, _)| *known == id);
                let record = found.map(|(_, record)| record).filter(|record| !record.is_over(handle.now()));
                record.and_then(|record| directory.grants_of(record)).unwrap_or_default()
            }
            Credential::Session { session, .. } if session.until <= handle.now() => Grants::none(),
            Credential::Session { session, .. } => self.session_grants(&directory, session).unwrap_or_default(),
            _ => identity.grants.clone(),
        }
    }

    /// Whether a form carries the proof that it came from a page of its session.
    #[must_use]
    pub fn proves(&self, session: &Session, proof: &str) -> bool {
        self.0.key.proves(&session.id, proof)
    }

    /// Checks a name and a password, and begins a session.
    ///
    /// # Errors
    /// When they are wrong, or too many were tried.
    pub async fn sign_in(
        &self,
        handle: &Handle,
        name: &str,
        password: &str,
        from: Option<IpAddr>,
    ) -> Result<Session, Fault> {
        let now = handle.now();
        let place = from.map_or_else(|| "nowhere".to_owned(), |from| from.to_string());
        let keys = [format!("{name} {place}"), place];
        self.may_try(&keys, now)?;
        let directory = self.directory(handle)?;
        let admitted = {
            let (name, password) = (name.to_owned(), password.to_owned());
            let check = move || directory.admit_password(&name, &password).map(|user| user.epoch);
            let turn = self.turn_to_hash().await;
            // Those who tried meanwhile count, too.
            self.may_try(&keys, handle.now())?;
            hash(turn, check).await.unwrap_or_default()
        };
        // A name that nobody has may be a password in the wrong field: it is not put on record.
        let shown = AccountName::new(name).ok().filter(|_| self.knows(handle, name));
        let actor = shown.map_or_else(|| Actor::unknown("a name that nobody has"), |name| Actor::person(name.as_str()));
        let actor = actor.with_address(from);
        let mut tries = self.0.tries.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(epoch) = admitted else {
            keys.iter().for_each(|key| tries.failed(key, now));
            drop(tries);
            self.record(handle, actor, AccessEvent::SignInFailed { times: 1 });
            return Err(Fault::new(StatusCode::UNAUTHORIZED, "wrong-password", "the name or the password is wrong"));
        };
        keys.iter().for_each(|key| tries.succeeded(key));
        drop(tries);
        let session = Session::begin(name, epoch, now).map_err(no_session)?;
        self.record(handle, actor, AccessEvent::SignedIn);
        Ok(session)
    }

    /// The hash of a new password.
    ///
    /// # Errors
    /// When the password can't be taken.
    pub async fn hash_of(&self, password: String) -> Result<PasswordHash, Fault> {
        let hash = hash(self.turn_to_hash().await, move || PasswordHash::of(&password)).await;
        let hash = hash.map_err(|error| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "bug", error.to_string()))?;
        hash.map_err(|error| Fault::bad_request("bad-password", format!("failed to {error}")))
    }

    /// Waits for the turn to hash a password. None if the process ends.
    async fn turn_to_hash(&self) -> Option<OwnedSemaphorePermit> {
        self.0.hashing.clone().acquire_owned().await.ok()
    }

    /// Refuses whoever tried too often, by these keys.
    fn may_try(&self, keys: &[String], now: Timestamp) -> Result<(), Fault> {
        let tries = self.0.tries.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(wait) = keys.iter().filter_map(|key| tries.wait(key, now)).max() else { return Ok(()) };
        let what = format!("too many tries failed; the next is taken in {} s", wait.as_secs() + 1);
        Err(Fault::new(StatusCode::TOO_MANY_REQUESTS, "too-many-tries", what))
    }

    fn knows(&self, handle: &Handle, name: &str) -> bool {
        self.directory(handle).is_ok_and(|directory| directory.user(name).is_some())
    }

    /// Ends a session before its time, on every server.
    ///
    /// # Errors
    /// When it can't be recorded.
    pub async fn sign_out(&self, handle: &Handle, actor: &Actor, session: &Session) -> Result<(), AskError> {
        let directory = self.directory(handle).unwrap_or_default();
        for key in directory.stale(handle.now()) {
            self.set(handle, actor, key, None, None).await?;
        }
        let until = Value::String(session.until.to_string());
        self.set(handle, actor, Directory::key_of_ended(session), Some(until), None).await?;
        self.record(handle, actor.clone(), AccessEvent::SignedOut);
        Ok(())
    }

    /// Sets a record of a user or a token; none removes it. The caller has checked the right.
    ///
    /// # Errors
    /// When it can't be stored.
    pub async fn set(
        &self,
        handle: &Handle,
        by: &Actor,
        key: String,
        value: Option<Value>,
        reason: Option<String>,
    ) -> Result<(), AskError> {
        let (bucket, change) = (ACCESS_BUCKET.to_owned(), (key.clone(), value.clone()));
        handle.ask(by, SetRegister { bucket, key, value, reason }).await?;
        self.0.known.write().unwrap_or_else(PoisonError::into_inner).change(change.0, change.1);
        Ok(())
    }

    /// The header that has a browser keep a session: for encrypted connections only, if it came over one.
    #[must_use]
    pub fn cookie(&self, session: &Session, is_secure: bool) -> HeaderValue {
        cookie_of(COOKIES, &self.0.key.sign(session), KEPT, is_secure)
    }

    /// The header that has a browser forget its session.
    #[must_use]
    pub fn no_cookie(is_secure: bool) -> HeaderValue {
        cookie_of(COOKIES, "", 0, is_secure)
    }

    /// Puts on record that an identity lacks a right.
    pub fn refused(&self, handle: &Handle, identity: &Identity, right: Right, project: Option<&str>, action: &str) {
        let what = AccessEvent::Refused {
            right: right.name().to_owned(),
            project: project.map(str::to_owned),
            action: action.to_owned(),
            times: 1,
        };
        self.record(handle, identity.actor.clone(), what);
    }

    /// Puts an event on record, once in a while if it happens often. Nobody waits for it.
    fn record(&self, handle: &Handle, actor: Actor, what: AccessEvent) {
        let told = self.0.ledger.lock().unwrap_or_else(PoisonError::into_inner).take(&actor, what, handle.now());
        let Some(what) = told else { return };
        tracing::info!(
            "access: {actor}{}: {what:?}",
            actor.address.map(|from| format!(" from {from}")).unwrap_or_default()
        );
        let handle = handle.clone();
        tokio::spawn(async move {
            if let Err(error) = handle.ask(&actor, RecordAccess { what }).await {
                tracing::warn!("failed to put on record who came in or was refused: failed to {error}");
            }
        });
    }
}

/// Hashes a password in its turn, which lasts to the end of that, even if nobody waits for it any more.
async fn hash<T: Send + 'static>(
    turn: Option<OwnedSemaphorePermit>,
    hash: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        hash()
    })
    .await
}

fn no_session(error: impl std::fmt::Display) -> Fault {
    Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "bug", format!("no session could be begun: {error}"))
}

fn cookie_of([plain, secure]: [&str; 2], value: &str, kept: u32, is_secure: bool) -> HeaderValue {
    let (name, only) = if is_secure { (secure, "; Secure") } else { (plain, "") };
    let text = format!("{name}={value}; Path=/; Max-Age={kept}; HttpOnly; SameSite=Lax{only}");
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The rights of everybody on a server that asks for no credential: all but those to make users and tokens, which would outlast that.
fn open(to_workers: bool) -> Grants {
    let worker = to_workers.then(|| Grant::everywhere(Role::Worker));
    let grants = [Grant::everywhere(Role::Author), Grant::everywhere(Role::Audit)];
    Grants::of(grants.into_iter().chain(worker).collect())
}

/// The users and tokens in a store.
fn read_directory(reader: &dyn Queries) -> Result<Directory, StoreError> {
    let registers = reader.registers(Some(ACCESS_BUCKET), RegisterKeys::Prefix(""))?;
    let (directory, errors) = Directory::of(registers.into_iter().map(|register| (register.key, register.value)));
    errors.iter().for_each(|error| tracing::error!("failed to {error}; it gives nobody access"));
    Ok(directory)
}

fn token_of(shown: &HeaderValue) -> Option<String> {
    let shown = shown.to_str().ok()?.trim();
    let (scheme, rest) = shown.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    let decoded = scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(rest.trim()).ok()).flatten()?;
    let text = String::from_utf8(decoded).ok()?;
    Some(text.split_once(':')?.1.to_owned())
}

/// The values of the cookies with one of these names.
fn cookies<'a>(headers: &'a HeaderMap, names: [&'static str; 2]) -> impl Iterator<Item = &'a str> + use<'a> {
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(name, _)| names.contains(name)).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_as_a_bearers_or_as_a_password() {
        let of = |text: &'static str| token_of(&HeaderValue::from_static(text));
        assert_eq!(of("Bearer kelos_x").as_deref(), Some("kelos_x"));
        assert_eq!(of("bearer  kelos_x ").as_deref(), Some("kelos_x"));
        assert_eq!(of("Basic YW5uYTprZWxvc194").as_deref(), Some("kelos_x"));
        for other in ["", "kelos_x", "Basic !", "Basic YW5uYQ==", "Negotiate abc"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_cookie_is_for_this_server_alone() {
        let access = Access::default();
        let now = "2026-11-26T08:00:00Z".parse().unwrap();
        let session = Session::begin("anna", 0, now).unwrap();
        let cookie = access.cookie(&session, true).to_str().unwrap().to_owned();
        assert!(cookie.starts_with("__Host-kelos-session=") && cookie.ends_with("; HttpOnly; SameSite=Lax; Secure"));
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, cookie.split(';').next().unwrap().parse().unwrap());
        let read = cookies(&headers, COOKIES).find_map(|text| access.0.key.read(text, now));
        assert_eq!(read, Some(session));
    }
}
