//! The references that definitions have to other projects, and the projects that own what they refer to.
//!
//! Everything here is a pure function of definitions, so the scheduler, the HTTP doors and `kelos check` answer alike. Whether a
//! server keeps projects apart at all is decided elsewhere.

mod definition;
mod outputs;
mod ownership;

pub use ownership::{MissingConsent, Ownership};
