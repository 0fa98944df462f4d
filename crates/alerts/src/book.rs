//! The book of incidents: signals are entered, and it says which notices are due.
//!
//! It is a pure function of the log, the rules and the moments that it is given: timers that end between two events are told as of the
//! moment at which they ended, whenever the book hears of it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::{BackfillId, EventRecord, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;
use crate::incident::{Incident, RuleReport};
use crate::notice::{Notice, key};
use crate::phase::Phase;
use crate::rule::{About, Rule};
use crate::signal::{Change, Directory, Signal, signals};

/// The most notices that wait for one channel: beyond them the oldest is given up.
pub(crate) const MOST_WAITING: usize = 1_000;
/// How far the clock may have been ahead of a moment that comes later; beyond that it was wrong, and is set back.
const AHEAD: SignedDuration = SignedDuration::from_mins(5);
/// How long an endpoint or a disk may be out of sight before that is taken for its end: nothing asks for it any more.
const OUT_OF_SIGHT: SignedDuration = SignedDuration::from_hours(1);

/// Something that is wrong now and in no event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The condition.
    pub condition: Condition,
    /// The name of the cause, such as a file or an endpoint.
    pub cause: String,
    /// The members that it has, such as slots, each with the workflow that it is about.
    pub members: Vec<(String, About)>,
    /// Workflows that it is about besides, such as those that an endpoint holds.
    pub concerns: Vec<About>,
    /// The number of members beyond those.
    pub more: u64,
    /// The trouble in one sentence.
    pub words: String,
}

impl Trouble {
    /// A trouble whose cause is its only member, and which is about one workflow or the server.
    #[must_use]
    pub fn new(condition: Condition, cause: String, about: About, words: String) -> Trouble {
        Trouble { condition, members: vec![(cause.clone(), about)], cause, concerns: Vec::new(), more: 0, words }
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
    /// The key of the rules by which it was kept; empty in books from before there was one.
    #[serde(default)]
    rules: String,
    /// The moment since which those are the rules.
    #[serde(default)]
    ruled_at: Timestamp,
    /// When each channel last accepted a notice.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    accepted: BTreeMap<String, Timestamp>,
}

/// The rules by which a book was kept before.
#[derive(Debug, Clone)]
struct FormerRules {
    key: String,
    /// The position of the log up to which nothing is news for the rules of now; none before that is known.
    until: Option<u64>,
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
    /// When a look named or missed each of those that are over once they are out of sight.
    sighted: BTreeMap<Cause, Timestamp>,
    ruled_at: Timestamp,
    /// When each channel last accepted a notice.
    accepted: BTreeMap<String, Timestamp>,
    /// None if the rules of now are those of before.
    former: Option<FormerRules>,
    /// When the next timer ends; none if it has to be looked for, or there is none.
    next: Option<Option<Timestamp>>,
    /// Counts the changes of what waits to be sent.
    version: u64,
    /// Notices that were given up because too many waited, and of which nobody was told yet.
    given_up: Vec<Notice>,
}

impl Book {
    /// An empty book, which begins behind a position of the log.
    #[must_use]
    pub fn new(rules: Vec<Rule>, cursor: u64, now: Timestamp) -> Book {
        Book::of(rules, BookForm { cursor, clock: now, ruled_at: now, ..BookForm::default() })
    }

