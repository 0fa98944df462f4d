//! The cost of verifying a log, as `kelos verify` does.

use std::path::Path;
use std::time::Instant;

use kelos_explain::verify::verify;
use kelos_store::StoredState;
use kelos_store_sqlite::SqliteStore;

use crate::fill::{History, fill_in_turns};
use crate::support::{Outcome, folder, moment, resident_mb};

/// The events of each slot.
const OF_A_SLOT: usize = 5;

/// Verifies a log with this many events, in turns with so many slots each.
pub(crate) fn run(events: usize, slots_a_turn: usize) -> Outcome {
    let folder = folder()?;
    let path = folder.path().join("kelos.db");
    let begin = Instant::now();
    fill_in_turns(&path, events / OF_A_SLOT, moment("2026-01-08T00:00:00Z"), History::Whole, slots_a_turn)?;
    let bytes = std::fs::metadata(&path)?.len();
    println!("{events} events, {} MB, were written in {:.0?}", bytes / 1_000_000, begin.elapsed());
    one(&path)
}

/// Verifies a database that is there.
pub(crate) fn one(path: &Path) -> Outcome {
    let mut store = SqliteStore::look(path)?;
    let reader = store.reader();
    let begin = Instant::now();
    let (damage, verified) = std::thread::scope(|scope| {
        let verified = scope.spawn(|| (verify(&*reader, 1), begin.elapsed()));
        let damage = (store.damage(1), begin.elapsed());
        (damage, verified.join().expect("no panic"))
    });
    let ((damage, damage_took), (verified, verified_took)) = (damage, verified);
    let (damage, verified, took) = (damage?, verified?, begin.elapsed());
    assert!(damage.is_empty() && verified.disagreements.is_empty(), "{damage:?} {:?}", verified.disagreements);
    println!(
        "{} turns, {} events, {} slots verified in {took:.1?}: checksums {damage_took:.1?}, beside them turns and slots {verified_took:.1?}; memory {:.0} MB",
        verified.turns,
        verified.events,
        verified.slots,
        resident_mb()
    );
    Ok(())
}
