//! From a URI to the file system that it names.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use url::Url;

use crate::local::path_of_file_uri;
use crate::{FileSystem, LocalFiles, SshSettings, StorageError, sftp};

/// Where file systems find what they need to be opened. [`StorageConfig::from_env`] looks where each system's own tools do.
#[derive(Debug, Clone, Default)]
pub struct StorageConfig {
    /// The folder with `core-site.xml` and `hdfs-site.xml`: `HADOOP_CONF_DIR`, else `HADOOP_HOME/etc/hadoop`.
    pub hadoop_conf: Option<PathBuf>,
    /// Keys and known hosts for `sftp:`.
    pub ssh: SshSettings,
}

impl StorageConfig {
    /// What the environment says.
    #[must_use]
    pub fn from_env() -> Self {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let hadoop_conf = var("HADOOP_CONF_DIR").or_else(|| var("HADOOP_HOME").map(|home| home.join("etc/hadoop")));
        Self { hadoop_conf, ssh: SshSettings::from_env() }
    }
}

/// A path in an opened file system.
#[derive(Clone)]
pub struct Place {
    /// The file system.
    pub files: Arc<dyn FileSystem>,
    /// The path in it: absolute, decoded, without a slash at the end.
    pub path: String,
    /// The scheme and the server, as `hdfs://nn:8020`; what shares its fate. Never holds a password.
    pub endpoint: String,
}

/// Opens file systems, each once. Cheap to clone.
#[derive(Clone)]
pub struct Storage {
    config: Arc<StorageConfig>,
    opened: Arc<Mutex<BTreeMap<String, Arc<dyn FileSystem>>>>,
}

impl Storage {
    /// A storage that has opened nothing yet.
    #[must_use]
    pub fn new(config: StorageConfig) -> Self {
        Self { config: Arc::new(config), opened: Arc::default() }
    }

    /// The place that a URI, or an absolute path of this machine, names. Contacts nothing.
    ///
    /// # Errors
    /// When it names no place, of a scheme that is not known, or its system's configuration can't be read.
    pub fn place(&self, uri: &str) -> Result<Place, StorageError> {
        let local = |path: String| Place { files: Arc::new(LocalFiles), path, endpoint: "file:".to_owned() };
        if uri.starts_with('/') {
            return Ok(local(without_slash(uri)));
        }
        if let Some(rest) = uri.strip_prefix("file:") {
            return Ok(local(without_slash(&path_of_file_uri(rest))));
        }
        let bad = |reason: String| StorageError::BadUri { uri: uri.to_owned(), reason };
        let url = Url::parse(uri).map_err(|_| bad("it is neither an absolute path nor a URI".to_owned()))?;
        let endpoint = endpoint_of(&url);
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let files = match opened.get(&endpoint) {
            Some(files) => files.clone(),
            None => self.open(&url)?,
        };
        opened.insert(endpoint.clone(), files.clone());
        let path: Vec<u8> = percent_encoding::percent_decode_str(url.path()).collect();
        Ok(Place { files, path: without_slash(&String::from_utf8_lossy(&path)), endpoint })
    }

    fn open(&self, url: &Url) -> Result<Arc<dyn FileSystem>, StorageError> {
        if url.scheme() == "sftp" {
            return Ok(Arc::new(sftp::open(url.authority(), &self.config.ssh)?));
        }
        let reason = format!("no file system of the scheme \"{}\" is known", url.scheme());
        Err(StorageError::BadUri { uri: url.to_string(), reason })
    }
}

fn endpoint_of(url: &Url) -> String {
    let user = if url.username().is_empty() { String::new() } else { format!("{}@", url.username()) };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{user}{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

fn without_slash(path: &str) -> String {
    match path.trim_end_matches('/') {
        "" => "/".to_owned(),
        path => path.to_owned(),
    }
}
