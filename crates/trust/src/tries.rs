//! Limited tries: whoever guesses passwords has to wait.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

/// Failures that cost nothing: people mistype.
const FREE: u32 = 5;
/// The wait after the first failure that costs something; it doubles with each one after.
const FIRST: SignedDuration = SignedDuration::from_secs(2);
/// The longest wait.
const LONGEST: SignedDuration = SignedDuration::from_mins(15);
/// After so long without a failure everything is forgotten.
const FORGOTTEN: SignedDuration = SignedDuration::from_hours(1);
/// Most names and addresses that are remembered: the stalest goes first.
const MOST: usize = 10_000;

/// The failed tries of the last hour, by the name or the address that they came from.
#[derive(Debug, Default)]
pub struct Tries(BTreeMap<String, Failures>);

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Timestamp,
}

impl Failures {
    fn wait(self) -> SignedDuration {
        match self.count.checked_sub(FREE) {
            None | Some(0) => SignedDuration::ZERO,
            Some(over) => {
                FIRST.saturating_mul(1_i32.checked_shl(over - 1).filter(|by| *by > 0).unwrap_or(i32::MAX)).min(LONGEST)
            }
        }
    }
}

impl Tries {
    /// How long somebody still has to wait before they may try; none if they may now.
    #[must_use]
    pub fn wait(&self, key: &str, now: Timestamp) -> Option<SignedDuration> {
        let failures = self.0.get(key)?;
        let over = failures.last.saturating_add(failures.wait()).ok()?;
        Some(over.duration_since(now)).filter(|left| left.is_positive())
    }

    /// Counts a failure.
    pub fn failed(&mut self, key: &str, now: Timestamp) {
        if self.0.len() >= MOST && !self.0.contains_key(key) {
            self.forget(now);
        }
        let failures = self.0.entry(key.to_owned()).or_insert(Failures { count: 0, last: now });
        let is_new = now.duration_since(failures.last) >= FORGOTTEN;
        *failures = Failures { count: if is_new { 1 } else { failures.count.saturating_add(1) }, last: now };
    }

    /// Forgets the failures of somebody who came in.
    pub fn succeeded(&mut self, key: &str) {
        self.0.remove(key);
    }

    fn forget(&mut self, now: Timestamp) {
        self.0.retain(|_, failures| now.duration_since(failures.last) < FORGOTTEN);
        if self.0.len() >= MOST {
            let stalest = self.0.iter().min_by_key(|(_, failures)| failures.last).map(|(key, _)| key.clone());
            stalest.map(|key| self.0.remove(&key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_after_a_few_failures_and_end() {
        let mut tries = Tries::default();
        let mut now: Timestamp = "2026-11-26T08:00:00Z".parse().expect("a time");
        let mut waits = Vec::new();
        for _ in 0..18 {
            tries.failed("anna", now);
            let wait = tries.wait("anna", now).unwrap_or_default();
            waits.push(wait.as_secs());
            now += wait;
            assert_eq!(tries.wait("anna", now), None);
        }
        assert_eq!(waits, [0, 0, 0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900]);
        assert_eq!(tries.wait("bob", now), None);
        tries.succeeded("anna");
        tries.failed("anna", now);
        assert_eq!(tries.wait("anna", now), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut tries = Tries::default();
        let start: Timestamp = "2026-11-26T08:00:00Z".parse().expect("a time");
        for n in 0..MOST + 50 {
            tries.failed(&n.to_string(), start + SignedDuration::from_millis(n.try_into().expect("small")));
        }
        assert_eq!(tries.0.len(), MOST);
        assert!(!tries.0.contains_key("0") && tries.0.contains_key(&(MOST + 49).to_string()));
    }
}
