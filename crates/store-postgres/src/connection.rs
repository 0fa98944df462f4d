//! The operations of a log as statements.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use kelos_store::log::adapter::{Action, check_trim, next_part};
use kelos_store::log::{Holder, LeaseRecord, Log, LogEnds, LogEntry, LogError};

use crate::PostgresLog;
use crate::schema::making;
use crate::session::{RELEASED, Session, Tables};

/// The bytes of entries that are read at a time; more only if one entry alone has more.
const READ: i64 = 4 << 20;
/// The bytes of a part of a snapshot.
const PART: usize = 1 << 20;
/// The entries that are deleted at a time.
const DELETED: i64 = 1000;
/// The interval of questions where the server can't tell of entries by itself.
pub(crate) const OFTEN: Duration = Duration::from_millis(50);

const LEASE: usize = 0;
const TAKE: usize = 1;
const RENEW: usize = 2;
const RELEASE: usize = 3;
const APPEND: usize = 4;
const READING: usize = 5;
const ENDS: usize = 6;
const PUT_PART: usize = 7;
const PART_OF: usize = 8;
const SNAPSHOT: usize = 9;
const TRIM: usize = 10;
const DELETE: usize = 11;
const NUMBER: usize = 12;
const CLOCK: usize = 13;

/// The statements, in the order of the constants above.
fn statements(place: &PostgresLog) -> Vec<String> {
    let s = &place.schema;
    let released = if place.is_notifying { format!("pg_notify('{s}', '{RELEASED}')") } else { "1".to_owned() };
    let notice = if place.is_notifying {
        format!("(SELECT count(pg_notify('{s}', position::text)) FROM added)")
    } else {
        "(SELECT count(*) FROM added)".to_owned()
    };
    vec![
        format!("SELECT epoch, nonce, renewals, is_free, holder FROM {s}.log"),
        format!(
            "UPDATE {s}.log SET epoch = $7, nonce = $5, renewals = 0, is_free = false, holder = $6
            WHERE epoch = $1 AND nonce = $2 AND renewals = $3 AND is_free = $4 RETURNING epoch"
        ),
        format!(
            "UPDATE {s}.log SET renewals = renewals + 1
            WHERE epoch = $1 AND nonce = $2 AND NOT is_free RETURNING renewals"
        ),
        format!("UPDATE {s}.log SET is_free = true WHERE epoch = $1 AND nonce = $2 RETURNING {released}"),
        // A taking that is not committed is waited for, and its epoch is seen then; the last position is as old as the statement,
        // and the primary key refuses what has come meanwhile.
        format!(
            "WITH held AS MATERIALIZED (SELECT epoch, first FROM {s}.log FOR SHARE),
            last AS MATERIALIZED (SELECT epoch, greatest(first - 1, (SELECT max(position) FROM {s}.entries)) AS position FROM held),
            added AS (
                INSERT INTO {s}.entries (position, epoch, body)
                SELECT $2, $1, $3 FROM last WHERE last.epoch = $1::bigint AND last.position = $2::bigint - 1
                ON CONFLICT DO NOTHING RETURNING position
            )
            SELECT last.epoch, last.position, {notice} FROM last"
        ),
        // The lengths of large bodies are known without reading them.
        // With no entry it is one row, which has the first position of the log.
        format!(
            "SELECT log.first, summed.position, summed.epoch, summed.body FROM {s}.log LEFT JOIN (
                SELECT position, epoch, body, sum(octet_length(body)) OVER (ORDER BY position) AS bytes
                FROM (SELECT * FROM {s}.entries WHERE position > $1::bigint ORDER BY position LIMIT $2) AS next
            ) AS summed ON bytes <= {READ} OR summed.position = $1::bigint + 1 ORDER BY summed.position"
        ),
        format!("SELECT first, greatest(first - 1, (SELECT max(position) FROM {s}.entries)) FROM {s}.log"),
        format!("INSERT INTO {s}.parts (snapshot, part, body) VALUES ($1, $2, $3)"),
        format!("SELECT body FROM {s}.parts WHERE snapshot = $1 AND part = $2"),
        format!(
            "SELECT snapshot, parts, (SELECT count(*) FROM {s}.parts WHERE parts.snapshot = log.parts) FROM {s}.log
            WHERE snapshot IS NOT NULL"
        ),
        format!("UPDATE {s}.log SET first = $1 WHERE first < $1 AND $1 <= snapshot + 1"),
        format!(
            "DELETE FROM {s}.entries WHERE position IN (
                SELECT position FROM {s}.entries WHERE position < $1 ORDER BY position LIMIT {DELETED}
            ) RETURNING 1"
        ),
        format!("SELECT nextval('{s}.snapshots')"),
        "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint".to_owned(),
    ]
}

pub(crate) struct Connection(Session);

/// The latest snapshot.
struct Latest {
    position: u64,
    /// The number under which its parts are stored.
    number: i64,
    parts: i64,
}

