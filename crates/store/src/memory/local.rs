//! The memory as the local state of a node that follows a log.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::state::{LogPlace, State, add_body, corrupt};
use super::{MemoryDisk, MemoryStore};
use crate::contract::{Commit, Lease, StoreError};
use crate::log::{LocalState, Position, Reign};
use crate::record::{Deletions, Digest, DigestBuilder, TurnRecord};

/// The copies of memories, which a log in memory holds by their numbers: a memory has no bytes of its own.
#[derive(Debug, Clone, Default)]
pub struct MemoryCopies(Arc<Mutex<BTreeMap<u64, State>>>);

impl MemoryCopies {
    fn put(&self, state: State) -> u64 {
        let mut copies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = copies.last_key_value().map_or(1, |(number, _)| number + 1);
        copies.insert(number, state);
        number
    }

    fn get(&self, number: u64) -> Option<State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }
}

impl State {
    /// The entry must be the next one.
    fn is_next(&self, position: u64) -> Result<(), StoreError> {
        let next = self.followed.entry + 1;
        if position == next {
            return Ok(());
        }
        Err(corrupt(format!("entry {position} of the log was to be followed, expected entry {next}")))
    }

    /// Fails if a copy lacks what this state has.
    fn is_past_of(&self, copy: &State) -> Result<(), StoreError> {
        // The records of turns that were removed there were those of all nodes.
        let is_removed = |last: &TurnRecord| last.turn < copy.trimmed.turn;
        let has_turn = self.turns.last().is_none_or(|last| is_removed(last) || copy.turns.contains(last));
        let has_plug = self.followed.reigns.last().is_none_or(|last| copy.followed.reigns.contains(last));
        match has_turn && has_plug {
            true => Ok(()),
            false => Err(StoreError::Ahead { local: self.followed.entry, log: copy.followed.entry }),
        }
    }

    /// The record that a commit will have.
    fn record_of(&mut self, epoch: u64, commit: &Commit) -> Result<TurnRecord, StoreError> {
        self.digest()?;
        let before = self.turns.last();
        let turn = TurnRecord::of_commit(before, self.last_seq(), epoch, commit);
        let mut digesting = DigestBuilder::begin(&before.map_or_else(Digest::default, |before| before.digest), turn);
        let added = add_body(&mut digesting, &commit.events, &Deletions::of(commit));
        added.map_err(|error| corrupt(error.to_string()))?;
        Ok(digesting.end())
    }
}

impl LocalState for MemoryStore {
    fn position(&mut self) -> Result<Position, StoreError> {
        let mut state = self.disk.state();
        state.digest()?;
        let LogPlace { entry, epoch, .. } = state.followed;
        Ok(Position { entry, epoch, turn: state.turns.last().copied() })
    }

    fn begin(&mut self, position: u64, reign: &Reign) -> Result<(), StoreError> {
        self.disk.has_room()?;
        let mut state = self.disk.state();
        state.is_next(position)?;
        state.epoch = reign.epoch;
        state.followed.entry = position;
        state.followed.epoch = reign.epoch;
        state.followed.reigns.push(reign.clone());
        Ok(())
    }

    fn follow(
        &mut self,
        position: u64,
        epoch: u64,
        commit: &Commit,
        confirm: &mut dyn FnMut(&TurnRecord) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.disk.has_room()?;
        let mut state = self.disk.state();
        state.is_next(position)?;
        state.check(Lease { epoch }, commit)?;
        let record = state.record_of(epoch, commit)?;
        confirm(&record)?;
        self.disk.has_room()?;
        state.commit(Lease { epoch }, commit)?;
        state.followed.entry = position;
        Ok(())
    }

    fn test_write(&mut self, _: &Path) -> Result<(), StoreError> {
        self.disk.has_room()?;
        self.disk.state().digest().map(drop)
    }

    fn reigns(&mut self, limit: usize) -> Result<Vec<Reign>, StoreError> {
        Ok(self.disk.state().followed.reigns.iter().rev().take(limit).cloned().collect())
    }

    fn copy(&mut self, _: &Path) -> Result<(Position, Box<dyn Read + Send>), StoreError> {
        let position = self.position()?;
        let number = self.disk.copies.put(self.disk.state().clone());
        Ok((position, Box::new(std::io::Cursor::new(number.to_string().into_bytes()))))
    }

    fn adopt(
        &mut self,
        copy: &mut dyn Read,
        _: &Path,
        check: &mut dyn FnMut(Position) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut number = String::new();
        copy.read_to_string(&mut number).map_err(|error| corrupt(error.to_string()))?;
        let found = number.parse().ok().and_then(|number| self.disk.copies.get(number));
        let found = found.ok_or_else(|| corrupt(format!("\"{number}\" is no copy of a memory")))?;
        let LogPlace { entry, epoch, .. } = found.followed;
        check(Position { entry, epoch, turn: found.turns.last().copied() })?;
        let mut state = self.disk.state();
        state.digest()?;
        state.is_past_of(&found)?;
        *state = found;
        Ok(())
    }
}

impl MemoryDisk {
    /// An empty disk whose copies other disks can adopt.
    #[must_use]
    pub fn with_copies(copies: &MemoryCopies) -> Self {
        Self { copies: copies.clone(), ..Self::default() }
    }
}
