-- Backfills are paused and resumed, and say why they were asked for.
ALTER TABLE backfills ADD COLUMN reason TEXT;
-- Since when it is paused, and by whom; null while it goes on.
ALTER TABLE backfills ADD COLUMN paused_at INTEGER;
ALTER TABLE backfills ADD COLUMN paused_by TEXT;
-- When it was last resumed.
ALTER TABLE backfills ADD COLUMN resumed_at INTEGER;
