-- What a slot's run has said that it gives, as JSON; null where it has said nothing, and once it has ended.
ALTER TABLE slots ADD COLUMN outputs TEXT;
