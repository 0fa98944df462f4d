-- The views of `kelos sql`. Their names and columns stay as they are, whatever becomes of the tables; docs/sql.md lists them.
-- They belong to a connection, so that no database has to be brought up to date for a new one.
--
-- A time is there twice: as text (UTC, to the millisecond, in an order that sorts), and in `…_ms` as milliseconds since 1970, which an
-- index may serve.

CREATE TEMP VIEW workflows AS
SELECT w.name AS workflow,
       json_extract(d.definition, '$.project') AS project,
       w.version,
       w.present AS is_defined,
       coalesce(w.enabled, 1) AS is_enabled,
       w.paused AS is_paused,
       w.slots AS slots,
       instant(d.at) AS defined_at,
       d.at AS defined_at_ms,
       d.definition
FROM main.workflows w
LEFT JOIN main.definitions d ON d.workflow = w.id AND d.version = w.version;

CREATE TEMP VIEW definitions AS
SELECT w.name AS workflow,
       d.version,
       instant(d.at) AS defined_at,
       d.at AS defined_at_ms,
       d.definition,
       s.text AS source
FROM main.definitions d
JOIN main.workflows w ON w.id = d.workflow
LEFT JOIN main.sources s ON s.id = d.source;

CREATE TEMP VIEW slots AS
SELECT w.name AS workflow,
       slot_key(s.kind, s.scheduled_at, s.key) AS key,
       CASE WHEN s.kind IN (0, 2) THEN instant(s.scheduled_at) END AS scheduled_at,
       s.scheduled_at AS scheduled_at_ms,
       slot_state(s.state) AS state,
       instant(s.since) AS since,
       s.since AS since_ms,
       s.last_run AS runs,
       s.retries,
       s.priority,
       s.backfill,
       s.external_id,
       s.last_event,
       instant(s.late) AS missed_deadline,
       s.late AS missed_deadline_ms
FROM main.slots s
JOIN main.workflows w ON w.id = s.workflow
UNION ALL
SELECT w.name,
       slot_key(p.value ->> 'kind', p.value ->> 'at', p.value ->> 'key'),
       CASE WHEN p.value ->> 'kind' IN (0, 2) THEN instant(p.value ->> 'at') END,
       p.value ->> 'at',
       slot_state(6),
       instant(p.value ->> 'since'),
       p.value ->> 'since',
       p.value ->> 'runs',
       p.value ->> 'retries',
       p.value ->> 'priority',
       p.value ->> 'backfill',
       p.value ->> 'external_id',
       p.value ->> 'last_event',
       instant(p.value ->> 'late'),
       p.value ->> 'late'
FROM main.slot_blocks b
JOIN main.workflows w ON w.id = b.workflow
JOIN json_each(slots_of_block(b.body)) p;

CREATE TEMP VIEW steps AS
SELECT w.name AS workflow,
       slot_key(4, NULL, s.key) AS key,
       slot_state(s.state) AS state,
       instant(s.since) AS since,
       s.since AS since_ms,
       s.last_run AS runs,
       s.retries,
       s.external_id,
       s.last_event
FROM main.steps s
JOIN main.workflows w ON w.id = s.workflow;

CREATE TEMP VIEW runs AS
SELECT r.seq AS position,
       w.name AS workflow,
       slot_key(r.kind, r.scheduled_at, r.key) AS key,
       CASE WHEN r.kind IN (0, 2) THEN instant(r.scheduled_at) END AS scheduled_at,
       r.scheduled_at AS scheduled_at_ms,
       r.number,
       run_state(r.state) AS state,
       r.executor,
       r.external_id,
       instant(r.dispatched_at) AS dispatched_at,
       r.dispatched_at AS dispatched_at_ms,
       instant(r.started_at) AS started_at,
       r.started_at AS started_at_ms,
       instant(r.ended_at) AS ended_at,
       r.ended_at AS ended_at_ms,
       (r.ended_at - r.started_at) / 1000.0 AS seconds,
       json_extract(r.outcome, '$.reason') AS reason,
       r.outcome,
       r.arguments,
       r.outputs
FROM main.runs r
JOIN main.workflows w ON w.id = r.workflow;

CREATE TEMP VIEW events AS
SELECT e.seq AS position,
       instant(e.at) AS at,
       e.at AS at_ms,
       w.name AS workflow,
       CASE WHEN e.kind IS NOT NULL THEN slot_key(e.kind, e.scheduled_at, e.key) END AS key,
       coalesce(json_extract(e.body, '$.event'), json_extract(e.body, '$.subject')) AS event,
       json_extract(e.body, '$.by.name') AS actor,
       CASE WHEN json_extract(e.body, '$.bucket') = 'kelos.access' THEN json_remove(e.body, '$.value') ELSE e.body END AS body
FROM main.events e
LEFT JOIN main.workflows w ON w.id = e.workflow;

CREATE TEMP VIEW backfills AS
SELECT b.name AS backfill,
       w.name AS workflow,
       instant(b.range_start) AS range_start,
       instant(b.range_end) AS range_end,
       b.mode,
       b.priority,
       b.slots,
       instant(b.created_at) AS created_at,
       instant(b.paused_at) AS paused_at,
       instant(b.cancelled_at) AS cancelled_at,
       b.asked_by,
       b.reason
FROM main.backfills b
JOIN main.workflows w ON w.id = b.workflow;

CREATE TEMP VIEW facts AS
SELECT f.source, f.about, f.key, f.seq AS position
FROM main.facts f;

CREATE TEMP VIEW registers AS
SELECT r.bucket, r.key, r.value
FROM main.registers r
WHERE r.bucket NOT LIKE 'kelos.%';

CREATE TEMP VIEW turns AS
SELECT t.turn, t.epoch, instant(t.at) AS at, t.at AS at_ms, t.first_event, t.events, lower(hex(t.digest)) AS digest
FROM main.turns t;

CREATE TEMP VIEW leaders AS
SELECT r.epoch, r.node, r.address, instant(r.at) AS since, r.at AS since_ms, r.reason
FROM main.reigns r;
