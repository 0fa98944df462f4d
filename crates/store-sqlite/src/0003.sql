-- What a slot has collected of facts, as JSON; null where it has not begun.
ALTER TABLE slots ADD COLUMN collected TEXT;
-- Moments of a workflow's past that matter to what comes, as JSON.
ALTER TABLE workflows ADD COLUMN moments TEXT NOT NULL DEFAULT '{}';

-- Facts that have names, so that they count once.
CREATE TABLE facts (
    source TEXT NOT NULL,
    -- What it is about: a dataset, an end of a program, a signal.
    about  TEXT NOT NULL,
    key    TEXT NOT NULL,
    -- Position in the log.
    seq    INTEGER NOT NULL,
    -- Keys mostly go with the time: those of many datasets lie together then, where they come together.
    PRIMARY KEY (source, key, about)
) WITHOUT ROWID;
-- What happened to neither a slot nor a workflow: few lines beside the others, and the facts are among them.
CREATE INDEX events_outside ON events (seq) WHERE workflow IS NULL;
-- What happened to workflows themselves, and not to their slots.
CREATE INDEX events_of_workflows ON events (workflow, seq) WHERE workflow IS NOT NULL AND scheduled_at IS NULL;
