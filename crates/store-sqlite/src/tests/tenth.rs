//! Databases of the tenth and the eleventh schema, as real servers left them: `fixtures/databases/README.md` says with what.

use std::collections::BTreeSet;

use kelos_store::{Queries, StoredState};

use super::turns::agreeing;
use super::*;

const TENTH: &str = include_str!("../../../../fixtures/databases/schema-10.sql");
const ELEVENTH: &str = include_str!("../../../../fixtures/databases/schema-11.sql");

pub(super) fn left() -> Folder {
    written(TENTH)
}

fn written(dump: &str) -> Folder {
    let folder = Folder::new();
    Connection::open(folder.path()).unwrap().execute_batch(dump).unwrap();
    folder
}

fn names(rows: &[WorkflowRow], is_meant: fn(&WorkflowRow) -> bool) -> Vec<String> {
    rows.iter().filter(|row| is_meant(row)).map(|row| row.id.to_string()).collect()
}

pub(super) fn slots(reader: &dyn Queries) -> Vec<SlotRow> {
    reader.slots(&SlotFilter::default(), PageRequest::newest(1000)).unwrap().rows
}

#[test]
fn a_database_of_the_tenth_schema_is_brought_forward() {
    let folder = left();
    let mut store = folder.open();
    assert_eq!(store.damage(9).unwrap(), [] as [&str; 0]);
    let reader = store.reader();
    assert_eq!(agreeing(&*reader).len(), 62);
    assert_eq!(reader.events(&EventFilter::default(), PageRequest::oldest(1000)).unwrap().rows.len(), 247);

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
    assert_eq!(reader.runs(&RunFilter::default(), PageRequest::newest(1000)).unwrap().rows.len(), 33);
    let snapshot = store.restore().unwrap();
    assert_eq!((snapshot.workflows.len(), snapshot.backfills.len()), (22, 2));
    let names = |is_meant| names(&snapshot.workflows, is_meant);
    assert_eq!(names(|row| row.paused), ["deliver-lax", "report"]);
    assert_eq!(names(|row| !row.enabled), ["AtNight.runOnlyAtNight", "Purchase.DailySchedule"]);
}

#[test]
fn a_database_that_was_brought_forward_is_read_as_it_was_before() {
    let folder = left();
    let before = slots(&*folder.open().reader());
    let after = slots(&*folder.open().reader());
    assert_eq!(before, after);
}

/// Damage that was there before a migration is still recognised as damage after it.
#[test]
fn damage_is_brought_forward_as_damage() {
    for sql in [
        "UPDATE workflows SET paused = 0 WHERE name = 'AtNight.runOnlyAtNight'",
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

#[test]
fn a_database_of_the_eleventh_schema_is_brought_forward() {
    let folder = written(ELEVENTH);
    let mut store = folder.open();
    assert_eq!(store.damage(9).unwrap(), [] as [&str; 0]);
    let reader = store.reader();
    assert_eq!(agreeing(&*reader).len(), 61);
    let runs = reader.runs(&RunFilter::default(), PageRequest::newest(1000)).unwrap().rows;
    assert_eq!((slots(&*reader).len(), runs.len()), (38, 30));
    let workflows = store.restore().unwrap().workflows;
    assert_eq!(names(&workflows, |row| row.paused), ["deliver-lax", "report"]);
    assert_eq!(names(&workflows, |row| !row.enabled), ["AtNight.runOnlyAtNight", "Purchase.DailySchedule"]);
    assert_eq!(names(&workflows, |row| row.definition.concurrency.is_none()).len(), WITHOUT_LIMIT);
}

/// Programs, event schedules and apps that say nothing have no limit of their own, and had the largest number there.
const WITHOUT_LIMIT: usize = 19;

/// The outputs of a run that was live when the older program stopped are not lost.
#[test]
fn what_a_run_gave_that_goes_on_is_handed_to_it() {
    let folder = written(ELEVENTH);
    let given = "UPDATE slots SET outputs = '{\"rows\":12}', check_value = NULL WHERE workflow = \
        (SELECT id FROM workflows WHERE name = 'Triggered.Workflow1')";
    assert_eq!(Connection::open(folder.path()).unwrap().execute(given, []).unwrap(), 1);
    let store = folder.open();
    let runs = store.reader().runs(&RunFilter::default(), PageRequest::newest(1000)).unwrap().rows;
    let giving: Vec<_> = runs.iter().filter(|run| run.outputs.is_some()).collect();
    assert_eq!(giving.len(), 1);
    assert_eq!(giving[0].id.slot.workflow.as_str(), "Triggered.Workflow1");
    assert_eq!(giving[0].outputs.as_ref().unwrap()["rows"], 12);
}

/// The outputs of a run of before are looked for by the slots that depend on it.
#[test]
fn workflows_whose_runs_gave_outputs_say_so() {
    let folder = written(ELEVENTH);
    drop(folder.open());
    {
        let conn = Connection::open(folder.path()).unwrap();
        let gave = "UPDATE runs SET outputs = '{\"rows\":12}', check_value = NULL WHERE ended_at IS NOT NULL AND workflow = \
            (SELECT id FROM workflows WHERE name = 'wordcount-nyc')";
        assert!(conn.execute(gave, []).unwrap() > 0);
        let newer = "DROP TABLE followed; DROP TABLE reigns; DROP TABLE trimmed; DROP TABLE slot_blocks; DROP TABLE backfill_blocks; ALTER TABLE slots DROP COLUMN late; ALTER TABLE steps DROP COLUMN late; ALTER TABLE slots DROP COLUMN again; ALTER TABLE steps DROP COLUMN again";
        conn.execute_batch(newer).unwrap();
        conn.pragma_update(None, "user_version", 18).unwrap();
    }
    let mut store = folder.open();
    assert_eq!(store.damage(9).unwrap(), [] as [&str; 0]);
    let workflows = store.restore().unwrap().workflows;
    assert_eq!(names(&workflows, |row| row.moments.gave.is_some()), ["wordcount-nyc"]);
}

/// The digests of turns hang on these bytes: what an event is in memory may change, and what is written of it may not.
#[test]
fn events_are_written_byte_for_byte_as_the_older_program_wrote_them() {
    let folder = written(ELEVENTH);
    let bodies: Vec<String> = {
        let conn = Connection::open(folder.path()).unwrap();
        let mut statement = conn.prepare("SELECT body FROM events ORDER BY seq").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let events = folder.open().reader().events(&EventFilter::default(), PageRequest::oldest(1000)).unwrap().rows;
    assert_eq!(events.len(), bodies.len());
    let mut text = Vec::new();
    for (record, body) in events.iter().zip(&bodies) {
        kelos_store::adapter::stored::write_body(&mut text, &record.event).unwrap();
        assert_eq!(std::str::from_utf8(&text).unwrap(), body, "event {}", record.seq);
    }
}
