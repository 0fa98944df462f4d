//! The operations of a log on its objects.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kelos_store::log::adapter::{Action, check_trim, next_part};
use kelos_store::log::{Holder, LeaseRecord, Log, LogEnds, LogEntry, LogError};

use crate::ObjectLog;
use crate::layout::{
    ENDS, ENTRIES, Ends, Head, LEASE, Lease, PARTS, Snapshot, entry, entry_content, name_of, part, position_of,
    read_entry,
};
use crate::session::Session;

/// The entries that are read at a time.
const MOST: usize = 64;
/// The bytes of entries after which no more are read; what was asked for at the same time is read all the same.
const READ: usize = 4 << 20;
/// The entries that are listed or deleted at a time.
const LISTED: usize = 1000;
/// The bytes of a part of a snapshot.
const PART: usize = 8 << 20;
/// The trimmed entries that stay: a leader who slept finds its number taken.
const STAYING: u64 = 1000;
/// An append that took longer reads the lease again: its leader may have slept.
const PAUSE: Duration = Duration::from_secs(2);
/// The interval of questions for new entries.
const INTERVAL: Duration = Duration::from_millis(200);
/// The same when none has come for a while.
const IDLE_INTERVAL: Duration = Duration::from_millis(500);
/// How long none has come then.
const IDLE_AFTER: Duration = Duration::from_secs(10);
/// The hours after which the parts of a snapshot are deleted that was not completed.
const UNFINISHED: i64 = 24;
/// Tries of what another client keeps changing.
const TRIES: usize = 10;

pub(crate) struct Connection {
    session: Session,
    /// A random number, by which its own entries are recognised.
    writer: u64,
    /// An entry that exists, or that existed: the last one that is known.
    known: u64,
    /// When an entry was last found that was waited for.
    found_at: Instant,
}

impl Connection {
    pub(crate) fn open(place: &ObjectLog) -> Result<Connection, LogError> {
        let writer = random(Action::read("open the log"))?;
        Ok(Connection { session: Session::open(place)?, writer, known: 0, found_at: Instant::now() })
    }

    fn lease_as(&self, action: Action<'_>) -> Result<(LeaseRecord, String), LogError> {
        let (lease, tag): (Lease, String) = self.session.content(action, LEASE)?;
        Ok((lease.record(), tag))
    }

    fn ends_as(&self, action: Action<'_>) -> Result<(Ends, String), LogError> {
        self.session.content(action, ENDS)
    }

    /// The position of the last entry.
    fn last(&mut self, action: Action<'_>, first: u64) -> Result<u64, LogError> {
        self.known = self.known.max(first - 1);
        loop {
            let listed = self.session.list(action, ENTRIES, &name_of(self.known), LISTED)?;
            let Some(last) = listed.iter().filter_map(|found| position_of(&found.path)).max() else {
                return Ok(self.known);
            };
            self.known = last;
        }
    }

    /// Refuses an entry of an epoch that is not in force.
    fn check_epoch(&self, action: Action<'_>, epoch: u64) -> Result<(), LogError> {
        let current = self.lease_as(action)?.0.epoch;
        if current == epoch { Ok(()) } else { Err(LogError::Deposed { held: epoch, current }) }
    }

    /// Whether the entry at a position was written by this connection, although the store refused to write it: something between them may
    /// have sent the request twice.
    fn is_own(&self, action: Action<'_>, position: u64, content: &[u8]) -> Result<bool, LogError> {
        Ok(self.session.read(action, &entry(position))?.is_some_and(|found| found.content == content))
    }

    /// Changes the lease while it is that of a taking and not given back.
    fn change(
        &self,
        action: Action<'_>,
        held: &LeaseRecord,
        to: impl Fn(&LeaseRecord) -> LeaseRecord,
    ) -> Result<Option<LeaseRecord>, LogError> {
        for _ in 0..TRIES {
            let (found, tag) = self.lease_as(action)?;
            if !found.is_same_taking(held) || found.is_free {
                return Ok(None);
            }
            let changed = to(&found);
            if self.session.replace(action, LEASE, &Lease::of(&changed), &tag)? {
                return Ok(Some(changed));
            }
        }
        Err(action.failed("others change it again and again"))
    }

