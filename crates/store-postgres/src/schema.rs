//! The tables of a log, and the settings of a server that it needs.

/// The number of the form of the tables that this program makes and reads.
pub(crate) const FORM: i32 = 1;

/// The statement that makes the tables, once, also where many nodes begin at the same time. It is sent as one: a transaction of its own.
pub(crate) fn making(schema: &str) -> String {
    // The lock ends with the transaction, also where the connection is lost.
    format!(
        "SELECT pg_advisory_xact_lock(hashtext('kelos.log'), hashtext('{schema}'));
        CREATE SCHEMA IF NOT EXISTS {schema};
        CREATE TABLE IF NOT EXISTS {schema}.log (
            id boolean PRIMARY KEY DEFAULT true CHECK (id),
            form integer NOT NULL,
            epoch bigint NOT NULL DEFAULT 0,
            nonce bigint NOT NULL DEFAULT 0,
            renewals bigint NOT NULL DEFAULT 0,
            is_free boolean NOT NULL DEFAULT false,
            holder text NOT NULL DEFAULT '',
            first bigint NOT NULL DEFAULT 1,
            snapshot bigint,
            parts bigint
        ) WITH (fillfactor = 20);
        COMMENT ON TABLE {schema}.log IS 'one row: the lease, the first entry that is kept, the latest snapshot';
        CREATE TABLE IF NOT EXISTS {schema}.entries (
            position bigint PRIMARY KEY,
            epoch bigint NOT NULL,
            body bytea NOT NULL
        ) WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_limit = 1000);
        CREATE SEQUENCE IF NOT EXISTS {schema}.snapshots;
        CREATE TABLE IF NOT EXISTS {schema}.parts (
            snapshot bigint NOT NULL,
            part integer NOT NULL,
            body bytea NOT NULL,
            PRIMARY KEY (snapshot, part)
        );
        ALTER TABLE {schema}.entries ALTER body SET STORAGE EXTERNAL;
        ALTER TABLE {schema}.parts ALTER body SET STORAGE EXTERNAL;
        INSERT INTO {schema}.log (form) VALUES ({FORM}) ON CONFLICT DO NOTHING;"
    )
}

/// The reason for which a server can't keep a log durably; none if it can.
pub(crate) fn objection(synchronous_commit: &str, fsync: &str) -> Option<String> {
    let (setting, risk) = match (synchronous_commit, fsync) {
        (_, "off") => ("fsync", "a crash of its machine can destroy the whole database"),
        ("off", _) => ("synchronous_commit", "a crash loses entries that it acknowledged"),
        _ => return None,
    };
    Some(format!(
        "{setting} of this server is off: {risk}; switch it on, or accept that with durability=relaxed in the address"
    ))
}
