//! `kelos sql`: a query over the data of a server, answered from its database, while the server goes on.

mod outlet;
mod table;

use std::io::{IsTerminal, Read};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use kelos_store_sqlite::{SqlError, SqlRows, SqlValue, SqliteViews};
use serde_json::{Map, Value};

use crate::data::{self, Place};
use crate::failure::Failure;
use crate::{options, render, text};
use outlet::{Outlet, OutletError};
use table::TablePrinter;

/// The largest query that is read from standard input.
const LARGEST_QUERY: u64 = 1 << 20;
/// The time after its limit at which a query is given up that has not ended by itself: SQLite can't be interrupted within a function.
const GRACE: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(crate) struct SqlArgs {
    /// One statement that reads, in SQLite's SQL; `-` reads it from standard input. Without it the views and their columns are listed
    #[arg(value_name = "QUERY")]
    query: Option<String>,
    #[command(flatten)]
    place: Place,
    /// Print JSON, an object for each row
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV, with a line of headings
    #[arg(long)]
    csv: bool,
    /// Give up after this long
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = options::seconds)]
    timeout: Duration,
}

pub(crate) fn run(args: &SqlArgs) -> Result<u8, Failure> {
    let database = data::find(&args.place)?.database();
    if !database.exists() {
        let failure = Failure::usage(format!("read {}: there is no such database", database.display()));
        return Err(failure.hint("name the folder of `kelos up` with --dir, or that of `kelos serve` with --db"));
    }
    let views = SqliteViews::open(&database).map_err(|error| Failure::of_store(&error))?;
    let Some(query) = &args.query else { return list(args, &views) };
    let query = if query == "-" { typed()? } else { query.clone() };
    let open = || Outlet::open(args.timeout).map_err(|error| unprinted(&error.into()));
    let printer: Box<dyn Printer> = match (args.json, args.csv) {
        (true, _) => Box::new(JsonPrinter { out: open()?, names: Vec::new(), rows: 0 }),
        (_, true) => Box::new(CsvPrinter(open()?)),
        _ => Box::new(TablePrinter::new(open()?)),
    };
    let (outcome, printer) = answer(views, query, args.timeout, printer)?;
    let printed = printer.map_or(Ok(()), Printer::end);
    match outcome {
        Ok(()) | Err(SqlError::Stopped) => printed.map(|()| 0).map_err(|error| unprinted(&error)),
        Err(SqlError::Store(error)) => Err(Failure::of_store(&error)),
        Err(error @ SqlError::TimedOut(_)) => {
            let hint = "--timeout gives it longer; conditions on columns that end in _ms and on positions are served by indexes";
            Err(Failure::bad(format!("answer the query: {error}")).hint(hint))
        }
        Err(error @ SqlError::Refused(_)) => {
            let hint = "`kelos sql` without a query lists the views and their columns";
            Err(Failure::usage(format!("answer the query: {error}")).hint(hint))
        }
    }
}

/// The end of a query, and its printer unless that is still in use.
type QueryEnd = (Result<(), SqlError>, Option<Box<dyn Printer>>);

/// Answers a query on a thread of its own, which ends with the process if it does not end in time.
fn answer(
    mut views: SqliteViews,
    query: String,
    limit: Duration,
    mut printer: Box<dyn Printer>,
) -> Result<QueryEnd, Failure> {
    let (done, ended) = channel();
    let ask = move || {
        let outcome = views.query(&query, limit, printer.rows());
        // One who waits no longer has said that it took too long.
        let _ = done.send((outcome, printer));
    };
    let asking = thread::Builder::new().name("query".to_owned()).spawn(ask);
    let asking = asking.map_err(|error| Failure::bad(format!("start a thread: {error}")))?;
    match ended.recv_timeout(limit.saturating_add(GRACE)) {
        Ok((outcome, printer)) => Ok((outcome, Some(printer))),
        Err(RecvTimeoutError::Timeout) => Ok((Err(SqlError::TimedOut(limit)), None)),
        Err(RecvTimeoutError::Disconnected) => match asking.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => Ok((Err(SqlError::Stopped), None)),
        },
    }
}

