//! The files of definitions that were deployed to a log: every node has the same ones in a folder of its own.
//!
//! They are registers, a text for each file, and a digest of all that is written last. A node follows the digest, and makes its folder what
//! the registers say; what somebody else put or changed there is set aside. So what runs is what was deployed, whichever node leads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kelos_core::SetRegister;
use kelos_engine::{AskError, Handle};
use kelos_model::Actor;
use kelos_sandbox::{Folders, Problem, ProblemCode, Severity};
use kelos_store::{Queries, RegisterKeys, StoreError};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The texts of the files, by `workflows/NAME` and `defaults/NAME`.
const FILES: &str = "kelos.files";
/// The digest of all files.
const DEPLOYED: &str = "kelos.deployed";
const DIGEST: &str = "digest";
/// The file, beside the folders, with the digests of the files that a node wrote there.
const WRITTEN: &str = ".written.json";
/// The folder, beside them, for files that it did not write.
const IGNORED: &str = "ignored";

/// The error of files that can't be shared. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A file can't be read or written.
    #[error("{doing} {}: {source}", path.display())]
    Disk {
        /// The attempted action.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The registers can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The registers can't be written.
    #[error("write what was deployed to the log: {0}")]
    Ask(#[from] AskError),
}

/// The folders of definitions in the folder of a node's state.
///
/// # Errors
/// When they can't be made.
pub fn definitions(state: &Path) -> Result<Folders, FilesError> {
    let (workflows, defaults) = (state.join("definitions/workflows"), state.join("definitions/defaults"));
    for path in [&workflows, &defaults] {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|source| FilesError::Disk { doing: "make", path: path.clone(), source })?;
    }
    Ok(Folders { workflows, defaults })
}

/// The folders of a node whose files come from the log.
pub(crate) struct SharedFiles {
    folders: Folders,
    known: Mutex<KnownFiles>,
}

/// The files that a node knows to be in its folders.
#[derive(Default)]
struct KnownFiles {
    /// The digest that the folders follow, once they do; none of no files.
    followed: Option<Option<Value>>,
    /// The digests of the files that it wrote, by name, once it has.
    written: Option<BTreeMap<String, String>>,
    /// Whether a deployment writes to the folders: until it is published its files are not in the log.
    is_deploying: bool,
}

