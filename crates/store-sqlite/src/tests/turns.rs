//! The records of turns, in databases that have none yet, or that were damaged.

use kelos_store::{Digest, Queries, StoredState, TurnRecord};

use super::damage::turn;
use super::*;

fn turns(reader: &dyn Queries) -> Vec<TurnRecord> {
    reader.turns(PageRequest::oldest(1000)).unwrap().rows
}

/// The records, which agree with their events.
#[track_caller]
pub(super) fn agreeing(reader: &dyn Queries) -> Vec<TurnRecord> {
    let turns = turns(reader);
    let mut before: Option<&TurnRecord> = None;
    for turn in &turns {
        assert!(turn.follows(before), "{turn:?} after {before:?}");
        let digest = before.map_or_else(Digest::default, |before| before.digest);
        assert_eq!(reader.recount(turn, &digest).unwrap().digest, turn.digest, "{turn:?}");
        before = Some(turn);
    }
    turns
}

/// A database of the ninth schema, made of one of the tenth.
fn ninth() -> Folder {
    let folder = super::tenth::left();
    let conn = Connection::open(folder.path()).unwrap();
    conn.execute_batch("DROP TABLE turns; PRAGMA user_version = 9").unwrap();
    folder
}

#[test]
fn a_database_without_records_gets_one_for_all_that_it_has() {
    let folder = ninth();
    let mut store = folder.open();
    assert_eq!(store.damage(9).unwrap(), [] as [&str; 0]);
    let [opening] = agreeing(&*store.reader())[..] else { panic!("one record") };
    assert!(opening.is_opening());
    let last = store.reader().events(&EventFilter::default(), PageRequest::newest(1)).unwrap().rows;
    let told = (opening.turn, opening.epoch, opening.at, opening.first_event, opening.events, opening.body);
    assert_eq!(told, (1, 0, last[0].at, 1, 247, 1));
    // It continues from there, and is migrated once.
    let lease = lead(&mut store);
    store.commit(lease, &turn("c", 247, 40)).unwrap();
    drop(store);
    let found = agreeing(&*folder.open().reader());
    assert_eq!((found.len(), found[0]), (2, opening));
    assert_eq!((found[1].turn, found[1].epoch, found[1].first_event), (2, lease.epoch, 248));
}

#[test]
fn an_empty_database_without_records_begins_with_its_first_turn() {
    let folder = Folder::new();
    migrate(&mut Connection::open(folder.path()).unwrap(), &STEPS[..9], "x").unwrap();
    let mut store = folder.open();
    assert_eq!(turns(&*store.reader()), []);
    let lease = lead(&mut store);
    store.commit(lease, &turn("a", 0, 6)).unwrap();
    let [first] = agreeing(&*store.reader())[..] else { panic!("one record") };
    assert!(!first.is_opening());
}

/// A workflow that lost its name must not keep people from opening the rest, to inspect it.
#[test]
fn a_damaged_database_is_brought_up_to_date_all_the_same() {
    let folder = ninth();
    let conn = Connection::open(folder.path()).unwrap();
    conn.execute_batch("DELETE FROM workflows; DELETE FROM events WHERE seq = 3").unwrap();
    drop(conn);
    let mut store = folder.open();
    assert!(!store.damage(9).unwrap().is_empty());
    assert_eq!(turns(&*store.reader())[0].events, 247);
}

/// A database with three turns, changed behind the store's back.
fn changed_by(sql: &str) -> Folder {
    let folder = Folder::new();
    let mut store = folder.open();
    let lease = lead(&mut store);
    for (name, last) in [("a", 0), ("b", 12), ("c", 24)] {
        store.commit(lease, &turn(name, last, 10)).unwrap();
    }
    drop(store);
    Connection::open(folder.path()).unwrap().execute_batch(sql).unwrap();
    folder
}

/// The deletions of a turn hang on the digests as its events do.
#[test]
fn deletions_that_change_are_noticed() {
    for sql in ["DELETE FROM deletions", "UPDATE deletions SET deleted = '{\"registers\":[[\"b\",\"l\"]]}'"] {
        let folder = Folder::new();
        let mut store = folder.open();
        let lease = lead(&mut store);
        let mut commit = turn("a", 0, 1);
        commit.registers = vec![("b".to_owned(), "k".to_owned(), None)];
        store.commit(lease, &commit).unwrap();
        let [turn] = agreeing(&*store.reader())[..] else { panic!("one turn") };
        drop(store);
        Connection::open(folder.path()).unwrap().execute_batch(sql).unwrap();
        let mut store = folder.open();
        let counted = store.reader().recount(&turn, &Digest::default());
        assert!(counted.is_err() || counted.unwrap().digest != turn.digest, "{sql}");
        store.accept().unwrap().unwrap();
        let [opening] = agreeing(&*store.reader())[..] else { panic!("one record: {sql}") };
        assert!(opening.is_opening() && !opening.deletes());
    }
}

#[test]
fn what_people_accept_is_one_record() {
    for (sql, last) in [
        ("UPDATE events SET at = 6 WHERE seq = 14", 3),
        ("UPDATE turns SET epoch = 7 WHERE turn = 2", 3),
        ("DELETE FROM turns WHERE turn = 2", 3),
        ("DELETE FROM turns WHERE turn = 3", 2),
        ("DELETE FROM turns", 1),
    ] {
        let folder = changed_by(sql);
        let mut store = folder.open();
        store.accept().unwrap().unwrap();
        assert_eq!(store.damage(9).unwrap(), [] as [&str; 0], "{sql}");
        let [opening] = agreeing(&*store.reader())[..] else { panic!("one record: {sql}") };
        assert_eq!((opening.turn, opening.is_opening(), opening.last_event()), (last, true, 36), "{sql}");
        let lease = lead(&mut store);
        store.commit(lease, &turn("d", 36, 10)).unwrap();
        assert_eq!(agreeing(&*store.reader())[1].turn, last + 1);
    }
}

#[test]
fn turns_that_agree_stay_when_something_else_is_accepted() {
    let folder = changed_by("UPDATE slots SET retries = 9 WHERE workflow = 2");
    let mut store = folder.open();
    let before = agreeing(&*store.reader());
    store.accept().unwrap().unwrap();
    assert_eq!(agreeing(&*store.reader()), before);
}

#[test]
fn nothing_is_written_after_a_turn_that_is_gone() {
    let folder = changed_by("DELETE FROM turns WHERE turn = 3");
    let mut store = folder.open();
    let lease = lead(&mut store);
    let words = store.commit(lease, &turn("d", 36, 10)).unwrap_err().to_string();
    assert!(words.ends_with("its log ends with event 36, and its last turn with event 24"), "{words}");
    assert_eq!(store.reader().last_seq().unwrap(), 36);
}
