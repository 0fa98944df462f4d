//! Draws of random tests: the same seed draws the same on every machine.

use std::ops::Range;

/// Draws of one seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % end as u64).unwrap()
    }

    pub(crate) fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    pub(crate) fn value<T: Clone>(&mut self, all: Vec<T>) -> T {
        let chosen = self.below(all.len());
        all[chosen].clone()
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// The seeds of a random test: `KELOS_SEED=7` takes that one alone, `KELOS_SEEDS=500` so many; both so many from there.
pub(crate) fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    match number("KELOS_SEED") {
        Some(seed) => seed..seed + number("KELOS_SEEDS").unwrap_or(1),
        None => 0..number("KELOS_SEEDS").unwrap_or(usual),
    }
}
