//! SQL of users over a database: read-only, over views whose names stay, and never in the way of the leader.
//!
//! The views belong to the connection (`views.sql`), so a new one needs no step of the schema. Nothing else can be read, so that no
//! query comes to depend on tables that change; that is no protection from somebody who may read the file anyway.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_model::{RunState, SlotState};
use kelos_store::StoreError;
use kelos_store::adapter::cursor::whole_key;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{Null, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, ToSql};

use super::blocks;
use super::fault::Fault;
use super::open;

/// The views, in the order in which they are listed.
const VIEWS: [&str; 11] = [
    "workflows",
    "definitions",
    "slots",
    "runs",
    "steps",
    "events",
    "facts",
    "backfills",
    "registers",
    "turns",
    "leaders",
];
/// Functions of SQLite that make tables of JSON.
const TABLES_OF_JSON: [&str; 2] = ["json_each", "json_tree"];
/// The longest value of a query, in bytes, so that no function takes memory and time without an end.
const LONGEST_VALUE: i32 = 64 << 20;
/// Steps of SQLite's machine between two looks at the clock: some tens of microseconds.
const STEPS: i32 = 10_000;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum SqlValue {
    /// No value.
    Null,
    /// A whole number.
    Integer(i64),
    /// Another number.
    Real(f64),
    /// A text; where it is not UTF-8, with replacement characters.
    Text(String),
    /// A list of bytes.
    Bytes(Vec<u8>),
}

/// The reason for which a query has no answer, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The query is not one that can be answered here.
    #[error("{0}")]
    Refused(String),
    /// It took too long.
    #[error("it took longer than {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The receiver of the rows wants no more.
    #[error("its reader went away")]
    Stopped,
    /// The database can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The receiver of what a query finds.
pub trait SqlRows {
    /// The names of the columns, once, before the first row.
    fn columns(&mut self, names: &[String]);

    /// A row. False ends the query.
    fn row(&mut self, values: Vec<SqlValue>) -> bool;
}

/// The views of a database, and the answers to SQL about them.
#[derive(Debug)]
pub struct SqliteViews {
    conn: Connection,
    place: Arc<str>,
}

impl SqliteViews {
    /// Opens the views of a database. It is not created and not brought up to date; a process may lead on it.
    ///
    /// # Errors
    /// When the file can't be read, is not a database of ours, or was written by a newer or an older program.
    pub fn open(path: &Path) -> Result<SqliteViews, StoreError> {
        let place: Arc<str> = path.display().to_string().into();
        let conn = opened(path).map_err(|fault| fault.tell("open", &place))?;
        Ok(SqliteViews { conn, place })
    }

    /// The views, each with its columns.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn list(&self) -> Result<Vec<(&'static str, Vec<String>)>, StoreError> {
        let columns = |view: &'static str| {
            let statement = self.conn.prepare(&format!("SELECT * FROM {view}"))?;
            Ok((view, statement.column_names().map(str::to_owned).collect()))
        };
        let all: Result<Vec<_>, rusqlite::Error> = VIEWS.into_iter().map(columns).collect();
        all.map_err(|error| Fault::from(error).tell("read", &self.place))
    }

    /// Answers a query: one statement that reads. All rows are of one moment.
    ///
    /// # Errors
    /// When the query is wrong or takes longer than `limit`, or the database can't be read.
    pub fn query(&mut self, sql: &str, limit: Duration, rows: &mut dyn SqlRows) -> Result<(), SqlError> {
        let until = Instant::now().checked_add(limit);
        let is_late = move || until.is_some_and(|until| Instant::now() >= until);
        let armed = self.conn.progress_handler(STEPS, Some(is_late));
        let fail = |error| self.fail(error, limit);
        armed.map_err(fail)?;
        let mut statement = self.conn.prepare(sql).map_err(fail)?;
        if !statement.readonly() || statement.column_count() == 0 {
            return Err(SqlError::Refused(
                "expected one statement that reads, such as `select … from runs`".to_owned(),
            ));
        }
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        rows.columns(&names);
        let mut found = statement.query([]).map_err(fail)?;
        while let Some(row) = found.next().map_err(fail)? {
            let value = |column| Ok(value_of(row.get_ref(column)?));
            let values: Result<Vec<SqlValue>, rusqlite::Error> = (0..names.len()).map(value).collect();
            if !rows.row(values.map_err(fail)?) {
                return Err(SqlError::Stopped);
            }
        }
        Ok(())
    }

    fn fail(&self, error: rusqlite::Error, limit: Duration) -> SqlError {
        match &error {
            rusqlite::Error::MultipleStatement => SqlError::Refused("expected one statement".to_owned()),
            rusqlite::Error::SqlInputError { msg, sql, offset, .. } => {
                let near = usize::try_from(*offset).ok().and_then(|offset| sql.get(offset..));
                let near = near.map(|rest| rest.chars().take(30).collect::<String>()).filter(|near| !near.is_empty());
                SqlError::Refused(near.map_or_else(|| msg.clone(), |near| format!("{msg}, at \"{near}\"")))
            }
            rusqlite::Error::SqliteFailure(failure, what) => match failure.code {
                ErrorCode::OperationInterrupted => SqlError::TimedOut(limit),
                ErrorCode::AuthorizationForStatementDenied => SqlError::Refused(format!(
                    "{}; a query can read {}",
                    what.as_deref().unwrap_or("that can't be read"),
                    VIEWS.join(", ")
                )),
                ErrorCode::Unknown | ErrorCode::TooBig | ErrorCode::TypeMismatch | ErrorCode::ReadOnly => {
                    SqlError::Refused(what.clone().unwrap_or_else(|| error.to_string()))
                }
                _ => Fault::from(error).tell("read", &self.place).into(),
            },
            _ => Fault::from(error).tell("read", &self.place).into(),
        }
    }
}

