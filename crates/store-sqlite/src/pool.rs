//! A few connections that only read, opened when they are wanted.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::connection;
use super::fault::Fault;
use super::rows::Names;
use super::unread::Unread;

/// The most idle connections that are kept.
const KEPT: usize = 8;

#[derive(Debug)]
pub(super) struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    names: Mutex<Arc<Names>>,
    /// The rows that were met, and can't be read.
    pub(super) unread: Unread,
    /// The only connection, in a transaction that stays open, where all that is read is to be of one turn.
    frozen: Option<Arc<Mutex<Connection>>>,
}

impl Pool {
    pub(super) fn new(path: PathBuf) -> Self {
        let names = Names::default();
        let unread = names.unread.clone();
        Self { path, idle: Mutex::default(), names: Mutex::new(Arc::new(names)), unread, frozen: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Another pool of the same data, as it is now.
    pub(super) fn frozen(&self) -> Result<Self, Fault> {
        let conn = match &self.frozen {
            Some(conn) => Arc::clone(conn),
            None => {
                let conn = connection::reader(&self.path)?;
                // A transaction begins with what it reads first.
                conn.execute_batch("BEGIN; SELECT epoch FROM leadership")?;
                Arc::new(Mutex::new(conn))
            }
        };
        Ok(Self { frozen: Some(conn), ..Self::new(self.path.clone()) })
    }

    /// Reads in one transaction, so that all queries see the same turn, with the names of that turn.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Connection, &Names) -> Result<T, Fault>) -> Result<T, Fault> {
        self.read_alone(|tx| read(tx, &*self.names(tx)?))
    }

    /// Reads in one transaction what needs no names.
    pub(super) fn read_alone<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        if let Some(conn) = &self.frozen {
            return read(&lock(conn));
        }
        let idle = lock(&self.idle).pop();
        let mut conn = match idle {
            Some(conn) => conn,
            None => connection::reader(&self.path)?,
        };
        let outcome = read_with(&mut conn, read);
        let mut idle = lock(&self.idle);
        if idle.len() < KEPT && conn.is_autocommit() {
            idle.push(conn);
        }
        outcome
    }

    fn names(&self, tx: &Connection) -> Result<Arc<Names>, Fault> {
        let known = Arc::clone(&lock(&self.names));
        let names = Names::read(&known, tx)?;
        if !Arc::ptr_eq(&known, &names) {
            *lock(&self.names) = Arc::clone(&names);
        }
        Ok(names)
    }
}

fn read_with<T>(conn: &mut Connection, read: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
    let tx = conn.transaction()?;
    let outcome = read(&tx)?;
    tx.finish()?;
    Ok(outcome)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
