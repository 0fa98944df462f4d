//! The behaviour that only SQLite has: files, running out of pages, query plans.

use std::path::PathBuf;

use jiff::Timestamp;
use kelos_model::backfill::{Backfill, Pause};
use kelos_model::event::Origin;
use kelos_model::slot::apply;
use kelos_model::time::{CronSchedule, Schedule};
use kelos_model::workflow::{Job, Moments, WorkflowRow};
use kelos_model::{
    Actor, BackfillId, Event, EventRecord, Fact, FactKey, Occurrence, Run, RunId, RunState, SlotEvent, SlotRef,
    Workflow, WorkflowEvent, WorkflowId,
};
use rusqlite::Connection;
use tempfile::TempDir;

mod blocks;
mod damage;
mod first_start;
mod old_names;
mod pages;
mod tenth;
mod trims;
mod turns;
mod views;

use super::SqliteStore;
use super::connection::log_ahead;
use super::schema::{STEPS, migrate};
use kelos_store::{About, BackfillFilter, EventFilter, PENDING, PageRequest, RegisterKeys, RunFilter, SlotFilter};
use kelos_store::{Commit, Journal, Lease, SlotRow, StoreError, StoredState};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("kelos.db")
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(self.path()).unwrap()
    }

    fn refusal(&self) -> String {
        SqliteStore::open(self.path()).unwrap_err().to_string().replace(&self.path().display().to_string(), "DB")
    }
}

fn lead(store: &mut SqliteStore) -> Lease {
    store.lease("node", Timestamp::UNIX_EPOCH, 1000).unwrap().unwrap()
}

fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap()
}

/// A turn that plans `count` slots of a workflow, each with its event, after the log's `last`.
fn planning(workflow: &str, last: u64, count: u64) -> Commit {
    let mut commit = Commit::default();
    for seq in last + 1..=last + count {
        let slot = SlotRef::at(WorkflowId::new(workflow).unwrap(), moment(seq as i64 * 60_000));
        let what = SlotEvent::planned(Origin::Schedule, 0);
        let row = apply(None, &what, moment(5), seq).unwrap();
        commit.slots.push(SlotRow { id: slot.clone(), slot: row });
        commit.events.push(EventRecord { seq, at: moment(5), previous: 0, event: Event::Slot { slot, what } });
    }
    commit
}

fn run(workflow: &str, seq: u64) -> Run {
    let slot = SlotRef::at(WorkflowId::new(workflow).unwrap(), moment(seq as i64 * 60_000));
    Run {
        id: RunId { slot, number: 1 },
        seq,
        previous: 0,
        state: RunState::Dispatched,
        executor: "command".to_owned(),
        external_id: None,
        dispatched_at: moment(5),
        started_at: None,
        ended_at: None,
        outcome: None,
        arguments: Default::default(),
        outputs: None,
        batch: None,
    }
}

#[test]
fn programs_that_open_a_new_file_at_once_all_can() {
    for _ in 0..20 {
        let folder = Folder::new();
        let together = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    together.wait();
                    folder.open();
                });
            }
        });
    }
}

#[test]
fn connections_that_switch_a_new_file_to_a_log_at_once_all_do() {
    for _ in 0..100 {
        let folder = Folder::new();
        let connections = [(); 8].map(|()| Connection::open(folder.path()).unwrap());
        let together = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for conn in connections {
                let together = &together;
                scope.spawn(move || {
                    together.wait();
                    log_ahead(&conn).unwrap();
                });
            }
        });
    }
}

#[test]
fn a_newer_schema_is_left_alone() {
    let folder = Folder::new();
    drop(folder.open());
    Connection::open(folder.path()).unwrap().pragma_update(None, "user_version", 77).unwrap();
    let before = std::fs::read(folder.path()).unwrap();
    let known = STEPS.len();
    let expected = format!(
        "open DB: its schema is version 77, this program knows up to {known}; use the newer program, or another folder"
    );
    assert_eq!(folder.refusal(), expected);
    assert_eq!(std::fs::read(folder.path()).unwrap(), before);
}

