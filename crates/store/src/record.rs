//! The turn record: the row that each commit adds besides its events, so that one chain of digests covers the whole log.
//!
//! Every store computes the same digest of the same turns, because its input is defined here and nowhere else. The digest of a
//! turn is SHA-256 over
//!
//! 1. the 32 bytes of the digest of the turn before it, zeros before the first;
//! 2. the header: `turn, epoch, at, first_event, events, body`, each a number;
//! 3. for each event in its order: `seq, at, previous, workflow, kind, scheduled_at, key, body`, the columns in which a store keeps it.
//!    `kind` is the number of the kind of the slot's key, see `kind` in `cursor.rs`. Version 1 of the body, which is older than
//!    the kinds, omits it: the key of a moment is treated as that of a time, and the time of a job is 0.
//!
//! 4. the deletions of the turn, if any: the JSON of its [`Deletions`], a text. Such a turn has version 3 of the body.
//!
//! A number is the byte 1 and 8 bytes, the lowest first; a text is the byte 3, its length as 8 bytes and its UTF-8; an absent value is
//! the byte 0. Moments are milliseconds since 1970. A workflow is written by its name, never by a number that a store gave it. The
//! body of an event is its JSON: what happened, and its subject if no workflow is named.
//!
//! This never changes for a version of the body that was ever written: old digests must stay reproducible.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use kelos_model::history::Trim;
use kelos_model::{Event, EventRecord};
use sha2::{Digest as _, Sha256};

use crate::contract::Commit;
use crate::cursor::{beyond_time, kind, time};

/// The version of the body that is written today.
pub const BODY: u32 = 2;

/// The version of the body of a turn that deletes rows, and lists them after its events.
const BODY_WITH_DELETIONS: u32 = 3;

/// How many bytes are collected before they are hashed.
const GATHERED: usize = 4096;

/// The digest of a turn and of all turns before it.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads [`Digest::as_bytes`] back; none where there are more bytes, or fewer.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Digest> {
        bytes.try_into().ok().map(Digest)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The record of a turn, kept beside its events and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnRecord {
    /// The number of the turn: from 1, without gaps. An [opening record](TurnRecord::is_opening) may begin with a larger one.
    pub turn: u64,
    /// The epoch of the lease under which it was written; 0 in an opening record.
    pub epoch: u64,
    /// The moment of the turn.
    pub at: Timestamp,
    /// The position of its first event; that of the next event to come if it has none.
    pub first_event: u64,
    /// How many events it has.
    pub events: u64,
    /// The version of the body.
    pub body: u32,
    /// The digest of it and of all turns before it.
    pub digest: Digest,
}

impl TurnRecord {
    /// The number of columns of each of its events.
    #[must_use]
    pub fn event_columns(&self) -> usize {
        if self.body < BODY { 7 } else { 8 }
    }

    /// The position of the last event up to and including this turn; 0 if there is none.
    #[must_use]
    pub fn last_event(&self) -> u64 {
        self.first_event.saturating_add(self.events).saturating_sub(1)
    }

    /// Whether its body lists deletions.
    #[must_use]
    pub fn deletes(&self) -> bool {
        self.body >= BODY_WITH_DELETIONS
    }

    /// The record of a commit under an epoch, after a turn and the last event of the log. It has no digest yet.
    #[must_use]
    pub fn of_commit(before: Option<&TurnRecord>, last_event: u64, epoch: u64, commit: &Commit) -> TurnRecord {
        TurnRecord {
            turn: before.map_or(0, |before| before.turn) + 1,
            epoch,
            at: Timestamp::from_millisecond(commit.at.as_millisecond()).unwrap_or(commit.at),
            first_event: last_event + 1,
            events: commit.events.len() as u64,
            body: if Deletions::of(commit).is_empty() { BODY } else { BODY_WITH_DELETIONS },
            digest: Digest::default(),
        }
    }

    /// Whether it may be the next after another record, or the first.
    #[must_use]
    pub fn follows(&self, before: Option<&TurnRecord>) -> bool {
        match before {
            None => self.first_event == 1 && (self.turn == 1 || self.is_opening()),
            Some(before) => {
                let next = (before.turn.saturating_add(1), before.last_event().saturating_add(1));
                (self.turn, self.first_event) == next && !self.is_opening()
            }
        }
    }

