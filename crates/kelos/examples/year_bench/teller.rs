//! The keeping and sending of alerts, as a leader does both: the book is stored before anything is sent, and whoever dies goes on from what
//! is stored.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_alerts::{About, Book, Clients, Details, Directory, SendError, Settings};
use kelos_core::SetRegister;
use kelos_model::register::ALERTS_BUCKET;
use kelos_model::retry::scramble;
use kelos_model::{BackfillId, RunId, WorkflowId};
use kelos_store::{EventFilter, PageRequest, Queries};
use kelos_tls::Trust;
use tokio::runtime::Runtime;

use crate::due::{Due, Periods};
use crate::receiver::Receiver;

const KEY: &str = "book";
/// Events that are read at a time.
const AT_ONCE: usize = 1_000;
/// Events behind which the stored cursor may stay without anything to tell.
const COARSE: u64 = 50_000;
/// It dies at one look in so many.
const DIES: u64 = 500;

/// The names of workflows are all that rules choose by here.
struct Names;

impl Directory for Names {
    fn about(&self, workflow: &WorkflowId) -> About {
        About { workflow: Some(workflow.clone()), ..About::default() }
    }

    fn is_defined(&self, _: &WorkflowId) -> bool {
        true
    }

    fn workflow_of(&self, _: &BackfillId) -> Option<WorkflowId> {
        None
    }

    fn worker_of(&self, _: &RunId) -> Option<String> {
        None
    }
}

/// The part of a leader that tells people.
pub(crate) struct Teller {
    seed: u64,
    settings: Settings,
    receiver: Receiver,
    clients: Clients,
    runtime: Runtime,
    book: Book,
    /// The version and the cursor that are stored.
    kept: Option<(u64, u64)>,
    /// The times in which something was wrong, by the log alone.
    periods: Periods,
    looks: u64,
    pub(crate) deaths: u64,
}

/// The notices that were due, and what became of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) due: usize,
    /// Those that came.
    pub(crate) received: usize,
    /// Those in whose place a later one of the same alert was sent.
    pub(crate) superseded: usize,
    /// Those that came again, under the same key.
    pub(crate) repeated: usize,
    /// Those that never came.
    pub(crate) missing: Vec<Due>,
    /// Those that were not due.
    pub(crate) unexpected: Vec<Due>,
    /// How many were due in each phase.
    pub(crate) phases: BTreeMap<String, usize>,
}

impl Teller {
    pub(crate) fn new(seed: u64, now: Timestamp) -> Teller {
        let receiver = Receiver::start(seed);
        let text = format!(
            r#"{{"alerts": {{"channels": {{"hook": {{"webhook": "{}"}}}}, "rules": [
                {{"name": "failures", "when": ["failed"], "to": ["hook"], "repeat": "4h"}},
                {{"name": "lateness", "when": ["late"], "to": ["hook"], "after": "30m"}}]}}}}"#,
            receiver.address
        );
        let settings = Settings::parse(&text).expect("settings");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (book, clients) = (Book::new(settings.rules.clone(), 0, now), Clients::new(&Trust::default()));
        let periods = Periods::default();
        Teller { seed, settings, receiver, clients, runtime, book, kept: None, periods, looks: 0, deaths: 0 }
    }

    /// Reads all that happened by a moment. It may die before, and then begins with what is stored.
    pub(crate) fn read(&mut self, reader: &dyn Queries, now: Timestamp) {
        self.looks += 1;
        if scramble(self.seed ^ self.looks).is_multiple_of(DIES) {
            self.die(reader);
        }
        loop {
            let filter = EventFilter::after(self.book.cursor());
            let page = reader.events(&filter, PageRequest::oldest(AT_ONCE)).expect("a page of events");
            for record in &page.rows {
                self.periods.note(record);
                self.book.read(record, &Names);
            }
            if page.rows.len() < AT_ONCE {
                return self.book.advance(now);
            }
        }
    }

    fn die(&mut self, reader: &dyn Queries) {
        if let Some(stored) = reader.register(ALERTS_BUCKET, KEY).expect("the register") {
            self.book = Book::restore(self.settings.rules.clone(), stored).expect("a stored book");
            self.kept = Some((self.book.version(), self.book.cursor()));
            self.deaths += 1;
        }
    }

    /// The request that stores the book, if it has to be stored.
    pub(crate) fn keeps(&mut self) -> Option<SetRegister> {
        let now = (self.book.version(), self.book.cursor());
        if self.kept.is_some_and(|(version, behind)| version == now.0 && now.1.saturating_sub(behind) < COARSE) {
            return None;
        }
        self.kept = Some(now);
        let value = Some(self.book.stored());
        Some(SetRegister { bucket: ALERTS_BUCKET.to_owned(), key: KEY.to_owned(), value, reason: None })
    }

    /// Sends what is due until the channel fails. What was accepted has to be stored then.
    pub(crate) fn send(&mut self, now: Timestamp) {
        while let Some(notice) = self.book.due_for("hook", now).cloned() {
            let channel = self.settings.channels.get("hook").expect("the channel");
            let details = Details::default();
            match self.runtime.block_on(channel.send(&notice, &details, &self.clients, now)) {
                Ok(()) => self.book.settle(&notice.key),
                Err(SendError::Away(_)) => return,
                Err(SendError::Refused(why)) => panic!("{why}"),
            }
        }
    }

    /// Ends the failures of the channel, so that it gets what still waits.
    pub(crate) fn recover(&self) {
        self.receiver.recover();
    }

    /// Compares what was due with what was received.
    pub(crate) fn told(&self, end: Timestamp) -> Comparison {
        let due = self.periods.due(&self.settings.rules, end);
        let bodies = self.receiver.received();
        let mut received: BTreeMap<Due, usize> = BTreeMap::new();
        for body in &bodies {
            *received.entry(Due::of(body)).or_default() += 1;
        }
        let mut told = Comparison { due: due.len(), ..Comparison::default() };
        for one in &due {
            *told.phases.entry(one.phase().to_owned()).or_default() += 1;
            if received.contains_key(one) {
                told.received += 1;
            } else if received.keys().any(|later| one.gives_way_to(later)) {
                told.superseded += 1;
            } else {
                told.missing.push(one.clone());
            }
        }
        told.repeated = bodies.len() - received.len();
        told.unexpected = received.into_keys().filter(|one| !due.contains(one)).collect();
        told
    }
}
