//! The epoch in the database, by which the commits of an earlier leader are refused.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::check;
use super::fault::Fault;
use super::rows::column;

/// The epoch that is in force.
pub(super) fn current(conn: &Connection) -> Result<u64, Fault> {
    let mut statement = conn.prepare_cached("SELECT one, epoch, node, taken_at, check_value FROM leadership")?;
    let mut rows = statement.query([])?;
    let row = rows.next()?.ok_or_else(|| Fault::Damaged("nothing is known of its leadership".to_owned()))?;
    check::test(row, 0..4, 4, "the leadership")?;
    Ok(row.get(1)?)
}

/// Begins the next epoch, led by `node`.
pub(super) fn begin(tx: &Transaction<'_>, node: &str, now: i64) -> Result<u64, Fault> {
    let epoch = current(tx)? + 1;
    write(tx, epoch, Some(node), Some(now))?;
    Ok(epoch)
}

/// Puts an epoch of a log in force.
pub(super) fn put(tx: &Transaction<'_>, epoch: u64, node: &str, at: i64) -> Result<(), Fault> {
    write(tx, epoch, Some(node), Some(at))
}

/// Ends an epoch; false if it had ended already.
pub(super) fn end(conn: &mut Connection, epoch: u64) -> Result<bool, Fault> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if current(&tx)? != epoch {
        return Ok(false);
    }
    write(&tx, epoch + 1, None, None)?;
    tx.commit()?;
    Ok(true)
}

fn write(tx: &Transaction<'_>, epoch: u64, node: Option<&str>, taken_at: Option<i64>) -> Result<(), Fault> {
    let sql = "UPDATE leadership SET epoch = ?2, node = ?3, taken_at = ?4, check_value = ?5 WHERE one = ?1";
    let (mut statement, mut sum) = (tx.prepare_cached(sql)?, check::Sum::default());
    let mut row = check::Binding::new(&mut statement, &mut sum);
    row.number(1)?.number(column(epoch))?.text(node)?.number(taken_at)?.check_value()?.execute()?;
    Ok(())
}