    /// An empty book, which begins behind a position of the log. What happened from there up to another one, and is over, is no news.
    #[must_use]
    pub fn since(rules: Vec<Rule>, cursor: u64, until: u64, now: Timestamp) -> Book {
        let former = FormerRules { key: key_of(&rules), until: Some(until) };
        // Its clock is that of the first event that it reads.
        let mut book = Book::of(rules, BookForm { cursor, ruled_at: now, ..BookForm::default() });
        book.former = Some(former);
        book
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
        let BookForm { cursor, clock, incidents, outbox, backfills, rules: kept_by, ruled_at, accepted } = stored;
        let is_other = !kept_by.is_empty() && kept_by != key_of(&rules);
        let mut book = Book {
            rules,
            cursor,
            clock,
            incidents: BTreeMap::new(),
            causes: BTreeMap::new(),
            outbox,
            backfills,
            unseen: BTreeSet::new(),
            sighted: BTreeMap::new(),
            ruled_at,
            accepted,
            former: is_other.then_some(FormerRules { key: kept_by, until: None }),
            next: None,
            version: 0,
            given_up: Vec::new(),
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
        book.drop_channels();
        book
    }

    /// Drops what waits for channels that no rule names any more. An incident whose first notice is among it was not told by them.
    fn drop_channels(&mut self) {
        for rule in &self.rules {
            // Books from before channels were recorded.
            let told = self.incidents.values_mut().filter_map(|incident| incident.told.get_mut(&rule.name));
            told.filter(|told| told.to.is_empty()).for_each(|told| told.to.extend(rule.to.iter().cloned()));
        }
        let named: BTreeSet<&String> = self.rules.iter().flat_map(|rule| &rule.to).collect();
        let (kept, dropped): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.outbox).into_iter().partition(|notice| named.contains(&notice.channel));
        self.outbox = kept;
        for notice in dropped.iter().filter(|notice| notice.phase == Phase::Opened) {
            let mut incidents = self.incidents.values_mut();
            let Some(incident) = incidents.find(|one| Notice::name(one, &notice.rule) == notice.incident) else {
                continue;
            };
            if let Some(told) = incident.told.get_mut(&notice.rule) {
                told.to.remove(&notice.channel);
            }
            incident.told.retain(|_, told| !told.to.is_empty());
        }
    }

    /// Goes on with rules that are others than those by which the book was kept, if they are: what happened up to a position of the log, and
    /// is over, is no news for them.
    pub fn take_rules(&mut self, until: u64, now: Timestamp) {
        if let Some(former) = &mut self.former {
            (former.until, self.ruled_at) = (Some(until), now);
            self.next = None;
        }
    }

    /// Whether nothing is told yet, since it is not known yet what is over.
    fn catches_up(&self) -> bool {
        self.former.as_ref().is_some_and(|former| former.until.is_none_or(|until| self.cursor < until))
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
            rules: self.former.as_ref().map_or_else(|| key_of(&self.rules), |former| former.key.clone()),
            ruled_at: self.ruled_at,
            accepted: self.accepted.clone(),
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
        let now = now.max(self.clock);
        self.outbox.iter().find(|notice| notice.channel == channel && notice.due <= now)
    }

    /// Forgets a notice that was accepted, or refused for good.
    pub fn settle(&mut self, key: &str) {
        let before = self.outbox.len();
        self.outbox.retain(|notice| notice.key != key);
        self.version += u64::from(self.outbox.len() != before);
    }

    /// Notes that a channel has accepted a notice. It is stored with the next change of what waits.
    pub fn accept(&mut self, channel: &str, now: Timestamp) {
        self.accepted.insert(channel.to_owned(), now);
    }

    /// When a channel last accepted a notice, by whatever process it was sent.
    #[must_use]
    pub fn accepted_at(&self, channel: &str) -> Option<Timestamp> {
        self.accepted.get(channel).copied()
    }

    /// The backfills that are not done, as far as is known.
    pub fn backfills(&self) -> impl Iterator<Item = &BackfillId> {
        self.backfills.keys()
    }

    /// Takes the notices that were given up because too many waited for their channel.
    pub fn take_given_up(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.given_up)
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
        self.set_clock(record.at);
        if self.next_due().is_some_and(|next| next <= self.clock) {
            self.tell_due();
        }
        self.cursor = record.seq;
        for signal in signals(record) {
            self.enter(signal, record.seq, directory);
        }
    }

