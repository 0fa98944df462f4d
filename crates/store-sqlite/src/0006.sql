-- Whether somebody ever asked for a slot by itself or by a backfill: then it goes although its workflow starts later.
-- Of what was reopened before this was noted nobody knows; those that a backfill asked for are known.
ALTER TABLE slots ADD COLUMN requested INTEGER NOT NULL DEFAULT 0;
UPDATE slots SET requested = 1 WHERE backfill IS NOT NULL;
