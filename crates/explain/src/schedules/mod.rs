//! Event schedules as people look at them: what is wrong with one, how it stands, and what it decided lately. Nothing here
//! changes anything.

pub mod check;
pub mod decisions;
pub mod overview;
mod progress;
mod words;

pub use progress::*;