#[test]
fn what_is_not_ours_is_refused_and_left_alone() {
    let folder = Folder::new();
    std::fs::write(folder.path(), "workflow,slot,state\n".repeat(99)).unwrap();
    assert_eq!(folder.refusal(), "read DB: it is not a database of Kelos");
    assert!(std::fs::read_to_string(folder.path()).unwrap().starts_with("workflow,"));

    let folder = Folder::new();
    Connection::open(folder.path()).unwrap().execute_batch("CREATE TABLE addresses (name)").unwrap();
    let before = std::fs::read(folder.path()).unwrap();
    assert_eq!(folder.refusal(), "read DB: it is the database of another program");
    assert_eq!(std::fs::read(folder.path()).unwrap(), before);
}

#[test]
fn a_place_that_cannot_be_is_told() {
    let folder = Folder::new();
    let path = folder.0.path().join("missing").join("kelos.db");
    let words = SqliteStore::open(&path).unwrap_err().to_string();
    assert_eq!(words, format!("make {}: its folder does not exist", path.display()));
    let words = SqliteStore::open(folder.0.path()).unwrap_err().to_string();
    assert_eq!(words, format!("open {}: it is a folder", folder.0.path().display()));
}

#[cfg(unix)]
#[test]
fn its_files_are_for_the_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let mut store = folder.open();
    let lease = lead(&mut store);
    store.commit(lease, &planning("a", 0, 1)).unwrap();
    let files = std::fs::read_dir(folder.0.path()).unwrap().map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(files.len(), 4, "{files:?}");
    for file in files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
}

#[test]
fn an_empty_file_becomes_a_database() {
    let folder = Folder::new();
    std::fs::write(folder.path(), "").unwrap();
    let mut store = folder.open();
    let lease = lead(&mut store);
    store.commit(lease, &planning("a", 0, 1)).unwrap();
}

#[test]
fn who_gets_around_the_lock_is_fenced_off() {
    let folder = Folder::new();
    let mut first = folder.open();
    let lease = lead(&mut first);
    let mut second = folder.open();
    assert_eq!(second.lease("second", Timestamp::UNIX_EPOCH, 1000).unwrap(), None);
    // The file with the lock is deleted, so another one can be locked.
    std::fs::remove_file(super::lock_path(&folder.path())).unwrap();
    let taken = lead(&mut second);
    let outcome = first.commit(lease, &planning("a", 0, 1));
    let current = taken.epoch;
    assert!(
        matches!(outcome, Err(StoreError::Deposed { held, current: now }) if held == lease.epoch && now == current)
    );
    assert_eq!(first.lease("first", Timestamp::UNIX_EPOCH, 1000).unwrap(), None);
    second.commit(taken, &planning("a", 0, 1)).unwrap();
}

fn fact_key(key: &str) -> FactKey {
    FactKey { source: "x".into(), about: "partition:ds".into(), key: key.into() }
}

/// Adds a fact to a turn, with what the turn's first slot collects of it.
fn tell(commit: &mut Commit, key: &str) {
    let seq = commit.events.last().unwrap().seq + 1;
    let what = Occurrence::Signal { name: "go".into(), payload: serde_json::json!({ "key": key }), run: None };
    let row = commit.slots.first_mut().unwrap();
    let collected = SlotEvent::Collected { what: what.clone(), fact: Some(seq) };
    let previous = row.slot.last_event;
    row.slot = apply(Some(row.slot.clone()), &collected, moment(5), seq + 1).unwrap();
    let fact = Fact { source: "x".into(), key: Some(key.into()), what };
    commit.events.push(EventRecord { seq, at: moment(5), previous: 0, event: Event::Fact { fact, by: None } });
    let event = Event::Slot { slot: row.id.clone(), what: collected };
    commit.events.push(EventRecord { seq: seq + 1, at: moment(5), previous, event });
    commit.facts.push((fact_key(key), seq));
}

