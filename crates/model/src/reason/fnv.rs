//! The hash of Fowler, Noll and Vo, of 64 bits: the same on every machine and for ever.

/// Takes one byte more into a hash.
pub(super) fn hashed(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}
