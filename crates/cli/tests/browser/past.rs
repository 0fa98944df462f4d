//! A long past, written straight into the file of state.
//!
//! In SQL, because a million of anything takes minutes through code that is not optimised.

use jiff::Timestamp;
use rusqlite::{Connection, params};

use crate::support::Folder;

/// The past of every workflow of a folder that has none: a slot and a run for each of so many hours before now. One in
/// 97 failed.
pub(crate) fn fill(folder: &Folder, hours: i64) {
    let mut store = Connection::open(folder.path().join(".kelos/kelos.db")).expect("a store");
    let count = |sql: &str| store.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a number");
    let (seq, width) = (count("SELECT ifnull(max(seq), 0) FROM events"), count("SELECT max(id) FROM workflows"));
    let end = Timestamp::now().as_second() / 3600 * 3_600_000;
    let writing = store.transaction().expect("a transaction");
    writing.execute_batch(BEFORE).expect("a version from before turns");
    for table in [SLOTS, RUNS, EVENTS] {
        let sql = format!("{PAST} {table}");
        // Names of parameters that a table does not ask for are not bound.
        writing.execute(&sql, params![hours, end, seq, width]).expect("rows");
    }
    // Rows without check values are those of databases from before there were any.
    let update =
        "UPDATE workflows SET slots = ?1, last_run = ?2 + ?1 * ?3 - ?3 + id, check_value = NULL, counts_check = NULL";
    writing.execute(update, params![hours, seq, width]).expect("rows");
    writing.commit().expect("a commit");
}

/// What makes the database one of before there were records of turns: whoever opens it makes a record of all that is there.
const BEFORE: &str = "
    DROP INDEX workflows_backlog;
    DROP INDEX events_of_workflows;
    DROP TABLE steps;
    DROP TABLE followed;
    DROP TABLE reigns;
    ALTER TABLE slots DROP COLUMN again;
    ALTER TABLE slots DROP COLUMN late;
    DROP TABLE trimmed;
    DROP TABLE slot_blocks;
    DROP TABLE backfill_blocks;
    ALTER TABLE slots DROP COLUMN flow;
    DROP INDEX runs_of_slots;
    DROP INDEX runs_open;
    DROP INDEX runs_troubled;
    DROP INDEX runs_troubled_of;
    CREATE INDEX runs_open ON runs (seq) WHERE state < 2;
    CREATE INDEX runs_troubled ON runs (seq) WHERE state > 2;
    CREATE INDEX runs_troubled_of ON runs (workflow) WHERE state > 2;
    ALTER TABLE slots DROP COLUMN kind;
    ALTER TABLE runs DROP COLUMN kind;
    ALTER TABLE events DROP COLUMN kind;
    CREATE INDEX events_of_workflows ON events (workflow, seq) WHERE workflow IS NOT NULL AND scheduled_at IS NULL;
    ALTER TABLE workflows DROP COLUMN enabled;
    ALTER TABLE slots RENAME COLUMN held TO outputs;
    ALTER TABLE runs DROP COLUMN batch;
    DROP TABLE turns;
    DROP TABLE deletions;
    PRAGMA user_version = 9";

/// Hour by hour, and workflow by workflow: `at` is the time, `seq` the place in the log.
const PAST: &str = "
    WITH RECURSIVE hour (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM hour WHERE n + 1 < ?1),
    past AS (
        SELECT ?2 - (?1 - n) * 3600000 AS at, workflows.id AS workflow, ?3 + n * ?4 + workflows.id AS seq,
            CASE WHEN n = 0 THEN 0 ELSE ?3 + (n - 1) * ?4 + workflows.id END AS earlier, (n * 7 + workflows.id * 13) % 97 = 0 AS failed,
            ?2 - (?1 - n) * 3600000 + (workflows.id * 7) % 23 * 60000 AS began, 60000 + (workflows.id * 11 + n * n * 5) % 19 * 37000 AS took
        FROM hour CROSS JOIN workflows
    )";

const SLOTS: &str = "
    INSERT INTO slots (scheduled_at, workflow, key, state, since, retries, last_run, last_run_seq, run_alive, priority, said, last_event)
    SELECT at, workflow, '', CASE WHEN failed THEN 7 ELSE 6 END, began + took, 0, 1, seq, 0, 0, 0, seq FROM past";

const RUNS: &str = r#"
    INSERT INTO runs (seq, workflow, scheduled_at, key, number, previous, earlier, state, executor, dispatched_at, started_at, ended_at, outcome)
    SELECT seq, workflow, at, '', 1, 0, earlier, CASE WHEN failed THEN 3 ELSE 2 END, 'command', began, began, began + took,
        CASE WHEN failed THEN '{"result":"failed","reason":"exited with status 1","exit_status":1}' ELSE '{"result":"succeeded"}' END
    FROM past"#;

const EVENTS: &str = r#"
    INSERT INTO events (seq, at, previous, workflow, scheduled_at, key, body)
    SELECT seq, began + took, 0, workflow, at, '', CASE
        WHEN failed THEN '{"event":"failed","run":1,"outcome":{"result":"failed","reason":"exited with status 1","exit_status":1}}'
        ELSE '{"event":"succeeded","run":1}' END
    FROM past"#;
