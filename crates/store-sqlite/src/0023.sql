-- How much of the history was removed: the turn up to which it may be incomplete, the last event and the moment of that turn, and the
-- numbers of what is gone. A program of before would take missing events for damage, so it is to refuse the database.
CREATE TABLE trimmed (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    turn        INTEGER NOT NULL,
    event       INTEGER NOT NULL,
    -- Null while nothing was removed.
    at          INTEGER,
    events      INTEGER NOT NULL,
    runs        INTEGER NOT NULL,
    -- Whether there was no history before there were bounds.
    is_new      INTEGER NOT NULL,
    check_value INTEGER NOT NULL
);
