//! The requests that users leave in their own transactions: a table, and a function that all may be allowed to call.

use std::time::Duration;

use kelos_store::log::adapter::Action;
use kelos_store::log::{Inbox, InboxRequest, LARGEST_REQUEST, LogError, RefusedRequest};

use crate::PostgresLog;
use crate::connection::OFTEN;
use crate::session::{Session, Tables};

const REQUESTS: usize = 0;
const FINISH: usize = 1;
const SET_ASIDE: usize = 2;
const REFUSED: usize = 3;

/// The statements, in the order of the constants above.
fn statements(s: &str) -> Vec<String> {
    vec![
        format!(
            "SELECT id, asked_by, workflow, key, arguments::text, priority, reason FROM {s}.inbox
            WHERE problem IS NULL ORDER BY id LIMIT $1"
        ),
        format!("DELETE FROM {s}.inbox WHERE id = ANY($1)"),
        // It waits for a taking of the lease, and sees its epoch.
        format!(
            "WITH held AS MATERIALIZED (SELECT epoch FROM {s}.log FOR SHARE)
            UPDATE {s}.inbox SET problem = $3 FROM held WHERE held.epoch = $1 AND id = $2"
        ),
        format!(
            "SELECT id, asked_by, workflow, key, problem FROM {s}.inbox WHERE problem IS NOT NULL ORDER BY id DESC LIMIT $1"
        ),
    ]
}

/// The statement that makes the table and the function, once. It is sent as one: a transaction of its own.
fn making(s: &str) -> String {
    format!(
        "SELECT pg_advisory_xact_lock(hashtext('kelos.log'), hashtext('{s}'));
        CREATE SEQUENCE IF NOT EXISTS {s}.inbox_ids;
        CREATE TABLE IF NOT EXISTS {s}.inbox (
            id bigint PRIMARY KEY,
            asked_at timestamptz NOT NULL,
            asked_by text NOT NULL,
            workflow text NOT NULL,
            key text NOT NULL,
            arguments jsonb,
            priority integer NOT NULL,
            reason text,
            problem text
        );
        COMMENT ON TABLE {s}.inbox IS 'requests to start workflows; those with a problem were set aside';
        CREATE INDEX IF NOT EXISTS inbox_refused ON {s}.inbox (id) WHERE problem IS NOT NULL;
        CREATE OR REPLACE FUNCTION {s}.start(
            workflow text, key text DEFAULT NULL, arguments jsonb DEFAULT '{{}}', priority integer DEFAULT 0, reason text DEFAULT NULL
        ) RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $start$
        DECLARE
            id bigint := nextval('{s}.inbox_ids');
            run text := left(coalesce(start.key, 'sql-' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD-HH24MISS') || '-' || id), 300);
            bytes integer := octet_length(start.arguments::text);
            is_large boolean := coalesce(bytes > {LARGEST_REQUEST}, false);
        BEGIN
            INSERT INTO {s}.inbox VALUES (
                id, clock_timestamp(), session_user, left(coalesce(start.workflow, ''), 300), run,
                CASE WHEN NOT is_large THEN coalesce(start.arguments, '{{}}') END, coalesce(start.priority, 0), left(start.reason, 1000),
                CASE WHEN is_large THEN 'the arguments have ' || bytes || ' bytes, expected at most 65536' END
            );
            PERFORM pg_notify('{s}_in', '1');
            RETURN run;
        END $start$;
        COMMENT ON FUNCTION {s}.start IS 'starts a workflow with the commit of this transaction; the same key is the same run';
        REVOKE ALL ON FUNCTION {s}.start FROM PUBLIC;"
    )
}

/// A connection to the requests.
pub(crate) struct PostgresInbox(Session);

impl PostgresInbox {
    pub(crate) fn open(place: PostgresLog) -> Result<PostgresInbox, LogError> {
        let schema = &place.schema;
        let tables = Tables {
            channel: format!("{schema}_in"),
            known_by: "inbox",
            making: making(schema),
            statements: statements(schema),
        };
        let mut session = Session::new(place, tables)?;
        session.start_listening(Action::read("open the inbox"))?;
        Ok(PostgresInbox(session))
    }
}

impl Inbox for PostgresInbox {
    fn requests(&mut self, limit: usize) -> Result<Vec<InboxRequest>, LogError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.0.rows(Action::read("read the inbox"), REQUESTS, &[&limit])?;
        let request = |row: &tokio_postgres::Row| InboxRequest {
            number: row.get(0),
            user: row.get(1),
            workflow: row.get(2),
            key: row.get(3),
            arguments: row.get(4),
            priority: row.get(5),
            reason: row.get(6),
        };
        Ok(rows.iter().map(request).collect())
    }

    fn finish(&mut self, numbers: &[i64]) -> Result<(), LogError> {
        self.0.rows(Action::write("delete requests of the inbox"), FINISH, &[&numbers]).map(drop)
    }

    fn set_aside(&mut self, epoch: u64, number: i64, problem: &str) -> Result<(), LogError> {
        let doing = format!("set request {number} of the inbox aside");
        self.0.rows(Action::write(&doing), SET_ASIDE, &[&epoch.cast_signed(), &number, &problem]).map(drop)
    }

    fn refused(&mut self, limit: usize) -> Result<Vec<RefusedRequest>, LogError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.0.rows(Action::read("read the requests that were set aside"), REFUSED, &[&limit])?;
        let refused = |row: &tokio_postgres::Row| RefusedRequest {
            number: row.get(0),
            user: row.get(1),
            workflow: row.get(2),
            key: row.get(3),
            problem: row.get(4),
        };
        Ok(rows.iter().map(refused).collect())
    }

    fn wait(&mut self, patience: Duration) -> Result<(), LogError> {
        let action = Action::read("wait for requests in the inbox");
        self.0.start_listening(action)?;
        let patience = if self.0.place.is_notifying { patience } else { patience.min(OFTEN) };
        self.0.hear(action, patience)
    }
}
