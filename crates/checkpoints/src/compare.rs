//! A verified log, held against checkpoints.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use kelos_model::time::format_full;
use kelos_store::{Digest, PageRequest, Queries, StoreError, TurnRecord};

use crate::checkpoint::Checkpoint;
use crate::collection::Collection;
use crate::key::PublicKey;

/// A log whose chain was verified, as far as checkpoints need it.
#[derive(Debug, Default)]
pub struct CheckedLog {
    /// Its first turn.
    first: Option<TurnRecord>,
    /// Its last turn.
    last: Option<TurnRecord>,
    /// The digests of the turns that have a checkpoint.
    digests: BTreeMap<u64, Digest>,
    /// The turn up to which records of turns were removed; 0 if none were.
    removed: u64,
    /// The first turn that the chain itself shows not to be what it was.
    broken_at: Option<u64>,
}

impl CheckedLog {
    /// Reads what checkpoints need of a log that was verified, and whose chain breaks at a turn, if it does.
    ///
    /// # Errors
    /// When the medium fails. Damaged turns are left out.
    pub fn read(
        reader: &dyn Queries,
        collection: &Collection,
        broken_at: Option<u64>,
    ) -> Result<CheckedLog, StoreError> {
        let end = |paging: PageRequest<'_>| readable(reader.turns(paging).map(|page| page.rows.into_iter().next()));
        let (first, last) = (end(PageRequest::oldest(1))?, end(PageRequest::newest(1))?);
        let mut digests = BTreeMap::new();
        for (_, checkpoint) in &collection.checkpoints {
            let found = readable(turn_of(reader, checkpoint.turn))?;
            digests.extend(found.map(|turn| (turn.turn, turn.digest)));
        }
        Ok(CheckedLog { first, last, digests, removed: reader.removed_history()?.turn, broken_at })
    }
}

/// The record that was read; none if it is damaged, which verification has named.
fn readable(read: Result<Option<TurnRecord>, StoreError>) -> Result<Option<TurnRecord>, StoreError> {
    match read {
        Err(StoreError::Corrupt { .. }) => Ok(None),
        read => read,
    }
}

/// The record of a turn.
pub(crate) fn turn_of(reader: &dyn Queries, turn: u64) -> Result<Option<TurnRecord>, StoreError> {
    let before = turn.saturating_sub(1).to_string();
    let paging = PageRequest::oldest(1);
    let page = reader.turns(if turn > 1 { paging.after(Some(&before)) } else { paging })?;
    Ok(page.rows.into_iter().next().filter(|found| found.turn == turn))
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub struct Comparison {
    /// The number of checkpoints that hold, and whose history does.
    pub holding: usize,
    /// The newest of them.
    pub newest: Option<Checkpoint>,
    /// The contradictions, in the order of their turns.
    pub contradictions: Vec<Contradiction>,
    /// The number of turns after the newest checkpoint that holds: only the chain protects them.
    pub after: u64,
    /// The names of other instances whose checkpoints are in the same place, and that are left out.
    pub others: Vec<String>,
}

/// Something that can't be, unless somebody changed the log or the checkpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contradiction {
    /// None is signed with the expected key.
    NoneOfKey,
    /// Something in the place of a checkpoint is none.
    Unreadable {
        /// The place of it.
        name: String,
        /// The reason for which it is none.
        why: String,
    },
    /// A checkpoint is signed with another key than expected.
    OtherKey {
        /// The place of it.
        name: String,
        /// Its turn.
        turn: u64,
        /// The key.
        key: PublicKey,
    },
    /// Two checkpoints of one turn have different digests.
    Disputed {
        /// The turn.
        turn: u64,
        /// The places of both.
        names: [String; 2],
    },
    /// The log has another digest for the turn of a checkpoint.
    Replaced {
        /// The turn.
        turn: u64,
        /// When the checkpoint was signed.
        signed: Timestamp,
        /// The turn of the newest checkpoint before it that holds.
        held: Option<u64>,
        /// How many later checkpoints are contradicted, too.
        more: usize,
    },
    /// The log ends before the turn of a checkpoint.
    Cut {
        /// The last turn of the log.
        last: u64,
        /// The turn of the newest checkpoint.
        turn: u64,
        /// When that was signed.
        signed: Timestamp,
    },
    /// The log begins after the turns of checkpoints: they were taken together when damage was accepted.
    Accepted {
        /// The first turn of the log.
        first: u64,
        /// The turn of the newest checkpoint before it.
        turn: u64,
    },
}

