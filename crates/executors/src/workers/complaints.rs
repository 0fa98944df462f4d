//! Troubles of workers that are said once, and not with each of their messages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The troubles that were said, by worker.
#[derive(Debug, Default)]
pub(super) struct Complaints(Mutex<BTreeMap<Arc<str>, String>>);

/// The most workers whose troubles are remembered.
const MOST: usize = 1000;

impl Complaints {
    fn said(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the trouble of a worker; whether it is to be said, because it is another one than before.
    pub(super) fn is_new(&self, worker: &Arc<str>, trouble: &str) -> bool {
        let mut said = self.said();
        if said.len() >= MOST && !said.contains_key(worker) {
            said.pop_first();
        }
        said.insert(worker.clone(), trouble.to_owned()).is_none_or(|before| before != trouble)
    }

    /// Notes that a worker has no trouble; whether it had.
    pub(super) fn is_over(&self, worker: &Arc<str>) -> bool {
        self.said().remove(worker).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_said_once_until_it_changes() {
        let (complaints, worker, other) = (Complaints::default(), Arc::from("w1"), Arc::from("w2"));
        let heard = ["full", "full", "away", "away"].map(|trouble| complaints.is_new(&worker, trouble));
        assert_eq!(heard, [true, false, true, false]);
        assert!(complaints.is_new(&other, "away"));
        assert!(complaints.is_over(&worker) && !complaints.is_over(&worker));
        assert!(complaints.is_new(&worker, "away") && !complaints.is_new(&other, "away"));
    }
}
