//! Sharing between projects: the kinds of references, the consent that each needs, and the declarations by which projects give it.

mod declaration;
mod reference;
mod scope;

pub use declaration::{EVERYONE, Sees, Sends, Share, Shares, SharesError};
pub use reference::{Consent, Reference, Referent};
pub use scope::Scope;
