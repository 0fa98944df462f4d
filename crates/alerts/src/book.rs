//! The book of incidents: signals are entered, and it says which notices are due.
//!
//! It is a pure function of the log, the rules and the moments that it is given: timers that end between two events are told as of the
//! moment at which they ended, whenever the book hears of it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::{BackfillId, EventRecord, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;
use crate::incident::{Incident, RuleReport};
use crate::notice::Notice;
use crate::phase::Phase;
use crate::rule::{About, Rule};
use crate::signal::{Change, Directory, Signal, signals};

/// The most notices that wait for one channel: beyond them the oldest is given up.
const MOST_WAITING: usize = 1_000;

/// Something that is wrong now and in no event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The condition.
    pub condition: Condition,
    /// The name of the cause, such as a file or an endpoint.
    pub cause: String,
    /// The members that it has, such as slots, each with the workflow that it is about.
    pub members: Vec<(String, About)>,
    /// The number of members beyond those.
    pub more: u64,
    /// The trouble in one sentence.
    pub words: String,
}

impl Trouble {
    /// A trouble whose cause is its only member, and which is about one workflow or the server.
    #[must_use]
    pub fn new(condition: Condition, cause: String, about: About, words: String) -> Trouble {
        Trouble { condition, members: vec![(cause.clone(), about)], cause, more: 0, words }
    }
}

/// The findings of a look at the process, or at what is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    /// The troubles of now.
    pub troubles: Vec<Trouble>,
    /// Causes that are known to be well. What is neither here nor among the troubles is not known.
    pub well: BTreeSet<(Condition, String)>,
    /// Conditions of which everything was looked at: what is not among the troubles is well.
    pub knows: BTreeSet<Condition>,
}

/// A backfill that is not done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RunningBackfill {
    seq: u64,
    #[serde(default)]
    about: About,
}

/// The part of the book that is stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct BookForm {
    /// The position of the last event that was entered.
    cursor: u64,
    /// The moment up to which timers have ended.
    clock: Timestamp,
    #[serde(default)]
    incidents: Vec<Incident>,
    #[serde(default)]
    outbox: Vec<Notice>,
    #[serde(default)]
    backfills: BTreeMap<BackfillId, RunningBackfill>,
}

/// The name of an incident in the book.
type Cause = (Condition, String);

/// Incidents, and the notices that wait to be sent.
#[derive(Debug, Clone)]
pub struct Book {
    rules: Vec<Rule>,
    cursor: u64,
    clock: Timestamp,
    incidents: BTreeMap<Cause, Incident>,
    /// The incident of each member; not of those that are observed, whose members each look names.
    causes: BTreeMap<(Condition, String), String>,
    outbox: Vec<Notice>,
    backfills: BTreeMap<BackfillId, RunningBackfill>,
    /// Stored incidents of which no look has said yet whether they still last: nothing is told of them.
    unseen: BTreeSet<Cause>,
    /// When the next timer ends; none if it has to be looked for, or there is none.
    next: Option<Option<Timestamp>>,
    /// Counts the changes of what waits to be sent.
    version: u64,
    /// Notices that were given up because too many waited.
    given_up: u64,
}

impl Book {
    /// An empty book, which begins behind a position of the log.
    #[must_use]
    pub fn new(rules: Vec<Rule>, cursor: u64, now: Timestamp) -> Book {
        Book::of(rules, BookForm { cursor, clock: now, ..BookForm::default() })
    }

    /// The book as it was stored.
    ///
    /// # Errors
    /// When it is in no form that this program knows. The message completes "failed to …".
    pub fn restore(rules: Vec<Rule>, stored: Value) -> Result<Book, String> {
        let stored = serde_json::from_value(stored).map_err(|error| format!("read the stored alerts: {error}"))?;
        Ok(Book::of(rules, stored))
    }

    fn of(rules: Vec<Rule>, stored: BookForm) -> Book {
        let BookForm { cursor, clock, incidents, outbox, backfills } = stored;
        let mut book = Book {
            rules,
            cursor,
            clock,
            incidents: BTreeMap::new(),
            causes: BTreeMap::new(),
            outbox,
            backfills,
            unseen: BTreeSet::new(),
            next: None,
            version: 0,
            given_up: 0,
        };
        for incident in incidents {
            let named = incident.members.keys().filter(|_| !incident.condition.is_observed());
            let members = named.map(|member| (incident.condition, member.clone()));
            book.causes.extend(members.map(|member| (member, incident.cause.clone())));
            let cause = (incident.condition, incident.cause.clone());
            if incident.condition.is_observed() && !incident.condition.is_moment() {
                book.unseen.insert(cause.clone());
            }
            book.incidents.insert(cause, incident);
        }
        let channels: BTreeSet<&String> = book.rules.iter().flat_map(|rule| &rule.to).collect();
        book.outbox.retain(|notice| channels.contains(&notice.channel));
        book
    }

    /// The book as it is stored.
    #[must_use]
    pub fn stored(&self) -> Value {
        let stored = BookForm {
            cursor: self.cursor,
            clock: self.clock,
            incidents: self.incidents.values().cloned().collect(),
            outbox: self.outbox.clone(),
            backfills: self.backfills.clone(),
        };
        serde_json::to_value(stored).unwrap_or_default()
    }

