//! A log that fails: requests are refused, answers are lost, entries land late, readers are behind, copies break off.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kelos_store::log::{
    EntryBody, Holder, Inbox, LeaseRecord, Log, LogEnds, LogEntry, LogError, LogStore, MemoryLog, read_entry,
};

use super::handle::NodeHandle;
use super::ledger::NEWEST;
use super::site::{Common, Hindrance, LateEntry, Plant};

/// The log as one node reaches it.
pub(super) struct NodeLogStore(pub(super) Arc<NodeHandle>);

impl LogStore for NodeLogStore {
    fn name(&self) -> String {
        "simulated".to_owned()
    }

    fn open(&self) -> Result<Box<dyn Log>, LogError> {
        Ok(Box::new(FaultyLog { inner: self.0.place.log.connect(), node: self.0.clone(), held_back: None }))
    }

    /// Users have no transactions of their own here.
    fn inbox(&self) -> Result<Option<Box<dyn Inbox>>, LogError> {
        Ok(None)
    }
}

/// A connection of a node to the log.
pub(super) struct FaultyLog {
    inner: MemoryLog,
    node: Arc<NodeHandle>,
    /// A plug that was acknowledged and not written, where that is the planted bug.
    held_back: Option<LogEntry>,
}

/// The fate of a request.
struct CallFate {
    pause_before: SignedDuration,
    pause_after: SignedDuration,
    is_refused: bool,
    is_late: bool,
    is_answer_lost: bool,
}

impl CallFate {
    fn draw(common: &mut Common) -> CallFate {
        let mut happens = || common.rng.below(1000) < common.per_mille;
        let [before, after, is_refused, is_late, is_answer_lost] = std::array::from_fn(|_| happens());
        let mut pause = |is_long: bool| if is_long { common.pause() } else { SignedDuration::ZERO };
        let (pause_before, pause_after) = (pause(before), pause(after));
        CallFate { pause_before, pause_after, is_refused, is_late, is_answer_lost }
    }
}

fn refused(doing: &str) -> LogError {
    LogError::Medium { doing: doing.to_owned(), cause: "the simulated store refused".to_owned() }
}

fn unknown(doing: &str) -> LogError {
    LogError::Unknown { doing: doing.to_owned(), cause: "the simulated answer was lost".to_owned() }
}

impl FaultyLog {
    fn fate(&self) -> CallFate {
        CallFate::draw(&mut self.node.place.common())
    }

    /// A request with its faults.
    fn call<T>(
        &mut self,
        doing: &str,
        effect: impl FnOnce(&mut MemoryLog) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let fate = self.fate();
        self.node.pause(fate.pause_before);
        if fate.is_refused || !self.node.is_alive() {
            return Err(refused(doing));
        }
        self.node.place.land();
        let answer = effect(&mut self.inner);
        self.node.pause(fate.pause_after);
        if fate.is_answer_lost || !self.node.is_alive() { Err(unknown(doing)) } else { answer }
    }

    /// Writes a plug that was held back before the entry that follows it.
    fn write_held_back(&mut self, position: u64) -> Result<(), LogError> {
        match self.held_back.take() {
            Some(plug) if plug.position + 1 == position => self.node.place.append(plug, false),
            _ => Ok(()),
        }
    }
}

impl Log for FaultyLog {
    fn lease(&mut self) -> Result<LeaseRecord, LogError> {
        self.call("read the lease", MemoryLog::lease)
    }

    fn take(&mut self, seen: &LeaseRecord, nonce: u64, holder: &Holder) -> Result<Option<LeaseRecord>, LogError> {
        self.call("take the lease", |inner| inner.take(seen, nonce, holder))
    }

    fn renew(&mut self, held: &LeaseRecord) -> Result<Option<LeaseRecord>, LogError> {
        let sent = self.node.place.relay.now();
        let answer = self.call("renew the lease", |inner| inner.renew(held));
        if self.node.place.plan.plant == Some(Plant::TrustFromAnswer) {
            // A clock that stands still during the request gives the same trust as one that is read after it.
            self.node.stand_still_since(sent);
        }
        answer
    }

    fn release(&mut self, held: &LeaseRecord) -> Result<(), LogError> {
        self.call("give the lease back", |inner| inner.release(held))
    }