    /// Makes a snapshot the latest one unless a newer one was stored meanwhile; the one that it replaced.
    fn complete(&mut self, action: Action<'_>, snapshot: &Snapshot) -> Result<Option<Snapshot>, LogError> {
        for _ in 0..TRIES {
            let (ends, tag) = self.ends_as(action)?;
            if ends.snapshot.as_ref().is_some_and(|older| older.position > snapshot.position) {
                return Ok(Some(snapshot.clone()));
            }
            let is_empty = self.last(action, ends.first)? == 0;
            let first = if is_empty { snapshot.position + 1 } else { ends.first };
            let changed = Ends { first, snapshot: Some(snapshot.clone()) };
            if self.session.replace(action, ENDS, &changed, &tag)? {
                return Ok(ends.snapshot);
            }
        }
        Err(action.failed("others change it again and again"))
    }

    /// Deletes the parts of a snapshot that is not the latest one any more, and those that were never completed.
    fn sweep(&self, action: Action<'_>, replaced: Option<Snapshot>) -> Result<(), LogError> {
        if let Some(old) = replaced {
            let paths: Vec<String> = (0..old.parts).map(|number| part(old.number, number)).collect();
            self.session.remove(action, &paths)?;
        }
        let latest = self.ends_as(action)?.0.snapshot;
        let is_latest = |path: &str| {
            latest.as_ref().is_some_and(|latest| path.starts_with(&format!("{PARTS}/{:016x}-", latest.number)))
        };
        let long_ago = Timestamp::now() - SignedDuration::from_hours(UNFINISHED);
        let listed = self.session.list(action, PARTS, "", LISTED)?;
        let left = listed.into_iter().filter(|found| found.modified.is_some_and(|modified| modified < long_ago));
        let paths: Vec<String> = left.map(|found| found.path).filter(|path| !is_latest(path)).collect();
        self.session.remove(action, &paths)
    }
}

impl Log for Connection {
    fn lease(&mut self) -> Result<LeaseRecord, LogError> {
        Ok(self.lease_as(Action::read("read the lease"))?.0)
    }

    fn take(&mut self, seen: &LeaseRecord, nonce: u64, holder: &Holder) -> Result<Option<LeaseRecord>, LogError> {
        let action = Action::write("take the lease");
        let (found, tag) = self.lease_as(action)?;
        if found != *seen {
            return Ok(None);
        }
        let taken = seen.taken_by(nonce, holder);
        let is_taken = self.session.replace(action, LEASE, &Lease::of(&taken), &tag)?;
        Ok(is_taken.then_some(taken))
    }

    fn renew(&mut self, held: &LeaseRecord) -> Result<Option<LeaseRecord>, LogError> {
        self.change(Action::write("renew the lease"), held, LeaseRecord::renewed)
    }

    fn release(&mut self, held: &LeaseRecord) -> Result<(), LogError> {
        self.change(Action::write("give the lease back"), held, LeaseRecord::released).map(drop)
    }

    fn append(&mut self, epoch: u64, position: u64, body: &[u8]) -> Result<(), LogError> {
        let doing = format!("append entry {position} of the log");
        let action = Action::write(&doing);
        let content = entry_content(&Head { epoch, writer: self.writer }, body);
        for _ in 0..TRIES {
            let began = Instant::now();
            self.check_epoch(action, epoch)?;
            // A log may begin behind a snapshot: then its first entry is not entry 1.
            if self.known == 0 || self.known + 1 != position {
                let first = self.ends_as(action)?.0.first;
                let last = self.last(action, first)?;
                if last + 1 != position {
                    return Err(LogError::NotNext { position, last });
                }
            }
            let is_written = self.session.create(action, &entry(position), content.clone())?;
            if is_written || self.is_own(action, position, &content)? {
                self.known = self.known.max(position);
                if began.elapsed() < PAUSE {
                    return Ok(());
                }
                // A leader that slept may have filled a hole: then it is not the leader any more.
                return match self.check_epoch(action, epoch) {
                    Ok(()) => Ok(()),
                    Err(why) => Err(action.lost(why.to_string())),
                };
            }
            // The store refused it for an entry that is there, or for one that is being written.
            self.known = 0;
        }
        Err(action.failed("others append again and again"))
    }