/// Holds a log against checkpoints, which must be signed with one of these keys.
#[must_use]
pub fn compare(collection: &Collection, keys: &[PublicKey], log: &CheckedLog) -> Comparison {
    let mut comparison = Comparison::default();
    let unreadable = collection.unreadable.iter();
    let unreadable =
        unreadable.map(|(name, why)| Contradiction::Unreadable { name: name.clone(), why: why.to_string() });
    comparison.contradictions.extend(unreadable);
    let (ours, foreign): (Vec<_>, Vec<_>) =
        collection.checkpoints.iter().partition(|(_, checkpoint)| keys.contains(&checkpoint.key));
    if ours.is_empty() {
        comparison.contradictions.push(Contradiction::NoneOfKey);
    }
    for (name, checkpoint) in foreign {
        let Checkpoint { instance, turn, key, .. } = checkpoint;
        if ours.is_empty() || ours.iter().any(|(_, one)| one.instance == *instance) {
            comparison.contradictions.push(Contradiction::OtherKey { name: name.clone(), turn: *turn, key: *key });
        } else if !comparison.others.contains(instance) {
            comparison.others.push(instance.clone());
        }
    }
    comparison.against(&ours, log);
    let last = log.last.map_or(0, |last| last.turn);
    comparison.after = last.saturating_sub(comparison.newest.as_ref().map_or(0, |newest| newest.turn));
    comparison
}

impl Comparison {
    /// Holds a log against genuine checkpoints, in the order of their turns.
    fn against(&mut self, ours: &[&(String, Checkpoint)], log: &CheckedLog) {
        let (first, last) = (log.first.map_or(1, |first| first.turn), log.last.map_or(0, |last| last.turn));
        let is_before = |turn: u64| log.first.is_some_and(|first| first.is_opening()) && turn < first;
        let (mut replaced, mut cut, mut accepted) = (Vec::new(), None, None);
        for (at, (name, checkpoint)) in ours.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| ours.get(before));
            if let Some((other, _)) =
                before.filter(|(_, one)| one.turn == checkpoint.turn && one.digest != checkpoint.digest)
            {
                let names = [other.clone(), name.clone()];
                self.contradictions.push(Contradiction::Disputed { turn: checkpoint.turn, names });
            }
            let is_removed = checkpoint.turn < log.removed && !log.digests.contains_key(&checkpoint.turn);
            if is_removed {
                // Newer ones vouch for what is left.
                continue;
            }
            if is_before(checkpoint.turn) {
                accepted = Some(checkpoint.turn);
            } else if checkpoint.turn > last {
                cut = Some(checkpoint);
            } else if log.digests.get(&checkpoint.turn) == Some(&checkpoint.digest) {
                if log.broken_at.is_none_or(|broken| checkpoint.turn < broken) {
                    self.holding += 1;
                    self.newest = Some(checkpoint.clone());
                }
            } else if log.digests.contains_key(&checkpoint.turn) || log.broken_at.is_none() {
                replaced.push(checkpoint);
            }
        }
        self.contradictions.extend(accepted.map(|turn| Contradiction::Accepted { first, turn }));
        if let Some(one) = replaced.first() {
            let held = ours.iter().map(|(_, checkpoint)| checkpoint.turn);
            let is_held =
                |turn: &u64| *turn < one.turn && !is_before(*turn) && log.broken_at.is_none_or(|broken| *turn < broken);
            let (held, more) = (held.filter(is_held).max(), replaced.len() - 1);
            self.contradictions.push(Contradiction::Replaced { turn: one.turn, signed: one.at, held, more });
        }
        let cut = cut.map(|one| Contradiction::Cut { last, turn: one.turn, signed: one.at });
        self.contradictions.extend(cut);
    }
}

