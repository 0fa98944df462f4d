//! Removed history in the simulation: a second disk keeps all of it, and what is left of the first is held against that.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kelos_engine::trimming::TrimLook;
use kelos_model::history::{Retention, Term, Trim};
use kelos_store::{
    Commit, EventFilter, Journal, Lease, MemoryDisk, MemoryStore, PageRequest, Queries, RegisterKeys, SlotFilter,
    StoreError,
};

use crate::past::Past;
use crate::rng::Rng;
use crate::workload::Workload;

/// Seeds from here on remove history while the scheduler works.
pub const FIRST_WITH_TRIMS: u64 = 5_000_000;

/// A disk that keeps what the first one removes.
#[derive(Clone)]
pub struct Whole {
    disk: MemoryDisk,
    store: Arc<Mutex<(MemoryStore, Lease)>>,
}

impl Whole {
    /// The whole of a disk on which a past was imported.
    ///
    /// # Errors
    /// When the store fails.
    pub fn of(past: &Past, workload: &Workload) -> Result<Whole, String> {
        let disk = MemoryDisk::new();
        let mut store = MemoryStore::on(&disk);
        past.import(&mut store, workload)?;
        let lease = store.lease("whole", workload.start, 1).map_err(|error| error.to_string())?;
        let lease = lease.ok_or("the lease of the whole is taken")?;
        Ok(Whole { disk, store: Arc::new(Mutex::new((store, lease))) })
    }

    /// The disk.
    #[must_use]
    pub fn disk(&self) -> &MemoryDisk {
        &self.disk
    }

    /// Keeps a turn, without what it removes.
    ///
    /// # Errors
    /// When the store fails.
    pub fn keep(&self, commit: &Commit) -> Result<(), StoreError> {
        let (store, lease) = &mut *self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.commit(*lease, &Commit { trim: None, ..commit.clone() })
    }
}

/// The removals of one look at a moment, with terms that few workflows outlive.
///
/// # Errors
/// When the store can't be read.
pub fn look(reader: &dyn Queries, now: Timestamp, rng: &mut Rng) -> Result<Vec<Trim>, StoreError> {
    let runs = *rng.pick(&[0, 1, 3]);
    let usual = Retention { days: 0, runs };
    // Facts stay for as long as those of any project: one that counts again would be right, and not what the other disk has.
    let long = Retention { days: 1000, runs };
    let term = Term { usual, projects: [("nobody".to_owned(), long)].into(), output: 0, archive: None };
    let now = now - SignedDuration::from_mins(rng.between(0, 300));
    let mut looking = TrimLook::new(reader, &term, now, u64::MAX);
    let mut trims = Vec::new();
    loop {
        let portion = looking.portion()?;
        trims.extend(portion.trim);
        if portion.is_last {
            return Ok(trims);
        }
    }
}

/// Holds what is left against the whole; returns the number of events that were removed.
///
/// # Errors
/// The difference.
pub fn judge(left: &dyn Queries, whole: &dyn Queries) -> Result<u64, String> {
    let words = |error: StoreError| error.to_string();
    let verified = kelos_explain::verify::verify(left, 1).map_err(words)?;
    if let Some(disagreement) = verified.disagreements.first() {
        return Err(format!("what is left does not agree with itself: {disagreement}"));
    }
    let slots =
        |reader: &dyn Queries| reader.slots(&SlotFilter::default(), PageRequest::newest(crate::ALL)).map_err(words);
    let (here, there) = (slots(left)?.rows, slots(whole)?.rows);
    if let Some((here, there)) = here.iter().zip(&there).find(|(here, there)| here != there) {
        return Err(format!("with removals {here:?}, without {there:?}"));
    }
    let registers = |reader: &dyn Queries| reader.registers(None, RegisterKeys::Prefix("")).map_err(words);
    if here.len() != there.len() || registers(left)? != registers(whole)? {
        return Err("removals changed which slots or registers there are".to_owned());
    }
    let trimmed = left.removed_history().map_err(words)?;
    let events = |reader: &dyn Queries| {
        reader.events(&EventFilter::default(), PageRequest::oldest(crate::ALL)).map_err(words).map(|page| page.rows)
    };
    let (here, there) = (events(left)?, events(whole)?);
    let mut rest = here.iter().peekable();
    let mut gone = 0;
    for record in &there {
        if rest.next_if(|one| *one == record).is_some() {
            continue;
        }
        gone += 1;
        if !trimmed.covers(record.seq) {
            return Err(format!("event {} is gone, and only those up to {} may be", record.seq, trimmed.event));
        }
    }
    if rest.next().is_some() || gone != trimmed.events {
        return Err(format!("{gone} events are gone, and {} were removed", trimmed.events));
    }
    Ok(gone)
}
