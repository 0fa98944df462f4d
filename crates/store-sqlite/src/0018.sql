-- The part of a slot in a flow, as JSON; null where it has none, as in most.
ALTER TABLE slots ADD COLUMN flow TEXT;

-- The slots that are steps of runs of flows. A run may have thousands of them, and no list or count of slots is to pass over them, so they
-- have a table of their own. All columns mean what they mean in `slots`.
CREATE TABLE steps (
    workflow     INTEGER NOT NULL,
    -- The whole text of the key: that of the run, the name of the step, the number of the item. The steps of a run lie together.
    key          TEXT NOT NULL,
    state        INTEGER NOT NULL,
    since        INTEGER NOT NULL,
    retries      INTEGER NOT NULL,
    last_run     INTEGER NOT NULL,
    last_run_seq INTEGER NOT NULL,
    run_alive    INTEGER NOT NULL,
    external_id  TEXT,
    priority     INTEGER NOT NULL,
    backfill     TEXT,
    due          INTEGER,
    said         INTEGER NOT NULL,
    last_event   INTEGER NOT NULL,
    collected    TEXT,
    held         TEXT,
    requested    INTEGER NOT NULL,
    asked_at     INTEGER,
    flow         TEXT,
    check_value  INTEGER NOT NULL,
    PRIMARY KEY (workflow, key)
) WITHOUT ROWID;
-- What is live, for a restart.
CREATE INDEX steps_live ON steps (workflow, key) WHERE state < 6 OR run_alive = 1;

-- Runs of steps are in `runs`, where nearly all may be of steps. Lists leave them out, mostly: each index has them apart.
CREATE INDEX runs_of_slots ON runs (seq) WHERE kind <> 4;
DROP INDEX runs_open;
CREATE INDEX runs_open ON runs ((kind = 4), seq) WHERE state < 2;
DROP INDEX runs_troubled;
CREATE INDEX runs_troubled ON runs ((kind = 4), seq) WHERE state > 2;
DROP INDEX runs_troubled_of;
CREATE INDEX runs_troubled_of ON runs (workflow, (kind = 4), seq) WHERE state > 2;