    /// Whether it covers everything that was written before turns were recorded, or that people accepted after damage: the first record
    /// of a log, with all events up to then.
    #[must_use]
    pub fn is_opening(&self) -> bool {
        self.epoch == 0
    }
}

/// The rows that a turn deletes. Events say what happened; a store that is rebuilt from the bodies of turns must also know
/// which rows are gone, also if no event says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deletions {
    /// Registers, each by its bucket and its key, ascending.
    pub registers: Vec<(String, String)>,
    /// History: events, runs, and records of turns.
    pub history: Option<Trim>,
}

impl Deletions {
    /// The values that are deleted once all of a commit is written.
    pub fn of(commit: &Commit) -> Deletions {
        // If there are several values of one register, the last counts.
        let last: BTreeMap<_, _> =
            commit.registers.iter().map(|(bucket, key, value)| ((bucket, key), value.is_none())).collect();
        let deleted = last.into_iter().filter(|(_, is_deleted)| *is_deleted);
        let registers = deleted.map(|((bucket, key), _)| (bucket.clone(), key.clone())).collect();
        Deletions { registers, history: commit.trim.clone() }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Deletions { registers, history } = self;
        registers.is_empty() && history.is_none()
    }
}

/// The receiver of the columns of a turn's body, in the order in which they go into its digest: those of each event, then its deletions.
pub trait TurnColumns {
    /// A column without a value.
    fn nothing(&mut self);

    /// A number.
    fn number(&mut self, value: i64);

    /// A text, in UTF-8.
    fn text(&mut self, bytes: &[u8]);
}

/// The content of a turn's stored body, besides its columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnContent {
    /// The position of the first event of the turn that is missing.
    pub missing: Option<u64>,
    /// The deletions in its body.
    pub deletions: Deletions,
}

/// The digest of a turn, recomputed from its stored body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recount {
    /// The recomputed digest.
    pub digest: Digest,
    /// The position of the first event of the turn that is missing.
    pub missing: Option<u64>,
    /// The deletions in its body.
    pub deletions: Deletions,
}

/// An unfinished digest: the header is in it, the events are added one after the other.
pub struct DigestBuilder {
    turn: TurnRecord,
    hash: Sha256,
    gathered: Vec<u8>,
}

impl DigestBuilder {
    /// Begins the digest of a turn; the digest in its record is ignored.
    pub fn begin(before: &Digest, turn: TurnRecord) -> DigestBuilder {
        let mut hash = Sha256::new();
        hash.update(before.0);
        let mut digesting = DigestBuilder { turn, hash, gathered: Vec::with_capacity(2 * GATHERED) };
        let TurnRecord { turn, epoch, at, first_event, events, body, digest: _ } = turn;
        for number in [turn, epoch] {
            digesting.number(number.cast_signed());
        }
        digesting.number(at.as_millisecond());
        for number in [first_event, events, u64::from(body)] {
            digesting.number(number.cast_signed());
        }
        digesting
    }

    /// Begins the digest of a commit under an epoch, after a turn and the last event of the log.
    pub fn of_commit(before: Option<&TurnRecord>, last_event: u64, epoch: u64, commit: &Commit) -> DigestBuilder {
        let turn = TurnRecord::of_commit(before, last_event, epoch, commit);
        DigestBuilder::begin(&before.map_or_else(Digest::default, |before| before.digest), turn)
    }

    /// The number of the turn.
    pub fn turn(&self) -> u64 {
        self.turn.turn
    }

    fn add(&mut self, kind: u8, bytes: &[u8]) {
        self.gathered.push(kind);
        self.gathered.extend_from_slice(bytes);
    }

    /// The finished record, once all columns are added.
    pub fn end(mut self) -> TurnRecord {
        self.hash.update(&self.gathered);
        TurnRecord { digest: Digest(self.hash.finalize().into()), ..self.turn }
    }
}

impl TurnColumns for DigestBuilder {
    fn nothing(&mut self) {
        self.add(0, &[]);
    }

    fn number(&mut self, value: i64) {
        self.add(1, &value.to_le_bytes());
    }

