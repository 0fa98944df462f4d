//! Turns, held against their digests and against each other.

use kelos_model::history::RemovedHistory;
use kelos_store::{Digest, Page, PageRequest, Queries, StoreError, TurnRecord};

use super::{AT_ONCE, Disagreement, read};

/// A chain on the way through its turns.
pub(super) struct Chain<'a> {
    reader: &'a dyn Queries,
    /// The last turn that is verified.
    last: u64,
    limit: usize,
    /// The part of the history that was removed: what is left of it is not verified.
    removed: RemovedHistory,
    result: ChainResult,
}

/// The result of a chain.
#[derive(Default)]
pub(super) struct ChainResult {
    /// The number of verified turns.
    pub(super) turns: u64,
    /// The number of their events.
    pub(super) events: u64,
    /// The first turn at which it breaks.
    pub(super) broken_at: Option<u64>,
    /// The disagreements.
    pub(super) disagreements: Vec<Disagreement>,
}

impl<'a> Chain<'a> {
    /// Verifies all turns up to one.
    pub(super) fn verify(reader: &'a dyn Queries, last: u64, limit: usize) -> Result<ChainResult, StoreError> {
        let mut chain =
            Chain { reader, last, limit, removed: reader.removed_history()?, result: ChainResult::default() };
        chain.turns()?;
        Ok(chain.result)
    }

    /// Verifies the last turns only, so many of them: the digest of the one before them is taken for right.
    pub(super) fn verify_newest(
        reader: &'a dyn Queries,
        count: usize,
        limit: usize,
    ) -> Result<ChainResult, StoreError> {
        let (removed, result) = (reader.removed_history()?, ChainResult::default());
        let mut chain = Chain { reader, last: u64::MAX, limit, removed, result };
        let mut rows = match read(reader.turns(PageRequest::newest(count.saturating_add(1))))? {
            Ok(page) => page.rows,
            Err(what) => {
                chain.breaks(Disagreement { what, ..Disagreement::default() }, 1);
                return Ok(chain.result);
            }
        };
        let mut before = if rows.len() > count { rows.pop() } else { None };
        for turn in rows.into_iter().rev() {
            chain.turn(&turn, before.as_ref())?;
            before = Some(turn);
        }
        Ok(chain.result)
    }

    fn turns(&mut self) -> Result<(), StoreError> {
        let mut before: Option<TurnRecord> = None;
        let mut from = None;
        loop {
            let page = read(self.reader.turns(PageRequest::oldest(AT_ONCE).after(from.as_deref())))?;
            let Page { rows, next } = match page {
                Ok(page) => page,
                Err(what) => {
                    let next = before.map_or(1, |before| before.turn + 1);
                    self.breaks(Disagreement { what, ..Disagreement::default() }, next);
                    return Ok(());
                }
            };
            let last = self.last;
            for turn in rows.into_iter().take_while(|turn| turn.turn <= last) {
                self.turn(&turn, before.as_ref())?;
                before = Some(turn);
            }
            from = next.filter(|_| before.is_some_and(|before| before.turn < self.last));
            if from.is_none() {
                return Ok(());
            }
        }
    }

    fn turn(&mut self, turn: &TurnRecord, before: Option<&TurnRecord>) -> Result<(), StoreError> {
        if turn.turn <= self.removed.turn {
            return Ok(());
        }
        self.result.turns += 1;
        self.result.events = self.result.events.saturating_add(turn.events);
        let at = |what: String| Disagreement { turn: Some(turn.turn), what, ..Disagreement::default() };
        if !turn.follows(before) {
            let next = before.map_or(1, |before| before.turn + 1);
            self.breaks(at(out_of_order(turn, before)), next.min(turn.turn));
        }
        let digest = before.map_or_else(Digest::default, |before| before.digest);
        match read(self.reader.recount(turn, &digest))? {
            Err(what) => self.breaks(at(what), turn.turn),
            Ok(counted) => match counted.missing {
                Some(event) => {
                    let missing = Disagreement { event: Some(event), ..at("it is missing".to_owned()) };
                    self.breaks(missing, turn.turn);
                }
                None if counted.digest != turn.digest => self.breaks(at(changed(turn)), turn.turn),
                None => {}
            },
        }
        Ok(())
    }

    fn breaks(&mut self, disagreement: Disagreement, turn: u64) {
        self.result.broken_at.get_or_insert(turn);
        if self.result.disagreements.len() < self.limit {
            self.result.disagreements.push(disagreement);
        }
    }
}

/// The reason for which a turn can't follow another one.
fn out_of_order(turn: &TurnRecord, before: Option<&TurnRecord>) -> String {
    let (number, last) = before.map_or((0, 0), |before| (before.turn, before.last_event()));
    if turn.turn != number + 1 && !turn.is_opening() {
        return match turn.turn - number {
            2 => format!("turn {} before it is missing", number + 1),
            _ => format!("turns {} to {} before it are missing", number + 1, turn.turn - 1),
        };
    }
    if turn.is_opening() && before.is_some() {
        return "it stands for all that was before, and is not the first".to_owned();
    }
    format!("it begins with event {}, and event {last} is the last one before it", turn.first_event)
}

fn changed(turn: &TurnRecord) -> String {
    match turn.events {
        0 => "it does not agree with its digest".to_owned(),
        1 => format!("it does not agree with its digest: event {} is not what it was", turn.first_event),
        _ => format!(
            "it does not agree with its digest: one of the events {} to {} is not what it was",
            turn.first_event,
            turn.last_event()
        ),
    }
}
