//! Slots in blocks are found by whoever reads slots.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kelos_model::history::Trim;
use kelos_model::{
    Actor, BackfillId, Collection, Event, EventRecord, RunName, Slot, SlotEvent, SlotKey, SlotState, WorkflowId,
};
use kelos_store::adapter::cursor::kind;
use kelos_store::suite::{Place, agree};
use kelos_store::{
    Commit, Journal, MemoryDisk, MemoryStore, PageRequest, SlotFilter, SlotRow, StoreError, StoredState,
};
use rusqlite::Connection;

use super::tenth::slots;
use super::{Folder, lead, moment, planning};
use crate::blocks::{BlockFilter, FIRST_FORM};
use crate::check::Sum;
use crate::schema::{STEPS, migrate};
use crate::{SqlRows, SqlValue, SqliteStore, SqliteViews};

struct Memory(MemoryDisk);

impl Place for Memory {
    fn open(&mut self) -> Box<dyn Journal> {
        Box::new(MemoryStore::on(&self.0))
    }
}

/// A file, and what was seen in its blocks whenever it was opened.
struct File {
    path: PathBuf,
    packed: BTreeSet<(i64, SlotKey)>,
    /// The slots that came into blocks, and that were taken out again, by what they are.
    seen: BTreeMap<&'static str, [usize; 2]>,
}

impl File {
    fn look(&mut self) {
        let Ok(conn) = Connection::open(&self.path) else { return };
        let mut packed = BTreeSet::new();
        // Before it is made, it has no tables.
        let _ = BlockFilter::new(None, (i64::MIN, i64::MAX)).each(&conn, |one| {
            if packed.insert((one.workflow, one.key.clone())) && !self.packed.contains(&(one.workflow, one.key.clone()))
            {
                let kind = ["time", "job", "moment", "name"][kind(&one.key) as usize];
                let backfill = one.slot.backfill.as_ref().map(|_| "of a backfill");
                let collected = one.slot.collected.as_ref().map(|_| "with facts");
                for what in [Some(kind), backfill, collected].into_iter().flatten() {
                    self.seen.entry(what).or_default()[0] += 1;
                }
            }
            true
        });
        for (_, key) in self.packed.difference(&packed) {
            self.seen.entry(["time", "job", "moment", "name"][kind(key) as usize]).or_default()[1] += 1;
        }
        self.packed = packed;
    }
}

impl Place for File {
    fn open(&mut self) -> Box<dyn Journal> {
        self.look();
        Box::new(SqliteStore::open(&self.path).unwrap())
    }
}

