//! Many processes on one folder, without a server: whoever comes first leads for as long as it lasts, and the others ask it.
//!
//! The lock beside the database says who leads; `server.json` in the folder of state says where, and holds the token that a
//! worker has to show, readable by its owner alone.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_engine::Pace;
use kelos_executors::workers::REMOTE_LEASE;
use kelos_model::secret::AllowList;
use kelos_sandbox::apps::AppsSource;
use kelos_store_sqlite::SqliteStore;
use kelos_wire::{ListDto, ProblemDto};
use tokio::sync::oneshot;
use ureq::Agent;

use crate::address::Query;
use crate::agent;
use crate::apps::{Apps, TASKS_JSON};
use crate::client::Client;
use crate::failure::{Failure, UNREACHABLE};
use crate::folder;
use crate::host::{self, Host, Plan, Role, Tunables, WorkerLeases};
use crate::location::{self, DATABASE, Location, STATE};
use crate::node::DataPlace;
use crate::transport::Reach;
use crate::trust::TrustOptions;

/// How long a leader that holds the lock and does not answer is waited for: until its lease has run out, at the most.
const PATIENCE: Duration = kelos::LEASE.saturating_add(Duration::from_secs(10));
/// How long an answer to "are you there?" may take.
const GLANCE: Duration = Duration::from_secs(5);
/// Wait until the next look for a leader.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Mistakes that are named.
const MISTAKES: usize = 10;
/// The entries by which a folder of jobs is recognised.
const SIGNS: [&str; 3] = [STATE, TASKS_JSON, "workflows"];
/// So many of the signs, from the first on, are of a folder with apps.
const SIGNS_OF_APPS: usize = 2;

/// One of the processes that work on a folder.
pub(crate) struct Fleet {
    dir: PathBuf,
    state: PathBuf,
    apps: AppsSource,
    lease: Duration,
    /// Whether it schedules while it leads.
    pace: Pace,
    /// The secrets and users that the jobs may use which it runs.
    allowed: AllowList,
    seat: Mutex<Seat>,
}

/// The location of the leader, as far as this process knows.
#[derive(Default)]
struct Seat {
    location: Option<Location>,
    lead: Option<Lead>,
}

/// That this process leads.
struct Lead {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<(), Failure>>,
}

impl Fleet {
    /// A member of the processes that work on a folder; it looks for no leader yet.
    pub(crate) fn new(dir: &Path, apps: AppsSource, lease: Duration) -> Result<Fleet, Failure> {
        let state = dir.join(STATE);
        location::make_state(&state)?;
        Ok(Fleet {
            dir: dir.to_owned(),
            state,
            apps,
            lease,
            pace: Pace::ByItself,
            allowed: AllowList::default(),
            seat: Mutex::default(),
        })
    }

    /// The same for a question: where this process leads until it is answered, it plans, evaluates and starts nothing.
    pub(crate) fn only_asking(mut self) -> Fleet {
        self.pace = Pace::Stepped;
        self
    }

    /// The same, for jobs that may use what is in this list.
    pub(crate) fn allowing(mut self, allowed: AllowList) -> Fleet {
        self.allowed = allowed;
        self
    }

    /// The secrets and users that the jobs may use which it runs.
    pub(crate) fn allowed(&self) -> &AllowList {
        &self.allowed
    }

    /// The folder of state.
    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    /// The apps that this process found missing, in words.
    pub(crate) fn missing_apps(&self) -> String {
        let (name, dir) = (self.apps.name(), self.apps.folder().display());
        match (self.apps.is_there(), self.apps.is_of_files()) {
            (true, _) => format!("{name} has none, or is broken, which `kelos check` tells"),
            (false, true) => format!("{name} is missing in {dir}"),
            (false, false) => format!("{name} has none"),
        }
    }

