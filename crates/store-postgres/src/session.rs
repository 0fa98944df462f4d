//! A session of the server: connected when it is needed, with statements that are prepared, and patience that ends.

use std::error::Error as _;
use std::future::poll_fn;
use std::time::Duration;

use kelos_store::log::LogError;
use kelos_store::log::adapter::Action;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::timeout;
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Error, Row, SimpleQueryMessage, Statement};

use crate::PostgresLog;
use crate::schema::{FORM, objection};
use crate::tls::Tls;

/// Patience with a host that does not answer when it is connected to.
pub(crate) const CONNECTING: Duration = Duration::from_secs(3);
/// Patience of the server with a statement: it ends before ours does, and its refusal says for certain that nothing was written.
const SERVING: Duration = Duration::from_secs(4);
/// The notice of a lease that was given back; those of entries are their positions.
pub(crate) const RELEASED: &str = "released";
/// Patience with an answer.
const ANSWERING: Duration = Duration::from_secs(6);

pub(crate) struct Session {
    pub(crate) place: PostgresLog,
    tables: Tables,
    runtime: SessionRuntime,
    connected: Option<Contact>,
}

/// The tables that a session uses.
pub(crate) struct Tables {
    /// The channel on which the server tells of what is new in them.
    pub(crate) channel: String,
    /// The name of one that is there if all are.
    pub(crate) known_by: &'static str,
    /// The statements that make them, as one transaction.
    pub(crate) making: String,
    /// The statements about them, in the order of the constants that name them.
    pub(crate) statements: Vec<String>,
}

/// The runtime of one session.
struct SessionRuntime(Option<Runtime>);

impl SessionRuntime {
    /// Does some work to its end, also for a caller within another runtime, which may not wait for this one by itself.
    fn run<T: Send>(&self, work: impl Future<Output = T> + Send) -> T {
        let Some(runtime) = &self.0 else { unreachable!("it is taken when the session is dropped") };
        if Handle::try_current().is_err() {
            return runtime.block_on(work);
        }
        std::thread::scope(|scope| match scope.spawn(|| runtime.block_on(work)).join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

impl Drop for SessionRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

struct Contact {
    client: Client,
    statements: Vec<Statement>,
    /// The notices of the server.
    heard: watch::Receiver<Notices>,
    /// The number of releases of the lease that were waited for.
    releases: u64,
    is_listening: bool,
}

/// The notices that the server has sent so far.
#[derive(Debug, Clone, Copy, Default)]
struct Notices {
    /// The number of the latest notice: for entries their position.
    number: u64,
    /// How often the lease was given back.
    releases: u64,
}

impl Session {
    pub(crate) fn new(place: PostgresLog, tables: Tables) -> Result<Session, LogError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Action::read("open the log").failed(error.to_string()))?;
        Ok(Session { place, tables, runtime: SessionRuntime(Some(runtime)), connected: None })
    }

    /// Runs a prepared statement.
    pub(crate) fn rows(
        &mut self,
        action: Action<'_>,
        statement: usize,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, LogError> {
        self.connect(action)?;
        let Some(connected) = &self.connected else { unreachable!("it was connected") };
        let statement = &connected.statements[statement];
        let answer = self.runtime.run(async { timeout(ANSWERING, connected.client.query(statement, values)).await });
        self.judge(action, answer.ok())
    }

    /// Runs statements as one transaction; they have no values. The texts of the rows that they return.
    pub(crate) fn script(&mut self, action: Action<'_>, text: &str) -> Result<Vec<Vec<Option<String>>>, LogError> {
        self.connect(action)?;
        let Some(connected) = &self.connected else { unreachable!("it was connected") };
        let answer = self.runtime.run(async { timeout(ANSWERING, connected.client.simple_query(text)).await });
        Ok(texts_of(self.judge(action, answer.ok())?))
    }

    /// Waits until the server tells of an entry after a position, or that the lease was given back, at most for a time.
    pub(crate) fn listen(&mut self, action: Action<'_>, after: u64, patience: Duration) -> Result<(), LogError> {
        let Some(connected) = &mut self.connected else { return Ok(()) };
        let releases = connected.releases;
        self.runtime.run(async {
            let is_news = |heard: &Notices| heard.number > after || heard.releases != releases;
            let heard = timeout(patience, connected.heard.wait_for(is_news)).await;
            match heard {
                Ok(Ok(heard)) => connected.releases = heard.releases,
                // The sender is gone with the connection: the next statement finds that out.
                Ok(Err(_)) => return Err(action.failed("the connection was closed")),
                Err(_) => {}
            }
            Ok(())
        })
    }

    /// Waits until the server has told of anything since this was last called, at most for a time.
    pub(crate) fn hear(&mut self, action: Action<'_>, patience: Duration) -> Result<(), LogError> {
        let Some(connected) = &mut self.connected else { return Ok(()) };
        self.runtime.run(async {
            if let Ok(Err(_)) = timeout(patience, connected.heard.changed()).await {
                return Err(action.failed("the connection was closed"));
            }
            Ok(())
        })
    }

    /// Has the server tell of what is new from now on, unless the address forbids it; whether it did not before.
    pub(crate) fn start_listening(&mut self, action: Action<'_>) -> Result<bool, LogError> {
        self.connect(action)?;
        if !self.place.is_notifying || self.connected.as_ref().is_none_or(|connected| connected.is_listening) {
            return Ok(false);
        }
        let text = format!("LISTEN {}", self.tables.channel);
        self.script(action, &text)?;
        if let Some(connected) = &mut self.connected {
            connected.is_listening = true;
        }
        Ok(true)
    }

    /// An error of the server says that nothing was done, except when it ends the session: that can come after the commit.
    fn judge<T>(&mut self, action: Action<'_>, answer: Option<Result<T, Error>>) -> Result<T, LogError> {
        let Some(answer) = answer else {
            self.connected = None;
            return Err(action.lost(format!("no answer within {} s", ANSWERING.as_secs())));
        };
        answer.map_err(|error| match error.as_db_error() {
            Some(refusal) if is_of_statement(refusal) => action.failed(words(&error)),
            _ => {
                self.connected = None;
                action.lost(words(&error))
            }
        })
    }

    /// Connects unless it is connected. Nothing was sent before, so an error here is no doubt.
    fn connect(&mut self, action: Action<'_>) -> Result<(), LogError> {
        if let Some(connected) = &self.connected {
            // The connection notices only while it is driven that the server has closed it.
            self.runtime.run(async {
                yield_now().await;
                yield_now().await;
            });
            if !connected.client.is_closed() {
                return Ok(());
            }
        }
        self.connected = None;
        let hosts = u32::try_from(self.place.config.get_hosts().len()).unwrap_or(1);
        let patience = CONNECTING * hosts + ANSWERING;
        let opening = async { timeout(patience, open(&self.place, &self.tables)).await };
        let opened = self.runtime.run(opening).unwrap_or_else(|_| Err("no answer in time".to_owned()));
        self.connected =
            Some(opened.map_err(|why| action.failed(format!("{} can't be used: {why}", self.place.name)))?);
        Ok(())
    }
}

async fn open(place: &PostgresLog, tables: &Tables) -> Result<Contact, String> {
    let told = |error: Error| words(&error);
    let (client, mut connection) = place.config.connect(Tls::of(&place.trust)).await.map_err(told)?;
    let (sender, heard) = watch::channel(Notices::default());
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            let AsyncMessage::Notification(notice) = message else { continue };
            match notice.payload().parse() {
                Ok(number) => sender.send_modify(|heard| heard.number = number),
                Err(_) if notice.payload() == RELEASED => sender.send_modify(|heard| heard.releases += 1),
                Err(_) => {}
            }
        }
    });
    prepare(place, tables, &client).await?;
    let mut statements = Vec::with_capacity(tables.statements.len());
    for text in &tables.statements {
        statements.push(client.prepare(text).await.map_err(told)?);
    }
    Ok(Contact { client, statements, heard, releases: 0, is_listening: false })
}