    /// Tells what is due by a moment.
    pub fn advance(&mut self, now: Timestamp) {
        self.set_clock(now);
        if self.former.is_some() && !self.catches_up() {
            self.former = None;
            self.version += 1;
            let past = |incident: &Incident| incident.forgotten_at().is_some_and(|at| at <= self.clock);
            let past: Vec<Cause> =
                self.incidents.iter().filter(|(_, one)| past(one)).map(|(cause, _)| cause.clone()).collect();
            past.iter().for_each(|cause| self.forget(cause));
        }
        self.tell_due();
    }

    fn tell_due(&mut self) {
        if self.catches_up() {
            return;
        }
        while let Some((due, what)) = self.earliest().filter(|(due, _)| *due <= self.clock) {
            match what {
                Timer::Tell(cause, rule, phase, number) => self.tell(&cause, rule, (phase, number), due),
                Timer::Forget(cause) => self.forget(&cause),
            }
        }
        self.next = None;
    }

    /// Sets the clock to a moment. It goes back only if it was clearly ahead, and then with all that was noted by it: otherwise nothing would
    /// be told until that time has come.
    fn set_clock(&mut self, at: Timestamp) {
        if self.clock.duration_since(at) <= AHEAD {
            self.clock = self.clock.max(at);
            return;
        }
        (self.clock, self.ruled_at, self.next) = (at, self.ruled_at.min(at), None);
        self.version += 1;
        self.incidents.values_mut().for_each(|incident| incident.set_back(at));
        self.outbox.iter_mut().for_each(|notice| notice.due = notice.due.min(at));
        self.sighted.values_mut().for_each(|sighted| *sighted = at.min(*sighted));
    }

    /// Enters what a look at the process found at a moment.
    pub fn observe(&mut self, found: &Observation, now: Timestamp) {
        self.advance(now);
        let present: BTreeSet<Cause> = found.troubles.iter().map(|one| (one.condition, one.cause.clone())).collect();
        let of_looks = |cause: &&Cause| cause.0.is_observed() && !cause.0.is_moment() && !present.contains(*cause);
        let missing: Vec<Cause> = self.incidents.keys().filter(of_looks).cloned().collect();
        for cause in missing {
            let is_known = found.well.contains(&cause) || found.knows.contains(&cause.0);
            if is_known || self.is_out_of_sight(&cause) {
                self.close(&cause);
            }
        }
        for Trouble { condition, cause, members, concerns, more, words } in found.troubles.iter().cloned() {
            let (seq, now) = (self.cursor, self.clock);
            let cause = (condition, cause);
            self.unseen.remove(&cause);
            if condition.fades() {
                self.sighted.insert(cause.clone(), now);
            }
            let incident = self.incidents.entry(cause).or_insert_with_key(|cause| Incident::new(cause, seq, now));
            (incident.words, incident.more) = (words, more);
            incident.set_members(members, seq, now, &self.rules);
            concerns.into_iter().for_each(|about| incident.concern(about, now, &self.rules));
        }
        self.next = None;
    }

    /// Whether no look has named something for long enough.
    fn is_out_of_sight(&mut self, cause: &Cause) -> bool {
        let clock = self.clock;
        cause.0.fades() && clock.duration_since(*self.sighted.entry(cause.clone()).or_insert(clock)) >= OUT_OF_SIGHT
    }

    /// Tells that a backfill is done, with what came of it.
    pub fn finish(&mut self, backfill: &BackfillId, words: String, now: Timestamp) {
        let Some(RunningBackfill { seq, about }) = self.backfills.remove(backfill) else { return };
        self.set_clock(now);
        let cause = (Condition::Backfill, backfill.to_string());
        self.begin(cause, backfill.to_string(), about, (words, None), seq);
    }

