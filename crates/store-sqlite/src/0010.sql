-- A row for each turn, by which the log hangs together. What was written before has one row for all of it, with epoch 0.
CREATE TABLE turns (
    turn        INTEGER PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    -- Position of its first event; that of the next event to come where it has none.
    first_event INTEGER NOT NULL,
    events      INTEGER NOT NULL,
    -- The version of how its events are written.
    body        INTEGER NOT NULL,
    -- Over the digest before it, this row and the events.
    digest      BLOB NOT NULL,
    check_value INTEGER NOT NULL
);
