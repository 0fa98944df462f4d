-- Times are milliseconds since 1970. Workflows are named by number: `workflows.id`.
-- A slot's key is its `scheduled_at` and, for kinds of keys that are more than a time, the rest in `key`.
-- States are numbers, in the order of a slot's and of a run's life:
--   slots: 0 waiting, 1 held, 2 queued, 3 dispatched, 4 running, 5 backoff,
--          6 succeeded, 7 failed, 8 expired, 9 skipped, 10 killed
--   runs:  0 dispatched, 1 running, 2 succeeded, 3 failed, 4 killed, 5 unknown

CREATE TABLE leadership (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    epoch    INTEGER NOT NULL,
    node     TEXT,
    taken_at INTEGER
);
INSERT INTO leadership (one, epoch) VALUES (1, 0);

CREATE TABLE workflows (
    id       INTEGER PRIMARY KEY,
    name     TEXT NOT NULL UNIQUE,
    -- How many slots it has.
    slots    INTEGER NOT NULL DEFAULT 0,
    -- Its latest run; 0 before the first.
    last_run INTEGER NOT NULL DEFAULT 0,
    -- Its latest definition; null while nothing but the name is known.
    version  INTEGER,
    present  INTEGER NOT NULL DEFAULT 0,
    paused   INTEGER NOT NULL DEFAULT 0,
    planned  TEXT NOT NULL DEFAULT '{}'
);

CREATE TABLE sources (
    id     INTEGER PRIMARY KEY,
    digest INTEGER NOT NULL,
    text   TEXT NOT NULL
);
CREATE INDEX sources_by_digest ON sources (digest);

CREATE TABLE definitions (
    workflow   INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    definition TEXT NOT NULL,
    source     INTEGER,
    PRIMARY KEY (workflow, version)
);

-- Kept in the order of time, so that what changes at a time lies together, whatever the workflow: a turn
-- then writes few pages. The listing of all slots needs no index besides.
CREATE TABLE slots (
    scheduled_at INTEGER NOT NULL,
    workflow     INTEGER NOT NULL,
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
    PRIMARY KEY (scheduled_at, workflow DESC, key DESC)
) WITHOUT ROWID;
-- A workflow's slots; written once per slot.
CREATE INDEX slots_of ON slots (workflow, scheduled_at, key DESC);
-- Whatever did not succeed: what is live, for a restart, and each state's listing.
CREATE INDEX slots_unsucceeded ON slots (state, scheduled_at, workflow DESC, key DESC) WHERE state <> 6;
-- A workflow's slots that ended badly.
CREATE INDEX slots_troubled ON slots (workflow, scheduled_at, key DESC, state) WHERE state > 6;
-- Slots that are final but for a run that is being ended.
CREATE INDEX slots_ending ON slots (workflow) WHERE run_alive = 1 AND state >= 6;
CREATE INDEX slots_backfill ON slots (backfill, scheduled_at, workflow DESC, key DESC, state) WHERE backfill IS NOT NULL;

CREATE TABLE runs (
    -- Position of the dispatch in the log.
    seq           INTEGER PRIMARY KEY,
    workflow      INTEGER NOT NULL,
    scheduled_at  INTEGER NOT NULL,
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
    outcome       TEXT
);
CREATE INDEX runs_open ON runs (seq) WHERE state < 2;
CREATE INDEX runs_troubled ON runs (seq) WHERE state > 2;
CREATE INDEX runs_troubled_of ON runs (workflow) WHERE state > 2;

CREATE TABLE events (
    seq          INTEGER PRIMARY KEY,
    at           INTEGER NOT NULL,
    -- The same slot's event before it; 0 for the first.
    previous     INTEGER NOT NULL,
    -- Null for what happened to a backfill or a register.
    workflow     INTEGER,
    -- Null for what did not happen to a slot.
    scheduled_at INTEGER,
    key          TEXT,
    -- What happened; where no workflow is named, with its subject.
    body         TEXT NOT NULL
);

CREATE TABLE backfills (
    id           INTEGER PRIMARY KEY,
    name         TEXT NOT NULL UNIQUE,
    workflow     INTEGER NOT NULL,
    range_start  INTEGER NOT NULL,
    range_end    INTEGER NOT NULL,
    mode         TEXT NOT NULL,
    priority     INTEGER NOT NULL,
    asked_by     TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    cancelled_at INTEGER,
    slots        INTEGER NOT NULL
);

CREATE TABLE registers (
    bucket TEXT NOT NULL,
    key    TEXT NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (bucket, key)
) WITHOUT ROWID;