impl Connection {
    pub(crate) fn open(place: PostgresLog) -> Result<Connection, LogError> {
        let tables = Tables {
            channel: place.schema.clone(),
            known_by: "log",
            making: making(&place.schema),
            statements: statements(&place),
        };
        let mut connection = Connection(Session::new(place, tables)?);
        // An address that is wrong is told when it is opened.
        connection.lease_as("open the log")?;
        Ok(connection)
    }

    fn lease_as(&mut self, doing: &str) -> Result<LeaseRecord, LogError> {
        let action = Action::read(doing);
        let rows = self.0.rows(action, LEASE, &[])?;
        let row = rows.first().ok_or_else(|| action.failed("its row is gone: was the table emptied?"))?;
        let text: &str = row.get(4);
        // It is empty before the first taking.
        let holder = if text.is_empty() { Ok(Holder::default()) } else { serde_json::from_str(text) };
        let holder = holder.map_err(|error| LogError::Corrupt {
            place: format!("{}.log", self.0.place.schema),
            what: format!("its holder makes no sense: {error}"),
        })?;
        let number = |column: usize| row.get::<_, i64>(column).cast_unsigned();
        let is_free = row.get(3);
        Ok(LeaseRecord { epoch: number(0), nonce: number(1), renewals: number(2), is_free, holder })
    }

    fn latest(&mut self, doing: &str) -> Result<Option<Latest>, LogError> {
        let rows = self.0.rows(Action::read(doing), SNAPSHOT, &[])?;
        Ok(rows.first().map(|row| Latest {
            position: row.get::<_, i64>(0).cast_unsigned(),
            number: row.get(1),
            parts: row.get(2),
        }))
    }

    /// Makes a snapshot the latest one unless a newer one was stored meanwhile, and deletes the parts of older ones.
    fn complete(&mut self, action: Action<'_>, position: u64, number: i64, parts: i32) -> Result<(), LogError> {
        let s = &self.0.place.schema;
        // The first statement waits for an append; the second one sees its entry.
        let text = format!(
            "SELECT 1 FROM {s}.log FOR UPDATE;
            UPDATE {s}.log SET snapshot = {position}, parts = {number}, first = CASE
                WHEN first = 1 AND NOT EXISTS (SELECT 1 FROM {s}.entries) THEN {position} + 1 ELSE first END
            WHERE coalesce(snapshot, 0) <= {position}
                AND (SELECT count(*) FROM {s}.parts WHERE snapshot = {number}) = {parts};
            DELETE FROM {s}.parts WHERE snapshot < (SELECT parts FROM {s}.log);
            SELECT 1 FROM {s}.log WHERE parts = {number} OR snapshot > {position};"
        );
        match self.0.script(action, &text)?.len() {
            2 => Ok(()),
            _ => Err(action.failed("another snapshot was stored at the same time")),
        }
    }
}

impl Log for Connection {
    fn lease(&mut self) -> Result<LeaseRecord, LogError> {
        self.lease_as("read the lease")
    }

    fn take(&mut self, seen: &LeaseRecord, nonce: u64, holder: &Holder) -> Result<Option<LeaseRecord>, LogError> {
        let action = Action::write("take the lease");
        let text = serde_json::to_string(holder).map_err(|error| action.failed(error.to_string()))?;
        let (epoch, old, renewals) = (seen.epoch.cast_signed(), seen.nonce.cast_signed(), seen.renewals.cast_signed());
        let lease = seen.taken_by(nonce, holder);
        let (new, next) = (nonce.cast_signed(), lease.epoch.cast_signed());
        let taken = self.0.rows(action, TAKE, &[&epoch, &old, &renewals, &seen.is_free, &new, &text, &next])?;
        Ok((!taken.is_empty()).then_some(lease))
    }

    fn renew(&mut self, held: &LeaseRecord) -> Result<Option<LeaseRecord>, LogError> {
        let values = (held.epoch.cast_signed(), held.nonce.cast_signed());
        let renewed = self.0.rows(Action::write("renew the lease"), RENEW, &[&values.0, &values.1])?;
        let renewals = renewed.first().map(|row| row.get::<_, i64>(0).cast_unsigned());
        Ok(renewals.map(|renewals| LeaseRecord { renewals, ..held.clone() }))
    }

    fn release(&mut self, held: &LeaseRecord) -> Result<(), LogError> {
        let values = (held.epoch.cast_signed(), held.nonce.cast_signed());
        self.0.rows(Action::write("give the lease back"), RELEASE, &[&values.0, &values.1]).map(drop)
    }