/// All answers of the store, as one text.
fn all_told(store: &mut SqliteStore) -> String {
    let reader = store.reader();
    let snapshot = store.restore().unwrap();
    let slots = reader.slots(&SlotFilter::default(), PageRequest::newest(10_000)).unwrap().rows;
    let counts = reader.slot_counts(&SlotFilter::default()).unwrap();
    let events = reader.events(&EventFilter::default(), PageRequest::oldest(10_000)).unwrap().rows;
    let names = store
        .writer
        .conn
        .query_row("SELECT group_concat(name) FROM workflows", [], |row| row.get::<_, Option<String>>(0));
    let facts = reader.events(&EventFilter::about(About::Facts), PageRequest::newest(10_000)).unwrap().rows;
    let known = store.known_facts(&["1", "2"].map(fact_key)).unwrap();
    format!("{:?}\n{slots:?}\n{counts:?}\n{events:?}\n{names:?}\n{facts:?}\n{known:?}", snapshot.slots.len())
}

/// Interrupts a commit after each number of SQLite's own steps, until it gets through.
#[test]
fn a_commit_that_fails_at_any_step_leaves_nothing() {
    let folder = Folder::new();
    let mut store = folder.open();
    let mut lease = lead(&mut store);
    store.commit(lease, &planning("a", 0, 20)).unwrap();
    let before = all_told(&mut store);
    let mut turn = planning("met in this turn", 20, 30);
    turn.runs = [25, 22].map(|seq| run("met in this turn", seq)).to_vec();
    turn.registers.push(("b".to_owned(), "k".to_owned(), Some(serde_json::json!(1))));
    tell(&mut turn, "1");
    let told = turn.events.last().unwrap().seq;
    let whole = {
        let folder = Folder::new();
        let mut store = folder.open();
        let lease = lead(&mut store);
        store.commit(lease, &planning("a", 0, 20)).unwrap();
        store.commit(lease, &turn).unwrap();
        all_told(&mut store)
    };
    let mut failures = 0;
    for steps in (1..).step_by(13) {
        let mut left = steps;
        let interrupt = move || {
            left -= 1;
            left == 0
        };
        store.writer.conn.progress_handler(1, Some(interrupt)).unwrap();
        let outcome = store.commit(lease, &turn);
        store.writer.conn.progress_handler(1, None::<fn() -> bool>).unwrap();
        if outcome.is_ok() {
            break;
        }
        assert!(matches!(outcome, Err(StoreError::Medium { .. })), "{outcome:?}");
        let now = all_told(&mut store);
        if now == whole {
            // SQLite checks once more after a commit that succeeded. A process that gets an error starts again.
            drop(store);
            store = folder.open();
            lease = lead(&mut store);
            break;
        }
        assert_eq!(now, before, "after {steps} steps");
        failures += 1;
        // A name that was met in the turn that failed is met anew.
        assert!(failures < 10_000);
    }
    assert!(failures > 100, "only {failures} steps");
    assert_ne!(all_told(&mut store), before);
    assert!(all_told(&mut store).ends_with(&format!("{:?}", [fact_key("1")])));
    let mut turn = planning("another", told, 2);
    turn.runs = [told + 1, told + 2].map(|seq| run("met in this turn", seq)).to_vec();
    store.commit(lease, &turn).unwrap();
    // The chain of a workflow's runs has lost nothing, and neither has one that starts from another list.
    let filter = RunFilter { workflow: Some(WorkflowId::new("met in this turn").unwrap()), ..RunFilter::default() };
    let listed = |from: Option<&str>| {
        let page = store.reader().runs(&filter, PageRequest::newest(10).after(from)).unwrap();
        page.rows.into_iter().map(|run| run.seq).collect::<Vec<_>>()
    };
    assert_eq!(listed(None), [told + 2, told + 1, 25, 22]);
    assert_eq!(listed(Some("25")), [22]);
    assert_eq!(listed(Some("24")), [22]);
    assert_eq!(store.reader().slots(&SlotFilter::default(), PageRequest::newest(1000)).unwrap().rows.len(), 52);
}

