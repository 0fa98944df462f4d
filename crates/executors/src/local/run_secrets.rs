//! The secrets of one run on their way to its shim: in memory that has no name, and never on disk or on a command line.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;

use kelos_engine::secrets::Mask;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

/// The secrets that a command is given.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSecrets {
    /// Variables of the command, with their values.
    pub env: BTreeMap<String, String>,
    /// The texts that are hidden in what it writes.
    pub hidden: Vec<String>,
}

/// Shows the names of variables, and no value.
impl fmt::Debug for RunSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSecrets").field("env", &self.env.keys()).field("hidden", &self.hidden.len()).finish()
    }
}

impl RunSecrets {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.env.is_empty() && self.hidden.is_empty()
    }

    /// The mask of the output.
    pub(crate) fn mask(&self) -> Mask {
        Mask::of(&self.hidden)
    }

    /// Puts them into memory that a shim can be handed.
    pub(crate) fn to_memory(&self) -> io::Result<OwnedFd> {
        let mut memory = File::from(memfd_create("kelos-run", MemfdFlags::CLOEXEC)?);
        memory.write_all(&serde_json::to_vec(self)?)?;
        Ok(memory.into())
    }

    /// Reads them in the shim, which closes the memory by that.
    pub(crate) fn of_memory(memory: OwnedFd) -> io::Result<RunSecrets> {
        let mut memory = File::from(memory);
        // Another shim of the same run may have read it before.
        memory.rewind()?;
        let mut bytes = Vec::new();
        memory.read_to_end(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_arrive_as_they_were_and_are_never_shown() {
        let env = BTreeMap::from([("DB".to_owned(), "Bearer hunter2".to_owned())]);
        let secrets = RunSecrets { env, hidden: vec!["hunter2".to_owned()] };
        assert_eq!(RunSecrets::of_memory(secrets.to_memory().unwrap()).unwrap(), secrets);
        assert_eq!(format!("{secrets:?}"), "RunSecrets { env: [\"DB\"], hidden: 1 }");
    }
}
