//! The door of Celos.

mod celos_import;
mod deploy;
mod shadow;