    fn text(&mut self, bytes: &[u8]) {
        self.add(3, &(bytes.len() as u64).to_le_bytes());
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= GATHERED {
            self.hash.update(&self.gathered);
            self.gathered.clear();
        }
    }
}

/// Adds the columns of an event with its body.
pub fn add_event(columns: &mut (impl TurnColumns + ?Sized), record: &EventRecord, body: &str) {
    let (workflow, key) = match &record.event {
        Event::Slot { slot, .. } => (Some(slot.workflow.as_str()), Some(&slot.key)),
        Event::Workflow { workflow, .. } => (Some(workflow.as_str()), None),
        _ => (None, None),
    };
    columns.number(record.seq.cast_signed());
    columns.number(record.at.as_millisecond());
    columns.number(record.previous.cast_signed());
    add_text(columns, workflow);
    add_number(columns, key.map(kind));
    add_number(columns, key.and_then(time));
    add_text(columns, key.map(beyond_time).as_deref());
    add_text(columns, Some(body));
}

fn add_number(columns: &mut (impl TurnColumns + ?Sized), number: Option<i64>) {
    match number {
        Some(number) => columns.number(number),
        None => columns.nothing(),
    }
}

fn add_text(columns: &mut (impl TurnColumns + ?Sized), text: Option<&str>) {
    match text {
        Some(text) => columns.text(text.as_bytes()),
        None => columns.nothing(),
    }
}

#[cfg(test)]
mod tests {
    use kelos_model::{SlotEvent, SlotRef, WorkflowId};

    use super::*;

    fn moment(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    fn header(events: u64) -> TurnRecord {
        TurnRecord { turn: 2, epoch: 3, at: moment(-5), first_event: 7, events, body: BODY, digest: Digest::default() }
    }

    #[test]
    fn the_digest_of_a_turn_stays_what_it_is() {
        let slot = SlotRef::at(WorkflowId::new("ü").unwrap(), moment(60_000));
        let event = Event::Slot { slot, what: SlotEvent::BackoffEnded };
        let record = EventRecord { seq: 7, at: moment(9), previous: 4, event };
        let before = Digest([9; 32]);
        let mut digesting = DigestBuilder::begin(&before, header(1));
        add_event(&mut digesting, &record, "{}");
        let mut bytes = vec![9; 32];
        for number in [2, 3, -5, 7, 1, 2, 7, 9, 4] {
            bytes.push(1);
            bytes.extend(i64::to_le_bytes(number));
        }
        bytes.extend([3, 2, 0, 0, 0, 0, 0, 0, 0, 0xc3, 0xbc]);
        for number in [0, 60_000] {
            bytes.push(1);
            bytes.extend(i64::to_le_bytes(number));
        }
        bytes.extend([3, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([3, 2, 0, 0, 0, 0, 0, 0, 0, b'{', b'}']);
        let expected: [u8; 32] = Sha256::digest(&bytes).into();
        let ended = digesting.end();
        assert_eq!(ended, TurnRecord { digest: Digest(expected), ..header(1) });
        assert_eq!(ended.last_event(), 7);
    }

    #[test]
    fn long_events_go_in_as_short_ones_do() {
        let long = "x".repeat(3 * GATHERED);
        let mut digesting = DigestBuilder::begin(&Digest::default(), header(0));
        let empty = DigestBuilder::begin(&Digest::default(), header(0)).gathered;
        digesting.text(long.as_bytes());
        digesting.number(1);
        let mut bytes = vec![0; 32];
        bytes.extend(empty);
        bytes.push(3);
        bytes.extend((long.len() as u64).to_le_bytes());
        bytes.extend(long.as_bytes());
        bytes.extend([1, 1, 0, 0, 0, 0, 0, 0, 0]);
        let expected: [u8; 32] = Sha256::digest(&bytes).into();
        assert_eq!(digesting.end().digest, Digest(expected));
    }

    #[test]
    fn a_digest_is_shown_in_full() {
        let digest = Digest::from_bytes(&[0xab; 32]).unwrap();
        assert_eq!(digest.to_string(), "ab".repeat(32));
        assert_eq!(Digest::from_bytes(digest.as_bytes()), Some(digest));
        assert_eq!(Digest::from_bytes(&[1; 31]), None);
    }
}
