//! The schema, by numbered steps that only go forward.

use kelos_store::StoreError;
use rusqlite::{Connection, TransactionBehavior};

use super::fault::Fault;
use super::{blocks, kinds, members, nineteenth, trim, turns, twelfth};

/// A step from one version to the next.
#[derive(Clone, Copy)]
pub(super) enum Step {
    Sql(&'static str),
    /// A change that SQL alone can't express.
    Code(fn(&Connection) -> Result<(), Fault>),
}

/// Step `n` (from 1) leads from version `n - 1` to version `n`.
pub(super) const STEPS: &[Step] = &[
    Step::Sql(include_str!("0001.sql")),
    Step::Sql(include_str!("0002.sql")),
    Step::Sql(include_str!("0003.sql")),
    Step::Sql(include_str!("0004.sql")),
    Step::Sql(include_str!("0005.sql")),
    Step::Sql(include_str!("0006.sql")),
    Step::Sql(include_str!("0007.sql")),
    Step::Sql(include_str!("0008.sql")),
    Step::Code(members::rename),
    Step::Code(turns::begin),
    Step::Code(kinds::tell_apart),
    Step::Code(twelfth::step),
    Step::Sql(include_str!("0013.sql")),
    Step::Sql(include_str!("0014.sql")),
    Step::Sql(include_str!("0015.sql")),
    Step::Sql(include_str!("0016.sql")),
    Step::Sql(include_str!("0017.sql")),
    Step::Sql(include_str!("0018.sql")),
    Step::Code(nineteenth::step),
    Step::Sql(include_str!("0020.sql")),
    Step::Sql(include_str!("0021.sql")),
    Step::Sql(include_str!("0022.sql")),
    Step::Code(trim::step),
    Step::Sql(include_str!("0024.sql")),
    Step::Code(blocks::step),
    Step::Sql(include_str!("0026.sql")),
];

/// "Kelo" in the header of the file: it distinguishes our databases from those of other programs.
pub(super) const APPLICATION: i64 = 0x4b65_6c6f;

/// Refuses a database that isn't ours or is newer than `known`; gives its version, 0 when it is empty. It reads more than once: in a transaction,
/// where others may write.
pub(super) fn check(conn: &Connection, known: u32, place: &str) -> Result<u32, Fault> {
    let found = conn.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0))?;
    let application = conn.query_row("PRAGMA application_id", [], |row| row.get::<_, i64>(0))?;
    let tables = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
    if application != APPLICATION && (found, application, tables) != (0, 0, 0) {
        return Err(Fault::Nonsense("it is the database of another program".to_owned()));
    }
    if found > known {
        return Err(StoreError::TooNew { place: place.to_owned(), found, known }.into());
    }
    Ok(found)
}

/// Applies the missing steps, all or none of them.
pub(super) fn migrate(conn: &mut Connection, steps: &[Step], place: &str) -> Result<(), Fault> {
    let known = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = check(&tx, known, place)?;
    if found == known {
        return Ok(());
    }
    for step in &steps[found as usize..] {
        match step {
            Step::Sql(text) => tx.execute_batch(text)?,
            Step::Code(change) => change(&tx)?,
        }
    }
    tx.pragma_update(None, "application_id", APPLICATION)?;
    tx.pragma_update(None, "user_version", known)?;
    tx.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(conn: &Connection) -> u32 {
        check(conn, 99, "x").unwrap()
    }

    #[test]
    fn steps_are_taken_once_and_in_order() {
        let mut conn = Connection::open_in_memory().unwrap();
        let steps =
            ["CREATE TABLE a (x)", "ALTER TABLE a ADD COLUMN y; INSERT INTO a VALUES (1, 2)", "UPDATE a SET y = x + y"]
                .map(Step::Sql);
        for known in [0, 1, 1, 3, 3] {
            migrate(&mut conn, &steps[..known], "x").unwrap();
            assert_eq!(version(&conn), known as u32);
        }
        assert_eq!(conn.query_row("SELECT x, y FROM a", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap(), (1, 3));
    }

    #[test]
    fn a_step_that_fails_leaves_the_version_before() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, &[Step::Sql("CREATE TABLE a (x)")], "x").unwrap();
        let steps = ["CREATE TABLE a (x)", "CREATE TABLE b (x)", "nonsense"].map(Step::Sql);
        migrate(&mut conn, &steps, "x").unwrap_err();
        assert_eq!(version(&conn), 1);
        conn.query_row("SELECT count(*) FROM b", [], |_| Ok(())).unwrap_err();
    }

    #[test]
    fn the_schema_is_made_by_its_steps() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, STEPS, "x").unwrap();
        assert_eq!(version(&conn) as usize, STEPS.len());
    }
}