fn unprinted(error: &OutletError) -> Failure {
    let failure = Failure::bad(format!("print the answer: {error}"));
    match error {
        OutletError::Stalled(_) => failure.hint(
            "a query ends after this long because the database keeps all that is written meanwhile; a file takes the rows at once, and \
             --timeout gives them longer",
        ),
        OutletError::Broken(_) => failure,
    }
}

fn typed() -> Result<String, Failure> {
    let mut query = String::new();
    let read = std::io::stdin().lock().take(LARGEST_QUERY).read_to_string(&mut query);
    read.map_err(|error| Failure::bad(format!("read the query from standard input: {error}")))?;
    Ok(query)
}

fn list(args: &SqlArgs, views: &SqliteViews) -> Result<u8, Failure> {
    let views = views.list().map_err(|error| Failure::of_store(&error))?;
    if args.json {
        let views: Map<String, Value> =
            views.into_iter().map(|(view, columns)| (view.to_owned(), columns.into())).collect();
        text::json(&views);
        return Ok(0);
    }
    let mut table = render::table(&["VIEW", "COLUMNS"]);
    for (view, columns) in views {
        table.add_row([view.to_owned(), columns.join(", ")]);
    }
    render::print(table);
    Ok(0)
}

/// Prints the rows of an answer in one of its forms.
trait Printer: Send {
    fn rows(&mut self) -> &mut dyn SqlRows;

    /// Prints what is left, also after a failure.
    fn end(self: Box<Self>) -> Result<(), OutletError>;
}

/// Rows as a JSON list of objects, printed as they come.
struct JsonPrinter {
    out: Outlet,
    names: Vec<String>,
    rows: usize,
}

impl SqlRows for JsonPrinter {
    fn columns(&mut self, names: &[String]) {
        self.names = names.to_vec();
        self.out.takes(b"[");
    }

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        let values = values.into_iter().map(json_of);
        let object: Map<String, Value> = self.names.iter().cloned().zip(values).collect();
        let before = if self.rows == 0 { "\n" } else { ",\n" };
        self.rows += 1;
        self.out.takes(format!("{before}  {}", Value::Object(object)).as_bytes())
    }
}

impl Printer for JsonPrinter {
    fn rows(&mut self) -> &mut dyn SqlRows {
        self
    }

    fn end(self: Box<Self>) -> Result<(), OutletError> {
        let end = match (self.names.is_empty(), self.rows) {
            (true, _) => "",
            (false, 0) => "]\n",
            (false, _) => "\n]\n",
        };
        self.out.close(end.as_bytes())
    }
}

/// Rows as CSV (RFC 4180), printed as they come.
struct CsvPrinter(Outlet);

impl CsvPrinter {
    fn takes(&mut self, fields: impl Iterator<Item = String>) -> bool {
        let mut line = csv::Writer::from_writer(Vec::new());
        // Memory takes everything.
        let line = line.write_record(fields.map(String::into_bytes)).ok().and_then(|()| line.into_inner().ok());
        line.is_some_and(|line| self.0.takes(&line))
    }
}

impl SqlRows for CsvPrinter {
    fn columns(&mut self, names: &[String]) {
        self.takes(names.iter().cloned());
    }

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        self.takes(values.iter().map(|value| plain(value, "")))
    }
}

impl Printer for CsvPrinter {
    fn rows(&mut self) -> &mut dyn SqlRows {
        self
    }

    fn end(self: Box<Self>) -> Result<(), OutletError> {
        self.0.close(b"")
    }
}

/// A value as text; `nothing` where there is none.
fn plain(value: &SqlValue, nothing: &str) -> String {
    match value {
        SqlValue::Null => nothing.to_owned(),
        SqlValue::Integer(number) => number.to_string(),
        SqlValue::Real(number) => number.to_string(),
        // A terminal is not to obey what somebody has put into a name.
        SqlValue::Text(text) if std::io::stdout().is_terminal() => {
            text.chars().map(|one| if one.is_control() { '\u{fffd}' } else { one }).collect()
        }
        SqlValue::Text(text) => text.clone(),
        SqlValue::Bytes(bytes) => hex(bytes),
    }
}

fn json_of(value: SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(number) => number.into(),
        SqlValue::Real(number) => number.into(),
        SqlValue::Text(text) => text.into(),
        SqlValue::Bytes(bytes) => hex(&bytes).into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}
