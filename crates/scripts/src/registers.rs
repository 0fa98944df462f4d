//! Registers as scripts may read them: those of buckets that belong to another project need its consent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kelos_model::references::Ownership;
use kelos_sandbox::{RegisterError, Registers};
use kelos_store::{Queries, RegisterKeys, StoreError};
use serde_json::Value;

/// How old the known consents may be while functions of scripts are called.
const FRESH: Duration = Duration::from_millis(200);
/// The share of the time that may be spent on reading consents, as its reciprocal.
const SHARE: u32 = 20;

/// The registers of a store.
pub(crate) struct StoredRegisters {
    reader: Arc<dyn Queries>,
    asked: Arc<AtomicBool>,
    consents: Arc<Consents>,
}

/// The registers that projects share, as their definitions in force say.
pub(crate) struct Consents {
    reader: Arc<dyn Queries>,
    /// Whether the server keeps projects apart.
    isolated: AtomicBool,
    known: Mutex<Option<KnownConsents>>,
}

struct KnownConsents {
    ownership: Arc<Ownership>,
    read_at: Instant,
    cost: Duration,
}

impl Consents {
    pub(crate) fn new(reader: Arc<dyn Queries>) -> Arc<Consents> {
        Arc::new(Consents { reader, isolated: AtomicBool::new(false), known: Mutex::default() })
    }

    /// Has consents count from now on.
    pub(crate) fn isolate(&self) {
        self.isolated.store(true, Ordering::Relaxed);
    }

    /// Has the next question read them again: each load sees what is in force at its beginning.
    pub(crate) fn outdate(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Refuses a script of a project that reads a bucket of another one without its consent.
    fn check(&self, project: &str, bucket: &str) -> Result<(), RegisterError> {
        if !self.isolated.load(Ordering::Relaxed) {
            return Ok(());
        }
        let missing = self.now().map_err(unreadable)?.unshared_read(&project.into(), &bucket.into());
        missing.map_or(Ok(()), |missing| Err(RegisterError::NotShared(Box::new(missing))))
    }

    fn now(&self) -> Result<Arc<Ownership>, StoreError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = known.as_ref().filter(|one| one.read_at.elapsed() < FRESH.max(one.cost * SHARE)) {
            return Ok(one.ownership.clone());
        }
        let begun = Instant::now();
        let rows = self.reader.workflows(None)?;
        let ownership = Arc::new(Ownership::of(rows.iter().map(|row| (&*row.definition, row.present))));
        *known = Some(KnownConsents { ownership: ownership.clone(), read_at: Instant::now(), cost: begun.elapsed() });
        Ok(ownership)
    }
}

impl StoredRegisters {
    pub(crate) fn new(reader: Arc<dyn Queries>, asked: Arc<AtomicBool>, consents: Arc<Consents>) -> StoredRegisters {
        StoredRegisters { reader, asked, consents }
    }
}

impl Registers for StoredRegisters {
    fn get(&self, project: &str, bucket: &str, key: &str) -> Result<Option<Value>, RegisterError> {
        self.asked.store(true, Ordering::Relaxed);
        self.consents.check(project, bucket)?;
        self.reader.register(bucket, key).map_err(unreadable)
    }

    fn all(&self, project: &str, bucket: &str) -> Result<Vec<(String, Value)>, RegisterError> {
        self.asked.store(true, Ordering::Relaxed);
        self.consents.check(project, bucket)?;
        let registers = self.reader.registers(Some(bucket), RegisterKeys::Prefix("")).map_err(unreadable)?;
        Ok(registers.into_iter().map(|register| (register.key, register.value)).collect())
    }
}

fn unreadable(error: StoreError) -> RegisterError {
    RegisterError::Unreadable(format!("failed to {error}"))
}