    /// The position of the last event that was entered.
    #[must_use]
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Counts the changes of what waits to be sent: what changed has to be stored.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The open incidents.
    pub fn incidents(&self) -> impl Iterator<Item = &Incident> {
        self.incidents.values()
    }

    /// The notices that wait to be sent, in their order.
    pub fn notices(&self) -> impl Iterator<Item = &Notice> {
        self.outbox.iter()
    }

    /// The notices that wait for a channel.
    pub fn waiting<'a>(&'a self, channel: &'a str) -> impl Iterator<Item = &'a Notice> {
        self.outbox.iter().filter(move |notice| notice.channel == channel)
    }

    /// The first notice for a channel that is due.
    #[must_use]
    pub fn due_for(&self, channel: &str, now: Timestamp) -> Option<&Notice> {
        self.outbox.iter().find(|notice| notice.channel == channel && notice.due <= now)
    }

    /// Forgets a notice that was accepted, or refused for good.
    pub fn settle(&mut self, key: &str) {
        let before = self.outbox.len();
        self.outbox.retain(|notice| notice.key != key);
        self.version += u64::from(self.outbox.len() != before);
    }

    /// The backfills that are not done, as far as is known.
    pub fn backfills(&self) -> impl Iterator<Item = &BackfillId> {
        self.backfills.keys()
    }

    /// The number of notices that were given up because too many waited for their channel.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// When the next timer ends, be it one of a rule or the end of quiet hours.
    pub fn next_due(&mut self) -> Option<Timestamp> {
        if self.next.is_none() {
            self.next = Some(self.earliest().map(|(due, _)| due));
        }
        self.next.flatten()
    }

    /// Enters an event, and tells before it what was due by then.
    pub fn read(&mut self, record: &EventRecord, directory: &dyn Directory) {
        let at = record.at.max(self.clock);
        if self.next_due().is_some_and(|next| next <= at) {
            self.advance(at);
        }
        (self.cursor, self.clock) = (record.seq, at);
        for signal in signals(record) {
            self.enter(signal, record.seq, directory);
        }
    }

    /// Tells what is due by a moment.
    pub fn advance(&mut self, now: Timestamp) {
        self.clock = self.clock.max(now);
        while let Some((due, what)) = self.earliest().filter(|(due, _)| *due <= now) {
            match what {
                Timer::Tell(cause, rule, phase, number) => self.tell(&cause, rule, (phase, number), due),
                Timer::Forget(cause) => self.forget(&cause),
            }
        }
        self.next = None;
    }

    /// Enters what a look at the process found at a moment.
    pub fn observe(&mut self, found: &Observation, now: Timestamp) {
        let now = now.max(self.clock);
        self.advance(now);
        let present: BTreeSet<Cause> = found.troubles.iter().map(|one| (one.condition, one.cause.clone())).collect();
        let is_over = |cause: &Cause| {
            !present.contains(cause)
                && !cause.0.is_moment()
                && (found.well.contains(cause) || found.knows.contains(&cause.0))
        };
        let over: Vec<Cause> =
            self.incidents.keys().filter(|cause| cause.0.is_observed() && is_over(cause)).cloned().collect();
        over.iter().for_each(|cause| self.close(cause));
        for Trouble { condition, cause, members, more, words } in found.troubles.iter().cloned() {
            let (seq, now) = (self.cursor, self.clock);
            let cause = (condition, cause);
            self.unseen.remove(&cause);
            let incident = self.incidents.entry(cause).or_insert_with_key(|cause| Incident::new(cause, seq, now));
            (incident.words, incident.more) = (words, more);
            incident.set_members(members, seq, now);
        }
        self.next = None;
    }

    /// Tells that a backfill is done, with what came of it.
    pub fn finish(&mut self, backfill: &BackfillId, words: String, now: Timestamp) {
        let Some(RunningBackfill { seq, about }) = self.backfills.remove(backfill) else { return };
        self.clock = self.clock.max(now);
        let cause = (Condition::Backfill, backfill.to_string());
        self.begin(cause, backfill.to_string(), about, (words, None), seq);
    }

    fn enter(&mut self, signal: Signal, seq: u64, directory: &dyn Directory) {
        let Signal { workflow, change } = signal;
        let about = || workflow.as_ref().map(|workflow| directory.about(workflow)).unwrap_or_default();
        match change {
            Change::Began { condition, cause, member, words, run, behind } => {
                let worker = match (condition, &run) {
                    (Condition::Worker, Some(run)) => match directory.worker_of(run) {
                        Some(worker) => Some(worker),
                        // It was a process of this machine.
                        None => return,
                    },
                    _ => None,
                };
                let behind = behind.into_iter().find_map(|slot| self.causes.get(&(condition, slot)).cloned());
                let cause = worker.or(behind).unwrap_or(cause);
                self.begin((condition, cause), member, about(), (words, run), seq);
            }
            Change::Ended { condition, member } => self.end(condition, &member),
            Change::Removed => {
                if let Some(workflow) = &workflow {
                    self.remove(workflow);
                }
            }
            Change::BackfillBegan(id) => {
                let known = self.backfills.get(&id).map(|known| known.about.clone());
                self.backfills.insert(id, RunningBackfill { seq, about: known.unwrap_or_else(about) });
            }
            Change::BackfillCancelled(id) => drop(self.backfills.remove(&id)),
        }
    }