/// Gives the file so many pages more, until a commit gets through.
#[test]
fn a_disk_that_is_full_leaves_nothing() {
    let folder = Folder::new();
    let mut store = folder.open();
    let lease = lead(&mut store);
    store.commit(lease, &planning("a", 0, 500)).unwrap();
    let before = all_told(&mut store);
    let used = store.writer.conn.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0)).unwrap();
    let turn = planning("b", 500, 500);
    let mut failures = 0;
    loop {
        store.writer.conn.query_row(&format!("PRAGMA max_page_count = {}", used + failures), [], |_| Ok(())).unwrap();
        match store.commit(lease, &turn) {
            Ok(()) => break,
            Err(StoreError::Medium { doing, cause }) => {
                assert!(doing.starts_with("write to ") && cause.contains("full"), "failed to {doing}: {cause}");
            }
            Err(other) => panic!("{other}"),
        }
        assert_eq!(all_told(&mut store), before);
        failures += 1;
    }
    assert!(failures > 5, "only {failures} failures");
    store.commit(lease, &planning("c", 1000, 1)).unwrap_or_else(|error| assert!(error.to_string().contains("full")));
}

#[test]
fn the_log_is_empty_after_an_orderly_end_and_after_a_rest() {
    let folder = Folder::new();
    let mut store = folder.open();
    let lease = lead(&mut store);
    let log = || {
        let mut path = folder.path().into_os_string();
        path.push("-wal");
        std::fs::metadata(path).unwrap().len()
    };
    // Readers stay open and block nothing.
    let reader = store.reader();
    store.commit(lease, &planning("a", 0, 500)).unwrap();
    assert_eq!(reader.events(&EventFilter::default(), PageRequest::oldest(1000)).unwrap().rows.len(), 500);
    assert!(log() > 0);
    lead(&mut store);
    assert!(log() > 0, "something was written since the lease was taken");
    lead(&mut store);
    assert_eq!(log(), 0);
    store.commit(lease, &planning("a", 500, 1)).unwrap();
    assert!(log() > 0);
    store.release(lease).unwrap();
    assert_eq!(log(), 0);
    assert_eq!(reader.events(&EventFilter::default(), PageRequest::oldest(1000)).unwrap().rows.len(), 501);
}

#[cfg(unix)]
#[test]
fn a_file_that_is_deleted_or_replaced_is_not_written_to_any_more() {
    let folder = Folder::new();
    let mut store = folder.open();
    lead(&mut store);
    let away = folder.path().with_extension("away");
    std::fs::rename(folder.path(), &away).unwrap();
    let refusal = |store: &mut SqliteStore| {
        let refused = store.lease("node", Timestamp::UNIX_EPOCH, 1000);
        refused.unwrap_err().to_string()
    };
    assert!(refusal(&mut store).contains("was deleted while it was in use"));
    std::fs::copy(&away, folder.path()).unwrap();
    assert!(refusal(&mut store).contains("was replaced while it was in use"));
    std::fs::rename(&away, folder.path()).unwrap();
    lead(&mut store);
}

