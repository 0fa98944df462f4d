//! Slots in blocks are found by whoever reads slots.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kelos_model::history::Trim;
use kelos_model::{SlotKey, SlotState, WorkflowId};
use kelos_store::adapter::cursor::kind;
use kelos_store::suite::{Place, agree};
use kelos_store::{Commit, Journal, MemoryDisk, MemoryStore, StoreError, StoredState};
use rusqlite::Connection;

use super::tenth::slots;
use super::{Folder, lead, moment, planning};
use crate::blocks::BlockFilter;
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
            if packed.insert((one.workflow, one.key.clone())) && !self.packed.contains(&(one.workflow, one.key.clone())) {
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

/// All pages, counts, tallies and recalls of slots, before and after reruns, as the store in memory has them.
#[test]
fn a_store_with_blocks_answers_as_one_without() {
    let (mut made, mut seen) = (0, BTreeMap::new());
    for seed in 100..106 {
        let folder = Folder::new();
        let mut file = File { path: folder.path(), packed: BTreeSet::new(), seen };
        agree(&mut Memory(MemoryDisk::default()), &mut file, seed, 100);
        file.look();
        made += number(&folder.path(), "SELECT coalesce(max(id), 0) FROM slot_blocks");
        assert_eq!(folder.open().damage(9).unwrap(), [] as [&str; 0]);
        seen = file.seen;
    }
    assert!(made > 20, "{made} blocks were made");
    for what in ["time", "job", "moment", "name"] {
        let [came, left] = seen[what];
        assert!(came > 2 && left > 0, "{what}: {seen:?}");
    }
    assert!(seen["of a backfill"][0] > 2 && seen["with facts"][0] > 2, "{seen:?}");
    println!("SEEN {made} {seen:?}");
}

/// Seven slots that succeeded, and the turns that remove the history of the first six.
fn aged() -> (Folder, Vec<Commit>) {
    let mut commit = planning("etl", 0, 7);
    commit.at = moment(1_000_000);
    for row in &mut commit.slots {
        (row.slot.state, row.slot.last_run, row.slot.last_run_seq) = (SlotState::Succeeded, 1, row.slot.last_event);
        row.slot.external_id = Some("4711".to_owned());
    }
    let trim =
        |first, last| Commit { trim: Some(Trim { until: 1, stretches: vec![(first, last)] }), ..Commit::default() };
    (Folder::new(), vec![commit, trim(1, 2), trim(3, 5), trim(6, 6)])
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
