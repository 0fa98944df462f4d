//! What users of Stolos bring. Reading a `tasks.json` is the room of definitions' work; the rest is in here.

pub use kelos_script::stolos::*;
