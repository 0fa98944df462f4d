//! The target of a deployment: two folders of scripts, and a root in HDFS.

use std::sync::Arc;

use kelos_sandbox::apps::AppFormat;
use kelos_storage::{HadoopConf, Place, Storage, StorageConfig, StorageError};

use super::{DeployError, TargetFile};

/// The default root in HDFS.
pub const HDFS_ROOT: &str = "/user/celos/app";

/// Largest target file and largest Hadoop configuration.
const LARGEST_CONFIG: u64 = 4 << 20;

/// The places from which a server reads its scripts, and its jobs their files.
#[derive(Clone)]
pub struct Site {
    /// The folder of workflows.
    pub workflows: Place,
    /// The folder of defaults.
    pub defaults: Place,
    /// The parent of the folders of Oozie workflows.
    pub hdfs: HdfsRoot,
    /// The reader of the apps in scripts.
    pub format: Arc<dyn AppFormat>,
    /// Notes on the configuration.
    pub notes: Vec<String>,
}

/// A root in HDFS, which is not opened until it is needed.
#[derive(Clone)]
pub struct HdfsRoot {
    /// Its path: absolute, without a slash at the end.
    pub path: String,
    access: Access,
}

#[derive(Clone)]
enum Access {
    /// An opened file system.
    Opened(Place),
    /// The configuration of a storage.
    Own(Storage),
    /// The Hadoop configuration in a target file.
    Target { storage: Storage, config: StorageConfig, core_site: String, hdfs_site: String },
    /// None: HDFS is not used.
    Left,
}

impl HdfsRoot {
    /// A root in the file system of a storage's own configuration.
    ///
    /// # Errors
    /// If it is no absolute path.
    pub fn of_storage(root: &str, storage: Storage) -> Result<HdfsRoot, DeployError> {
        Ok(HdfsRoot { path: root_path(root)?, access: Access::Own(storage) })
    }

    /// A root in an opened file system.
    #[must_use]
    pub fn opened(place: Place) -> HdfsRoot {
        HdfsRoot { path: place.path.clone(), access: Access::Opened(place) }
    }

    /// The same root, never contacted: HDFS stays unchanged.
    #[must_use]
    pub fn left_alone(self) -> HdfsRoot {
        HdfsRoot { access: Access::Left, ..self }
    }

    /// Opens it; none if HDFS is to stay unchanged.
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
    /// The site of a target file; contacts only the server of the target file.
    ///
    /// # Errors
    /// If the target file can't be read or is invalid.
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

    /// Checks that both folders of scripts exist.
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

    /// Checks that both folders of scripts are writable, with a temporary file.
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

/// The path of a name in a folder.
pub(super) fn below(folder: &Place, name: &str) -> Place {
    Place { path: format!("{}/{name}", folder.path.trim_end_matches('/')), ..folder.clone() }
}

/// A place as it is displayed.
pub(super) fn shown(place: &Place) -> String {
    format!("{}{}", place.endpoint, place.path)
}

/// The text of a script, or none if it does not exist.
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
