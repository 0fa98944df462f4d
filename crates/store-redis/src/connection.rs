//! The operations of a log as scripts and commands.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use kelos_store::log::adapter::{Action, check_trim, next_part};
use kelos_store::log::{Holder, LeaseRecord, Log, LogEnds, LogEntry, LogError};
use redis::Value;

use crate::RedisLog;
use crate::scripts::Scripts;
use crate::session::Session;

/// The bytes of entries that are read at a time; more only if one entry alone has more.
const READ: usize = 4 << 20;
/// The entries that are read at a time: the server does nothing else meanwhile.
const MOST: usize = 1000;
/// The bytes of a part of a snapshot.
const PART: usize = 1 << 20;
/// The seconds after which the parts of a snapshot are deleted that was not completed.
const UNFINISHED: u32 = 24 * 3600;
/// The longest that the server holds a question for new entries.
const HELD: Duration = Duration::from_secs(4);

pub(crate) struct Connection {
    session: Session,
    scripts: Scripts,
    /// The hash with the lease and the ends of the log.
    log: String,
    /// The stream of entries.
    entries: String,
    /// The stream of the epochs whose leaders gave the lease back; it has the last one.
    releases: String,
    /// The last of its entries that is known; none before it was asked for.
    released: Option<String>,
}

/// The number and the position of the latest snapshot.
struct Latest {
    position: u64,
    number: u64,
}

impl Connection {
    pub(crate) fn open(place: RedisLog) -> Result<Connection, LogError> {
        let at = |name: &str| format!("{}:{name}", place.prefix);
        let (log, entries, releases) = (at("log"), at("entries"), at("releases"));
        let (session, scripts) = (Session::new(place), Scripts::new());
        let mut connection = Connection { session, scripts, log, entries, releases, released: None };
        // An address that is wrong is told when it is opened.
        connection.fields("open the log", &["epoch"])?;
        Ok(connection)
    }

