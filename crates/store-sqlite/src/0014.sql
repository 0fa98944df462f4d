-- What turns delete, a row for each turn that deletes anything: the digest of the turn is over it, too.
CREATE TABLE deletions (
    turn        INTEGER PRIMARY KEY,
    deleted     TEXT NOT NULL,
    check_value INTEGER NOT NULL
);