#[test]
fn pages_need_no_sorting() {
    let folder = Folder::new();
    drop(folder.open());
    let conn = Connection::open(folder.path()).unwrap();
    let rest = "scheduled_at = 1 AND (workflow, key) > (2, '') ORDER BY workflow, key";
    let earlier = "scheduled_at >= 1 AND scheduled_at < 2 ORDER BY scheduled_at DESC, workflow, key";
    let roads = [
        ("NOT INDEXED", ""),
        ("INDEXED BY slots_of", "workflow = 1 AND "),
        ("INDEXED BY slots_troubled", "state > 6 AND workflow = 1 AND "),
        ("INDEXED BY slots_unsucceeded", "state <> 6 AND state = 3 AND "),
        ("INDEXED BY slots_backfill", "backfill = 'b' AND "),
        ("INDEXED BY slots_collecting", "collected IS NOT NULL AND state < 6 AND workflow = 1 AND "),
    ];
    for (index, prefix) in roads {
        for condition in [rest, earlier] {
            let plan = plan(&conn, &format!("SELECT * FROM slots {index} WHERE {prefix}{condition}"));
            assert!(plan.starts_with("SEARCH") && !plan.contains("TEMP B-TREE"), "{index}: {plan}");
        }
    }
    for (index, prefix) in [
        ("NOT INDEXED", ""),
        ("INDEXED BY runs_of_slots", "kind <> 4 AND "),
        ("INDEXED BY runs_open", "state < 2 AND (kind = 4) = 0 AND "),
        ("INDEXED BY runs_open", "state < 2 AND (kind = 4) = 1 AND "),
        ("INDEXED BY runs_troubled", "state > 2 AND (kind = 4) = 0 AND "),
        ("INDEXED BY runs_troubled_of", "state > 2 AND workflow = 1 AND (kind = 4) = 1 AND "),
    ] {
        let plan = plan(&conn, &format!("SELECT * FROM runs {index} WHERE {prefix}seq < 9 ORDER BY seq DESC"));
        assert!(plan.starts_with("SEARCH") && !plan.contains("TEMP B-TREE"), "{index}: {plan}");
        // By the position, too, and not only by what lies before it.
        assert!(plan.contains("seq<?") || plan.contains("rowid<?"), "{index}: {plan}");
    }
    let steps = "SELECT * FROM steps WHERE workflow = 1 AND key > '.a.' AND key < '.a/' ORDER BY workflow, key DESC";
    let plan = plan(&conn, steps);
    assert!(plan.starts_with("SEARCH") && plan.contains("key<?") && !plan.contains("TEMP B-TREE"), "{plan}");
}

#[test]
fn facts_and_what_happened_to_a_workflow_are_found_by_their_own_roads() {
    let folder = Folder::new();
    drop(folder.open());
    let conn = Connection::open(folder.path()).unwrap();
    let roads = [("events_outside", "workflow IS NULL"), ("events_of_workflows", "workflow = 1 AND kind IS NULL")];
    for (index, condition) in roads {
        let sql = format!("SELECT * FROM events INDEXED BY {index} WHERE {condition} AND seq < 9 ORDER BY seq DESC");
        let plan = plan(&conn, &sql);
        assert!(plan.starts_with("SEARCH") && plan.contains(index) && !plan.contains("TEMP B-TREE"), "{index}: {plan}");
    }
}

#[test]
fn a_database_of_the_second_schema_is_brought_forward() {
    let folder = Folder::new();
    let mut conn = Connection::open(folder.path()).unwrap();
    migrate(&mut conn, &STEPS[..2], "x").unwrap();
    let event = serde_json::to_string(&SlotEvent::planned(Origin::Schedule, 0)).unwrap();
    let definition = Workflow::new(
        WorkflowId::new("w").unwrap(),
        Schedule::Cron(CronSchedule::hourly()),
        Job::new("command", serde_json::Map::new()),
    );
    let definition = serde_json::to_string(&definition).unwrap();
    conn.execute_batch(
        "INSERT INTO workflows (id, name, slots, version, present, paused, planned) VALUES
            (1, 'w', 1, 1, 1, 0, '{\"ranges\":[],\"schedule\":\"\"}');
        INSERT INTO slots (scheduled_at, workflow, key, state, since, retries, last_run, last_run_seq, run_alive, priority,
            said, last_event) VALUES (60000, 1, '', 0, 5, 0, 0, 0, 0, 0, 0, 1)",
    )
    .unwrap();
    conn.execute("INSERT INTO definitions (workflow, version, at, definition) VALUES (1, 1, 5, ?1)", [&definition])
        .unwrap();
    let sql =
        "INSERT INTO events (seq, at, previous, workflow, scheduled_at, key, body) VALUES (1, 5, 0, 1, 60000, '', ?1)";
    conn.execute(sql, [&event]).unwrap();
    drop(conn);
    let mut store = folder.open();
    let snapshot = store.restore().unwrap();
    assert_eq!(snapshot.workflows[0].moments, Moments::default());
    assert_eq!(snapshot.slots[0].slot.collected, None);
    assert_eq!(store.known_facts(&[fact_key("1")]).unwrap(), []);
    assert_eq!(store.reader().events(&EventFilter::about(About::Facts), PageRequest::newest(9)).unwrap().rows, []);
    let mut turn = Commit { slots: snapshot.slots, ..planning("v", 1, 0) };
    turn.events.push(EventRecord {
        seq: 2,
        at: moment(6),
        previous: 0,
        event: Event::Workflow {
            workflow: WorkflowId::new("w").unwrap(),
            what: WorkflowEvent::Removed { by: None, reason: None },
        },
    });
    tell(&mut turn, "1");
    let lease = lead(&mut store);
    store.commit(lease, &turn).unwrap();
    drop(store);
    let mut store = folder.open();
    assert!(store.restore().unwrap().slots[0].slot.collected.is_some());
    assert_eq!(store.damage(9).unwrap(), [] as [&str; 0]);
    assert_eq!(store.known_facts(&[fact_key("1")]).unwrap(), [fact_key("1")]);
    assert_eq!(store.reader().events(&EventFilter::about(About::Facts), PageRequest::newest(9)).unwrap().rows.len(), 1);
    let of_itself = EventFilter::about(About::WorkflowItself(WorkflowId::new("w").unwrap()));
    assert_eq!(store.reader().events(&of_itself, PageRequest::newest(9)).unwrap().rows.len(), 1);
}