fn opened(path: &Path) -> Result<Connection, Fault> {
    let mut conn = open::up_to_date(path)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_VALUE)?;
    add_functions(&conn)?;
    conn.execute_batch(include_str!("views.sql"))?;
    conn.authorizer(Some(admit))?;
    Ok(conn)
}

/// Admits what reads the views, and what the views read.
fn admit(context: AuthContext<'_>) -> Authorization {
    let is_view = |name: &str| VIEWS.iter().any(|view| view.eq_ignore_ascii_case(name));
    let is_admitted = match context.action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => !function_name.eq_ignore_ascii_case("load_extension"),
        // A table of the query itself, and one of which no column is read: a view that was merged into the query names it like that.
        AuthAction::Read { column_name: "", .. } => true,
        AuthAction::Read { table_name, .. } => {
            is_view(table_name) && context.database_name != Some("main")
                || TABLES_OF_JSON.iter().any(|table| table.eq_ignore_ascii_case(table_name))
                || context.accessor.is_some_and(is_view)
        }
        _ => false,
    };
    if is_admitted { Authorization::Allow } else { Authorization::Deny }
}

fn value_of(value: ValueRef<'_>) -> SqlValue {
    match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(number) => SqlValue::Integer(number),
        ValueRef::Real(number) => SqlValue::Real(number),
        ValueRef::Text(text) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => SqlValue::Bytes(bytes.to_vec()),
    }
}

/// Adds the functions that the views and their users need.
fn add_functions(conn: &Connection) -> Result<(), Fault> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    conn.create_scalar_function("instant", 1, flags, |context| Ok(moment_of(context, 0)?.map(text_of)))?;
    conn.create_scalar_function("ms", 1, flags, |context| {
        let Some(text) = context.get::<Option<String>>(0)? else { return Ok(None) };
        let moment = kelos_model::time::parse_instant(&text);
        moment.map(|at| Some(at.as_millisecond())).map_err(|error| user(error.to_string()))
    })?;
    conn.create_scalar_function("slot_key", 3, flags, |context| {
        let beyond = context.get::<String>(2)?;
        let key = whole_key(context.get(0)?, moment_of(context, 1)?, &beyond);
        Ok(key.map_or(beyond, |key| key.short().to_string()))
    })?;
    conn.create_scalar_function("slots_of_block", 1, flags, |context| {
        let body = context.get_raw(0).as_blob().map_err(|error| user(error.to_string()))?;
        blocks::as_json(body).map_err(|fault| user(fault.tell("read", "the database").to_string()))
    })?;
    let slot_states = SlotState::ALL.map(SlotState::as_str);
    conn.create_scalar_function("slot_state", 1, flags, move |context| named(context, &slot_states))?;
    let run_states = RunState::ALL.map(RunState::as_str);
    conn.create_scalar_function("run_state", 1, flags, move |context| named(context, &run_states))?;
    Ok(())
}

fn user(message: String) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(message.into())
}

fn moment_of(context: &Context<'_>, argument: usize) -> rusqlite::Result<Option<Timestamp>> {
    let millis = context.get::<Option<i64>>(argument)?;
    let moment = millis.map(Timestamp::from_millisecond).transpose();
    moment.map_err(|error| user(error.to_string()))
}

fn text_of(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// The name that belongs to the number of a state.
fn named(context: &Context<'_>, names: &[&'static str]) -> rusqlite::Result<StateName> {
    let number = usize::try_from(context.get::<i64>(0)?).ok();
    Ok(StateName(number.and_then(|number| names.get(number)).copied()))
}

/// The name of a state; none of a number that stands for no state.
struct StateName(Option<&'static str>);

impl ToSql for StateName {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.map_or_else(|| Null.to_sql(), |name| Ok(name.into()))
    }
}
