-- A workflow's slots that are not final: what it has pending, without a look at all that ended.
CREATE INDEX slots_live_of ON slots (workflow, scheduled_at, key DESC, state) WHERE state < 6;
