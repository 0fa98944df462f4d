//! Times in which the store refused turns, as this process remembers them: they are in no event, since none could be written.

use jiff::{SignedDuration, Timestamp};
use kelos_engine::Status;
use kelos_model::time::{format_short, text};

use crate::book::Trouble;
use crate::condition::Condition;
use crate::rule::About;

/// Shorter ones are no news.
const LEAST: SignedDuration = SignedDuration::from_mins(1);

/// A time in which a leader could write no turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lapse {
    since: Timestamp,
    /// The reason, which completes "failed to …".
    reason: String,
    /// When it led again.
    pub(super) ended: Option<Timestamp>,
}

impl Lapse {
    /// The lapse that begins when an engine that led does not any more; none where it is not the store that fails.
    pub(super) fn of(status: &Status, now: Timestamp) -> Option<Lapse> {
        match status {
            Status::Troubled { reason } | Status::Damaged { reason } => {
                Some(Lapse { since: now, reason: reason.clone(), ended: None })
            }
            _ => None,
        }
    }

    /// The news of it once it has ended; none if it was too short.
    pub(super) fn trouble(self) -> Option<Trouble> {
        let ended = self.ended.filter(|ended| ended.duration_since(self.since) >= LEAST)?;
        let (since, took) = (format_short(self.since), text::took(self.since, ended));
        let words = format!("no turns could be written for {took} from {since} on: failed to {}", self.reason);
        Some(Trouble::new(Condition::Leader, format!("the store at {since}"), About::default(), words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_without_turns_is_told_once_it_is_over() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let full = Status::Troubled { reason: "write a turn: the disk is full".to_owned() };
        let ended = |second| Lapse { ended: Some(at(second)), ..Lapse::of(&full, at(0)).unwrap() }.trouble();
        assert_eq!(Lapse::of(&Status::Standby, at(0)), None);
        assert_eq!(Lapse::of(&full, at(0)).unwrap().trouble(), None);
        assert_eq!(ended(59), None);
        assert_eq!(
            ended(300).unwrap().words,
            "no turns could be written for 5 min from 1970-01-01T00:00Z on: failed to write a turn: the disk is full"
        );
    }
}
