//! The server, asked as it is over the wire, but without a port.

mod backfill_pages;
mod backfills;
mod board;
mod capacity;
mod celos;
mod changes;
mod described;
mod graph;
mod groups;
mod guard;
mod jobs;
mod logs;
mod native;
mod pages;
mod problems;
mod projects;
mod scheduler;
mod streams;
mod stuck;
mod support;
mod timeline;