fn plan(conn: &Connection, sql: &str) -> String {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let lines = statement.query_map([], |row| row.get::<_, String>(3)).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    lines.join("; ")
}

#[test]
fn a_database_of_the_first_schema_is_brought_forward() {
    let folder = Folder::new();
    let mut conn = Connection::open(folder.path()).unwrap();
    migrate(&mut conn, &STEPS[..1], "x").unwrap();
    let rows = "INSERT INTO workflows (id, name) VALUES (1, 'w');
        INSERT INTO backfills (name, workflow, range_start, range_end, mode, priority, asked_by, created_at, slots)
        VALUES ('b', 1, 0, 60000, 'all', 3, 'ann', 5, 1)";
    conn.execute_batch(rows).unwrap();
    drop(conn);
    let mut store = folder.open();
    let row = store.reader().backfill(&BackfillId::new("b").unwrap()).unwrap().unwrap();
    assert_eq!((row.priority, &row.reason, &row.paused, row.resumed_at), (3, &None, &None, None));
    assert_eq!(row.by, Actor::unknown("ann"));
    let paused = Some(Pause { at: moment(7), by: Actor::person("bob") });
    let changed = Backfill { paused, resumed_at: Some(moment(6)), ..row };
    let lease = lead(&mut store);
    store.commit(lease, &Commit { backfills: vec![changed.clone()], ..Commit::default() }).unwrap();
    drop(store);
    assert_eq!(folder.open().restore().unwrap().backfills, [changed]);
}

#[test]
fn the_sizes_of_tables_are_counted_and_a_leader_is_named() {
    let folder = Folder::new();
    let mut store = folder.open();
    assert_eq!(SqliteStore::leader(&folder.path(), Timestamp::UNIX_EPOCH), None);
    let lease = lead(&mut store);
    store.commit(lease, &planning("w", 0, 7)).unwrap();
    assert_eq!(SqliteStore::leader(&folder.path(), Timestamp::UNIX_EPOCH).as_deref(), Some("node"));
    assert_eq!(SqliteStore::leader(&folder.path(), moment(2000)), None, "its lease has run out");
    assert_eq!(store.followed().unwrap(), None);
    let looking = SqliteStore::look(folder.path()).unwrap();
    let tables = looking.tables().unwrap();
    let rows = |name: &str| tables.iter().find(|one| one.name == name).map(|one| (one.rows, one.bytes >= 4096));
    assert_eq!((rows("events"), rows("slots"), rows("turns")), (Some((7, true)), Some((7, true)), Some((1, true))));
}
