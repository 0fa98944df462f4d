-- The workflows that have planned what has no slots yet, which every list and count of slots looks for. Most have none.
CREATE INDEX workflows_backlog ON workflows (name) WHERE instr(planned, '"backlog":') > 0;
