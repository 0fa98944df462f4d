//! The log in memory: for tests and the simulation.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Holder, Inbox, LeaseRecord, Log, LogEnds, LogEntry, LogError, LogStore};

/// The place of a log in memory. Cheap to clone; all clones are the same log.
#[derive(Debug, Clone, Default)]
pub struct MemoryLogStore(Arc<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    content: Mutex<Content>,
    /// Whether it grew, or the lease was given back.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Content {
    lease: LeaseRecord,
    entries: BTreeMap<u64, LogEntry>,
    last: u64,
    /// How often the lease was given back.
    releases: u64,
    snapshot: Option<(u64, Vec<u8>)>,
}

impl MemoryLogStore {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A connection to it.
    #[must_use]
    pub fn connect(&self) -> MemoryLog {
        MemoryLog(self.clone())
    }

    /// Loses the entries after a position, as a store does that acknowledged what it had not made durable. For tests.
    pub fn lose_after(&self, position: u64) {
        let mut content = self.content();
        content.entries.split_off(&(position + 1));
        content.last = content.last.min(position);
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogStore for MemoryLogStore {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn open(&self) -> Result<Box<dyn Log>, LogError> {
        Ok(Box::new(self.connect()))
    }

    /// Users have no transactions of their own here.
    fn inbox(&self) -> Result<Option<Box<dyn Inbox>>, LogError> {
        Ok(None)
    }
}

/// A connection to a log in memory.
#[derive(Debug)]
pub struct MemoryLog(MemoryLogStore);

impl Log for MemoryLog {
    fn lease(&mut self) -> Result<LeaseRecord, LogError> {
        Ok(self.0.content().lease.clone())
    }

    fn take(&mut self, seen: &LeaseRecord, nonce: u64, holder: &Holder) -> Result<Option<LeaseRecord>, LogError> {
        let mut content = self.0.content();
        if content.lease != *seen {
            return Ok(None);
        }
        content.lease = seen.taken_by(nonce, holder);
        Ok(Some(content.lease.clone()))
    }

    fn renew(&mut self, held: &LeaseRecord) -> Result<Option<LeaseRecord>, LogError> {
        let mut content = self.0.content();
        if !content.lease.is_same_taking(held) || content.lease.is_free {
            return Ok(None);
        }
        content.lease = content.lease.renewed();
        Ok(Some(content.lease.clone()))
    }

    fn release(&mut self, held: &LeaseRecord) -> Result<(), LogError> {
        let mut content = self.0.content();
        if content.lease.is_same_taking(held) {
            content.lease = content.lease.released();
            content.releases += 1;
            self.0.0.changed.notify_all();
        }
        Ok(())
    }

    fn append(&mut self, epoch: u64, position: u64, body: &[u8]) -> Result<(), LogError> {
        let mut content = self.0.content();
        if content.lease.epoch != epoch {
            return Err(LogError::Deposed { held: epoch, current: content.lease.epoch });
        }
        if content.last + 1 != position {
            return Err(LogError::NotNext { position, last: content.last });
        }
        content.last = position;
        content.entries.insert(position, LogEntry { position, epoch, body: body.to_vec() });
        self.0.0.changed.notify_all();
        Ok(())
    }

    fn read(&mut self, after: u64, limit: usize) -> Result<Vec<LogEntry>, LogError> {
        let content = self.0.content();
        let first = content.first();
        if after + 1 < first {
            return Err(LogError::RemovedHistory { after, first });
        }
        Ok(content.entries.range(after + 1..).take(limit).map(|(_, entry)| entry.clone()).collect())
    }

    fn ends(&mut self) -> Result<LogEnds, LogError> {
        let content = self.0.content();
        Ok(LogEnds { first: content.first(), last: content.last })
    }

    fn wait(&mut self, after: u64, patience: Duration) -> Result<(), LogError> {
        let content = self.0.content();
        let before = content.releases;
        let is_nothing = |content: &mut Content| content.last <= after && content.releases == before;
        let waited = self.0.0.changed.wait_timeout_while(content, patience, is_nothing);
        drop(waited);
        Ok(())
    }

    fn put_snapshot(&mut self, position: u64, source: &mut dyn Read) -> Result<(), LogError> {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).map_err(|error| LogError::Medium {
            doing: format!("read the snapshot at entry {position}"),
            cause: error.to_string(),
        })?;
        let mut content = self.0.content();
        if content.snapshot.as_ref().is_none_or(|(older, _)| *older <= position) {
            content.snapshot = Some((position, bytes));
        }
        if content.last == 0 {
            content.last = position;
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Option<u64>, LogError> {
        Ok(self.0.content().snapshot.as_ref().map(|(position, _)| *position))
    }

    fn read_snapshot(&mut self, position: u64, target: &mut dyn Write) -> Result<(), LogError> {
        let doing = format!("read the snapshot at entry {position}");
        let content = self.0.content();
        match &content.snapshot {
            Some((found, bytes)) if *found == position => {
                target.write_all(bytes).map_err(|error| LogError::Medium { doing, cause: error.to_string() })
            }
            _ => Err(LogError::Medium { doing, cause: "there is no such snapshot any more".to_owned() }),
        }
    }

    fn trim(&mut self, before: u64) -> Result<(), LogError> {
        let mut content = self.0.content();
        let covered = content.snapshot.as_ref().map_or(0, |(position, _)| *position);
        if before > covered + 1 {
            let cause = format!("its latest snapshot is that of entry {covered}");
            return Err(LogError::Medium { doing: format!("trim the log before entry {before}"), cause });
        }
        content.entries = content.entries.split_off(&before);
        Ok(())
    }
}

impl Content {
    fn first(&self) -> u64 {
        self.entries.first_key_value().map_or(self.last + 1, |(position, _)| *position)
    }
}
