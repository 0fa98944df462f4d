//! Sharing between projects: the references that definitions and requests have to other projects, the consent that each kind needs,
//! and the declarations by which projects give it.
//!
//! Everything here is a pure function of definitions, so the scheduler, the HTTP doors and `kelos check` answer alike. Whether a
//! server keeps projects apart at all is decided elsewhere.

mod declaration;
mod index;
mod outputs;
mod reference;
mod scope;

pub use declaration::{EVERYONE, Sees, Sends, Shared, Shares, SharesError};
pub use index::{Sharing, Unshared};
pub use reference::{Consent, Reference, Referent};
pub use scope::Scope;
