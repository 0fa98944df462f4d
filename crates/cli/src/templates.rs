//! Files of new projects: written whole, or not at all, and never over others.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::text;

/// A file of a new project.
pub(crate) struct Template {
    /// Its path in the project.
    pub(crate) path: &'static str,
    /// A description for people.
    pub(crate) about: &'static str,
    pub(crate) text: &'static str,
}

/// The hint where files are in the way.
pub(crate) const NOTHING_WRITTEN: &str =
    "nothing was written, because nothing is ever overwritten; name another folder";

/// Whether anything has this name, also a link to nothing.
pub(crate) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The paths of the templates that a folder has already.
pub(crate) fn taken(dir: &Path, templates: &[&Template]) -> Vec<&'static str> {
    templates.iter().map(|one| one.path).filter(|path| is_there(&dir.join(path))).collect()
}

/// Writes all files, each with its text filled in, or none: those that were written are removed if one can't be.
pub(crate) fn write(dir: &Path, templates: &[&Template], filled: impl Fn(&str) -> String) -> Result<(), String> {
    let mut written: Vec<PathBuf> = Vec::new();
    for template in templates {
        let path = dir.join(template.path);
        if let Err(error) = write_new(&path, &filled(template.text)) {
            for path in &written {
                let _ = fs::remove_file(path);
            }
            return Err(format!("write {}: {error}", path.display()));
        }
        written.push(path);
    }
    Ok(())
}

/// Writes a file that does not exist, with its folder. What was written of it is removed if that fails.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let end = file.write_all(text.as_bytes());
    if end.is_err() {
        let _ = fs::remove_file(path);
    }
    end
}

/// The folder and the files that were written, a line each.
pub(crate) fn listed(dir: &Path, written: &[&Template]) -> Vec<String> {
    let mut lines = vec![format!("wrote a project to {}", dir.display())];
    lines.extend(written.iter().map(|one| format!("  {:<20}  {}", one.path, one.about)));
    lines
}

/// The folder as the argument of a command that is pasted into a shell; a name that is no text can't be pasted.
pub(crate) fn argument(dir: &Path) -> (&'static str, String) {
    match dir.to_str() {
        Some(".") => ("", String::new()),
        Some(name) if name.starts_with('-') => ("", format!(" {}", text::quoted(&format!("./{name}")))),
        Some(name) => ("", format!(" {}", text::quoted(name))),
        None => (", in that folder", String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_arguments_that_a_shell_takes_as_they_are() {
        let argument = |name: &str| argument(Path::new(name)).1;
        assert_eq!([".", "a/b-1", "-x"].map(argument), ["", " a/b-1", " ./-x"]);
        assert_eq!(argument("it's $(here)\n"), " 'it'\\''s $(here)\n'");
    }
}
