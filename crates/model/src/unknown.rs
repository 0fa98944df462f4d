//! Codes that a newer version wrote, kept as they are.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A code that this version does not know, with the data that was stored beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnknownCode {
    /// The code.
    pub code: String,
    /// The data.
    #[serde(flatten)]
    pub data: Map<String, Value>,
}

/// In words made of the code and the data: `tide too low: metres 3`.
impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code.replace('-', " "))?;
        for (n, (name, value)) in self.data.iter().enumerate() {
            f.write_str(if n == 0 { ": " } else { ", " })?;
            match value {
                Value::String(text) => write!(f, "{name} {text}")?,
                other => write!(f, "{name} {other}")?,
            }
        }
        Ok(())
    }
}
