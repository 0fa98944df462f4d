//! The database in a folder of state, and the log that nodes share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos::nodes::LogPlace;
use kelos_explain::verify::verify_last_turns;
use kelos_model::WorkflowId;
use kelos_model::workflow::{Job, WorkflowRow};
use kelos_store::log::{FORM, LogError};
use kelos_store::{PageRequest, Queries, StoreError, StoredState};
use kelos_store_sqlite::SqliteStore;

use crate::doctor::checks::clock::ClockReading;
use crate::doctor::checks::disk::DatabaseFiles;
use crate::doctor::checks::store::{Database, DatabaseState, LogReading, SharedLog};
use crate::doctor::checks::workers::LabelNeed;
use crate::location::DATABASE;

/// The last turns that are verified.
const TURNS: usize = 200;
/// The executors whose runs workers do.
const BY_WORKERS: [&str; 2] = ["command", "spark"];
/// Disagreements that are named.
const NAMED: usize = 10;

/// The folder of state and its database.
pub(in crate::doctor) struct DataReading {
    /// The path of the database.
    pub(in crate::doctor) path: PathBuf,
    pub(in crate::doctor) database: Database,
    /// The moment of the newest turn.
    pub(super) newest_turn: Option<Timestamp>,
    /// The labels that the jobs of workflows need.
    pub(super) needs: Vec<LabelNeed>,
    /// The sizes of its files; none where there is no database.
    pub(super) files: Option<DatabaseFiles>,
}

impl DataReading {
    /// Reads the database of a folder; it is not changed.
    pub(super) fn take(state: &Path, now: Timestamp) -> DataReading {
        let path = state.join(DATABASE);
        let (mut newest_turn, mut needs, mut oldest_turn) = (None, Vec::new(), None);
        let database = if path.exists() {
            let read = SqliteStore::look(&path).and_then(|store| {
                let reader = store.reader();
                newest_turn = turn(&*reader, PageRequest::newest(1))?;
                oldest_turn = turn(&*reader, PageRequest::oldest(1))?;
                needs = needs_of(&reader.workflows(None)?);
                state_of(&store, reader, &path, now)
            });
            read.map_or_else(|error| unusable(&error), |state| Database::Readable(Box::new(state)))
        } else {
            Database::Missing
        };
        let age = oldest_turn.zip(newest_turn).map(|(from, to)| to.duration_since(from).unsigned_abs());
        let files = path.exists().then(|| sizes(&path, age));
        DataReading { path, database, newest_turn, needs, files }
    }

    /// The process that leads on the database.
    pub(super) fn leader(&self) -> Option<String> {
        match &self.database {
            Database::Readable(state) => state.leader.clone(),
            _ => None,
        }
    }
}

fn state_of(
    store: &SqliteStore,
    reader: Arc<dyn Queries>,
    path: &Path,
    now: Timestamp,
) -> Result<DatabaseState, StoreError> {
    let verified = verify_last_turns(&*reader, TURNS, NAMED)?;
    Ok(DatabaseState {
        leader: SqliteStore::leader(path, now),
        followed: store.followed()?,
        verified: verified.turns,
        disagreements: verified.disagreements.iter().map(ToString::to_string).collect(),
        schema: SqliteStore::schema(),
    })
}

fn unusable(error: &StoreError) -> Database {
    let why = error.to_string();
    match error {
        StoreError::TooOld { .. } => Database::TooOld(why),
        StoreError::TooNew { .. } => Database::TooNew(why),
        StoreError::Corrupt { .. } => Database::Damaged(why),
        _ => Database::Unusable(why),
    }
}

/// The moment of the first turn of a page.
fn turn(reader: &dyn Queries, page: PageRequest<'_>) -> Result<Option<Timestamp>, StoreError> {
    Ok(reader.turns(page)?.rows.first().map(|turn| turn.at))
}

fn sizes(path: &Path, age: Option<Duration>) -> DatabaseFiles {
    let size = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        std::fs::metadata(name).map_or(0, |meta| meta.len())
    };
    DatabaseFiles { bytes: size(""), log_bytes: size("-wal"), age }
}

fn needs_of(rows: &[WorkflowRow]) -> Vec<LabelNeed> {
    let need = |id: &WorkflowId, job: &Job| LabelNeed {
        workflow: id.to_string(),
        labels: job.runs_on.iter().map(ToString::to_string).collect::<BTreeSet<String>>(),
    };
    let mut needs: Vec<LabelNeed> = Vec::new();
    for row in rows.iter().filter(|row| row.present) {
        let steps = row.definition.flow.iter().flat_map(|flow| &flow.steps).map(|step| &step.job);
        let jobs = std::iter::once(&row.definition.job).chain(steps);
        needs.extend(jobs.filter(|job| BY_WORKERS.contains(&&*job.executor)).map(|job| need(&row.id, job)));
    }
    needs.dedup();
    needs
}

/// The log at a place, asked once.
pub(super) fn shared_log(place: &LogPlace) -> SharedLog {
    let folder = place.address.strip_prefix("file:").map(|path| Path::new(path.strip_prefix("//").unwrap_or(path)));
    // Opening the log would make the folder.
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return SharedLog::Unreachable(format!("open the log in {}: there is no such folder", folder.display()));
    }
    let store = match place.store() {
        Ok(store) => store,
        Err(error) => return SharedLog::Unreachable(error.to_string()),
    };
    let read = || -> Result<LogReading, LogError> {
        let mut log = store.open()?;
        let began = Instant::now();
        let lease = log.lease()?;
        let took = began.elapsed();
        let ends = log.ends()?;
        let asked = Timestamp::now();
        let there = log.clock_millis()?.and_then(|millis| Timestamp::from_millisecond(millis).ok());
        let clock = there.map(|there| ClockReading { asked, there, answered: Timestamp::now() });
        Ok(LogReading {
            clock,
            name: store.name(),
            took,
            is_free: lease.is_free || lease.epoch == 0,
            epoch: lease.epoch,
            forms: [lease.writes(), FORM],
            holder: lease.holder.node,
            first: ends.first,
            last: ends.last,
        })
    };
    read().map_or_else(|error| SharedLog::Unreachable(error.to_string()), |log| SharedLog::Reached(Box::new(log)))
}
