//! The content of a deployment: scripts with their defaults, and the folder of an Oozie workflow.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use kelos_sandbox::TEST_FILE;

use super::{DeployError, ProjectName};

/// Longest script, in bytes.
const LONGEST_SCRIPT: u64 = 4 << 20;

/// Longest name of a file of a project with several, in bytes: with the name of the project it has to fit into a name of a file.
const LONGEST_NAME: usize = 80;

/// How many files an Oozie workflow may have.
const MOST_FILES: usize = 10_000;

/// Texts by the names of their files.
pub(super) type Texts = BTreeMap<String, String>;

/// The new content of a project.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// The scripts.
    pub scripts: BundleScripts,
    /// The files of `hdfs/` by their paths in it, if that folder exists.
    pub hdfs: Option<BTreeMap<String, BundleFile>>,
}

/// The scripts of a project.
#[derive(Debug, Clone)]
pub enum BundleScripts {
    /// One script.
    Single {
        /// The text of `workflow.js`.
        workflow: String,
        /// The text of `defaults.js`, if it exists.
        defaults: Option<String>,
    },
    /// Several files.
    Several(BundleFiles),
}

/// The files of a project that has several.
#[derive(Debug, Clone)]
pub struct BundleFiles {
    /// The texts of the scripts in `workflows/`, by name.
    workflows: Texts,
    /// The texts of the files in `defaults/`, by name.
    defaults: Texts,
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
        let scripts = scripts(folder).map_err(fail)?;
        let hdfs = folder.join("hdfs");
        let hdfs = match about(&hdfs).map_err(fail)? {
            Some(found) if found.is_dir() => Some(files_below(&hdfs).map_err(fail)?),
            Some(_) => return Err(fail("hdfs is a file, expected a folder".to_owned())),
            None => None,
        };
        Ok(Bundle { scripts, hdfs })
    }

    /// The scripts of the folder of workflows, and the files of the folder of defaults, by their names there.
    pub(super) fn named(&self, project: &ProjectName) -> (Texts, Texts) {
        let one = |text: &String| Texts::from([(project.script(), text.clone())]);
        let all = |texts: &Texts| texts.iter().map(|(name, text)| (project.file(name), text.clone())).collect();
        match &self.scripts {
            BundleScripts::Single { workflow, defaults } => {
                (one(workflow), defaults.as_ref().map(one).unwrap_or_default())
            }
            BundleScripts::Several(files) => (all(&files.workflows), all(&files.defaults)),
        }
    }
}

impl BundleFiles {
    /// Files by their paths, such as `workflows/hourly.js` and `defaults/holidays.txt`.
    ///
    /// # Errors
    /// In words, if a path is another one, or there is no script with workflows.
    pub fn new(files: BTreeMap<String, String>) -> Result<BundleFiles, String> {
        let (mut workflows, mut defaults) = (Texts::new(), Texts::new());
        for (path, text) in files {
            let refuse = |why: &str| Err(format!("the file \"{path}\" {why}"));
            let (texts, name) = match path.split_once('/') {
                Some(("workflows", name)) if is_script(name) => (&mut workflows, name),
                Some(("defaults", name)) if is_of_defaults(name) => (&mut defaults, name),
                _ => return refuse("is none of a project: expected workflows/X.js, defaults/X.js or defaults/X.txt"),
            };
            if name.len() > LONGEST_NAME {
                return refuse(&format!("has a name of more than {LONGEST_NAME} bytes"));
            }
            let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
            if !name.starts_with(char::is_alphanumeric) || !name.chars().all(is_plain) {
                return refuse("has another name than expected: letters, digits, \"-\", \"_\" and \".\"");
            }
            texts.insert(name.to_owned(), text);
        }
        match workflows.is_empty() {
            true => Err("it has no script in workflows/".to_owned()),
            false => Ok(BundleFiles { workflows, defaults }),
        }
    }

    /// The files by their paths.
    #[must_use]
    pub fn paths(&self) -> BTreeMap<String, String> {
        let below = |folder: &'static str, texts: &Texts| -> Vec<_> {
            texts.iter().map(|(name, text)| (format!("{folder}/{name}"), text.clone())).collect()
        };
        [below("workflows", &self.workflows), below("defaults", &self.defaults)].into_iter().flatten().collect()
    }
}

/// Whether a server reads workflows from a file of this name.
fn is_script(name: &str) -> bool {
    name.ends_with(".js") && !name.ends_with(TEST_FILE)
}

/// Whether scripts can read a file of this name in the folder of defaults.
pub(super) fn is_of_defaults(name: &str) -> bool {
    name.ends_with(".js") || name.ends_with(".txt")
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
    let entries = listed(folder).unwrap_or_default();
    let names = entries.iter().filter(|(_, about)| about.is_file()).map(|(name, _)| name.as_str());
    let close = kelos_sandbox::closest("workflow.js", names);
    let meant = close.map(|close| format!("; it has {close}")).unwrap_or_default();
    format!(
        "it has no workflow.js and no scripts in a folder workflows{meant}; expected workflow.js, and defaults.js where needed, \
         or the folders workflows and defaults; and the folder hdfs for Oozie"
    )
}

/// The scripts of a deployment directory: one, or those of its folders.
fn scripts(folder: &Path) -> Result<BundleScripts, String> {
    let single = script(folder, "workflow.js")?;
    let several = files_of(folder)?;
    match (single, several) {
        (Some(_), Some(_)) => Err("it has workflow.js and the folder workflows: expected one of them".to_owned()),
        (Some(workflow), None) => Ok(BundleScripts::Single { workflow, defaults: script(folder, "defaults.js")? }),
        (None, Some(files)) => Ok(BundleScripts::Several(files)),
        (None, None) => Err(without_workflow(folder)),
    }
}

/// The files of the folders `workflows` and `defaults`; none where there are no scripts in the former.
fn files_of(folder: &Path) -> Result<Option<BundleFiles>, String> {
    let mut files = files_in(folder, "workflows", is_script)?;
    if files.is_empty() {
        return Ok(None);
    }
    files.extend(files_in(folder, "defaults", is_of_defaults)?);
    BundleFiles::new(files).map(Some)
}

/// The texts of the files directly in a folder that are read, by their paths.
fn files_in(root: &Path, folder: &str, is_read: fn(&str) -> bool) -> Result<Texts, String> {
    let path = root.join(folder);
    let mut texts = Texts::new();
    if !about(&path)?.is_some_and(|found| found.is_dir()) {
        return Ok(texts);
    }
    let entries = listed(&path).map_err(|why| format!("{folder} {why}"))?;
    for (name, found) in entries.into_iter().filter(|(name, _)| !name.starts_with('.')) {
        if found.is_dir() && folder == "defaults" {
            return Err(format!("defaults/{name} is a folder, expected all files directly in defaults"));
        }
        if !found.is_dir() && is_read(&name) {
            let text = script(&path, &name).map_err(|why| format!("{folder}/{why}"))?;
            texts.extend(text.map(|text| (format!("{folder}/{name}"), text)));
        }
    }
    Ok(texts)
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
