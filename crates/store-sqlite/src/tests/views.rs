//! SQL of users over the views.

use std::time::Duration;

use kelos_store::{Commit, Journal, StoreError};
use serde_json::json;

use super::{Folder, lead, planning, run};
use crate::{SqlError, SqlRows, SqlValue, SqliteViews};

const LIMIT: Duration = Duration::from_secs(60);

/// Rows as lines, their values with bars between.
#[derive(Default)]
struct Lines {
    lines: Vec<String>,
    most: Option<usize>,
}

impl SqlRows for Lines {
    fn columns(&mut self, names: &[String]) {
        self.lines.push(names.join("|"));
    }

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        let shown = values.into_iter().map(|value| match value {
            SqlValue::Null => "-".to_owned(),
            SqlValue::Integer(number) => number.to_string(),
            SqlValue::Real(number) => format!("{number:.3}"),
            SqlValue::Text(text) => text,
            SqlValue::Bytes(bytes) => format!("{} bytes", bytes.len()),
        });
        self.lines.push(shown.collect::<Vec<_>>().join("|"));
        self.most.is_none_or(|most| self.lines.len() <= most)
    }
}

fn filled() -> Folder {
    let folder = Folder::new();
    let mut store = folder.open();
    let lease = lead(&mut store);
    let mut commit = planning("etl", 0, 3);
    commit.runs.push(run("etl", 2));
    commit.registers.push(("notes".to_owned(), "a".to_owned(), Some(json!({ "x": 1 }))));
    commit.registers.push(("kelos.access".to_owned(), "token/1".to_owned(), Some(json!("a hash"))));
    store.commit(lease, &commit).unwrap();
    folder
}

fn answer(folder: &Folder, sql: &str) -> Result<Vec<String>, SqlError> {
    let mut lines = Lines::default();
    SqliteViews::open(&folder.path())?.query(sql, LIMIT, &mut lines)?;
    Ok(lines.lines)
}

fn told(folder: &Folder, sql: &str) -> String {
    answer(folder, sql).unwrap_err().to_string()
}

#[test]
fn every_view_answers_and_its_columns_have_names() {
    let folder = filled();
    for (view, columns) in SqliteViews::open(&folder.path()).unwrap().list().unwrap() {
        assert!(
            columns.iter().all(|column| column.chars().all(|one| one.is_ascii_lowercase() || one == '_')),
            "{view}"
        );
        let rows = answer(&folder, &format!("select * from {view}")).unwrap();
        assert_eq!(rows[0], columns.join("|"));
    }
}

#[test]
fn times_states_and_keys_read_as_everywhere() {
    let folder = filled();
    let slots =
        answer(&folder, "select workflow, key, scheduled_at, state, since from slots order by scheduled_at limit 2");
    let expected = [
        "workflow|key|scheduled_at|state|since",
        "etl|1970-01-01T00:01Z|1970-01-01T00:01:00.000Z|waiting|1970-01-01T00:00:00.005Z",
        "etl|1970-01-01T00:02Z|1970-01-01T00:02:00.000Z|waiting|1970-01-01T00:00:00.005Z",
    ];
    assert_eq!(slots.unwrap(), expected);
    let runs = answer(&folder, "select position, key, number, state, executor, seconds from runs").unwrap();
    assert_eq!(runs[1], "2|1970-01-01T00:02Z|1|dispatched|command|-");
    let events = answer(
        &folder,
        "select count(*), min(event), max(position) from events where at_ms >= ms('1970-01-01T00:00Z')",
    );
    assert_eq!(events.unwrap()[1], "3|planned|3");
    assert_eq!(answer(&folder, "select * from registers").unwrap(), ["bucket|key|value", "notes|a|{\"x\":1}"]);
    let of_json = answer(&folder, "select j.key, j.value from registers r, json_each(r.value) j").unwrap();
    assert_eq!(of_json[1], "x|1");
    let series = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3) select sum(i) from n";
    assert_eq!(answer(&folder, series).unwrap()[1], "6");
}

