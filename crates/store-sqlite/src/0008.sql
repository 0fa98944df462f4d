-- When somebody last asked for a slot; null where only its schedule did.
ALTER TABLE slots ADD COLUMN asked_at INTEGER;