    /// The location of the leader: another process, or this one from now on. Blocks.
    pub(crate) fn find(&self) -> Result<Location, Failure> {
        let mut seat = self.seat();
        if let Some(location) = &seat.location {
            return Ok(location.clone());
        }
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(location) = Location::read(&self.state).filter(answers) {
                seat.location = Some(location.clone());
                return Ok(location);
            }
            if let Some((location, lead)) = self.try_to_lead()? {
                seat.location = Some(location.clone());
                seat.lead = Some(lead);
                return Ok(location);
            }
            if Instant::now() > until {
                let dir = self.dir.display();
                let why = format!("reach the leader of {dir}: another process holds its database and does not answer");
                return Err(Failure::new(UNREACHABLE, why).hint("end that process; `fuser` names it"));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Takes note that nobody answers there any more.
    pub(crate) fn lost(&self, location: &Location) {
        let mut seat = self.seat();
        // One's own server answers as long as it is there.
        if seat.lead.is_none() && seat.location.as_ref() == Some(location) {
            seat.location = None;
        }
    }

    /// Asks the leader, and the next one where that one ended before it answered. Nothing must be asked for that may not be
    /// done twice.
    pub(crate) fn ask<T>(&self, ask: impl Fn(&Client) -> Result<T, Failure>) -> Result<T, Failure> {
        let until = Instant::now() + PATIENCE;
        loop {
            let location = self.find()?;
            match ask(&Client::of(&location, &TrustOptions::of_environment()?)?) {
                Err(failure) if failure.code == UNREACHABLE && Instant::now() < until => self.lost(&location),
                other => return other,
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// The mistakes in the descriptions of these apps, or in a whole file, in words; none where the leader does not tell.
    pub(crate) fn mistakes(&self, apps: &[&str]) -> Vec<String> {
        let read = |client: &Client| client.get::<ListDto<ProblemDto>>("list the problems", "/problems", &Query::new());
        let Ok(found) = self.ask(read) else { return Vec::new() };
        let is_of_them = |problem: &&ProblemDto| {
            problem.severity != "warning" && problem.workflow.as_deref().is_none_or(|id| apps.contains(&id))
        };
        let line =
            |problem: &ProblemDto| format!("{}:{}:{}: {}", problem.file, problem.line, problem.column, problem.message);
        found.items.iter().filter(is_of_them).take(MISTAKES).map(line).collect()
    }

    /// Gives the lead back, where this process has it: another one takes it.
    pub(crate) fn leave(&self) -> Result<(), Failure> {
        let (lead, location) = {
            let mut seat = self.seat();
            (seat.lead.take(), seat.location.take())
        };
        let Some(lead) = lead else { return Ok(()) };
        // No other process writes it while this one holds the lock.
        let instance = |location: Option<Location>| location.and_then(|location| location.instance);
        if instance(Location::read(&self.state)) == instance(location) {
            Location::remove(&self.state);
        }
        let _ = lead.stop.send(());
        lead.thread.join().unwrap_or_else(|_| Err(Failure::bad("shut down cleanly: the server's thread panicked")))
    }

    fn seat(&self) -> MutexGuard<'_, Seat> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leads, unless somebody else does.
    fn try_to_lead(&self) -> Result<Option<(Location, Lead)>, Failure> {
        if SqliteStore::is_led(&self.state.join(DATABASE), Timestamp::now()) {
            return Ok(None);
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.map_err(|error| Failure::bad(format!("listen on 127.0.0.1: {error}")))?;
        let (instance, token) = (Some(location::random()?), Some(location::random()?));
        let location = Location { address: host::address(&listener, false), instance, token, pin: None, owner: None };
        let leases = WorkerLeases { of_folder: self.lease, elsewhere: self.lease.max(REMOTE_LEASE) };
        let host = host::start(Plan {
            folders: folder::folders(&self.dir, None),
            apps: self.apps.clone(),
            data: DataPlace::Embedded(self.state.clone()),
            pace: self.pace,
            reload_every: Duration::from_secs(1),
            tunables: &Tunables::default(),
            pages: host::Pages::without_file()?.allowing(self.allowed.clone()),
            listener,
            reach: Reach::default(),
            leases,
            worker_token: location.token.clone(),
            instance: location.instance.clone(),
            own_worker: None,
        })?;
        match host.role() {
            Role::Leader => {}
            Role::Standby => {
                host.give_up();
                return Ok(None);
            }
            Role::Troubled(reason) => {
                host.give_up();
                return Err(Failure::bad(reason));
            }
            Role::Damaged(reason) => {
                host.give_up();
                return Err(Failure::damaged(reason));
            }
        }
        let lead = serve(host, &self.state, &location)?;
        tracing::info!(address = location.address, "this process leads");
        Ok(Some((location, lead)))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if let Err(failure) = self.leave() {
            tracing::warn!("failed to {failure}");
        }
    }
}

/// Answers on a thread of its own, and comes back once it does.
fn serve(host: Host, state: &Path, location: &Location) -> Result<Lead, Failure> {
    let (stop, stopped) = oneshot::channel();
    let (says, ready) = std::sync::mpsc::channel();
    let (state, location) = (state.to_owned(), location.clone());
    let answer = move || {
        let ready = move || {
            let _ = says.send(location.write(&state));
        };
        host.serve_until(ready, async move {
            let _ = stopped.await;
        })
    };
    let thread = std::thread::Builder::new().name("kelos-server".to_owned()).spawn(answer);
    let thread = thread.map_err(|error| Failure::bad(format!("start a thread: {error}")))?;
    match ready.recv() {
        Ok(written) => written.map(|()| Lead { stop, thread }),
        Err(_) => Err(thread.join().ok().and_then(Result::err).unwrap_or_else(|| Failure::bad("answer requests"))),
    }
}

/// Whether the server that wrote this down is there: another one may have got its port.
fn answers(location: &Location) -> bool {
    let Ok(trust) = TrustOptions::of_environment().and_then(|trust| trust.or_pin(location.pin).read()) else {
        return false;
    };
    let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(GLANCE)).build();
    let agent = agent::agent(config, Some(&trust));
    // A server without workers has no token that it could recognise, and may let nobody see anything without one.
    let path = if location.token.is_some() { "workers" } else { "version" };
    let mut request = agent.get(format!("{}/api/v1/{path}", location.address));
    if let Some(token) = &location.token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    if let Some(instance) = &location.instance {
        request = request.header(kelos_front::INSTANCE, &**instance);
    }
    request.call().is_ok_and(|answer| answer.status().is_success())
}

/// The nearest folder that processes without a server can share: this one, or one above it. None where there is no such folder.
pub(crate) fn folder_of_jobs() -> Option<PathBuf> {
    let (here, apps) = (std::env::current_dir().unwrap_or_default(), Apps::of_environment());
    // Where the environment names the apps, the folder may be empty.
    let named = apps.are_named();
    let signs = if named { &SIGNS[..SIGNS_OF_APPS] } else { &SIGNS[..] };
    let dir = here.ancestors().find(|dir| signs.iter().any(|sign| dir.join(sign).exists()));
    dir.or_else(|| named.then_some(&*here)).map(Path::to_owned)
}

/// The folder of jobs that was named: without a name, the nearest one that processes can share.
pub(crate) fn named_folder(dir: &Path) -> PathBuf {
    if dir == Path::new(".") { folder_of_jobs().unwrap_or_else(|| dir.to_owned()) } else { dir.to_owned() }
}

/// The processes that work on this folder or one above, where apps are all that it has, and there is state: a process that leads
/// there for a moment runs nothing.
pub(crate) fn of_workers_alone() -> Result<Option<Fleet>, Failure> {
    let here = std::env::current_dir().unwrap_or_default();
    let apps = Apps::of_environment();
    let dir = here.ancestors().find(|dir| dir.join(STATE).join(DATABASE).exists());
    let Some(dir) = dir.or_else(|| apps.are_named().then_some(&*here)) else { return Ok(None) };
    let has_apps = apps.are_named() || dir.join(TASKS_JSON).exists();
    if !has_apps || folder::scripts(&folder::folders(dir, None))? > 0 {
        return Ok(None);
    }
    Fleet::new(dir, apps.source(dir)?, kelos_executors::workers::LEASE).map(Some)
}
