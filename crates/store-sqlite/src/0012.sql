-- Whether a workflow is in force at all: an event schedule is disabled until somebody enables it, all else is always enabled. Before, the
-- column `paused` said both.
ALTER TABLE workflows ADD COLUMN enabled INTEGER;

-- What a run was dispatched with, and what it gave; null where nothing. Both are JSON objects. Before, what a run that went on had given
-- was in `slots.outputs`, which is null from now on.
ALTER TABLE runs ADD COLUMN arguments TEXT;
ALTER TABLE runs ADD COLUMN outputs TEXT;