    fn enter(&mut self, signal: Signal, seq: u64, directory: &dyn Directory) {
        let Signal { workflow, change } = signal;
        let about = || workflow.as_ref().map(|workflow| directory.about(workflow)).unwrap_or_default();
        match change {
            Change::Began { condition: Condition::Failed | Condition::Late, .. }
                if workflow.as_ref().is_some_and(|workflow| !directory.is_defined(workflow)) => {}
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
                let workflow = workflow.or_else(|| directory.workflow_of(&id));
                let about = workflow.map(|workflow| directory.about(&workflow)).unwrap_or_default();
                self.backfills.insert(id, RunningBackfill { seq, about });
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
        incident.add(member, about, seq, &self.rules);
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

    /// Ends what does not last any more, though no event said so.
    pub fn end_unless(&mut self, lasts: impl Fn(Condition, &str) -> bool) {
        let is_over = |(condition, member): &&(Condition, String)| !condition.is_moment() && !lasts(*condition, member);
        let over: Vec<(Condition, String)> = self.causes.keys().filter(is_over).cloned().collect();
        over.iter().for_each(|(condition, member)| self.end(*condition, member));
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
        self.sighted.remove(cause);
        self.next = None;
        for (name, told) in &incident.told {
            let rule = self.rules.iter().find(|rule| rule.name == *name);
            let due = rule.map_or(self.clock, |rule| rule.awake(self.clock));
            let about = rule.and_then(|rule| incident.concern_of(rule)).or(incident.concerns.first());
            let about = about.map(|one| one.about.clone()).unwrap_or_default();
            let named = |channel: &&String| self.rules.iter().any(|rule| rule.to.contains(channel));
            let to: Vec<String> = told.to.iter().filter(named).cloned().collect();
            for channel in &to {
                self.post(Notice::of(&incident, about.clone(), (name, channel), (Phase::Over, incident.opened), due));
            }
        }
    }

    fn forget(&mut self, cause: &Cause) {
        if let Some(incident) = self.incidents.remove(cause) {
            incident.members.into_keys().for_each(|member| drop(self.causes.remove(&(cause.0, member))));
        }
    }

    fn tell(&mut self, cause: &Cause, rule: usize, phase: (Phase, u64), due: Timestamp) {
        let (Some(incident), Some(rule)) = (self.incidents.get_mut(cause), self.rules.get(rule)) else { return };
        let mut to: BTreeSet<String> = rule.to.iter().cloned().collect();
        let before = incident.told.remove(&rule.name);
        let (count, mut news, mut heard) =
            (before.as_ref().map_or(0, |told| told.count) + 1, incident.news.0, to.clone());
        if let Some(before) = before {
            if phase.0 == Phase::Opened {
                // Channels that are new to the rule: the others have heard of it, and of nothing that came since.
                to.retain(|channel| !before.to.contains(channel));
                news = before.news;
            }
            heard.extend(before.to);
        }
        incident.told.insert(rule.name.clone(), RuleReport { at: due, news, count, to: heard });
        let about = incident.concern_of(rule).map(|one| one.about.clone()).unwrap_or_default();
        let notices: Vec<Notice> =
            to.iter().map(|channel| Notice::of(incident, about.clone(), (&rule.name, channel), phase, due)).collect();
        notices.into_iter().for_each(|notice| self.post(notice));
    }

    fn post(&mut self, notice: Notice) {
        self.version += 1;
        self.outbox.retain(|one| {
            !(one.phase.is_superseded() && one.incident == notice.incident && one.channel == notice.channel)
        });
        if self.waiting(&notice.channel).count() >= MOST_WAITING
            && let Some(oldest) = self.outbox.iter().position(|one| one.channel == notice.channel)
        {
            let oldest = self.outbox.remove(oldest);
            self.given_up.push(oldest);
        }
        self.outbox.push(notice);
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
                if let Some((due, phase, count)) = incident.next(rule, self.ruled_at) {
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

/// The key of rules, which others have not.
fn key_of(rules: &[Rule]) -> String {
    key(&[&format!("{rules:?}")])
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
