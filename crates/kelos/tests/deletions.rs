//! Values that a turn deletes stay deleted: the verification of a store holds its table against the bodies of the turns.

use jiff::Timestamp;
use kelos_explain::verify::verify;
use kelos_model::{Actor, Event, EventRecord};
use kelos_store::{Commit, Journal, StoredState};
use kelos_store_sqlite::SqliteStore;
use serde_json::{Value, json};

fn set(seq: u64, key: &str, value: Option<Value>) -> Commit {
    let by = Some(Actor::person("me"));
    let event = Event::Register { bucket: "b".to_owned(), key: key.to_owned(), value: value.clone(), by, reason: None };
    let events = vec![EventRecord { seq, at: Timestamp::UNIX_EPOCH, previous: 0, event }];
    Commit { events, registers: vec![("b".to_owned(), key.to_owned(), value)], ..Commit::default() }
}

#[test]
fn a_register_that_is_there_although_it_was_deleted_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kelos.db");
    let mut store = SqliteStore::open(&path).unwrap();
    let lease = store.lease("node", Timestamp::UNIX_EPOCH, 60_000).unwrap().expect("the lead is free");
    let values = [("k", Some(json!(1))), ("k", None), ("l", None), ("l", Some(json!(2)))];
    for (seq, (key, value)) in (1..).zip(values) {
        store.commit(lease, &set(seq, key, value)).unwrap();
    }
    drop(store);
    let told = || {
        let disagreements = verify(&*SqliteStore::open(&path).unwrap().reader(), 9).unwrap().disagreements;
        disagreements.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told(), [] as [&str; 0]);
    let conn = rusqlite::Connection::open(&path).unwrap();
    let again = "INSERT INTO registers (bucket, key, value) SELECT bucket, 'k', value FROM registers";
    assert_eq!(conn.execute(again, []).unwrap(), 1);
    assert_eq!(told(), ["turn 2: it deleted register \"k\" of \"b\", and the table has it"]);
}
