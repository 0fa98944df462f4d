-- Slots that collect facts or have, and are not final: what an event schedule has pending, without a look at all that ended.
-- Others, of which there are many, cost nothing for it.
CREATE INDEX slots_collecting ON slots (workflow, scheduled_at, key DESC, state) WHERE collected IS NOT NULL AND state < 6;
