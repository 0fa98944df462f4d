//! The outputs of a command for the runs that it triggers: a JSON object that it writes to a file of its run.
//!
//! A file with invalid content never fails the run: it is ignored, and the log gives the reason. One that is too large
//! fails the run, because triggered runs would lack it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use kelos_model::run::LARGEST_GIVEN;
use serde_json::{Map, Value};

/// The file. The command finds its path in the variable [`OUTPUTS_VARIABLE`].
pub(crate) const OUTPUTS: &str = "outputs.json";

/// The environment variable that names the file.
pub(crate) const OUTPUTS_VARIABLE: &str = "KELOS_OUTPUTS";

/// More is not taken: what a run gives is kept in the log of events.
const LARGEST: u64 = LARGEST_GIVEN as u64;

/// The reason for which outputs are not accepted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsound {
    /// It has so many bytes.
    #[error("it has {0} bytes, expected {LARGEST} at the most")]
    TooLarge(u64),
    /// Anything else, in words.
    #[error("{0}")]
    Other(String),
}

/// The outputs of a run, if its command wrote some.
///
/// # Errors
/// When the file contains no JSON object, or is too large.
pub(crate) fn read_outputs(dir: &Path) -> Result<Option<Map<String, Value>>, Unsound> {
    let path = dir.join(OUTPUTS);
    let length = match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // Reading from a pipe might never end.
        Ok(metadata) if !metadata.is_file() => return Err(Unsound::Other("it is not a file".to_owned())),
        Ok(metadata) => metadata.len(),
        Err(error) => return Err(Unsound::Other(error.to_string())),
    };
    if length > LARGEST {
        return Err(Unsound::TooLarge(length));
    }
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    read.map_err(|error| Unsound::Other(error.to_string()))?;
    let wrong =
        |what: String| Unsound::Other(format!("it is no JSON object ({what}), expected such as {{\"rows\": 12}}"));
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(outputs)) => Ok(Some(outputs)),
        Ok(_) => Err(wrong("but another value".to_owned())),
        // An empty file was made by a redirection that had nothing to say.
        Err(_) if bytes.iter().all(u8::is_ascii_whitespace) => Ok(None),
        Err(error) => Err(wrong(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Map<String, Value>>, Unsound> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(OUTPUTS), text).unwrap();
        read_outputs(dir.path())
    }

    #[test]
    fn an_object_is_taken_and_nothing_is_fine() {
        assert_eq!(read("{\"rows\": 12}\n").unwrap().unwrap()["rows"], 12);
        assert_eq!(read(" \n"), Ok(None));
        assert_eq!(read_outputs(tempfile::tempdir().unwrap().path()), Ok(None));
    }

    #[test]
    fn anything_else_is_told() {
        let other = "it is no JSON object (but another value), expected such as {\"rows\": 12}";
        assert_eq!(read("[1]").unwrap_err().to_string(), other);
        assert!(read("{\"a\": ").unwrap_err().to_string().starts_with("it is no JSON object (EOF while parsing"));
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(70_000));
        assert_eq!(read(&long), Err(Unsound::TooLarge(70_009)));
        assert_eq!(Unsound::TooLarge(70_009).to_string(), "it has 70009 bytes, expected 65536 at the most");
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(OUTPUTS)).unwrap();
        assert_eq!(read_outputs(dir.path()).unwrap_err().to_string(), "it is not a file");
    }
}
