//! The value of a secret, read from its source. Blocks.

use std::fs::OpenOptions;
use std::process::Stdio;
use std::time::Duration;

use kelos_model::secret::SecretSource;

use crate::program::{command, printed, read_up_to};

/// The most bytes of a secret.
pub const LARGEST_SECRET: usize = 64 << 10;

/// The least bytes of a secret: the mask of a shorter one would hide half of any output, and so tell what it is.
pub const SHORTEST_SECRET: usize = 4;

/// How long a command may take to print a secret.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads a secret. A line break at its end does not count.
///
/// # Errors
/// When there is none, or it can't be given to a job. The message never contains a part of it.
pub fn read_secret(source: &SecretSource) -> Result<String, String> {
    let bytes = match source {
        SecretSource::Env(name) => of_variable(name)?,
        SecretSource::File(path) => of_file(path)?,
        SecretSource::Exec(line) => {
            let mut command = command(line);
            // Its error output may have a part of the secret.
            command.stderr(Stdio::null());
            printed(command, LARGEST_SECRET, PATIENCE)?
        }
    };
    if bytes.len() > LARGEST_SECRET {
        return Err(format!("it has more than {LARGEST_SECRET} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".to_owned())?;
    let text = text.trim_end_matches(['\r', '\n']);
    match text.len() {
        0 => Err("it is empty".to_owned()),
        1..SHORTEST_SECRET => {
            Err(format!("it has fewer than {SHORTEST_SECRET} bytes, and could not be hidden in the output of the run"))
        }
        _ if text.contains('\0') => Err("it has a NUL character, which no variable can have".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

fn of_variable(name: &str) -> Result<Vec<u8>, String> {
    let value = std::env::var_os(name)
        .ok_or("the variable is not set in the environment of the process that starts the run")?;
    Ok(std::os::unix::ffi::OsStringExt::into_vec(value))
}

fn of_file(path: &str) -> Result<Vec<u8>, String> {
    // A pipe without a writer must not hold up anything.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = std::os::unix::fs::OpenOptionsExt::custom_flags(OpenOptions::new().read(true), nonblocking).open(path);
    let file = file.map_err(|error| error.to_string())?;
    match file.metadata() {
        Ok(metadata) if !metadata.is_file() => return Err("it is not a file".to_owned()),
        Ok(_) => {}
        Err(error) => return Err(error.to_string()),
    }
    read_up_to(LARGEST_SECRET, file).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> Result<String, String> {
        read_secret(&SecretSource::parse(source).unwrap())
    }

    #[test]
    fn a_line_break_at_the_end_does_not_count() {
        assert_eq!(read("exec:printf %s\\r\\n hunter2").unwrap(), "hunter2");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(read(&format!("file:{}", path.display())).unwrap(), "one\ntwo");
    }

    #[test]
    fn what_is_wrong_is_told_without_the_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let file = |content: &[u8]| {
            std::fs::write(&path, content).unwrap();
            read(&format!("file:{}", path.display())).unwrap_err()
        };
        assert_eq!(file(b"\n"), "it is empty");
        assert_eq!(file(b"abc\n"), "it has fewer than 4 bytes, and could not be hidden in the output of the run");
        assert_eq!(file(b"hunter\xff"), "it is no text in UTF-8");
        assert_eq!(file(b"hunter\0two"), "it has a NUL character, which no variable can have");
        assert_eq!(file(&vec![b'x'; LARGEST_SECRET + 1]), "it has more than 65536 bytes");
        assert_eq!(read(&format!("file:{}", folder.path().display())).unwrap_err(), "it is not a file");
        assert!(read("file:/nowhere/at/all").unwrap_err().contains("No such file"));
        assert!(read("env:KELOS_SECRET_NOT_SET").unwrap_err().starts_with("the variable is not set"));
        assert_eq!(read("exec:false").unwrap_err(), "the command failed: exit status: 1");
        assert!(
            read("exec:/no/such/program x").unwrap_err().starts_with("the program /no/such/program can't be started")
        );
        assert_eq!(read("exec:yes").unwrap_err(), "it has more than 65536 bytes");
    }
}
