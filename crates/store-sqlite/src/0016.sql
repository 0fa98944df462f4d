-- The slots that a run serves together; null where it serves its own alone. Written once, with the dispatch.
ALTER TABLE runs ADD COLUMN batch TEXT;
