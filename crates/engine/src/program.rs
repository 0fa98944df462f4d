//! The output of a program that Kelos runs for itself, such as one that prints a secret. Blocks.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The command of a line, whose words are separated by white space; no shell is involved.
#[must_use]
pub fn command(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// The output of a command. More than one byte beyond `longest` is not read.
///
/// # Errors
/// In words, if it can't be started, fails, or takes longer than `patience`: then it is ended with all that it started. The message has
/// nothing that it printed.
pub fn printed(mut command: Command, longest: usize, patience: Duration) -> Result<Vec<u8>, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| {
        format!("the program {} can't be started: {error}", command.get_program().to_string_lossy())
    })?;
    let (tell, told) = mpsc::channel();
    let output = child.stdout.take();
    std::thread::spawn(move || {
        let _ = tell.send(output.map_or_else(|| Ok(Vec::new()), |output| read_up_to(longest, output)));
    });
    let printed = match told.recv_timeout(patience) {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(format!("its output can't be read: {error}")),
        Err(_) => Err(format!("the command took longer than {} seconds", patience.as_secs())),
    };
    // A command that prints more than is read waits for ever.
    if !printed.as_ref().is_ok_and(|bytes| bytes.len() <= longest) {
        end(&mut child);
        return printed;
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { printed } else { Err(format!("the command failed: {status}")) }
}

/// So many bytes, and one more where there are more.
pub(crate) fn read_up_to(longest: usize, from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(longest as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
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

    #[test]
    fn a_command_that_hangs_is_ended() {
        let told = printed(command("sleep 1000"), 10, Duration::ZERO).unwrap_err();
        assert_eq!(told, "the command took longer than 0 seconds");
    }
}
