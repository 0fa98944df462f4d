//! A database of the tenth schema, as a real server left it: `fixtures/databases/README.md` says with what.

use std::collections::BTreeSet;

use super::turns::agreeing;
use super::*;
use crate::queries::Queries;

const DUMP: &str = include_str!("../../../../../fixtures/databases/schema-10.sql");

pub(super) fn left() -> Folder {
    let folder = Folder::new();
    Connection::open(folder.path()).unwrap().execute_batch(DUMP).unwrap();
    folder
}

fn slots(reader: &dyn Queries) -> Vec<SlotRow> {
    reader.slots(&SlotFilter::default(), Paging::newest(1000)).unwrap().rows
}

#[test]
fn a_database_of_the_tenth_schema_is_brought_forward() {
    let folder = left();
    let mut store = folder.open();
    assert_eq!(store.damage(9).unwrap(), [] as [&str; 0]);
    let reader = store.reader();
    assert_eq!(agreeing(&*reader).len(), 62);
    assert_eq!(reader.events(&EventFilter::default(), Paging::oldest(1000)).unwrap().rows.len(), 247);

    let rows = slots(&*reader);
    let of_jobs = rows.iter().filter(|row| row.id.key.job().is_some()).count();
    let moments: BTreeSet<String> =
        rows.iter().filter(|row| row.id.key.is_moment()).map(|row| row.id.to_string()).collect();
    assert_eq!((rows.len(), of_jobs, moments.len()), (38, 10, 8), "{moments:?}");
    assert!(moments.contains("Triggered.Workflow1@_2026-11-22T21:09:44.438Z"), "{moments:?}");
    for row in &rows {
        assert_eq!(reader.slot(&row.id).unwrap().as_ref(), Some(&row.slot), "{}", row.id);
        let history = reader.history(&row.id).unwrap();
        assert!(history.iter().all(|record| matches!(&record.event, Event::Slot { slot, .. } if *slot == row.id)));
        assert_eq!(history.last().map(|record| record.seq), Some(row.slot.last_event), "{}", row.id);
        let runs = reader.slot_runs(&row.id).unwrap();
        assert!(runs.iter().all(|run| run.id.slot == row.id), "{}", row.id);
        assert_eq!(runs.len(), row.slot.last_run as usize, "{}", row.id);
    }
    assert_eq!(reader.runs(&RunFilter::default(), Paging::newest(1000)).unwrap().rows.len(), 33);
    let snapshot = store.restore().unwrap();
    assert_eq!((snapshot.workflows.len(), snapshot.backfills.len()), (22, 2));
    let paused = snapshot.workflows.iter().filter(|row| row.paused).map(|row| row.id.as_str());
    assert_eq!(
        paused.collect::<Vec<_>>(),
        ["AtNight.runOnlyAtNight", "Purchase.DailySchedule", "deliver-lax", "report"]
    );
}

#[test]
fn a_database_that_was_brought_forward_is_read_as_it_was_before() {
    let folder = left();
    let before = slots(&*folder.open().reader());
    let after = slots(&*folder.open().reader());
    assert_eq!(before, after);
}

/// What changed by itself before is not taken for right by the program that brings the database forward.
#[test]
fn damage_is_brought_forward_as_damage() {
    for sql in [
        "UPDATE slots SET retries = 9 WHERE key = '20140601'",
        "UPDATE runs SET number = 9 WHERE key = '20140601'",
        "UPDATE events SET at = 6 WHERE key = '20140601'",
        "UPDATE events SET key = '20140602' WHERE key = '20140601'",
    ] {
        let folder = left();
        Connection::open(folder.path()).unwrap().execute_batch(sql).unwrap();
        assert_ne!(folder.open().damage(99).unwrap(), [] as [&str; 0], "{sql}");
    }
}
