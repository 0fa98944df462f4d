-- The permits that a live run holds beside those of its start. The column was for outputs, and is null since runs have these.
ALTER TABLE slots RENAME COLUMN outputs TO held;
