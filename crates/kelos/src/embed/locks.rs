//! Locks by name, for what only one run at a time may touch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// A held lock; dropping it lets the next run have it.
///
/// ```
/// # use kelos::embed::Context;
/// async fn append(context: Context, line: String, _: ()) -> Result<(), String> {
///     let lock = context.lock("the ledger").await;
///     context.log(line);
///     drop(lock);
///     context.log("others may append now");
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Lock {
    _held: OwnedMutexGuard<()>,
}

/// The locks of a project, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Locks(Arc<Mutex<BTreeMap<String, Arc<AsyncMutex<()>>>>>);

impl Locks {
    pub(super) async fn lock(&self, name: &str) -> Lock {
        let one = self.named(name);
        Lock { _held: one.lock_owned().await }
    }

    fn named(&self, name: &str) -> Arc<AsyncMutex<()>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that nobody holds or waits for would add up.
        all.retain(|_, one| Arc::strong_count(one) > 1);
        all.entry(name.to_owned()).or_default().clone()
    }
}
