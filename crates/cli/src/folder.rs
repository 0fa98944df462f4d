//! Folders of scripts as people lay them out.

use std::fs::Permissions;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use kelos_sandbox::{Folders, Problem, TEST_FILE};

use crate::failure::Failure;
use crate::terminal::shown_line;

/// Rights on folders of state, whose files may hold secrets.
const PRIVATE: u32 = 0o700;

/// An existing folder, with an absolute path.
pub(crate) fn existing(what: &str, path: &Path) -> Result<PathBuf, Failure> {
    let fail = |why: String| Failure::usage(format!("use {} as the {what}: {why}", path.display()));
    let absolute = std::fs::canonicalize(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => fail("there is no such folder".to_owned()).hint("make it, or name another one"),
        _ => fail(error.to_string()),
    })?;
    if !absolute.is_dir() {
        return Err(fail("it is a file, expected a folder".to_owned()));
    }
    Ok(absolute)
}

/// Makes a folder that only its owner may enter, or closes to others one that is there.
///
/// # Errors
/// When it can't be made. One that belongs to somebody else is left as it is.
pub(crate) fn make_private(dir: &Path) -> std::io::Result<()> {
    if let Some(parent) = dir.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::DirBuilder::new().mode(PRIVATE).create(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && dir.is_dir() => {}
        made => return made,
    }
    let mode = std::fs::metadata(dir)?.permissions().mode();
    if mode & !PRIVATE & 0o777 != 0 && std::fs::set_permissions(dir, Permissions::from_mode(PRIVATE)).is_err() {
        tracing::warn!("protect {}: others can read it, and it belongs to another user", dir.display());
    }
    Ok(())
}

/// The folders of scripts in a folder: its subfolder `workflows`, or itself.
pub(crate) fn folders(dir: &Path, defaults: Option<&Path>) -> Folders {
    let below = dir.join("workflows");
    let workflows = if is_folder(&below) { below } else { dir.to_owned() };
    let beside = dir.parent().filter(|_| dir.ends_with("workflows")).map(|parent| parent.join("defaults"));
    let own = dir.join("defaults");
    let beside = beside.filter(|beside| is_folder(beside) && !is_folder(&own));
    let defaults = defaults.map_or_else(|| beside.unwrap_or(own), Path::to_owned);
    Folders { workflows, defaults }
}

/// Whether there is a folder, as far as its file system tells in time.
pub(crate) fn is_folder(path: &Path) -> bool {
    let path = path.to_owned();
    kelos_sandbox::answered(move || std::fs::metadata(path)).is_ok_and(|meta| meta.is_dir())
}

/// How many scripts are in the folder; none where there is no folder.
///
/// # Errors
/// When it can't be listed.
pub(crate) fn scripts(folders: &Folders) -> Result<usize, Failure> {
    let folder = folders.workflows.clone();
    let is_script = |name: &str| name.ends_with(".js") && !name.ends_with(TEST_FILE);
    let counted = kelos_sandbox::answered(move || {
        let entries = std::fs::read_dir(folder)?.filter_map(Result::ok);
        Ok(entries.filter(|entry| is_script(&entry.file_name().to_string_lossy())).count())
    });
    let fail = |error: std::io::Error| {
        let place = folders.workflows.display();
        Failure::bad(format!("list the scripts in {place}: {error}")).hint("the folder has to be readable by this user")
    };
    match counted {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        counted => counted.map_err(fail),
    }
}

/// The number of characters that stand for so many at the beginning of a line, where some are shown as escapes.
pub(crate) fn shown_width(line: &str, characters: usize) -> usize {
    let known: String = line.chars().take(characters).collect();
    shown_line(&known).chars().count() + characters.saturating_sub(known.chars().count())
}

/// `broken.js:3:7: what is wrong`, with what stands there and a caret below the column.
pub(crate) fn problem_lines(problem: &Problem) -> Vec<String> {
    let mut lines = vec![format!("{} [{}]", shown_line(&problem.to_string()), problem.code)];
    if let Some(source) = problem.source_line.as_deref().filter(|source| !source.trim().is_empty()) {
        let source = source.trim_end().replace('\t', " ");
        let column = usize::try_from(problem.column).unwrap_or(1).saturating_sub(1);
        lines.push(format!("    {}", shown_line(&source)));
        lines.push(format!("    {}^", " ".repeat(shown_width(&source, column))));
    }
    lines
}
