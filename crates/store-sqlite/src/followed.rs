//! The position of a node in the log that it follows, and the times of leading.

use kelos_store::StoreError;
use kelos_store::log::Reign;
use rusqlite::{Connection, Row};

use super::check::{self, Binding, Sum};
use super::fault::Fault;
use super::rows::{column, moment};

pub(super) const FOLLOWED: &str = "one, entry, epoch, check_value";

pub(super) const REIGN: &str = "epoch, node, address, at, reason, check_value";

/// The times of leading that are kept.
const KEPT: i64 = 1000;

/// The last entry, and the last epoch that was begun; none in a database that follows no log.
pub(super) fn read(conn: &Connection) -> Result<Option<(u64, u64)>, Fault> {
    let mut statement = conn.prepare_cached(&format!("SELECT {FOLLOWED} FROM followed"))?;
    let mut rows = statement.query([])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    check::test(row, 0..3, 3, "its position in the log")?;
    Ok(Some((row.get(1)?, row.get(2)?)))
}

/// Writes the position.
pub(super) fn write(conn: &Connection, entry: u64, epoch: u64) -> Result<(), Fault> {
    let sql = "INSERT INTO followed (one, entry, epoch, check_value) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (one) DO UPDATE SET entry = ?2, epoch = ?3, check_value = ?4";
    let (mut statement, mut sum) = (conn.prepare_cached(sql)?, Sum::default());
    let mut row = Binding::new(&mut statement, &mut sum);
    row.number(1)?.number(column(entry))?.number(column(epoch))?.check_value()?.execute()?;
    Ok(())
}

/// Moves on to the next entry; gives the epoch that is in force.
pub(super) fn advance(conn: &Connection, entry: u64) -> Result<u64, Fault> {
    let (last, epoch) = read(conn)?.unwrap_or_default();
    if entry != last + 1 {
        let what = format!("entry {entry} of the log was to be followed, expected entry {}", last + 1);
        return Err(Fault::Nonsense(what));
    }
    write(conn, entry, epoch)?;
    Ok(epoch)
}

/// Removes the position: from now on the database is its own log.
pub(super) fn leave(conn: &Connection) -> Result<(), Fault> {
    conn.execute("DELETE FROM followed", [])?;
    Ok(())
}

/// Fails for a database that is the state of a node: only its log may be written.
pub(super) fn is_own_log(conn: &Connection, place: &str) -> Result<(), Fault> {
    match read(conn)? {
        None => Ok(()),
        Some(_) => Err(StoreError::Medium {
            doing: format!("lead on {place}"),
            cause: "it is the state of a node that follows a log; start the node with `--store`, or take its data from there with \
                    `kelos move`"
                .to_owned(),
        }
        .into()),
    }
}

/// Writes a time of leading.
pub(super) fn write_reign(conn: &Connection, reign: &Reign) -> Result<(), Fault> {
    let sql =
        "INSERT OR REPLACE INTO reigns (epoch, node, address, at, reason, check_value) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let (mut statement, mut sum) = (conn.prepare_cached(sql)?, Sum::default());
    let mut row = Binding::new(&mut statement, &mut sum);
    row.number(column(reign.epoch))?.text(&*reign.node)?.text(reign.address.as_deref())?;
    row.number(reign.at.as_millisecond())?.text(&*reign.reason)?.check_value()?.execute()?;
    conn.execute("DELETE FROM reigns WHERE epoch <= (SELECT max(epoch) FROM reigns) - ?1", [KEPT])?;
    Ok(())
}

/// The last times of leading, the newest first.
pub(super) fn reigns(conn: &Connection, limit: usize) -> Result<Vec<Reign>, Fault> {
    let mut statement = conn.prepare_cached(&format!("SELECT {REIGN} FROM reigns ORDER BY epoch DESC LIMIT ?1"))?;
    let mut rows = statement.query([i64::try_from(limit).unwrap_or(i64::MAX)])?;
    let mut reigns = Vec::new();
    while let Some(row) = rows.next()? {
        reigns.push(read_reign(row)?);
    }
    Ok(reigns)
}

/// Whether a time of leading is among those that are kept, or is older than all of them.
pub(super) fn may_have_had(conn: &Connection, reign: &Reign) -> Result<bool, Fault> {
    let kept = reigns(conn, usize::MAX)?;
    Ok(kept.contains(reign) || kept.last().is_some_and(|oldest| reign.epoch < oldest.epoch))
}

fn read_reign(row: &Row<'_>) -> Result<Reign, Fault> {
    check::test(row, 0..5, 5, "a time of leading")?;
    Ok(Reign {
        epoch: row.get(0)?,
        node: row.get(1)?,
        address: row.get(2)?,
        at: moment(row.get(3)?)?,
        reason: row.get(4)?,
    })
}
