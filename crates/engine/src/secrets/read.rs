//! The value of a secret, read from its source. Blocks.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use kelos_model::secret::SecretSource;

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
        SecretSource::Exec(command) => of_command(command, PATIENCE)?,
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
    limited(file).map_err(|error| error.to_string())
}

fn limited(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LARGEST_SECRET as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The output of a command. Its words are separated by white space, and no shell is involved. Its error output is not kept, because
/// it may have a part of the secret.
fn of_command(command: &str, patience: Duration) -> Result<Vec<u8>, String> {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("the program {program} can't be started: {error}"))?;
    let (tell, told) = mpsc::channel();
    let output = child.stdout.take();
    std::thread::spawn(move || {
        let _ = tell.send(output.map_or_else(|| Ok(Vec::new()), limited));
    });
    let printed = match told.recv_timeout(patience) {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(format!("its output can't be read: {error}")),
        Err(_) => Err(format!("the command took longer than {} seconds", patience.as_secs())),
    };
    // A command that prints more than is read waits for ever.
    if !printed.as_ref().is_ok_and(|bytes| bytes.len() <= LARGEST_SECRET) {
        end(&mut child);
        return printed;
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { printed } else { Err(format!("the command failed: {status}")) }
}

/// Ends a command with all that it started.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
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

    #[test]
    fn a_command_that_hangs_is_ended() {
        let told = of_command("sleep 1000", Duration::ZERO).unwrap_err();
        assert_eq!(told, "the command took longer than 0 seconds");
    }
}
