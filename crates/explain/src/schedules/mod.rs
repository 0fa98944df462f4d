//! Event schedules for people: the problems of one, its status, and its latest decisions. Nothing here changes
//! anything.

pub mod check;
pub mod decisions;
pub mod overview;
mod progress;
mod words;

pub use progress::*;
