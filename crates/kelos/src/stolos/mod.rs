//! What users of Stolos bring. Reading a `tasks.json` is the room of definitions' work; the rest is in here.

mod literal;
mod redis;

pub use kelos_script::stolos::*;
pub use literal::literal;
pub use redis::{RedisApps, RedisAppsError};
