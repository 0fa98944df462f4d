//! The door of Celos: its database, read and written; its deployments; a shadow beside a live one; its dialect over HTTP.
//!
//! Terms, files and texts of Celos are used only here. The importer is a leader like any other, and writes events with the rows that they
//! fold to.

pub mod celos_db;
pub mod deploy;
#[cfg(feature = "http")]
pub mod dialect;
pub mod export;
pub mod import;
pub mod shadow;
