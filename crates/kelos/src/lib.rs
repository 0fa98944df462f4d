//! (being written)

pub mod local;
