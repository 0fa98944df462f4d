//! The folder of an Oozie workflow: uploaded beside the old one, and renamed once it is complete.
//!
//! `.NAME.new` is the upload, `.NAME.old` is about to be removed; leftovers of a crash do no harm, and are removed by
//! the next deployment.

use std::collections::BTreeMap;

use kelos_storage::{Entry, Kind, Place, StorageError};

use super::bundle::{BundleFile, Content};
use super::change::{Difference, FileChange};
use super::site::{below, shown};
use super::{DeployError, ProjectName};

/// The largest files of the same length that are compared; larger ones are uploaded again.
const LONGEST_COMPARED: u64 = 16 << 20;

/// How many files below a folder are examined.
const MOST_FILES: usize = 20_000;

/// The places of a project.
pub(super) struct Folders {
    root: Place,
    pub(super) live: Place,
    new: Place,
    old: Place,
}

impl Folders {
    pub(super) fn of(root: &Place, project: &ProjectName) -> Folders {
        Folders {
            root: root.clone(),
            live: below(root, project.as_str()),
            new: below(root, &format!(".{project}.new")),
            old: below(root, &format!(".{project}.old")),
        }
    }

    /// The change of each file if these become the content of the folder.
    pub(super) async fn compare(&self, files: &BTreeMap<String, BundleFile>) -> Result<Vec<FileChange>, DeployError> {
        let mut there = files_below(&self.live).await?;
        let mut changes = Vec::with_capacity(files.len());
        for (path, file) in files {
            let difference = match there.remove(path) {
                None => Difference::New,
                Some(old) if self.same(path, &old, file).await? => Difference::Same,
                Some(_) => Difference::Changed,
            };
            let place = shown(&below(&self.live, path));
            changes.push(FileChange::of_file(place, difference, Some(file.bytes)));
        }
        changes.extend(there.keys().map(|path| self.removed(path)));
        Ok(changes)
    }

    /// The change of each file if the folder is removed.
    pub(super) async fn all_removed(&self) -> Result<Vec<FileChange>, DeployError> {
        Ok(files_below(&self.live).await?.keys().map(|path| self.removed(path)).collect())
    }

    fn removed(&self, path: &str) -> FileChange {
        let place = shown(&below(&self.live, path));
        FileChange::of_file(place, Difference::Removed, None)
    }

    async fn same(&self, path: &str, old: &Entry, new: &BundleFile) -> Result<bool, DeployError> {
        if old.bytes != new.bytes || new.bytes > LONGEST_COMPARED {
            return Ok(false);
        }
        let place = below(&self.live, path);
        let old = place.files.read(&place.path, LONGEST_COMPARED).await?;
        Ok(old[..] == new.read()?[..])
    }

    /// Uploads all files beside the old ones.
    pub(super) async fn upload(&self, files: &BTreeMap<String, BundleFile>) -> Result<(), StorageError> {
        self.new.files.remove(&self.new.path).await?;
        self.new.files.make_folder(&self.new.path).await?;
        for (path, file) in files {
            put(&below(&self.new, path), file).await?;
        }
        Ok(())
    }

    /// Replaces the folder by the upload.
    pub(super) async fn swap(&self) -> Result<(), StorageError> {
        let files = &self.live.files;
        let had_one = files.stat(&self.live.path).await?.is_some();
        if had_one {
            files.remove(&self.old.path).await?;
            files.rename(&self.live.path, &self.old.path).await?;
        }
        if let Err(error) = files.rename(&self.new.path, &self.live.path).await {
            if had_one {
                let _ = files.rename(&self.old.path, &self.live.path).await;
            }
            return Err(error);
        }
        files.remove(&self.old.path).await
    }

    /// A note if the root does not exist yet.
    pub(super) async fn missing_root(&self) -> Result<Option<String>, StorageError> {
        let there = self.root.files.stat(&self.root.path).await?.is_some();
        Ok((!there).then(|| format!("the root {} is not there yet: it is made", shown(&self.root))))
    }

    /// The leftovers of a crash beside the folder.
    pub(super) async fn leftovers(&self) -> Result<Vec<&Place>, StorageError> {
        let mut left = Vec::new();
        for place in [&self.new, &self.old] {
            left.extend(place.files.stat(&place.path).await?.map(|_| place));
        }
        Ok(left)
    }

    /// Removes the folder, and leftovers of a crash.
    pub(super) async fn remove(&self) -> Result<(), StorageError> {
        for place in [&self.live, &self.new, &self.old] {
            place.files.remove(&place.path).await?;
        }
        Ok(())
    }
}

async fn put(place: &Place, file: &BundleFile) -> Result<(), StorageError> {
    match &file.content {
        Content::Bytes(bytes) => place.files.put(&place.path, &mut bytes.as_slice()).await,
        Content::Local(path) => {
            let unreadable = |error: std::io::Error| {
                let place = path.display().to_string();
                StorageError::Other { what: "read", place, detail: error.to_string() }
            };
            let mut content = tokio::fs::File::open(path).await.map_err(unreadable)?;
            place.files.put(&place.path, &mut content).await
        }
    }
}

async fn files_below(root: &Place) -> Result<BTreeMap<String, Entry>, DeployError> {
    let mut found = BTreeMap::new();
    let mut open = vec![String::new()];
    while let Some(prefix) = open.pop() {
        let path = below(root, &prefix).path;
        let entries = root.files.list(path.trim_end_matches('/')).await?.unwrap_or_default();
        for entry in entries {
            let path = format!("{prefix}{}", entry.name);
            match entry.kind {
                Kind::Folder => open.push(format!("{path}/")),
                Kind::File => drop(found.insert(path, entry)),
            }
        }
        if found.len() + open.len() > MOST_FILES {
            let reason = format!("it has more than the {MOST_FILES} files that are looked at most");
            return Err(DeployError::Folder { what: "folder in HDFS", place: shown(root), reason });
        }
    }
    Ok(found)
}
