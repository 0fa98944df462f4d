//! The sizes of tables, for people who look for what takes the space.

use rusqlite::Connection;

use super::fault::Fault;

/// The size of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSize {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: u64,
    /// The bytes of its pages, with those of its indexes.
    pub bytes: u64,
}

/// The sizes of all tables, by name.
pub(super) fn sizes(conn: &Connection) -> Result<Vec<TableSize>, Fault> {
    let sql = "SELECT s.tbl_name, sum(d.pgsize) FROM dbstat d JOIN sqlite_schema s ON s.name = d.name \
               WHERE d.aggregate = TRUE GROUP BY s.tbl_name ORDER BY s.tbl_name";
    let mut statement = conn.prepare(sql)?;
    let named: Vec<(String, u64)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    for (name, bytes) in named {
        // The names are those of the schema, which only this program writes.
        let rows = conn.query_row(&format!("SELECT count(*) FROM \"{name}\""), [], |row| row.get(0))?;
        found.push(TableSize { name, rows, bytes });
    }
    Ok(found)
}
