//! Random numbers: the same for the same seed, on every machine.

use kelos_model::retry::scramble;

/// A generator of random numbers.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The generator of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Rng {
        Rng(scramble(seed))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        scramble(self.0)
    }

    /// A number below `end`, which must be above 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.below(u64::try_from(high - low + 1).unwrap_or(1))).unwrap_or(0)
    }

    /// True in this percentage of calls.
    pub fn percent(&mut self, often: u64) -> bool {
        self.below(100) < often
    }

    /// A random element.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[usize::try_from(self.below(of.len() as u64)).unwrap_or(0)]
    }
}

/// A random number that depends only on a seed and a name.
#[must_use]
pub fn draw(seed: u64, name: &str) -> u64 {
    name.bytes().fold(scramble(seed), |hash, byte| scramble(hash ^ u64::from(byte)))
}
