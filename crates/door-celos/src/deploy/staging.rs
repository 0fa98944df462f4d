//! All scripts of a site, read once, and evaluated before and after the change.

use std::path::Path;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use kelos_sandbox::apps::AppFormat;
use kelos_sandbox::{Folders, Limits, TEST_FILE};
use kelos_storage::{Entry, Kind, Place, StorageError};

use super::bundle::{Texts, is_of_defaults};
use super::inspect::Definitions;
use super::site::{self, Site};
use super::{Bundle, DeployError, ProjectName};

/// How many scripts a site may have.
const MOST_SCRIPTS: usize = 20_000;

/// How many scripts are read at a time.
const READS_AT_A_TIME: usize = 8;

/// How many levels of folders below a folder of defaults are read.
const DEEPEST: usize = 4;

/// All scripts of a site, and the other texts that they read, by their names, with `/` for those in folders.
#[derive(Debug, Clone, Default)]
pub(super) struct Scripts {
    workflows: Texts,
    defaults: Texts,
}

impl Scripts {
    /// Reads them. A script that can't be read is left out, with a note.
    pub(super) async fn fetch(site: &Site, notes: &mut Vec<String>) -> Result<Scripts, DeployError> {
        let workflows = names(&site.workflows, 0, |name| name.ends_with(".js") && !name.ends_with(TEST_FILE)).await?;
        let defaults = names(&site.defaults, DEEPEST, is_of_defaults).await?;
        Ok(Scripts {
            workflows: texts(&site.workflows, workflows, notes).await?,
            defaults: texts(&site.defaults, defaults, notes).await?,
        })
    }

    /// The files of a project: in the folder of workflows, and in that of defaults.
    pub(super) fn of(&self, project: &ProjectName) -> (Texts, Texts) {
        let own = |texts: &Texts| -> Texts {
            let own = texts.iter().filter(|(name, _)| project.owns(name));
            own.map(|(name, text)| (name.clone(), text.clone())).collect()
        };
        (own(&self.workflows), own(&self.defaults))
    }

    /// The same with a new version of a project, or without the project.
    pub(super) fn with(&self, project: &ProjectName, bundle: Option<&Bundle>) -> Scripts {
        let mut scripts = self.clone();
        let (workflows, defaults) = bundle.map(|bundle| bundle.named(project)).unwrap_or_default();
        for (texts, new) in [(&mut scripts.workflows, workflows), (&mut scripts.defaults, defaults)] {
            texts.retain(|name, _| !project.owns(name));
            texts.extend(new);
        }
        scripts
    }

    /// Evaluates them on a thread that may block.
    pub(super) async fn inspect(
        self,
        project: &ProjectName,
        format: &Arc<dyn AppFormat>,
    ) -> Result<Definitions, DeployError> {
        let (project, format) = (project.clone(), format.clone());
        let work = tokio::task::spawn_blocking(move || self.evaluate(&project, &format));
        Ok(work.await.map_err(std::io::Error::other)??)
    }

    fn evaluate(&self, project: &ProjectName, format: &Arc<dyn AppFormat>) -> std::io::Result<Definitions> {
        let staged = tempfile::tempdir()?;
        let folders = Folders { workflows: staged.path().join("workflows"), defaults: staged.path().join("defaults") };
        write_all(&folders.workflows, &self.workflows)?;
        write_all(&folders.defaults, &self.defaults)?;
        let loaded = kelos_sandbox::check(folders.clone(), Limits::default(), format.clone(), None)?;
        let mut found = Definitions { workflows: loaded.workflows, problems: loaded.problems, reads: loaded.reads };
        // A file that no script imports is not evaluated, but its syntax is checked.
        let (_, defaults) = self.of(project);
        for (name, text) in defaults.iter().filter(|(name, _)| name.ends_with(".js")) {
            if !loaded.sources.contains_key(&format!("defaults/{name}")) {
                found.problems.extend(syntax(name, text, &folders, format)?);
            }
        }
        Ok(found)
    }
}

/// The syntax errors of a defaults file that is not run.
fn syntax(
    name: &str,
    text: &str,
    folders: &Folders,
    format: &Arc<dyn AppFormat>,
) -> std::io::Result<Vec<kelos_sandbox::Problem>> {
    let alone = tempfile::tempdir()?;
    // On its first line, so that the positions of problems are correct.
    std::fs::write(alone.path().join("defaults.js"), format!("if (false) {{ {text}\n}}"))?;
    let folders = Folders { workflows: alone.path().to_owned(), defaults: folders.defaults.clone() };
    let loaded = kelos_sandbox::check(folders, Limits::default(), format.clone(), None)?;
    let file = format!("defaults/{name}");
    Ok(loaded.problems.into_iter().map(|problem| kelos_sandbox::Problem { file: file.clone(), ..problem }).collect())
}

fn write_all(folder: &Path, texts: &Texts) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, text) in texts {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}

/// The names of all files in a folder and its subfolders, to this depth, that are read.
async fn names(folder: &Place, deepest: usize, is_read: fn(&str) -> bool) -> Result<Vec<String>, DeployError> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), 0)];
    while let Some((prefix, depth)) = open.pop() {
        let path = site::below(folder, &prefix).path;
        let entries = folder.files.list(path.trim_end_matches('/')).await?.unwrap_or_default();
        for Entry { name, kind, .. } in entries.into_iter().filter(|entry| !entry.name.starts_with('.')) {
            match kind {
                Kind::File if is_read(&name) => found.push(format!("{prefix}{name}")),
                Kind::Folder if depth < deepest => open.push((format!("{prefix}{name}/"), depth + 1)),
                _ => {}
            }
        }
        if found.len() + open.len() > MOST_SCRIPTS {
            let reason = format!("it has more than the {MOST_SCRIPTS} scripts that are read at most");
            return Err(DeployError::Folder { what: "folder of scripts", place: site::shown(folder), reason });
        }
    }
    Ok(found)
}

async fn texts(folder: &Place, names: Vec<String>, notes: &mut Vec<String>) -> Result<Texts, DeployError> {
    let limit = Limits::default().file_bytes;
    let read = stream::iter(names).map(|name| async move {
        let place = site::below(folder, &name);
        match site::script_text(&place, limit).await {
            // It may be removed while the folder is read.
            Ok(text) => Ok((name, Ok(text))),
            Err(error) if error.is_of_endpoint() => Err(error),
            Err(error) => Ok((name, Err(error))),
        }
    });
    let read: Vec<(String, Result<Option<String>, StorageError>)> =
        read.buffer_unordered(READS_AT_A_TIME).try_collect().await?;
    let mut texts = Texts::new();
    for (name, text) in read {
        match text {
            Ok(text) => texts.extend(text.map(|text| (name, text))),
            Err(error) => notes.push(format!("failed to {error}: what it defines was not looked at")),
        }
    }
    notes.sort();
    Ok(texts)
}
