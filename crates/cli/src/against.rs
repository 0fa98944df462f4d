//! The checkpoints that `kelos verify --against` compares a log with.

use std::path::PathBuf;

use kelos_checkpoints::{CheckedLog, Collection, Comparison, PublicKey, compare};
use kelos_model::time::format_full;
use kelos_storage::Storage;
use kelos_store::{Queries, StoreError};
use serde_json::{Value, json};

use crate::data::Data;
use crate::failure::Failure;
use crate::{text, trust};

/// Checkpoints, and the keys with which they must be signed.
pub(crate) struct Evidence {
    collection: Collection,
    keys: Vec<PublicKey>,
}

/// Reads the checkpoints of a place, and the keys: those that were named, or that of the folder of state.
pub(crate) fn read(place: &str, public_keys: &[PathBuf], data: &Data) -> Result<Evidence, Failure> {
    let keys = if public_keys.is_empty() {
        let file = data.checkpoint_key();
        let key = PublicKey::open(&file).map_err(Failure::usage);
        vec![key.map_err(|failure| failure.hint("name the public key with --public-key; `kelos key show` prints it"))?]
    } else {
        public_keys.iter().map(|file| PublicKey::open(file).map_err(Failure::usage)).collect::<Result<_, _>>()?
    };
    let uri = if place.contains("://") {
        place.to_owned()
    } else {
        let path = std::path::absolute(place);
        path.map_err(|error| Failure::usage(format!("read checkpoints from {place}: {error}")))?.display().to_string()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::bad(format!("start threads: {error}")))?;
    let storage = Storage::new(trust::storage_config()?);
    let collection = runtime.block_on(Collection::read(&storage, &uri)).map_err(Failure::usage)?;
    if collection.checkpoints.is_empty() && collection.unreadable.is_empty() {
        return Err(Failure::usage(format!("read checkpoints from {place}: there are none"))
            .hint("name the folder, the file or the log to which a server sent them: see `checkpoints` of --config"));
    }
    Ok(Evidence { collection, keys })
}

impl Evidence {
    /// Compares them with a verified log, whose chain breaks at a turn, if it does.
    pub(crate) fn compare(&self, reader: &dyn Queries, broken_at: Option<u64>) -> Result<Comparison, StoreError> {
        let log = CheckedLog::read(reader, &self.collection, broken_at)?;
        Ok(compare(&self.collection, &self.keys, &log))
    }
}

/// The comparison for programs.
pub(crate) fn written(compared: &Comparison) -> Value {
    let Comparison { holding, newest, contradictions, after, others } = compared;
    let contradiction = |one: &kelos_checkpoints::Contradiction| json!({ "code": one.code(), "turn": one.turn(), "what": one.to_string() });
    json!({
        "holding": holding,
        "newest": newest.as_ref().map(kelos_checkpoints::Checkpoint::json),
        "turnsAfter": after,
        "otherInstances": others,
        "contradictions": contradictions.iter().map(contradiction).collect::<Vec<_>>(),
    })
}

/// The comparison for people.
pub(crate) fn print(compared: &Comparison) {
    let Comparison { holding, newest, contradictions, after, others } = compared;
    contradictions.iter().map(ToString::to_string).for_each(text::line);
    if let Some(newest) = newest {
        let held = text::count(*holding, "checkpoint");
        let verb = if *holding == 1 { "holds" } else { "hold" };
        text::line(format!("{held} {verb}, up to turn {}, signed at {}", newest.turn, format_full(newest.at)));
        if *after > 0 {
            let turns = text::count(usize::try_from(*after).unwrap_or(usize::MAX), "turn");
            text::line(format!("{turns} after it have no checkpoint yet: only the chain of digests protects them"));
        }
    }
    if !others.is_empty() {
        text::line(format!("checkpoints of other instances were left out: {}", others.join(", ")));
    }
}
