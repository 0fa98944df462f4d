//! What is to be deployed: two scripts, and the folder of an Oozie workflow.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::DeployError;

/// Longest script, in bytes.
const LONGEST_SCRIPT: u64 = 4 << 20;

/// Files of an Oozie workflow, at the most.
const MOST_FILES: usize = 10_000;

/// A project as it is to be.
#[derive(Debug, Clone, Default)]
pub struct Bundle {
    /// The text of `workflow.js`.
    pub workflow: String,
    /// The text of `defaults.js`, where there is one.
    pub defaults: Option<String>,
    /// The files of `hdfs/` by their paths in it, where there is such a folder.
    pub hdfs: Option<BTreeMap<String, BundleFile>>,
}

/// A file of `hdfs/`.
#[derive(Debug, Clone)]
pub struct BundleFile {
    /// What is in it.
    pub content: Content,
    /// How long it is.
    pub bytes: u64,
}

/// What is in a file.
#[derive(Debug, Clone)]
pub enum Content {
    /// What is in this file of this machine, read when it is needed.
    Local(PathBuf),
    /// These bytes.
    Bytes(Vec<u8>),
}

impl Bundle {
    /// Reads a deployment directory.
    ///
    /// # Errors
    /// When it is not laid out as it must be, or can't be read.
    pub fn read(folder: &Path) -> Result<Bundle, DeployError> {
        let fail = |reason: String| DeployError::Layout { folder: folder.display().to_string(), reason };
        if !folder.is_dir() {
            return Err(fail("there is no such folder; expected one with workflow.js".to_owned()));
        }
        let workflow = script(folder, "workflow.js").map_err(fail)?;
        let workflow = workflow.ok_or_else(|| fail(without_workflow(folder)))?;
        let defaults = script(folder, "defaults.js").map_err(fail)?;
        let hdfs = folder.join("hdfs");
        let hdfs = match fs::metadata(&hdfs) {
            Ok(found) if found.is_dir() => Some(files_below(&hdfs).map_err(fail)?),
            Ok(_) => return Err(fail("hdfs is a file, expected a folder".to_owned())),
            Err(_) => None,
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
            Content::Local(path) => kelos_script::read_file(path, u64::MAX).map_err(std::io::Error::other),
            Content::Bytes(bytes) => Ok(bytes.clone()),
        }
    }
}

fn without_workflow(folder: &Path) -> String {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let close = kelos_script::closest("workflow.js", names.iter().map(String::as_str));
    let meant = close.map(|close| format!("; it has {close}")).unwrap_or_default();
    format!(
        "it has no workflow.js{meant}; expected workflow.js, defaults.js where needed, and the folder hdfs for Oozie"
    )
}

fn script(folder: &Path, name: &str) -> Result<Option<String>, String> {
    let path = folder.join(name);
    if matches!(path.try_exists(), Ok(false)) {
        return Ok(None);
    }
    let bytes = kelos_script::read_file(&path, LONGEST_SCRIPT).map_err(|why| format!("{name} {why}"))?;
    String::from_utf8(bytes).map(Some).map_err(|_| format!("{name} is not UTF-8 text"))
}

fn files_below(root: &Path) -> Result<BTreeMap<String, BundleFile>, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![String::new()];
    while let Some(folder) = open.pop() {
        let shown = |error: std::io::Error| format!("hdfs/{folder} can't be read: {error}");
        for entry in fs::read_dir(root.join(&folder)).map_err(shown)? {
            let entry = entry.map_err(shown)?;
            let name = entry.file_name();
            let name = name.to_str().ok_or_else(|| format!("hdfs/{folder} has a name that is not UTF-8"))?;
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            let about = fs::metadata(entry.path()).map_err(|error| format!("hdfs/{path} can't be read: {error}"))?;
            if !about.is_dir() && !about.is_file() {
                return Err(format!("hdfs/{path} is neither a file nor a folder"));
            }
            match about.is_dir() {
                true => open.push(path),
                false => {
                    drop(found.insert(path, BundleFile { content: Content::Local(entry.path()), bytes: about.len() }))
                }
            }
            if found.len() + open.len() > MOST_FILES {
                return Err(format!("hdfs has more than the {MOST_FILES} files that are taken at most"));
            }
        }
    }
    Ok(found)
}
