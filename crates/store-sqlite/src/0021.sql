-- How far the state of a node has followed a log. No row in a database that has no log but its own.
CREATE TABLE followed (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    -- The last entry, and the last epoch that was begun.
    entry       INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    check_value INTEGER NOT NULL
);

-- The times of leading, as the first entry of each epoch says.
CREATE TABLE reigns (
    epoch       INTEGER PRIMARY KEY,
    node        TEXT NOT NULL,
    address     TEXT,
    at          INTEGER NOT NULL,
    reason      TEXT NOT NULL,
    check_value INTEGER NOT NULL
);
