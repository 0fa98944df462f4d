//! The problems of a folder of scripts, as `kelos check` finds them.

use std::path::PathBuf;

use kelos_sandbox::{Folders, Problem};

use super::remote::place;
use crate::apps::Apps;
use crate::check;
use crate::doctor::checks::scripts::{FolderProblems, ProblemLine};
use crate::doctor::installation::Installation;
use crate::folder;

/// The problems of the scripts, or the reason for which they can't be read, which completes "failed to …".
pub(super) fn problems(
    (folders, dir): &(Folders, PathBuf),
    installation: &Installation,
) -> Result<FolderProblems, String> {
    let existing = folder::existing("folder of scripts", &folders.workflows).and_then(|_| {
        let apps = Apps::of_environment().source(dir)?;
        check::load(folders.clone(), apps, installation.config.as_deref())
    });
    let loaded = existing.map_err(|failure| failure.message)?;
    let problem = |one: &Problem| ProblemLine {
        is_error: one.is_error(),
        code: one.code.as_str().to_owned(),
        place: place(&one.file, one.line, one.column),
        message: one.message.clone(),
    };
    Ok(FolderProblems {
        folder: dir.display().to_string(),
        workflows: loaded.workflows.len(),
        problems: loaded.problems.iter().map(problem).collect(),
    })
}
