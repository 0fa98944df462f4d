//! The local state of a node, which follows a log.

use std::io::Read;
use std::path::Path;

use super::entry::Reign;
use crate::contract::{Commit, StoreError, StoredState};
use crate::record::TurnRecord;

/// How far a state has followed a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// The last entry; 0 before the first.
    pub entry: u64,
    /// The last epoch that it has begun.
    pub epoch: u64,
    /// The last turn.
    pub turn: Option<TurnRecord>,
}

/// A state that follows a log: the local copy of a node.
pub trait LocalState: StoredState {
    /// How far it has followed.
    ///
    /// # Errors
    /// When the medium fails.
    fn position(&mut self) -> Result<Position, StoreError>;

    /// Follows the plug at a position.
    ///
    /// # Errors
    /// When the medium fails, or the entry is not the next one.
    fn begin(&mut self, position: u64, reign: &Reign) -> Result<(), StoreError>;

    /// Follows the turn at a position: writes it, calls `confirm` with its record, and makes it permanent only if that succeeds.
    ///
    /// # Errors
    /// That of `confirm`; otherwise when the medium fails, or the entry is not the next one. Nothing was written then.
    fn follow(
        &mut self,
        position: u64,
        epoch: u64,
        commit: &Commit,
        confirm: &mut dyn FnMut(&TurnRecord) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// Writes something and reads it again, as durably as an entry: whether this state could be that of a leader.
    ///
    /// # Errors
    /// When the medium is full or fails, or what is stored is damaged.
    fn test_write(&mut self, folder: &Path) -> Result<(), StoreError>;

    /// The last times of leading, the newest first.
    ///
    /// # Errors
    /// When the medium fails.
    fn reigns(&mut self, limit: usize) -> Result<Vec<Reign>, StoreError>;

    /// A consistent copy of the state, and its position. Files that it needs are put into a folder.
    ///
    /// # Errors
    /// When the medium fails.
    fn copy(&mut self, folder: &Path) -> Result<(Position, Box<dyn Read + Send>), StoreError>;

    /// Replaces the state by a copy that has all of its past, if `check` agrees with the position of the copy.
    ///
    /// # Errors
    /// That of `check`. [`StoreError::Ahead`] when the copy lacks the last turn or the last plug of this state, or has another one in its place; otherwise
    /// when the medium fails, or it is no copy of ours. The state is unchanged then.
    fn adopt(
        &mut self,
        copy: &mut dyn Read,
        folder: &Path,
        check: &mut dyn FnMut(Position) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;
}
