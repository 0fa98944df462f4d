//! Registers that turns deleted, held against the table.

use std::collections::BTreeMap;

use kelos_model::{Event, EventRecord};
use kelos_store::{Deletions, Queries, RegisterKeys, StoreError};

use super::{Disagreement, read};

/// The registers that were deleted and not set since, by bucket and key, with the turns that deleted them.
#[derive(Default)]
pub(super) struct Registers(BTreeMap<(String, String), u64>);

impl Registers {
    /// Takes the next event of the log.
    pub(super) fn take(&mut self, record: &EventRecord) {
        if let Event::Register { bucket, key, value: Some(_), .. } = &record.event {
            self.0.remove(&(bucket.clone(), key.clone()));
        }
    }

    /// Takes what a turn deletes, once all of its events were taken.
    pub(super) fn delete(&mut self, deletions: Deletions, turn: u64) {
        let Deletions { registers, history: _ } = deletions;
        self.0.extend(registers.into_iter().map(|name| (name, turn)));
    }

    /// Those that are in the table all the same.
    pub(super) fn end(self, reader: &dyn Queries) -> Result<Vec<Disagreement>, StoreError> {
        let mut found = Vec::new();
        for ((bucket, key), turn) in self.0 {
            let what = match read(reader.registers(Some(&bucket), RegisterKeys::One(&key)))? {
                Ok(rows) if rows.is_empty() => continue,
                Ok(_) => format!("it deleted register \"{key}\" of \"{bucket}\", and the table has it"),
                Err(what) => what,
            };
            found.push(Disagreement { turn: Some(turn), what, ..Disagreement::default() });
        }
        Ok(found)
    }
}