    fn read(&mut self, after: u64, limit: usize) -> Result<Vec<LogEntry>, LogError> {
        let action = Action::read("read the log");
        let names = self.session.list(action, ENTRIES, &name_of(after), limit.min(MOST))?;
        let first = self.ends_as(action)?.0.first;
        if after + 1 < first {
            return Err(LogError::RemovedHistory { after, first });
        }
        // Of names with a hole only those before it are a part of the log.
        let next =
            (after + 1..).zip(&names).take_while(|(position, found)| position_of(&found.path) == Some(*position));
        let paths: Vec<String> = next.map(|(_, found)| found.path.clone()).collect();
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for paths in paths.chunks(8) {
            for (position, found) in (after + 1 + entries.len() as u64..).zip(self.session.read_all(action, paths)?) {
                let (head, body) = read_entry(&entry(position), &found.content)?;
                bytes += body.len();
                entries.push(LogEntry { position, epoch: head.epoch, body });
            }
            if bytes > READ {
                break;
            }
        }
        self.known = self.known.max(after + entries.len() as u64);
        Ok(entries)
    }

    fn ends(&mut self) -> Result<LogEnds, LogError> {
        let action = Action::read("read the ends of the log");
        let first = self.ends_as(action)?.0.first;
        Ok(LogEnds { first, last: self.last(action, first)? })
    }

    fn wait(&mut self, after: u64, patience: Duration) -> Result<(), LogError> {
        let action = Action::read("wait for entries of the log");
        let began = Instant::now();
        while !self.session.exists(action, &entry(after + 1))? {
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            let is_idle = self.found_at.elapsed() > IDLE_AFTER;
            std::thread::sleep(left.min(if is_idle { IDLE_INTERVAL } else { INTERVAL }));
        }
        self.found_at = Instant::now();
        Ok(())
    }

    fn put_snapshot(&mut self, position: u64, source: &mut dyn Read) -> Result<(), LogError> {
        let doing = format!("store the snapshot at entry {position}");
        let action = Action::write(&doing);
        let number = random(action)?;
        let mut parts = 0;
        loop {
            let content = next_part(source, PART)?;
            if content.is_empty() {
                break;
            }
            if !self.session.create(action, &part(number, parts), content.into())? {
                return Err(action.failed("another snapshot has its number"));
            }
            parts += 1;
        }
        let replaced = self.complete(action, &Snapshot { position, number, parts })?;
        self.sweep(action, replaced)
    }

    fn snapshot(&mut self) -> Result<Option<u64>, LogError> {
        let ends = self.ends_as(Action::read("find the latest snapshot"))?.0;
        Ok(ends.snapshot.map(|latest| latest.position))
    }

    fn read_snapshot(&mut self, position: u64, target: &mut dyn Write) -> Result<(), LogError> {
        let doing = format!("read the snapshot at entry {position}");
        let action = Action::read(&doing);
        let gone = || action.failed("there is no such snapshot any more");
        let latest = self.ends_as(action)?.0.snapshot.filter(|latest| latest.position == position).ok_or_else(gone)?;
        for number in 0..latest.parts {
            let found = self.session.read(action, &part(latest.number, number))?.ok_or_else(gone)?;
            target.write_all(&found.content).map_err(|error| action.failed(error.to_string()))?;
        }
        Ok(())
    }

    fn trim(&mut self, before: u64) -> Result<(), LogError> {
        let doing = format!("trim the log before entry {before}");
        let action = Action::write(&doing);
        for _ in 0..TRIES {
            let (ends, tag) = self.ends_as(action)?;
            check_trim(before, ends.snapshot.as_ref().map(|latest| latest.position))?;
            if ends.first >= before || self.session.replace(action, ENDS, &Ends { first: before, ..ends }, &tag)? {
                break;
            }
        }
        let deleted = before.saturating_sub(STAYING);
        loop {
            let listed = self.session.list(action, ENTRIES, "", LISTED)?;
            let old = |path: &String| position_of(path).is_some_and(|position| position < deleted);
            let paths: Vec<String> = listed.into_iter().map(|found| found.path).filter(old).collect();
            if paths.is_empty() {
                return Ok(());
            }
            self.session.remove(action, &paths)?;
        }
    }
}

fn random(action: Action<'_>) -> Result<u64, LogError> {
    getrandom::u64().map_err(|error| action.failed(error.to_string()))
}
