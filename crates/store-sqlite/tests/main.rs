//! The log in SQLite, from outside.

mod contract;
mod histories;
mod nodes;