    fn append(&mut self, epoch: u64, position: u64, body: &[u8]) -> Result<(), LogError> {
        let doing = format!("append entry {position} of the log");
        let action = Action::write(&doing);
        let rows = self.0.rows(action, APPEND, &[&epoch.cast_signed(), &position.cast_signed(), &body])?;
        let row = rows.first().ok_or_else(|| action.failed("the row of the lease is gone: was the table emptied?"))?;
        let number = |column: usize| row.get::<_, i64>(column).cast_unsigned();
        match (number(0), number(1), number(2)) {
            (_, _, 1) => Ok(()),
            (current, ..) if current != epoch => Err(LogError::Deposed { held: epoch, current }),
            // An entry at this position came while the statement waited.
            (_, last, _) if last + 1 == position => Err(LogError::NotNext { position, last: position }),
            (_, last, _) => Err(LogError::NotNext { position, last }),
        }
    }

    fn read(&mut self, after: u64, limit: usize) -> Result<Vec<LogEntry>, LogError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let action = Action::read("read the log");
        let rows = self.0.rows(action, READING, &[&after.cast_signed(), &limit])?;
        let row = rows.first().ok_or_else(|| action.failed("its row is gone: was the table emptied?"))?;
        let first = row.get::<_, i64>(0).cast_unsigned();
        let entry = |row: &tokio_postgres::Row| {
            let position = row.get::<_, Option<i64>>(1)?.cast_unsigned();
            Some(LogEntry { position, epoch: row.get::<_, i64>(2).cast_unsigned(), body: row.get(3) })
        };
        let entries: Vec<LogEntry> = rows.iter().filter_map(entry).collect();
        if entries.first().is_some_and(|entry| entry.position == after + 1) {
            return Ok(entries);
        }
        if after + 1 < first {
            return Err(LogError::RemovedHistory { after, first });
        }
        match entries.first() {
            None => Ok(entries),
            Some(entry) => Err(LogError::Corrupt {
                place: format!("{}.entries", self.0.place.schema),
                what: format!("entry {} follows entry {after}", entry.position),
            }),
        }
    }

    fn ends(&mut self) -> Result<LogEnds, LogError> {
        let action = Action::read("read the ends of the log");
        let rows = self.0.rows(action, ENDS, &[])?;
        let row = rows.first().ok_or_else(|| action.failed("its row is gone: was the table emptied?"))?;
        let number = |column: usize| row.get::<_, i64>(column).cast_unsigned();
        Ok(LogEnds { first: number(0), last: number(1) })
    }

    fn clock_millis(&mut self) -> Result<Option<i64>, LogError> {
        let rows = self.0.rows(Action::read("ask for the time"), CLOCK, &[])?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    fn wait(&mut self, after: u64, patience: Duration) -> Result<(), LogError> {
        let action = Action::read("wait for entries of the log");
        let began = Instant::now();
        let is_new = self.0.start_listening(action)?;
        if self.0.place.is_notifying {
            // The server has told of each entry since it was asked to, and a question finds those from before.
            let is_there = is_new && self.ends()?.last > after;
            return if is_there { Ok(()) } else { self.0.listen(action, after, patience) };
        }
        while self.ends()?.last <= after && began.elapsed() < patience {
            self.0.listen(action, after, patience.saturating_sub(began.elapsed()).min(OFTEN))?;
        }
        Ok(())
    }

    fn put_snapshot(&mut self, position: u64, source: &mut dyn Read) -> Result<(), LogError> {
        let doing = format!("store the snapshot at entry {position}");
        let action = Action::write(&doing);
        let numbers = self.0.rows(action, NUMBER, &[])?;
        let number: i64 = numbers.first().ok_or_else(|| action.failed("it has no number"))?.get(0);
        let mut parts = 0;
        loop {
            let part = next_part(source, PART)?;
            if part.is_empty() {
                break;
            }
            self.0.rows(action, PUT_PART, &[&number, &parts, &part])?;
            parts += 1;
        }
        self.complete(action, position, number, parts)
    }

    fn snapshot(&mut self) -> Result<Option<u64>, LogError> {
        Ok(self.latest("find the latest snapshot")?.map(|latest| latest.position))
    }

    fn read_snapshot(&mut self, position: u64, target: &mut dyn Write) -> Result<(), LogError> {
        let doing = format!("read the snapshot at entry {position}");
        let action = Action::read(&doing);
        let gone = || action.failed("there is no such snapshot any more");
        let latest = self.latest(&doing)?.filter(|latest| latest.position == position).ok_or_else(gone)?;
        for part in 0..latest.parts {
            let part = i32::try_from(part).map_err(|error| action.failed(error.to_string()))?;
            let rows = self.0.rows(action, PART_OF, &[&latest.number, &part])?;
            let body: &[u8] = rows.first().ok_or_else(gone)?.get(0);
            target.write_all(body).map_err(|error| action.failed(error.to_string()))?;
        }
        Ok(())
    }

    fn trim(&mut self, before: u64) -> Result<(), LogError> {
        let doing = format!("trim the log before entry {before}");
        let action = Action::write(&doing);
        check_trim(before, self.snapshot()?)?;
        let before = before.cast_signed();
        self.0.rows(action, TRIM, &[&before])?;
        while !self.0.rows(action, DELETE, &[&before])?.is_empty() {}
        Ok(())
    }
}
