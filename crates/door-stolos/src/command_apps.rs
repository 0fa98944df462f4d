//! Apps that a command prints.

use std::path::Path;
use std::time::Duration;

use kelos_engine::program::{command, printed};
use kelos_sandbox::apps::AppsSource;

use crate::followed::{AppsText, followed};

/// The interval of asking the command again.
const EVERY: Duration = Duration::from_secs(30);
/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most that it may print.
const LONGEST: usize = 64 << 20;

/// A command that prints a `tasks.json`.
#[derive(Clone)]
pub struct CommandApps {
    line: String,
}

impl CommandApps {
    /// A command line, whose words are separated by white space; no shell is involved.
    ///
    /// # Errors
    /// When it has no words. The message completes "failed to …".
    pub fn new(line: &str) -> Result<CommandApps, String> {
        let line = line.trim().to_owned();
        if line.is_empty() {
            return Err(
                "read the command that prints the apps: it is empty, expected such as exec:/opt/etl/tasks".to_owned()
            );
        }
        Ok(CommandApps { line })
    }

    /// A source of the apps that it prints, which asks it every thirty seconds; it is run in `folder`, which holds the identifiers and
    /// plugins, as that of a `tasks.json` does.
    ///
    /// # Errors
    /// When a thread can't be started.
    pub fn source(self, folder: &Path, template: Option<String>) -> std::io::Result<AppsSource> {
        let name = format!("exec:{}", self.line);
        let place = folder.to_owned();
        followed(&name, folder, template, || std::thread::sleep(EVERY), move || self.read(&place))
    }

    fn read(&self, folder: &Path) -> AppsText {
        let fail = |why: String| format!("exec:{} prints no apps: {why}", self.line);
        let mut command = command(&self.line);
        command.current_dir(folder);
        let bytes = printed(command, LONGEST, PATIENCE).map_err(fail)?;
        if bytes.len() > LONGEST {
            return Err(fail(format!("it prints more than {LONGEST} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|_| fail("what it prints is no text in UTF-8".to_owned()))?;
        Ok(if text.trim().is_empty() { None } else { Some(text.into()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> AppsText {
        CommandApps::new(line).unwrap().read(Path::new("/"))
    }

    #[test]
    fn what_a_command_prints_are_apps() {
        assert_eq!(read("echo {}").unwrap().as_deref(), Some("{}\n"));
        assert_eq!(read("true").unwrap(), None);
        assert_eq!(read("false").unwrap_err(), "exec:false prints no apps: the command failed: exit status: 1");
        assert_eq!(
            read("printf \\377").unwrap_err(),
            "exec:printf \\377 prints no apps: what it prints is no text in UTF-8"
        );
        assert!(read("/no/such x").unwrap_err().contains("the program /no/such can't be started"));
        assert!(CommandApps::new(" ").err().unwrap().contains("it is empty"));
    }
}