/// Verifies the settings of the server, and makes the tables if they are missing.
async fn prepare(place: &PostgresLog, tables: &Tables, client: &Client) -> Result<(), String> {
    let told = |error: Error| words(&error);
    let settings = format!(
        "SET statement_timeout = {}; SET idle_in_transaction_session_timeout = {0};
        SELECT current_setting('synchronous_commit'), current_setting('fsync'), to_regclass('{}.{}');",
        SERVING.as_millis(),
        place.schema,
        tables.known_by
    );
    let rows = texts_of(client.simple_query(&settings).await.map_err(told)?);
    let Some([Some(commits), Some(fsync), table]) = rows.last().map(Vec::as_slice) else {
        return Err("it does not tell its settings".to_owned());
    };
    if let Some(objection) = objection(commits, fsync).filter(|_| !place.is_relaxed) {
        return Err(objection);
    }
    if table.is_none() {
        client.batch_execute(&tables.making).await.map_err(told)?;
    }
    let form = client.simple_query(&format!("SELECT form FROM {}.log", place.schema)).await.map_err(told)?;
    match texts_of(form).first().and_then(|row| row.first()?.as_ref()?.parse::<i32>().ok()) {
        Some(FORM) => Ok(()),
        Some(form) => Err(format!("its tables have form {form}, and this program knows form {FORM}: use a newer one")),
        None => Err(format!("the table {}.log has no row: was it emptied?", place.schema)),
    }
}

fn texts_of(messages: Vec<SimpleQueryMessage>) -> Vec<Vec<Option<String>>> {
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|n| row.get(n).map(str::to_owned)).collect()),
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}

/// Whether it refuses a statement and leaves the session as it was.
fn is_of_statement(refusal: &DbError) -> bool {
    refusal.parsed_severity() == Some(Severity::Error)
}

/// The cause of an error.
pub(crate) fn words(error: &Error) -> String {
    if let Some(distrust) = kelos_tls::explain(error) {
        return format!("{distrust}; sslmode=disable in the address does without TLS");
    }
    if let Some(refusal) = error.as_db_error() {
        let more = refusal.detail().or(refusal.hint()).map(|more| format!(" ({more})")).unwrap_or_default();
        return format!("{}{more}", refusal.message());
    }
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let deeper_words = deeper.to_string();
        if !words.contains(&deeper_words) {
            words = format!("{words}: {deeper_words}");
        }
        cause = deeper.source();
    }
    words
}