impl Contradiction {
    /// A stable name of its kind, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Contradiction::NoneOfKey => "no-checkpoint",
            Contradiction::Unreadable { .. } => "no-signature",
            Contradiction::OtherKey { .. } => "other-key",
            Contradiction::Disputed { .. } => "checkpoints-disagree",
            Contradiction::Replaced { .. } => "history-replaced",
            Contradiction::Cut { .. } => "tail-cut",
            Contradiction::Accepted { .. } => "turns-merged",
        }
    }

    /// The turn that it is about.
    #[must_use]
    pub fn turn(&self) -> Option<u64> {
        match self {
            Contradiction::NoneOfKey | Contradiction::Unreadable { .. } => None,
            Contradiction::OtherKey { turn, .. }
            | Contradiction::Disputed { turn, .. }
            | Contradiction::Replaced { turn, .. }
            | Contradiction::Cut { turn, .. }
            | Contradiction::Accepted { turn, .. } => Some(*turn),
        }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contradiction::NoneOfKey => f.write_str("no checkpoint there is signed with the expected key"),
            Contradiction::Unreadable { name, why } => write!(f, "{name} is no checkpoint: {why}"),
            Contradiction::OtherKey { name, turn, key } => {
                write!(f, "{name} is a checkpoint of turn {turn} that is signed with another key, {key}")
            }
            Contradiction::Disputed { turn, names: [one, other] } => {
                write!(f, "two checkpoints of turn {turn} have different digests: {one} and {other}")
            }
            Contradiction::Replaced { turn, signed, held, more } => {
                let at = format_full(*signed);
                write!(f, "turn {turn} has another digest than the checkpoint of {at}: ")?;
                match held {
                    Some(held) => write!(
                        f,
                        "the history was replaced at or before turn {turn}; the newest checkpoint before it that still holds is of turn {held}"
                    )?,
                    None => write!(
                        f,
                        "the history was replaced at or before turn {turn}, and no checkpoint before it holds"
                    )?,
                }
                match more {
                    0 => Ok(()),
                    1 => f.write_str("; 1 later checkpoint does not hold either"),
                    more => write!(f, "; {more} later checkpoints do not hold either"),
                }
            }
            Contradiction::Cut { last, turn, signed } => {
                let at = format_full(*signed);
                write!(
                    f,
                    "the log ends at turn {last}, but the checkpoint of turn {turn} was signed at {at}: its tail was cut off, or an older copy restored"
                )
            }
            Contradiction::Accepted { first, turn } => write!(
                f,
                "the turns up to {first} were merged into one by `kelos verify --accept`: checkpoints up to turn {turn} can't be compared"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::PrivateKey;

    fn key(seed: u8) -> PrivateKey {
        PrivateKey::of_seed([seed; 32])
    }

    fn turn(turn: u64, digest: u8) -> TurnRecord {
        let digest = Digest::from_bytes(&[digest; 32]).unwrap();
        TurnRecord { turn, epoch: 1, at: Timestamp::UNIX_EPOCH, first_event: 1, events: 0, body: 2, digest }
    }

    fn signed(seed: u8, instance: &str, number: u64, digest: u8) -> (String, Checkpoint) {
        let at = Timestamp::from_second(i64::try_from(number).unwrap()).unwrap();
        (format!("c{number}"), Checkpoint::sign(&key(seed), instance, &turn(number, digest), at))
    }

    fn log(last: u64, digests: &[(u64, u8)]) -> CheckedLog {
        let digests = digests.iter().map(|(number, digest)| (*number, turn(*number, *digest).digest)).collect();
        CheckedLog { first: Some(turn(1, 1)), last: Some(turn(last, 0)), digests, removed: 0, broken_at: None }
    }

    fn compared(checkpoints: Vec<(String, Checkpoint)>, log: &CheckedLog) -> (usize, Option<u64>, u64, Vec<String>) {
        let collection = Collection { checkpoints, unreadable: Vec::new() };
        let found = compare(&collection, &[key(7).public()], log);
        let words = found.contradictions.iter().map(ToString::to_string).collect();
        (found.holding, found.newest.map(|newest| newest.turn), found.after, words)
    }

    #[test]
    fn a_log_that_is_what_it_was_holds() {
        let checkpoints = vec![signed(7, "a", 2, 2), signed(7, "a", 5, 5), signed(9, "other", 3, 1)];
        assert_eq!(compared(checkpoints, &log(8, &[(2, 2), (5, 5)])), (2, Some(5), 3, Vec::new()));
    }

    #[test]
    fn checkpoints_of_removed_turns_are_left_to_newer_ones() {
        let trimmed = CheckedLog { removed: 5, ..log(8, &[(5, 5), (7, 7)]) };
        let checkpoints = vec![signed(7, "a", 2, 2), signed(7, "a", 5, 5), signed(7, "a", 7, 7)];
        assert_eq!(compared(checkpoints, &trimmed), (2, Some(7), 1, Vec::new()));
        assert!(!compared(vec![signed(7, "a", 5, 4)], &trimmed).3.is_empty(), "the turn that is left has a digest");
    }

    #[test]
    fn a_replaced_history_lies_between_two_checkpoints() {
        let checkpoints = vec![signed(7, "a", 2, 2), signed(7, "a", 5, 5), signed(7, "a", 7, 7)];
        let words = "turn 5 has another digest than the checkpoint of 1970-01-01T00:00:05.000Z: the history was replaced at or before turn 5; \
            the newest checkpoint before it that still holds is of turn 2; 1 later checkpoint does not hold either";
        assert_eq!(compared(checkpoints, &log(8, &[(2, 2), (5, 4), (7, 6)])), (1, Some(2), 6, vec![words.to_owned()]));
        let words = "turn 2 has another digest than the checkpoint of 1970-01-01T00:00:02.000Z: the history was replaced at or before turn 2, \
            and no checkpoint before it holds";
        assert_eq!(compared(vec![signed(7, "a", 2, 2)], &log(2, &[(2, 3)])), (0, None, 2, vec![words.to_owned()]));
    }

    #[test]
    fn a_cut_tail_is_told_from_a_replaced_history() {
        let words = "the log ends at turn 4, but the checkpoint of turn 5 was signed at 1970-01-01T00:00:05.000Z: \
            its tail was cut off, or an older copy restored";
        let checkpoints = vec![signed(7, "a", 2, 2), signed(7, "a", 5, 5)];
        assert_eq!(compared(checkpoints, &log(4, &[(2, 2)])), (1, Some(2), 2, vec![words.to_owned()]));
    }

    #[test]
    fn a_broken_chain_leaves_only_the_checkpoints_before_it() {
        let broken = CheckedLog { broken_at: Some(4), ..log(6, &[(2, 2), (5, 5)]) };
        assert_eq!(compared(vec![signed(7, "a", 2, 2), signed(7, "a", 5, 5)], &broken), (1, Some(2), 4, Vec::new()));
    }

    #[test]
    fn other_keys_and_disputes_are_named() {
        let other = key(9).public();
        let checkpoints = vec![signed(7, "a", 2, 2), signed(9, "a", 5, 4)];
        let words = format!("c5 is a checkpoint of turn 5 that is signed with another key, {other}");
        assert_eq!(compared(checkpoints, &log(8, &[(2, 2), (5, 4)])), (1, Some(2), 6, vec![words.clone()]));
        let none = "no checkpoint there is signed with the expected key".to_owned();
        assert_eq!(compared(vec![signed(9, "b", 5, 4)], &log(8, &[(5, 4)])), (0, None, 8, vec![none, words]));
        let two = compared(vec![signed(7, "a", 2, 2), signed(7, "a", 2, 3)], &log(2, &[(2, 3)])).3;
        assert_eq!(two.first().unwrap(), "two checkpoints of turn 2 have different digests: c2 and c2");
    }

    #[test]
    fn turns_that_were_merged_can_not_be_compared() {
        let opening = CheckedLog { first: Some(TurnRecord { epoch: 0, ..turn(4, 9) }), ..log(6, &[(5, 5)]) };
        let words = "the turns up to 4 were merged into one by `kelos verify --accept`: checkpoints up to turn 3 can't be compared";
        let checkpoints = vec![signed(7, "a", 3, 3), signed(7, "a", 5, 5)];
        assert_eq!(compared(checkpoints, &opening), (1, Some(5), 1, vec![words.to_owned()]));
    }
}
