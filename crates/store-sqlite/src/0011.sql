-- A slot's key has a kind: 0 a time, 1 a job id, 2 the moment at which the slot came to be, 3 a run of a flow. `key` is what it says
-- beside its time: nothing, the job id, `_`, the whole text of a run of a flow.
--
-- In `slots` what has no time sorts at 0, before all that has one.
ALTER TABLE slots ADD COLUMN kind INTEGER;
-- Null for what did not happen to a slot.
ALTER TABLE events ADD COLUMN kind INTEGER;

CREATE TABLE runs_by_kind (
    -- Position of the dispatch in the log.
    seq           INTEGER PRIMARY KEY,
    workflow      INTEGER NOT NULL,
    kind          INTEGER NOT NULL,
    -- Null where the key has no time.
    scheduled_at  INTEGER,
    key           TEXT NOT NULL,
    number        INTEGER NOT NULL,
    -- The same slot's run before it; 0 for the first.
    previous      INTEGER NOT NULL,
    -- The same workflow's run before it; 0 for the first. The chain is the workflow's listing, so no
    -- index over all runs is written.
    earlier       INTEGER NOT NULL,
    state         INTEGER NOT NULL,
    executor      TEXT NOT NULL,
    external_id   TEXT,
    dispatched_at INTEGER NOT NULL,
    started_at    INTEGER,
    ended_at      INTEGER,
    outcome       TEXT,
    check_value   INTEGER,
    -- Of what is written once, when the run is dispatched.
    origin_check  INTEGER
);
INSERT INTO runs_by_kind
    SELECT seq, workflow, CASE WHEN key = '' THEN 0 ELSE 1 END, CASE WHEN key = '' THEN scheduled_at END, key, number, previous, earlier,
        state, executor, external_id, dispatched_at, started_at, ended_at, outcome, check_value, origin_check
    FROM runs;
DROP TABLE runs;
ALTER TABLE runs_by_kind RENAME TO runs;
CREATE INDEX runs_open ON runs (seq) WHERE state < 2;
CREATE INDEX runs_troubled ON runs (seq) WHERE state > 2;
CREATE INDEX runs_troubled_of ON runs (workflow) WHERE state > 2;

DROP INDEX events_of_workflows;
CREATE INDEX events_of_workflows ON events (workflow, seq) WHERE workflow IS NOT NULL AND kind IS NULL;
