//! Secrets: where they are found, who may use them, and how everything that is shown hides them.
//!
//! A definition names the source of a secret, `{secret: "env:NAME"}`, and never contains its value. The [masks](masks) are
//! the one rule for everything that is shown: a source is shown, a value never. Absent: the values, which are read where a run starts.

mod allow;
mod declared;
pub mod masks;

pub use allow::{ALLOW_FORM, AllowList, DEFAULT_SECRETS};
pub use declared::{DeclaredSecret, SecretSource, secret_paths};
pub use masks::MASK;

/// Variables of a server that begin so are for secrets: commands do not inherit them.
pub const SECRET_VARIABLES: &str = "KELOS_SECRET_";