#[test]
fn nothing_but_the_views_is_read_and_nothing_is_written() {
    let folder = filled();
    let before = std::fs::read(folder.path()).unwrap();
    for sql in [
        "delete from slots",
        "delete from main.slots",
        "insert into registers values ('a', 'b', 'c')",
        "create table x (y)",
        "create temp table x as select * from runs",
        "drop view slots",
        "pragma user_version = 3",
        "pragma table_info(slots)",
        "attach database '/tmp/other.db' as other",
        "vacuum into '/tmp/other.db'",
        "select * from main.slots",
        "select * from main.registers",
        "select * from deletions",
        "select * from sqlite_schema",
        "select load_extension('x')",
        "begin",
    ] {
        let told = answer(&folder, sql).map(|_| ()).unwrap_err();
        assert!(matches!(told, SqlError::Refused(_)), "{sql}: {told:?}");
    }
    assert_eq!(std::fs::read(folder.path()).unwrap(), before);
}

#[test]
fn a_wrong_query_is_told_what_is_wrong_and_where() {
    let folder = filled();
    assert_eq!(told(&folder, "select stat from runs"), "no such column: stat, at \"stat from runs\"");
    assert_eq!(told(&folder, "selec 1"), "near \"selec\": syntax error, at \"selec 1\"");
    assert_eq!(told(&folder, "select 1; select 2"), "expected one statement");
    assert_eq!(told(&folder, ""), "expected one statement that reads, such as `select … from runs`");
    assert_eq!(told(&folder, "select * from slot"), "no such table: slot");
    assert!(told(&folder, "select ms('tomorrow')").contains("tomorrow"), "{}", told(&folder, "select ms('tomorrow')"));
    assert!(told(&folder, "select * from main.slots").contains("a query can read workflows, definitions, slots"));
}

#[test]
fn a_query_ends_when_its_time_is_over_or_its_reader_goes_away() {
    let folder = filled();
    let mut views = SqliteViews::open(&folder.path()).unwrap();
    let endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
    let late = views.query(endless, Duration::from_millis(20), &mut Lines::default());
    assert_eq!(late.unwrap_err().to_string(), "it took longer than 0.02 s");
    let mut few = Lines { most: Some(2), ..Lines::default() };
    let endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n";
    assert!(matches!(views.query(endless, LIMIT, &mut few), Err(SqlError::Stopped)));
    assert_eq!(few.lines, ["i", "1", "2"]);
    assert_eq!(answer(&folder, "select count(*) from runs").unwrap()[1], "1", "and the next one is answered");
}

#[test]
fn a_leader_writes_while_a_query_is_answered() {
    let folder = filled();
    let mut store = folder.open();
    let lease = lead(&mut store);

    /// Commits a turn with each row.
    struct Writer<'a>(&'a mut dyn FnMut(), usize);
    impl SqlRows for Writer<'_> {
        fn columns(&mut self, _: &[String]) {}

        fn row(&mut self, _: Vec<SqlValue>) -> bool {
            (self.0)();
            self.1 += 1;
            true
        }
    }

    let mut last = 3;
    let mut write = || {
        store.commit(lease, &planning("other", last, 2)).unwrap();
        last += 2;
    };
    let mut writer = Writer(&mut write, 0);
    SqliteViews::open(&folder.path()).unwrap().query("select * from events", LIMIT, &mut writer).unwrap();
    assert_eq!(writer.1, 3, "all rows are of one moment");
    assert_eq!(answer(&folder, "select count(*) from events").unwrap()[1], "9");
}

#[test]
fn what_is_no_database_of_this_program_is_refused() {
    let folder = Folder::new();
    assert!(matches!(SqliteViews::open(&folder.path()), Err(StoreError::Medium { .. })));
    let mut store = folder.open();
    let lease = lead(&mut store);
    store.commit(lease, &Commit::default()).unwrap();
    drop(store);
    rusqlite::Connection::open(folder.path()).unwrap().pragma_update(None, "user_version", 77).unwrap();
    assert!(matches!(SqliteViews::open(&folder.path()), Err(StoreError::TooNew { .. })));
}