    /// Fields of the hash; those that are missing are 0 or empty.
    fn fields(&mut self, doing: &str, names: &[&str]) -> Result<Vec<String>, LogError> {
        let log = &self.log;
        let asked: Vec<Option<String>> = self
            .session
            .ask(Action::read(doing), |connection| redis::cmd("HMGET").arg(log).arg(names).query(connection))?;
        Ok(asked.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn number(&self, text: &str) -> Result<u64, LogError> {
        let what = |_| format!("\"{text}\" is no number");
        if text.is_empty() {
            return Ok(0);
        }
        text.parse().map_err(|error| LogError::Corrupt { place: self.log.clone(), what: what(error) })
    }

    fn latest(&mut self, doing: &str) -> Result<Option<Latest>, LogError> {
        let found = self.fields(doing, &["snapshot", "number"])?;
        let (position, number) = (self.number(&found[0])?, self.number(&found[1])?);
        Ok((number > 0).then_some(Latest { position, number }))
    }

    fn parts(&self, number: u64) -> String {
        format!("{}:snapshot:{number}", self.session.place.prefix)
    }

    /// The last entry of the stream of releases that is known.
    fn released(&mut self, action: Action<'_>) -> Result<String, LogError> {
        if let Some(known) = &self.released {
            return Ok(known.clone());
        }
        let releases = &self.releases;
        let found: Vec<(String, Value)> = self.session.ask(action, |connection| {
            redis::cmd("XREVRANGE").arg(releases).arg("+").arg("-").arg("COUNT").arg(1).query(connection)
        })?;
        let last = found.into_iter().next().map_or_else(|| "0-0".to_owned(), |(id, _)| id);
        Ok(self.released.insert(last).clone())
    }

    /// Appends a part of a snapshot to its list.
    fn put_part(&mut self, action: Action<'_>, parts: &str, part: &[u8]) -> Result<(), LogError> {
        self.session.ask(action, |connection| {
            let mut pipe = redis::pipe();
            pipe.atomic().cmd("RPUSH").arg(parts).arg(part).ignore();
            pipe.cmd("EXPIRE").arg(parts).arg(UNFINISHED).ignore();
            pipe.exec(connection)
        })
    }
}

impl Log for Connection {
    fn lease(&mut self) -> Result<LeaseRecord, LogError> {
        let found = self.fields("read the lease", &["epoch", "nonce", "renewals", "free", "holder"])?;
        // It is empty before the first taking.
        let holder = if found[4].is_empty() { Ok(Holder::default()) } else { serde_json::from_str(&found[4]) };
        let what = |error: serde_json::Error| format!("its holder makes no sense: {error}");
        let holder = holder.map_err(|error| LogError::Corrupt { place: self.log.clone(), what: what(error) })?;
        Ok(LeaseRecord {
            epoch: self.number(&found[0])?,
            nonce: self.number(&found[1])?,
            renewals: self.number(&found[2])?,
            is_free: found[3] == "1",
            holder,
        })
    }

    fn take(&mut self, seen: &LeaseRecord, nonce: u64, holder: &Holder) -> Result<Option<LeaseRecord>, LogError> {
        let action = Action::write("take the lease");
        let taken = seen.taken_by(nonce, holder);
        let holder = serde_json::to_string(holder).map_err(|error| action.failed(error.to_string()))?;
        let mut call = self.scripts.take.key(&self.log);
        call.arg(seen.epoch).arg(seen.nonce).arg(seen.renewals).arg(u8::from(seen.is_free));
        call.arg(taken.epoch).arg(nonce).arg(holder);
        let is_taken: bool = self.session.ask(action, |connection| call.invoke(connection))?;
        Ok(is_taken.then_some(taken))
    }

    fn renew(&mut self, held: &LeaseRecord) -> Result<Option<LeaseRecord>, LogError> {
        let mut call = self.scripts.renew.key(&self.log);
        call.arg(held.epoch).arg(held.nonce);
        let renewals: u64 = self.session.ask(Action::write("renew the lease"), |connection| call.invoke(connection))?;
        Ok((renewals > 0).then(|| LeaseRecord { renewals, ..held.clone() }))
    }

    fn release(&mut self, held: &LeaseRecord) -> Result<(), LogError> {
        let mut call = self.scripts.release.key(&self.log);
        call.key(&self.releases).arg(held.epoch).arg(held.nonce);
        self.session.ask(Action::write("give the lease back"), |connection| call.invoke(connection))
    }

    fn append(&mut self, epoch: u64, position: u64, body: &[u8]) -> Result<(), LogError> {
        let doing = format!("append entry {position} of the log");
        let mut call = self.scripts.append.key(&self.log);
        call.key(&self.entries).arg(epoch).arg(position).arg(body);
        let answer =
            self.session.ask(Action::write(&doing), |connection| call.invoke::<(u64, u64, bool)>(connection))?;
        match answer {
            (_, _, true) => Ok(()),
            (current, _, _) if current != epoch => Err(LogError::Deposed { held: epoch, current }),
            (_, last, _) => Err(LogError::NotNext { position, last }),
        }
    }

    fn read(&mut self, after: u64, limit: usize) -> Result<Vec<LogEntry>, LogError> {
        let mut call = self.scripts.read.key(&self.log);
        call.key(&self.entries).arg(after).arg(limit.min(MOST)).arg(READ);
        let answer = self.session.ask(Action::read("read the log"), |connection| call.invoke(connection))?;
        let (first, found): (u64, Vec<(String, u64, Vec<u8>)>) = answer;
        if after + 1 < first {
            return Err(LogError::RemovedHistory { after, first });
        }
        let mut entries = Vec::with_capacity(found.len());
        for (position, (id, epoch, body)) in (after + 1..).zip(found) {
            if id != format!("{position}-0") {
                let what = format!("entry {id} is in the place of entry {position}");
                return Err(LogError::Corrupt { place: self.entries.clone(), what });
            }
            entries.push(LogEntry { position, epoch, body });
        }
        Ok(entries)
    }

    fn ends(&mut self) -> Result<LogEnds, LogError> {
        let found = self.fields("read the ends of the log", &["first", "last"])?;
        Ok(LogEnds { first: self.number(&found[0])?.max(1), last: self.number(&found[1])? })
    }

    fn clock_millis(&mut self) -> Result<Option<i64>, LogError> {
        let action = Action::read("ask for the time");
        let (seconds, micros): (i64, i64) =
            self.session.ask(action, |connection| redis::cmd("TIME").query(connection))?;
        Ok(Some(seconds.saturating_mul(1000).saturating_add(micros / 1000)))
    }

    fn wait(&mut self, after: u64, patience: Duration) -> Result<(), LogError> {
        let action = Action::read("wait for entries of the log");
        let began = Instant::now();
        let released = self.released(action)?;
        loop {
            let left = patience.saturating_sub(began.elapsed());
            // A block of 0 would be one without end, and one that is a little too short a notice.
            let block = left.min(HELD).as_millis() as u64 + 1;
            let streams = [&self.entries, &self.releases];
            let found = self.session.ask(action, |connection| {
                let mut question = redis::cmd("XREAD");
                question
                    .arg("COUNT")
                    .arg(1)
                    .arg("BLOCK")
                    .arg(block)
                    .arg("STREAMS")
                    .arg(&streams)
                    .arg(format!("{after}-0"))
                    .arg(&released);
                question.query::<Value>(connection)
            })?;
            if found != Value::Nil {
                // It may be of the lease.
                self.released = None;
                return Ok(());
            }
            if left <= HELD {
                return Ok(());
            }
        }
    }

    fn put_snapshot(&mut self, position: u64, source: &mut dyn Read) -> Result<(), LogError> {
        let doing = format!("store the snapshot at entry {position}");
        let action = Action::write(&doing);
        let counter = format!("{}:snapshots", self.session.place.prefix);
        let number =
            self.session.ask(action, |connection| redis::cmd("INCR").arg(&counter).query::<u64>(connection))?;
        let key = self.parts(number);
        let mut parts = 0;
        loop {
            let part = next_part(source, PART)?;
            // A list without elements does not exist: the first part may be empty.
            if part.is_empty() && parts > 0 {
                break;
            }
            self.put_part(action, &key, &part)?;
            parts += 1;
        }
        let mut call = self.scripts.complete.key(&self.log);
        call.key(&key).arg(position).arg(number).arg(parts).arg(format!("{}:snapshot:", self.session.place.prefix));
        let is_complete: bool = self.session.ask(action, |connection| call.invoke(connection))?;
        if is_complete { Ok(()) } else { Err(action.failed("its parts are gone: are keys deleted there?")) }
    }

    fn snapshot(&mut self) -> Result<Option<u64>, LogError> {
        Ok(self.latest("find the latest snapshot")?.map(|latest| latest.position))
    }

    fn read_snapshot(&mut self, position: u64, target: &mut dyn Write) -> Result<(), LogError> {
        let doing = format!("read the snapshot at entry {position}");
        let action = Action::read(&doing);
        let gone = || action.failed("there is no such snapshot any more");
        let latest = self.latest(&doing)?.filter(|latest| latest.position == position).ok_or_else(gone)?;
        let key = self.parts(latest.number);
        let parts = self.session.ask(action, |connection| redis::cmd("LLEN").arg(&key).query::<u64>(connection))?;
        for part in 0..parts.max(1) {
            let asked = self.session.ask(action, |connection| {
                redis::cmd("LINDEX").arg(&key).arg(part).query::<Option<Vec<u8>>>(connection)
            });
            let body = asked?.ok_or_else(gone)?;
            target.write_all(&body).map_err(|error| action.failed(error.to_string()))?;
        }
        Ok(())
    }

    fn trim(&mut self, before: u64) -> Result<(), LogError> {
        check_trim(before, self.snapshot()?)?;
        let doing = format!("trim the log before entry {before}");
        let mut call = self.scripts.trim.key(&self.log);
        call.key(&self.entries).arg(before);
        self.session.ask(Action::write(&doing), |connection| call.invoke(connection))
    }
}
