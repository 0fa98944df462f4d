-- The deadline that the slot has missed since it was last opened; null where it has missed none.
ALTER TABLE slots ADD COLUMN late INTEGER;
-- No step has a deadline.
ALTER TABLE steps ADD COLUMN late INTEGER;
