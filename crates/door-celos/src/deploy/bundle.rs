//! The content of a deployment: two scripts, and the folder of an Oozie workflow.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::DeployError;

/// Longest script, in bytes.
const LONGEST_SCRIPT: u64 = 4 << 20;

/// How many files an Oozie workflow may have.
const MOST_FILES: usize = 10_000;

/// The new content of a project.
#[derive(Debug, Clone, Default)]
pub struct Bundle {
    /// The text of `workflow.js`.
    pub workflow: String,
    /// The text of `defaults.js`, if it exists.
    pub defaults: Option<String>,
    /// The files of `hdfs/` by their paths in it, if that folder exists.
    pub hdfs: Option<BTreeMap<String, BundleFile>>,
}

/// A file of `hdfs/`.
#[derive(Debug, Clone)]
pub struct BundleFile {
    /// The content of the file.
    pub content: Content,
    /// How long it is.
    pub bytes: u64,
}

/// The content of a file.
#[derive(Debug, Clone)]
pub enum Content {
    /// The content of this local file, read when it is needed.
    Local(PathBuf),
    /// These bytes.
    Bytes(Vec<u8>),
}

impl Bundle {
    /// Reads a deployment directory.
    ///
    /// # Errors
    /// If its layout is invalid, or it can't be read.
    pub fn read(folder: &Path) -> Result<Bundle, DeployError> {
        let fail = |reason: String| DeployError::Layout { folder: folder.display().to_string(), reason };
        let none = || "there is no such folder; expected one with workflow.js".to_owned();
        if !about(folder).map_err(fail)?.ok_or_else(none).map_err(fail)?.is_dir() {
            return Err(fail(none()));
        }
        let workflow = script(folder, "workflow.js").map_err(fail)?;
        let workflow = workflow.ok_or_else(|| fail(without_workflow(folder)))?;
        let defaults = script(folder, "defaults.js").map_err(fail)?;
        let hdfs = folder.join("hdfs");
        let hdfs = match about(&hdfs).map_err(fail)? {
            Some(found) if found.is_dir() => Some(files_below(&hdfs).map_err(fail)?),
            Some(_) => return Err(fail("hdfs is a file, expected a folder".to_owned())),
            None => None,
        };
        Ok(Bundle { workflow, defaults, hdfs })
    }
}

impl BundleFile {
    /// The whole content.
    ///
    /// # Errors
    /// When a file of this machine can't be read.
    pub fn read(&self) -> std::io::Result<Vec<u8>> {
        match &self.content {
            Content::Local(path) => kelos_sandbox::read_file(path, u64::MAX).map_err(std::io::Error::other),
            Content::Bytes(bytes) => Ok(bytes.clone()),
        }
    }
}

/// The metadata of a file or folder. None where the path does not exist.
fn about(path: &Path) -> Result<Option<Metadata>, String> {
    let asked = path.to_owned();
    match kelos_sandbox::answered(move || fs::metadata(asked)) {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(format!("{} can't be looked at: {error}", path.display())),
    }
}

fn without_workflow(folder: &Path) -> String {
    let names: Vec<String> = listed(folder).unwrap_or_default().into_iter().map(|(name, _)| name).collect();
    let close = kelos_sandbox::closest("workflow.js", names.iter().map(String::as_str));
    let meant = close.map(|close| format!("; it has {close}")).unwrap_or_default();
    format!(
        "it has no workflow.js{meant}; expected workflow.js, defaults.js where needed, and the folder hdfs for Oozie"
    )
}

fn script(folder: &Path, name: &str) -> Result<Option<String>, String> {
    let path = folder.join(name);
    if about(&path)?.is_none() {
        return Ok(None);
    }
    let bytes = kelos_sandbox::read_file(&path, LONGEST_SCRIPT).map_err(|why| format!("{name} {why}"))?;
    String::from_utf8(bytes).map(Some).map_err(|_| format!("{name} is not UTF-8 text"))
}

/// The names in a folder with their metadata, with a time limit for the file system.
fn listed(folder: &Path) -> Result<Vec<(String, Metadata)>, String> {
    let folder = folder.to_owned();
    let listing = move || {
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().into_string().map_err(|_| io::Error::other("a name in it is not UTF-8"))?;
            let about =
                fs::metadata(entry.path()).map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
            entries.push((name, about));
            if entries.len() > MOST_FILES {
                return Err(io::Error::other(format!("it has more than {MOST_FILES} files")));
            }
        }
        Ok(entries)
    };
    kelos_sandbox::answered(listing).map_err(|error| format!("can't be read: {error}"))
}

fn files_below(root: &Path) -> Result<BTreeMap<String, BundleFile>, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![String::new()];
    while let Some(folder) = open.pop() {
        let entries = listed(&root.join(&folder)).map_err(|why| format!("hdfs/{folder} {why}"))?;
        for (name, about) in entries {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            if about.is_dir() {
                open.push(path);
            } else if about.is_file() {
                let content = Content::Local(root.join(&path));
                found.insert(path, BundleFile { content, bytes: about.len() });
            } else {
                return Err(format!("hdfs/{path} is neither a file nor a folder"));
            }
            if found.len() + open.len() > MOST_FILES {
                return Err(format!("hdfs has more than the {MOST_FILES} files that are taken at most"));
            }
        }
    }
    Ok(found)
}
