//! Where a project goes: two folders of scripts, and a root in HDFS.

use std::sync::Arc;

use kelos_sandbox::apps::AppFormat;
use kelos_storage::{HadoopConf, Place, Storage, StorageConfig, StorageError};

use super::{DeployError, ProjectName, TargetFile};

/// The root in HDFS where nothing else is said.
pub const HDFS_ROOT: &str = "/user/celos/app";

/// Largest target file and largest Hadoop configuration.
const LARGEST_CONFIG: u64 = 4 << 20;

/// Where a server reads its scripts, and its jobs their files.
#[derive(Clone)]
pub struct Site {
    /// The folder of workflows.
    pub workflows: Place,
    /// The folder of defaults.
    pub defaults: Place,
    /// Where the folders of Oozie workflows are.
    pub hdfs: HdfsRoot,
    /// What reads the apps that scripts describe.
    pub format: Arc<dyn AppFormat>,
    /// What is to be told about how it was found.
    pub notes: Vec<String>,
}

/// A root in HDFS, which is not opened before it is needed.
#[derive(Clone)]
pub struct HdfsRoot {
    /// Its path: absolute, without a slash at the end.
    pub path: String,
    access: Access,
}

#[derive(Clone)]
enum Access {
    /// Through an opened file system.
    Opened(Place),
    /// By the configuration of a storage.
    Own(Storage),
    /// By the Hadoop configuration that a target file names.
    Target { storage: Storage, config: StorageConfig, core_site: String, hdfs_site: String },
    /// Not at all.
    Left,
}

impl HdfsRoot {
    /// A root that a storage reaches by its own configuration.
    ///
    /// # Errors
    /// When it is no absolute path.
    pub fn of_storage(root: &str, storage: Storage) -> Result<HdfsRoot, DeployError> {
        Ok(HdfsRoot { path: root_path(root)?, access: Access::Own(storage) })
    }

    /// A root in a file system that is opened.
    #[must_use]
    pub fn opened(place: Place) -> HdfsRoot {
        HdfsRoot { path: place.path.clone(), access: Access::Opened(place) }
    }

    /// The same root, never looked at: what is in HDFS stays as it is.
    #[must_use]
    pub fn left_alone(self) -> HdfsRoot {
        HdfsRoot { access: Access::Left, ..self }
    }

    /// Opens it; none where HDFS is to stay as it is.
    pub(super) async fn open(&self) -> Result<Option<Place>, DeployError> {
        let uri = format!("hdfs:{}", self.path);
        Ok(match &self.access {
            Access::Left => None,
            Access::Opened(place) => Some(place.clone()),
            Access::Own(storage) => Some(storage.place(&uri)?),
            Access::Target { storage, config, core_site, hdfs_site } => {
                let core_site = text(storage, core_site, "core-site.xml").await?;
                let hdfs_site = text(storage, hdfs_site, "hdfs-site.xml").await?;
                let hadoop = Some(HadoopConf::Texts { core_site, hdfs_site });
                Some(Storage::new(StorageConfig { hadoop, ..config.clone() }).place(&uri)?)
            }
        })
    }
}

impl Site {
    /// What a target file names; contacts nothing but where the target file is.
    ///
    /// # Errors
    /// When the target file can't be read or is wrong.
    pub async fn of_target(
        url: &str,
        user: Option<&str>,
        hdfs_root: &str,
        config: StorageConfig,
        format: Arc<dyn AppFormat>,
    ) -> Result<Site, DeployError> {
        let path = root_path(hdfs_root)?;
        let storage = Storage::new(config.clone());
        let url = user.map_or(url.to_owned(), |user| super::with_user(url, user, false));
        let target = TargetFile::parse(&url, &text(&storage, &url, "target file").await?, user)?;
        let TargetFile { core_site, hdfs_site, notes, .. } = target;
        let access = Access::Target { storage: storage.clone(), config, core_site, hdfs_site };
        Ok(Site {
            workflows: storage.place(&target.workflows)?,
            defaults: storage.place(&target.defaults)?,
            hdfs: HdfsRoot { path, access },
            format,
            notes,
        })
    }

