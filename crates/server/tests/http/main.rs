//! The server, asked as it is over the wire, but without a port.

mod backfills;
mod board;
mod celos;
mod changes;
mod described;
mod groups;
mod guard;
mod logs;
mod native;
mod pages;
mod problems;
mod projects;
mod scheduler;
mod streams;
mod stuck;
mod support;