fn number(path: &Path, sql: &str) -> i64 {
    Connection::open(path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

/// The number of blocks that have slots between those of another one.
const OVERLAPPING: &str = "SELECT count(*) FROM slot_blocks a JOIN slot_blocks b ON a.workflow = b.workflow AND a.id <> b.id \
    WHERE (a.first < b.last OR a.first = b.last AND a.first_key >= b.last_key) \
    AND (b.first < a.last OR b.first = a.last AND b.first_key >= a.last_key)";

/// All pages, counts, tallies and recalls of slots, before and after reruns, as the store in memory has them.
#[test]
fn a_store_with_blocks_answers_as_one_without() {
    let (mut made, mut seen) = (0, BTreeMap::new());
    for seed in 100..104 {
        let folder = Folder::new();
        let mut file = File { path: folder.path(), packed: BTreeSet::new(), seen };
        agree(&mut Memory(MemoryDisk::default()), &mut file, seed, 60);
        file.look();
        made += number(&folder.path(), "SELECT coalesce(max(id), 0) FROM slot_blocks");
        assert_eq!(folder.open().damage(9).unwrap(), [] as [&str; 0]);
        assert_eq!(number(&folder.path(), OVERLAPPING), 0);
        seen = file.seen;
    }
    assert!(made > 20, "{made} blocks were made");
    for what in ["time", "job", "moment", "name"] {
        let [came, left] = seen[what];
        assert!(came > 2 && left > 0, "{what}: {seen:?}");
    }
    assert!(seen["of a backfill"][0] > 2 && seen["with facts"][0] > 2, "{seen:?}");
    println!("{made} blocks: {seen:?}");
}

/// Slots with keys that succeeded, and an event at the end of the log, as a turn.
fn done(keys: impl IntoIterator<Item = SlotKey>, last: u64) -> Commit {
    let keys: Vec<_> = keys.into_iter().collect();
    let mut commit = planning("etl", last, keys.len() as u64);
    commit.at = moment(1_000_000);
    for ((row, record), key) in commit.slots.iter_mut().zip(&mut commit.events).zip(keys) {
        (row.slot.state, row.slot.last_run, row.slot.last_run_seq) = (SlotState::Succeeded, 1, row.slot.last_event);
        row.slot.external_id = Some("4711".to_owned());
        row.id.key = key;
        if let Event::Slot { slot, .. } = &mut record.event {
            *slot = row.id.clone();
        }
    }
    commit
}

fn trim(first: u64, last: u64) -> Commit {
    Commit { trim: Some(Trim { until: 1, stretches: vec![(first, last)] }), ..Commit::default() }
}

/// Seven slots that succeeded, and the turns that remove the history of the first six.
fn aged() -> (Folder, Vec<Commit>) {
    let keys = (1..=7).map(|minute| SlotKey::Time(moment(minute * 60_000)));
    (Folder::new(), vec![done(keys, 0), trim(1, 2), trim(3, 5), trim(6, 6)])
}

/// Two jobs, a named start, a start with what it has collected, two slots of a backfill, and another one.
fn of_all_kinds() -> Commit {
    let mut commit = done(
        [
            SlotKey::Job("20140601".into()),
            SlotKey::Job("20140602".into()),
            SlotKey::Named(RunName::new("order-42").unwrap()),
            SlotKey::Moment(moment(60_000)),
            SlotKey::Time(moment(60_000)),
            SlotKey::Time(moment(120_000)),
            SlotKey::Time(moment(180_000)),
        ],
        0,
    );
    let (since, tallies, arguments) = (moment(4), [].into(), [("day".to_owned(), "monday".into())].into());
    let collected = Collection { since, tallies, asked: None, arguments, met: true, again: false };
    commit.slots[3].slot.collected = Some(Box::new(collected));
    for place in [4, 5] {
        commit.slots[place].slot.backfill = Some(BackfillId::new("b").unwrap());
    }
    commit
}

#[derive(Default)]
struct Rows(Vec<Vec<SqlValue>>);

impl SqlRows for Rows {
    fn columns(&mut self, _: &[String]) {}

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        self.0.push(values);
        true
    }
}

fn view(path: &Path) -> Vec<Vec<SqlValue>> {
    let mut rows = Rows::default();
    let sql = "SELECT * FROM slots ORDER BY scheduled_at_ms";
    SqliteViews::open(path).unwrap().query(sql, Duration::from_secs(60), &mut rows).unwrap();
    rows.0
}

#[test]
fn slots_go_into_blocks_when_their_history_goes_and_the_view_has_them_still() {
    let (folder, commits) = aged();
    let mut store = folder.open();
    let lease = lead(&mut store);
    store.commit(lease, &commits[0]).unwrap();
    let (listed, shown) = (slots(&*store.reader()), view(&folder.path()));
    assert_eq!((listed.len(), shown.len()), (7, 7));
    for commit in &commits[1..] {
        store.commit(lease, commit).unwrap();
    }
    assert_eq!(
        number(&folder.path(), "SELECT count(*) FROM slots"),
        1,
        "the last event of the log stays, and its slot"
    );
    assert_eq!(number(&folder.path(), "SELECT sum(slots) FROM slot_blocks"), 6);
    assert_eq!(slots(&*store.reader()), listed);
    assert_eq!(view(&folder.path()), shown);
    let etl = WorkflowId::new("etl").unwrap();
    assert_eq!(store.reader().slot(&listed[3].id).unwrap().as_ref(), Some(&listed[3].slot), "{etl}");
    assert_eq!(store.damage(9).unwrap(), [] as [&str; 0]);
}

#[test]
fn slots_of_all_kinds_go_into_blocks_and_come_out_when_they_change() {
    let (folder, commit) = (Folder::new(), of_all_kinds());
    let mut store = folder.open();
    let lease = lead(&mut store);
    store.commit(lease, &commit).unwrap();
    let of_backfill = SlotFilter { backfill: Some(BackfillId::new("b").unwrap()), ..SlotFilter::default() };
    let page = |store: &SqliteStore| store.reader().slots(&of_backfill, PageRequest::oldest(1)).unwrap();
    let counts = |store: &SqliteStore| store.reader().slot_counts(&of_backfill).unwrap();
    let (listed, shown, paged) = (slots(&*store.reader()), view(&folder.path()), page(&store));
    for last in [2, 4, 6] {
        store.commit(lease, &trim(last - 1, last)).unwrap();
    }
    assert_eq!(number(&folder.path(), "SELECT sum(slots) FROM slot_blocks"), 6);
    assert_eq!(slots(&*store.reader()), listed);
    assert_eq!(view(&folder.path()), shown);
    assert_eq!((page(&store), counts(&store)), (paged, [(SlotState::Succeeded, 2)].into()));
    assert_eq!(number(&folder.path(), "SELECT sum(slots) FROM backfill_blocks WHERE backfill = 'b'"), 2);

    for (place, row) in commit.slots[..6].iter().enumerate() {
        assert_eq!(store.reader().slot(&row.id).unwrap().as_ref(), Some(&row.slot));
        let (seq, what) = (8 + place as u64, SlotEvent::Requested { by: Actor::unknown("me"), reason: None });
        let previous = row.slot.last_event;
        let event = Event::Slot { slot: row.id.clone(), what };
        let slot = Slot { last_event: seq, state: SlotState::Waiting, ..row.slot.clone() };
        let changed = SlotRow { id: row.id.clone(), slot };
        let events = vec![EventRecord { seq, at: moment(6), previous, event }];
        store.commit(lease, &Commit { events, slots: vec![changed.clone()], ..Commit::default() }).unwrap();
        let left = number(&folder.path(), "SELECT coalesce(sum(slots), 0) FROM slot_blocks");
        assert_eq!((left, store.reader().slot(&row.id).unwrap()), (5 - place as i64, Some(changed.slot)));
    }
    assert_eq!(number(&folder.path(), "SELECT count(*) FROM backfill_blocks"), 0);
    assert_eq!(counts(&store), [(SlotState::Waiting, 2)].into());
    assert_eq!(store.damage(9).unwrap(), [] as [&str; 0]);
}

/// Slots that lie between those of many blocks would make all these anew.
/// A step looks at eight rows here: as many jobs of which history is kept hold up nobody, and hide no others.
#[test]
fn slots_behind_many_that_have_history_go_into_blocks_by_and_by() {
    let folder = Folder::new();
    let keys = (1..=60).map(|second| SlotKey::Time(moment(second * 1_000)));
    let mut store = folder.open();
    let lease = lead(&mut store);
    store.commit(lease, &done(keys, 0)).unwrap();
    // Of the first forty, history is kept.
    store.commit(lease, &trim(41, 42)).unwrap();
    assert_eq!(number(&folder.path(), "SELECT count(*) FROM slot_blocks"), 0);
    for first in 43..60 {
        store.commit(lease, &trim(first, first)).unwrap();
    }
    assert!(number(&folder.path(), "SELECT coalesce(sum(slots), 0) FROM slot_blocks") >= 10);
    assert_eq!(number(&folder.path(), OVERLAPPING), 0);
    assert_eq!(store.damage(9).unwrap(), [] as [&str; 0]);
}

#[test]
fn slots_wait_until_they_lie_near_each_other() {
    let folder = Folder::new();
    let mut store = folder.open();
    let lease = lead(&mut store);
    let job = |name: String| SlotKey::Job(name.into());
    store.commit(lease, &done((0..40).map(|n| job(format!("j{n:02}"))), 0)).unwrap();
    store.commit(lease, &done(["j00-b", "j39-b", "z"].map(|name| job(name.to_owned())), 40)).unwrap();
    for event in 1..=40 {
        store.commit(lease, &trim(event, event)).unwrap();
    }
    // Each looks at a few rows.
    (0..40).for_each(|_| store.commit(lease, &trim(40, 40)).unwrap());
    let rows = |path: &Path| number(path, "SELECT count(*) FROM slots");
    assert_eq!(rows(&folder.path()), 3, "the last event of the log stays, and two slots have history");
    let far = Commit { trim: Some(Trim { until: 2, stretches: vec![(41, 42)] }), ..Commit::default() };
    (0..40).for_each(|_| store.commit(lease, &far).unwrap());
    assert_eq!(rows(&folder.path()), 3, "twenty blocks lie between the two");
    store.commit(lease, &done(["j39-a", "zz"].map(|name| job(name.to_owned())), 43)).unwrap();
    let near = Commit { trim: Some(Trim { until: 52, stretches: vec![(44, 44)] }), ..Commit::default() };
    (0..40).for_each(|_| store.commit(lease, &near).unwrap());
    assert_eq!(rows(&folder.path()), 3, "the one that is near is packed with the other");
    assert_eq!(slots(&*store.reader()).len(), 45);
    assert_eq!(number(&folder.path(), OVERLAPPING), 0);
}

/// A block as the program before wrote it, of three slots of a workflow.
#[test]
fn blocks_of_the_schema_before_are_read_and_checked() {
    let folder = Folder::new();
    let body = FIRST_FORM;
    let mut sum = Sum::default();
    [1, 0, 1_760_000_400_000, 1_760_007_600_000, 3].into_iter().for_each(|number| sum.number(Some(number)));
    sum.bytes(&body);
    {
        let mut conn = Connection::open(folder.path()).unwrap();
        migrate(&mut conn, &STEPS[..24], "x").unwrap();
        let workflow = "INSERT INTO workflows (id, name, version, present, paused, planned, slots, last_run) VALUES (0, 'etl', 0, 0, 0, '{}', 3, 0)";
        conn.execute(workflow, []).unwrap();
        let block = "INSERT INTO slot_blocks (id, workflow, first, last, slots, body, check_value) VALUES (1, 0, 1760000400000, 1760007600000, 3, ?1, ?2)";
        conn.execute(block, (body.as_slice(), sum.check_value())).unwrap();
        conn.execute(&block.replace("(1, 0", "(2, 0"), (body.as_slice(), 5)).unwrap();
    }
    let found = folder.open().damage(9).unwrap();
    assert!(
        found[0].starts_with("a block of slots beginning with (2, 0"),
        "what was damaged is damaged still: {found:?}"
    );
    Connection::open(folder.path()).unwrap().execute("DELETE FROM slot_blocks WHERE id = 2", []).unwrap();
    let mut store = folder.open();
    assert_eq!(store.damage(9).unwrap(), [] as [&str; 0]);
    let listed = slots(&*store.reader());
    assert_eq!(listed.len(), 3);
    assert_eq!(store.reader().slot(&listed[1].id).unwrap().as_ref(), Some(&listed[1].slot));
}

#[test]
fn a_block_that_changed_by_itself_is_found_and_can_be_accepted() {
    let (folder, commits) = aged();
    let mut store = folder.open();
    let lease = lead(&mut store);
    commits.iter().for_each(|commit| store.commit(lease, commit).unwrap());
    let listed = slots(&*store.reader());
    drop(store);
    let conn = Connection::open(folder.path()).unwrap();
    conn.execute("UPDATE slot_blocks SET workflow = workflow + 0, last = last + 1 WHERE id = 2", []).unwrap();
    let mut store = folder.open();
    assert_eq!(store.damage(9).unwrap().len(), 1);
    assert!(matches!(store.reader().slot(&listed[4].id), Err(StoreError::Corrupt { .. })));
    drop(store);
    assert_eq!(folder.open().accept().unwrap(), Some(()));
    assert_eq!(slots(&*folder.open().reader()), listed);
    conn.execute("DELETE FROM slot_blocks WHERE id = 1", []).unwrap();
    let found = folder.open().damage(9).unwrap();
    assert_eq!(found, ["7 slots were counted, and there are 5"]);
}
