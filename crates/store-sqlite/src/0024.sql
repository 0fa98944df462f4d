-- Blocks of slots that succeeded long ago and whose history was removed: each has some hundred slots of a workflow, in few bytes. They are
-- in no row of `slots` then. A program of before would not find them, so it is to refuse the database.
CREATE TABLE slot_blocks (
    id          INTEGER PRIMARY KEY,
    workflow    INTEGER NOT NULL,
    -- The times of the first and the last of them.
    first       INTEGER NOT NULL,
    last        INTEGER NOT NULL,
    slots       INTEGER NOT NULL,
    body        BLOB NOT NULL,
    check_value INTEGER NOT NULL
);
CREATE INDEX slot_blocks_by_last ON slot_blocks (last);
CREATE INDEX slot_blocks_by_first ON slot_blocks (first);
CREATE INDEX slot_blocks_of_by_last ON slot_blocks (workflow, last);
CREATE INDEX slot_blocks_of_by_first ON slot_blocks (workflow, first);
