//! Many processes on one folder, without a server: whoever comes first leads for as long as it lasts, and the others ask it.
//!
//! The lock beside the database says who leads; `server.json` in the folder of state says where, and holds the token that a
//! worker has to show, readable by its owner alone.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_engine::Pace;
use kelos_sandbox::apps::AppsSource;
use kelos_store_sqlite::SqliteStore;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use ureq::Agent;

use crate::apps::{Apps, TASKS_JSON};
use crate::client::Client;
use crate::failure::{Failure, UNREACHABLE};
use crate::host::{self, Host, Plan, Role, Tunables, Workers};
use crate::options::Door;
use crate::up::{self, STATE, WHERE};
use crate::{folder, logging, text};

/// How long a leader that holds the lock and does not answer is waited for: until its lease has run out, at the most.
const PATIENCE: Duration = kelos::LEASE.saturating_add(Duration::from_secs(10));
/// How long an answer to "are you there?" may take.
const GLANCE: Duration = Duration::from_secs(5);
/// Wait until the next look for a leader.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// The database in the folder of state.
const DATABASE: &str = "kelos.db";
/// What lies in a folder that a fleet may work on.
const SIGNS: [&str; 3] = [STATE, TASKS_JSON, "workflows"];
/// So many of the signs, from the first on, are of a folder with apps.
const SIGNS_OF_APPS: usize = 2;

/// One of the processes that work on a folder.
pub(crate) struct Fleet {
    dir: PathBuf,
    state: PathBuf,
    apps: AppsSource,
    lease: Duration,
    seat: Mutex<Seat>,
}

/// Where the leader is, as far as this process knows.
#[derive(Default)]
struct Seat {
    place: Option<Place>,
    lead: Option<Lead>,
}

/// Where a leader is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: String,
    /// The name by which it is known again; none where a version of before wrote this down.
    pub(crate) instance: Option<Arc<str>>,
    /// What workers show; none where the leader takes none.
    pub(crate) token: Option<Arc<str>>,
}

/// That this process leads.
struct Lead {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<(), Failure>>,
}

impl Fleet {
    /// A place among those who work on a folder; nobody is looked for yet.
    pub(crate) fn new(dir: &Path, apps: AppsSource, lease: Duration) -> Result<Fleet, Failure> {
        let state = dir.join(STATE);
        up::make_state(&state)?;
        Ok(Fleet { dir: dir.to_owned(), state, apps, lease, seat: Mutex::default() })
    }

    /// The folder of state.
    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    /// What this process misses where it looks for apps.
    pub(crate) fn missing_apps(&self) -> String {
        let (name, dir) = (self.apps.name(), self.apps.folder().display());
        match (self.apps.is_there(), self.apps.is_of_files()) {
            (true, _) => format!("{name} has none, or is broken, which `kelos check` tells"),
            (false, true) => format!("{name} is missing in {dir}"),
            (false, false) => format!("{name} has none"),
        }
    }

