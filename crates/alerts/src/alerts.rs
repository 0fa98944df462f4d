//! Follows the log while its engine leads, keeps the book in a register, and sends.
//!
//! The register is written when what has to be sent has changed: before it is sent, and after it was accepted. Without alerts it is
//! written once, and then only so that a new leader does not have to read all of the log.

mod delivery;
mod keeping;
mod lapse;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use kelos_engine::Handle;
use kelos_executors::workers::Hub;
use kelos_model::register::ALERTS_BUCKET;
use kelos_tls::Trust;
use tokio::runtime::Handle as Runtime;
use tokio::sync::{RwLock, watch};
use tokio::time::timeout;

use crate::book::{Book, Observation};
use crate::channel::{Clients, SendError};
use crate::details::Details;
use crate::notice::Notice;
use crate::settings::Settings;
use crate::status::{AlertsStatus, ChannelStatus};
use lapse::Lapse;

/// The register of the book, in its bucket.
const KEY: &str = "book";
/// The time that a node which ends gives a notice on its way, and the register.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A look at what is wrong now and in no event.
pub type Lookout = Box<dyn Fn() -> Observation + Send + Sync>;

/// The parts that alerts are made of.
pub struct AlertParts {
    /// The channels and rules.
    pub settings: Settings,
    /// The address of the server, for links; that of the settings goes before it.
    pub url: Option<String>,
    /// The engine whose log is followed.
    pub handle: Handle,
    /// The position at which the log ended before the engine took its first turn. Without a stored book, alerts begin there.
    pub since: u64,
    /// The trust in the servers of channels.
    pub trust: Trust,
    /// The hub, which has the output of runs.
    pub hub: Hub,
    /// The look at the process.
    pub lookout: Lookout,
}

/// The reason for which a channel could not be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestError {
    /// No channel has that name; these are there.
    Unknown(Vec<String>),
    /// It did not accept the notice. The message completes "failed to …".
    NotSent(String),
}

/// Alerts of a node. Cheap to clone.
#[derive(Clone)]
pub struct Alerts {
    shared: Arc<AlertReader>,
}

struct AlertReader {
    settings: Settings,
    url: Option<String>,
    handle: Handle,
    since: u64,
    clients: Clients,
    hub: Hub,
    lookout: Lookout,
    state: Mutex<State>,
    /// The time since which the store refuses turns, or for which it did; none if it does not, or that was told.
    lapse: Mutex<Option<Lapse>>,
    /// Changes when there may be something to send.
    stored: watch::Sender<u64>,
    /// Changes when something was accepted, and has to be stored.
    settled: watch::Sender<u64>,
    /// Whether notices are sent. Read from the choice of a notice until its acceptance is noted, so that whoever ends it waits for those.
    sending: RwLock<bool>,
    /// Held while the register is written, so that an older book never comes after a newer one.
    storing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// None while another process leads.
    book: Option<Book>,
    /// The version of the book and its cursor as they are stored; none before they are.
    kept: Option<(u64, u64)>,
    /// The keys of the notices that are stored, which may be sent.
    sendable: BTreeSet<String>,
    tallies: BTreeMap<String, Tally>,
    problem: Option<String>,
}

/// The fate of the notices of a channel.
#[derive(Default)]
struct Tally {
    sent: u64,
    failed: u64,
    problem: Option<String>,
    sent_at: Option<Timestamp>,
}

impl Alerts {
    /// Sends alerts until the engine ends, and while it leads.
    #[must_use]
    pub fn start(parts: AlertParts, runtime: &Runtime) -> Alerts {
        let AlertParts { settings, url, handle, since, trust, hub, lookout } = parts;
        let (url, clients) = (settings.url.clone().or(url), Clients::new(&trust));
        let (state, stored, settled) = (Mutex::default(), watch::Sender::new(0), watch::Sender::new(0));
        let (lapse, sending, storing) = (Mutex::default(), RwLock::new(true), tokio::sync::Mutex::default());
        let parts = AlertReader {
            settings,
            url,
            handle,
            since,
            clients,
            hub,
            lookout,
            state,
            lapse,
            stored,
            settled,
            sending,
            storing,
        };
        let shared = Arc::new(parts);
        let alerts = Alerts { shared };
        runtime.spawn(alerts.clone().run());
        alerts
    }

