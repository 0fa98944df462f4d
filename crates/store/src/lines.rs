//! Turns as JSON values of what goes into their digests: the form of `kelos export log` and of archived history, documented in
//! `docs/audit.md`.

use serde_json::{Value, json};

use crate::contract::StoreError;
use crate::queries::Queries;
use crate::record::{Digest, TurnColumns, TurnContent, TurnRecord};

/// A turn whose lines can't be written. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The turn is not whole.
    #[error("export turn {turn}: {why}")]
    Damaged {
        /// The turn.
        turn: u64,
        /// The damage.
        why: String,
    },
}

/// The lines of one turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnLines {
    /// The line of its record.
    pub record: Value,
    /// The columns of each event, as they are stored.
    pub events: Vec<Vec<Value>>,
    /// The text of its deletions, if it has any.
    pub deletions: Option<Value>,
}

/// The first line of all: the digest before the first turn.
#[must_use]
pub fn before_line(digest: &Digest) -> Value {
    json!({ "before": digest.to_string() })
}

impl TurnLines {
    /// Reads the lines of a turn.
    ///
    /// # Errors
    /// When the store can't be read, or an event is missing.
    pub fn read(reader: &dyn Queries, turn: &TurnRecord) -> Result<TurnLines, LinesError> {
        let mut columns = ColumnsOfTurn { of_an_event: turn.event_columns(), most: turn.events, ..Default::default() };
        let TurnContent { missing, .. } = reader.turn_body(turn, &mut columns)?;
        let fail = |why: String| Err(LinesError::Damaged { turn: turn.turn, why });
        match (missing, columns.unreadable) {
            (Some(event), _) => fail(format!("event {event} is missing")),
            (None, Some(why)) => fail(why),
            (None, None) => {
                Ok(TurnLines { record: record(turn), events: columns.events, deletions: columns.deletions })
            }
        }
    }

    /// All of its lines, in their order.
    pub fn all(self) -> impl Iterator<Item = Value> {
        let events = self.events.into_iter().map(|event| json!({ "event": event }));
        let deletions = self.deletions.map(|deletions| json!({ "deletions": deletions }));
        std::iter::once(self.record).chain(events).chain(deletions)
    }
}

fn record(turn: &TurnRecord) -> Value {
    let TurnRecord { turn, epoch, at, first_event, events, body, digest } = turn;
    json!({
        "turn": turn,
        "epoch": epoch,
        "at": at.as_millisecond(),
        "firstEvent": first_event,
        "events": events,
        "body": body,
        "digest": Digest::to_string(digest),
    })
}

/// The columns of a turn's body, an event at a time.
#[derive(Default)]
struct ColumnsOfTurn {
    of_an_event: usize,
    most: u64,
    events: Vec<Vec<Value>>,
    deletions: Option<Value>,
    /// The reason for which a column can't be written.
    unreadable: Option<String>,
}

impl ColumnsOfTurn {
    fn add(&mut self, value: Value) {
        let begun = self.events.len() as u64;
        match self.events.last_mut() {
            Some(event) if event.len() < self.of_an_event => event.push(value),
            _ if begun < self.most => self.events.push(vec![value]),
            _ => self.deletions = Some(value),
        }
    }
}

impl TurnColumns for ColumnsOfTurn {
    fn nothing(&mut self) {
        self.add(Value::Null);
    }

    fn number(&mut self, value: i64) {
        self.add(value.into());
    }

    fn text(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.add(text.into()),
            Err(error) => self.unreadable = Some(format!("a text in it is not UTF-8: {error}")),
        }
    }
}
