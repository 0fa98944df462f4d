//! The outputs of a command for the runs that it triggers: a JSON object that it writes to a file of its run.
//!
//! A file with invalid content never fails the run: it is ignored, and the log gives the reason. One that is too large, is
//! nested too deeply, or has a number that would be rounded, fails the run, because triggered runs would lack it. Where a command is given secrets or is another user's, it writes to
//! another file, from which the shim takes what may be kept.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use kelos_engine::secrets::Mask;
use kelos_model::json::{self, JsonError, LongNumber};
use kelos_model::nesting::TooDeep;
use kelos_model::run::LARGEST_GIVEN;
use serde_json::{Map, Value};

use super::user::SystemUser;

/// The file. The command finds its path in the variable [`OUTPUTS_VARIABLE`].
pub(crate) const OUTPUTS: &str = "outputs.json";

/// The file of a command that is given secrets: what it writes is not kept as it is.
const UNMASKED: &str = "outputs.unmasked";

/// The file with what may be kept of it, until it is whole.
const MASKED: &str = "outputs.masked";

/// The environment variable that names the file.
pub(crate) const OUTPUTS_VARIABLE: &str = "KELOS_OUTPUTS";

/// More is not taken: what a run gives is kept in the log of events.
const LARGEST: u64 = LARGEST_GIVEN as u64;

/// As many levels of outputs that have too many are told to the server.
const KEPT_LEVELS: usize = LARGEST_GIVEN / 2;

/// The reason for which outputs are not accepted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsound {
    /// It has so many bytes.
    #[error("it has {0} bytes, expected {LARGEST} at the most")]
    TooLarge(u64),
    /// It has so many levels.
    #[error("it is {0}")]
    TooDeep(TooDeep),
    /// A number would be rounded.
    #[error("{0}")]
    Number(LongNumber),
    /// Anything else, in words.
    #[error("{0}")]
    Other(String),
}

/// The outputs of a run, if its command wrote some.
///
/// # Errors
/// When the file contains no JSON object, or is too large.
pub(crate) fn read_outputs(dir: &Path) -> Result<Option<Map<String, Value>>, Unsound> {
    read_file(&dir.join(OUTPUTS), None)
}