    /// All that people are shown. Blocks where another process sends: its incidents are read from the log.
    #[must_use]
    pub fn status(&self) -> AlertsStatus {
        let settings = &self.shared.settings;
        let sends = self.state().book.is_some();
        let elsewhere = if sends { None } else { self.stored_book() };
        let state = self.state();
        let book = state.book.as_ref().or(elsewhere.as_ref());
        let mut all: Vec<_> = book.into_iter().flat_map(Book::incidents).cloned().collect();
        all.sort_by(|a, b| b.opened_at.cmp(&a.opened_at).then_with(|| a.cause.cmp(&b.cause)));
        let (news, open) = all.into_iter().partition(|incident| incident.condition.is_moment());
        let channels = settings.channels.iter().map(|(name, channel)| {
            let tally = state.tallies.get(name);
            ChannelStatus {
                name: name.clone(),
                kind: channel.kind(),
                waiting: book.map_or(0, |book| book.waiting(name).count()),
                sent: tally.map_or(0, |tally| tally.sent),
                failed: tally.map_or(0, |tally| tally.failed),
                problem: tally.and_then(|tally| tally.problem.clone()),
                sent_at: tally.and_then(|tally| tally.sent_at).or_else(|| book?.accepted_at(name)),
            }
        });
        let channels = channels.collect();
        AlertsStatus { sends, rules: settings.rules.clone(), channels, open, news, problem: state.problem.clone() }
    }

    /// Sends a notice that says that nothing has happened.
    ///
    /// # Errors
    /// When there is no such channel, or it did not accept it.
    pub async fn test(&self, channel: &str, by: &str) -> Result<(), TestError> {
        let AlertReader { settings, handle, clients, url, .. } = &*self.shared;
        let known = || settings.channels.keys().cloned().collect();
        let found = settings.channels.get(channel).ok_or_else(|| TestError::Unknown(known()))?;
        let notice = Notice::test(channel, handle.now(), by);
        let details = Details { link: url.as_ref().map(|url| format!("{url}/ui")), ..Details::default() };
        let sent = found.send(&notice, &details, clients, handle.now()).await;
        self.note(&notice, &sent);
        sent.map_err(|error| TestError::NotSent(error.to_string()))
    }

    /// Sends nothing any more, and records what channels have accepted: before the engine ends, so that whoever leads next does not send it
    /// again. Waits a few seconds for a notice that is on its way.
    pub async fn end(&self) {
        let ended = async {
            *self.shared.sending.write().await = false;
            self.store().await
        };
        if let Ok(Err(problem)) = timeout(LAST_WORDS, ended).await {
            tracing::warn!("failed to {problem}; alerts that were accepted last may be sent again");
        }
    }

    async fn run(self) {
        while self.shared.handle.while_leading(self.keep_and_deliver()).await {
            *self.state() = State::default();
            let now = self.shared.handle.now();
            *self.lapse() = Lapse::of(&self.shared.handle.status(), now);
        }
    }

    async fn keep_and_deliver(&self) {
        if let Some(lapse) = &mut *self.lapse() {
            lapse.ended.get_or_insert(self.shared.handle.now());
        }
        let deliveries = self.shared.settings.channels.keys().map(|channel| self.keep_delivering(channel));
        tokio::select! {
            () = self.keep() => {}
            _ = join_all(deliveries), if !self.shared.settings.channels.is_empty() => {}
        }
    }

    fn lapse(&self) -> MutexGuard<'_, Option<Lapse>> {
        self.shared.lapse.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The book as the log has it; none where there is none that can be read.
    fn stored_book(&self) -> Option<Book> {
        let stored = self.shared.handle.reader().register(ALERTS_BUCKET, KEY).ok().flatten()?;
        Book::restore(self.shared.settings.rules.clone(), stored).ok()
    }

    /// Notes what became of a notice.
    fn note(&self, notice: &Notice, sent: &Result<(), SendError>) {
        let channel = &notice.channel;
        let now = self.shared.handle.now();
        let mut state = self.state();
        let tally = state.tallies.entry(channel.clone()).or_default();
        match sent {
            Ok(()) => {
                tally.sent += 1;
                (tally.problem, tally.sent_at) = (None, Some(now));
            }
            Err(error) => {
                let words = error.to_string();
                if let SendError::Refused(_) = error {
                    let key = &notice.key;
                    tracing::warn!(channel, key, "failed to {words}; the alert is given up: {}", notice.words);
                } else if tally.problem.as_ref() != Some(&words) {
                    tracing::warn!(channel, "failed to {words}");
                }
                tally.failed += 1;
                tally.problem = Some(words);
            }
        }
    }
}
