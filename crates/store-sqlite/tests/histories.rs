//! The same turns leave the same data, however a store came by them.

use std::fmt::Write as _;
use std::path::Path;

use jiff::Timestamp;
use kelos_store::suite::history;
use kelos_store::{Commit, Journal, Lease, MemoryStore, PageRequest, TurnRecord};
use kelos_store_sqlite::SqliteStore;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

const FILES: [&str; 2] = ["kelos.db", "kelos.db-wal"];

fn open(folder: &TempDir) -> SqliteStore {
    SqliteStore::open(folder.path().join("kelos.db")).unwrap()
}

fn lead(store: &mut dyn Journal) -> Lease {
    store.lease("node", Timestamp::UNIX_EPOCH, 60_000).unwrap().expect("the lead is free")
}

/// Everything in a database, in the order of the primary keys.
fn dump(folder: &TempDir) -> String {
    let path = folder.path().join("kelos.db");
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut tables = conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(tables.len() > 9, "{tables:?}");
    let mut told = String::new();
    for table in tables {
        let mut columns = conn.prepare("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk").unwrap();
        let key: Vec<String> = columns.query_map([&table], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let sql = format!("SELECT * FROM {table} ORDER BY {}", key.join(", "));
        let mut statement = conn.prepare(&sql).unwrap();
        let count = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            write!(told, "{table}").unwrap();
            for column in 0..count {
                match row.get_ref(column).unwrap() {
                    ValueRef::Text(text) => write!(told, " {:?}", String::from_utf8_lossy(text)),
                    other => write!(told, " {other:?}"),
                }
                .unwrap();
            }
            told.push('\n');
        }
    }
    told
}

fn without_epochs(dump: &str) -> String {
    let named = |line: &&str| !line.starts_with("leadership ") && !line.starts_with("turns ");
    dump.lines().filter(named).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn same(one: &str, other: &str, what: &str) {
    for (one, other) in one.lines().zip(other.lines()) {
        assert_eq!(one, other, "{what}");
    }
    assert_eq!(one.len(), other.len(), "{what}");
}

fn turns(store: &dyn Journal) -> Vec<TurnRecord> {
    store.reader().turns(PageRequest::oldest(1000)).unwrap().rows
}

fn copied(from: &Path) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in FILES.iter().filter(|name| from.join(name).exists()) {
        std::fs::copy(from.join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// Whether the lead is given back, and taken again, before a turn: every way of writing a history has the same epochs.
fn is_handed_over(turn: usize) -> bool {
    turn % 7 == 3
}

/// Writes turns to a store, which `next` may put another one in the place of whenever the lead is given back.
fn write<S: Journal>(mut store: S, turns: &[(usize, Commit)], mut next: impl FnMut(S) -> S) -> S {
    let mut lease = None;
    for (turn, commit) in turns {
        if let Some(lease) = lease.take_if(|_| is_handed_over(*turn)) {
            store.release(lease).unwrap();
            store = next(store);
        }
        let lease = *lease.get_or_insert_with(|| lead(&mut store));
        store.commit(lease, commit).unwrap();
    }
    store
}

#[test]
fn the_same_turns_leave_the_same_data() {
    for seed in 0..4 {
        let history: Vec<(usize, Commit)> = history(seed, 50).into_iter().enumerate().collect();
        let (head, tail) = history.split_at(24);
        assert!(is_handed_over(tail[0].0));

        let folder = tempfile::tempdir().unwrap();
        let whole = write(open(&folder), &history, |store| store);
        let expected = dump(&folder);

        let reopened = tempfile::tempdir().unwrap();
        write(open(&reopened), &history, |store| {
            drop(store);
            open(&reopened)
        });
        same(&dump(&reopened), &expected, "closed and opened again");

        let first = tempfile::tempdir().unwrap();
        let mut store = write(open(&first), head, |store| store);
        let lease = Lease { epoch: turns(&store).last().unwrap().epoch };
        store.release(lease).unwrap();
        let copy = copied(first.path());
        write(open(&copy), tail, |store| store);
        same(&dump(&copy), &expected, "a copy and what came after it");

        // Under one lease all the time: what names the epoch differs, and nothing else.
        let alone = tempfile::tempdir().unwrap();
        let mut store = open(&alone);
        let lease = lead(&mut store);
        history.iter().for_each(|(_, commit)| store.commit(lease, commit).unwrap());
        same(&without_epochs(&dump(&alone)), &without_epochs(&expected), "under one lease");

        let memory = write(MemoryStore::new(), &history, |store| store);
        assert_eq!(turns(&memory), turns(&whole));
        assert_eq!(turns(&whole).len(), history.iter().filter(|(_, commit)| !commit.is_empty()).count());
    }
}