    pub(super) fn workflow_script(&self, project: &ProjectName) -> Place {
        below(&self.workflows, &project.script())
    }

    pub(super) fn defaults_script(&self, project: &ProjectName) -> Place {
        below(&self.defaults, &project.script())
    }

    /// Whether both folders of scripts are there.
    pub(super) async fn require_folders(&self) -> Result<(), DeployError> {
        for (what, place) in self.script_folders() {
            let reason = match place.files.stat(&place.path).await? {
                Some(found) if found.kind == kelos_storage::Kind::Folder => continue,
                Some(_) => "it is a file, expected a folder",
                None => "nothing is there; make it, or name another one in the target file",
            };
            return Err(DeployError::Folder { what, place: shown(place), reason: reason.to_owned() });
        }
        Ok(())
    }

    /// Whether both folders of scripts can be written to: by a file that goes at once.
    pub(super) async fn require_writable(&self) -> Result<(), DeployError> {
        for (what, place) in self.script_folders() {
            let trial = below(place, &format!(".kelos-{}.unfinished", std::process::id()));
            let written = trial.files.put(&trial.path, &mut &b""[..]).await;
            let removed = trial.files.remove(&trial.path).await;
            written.and(removed).map_err(|error| {
                let cause = match error {
                    StorageError::Denied { detail, .. } => format!("permission denied ({detail})"),
                    other => other.to_string(),
                };
                DeployError::NotWritable { what, place: shown(place), cause }
            })?;
        }
        Ok(())
    }

    fn script_folders(&self) -> [(&'static str, &Place); 2] {
        [("folder of workflows", &self.workflows), ("folder of defaults", &self.defaults)]
    }
}

fn root_path(root: &str) -> Result<String, DeployError> {
    let bad = |reason: &str| DeployError::HdfsRoot { root: root.to_owned(), reason: reason.to_owned() };
    if !root.starts_with('/') {
        return Err(bad("expected an absolute path, such as /user/celos/app"));
    }
    let path = root.trim_end_matches('/');
    let parts = path.split('/').skip(1).all(|part| !part.is_empty() && part != "." && part != "..");
    match path.is_empty() || !parts {
        true => Err(bad("expected a folder below /, without empty parts, \".\" and \"..\"")),
        false => Ok(path.to_owned()),
    }
}

async fn text(storage: &Storage, url: &str, what: &'static str) -> Result<String, DeployError> {
    let place = storage.place(url)?;
    let bytes = place.files.read(&place.path, LARGEST_CONFIG).await.map_err(|error| match error {
        StorageError::NotFound { .. } => {
            DeployError::Folder { what, place: shown(&place), reason: "nothing is there".to_owned() }
        }
        other => other.into(),
    })?;
    let not_text = |_| DeployError::Target { place: url.to_owned(), reason: "it is not UTF-8 text".to_owned() };
    String::from_utf8(bytes.to_vec()).map_err(not_text)
}

/// A name in a folder.
pub(super) fn below(folder: &Place, name: &str) -> Place {
    Place { path: format!("{}/{name}", folder.path.trim_end_matches('/')), ..folder.clone() }
}

/// A place as people write it.
pub(super) fn shown(place: &Place) -> String {
    format!("{}{}", place.endpoint, place.path)
}

/// The text of a script, or none where it is not there.
pub(super) async fn script_text(place: &Place, limit: u64) -> Result<Option<String>, StorageError> {
    match place.files.read(&place.path, limit).await {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(StorageError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_absolute() {
        assert_eq!(root_path("/user/celos/app/").unwrap(), "/user/celos/app");
        for bad in ["user/celos", "", "/", "//", "/a//b", "/a/../b", "hdfs:///a"] {
            assert!(root_path(bad).is_err(), "{bad}");
        }
        assert_eq!(
            root_path("user").unwrap_err().to_string(),
            "use \"user\" as the root in HDFS: expected an absolute path, such as /user/celos/app"
        );
    }
}
