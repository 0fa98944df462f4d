//! A node of several: its journal appends to a log that all nodes share, and its state is in a folder of its own.

mod files;
mod moving;
mod place;
mod reach;
mod recovery;
mod roster;
mod snapshots;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use kelos_store::log::{
    FORM, Holder, LeaseTiming, LocalState, LogError, LogJournal, LogParts, LogState, SnapshotPolicy,
};
use kelos_store::{Journal, StoreError};
use kelos_store_sqlite::SqliteState;

pub(crate) use files::SharedFiles;
pub use files::{FilesError, definitions};
pub use moving::{MoveError, MoveReport, to_file, to_log};
pub use place::LogPlace;
pub use reach::{Reach, Sight, clock_error_among};
pub use recovery::{Tail, TurnsOf, accept_loss, append_tail, tail};
pub use roster::{NodeReport, REPORT_EVERY, Roster, load};

/// The configuration of a node of several.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// The log that it shares with others.
    pub log: LogPlace,
    /// The folder of the state of this node, which no other node uses.
    pub state: PathBuf,
    /// The name of this node.
    pub node: String,
    /// The address at which other nodes and clients reach it.
    pub address: Option<String>,
}

/// Opens the journal of a node.
///
/// # Errors
/// When the log or the state can't be opened, the state can't follow the log, or the log was moved to a file.
pub fn open(config: &LogConfig) -> Result<(Box<dyn Journal>, LogState), StoreError> {
    let store = config.log.store()?;
    let mut state = SqliteState::open(config.state.join("kelos.db"))?;
    let has_something = state.position()?.entry > 0;
    match moving::check_open(&*store, &config.node) {
        // It answers reads from what it has until the store is back.
        Err(LogError::Medium { .. } | LogError::Unknown { .. }) if has_something => {}
        checked => checked.map_err(|error| moving::unusable(&*store, &error))?,
    }
    let started = Instant::now();
    let parts = LogParts {
        store,
        state,
        folder: config.state.clone(),
        holder: Holder {
            node: config.node.clone(),
            address: config.address.clone(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            ..Holder::default()
        },
        form: FORM,
        timing: LeaseTiming::DEFAULT,
        monotonic: Arc::new(move || started.elapsed()),
        wall: Arc::new(|| jiff::Timestamp::now().as_millisecond()),
        nonce: Box::new(nonce),
    };
    let (journal, shown) = LogJournal::start(parts, SnapshotPolicy::DEFAULT)?;
    Ok((Box::new(journal), shown))
}

/// A number that no other taking of a lease has.
fn nonce() -> u64 {
    let mut bytes = [0; 8];
    // Without randomness of the system the moment tells takings apart.
    if getrandom::fill(&mut bytes).is_err() {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        return u64::from(since.subsec_nanos()) ^ since.as_secs().rotate_left(32) ^ u64::from(std::process::id());
    }
    u64::from_le_bytes(bytes)
}
