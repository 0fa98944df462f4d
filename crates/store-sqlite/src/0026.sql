-- How often the slot was done again because an outcome was unknown, since it was last opened; null where it never was.
ALTER TABLE slots ADD COLUMN again INTEGER;
ALTER TABLE steps ADD COLUMN again INTEGER;