    /// Where the leader is: another process, or this one from now on. Blocks.
    pub(crate) fn find(&self) -> Result<Place, Failure> {
        let mut seat = self.seat();
        if let Some(place) = &seat.place {
            return Ok(place.clone());
        }
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(place) = written(&self.state.join(WHERE)).filter(answers) {
                seat.place = Some(place.clone());
                return Ok(place);
            }
            if let Some((place, lead)) = self.try_to_lead()? {
                seat.place = Some(place.clone());
                seat.lead = Some(lead);
                return Ok(place);
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
    pub(crate) fn lost(&self, place: &Place) {
        let mut seat = self.seat();
        // One's own server answers as long as it is there.
        if seat.lead.is_none() && seat.place.as_ref() == Some(place) {
            seat.place = None;
        }
    }

    /// Asks the leader, and the next one where that one ended before it answered. Nothing must be asked for that may not be
    /// done twice.
    pub(crate) fn ask<T>(&self, ask: impl Fn(&Client) -> Result<T, Failure>) -> Result<T, Failure> {
        let until = Instant::now() + PATIENCE;
        loop {
            let place = self.find()?;
            match ask(&Client::of(&place)?) {
                Err(failure) if failure.code == UNREACHABLE && Instant::now() < until => self.lost(&place),
                other => return other,
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Gives the lead back, where this process has it: another one takes it.
    pub(crate) fn leave(&self) -> Result<(), Failure> {
        let (lead, place) = {
            let mut seat = self.seat();
            (seat.lead.take(), seat.place.take())
        };
        let Some(lead) = lead else { return Ok(()) };
        let written_place = self.state.join(WHERE);
        // While the lock is held nobody else writes there.
        if written(&written_place) == place {
            let _ = std::fs::remove_file(&written_place);
        }
        let _ = lead.stop.send(());
        lead.thread.join().unwrap_or_else(|_| Err(Failure::bad("shut down cleanly: the server's thread panicked")))
    }

    fn seat(&self) -> MutexGuard<'_, Seat> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leads, unless somebody else does.
    fn try_to_lead(&self) -> Result<Option<(Place, Lead)>, Failure> {
        if SqliteStore::is_led(&self.state.join(DATABASE), Timestamp::now()) {
            return Ok(None);
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.map_err(|error| Failure::bad(format!("listen on 127.0.0.1: {error}")))?;
        let place = Place { address: host::address(&listener), instance: Some(drawn()?), token: Some(drawn()?) };
        let workers = place.token.clone().map(|token| Workers { lease: self.lease, token });
        let host = host::start(Plan {
            folders: folder::folders(&self.dir, None),
            apps: self.apps.clone(),
            data: self.state.clone(),
            pace: Pace::ByItself,
            reload_every: Duration::from_secs(1),
            tunables: &Tunables::default(),
            pages: host::Pages::default(),
            listener,
            workers,
            instance: place.instance.clone(),
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
        let lead = serve(host, &self.state, &place)?;
        tracing::info!(address = place.address, "this process leads");
        Ok(Some((place, lead)))
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
fn serve(host: Host, state: &Path, place: &Place) -> Result<Lead, Failure> {
    let (stop, stopped) = oneshot::channel();
    let (says, ready) = std::sync::mpsc::channel();
    let (file, place) = (state.join(WHERE), place.clone());
    let answer = move || {
        let ready = move || {
            let _ = says.send(write(&file, &place));
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

/// Says where the leader is, to whoever may read it: only who may read the token can have jobs.
pub(crate) fn write(file: &Path, place: &Place) -> Result<(), Failure> {
    let fail = |error: std::io::Error| Failure::bad(format!("write {}: {error}", file.display()));
    let mut here =
        json!({ "address": place.address, "pid": std::process::id(), "startedAt": text::wire(Timestamp::now()) });
    for (name, value) in [("instance", &place.instance), ("token", &place.token)] {
        if let Some(value) = value {
            here[name] = Value::from(&**value);
        }
    }
    let beside = file.with_extension(format!("json.{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut written = options.open(&beside).map_err(fail)?;
    written.write_all(format!("{here}\n").as_bytes()).map_err(fail)?;
    std::fs::rename(&beside, file).map_err(fail)
}

/// Where the leader says it is.
pub(crate) fn written(file: &Path) -> Option<Place> {
    let written: Value = serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()?;
    let text = |name: &str| written[name].as_str().map(Arc::from);
    Some(Place { address: written["address"].as_str()?.to_owned(), instance: text("instance"), token: text("token") })
}

/// Whether the server that wrote this down is there: another one may have got its port.
fn answers(place: &Place) -> bool {
    let agent: Agent = Agent::config_builder().http_status_as_error(false).timeout_global(Some(GLANCE)).build().into();
    let mut request = agent.get(format!("{}/api/v1/workers", place.address));
    if let Some(token) = &place.token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    if let Some(instance) = &place.instance {
        request = request.header(kelos_front::INSTANCE, &**instance);
    }
    request.call().is_ok_and(|answer| answer.status().is_success())
}

/// A text that nobody guesses.
pub(crate) fn drawn() -> Result<Arc<str>, Failure> {
    let drawn = std::fs::read_to_string("/proc/sys/kernel/random/uuid");
    let drawn = drawn.map_err(|error| Failure::bad(format!("generate a token: {error}")))?;
    Ok(drawn.trim().into())
}

/// Asks the server that was named or that works in this folder; where none does, this process leads until it has answered.
pub(crate) fn ask<T>(door: &Door, ask: impl Fn(&Client) -> Result<T, Failure>) -> Result<T, Failure> {
    let (here, apps) = (std::env::current_dir().unwrap_or_default(), Apps::of_environment());
    // Where the environment names the apps, nothing has to stand in the folder.
    let named = apps.are_named();
    let signs = if named { &SIGNS[..SIGNS_OF_APPS] } else { &SIGNS[..] };
    let dir = here.ancestors().find(|dir| signs.iter().any(|sign| dir.join(sign).exists()));
    let dir = dir.or_else(|| named.then_some(&*here));
    let Some(dir) = dir.filter(|_| door.server.as_ref().is_none_or(String::is_empty)) else {
        return ask(&Client::new(door)?);
    };
    let _logging = logging::start(logging::USUAL, None)?;
    let fleet = Fleet::new(dir, apps.source(dir)?, kelos_executors::workers::LEASE)?;
    // Commands start where the definitions are.
    std::env::set_current_dir(dir).map_err(|error| Failure::usage(format!("work in {}: {error}", dir.display())))?;
    let answer = fleet.ask(ask)?;
    fleet.leave()?;
    Ok(answer)
}

/// A place among those who work on this folder or one above, where apps are all that it has, and there is state: whoever leads
/// there for a moment runs nothing.
pub(crate) fn of_workers_alone() -> Result<Option<Fleet>, Failure> {
    let here = std::env::current_dir().unwrap_or_default();
    let apps = Apps::of_environment();
    let dir = here.ancestors().find(|dir| dir.join(STATE).join(DATABASE).exists());
    let Some(dir) = dir.or_else(|| apps.are_named().then_some(&*here)) else { return Ok(None) };
    let has_apps = apps.are_named() || dir.join(TASKS_JSON).exists();
    if !has_apps || folder::scripts(&folder::folders(dir, None)) > 0 {
        return Ok(None);
    }
    Fleet::new(dir, apps.source(dir)?, kelos_executors::workers::LEASE).map(Some)
}
