//! Requests that users leave in the store of a log, within transactions of their own.

use std::time::Duration;

use super::LogError;

/// The most bytes of a request's arguments that are read. The scheduler itself accepts fewer.
pub const LARGEST_REQUEST: usize = 256 << 10;

/// A connection to the requests in a store. Synchronous, owned by one thread; after an error the next call connects again.
///
/// A request is there from the commit of its user on, until it is finished or set aside. Requests of transactions that end later can have smaller
/// numbers, so whoever reads them begins with the smallest each time.
pub trait Inbox: Send {
    /// The requests that are there by number, at most `limit`.
    ///
    /// # Errors
    /// When the store fails.
    fn requests(&mut self, limit: usize) -> Result<Vec<InboxRequest>, LogError>;

    /// Deletes requests that the log has.
    ///
    /// # Errors
    /// When the store fails. Requests that are given again are recognised by their names.
    fn finish(&mut self, numbers: &[i64]) -> Result<(), LogError>;

    /// Sets a request aside with the reason, unless the epoch is not in force any more: a former leader may have been mistaken.
    ///
    /// # Errors
    /// When the store fails.
    fn set_aside(&mut self, epoch: u64, number: i64, problem: &str) -> Result<(), LogError>;

    /// The newest requests that were set aside, at most `limit`.
    ///
    /// # Errors
    /// When the store fails.
    fn refused(&mut self, limit: usize) -> Result<Vec<RefusedRequest>, LogError>;

    /// Waits until there may be a request, at most for a time. A hint: it may return early, or miss one.
    ///
    /// # Errors
    /// When the store fails.
    fn wait(&mut self, patience: Duration) -> Result<(), LogError>;
}

/// A request to start a workflow, as it was written: nothing of it was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxRequest {
    /// Its number.
    pub number: i64,
    /// The user of the store who wrote it.
    pub user: String,
    /// The workflow.
    pub workflow: String,
    /// The name of the run, which is started once.
    pub key: String,
    /// The arguments as JSON; none where there are none that can be read.
    pub arguments: Option<String>,
    /// The priority.
    pub priority: i32,
    /// The reason that was given.
    pub reason: Option<String>,
}

/// A request that was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRequest {
    /// Its number.
    pub number: i64,
    /// The user of the store who wrote it.
    pub user: String,
    /// The workflow.
    pub workflow: String,
    /// The name of the run.
    pub key: String,
    /// The reason for which it was set aside.
    pub problem: String,
}
