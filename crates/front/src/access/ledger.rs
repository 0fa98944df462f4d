//! The latest entries of the record of access, so that an attacker who tries for hours does not fill the log.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kelos_model::{AccessEvent, Actor};

/// The same event of the same actor is put on record so often at most, with the number of times since.
const EVERY: SignedDuration = SignedDuration::from_mins(1);
/// Most kinds of events that are counted at a time; more are put on record together.
const MOST: usize = 1_000;

/// The events of the last while that may happen often.
#[derive(Debug, Default)]
pub(super) struct Ledger(BTreeMap<String, Entry>);

#[derive(Debug)]
struct Entry {
    told_at: Timestamp,
    since: u32,
}

impl Ledger {
    /// Takes an event; gives it back, with how often it happened, if it is to be put on record now.
    pub(super) fn take(&mut self, actor: &Actor, what: AccessEvent, now: Timestamp) -> Option<AccessEvent> {
        let (name, times) = match &what {
            AccessEvent::SignedIn | AccessEvent::SignedOut => return Some(what),
            AccessEvent::SignInFailed { times } => ("sign in".to_owned(), *times),
            AccessEvent::Refused { right, project, times, .. } => (format!("{right} {project:?}"), *times),
        };
        if self.0.len() >= MOST {
            self.0.retain(|_, entry| now.duration_since(entry.told_at) < EVERY);
        }
        let from = actor.address.map(|from| from.to_string()).unwrap_or_default();
        let key = if self.0.len() >= MOST { name } else { format!("{name} {actor} {from}") };
        let entry = self.0.entry(key).or_insert(Entry { told_at: Timestamp::MIN, since: 0 });
        entry.since = entry.since.saturating_add(times);
        if entry.told_at != Timestamp::MIN && now.duration_since(entry.told_at) < EVERY {
            return None;
        }
        let times = std::mem::take(&mut entry.since);
        entry.told_at = now;
        Some(match what {
            AccessEvent::Refused { right, project, action, .. } => {
                AccessEvent::Refused { right, project, action, times }
            }
            _ => AccessEvent::SignInFailed { times },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_often_is_put_on_record_once_a_minute_with_its_number() {
        let mut ledger = Ledger::default();
        let start: Timestamp = "2026-11-26T08:00:00Z".parse().unwrap();
        let failed = AccessEvent::SignInFailed { times: 1 };
        let anna = Actor::person("anna");
        let told: Vec<_> = (0..121)
            .filter_map(|second| ledger.take(&anna, failed.clone(), start + SignedDuration::from_secs(second)))
            .collect();
        let times = |times| AccessEvent::SignInFailed { times };
        assert_eq!(told, [times(1), times(60), times(60)]);
        assert_eq!(ledger.take(&Actor::person("bob"), failed, start), Some(times(1)));
        assert_eq!(ledger.take(&anna, AccessEvent::SignedIn, start), Some(AccessEvent::SignedIn));
    }

    #[test]
    fn memory_and_log_are_bounded_however_many_try() {
        let mut ledger = Ledger::default();
        let now: Timestamp = "2026-11-26T08:00:00Z".parse().unwrap();
        let failed = |n: u32| (Actor::person(n.to_string()), AccessEvent::SignInFailed { times: 1 });
        let told = (0..5_000).map(failed).filter_map(|(actor, what)| ledger.take(&actor, what, now)).count();
        assert_eq!((told, ledger.0.len()), (MOST + 1, MOST + 1));
    }
}
