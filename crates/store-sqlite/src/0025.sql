-- Blocks have slots of all kinds of keys, and of backfills. A program of before could not read them, so it is to refuse the database.
-- The keys of the first and the last slot besides their times: of slots of one time, the greatest key comes first.
ALTER TABLE slot_blocks ADD COLUMN first_key TEXT NOT NULL DEFAULT '';
ALTER TABLE slot_blocks ADD COLUMN last_key TEXT NOT NULL DEFAULT '';
DROP INDEX slot_blocks_by_last;
DROP INDEX slot_blocks_by_first;
DROP INDEX slot_blocks_of_by_last;
DROP INDEX slot_blocks_of_by_first;
CREATE INDEX slot_blocks_by_last ON slot_blocks (last, workflow DESC, last_key DESC);
CREATE INDEX slot_blocks_by_first ON slot_blocks (first, workflow DESC, first_key DESC);
-- With where it begins, so that the blocks that a slot is not in are not read.
CREATE INDEX slot_blocks_of_by_last ON slot_blocks (workflow, last, last_key DESC, first, first_key);
CREATE INDEX slot_blocks_of_by_first ON slot_blocks (workflow, first, first_key DESC);
-- The blocks that have slots of a backfill, and how many: made of the blocks, as an index is.
CREATE TABLE backfill_blocks (
    backfill    TEXT NOT NULL,
    block       INTEGER NOT NULL,
    slots       INTEGER NOT NULL,
    PRIMARY KEY (backfill, block)
) WITHOUT ROWID;