/// Reads a file of outputs. One of another user has to be that user's own, and not another name of a file that the server may read.
fn read_file(path: &Path, user: Option<&SystemUser>) -> Result<Option<Map<String, Value>>, Unsound> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
    let file = match fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if rustix::io::Errno::from_io_error(&error) == Some(rustix::io::Errno::LOOP) => {
            return Err(Unsound::Other("it is a symbolic link".to_owned()));
        }
        Err(error) => return Err(Unsound::Other(error.to_string())),
    };
    let metadata = file.metadata().map_err(|error| Unsound::Other(error.to_string()))?;
    if !metadata.is_file() {
        return Err(Unsound::Other("it is not a file".to_owned()));
    }
    if user.is_some_and(|user| metadata.uid() != user.uid.as_raw() || metadata.nlink() != 1) {
        return Err(Unsound::Other("it is not a file of the user who ran the command".to_owned()));
    }
    if metadata.len() > LARGEST {
        return Err(Unsound::TooLarge(metadata.len()));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| Unsound::Other(error.to_string()))?;
    let wrong =
        |what: String| Unsound::Other(format!("it is no JSON object ({what}), expected such as {{\"rows\": 12}}"));
    match json::value(&bytes) {
        Ok(Value::Object(outputs)) => Ok(Some(outputs)),
        Ok(_) => Err(wrong("but another value".to_owned())),
        Err(JsonError::TooDeep(error)) => Err(Unsound::TooDeep(error)),
        Err(JsonError::Number(number)) => Err(Unsound::Number(number)),
        // An empty file was made by a redirection that had nothing to say.
        Err(_) if bytes.iter().all(u8::is_ascii_whitespace) => Ok(None),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// The place where a command writes its outputs.
#[derive(Debug)]
pub(crate) struct OutputsPlace {
    dir: PathBuf,
    /// The file that the command is told of.
    path: PathBuf,
    user: Option<SystemUser>,
}

impl OutputsPlace {
    /// Prepares the place for a run. The folder of a run is the server's own: a command of another user gets one outside of it.
    pub(crate) fn prepare(
        dir: &Path,
        tag: &str,
        user: Option<&SystemUser>,
        has_secrets: bool,
    ) -> io::Result<OutputsPlace> {
        let path = match user {
            Some(user) => {
                let folder = users_folder(tag);
                DirBuilder::new().mode(0o700).create(&folder)?;
                if user.is_another() {
                    std::os::unix::fs::lchown(&folder, Some(user.uid.as_raw()), None)?;
                }
                folder.join(OUTPUTS)
            }
            None => dir.join(if has_secrets { UNMASKED } else { OUTPUTS }),
        };
        Ok(OutputsPlace { dir: dir.to_owned(), path, user: user.cloned() })
    }

    /// The file for the command.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes what the command wrote, without secrets; says whether there was one.
    ///
    /// # Errors
    /// When it is not accepted.
    pub(crate) fn take(&self, mask: &Mask) -> Result<bool, Unsound> {
        let read = read_file(&self.path, self.user.as_ref());
        if self.path == self.dir.join(OUTPUTS) {
            return read.map(|_| false);
        }
        let taken = read.map(|outputs| outputs.map(Value::Object));
        let kept = match &taken {
            Ok(Some(outputs)) => {
                self.keep(mask.data(outputs).to_string().as_bytes()).map_err(|error| error.to_string())
            }
            // The server finds by its length that it was too large.
            Err(Unsound::TooLarge(bytes)) => File::create(self.dir.join(OUTPUTS))
                .and_then(|file| file.set_len(*bytes))
                .map_err(|error| error.to_string()),
            // Nor are they kept here: the server finds as many levels, and nothing in them.
            Err(Unsound::TooDeep(TooDeep { levels })) => {
                let levels = (*levels).min(KEPT_LEVELS);
                let empty = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
                self.keep(empty.as_bytes()).map_err(|error| error.to_string())
            }
            // Nor is anything else kept: the server finds such a number in its place.
            Err(Unsound::Number(LongNumber { line, column })) => {
                let before = "\n".repeat(line - 1) + &" ".repeat(column - 1);
                self.keep(format!("{before}{}0", u64::MAX).as_bytes()).map_err(|error| error.to_string())
            }
            _ => Ok(()),
        };
        discard(&self.dir, self.user.as_ref().and(self.path.parent()));
        kept.map_err(Unsound::Other)?;
        taken.map(|outputs| outputs.is_some_and(|outputs| mask.data(&outputs) != outputs))
    }

    /// Keeps outputs whole: the server never reads a part of them.
    fn keep(&self, outputs: &[u8]) -> io::Result<()> {
        let path = self.dir.join(MASKED);
        fs::write(&path, outputs)?;
        fs::rename(path, self.dir.join(OUTPUTS))
    }
}

/// The folder for the outputs of a command of another user.
fn users_folder(tag: &str) -> PathBuf {
    std::env::temp_dir().join(format!("kelos-run-{tag}"))
}

/// Removes what a run whose shim is gone may have left beside its outputs.
pub(crate) fn discard_of(dir: &Path, tag: &str) {
    discard(dir, Some(&users_folder(tag)));
}

fn discard(dir: &Path, folder: Option<&Path>) {
    let _ = fs::remove_file(dir.join(UNMASKED));
    if let Some(folder) = folder {
        let _ = fs::remove_dir_all(folder);
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

    #[test]
    fn outputs_that_are_nested_too_deeply_are_not_taken() {
        let nested = |levels: usize| format!("{{\"o\": {}1{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert!(read(&nested(64)).unwrap().is_some());
        for levels in [65, 127, 128, 1000] {
            assert_eq!(read(&nested(levels)), Err(Unsound::TooDeep(TooDeep { levels })));
        }
        let dir = tempfile::tempdir().unwrap();
        let place = OutputsPlace::prepare(dir.path(), "tag", None, true).unwrap();
        let mask = Mask::of(&["hunter2".to_owned()]);
        fs::write(place.path(), nested(65).replace('1', "\"hunter2\"")).unwrap();
        assert_eq!(place.take(&mask), Err(Unsound::TooDeep(TooDeep { levels: 65 })));
        assert_eq!(read_outputs(dir.path()), Err(Unsound::TooDeep(TooDeep { levels: 65 })), "the server is told, too");
    }

    #[test]
    fn a_number_that_would_be_rounded_is_refused() {
        let number = LongNumber { line: 2, column: 7 };
        let text = "{\"a\": 1,\n\"id\": 12345678901234567890123}";
        assert_eq!(read(text), Err(Unsound::Number(number)));
        assert_eq!(read("{\"id\": 18446744073709551615}").unwrap().unwrap()["id"], u64::MAX);
        assert_eq!(read("\u{feff}{\"id\": 1}").unwrap().unwrap()["id"], 1);
        let dir = tempfile::tempdir().unwrap();
        let place = OutputsPlace::prepare(dir.path(), "tag", None, true).unwrap();
        fs::write(place.path(), text).unwrap();
        assert_eq!(place.take(&Mask::of(&["hunter2".to_owned()])), Err(Unsound::Number(number)));
        assert_eq!(read_outputs(dir.path()), Err(Unsound::Number(number)), "the server is told, too");
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join(OUTPUTS)).unwrap();
        assert_eq!(read_outputs(dir.path()).unwrap_err().to_string(), "it is a symbolic link");
    }

    #[test]
    fn a_secret_in_outputs_is_masked_and_its_file_removed() {
        let dir = tempfile::tempdir().unwrap();
        let place = OutputsPlace::prepare(dir.path(), "tag", None, true).unwrap();
        let mask = Mask::of(&["hunter2".to_owned()]);
        fs::write(place.path(), "{\"token\": \"x-hunter2\", \"rows\": 12}").unwrap();
        assert_eq!(place.take(&mask), Ok(true));
        let kept = read_outputs(dir.path()).unwrap().unwrap();
        assert_eq!(Value::Object(kept), serde_json::json!({"token": "x-••••••", "rows": 12}));
        assert!(!place.path().exists());
        fs::write(place.path(), format!("{{\"a\": \"{}\"}}", "x".repeat(70_000))).unwrap();
        assert_eq!(place.take(&mask), Err(Unsound::TooLarge(70_009)));
        assert_eq!(read_outputs(dir.path()), Err(Unsound::TooLarge(70_009)), "the server is told, too");
        let empty = tempfile::tempdir().unwrap();
        let place = OutputsPlace::prepare(empty.path(), "tag", None, true).unwrap();
        fs::write(place.path(), "hunter2").unwrap();
        assert!(place.take(&mask).is_err());
        assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0, "what is no JSON is not kept at all");
    }
}
