//! A connection to a log that may not be reachable yet: each call connects first, where none is open.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use super::{Holder, LeaseRecord, Log, LogEnds, LogEntry, LogError, LogStore};

/// A connection that is opened by the first call that succeeds in it.
pub(super) struct PatientLog {
    store: Arc<dyn LogStore>,
    log: Option<Box<dyn Log>>,
}

impl PatientLog {
    pub(super) fn of(store: &Arc<dyn LogStore>) -> Box<dyn Log> {
        Box::new(PatientLog { store: store.clone(), log: None })
    }

    fn log(&mut self) -> Result<&mut dyn Log, LogError> {
        let log = match self.log.take() {
            Some(log) => log,
            None => self.store.open()?,
        };
        Ok(&mut **self.log.insert(log))
    }
}

impl Log for PatientLog {
    fn lease(&mut self) -> Result<LeaseRecord, LogError> {
        self.log()?.lease()
    }

    fn take(&mut self, seen: &LeaseRecord, nonce: u64, holder: &Holder) -> Result<Option<LeaseRecord>, LogError> {
        self.log()?.take(seen, nonce, holder)
    }

    fn renew(&mut self, held: &LeaseRecord) -> Result<Option<LeaseRecord>, LogError> {
        self.log()?.renew(held)
    }

    fn release(&mut self, held: &LeaseRecord) -> Result<(), LogError> {
        self.log()?.release(held)
    }

    fn append(&mut self, epoch: u64, position: u64, body: &[u8]) -> Result<(), LogError> {
        self.log()?.append(epoch, position, body)
    }

    fn read(&mut self, after: u64, limit: usize) -> Result<Vec<LogEntry>, LogError> {
        self.log()?.read(after, limit)
    }

    fn ends(&mut self) -> Result<LogEnds, LogError> {
        self.log()?.ends()
    }

    fn clock_millis(&mut self) -> Result<Option<i64>, LogError> {
        self.log()?.clock_millis()
    }

    fn wait(&mut self, after: u64, patience: Duration) -> Result<(), LogError> {
        self.log()?.wait(after, patience)
    }

    fn put_snapshot(&mut self, position: u64, source: &mut dyn Read) -> Result<(), LogError> {
        self.log()?.put_snapshot(position, source)
    }

    fn snapshot(&mut self) -> Result<Option<u64>, LogError> {
        self.log()?.snapshot()
    }

    fn read_snapshot(&mut self, position: u64, target: &mut dyn Write) -> Result<(), LogError> {
        self.log()?.read_snapshot(position, target)
    }

    fn trim(&mut self, before: u64) -> Result<(), LogError> {
        self.log()?.trim(before)
    }
}