    fn append(&mut self, epoch: u64, position: u64, body: &[u8]) -> Result<(), LogError> {
        let doing = "append an entry";
        let place = self.node.place.clone();
        let entry = LogEntry { position, epoch, body: body.to_vec() };
        let is_plug = || matches!(read_entry(&entry, NEWEST), Ok(EntryBody::Plug(_)));
        if place.plan.plant == Some(Plant::LatePlug) && is_plug() {
            self.held_back = Some(entry);
            return Ok(());
        }
        let fate = self.fate();
        let is_in_force = self.inner.lease()?.epoch == epoch;
        self.node.appends(true);
        self.node.pause(fate.pause_before);
        let answer = if fate.is_refused || !self.node.is_alive() {
            Err(refused(doing))
        } else if fate.is_late {
            let mut common = place.common();
            let at = place.relay.now() + common.pause();
            common.late.push(LateEntry { at, entry, is_in_force });
            Err(unknown(doing))
        } else {
            place.land();
            let answer = self.write_held_back(position).and_then(|()| place.append(entry, is_in_force));
            self.node.pause(fate.pause_after);
            if fate.is_answer_lost || !self.node.is_alive() { Err(unknown(doing)) } else { answer }
        };
        self.node.appends(false);
        answer
    }

    fn read(&mut self, after: u64, limit: usize) -> Result<Vec<LogEntry>, LogError> {
        let place = self.node.place.clone();
        let mut had_lost = false;
        let mut entries = self.call("read entries", |inner| {
            had_lost = place.common().lost_after.is_some();
            inner.read(after, limit)
        })?;
        let mut common = place.common();
        if let (false, Some(kept), Some(last)) = (had_lost, common.lost_after, entries.last())
            && last.position > kept
        {
            // The log lost them while they were on their way.
            self.node.may_be_ahead();
        }
        for entry in &mut entries {
            if let Some(epoch) = common.epochs.get(&entry.position) {
                entry.epoch = *epoch;
            }
        }
        if common.rng.below(1000) < common.per_mille {
            let shown = common.rng.below(entries.len() as u64 + 1);
            entries.truncate(usize::try_from(shown).unwrap_or(0));
        }
        drop(common);
        if let Some(last) = entries.last() {
            self.node.has_read(last.position);
        }
        Ok(entries)
    }

    fn ends(&mut self) -> Result<LogEnds, LogError> {
        self.call("read the ends of the log", MemoryLog::ends)
    }

    fn clock_millis(&mut self) -> Result<Option<i64>, LogError> {
        let tells = self.node.place.plan.hindrance == Some(Hindrance::WrongClock);
        Ok(tells.then(|| self.node.now().as_millisecond()))
    }

    fn wait(&mut self, _: u64, _: Duration) -> Result<(), LogError> {
        Ok(())
    }

    fn put_snapshot(&mut self, position: u64, source: &mut dyn Read) -> Result<(), LogError> {
        let doing = "store a snapshot";
        if self.fate().is_late {
            let mut half = source.take(1).chain(BrokenSource);
            return self.call(doing, |inner| inner.put_snapshot(position, &mut half));
        }
        self.call(doing, |inner| inner.put_snapshot(position, source))
    }

    fn snapshot(&mut self) -> Result<Option<u64>, LogError> {
        self.call("find the snapshot", MemoryLog::snapshot)
    }

    fn read_snapshot(&mut self, position: u64, target: &mut dyn Write) -> Result<(), LogError> {
        let doing = "read a snapshot";
        let mut copy = Vec::new();
        self.call(doing, |inner| inner.read_snapshot(position, &mut copy))?;
        let breaks = self.fate().is_late;
        let half = if breaks { copy.len() / 2 } else { copy.len() };
        target
            .write_all(&copy[..half])
            .map_err(|error| LogError::Medium { doing: doing.to_owned(), cause: error.to_string() })?;
        if breaks {
            return Err(refused(doing));
        }
        Ok(())
    }

    fn trim(&mut self, before: u64) -> Result<(), LogError> {
        self.call("trim the log", |inner| inner.trim(before))
    }
}

/// A source that can't be read to its end.
struct BrokenSource;

impl Read for BrokenSource {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the simulated source broke off"))
    }
}
