//! The ledger of what the log got and what nodes acknowledged, and its judges.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use kelos_store::log::{EntryBody, FORM, LocalState, LogEntry, Reign, form_of, read_entry};
use kelos_store::{MemoryStore, StoreError, StoredState, TurnRecord};

/// The form of entries that the newer of two programs knows.
pub(super) const NEWEST: u32 = FORM;

/// All that was ever written to the log, trimmed or not, and what nodes made of it.
#[derive(Default)]
pub(super) struct Ledger {
    entries: Vec<(Timestamp, LogEntry)>,
    acknowledged: Vec<TurnReceipt>,
    portraits: Vec<Portrait>,
}

/// A turn of which the journal said that it is in the log.
struct TurnReceipt {
    node: usize,
    position: u64,
    record: TurnRecord,
}

/// The state of a node after an entry.
struct Portrait {
    node: usize,
    position: u64,
    digest: u64,
}

impl Ledger {
    /// The position of the last entry.
    pub(super) fn last(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The epoch of the last entry; 0 before the first.
    pub(super) fn epoch(&self) -> u64 {
        self.entries.last().map_or(0, |(_, entry)| entry.epoch)
    }

    /// The position of the last entry that was written before a moment.
    pub(super) fn last_before(&self, moment: Timestamp) -> u64 {
        self.entries.iter().filter(|(at, _)| *at < moment).count() as u64
    }

    /// Notes an entry: positions have no gaps, epochs only grow, each begins with its plug, and has one form, which never falls.
    pub(super) fn append(&mut self, now: Timestamp, entry: LogEntry) -> Result<(), String> {
        let LogEntry { position, epoch, .. } = entry;
        let before = self.entries.last().map_or((0, 0), |(_, entry)| (entry.position, entry.epoch));
        if position != before.0 + 1 {
            return Err(format!("entry {position} follows on entry {}", before.0));
        }
        let begins = match read_entry(&entry, NEWEST).map_err(|error| format!("failed to {error}"))? {
            EntryBody::Plug(reign) if reign.epoch != epoch => {
                return Err(format!("entry {position} of epoch {epoch} is the plug of epoch {}", reign.epoch));
            }
            EntryBody::Plug(_) => true,
            EntryBody::Turn { .. } => false,
        };
        if epoch < before.1 || epoch > before.1 && !begins {
            return Err(format!("entry {position} is of epoch {epoch}, and follows on one of epoch {}", before.1));
        }
        let forms = (self.entries.last().and_then(|(_, before)| form_of(before)), form_of(&entry));
        if forms.1 < forms.0 || forms.0.is_some() && forms.1 != forms.0 && !begins {
            return Err(format!("entry {position} is of form {:?}, and follows on one of form {:?}", forms.1, forms.0));
        }
        self.entries.push((now, entry));
        Ok(())
    }

    /// Notes that a node acknowledged a turn.
    pub(super) fn acknowledge(&mut self, node: usize, position: u64, record: TurnRecord) {
        self.acknowledged.push(TurnReceipt { node, position, record });
    }

    /// Notes the state of a node.
    pub(super) fn portray(&mut self, node: usize, position: u64, digest: u64) {
        self.portraits.push(Portrait { node, position, digest });
    }

    /// Forgets what is after a position, because the store has lost it.
    pub(super) fn lose_after(&mut self, position: u64) {
        self.entries.truncate(usize::try_from(position).unwrap_or(usize::MAX));
        self.acknowledged.retain(|one| one.position <= position);
        self.portraits.retain(|one| one.position <= position);
    }

    /// Checks that acknowledged turns are in the log, and that nodes had the state to which its entries fold.
    pub(super) fn judge(&mut self) -> Result<(), String> {
        self.acknowledged_is_there()?;
        self.portraits.sort_by_key(|portrait| portrait.position);
        let mut portraits = self.portraits.iter().peekable();
        let mut fresh = MemoryStore::new();
        let mut look = |position: u64, fresh: &mut MemoryStore| {
            let mut expected = None;
            while let Some(portrait) = portraits.next_if(|portrait| portrait.position == position) {
                let expected = match expected {
                    Some(expected) => expected,
                    None => *expected.insert(of_state(fresh).map_err(|error| format!("failed to {error}"))?),
                };
                if portrait.digest != expected {
                    let node = portrait.node;
                    return Err(format!("after entry {position} node {node} had another state than its log folds to"));
                }
            }
            Ok(())
        };
        look(0, &mut fresh)?;
        for (_, entry) in &self.entries {
            apply(&mut fresh, entry)?;
            look(entry.position, &mut fresh)?;
        }
        match portraits.next() {
            Some(beyond) => Err(format!("node {} had entry {}, which the log never had", beyond.node, beyond.position)),
            None => Ok(()),
        }
    }

    fn acknowledged_is_there(&self) -> Result<(), String> {
        for TurnReceipt { node, position, record } in &self.acknowledged {
            let index = usize::try_from(*position).unwrap_or(usize::MAX).wrapping_sub(1);
            let entry = self.entries.get(index).map(|(_, entry)| read_entry(entry, NEWEST));
            let is_there = matches!(entry, Some(Ok(EntryBody::Turn { record: found, .. })) if found == *record);
            if !is_there {
                let turn = record.turn;
                return Err(format!("node {node} acknowledged turn {turn}, which is not entry {position} of the log"));
            }
        }
        Ok(())
    }
}

fn apply(fresh: &mut MemoryStore, entry: &LogEntry) -> Result<(), String> {
    let outcome = match read_entry(entry, NEWEST).map_err(|error| format!("failed to {error}"))? {
        EntryBody::Plug(reign) => fresh.begin(entry.position, &reign),
        EntryBody::Turn { record, commit } => fresh.follow(entry.position, entry.epoch, &commit, &mut |followed| {
            let place = || format!("entry {}", entry.position);
            let what = || format!("its record is {record:?}, and it folds to {followed:?}");
            if *followed == record { Ok(()) } else { Err(StoreError::Corrupt { place: place(), what: what() }) }
        }),
    };
    outcome.map_err(|error| format!("failed to {error}"))
}

fn of_state(state: &mut MemoryStore) -> Result<u64, StoreError> {
    let reigns = state.reigns(usize::MAX)?;
    portrait(state, &reigns)
}

/// A digest of all that a node would go on with.
pub(super) fn portrait(state: &mut dyn StoredState, reigns: &[Reign]) -> Result<u64, StoreError> {
    let mut hasher = DefaultHasher::new();
    format!("{:?} {reigns:?}", state.restore()?).hash(&mut hasher);
    Ok(hasher.finish())
}
