//! A store that may fail keeps the contract for as long as it does not.

use kelos_sim::faulty::FaultyStore;
use kelos_store::suite::{Place, suite};
use kelos_store::{Journal, MemoryDisk};

#[derive(Default)]
struct Faultless(MemoryDisk);

impl Place for Faultless {
    fn open(&mut self) -> Box<dyn Journal> {
        Box::new(FaultyStore::on(&self.0, 0, 0))
    }
}

#[test]
fn without_a_fault_it_keeps_the_contract() {
    suite(&mut || Box::new(Faultless::default()));
}