impl SharedFiles {
    pub(crate) fn new(folders: Folders) -> Self {
        Self { folders, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, KnownFiles> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn folders(&self) -> [(&'static str, &Path); 2] {
        [("workflows", &self.folders.workflows), ("defaults", &self.folders.defaults)]
    }

    /// A path beside the folders.
    fn beside(&self, name: &str) -> PathBuf {
        self.folders.workflows.parent().unwrap_or(Path::new("")).join(name)
    }

    /// Makes the folders what the registers say, if that has changed; returns whether it had.
    pub(crate) fn follow(&self, reader: &dyn Queries) -> Result<bool, FilesError> {
        let mut known = self.known();
        if !known.is_deploying {
            self.set_aside(&mut known)?;
        }
        self.follow_registers(&mut known, reader)
    }

    /// Makes the folders what this node wrote there, if somebody changed them, except while a deployment does.
    pub(crate) fn restore(&self, reader: &dyn Queries) -> Result<(), FilesError> {
        let mut known = self.known();
        if !known.is_deploying && self.set_aside(&mut known)? {
            self.follow_registers(&mut known, reader)?;
        }
        Ok(())
    }

    /// Lets a deployment write to the folders, until it is published.
    pub(crate) fn begin_deployment(&self, reader: &dyn Queries) -> Result<(), FilesError> {
        self.restore(reader)?;
        self.known().is_deploying = true;
        Ok(())
    }

    fn follow_registers(&self, known: &mut KnownFiles, reader: &dyn Queries) -> Result<bool, FilesError> {
        let digest = reader.register(DEPLOYED, DIGEST)?;
        if known.followed.as_ref() == Some(&digest) {
            return Ok(false);
        }
        let registers = reader.registers(Some(FILES), RegisterKeys::Prefix(""))?;
        let wanted: BTreeMap<String, String> = registers
            .into_iter()
            .filter_map(|register| Some((register.key, register.value.as_str()?.to_owned())))
            .collect();
        let there = self.read()?;
        for (name, text) in &wanted {
            if there.get(name).map(Vec::as_slice) != Some(text.as_bytes())
                && let Some(path) = self.path(name)
            {
                write(&path, text)?;
            }
        }
        for name in there.keys().filter(|name| !wanted.contains_key(*name)) {
            if let Some(path) = self.path(name) {
                std::fs::remove_file(&path).map_err(|source| FilesError::Disk { doing: "remove", path, source })?;
            }
        }
        self.wrote(known, digest, &wanted)?;
        Ok(true)
    }

    /// Notes, on the disk too, what was written to the folders.
    fn wrote(
        &self,
        known: &mut KnownFiles,
        digest: Option<Value>,
        files: &BTreeMap<String, String>,
    ) -> Result<(), FilesError> {
        let files = files.iter().filter(|(name, _)| self.path(name).is_some());
        let written: BTreeMap<String, String> =
            files.map(|(name, text)| (name.clone(), digest_of([text.as_bytes()]))).collect();
        let text = serde_json::to_string(&written).unwrap_or_else(|error| unreachable!("it has only texts: {error}"));
        write(&self.beside(WRITTEN), &text)?;
        *known = KnownFiles { followed: Some(digest), written: Some(written), is_deploying: false };
        Ok(())
    }

    /// Moves files that this node did not write, or that were changed since, out of the folders; whether some file is not as it was written.
    fn set_aside(&self, known: &mut KnownFiles) -> Result<bool, FilesError> {
        if known.written.is_none() {
            let noted = std::fs::read(self.beside(WRITTEN)).ok();
            known.written = noted.and_then(|text| serde_json::from_slice(&text).ok());
        }
        // A folder of an older program, which made no notes, has what was deployed.
        let Some(written) = &known.written else { return Ok(false) };
        let there = self.read()?;
        let mut missing: BTreeSet<&String> = written.keys().collect();
        for (name, content) in &there {
            if written.get(name).is_some_and(|digest| *digest == digest_of([content.as_slice()])) {
                missing.remove(name);
            } else if let Some(path) = self.path(name) {
                let aside = place_aside(self.beside(IGNORED).join(name), content);
                let failed = |source| FilesError::Disk { doing: "set aside", path: path.clone(), source };
                let folder = aside.parent().unwrap_or(Path::new(""));
                DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
                std::fs::rename(&path, &aside).map_err(failed)?;
                tracing::warn!("{} was set aside as {}: it was not deployed", path.display(), aside.display());
            }
        }
        let has_changed = !missing.is_empty() || there.len() != written.len();
        if has_changed {
            known.followed = None;
        }
        Ok(has_changed)
    }

    /// The problems of files that are ignored: those that were set aside, and a folder of scripts that was used before the data were moved.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let ignored = self.beside(IGNORED);
        let files = self.folders().into_iter().flat_map(|(name, _)| names(&ignored.join(name)));
        let state = self.beside("..");
        let is_of_up = std::fs::canonicalize(&state).ok().filter(|state| state.file_name() == Some(".kelos".as_ref()));
        let former = is_of_up.and_then(|state| Some(state.parent()?.join("workflows"))).filter(|path| path.is_dir());
        let problem = |path: PathBuf| Problem {
            severity: Severity::Warning,
            hint: Some("deploy it with `kelos deploy --server`, or remove it".to_owned()),
            ..Problem::error(
                &path.to_string_lossy(),
                ProblemCode::FileIgnored,
                "it is ignored: definitions come from the log that the nodes share".to_owned(),
            )
        };
        files.chain(former).map(problem).collect()
    }

    /// The place of a file, unless its name leads out of the folders.
    fn path(&self, name: &str) -> Option<PathBuf> {
        let (folder, file) = name.split_once('/')?;
        let is_plain = !file.is_empty() && !file.starts_with('.') && !file.contains(['/', '\\', '\0']);
        let folder = self.folders().into_iter().find(|(known, _)| *known == folder)?.1;
        is_plain.then(|| folder.join(file))
    }

    /// The contents of the files in the folders, by their names.
    fn read(&self) -> Result<BTreeMap<String, Vec<u8>>, FilesError> {
        let mut files = BTreeMap::new();
        for (name, folder) in self.folders() {
            let failed = |path: &Path, source| FilesError::Disk { doing: "read", path: path.to_owned(), source };
            let entries = match std::fs::read_dir(folder) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                entries => entries.map_err(|source| failed(folder, source))?,
            };
            for entry in entries {
                let path = entry.map_err(|source| failed(folder, source))?.path();
                let Some(file) = path.file_name().and_then(|file| file.to_str()) else { continue };
                if file.starts_with('.') || !path.is_file() {
                    continue;
                }
                let content = std::fs::read(&path).map_err(|source| failed(&path, source))?;
                files.insert(format!("{name}/{file}"), content);
            }
        }
        Ok(files)
    }

    /// The scripts in the folders, by their names.
    pub(super) fn scripts(&self) -> Result<BTreeMap<String, String>, FilesError> {
        let text = |(name, content): (String, Vec<u8>)| match String::from_utf8(content) {
            Ok(text) => Ok((name, text)),
            Err(error) => {
                let source = std::io::Error::new(std::io::ErrorKind::InvalidData, error.utf8_error());
                Err(FilesError::Disk { doing: "read", path: PathBuf::from(name), source })
            }
        };
        self.read()?.into_iter().map(text).collect()
    }

    /// The files in the folders that are text, by their names, and the names of those that are not. Of a folder that has more than
    /// definitions, as one that has the state of `kelos up`, only scripts and JSON files count.
    pub(super) fn texts(&self) -> Result<(BTreeMap<String, String>, Vec<String>), FilesError> {
        let is_mixed = self.folders.workflows.join(".kelos").is_dir();
        let is_definition = |name: &str| name.ends_with(".js") || name.ends_with(".json");
        let (mut texts, mut left) = (BTreeMap::new(), Vec::new());
        for (name, content) in self.read()? {
            if is_mixed && name.starts_with("workflows/") && !is_definition(&name) {
                continue;
            }
            match String::from_utf8(content) {
                Ok(text) => drop(texts.insert(name, text)),
                Err(_) => left.push(name),
            }
        }
        Ok((texts, left))
    }

    /// Writes what is in the folders of the leader to the log.
    pub(crate) async fn publish(&self, handle: &Handle, by: &Actor) -> Result<(), FilesError> {
        let files = self.scripts()?;
        let reader = handle.reader().clone();
        let known = reader.registers(Some(FILES), RegisterKeys::Prefix(""))?;
        let known: BTreeMap<String, Value> = known.into_iter().map(|register| (register.key, register.value)).collect();
        let names: BTreeSet<&String> = files.keys().chain(known.keys()).collect();
        for name in names {
            let value = files.get(name).map(|text| Value::String(text.clone()));
            if known.get(name) != value.as_ref() {
                set(handle, by, FILES, name, value).await?;
            }
        }
        let digest = Value::String(digest(&files));
        set(handle, by, DEPLOYED, DIGEST, Some(digest.clone())).await?;
        self.wrote(&mut self.known(), Some(digest), &files)
    }
}

/// The files of a folder, which need not exist.
fn names(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// The path for a file that is set aside: one that lies there already stays, unless its content is the same.
fn place_aside(path: PathBuf, content: &[u8]) -> PathBuf {
    let numbered = |number: u32| if number == 0 { path.clone() } else { path.with_added_extension(number.to_string()) };
    let is_free = |path: &PathBuf| std::fs::read(path).map_or(true, |there| there == content);
    // A folder of as many files is nobody's work, and the last of them may be replaced.
    (0..1000).map(numbered).find(is_free).unwrap_or_else(|| path.clone())
}

async fn set(handle: &Handle, by: &Actor, bucket: &str, key: &str, value: Option<Value>) -> Result<(), FilesError> {
    let (bucket, key) = (bucket.to_owned(), key.to_owned());
    Ok(handle.ask(by, SetRegister { bucket, key, value, reason: None }).await?)
}

/// The registers of these files, the digest last.
pub(super) fn registers_of(files: &BTreeMap<String, String>) -> Vec<(String, String, Option<Value>)> {
    let text = |(name, text): (&String, &String)| (FILES.to_owned(), name.clone(), Some(Value::String(text.clone())));
    let digest = (DEPLOYED.to_owned(), DIGEST.to_owned(), Some(Value::String(digest(files))));
    files.iter().map(text).chain([digest]).collect()
}

/// SHA-256 of all names and texts, in hexadecimal digits.
fn digest(files: &BTreeMap<String, String>) -> String {
    digest_of(files.iter().flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()]))
}

fn digest_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a file so that a reader sees all of it or the one before.
fn write(path: &Path, text: &str) -> Result<(), FilesError> {
    let part = path.with_extension("part");
    let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path));
    written.map_err(|source| FilesError::Disk { doing: "write", path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_aside_stays_when_another_file_of_its_name_comes() {
        let folder = std::env::temp_dir().join(format!("kelos-aside-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("etl.js");
        let mut places = Vec::new();
        for content in ["one", "two", "one", "three", "two"] {
            let place = place_aside(path.clone(), content.as_bytes());
            std::fs::write(&place, content).unwrap();
            places.push(place.file_name().unwrap().to_str().unwrap().to_owned());
        }
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(places, ["etl.js", "etl.js.1", "etl.js", "etl.js.2", "etl.js.1"]);
    }
}
