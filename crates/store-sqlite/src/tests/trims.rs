//! The room that removed history leaves.

use kelos_model::history::{RemovedHistory, Trim};
use kelos_store::{Commit, Journal, StoredState};
use rusqlite::Connection;

use super::damage::turn;
use crate::SqliteStore;
use crate::schema::{STEPS, migrate};
use crate::trim::{FREE_PAGES, FREE_SHARE, GIVEN_BACK};

fn number(path: &std::path::Path, sql: &str) -> i64 {
    Connection::open(path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_file_gives_back_the_room_of_what_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kelos.db");
    let mut store = SqliteStore::open(&path).unwrap();
    let lease = store.lease("node", jiff::Timestamp::UNIX_EPOCH, 1000).unwrap().unwrap();
    let mut last = 0;
    for _ in 0..40 {
        let commit = turn("w", last, 1000);
        last += commit.events.len() as u64;
        store.commit(lease, &commit).unwrap();
    }
    drop(store);
    let full = number(&path, "PRAGMA page_count");
    let mut store = SqliteStore::open(&path).unwrap();
    let lease = store.lease("node", jiff::Timestamp::UNIX_EPOCH, 1000).unwrap().unwrap();
    for first in 0..38 {
        let stretches = vec![(first * 1000 + 1, (first + 1) * 1000)];
        let trim = Some(Trim { until: first + 1, stretches });
        store.commit(lease, &Commit { trim, ..Commit::default() }).unwrap();
    }
    assert_eq!(store.reader().damage(9).unwrap(), Vec::<String>::new());
    drop(store);
    let (left, free) = (number(&path, "PRAGMA page_count"), number(&path, "PRAGMA freelist_count"));
    assert!(left < full, "{left} of {full} pages");
    assert!(free < FREE_PAGES + GIVEN_BACK || free * FREE_SHARE < left, "{free} of {left} pages are free");
}

#[test]
fn a_file_from_before_is_rebuilt_when_it_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kelos.db");
    let mut conn = Connection::open(&path).unwrap();
    migrate(&mut conn, &STEPS[..22], "x").unwrap();
    drop(conn);
    assert_eq!(number(&path, "PRAGMA auto_vacuum"), 0);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(number(&path, "PRAGMA auto_vacuum"), 2);
    assert_eq!(store.reader().removed_history().unwrap(), RemovedHistory { is_new: true, ..RemovedHistory::default() });
    let new = folder.path().join("new.db");
    drop(SqliteStore::open(&new).unwrap());
    assert_eq!(number(&new, "PRAGMA auto_vacuum"), 2);
}
