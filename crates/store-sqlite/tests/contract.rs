//! Each store keeps the contract, and all answer alike.

use kelos_store::suite::{Place, agree, suite};
use kelos_store::{Journal, MemoryDisk, MemoryStore};
use kelos_store_sqlite::SqliteStore;
use tempfile::TempDir;

#[derive(Default)]
struct Memory(MemoryDisk);

impl Place for Memory {
    fn open(&mut self) -> Box<dyn Journal> {
        Box::new(MemoryStore::on(&self.0))
    }
}

struct Sqlite(TempDir);

impl Sqlite {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Place for Sqlite {
    fn open(&mut self) -> Box<dyn Journal> {
        Box::new(SqliteStore::open(self.0.path().join("kelos.db")).unwrap())
    }
}

#[test]
fn memory_keeps_the_contract() {
    suite(&mut || Box::new(Memory::default()));
}

#[test]
fn sqlite_keeps_the_contract() {
    suite(&mut || Box::new(Sqlite::new()));
}

#[test]
fn both_answer_alike() {
    for seed in 0..4 {
        agree(&mut Memory::default(), &mut Sqlite::new(), seed, 60);
    }
}