    fn begin(
        &mut self,
        cause: Cause,
        member: String,
        about: About,
        (words, run): (String, Option<kelos_model::RunId>),
        seq: u64,
    ) {
        // A slot that fails in another way than before belongs to its first cause until it is repaired.
        let known = self.causes.get(&(cause.0, member.clone())).cloned();
        let cause = (cause.0, known.unwrap_or(cause.1));
        self.causes.insert((cause.0, member.clone()), cause.1.clone());
        let now = self.clock;
        let incident = self.incidents.entry(cause).or_insert_with_key(|cause| Incident::new(cause, seq, now));
        (incident.news, incident.words, incident.run) = ((seq, now), words, run);
        incident.add(member, about, seq);
        self.next = None;
    }

    fn end(&mut self, condition: Condition, member: &str) {
        if self.causes.is_empty() {
            return;
        }
        let Some(cause) = self.causes.remove(&(condition, member.to_owned())) else { return };
        let cause = (condition, cause);
        let Some(incident) = self.incidents.get_mut(&cause) else { return };
        incident.members.remove(member);
        self.next = None;
        if incident.members.is_empty() {
            self.close(&cause);
        }
    }

    fn remove(&mut self, workflow: &WorkflowId) {
        let slots = format!("{workflow}@");
        let of_it = |member: &String| *member == workflow.as_str() || member.starts_with(&slots);
        let gone: Vec<(Condition, String)> =
            self.causes.keys().filter(|(condition, member)| !condition.is_moment() && of_it(member)).cloned().collect();
        gone.iter().for_each(|(condition, member)| self.end(*condition, member));
    }

    /// Takes an incident that is over out of the book, and tells those who had heard of it.
    fn close(&mut self, cause: &Cause) {
        let Some(incident) = self.incidents.remove(cause) else { return };
        self.unseen.remove(cause);
        self.next = None;
        for rule in self.rules.clone().iter().filter(|rule| incident.told.contains_key(&rule.name)) {
            self.post(&incident, rule, (Phase::Over, incident.opened), rule.awake(self.clock));
        }
    }

    fn forget(&mut self, cause: &Cause) {
        if let Some(incident) = self.incidents.remove(cause) {
            incident.members.into_keys().for_each(|member| drop(self.causes.remove(&(cause.0, member))));
        }
    }

    fn tell(&mut self, cause: &Cause, rule: usize, phase: (Phase, u64), due: Timestamp) {
        let (Some(incident), Some(rule)) = (self.incidents.get_mut(cause), self.rules.get(rule)) else { return };
        let count = incident.told.get(&rule.name).map_or(0, |told| told.count) + 1;
        incident.told.insert(rule.name.clone(), RuleReport { at: due, news: incident.news.0, count });
        let (incident, rule) = (incident.clone(), rule.clone());
        self.post(&incident, &rule, phase, due);
    }

    fn post(&mut self, incident: &Incident, rule: &Rule, phase: (Phase, u64), due: Timestamp) {
        self.version += 1;
        for channel in &rule.to {
            let notice = Notice::of(incident, (&rule.name, channel), phase, due);
            self.outbox.retain(|one| {
                !(one.phase.is_superseded() && one.incident == notice.incident && one.channel == notice.channel)
            });
            if self.waiting(channel).count() >= MOST_WAITING
                && let Some(oldest) = self.outbox.iter().position(|one| one.channel == *channel)
            {
                self.outbox.remove(oldest);
                self.given_up += 1;
            }
            self.outbox.push(notice);
        }
    }

    /// The timer that ends first.
    fn earliest(&self) -> Option<(Timestamp, Timer)> {
        let mut first: Option<(Timestamp, Timer)> = None;
        let mut offer = |due: Timestamp, timer: Timer| {
            if first.as_ref().is_none_or(|(known, _)| due < *known) {
                first = Some((due, timer));
            }
        };
        for (cause, incident) in self.incidents.iter().filter(|(cause, _)| !self.unseen.contains(*cause)) {
            let mut is_told = true;
            for (number, rule) in self.rules.iter().enumerate() {
                if let Some((due, phase, count)) = incident.next(rule) {
                    is_told = false;
                    offer(due, Timer::Tell(cause.clone(), number, phase, count));
                }
            }
            if let Some(at) = incident.forgotten_at().filter(|_| is_told) {
                offer(at, Timer::Forget(cause.clone()));
            }
        }
        first
    }
}

/// A timer of the book.
enum Timer {
    /// A rule tells an incident.
    Tell(Cause, usize, Phase, u64),
    /// An incident that is never over is forgotten.
    Forget(Cause),
}

#[cfg(test)]
mod tests;
