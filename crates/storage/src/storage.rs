//! Opening the file system of a URI.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::guard::{GuardedStore, Health};
use crate::hadoop::Properties;
#[cfg(feature = "hdfs")]
use crate::hdfs;
#[cfg(feature = "web")]
use crate::http::HttpFiles;
use crate::local::FILE;
#[cfg(feature = "objects")]
use crate::objects;
#[cfg(feature = "sftp")]
use crate::sftp;
use crate::uri::{Scheme, Uri, parse, shown};
#[cfg(feature = "web")]
use crate::web::Web;
#[cfg(feature = "web")]
use crate::webhdfs::{Identity, WebHdfsFiles};
use crate::{FileSystem, LocalFiles, StorageConfig, StorageError};

/// How many endpoints are kept open. Beyond that others are closed, and opened again when they are next used.
const MOST_ENDPOINTS: usize = 1000;

/// A path in an opened file system.
#[derive(Clone)]
pub struct Place {
    /// The file system.
    pub files: Arc<dyn FileSystem>,
    /// The path in it: absolute, decoded, without a slash at the end. For `http:` unchanged, with its query.
    pub path: String,
    /// The scheme and the server, such as `hdfs://nn:8020`, which succeed or fail together. Never contains a password.
    pub endpoint: String,
}

/// Opens file systems, each once. Cheap to clone.
#[derive(Clone)]
pub struct Storage {
    shared: Arc<StorageState>,
}

struct StorageState {
    config: StorageConfig,
    opened: Mutex<BTreeMap<String, Arc<GuardedStore>>>,
    #[cfg(feature = "web")]
    web: OnceLock<Result<Web, String>>,
    /// The Hadoop configuration, once it was read. If it can't be read, that is tried again each time.
    properties: Mutex<Option<Arc<Properties>>>,
}

impl Storage {
    /// A storage that has opened nothing yet.
    #[must_use]
    pub fn new(config: StorageConfig) -> Self {
        let shared = StorageState {
            config,
            opened: Mutex::default(),
            #[cfg(feature = "web")]
            web: OnceLock::new(),
            properties: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The place of a URI, or of an absolute path of this machine. Contacts no server.
    ///
    /// # Errors
    /// If the URI is invalid or of an unknown scheme, or the configuration of its system can't be read.
    pub fn place(&self, uri: &str) -> Result<Place, StorageError> {
        let parsed = parse(uri)?;
        if parsed.scheme == Scheme::File {
            return Ok(Place { files: Arc::new(LocalFiles), path: parsed.path, endpoint: FILE.to_owned() });
        }
        let bad = |reason| StorageError::BadUri { uri: shown(uri), reason };
        let (parsed, authority, endpoint) = self.shared.resolve(parsed).map_err(|wrong| wrong.unwrap_or_else(bad))?;
        if let Some(files) = self.shared.opened().get(&endpoint) {
            return Ok(Place { files: files.clone(), path: parsed.path, endpoint });
        }
        let files =
            self.shared.open(parsed.scheme, &authority, &endpoint).map_err(|wrong| wrong.unwrap_or_else(bad))?;
        let files = self.shared.keep(GuardedStore::new(endpoint.clone(), files));
        Ok(Place { files, path: parsed.path, endpoint })
    }

    /// Checks that this program could open a URI, as it is configured. Contacts no server and opens nothing.
    ///
    /// # Errors
    /// Those of [`Storage::place`], but for what only opening shows.
    pub fn check(&self, uri: &str) -> Result<(), StorageError> {
        let parsed = parse(uri)?;
        let bad = |reason| StorageError::BadUri { uri: shown(uri), reason };
        if parsed.scheme == Scheme::File {
            return Ok(());
        }
        connector(parsed.scheme).map_err(bad)?;
        self.shared.resolve(parsed).map(drop).map_err(|wrong| wrong.unwrap_or_else(bad))
    }

    /// The state of all endpoints that were used so far, without this machine's own files.
    #[must_use]
    pub fn health(&self) -> Vec<Health> {
        self.shared.opened().values().map(|files| files.health()).collect()
    }
}

/// The reason why a place can't be opened: a complete error, or a flaw of the URI.
enum Wrong {
    Error(StorageError),
    Reason(String),
}

impl Wrong {
    fn unwrap_or_else(self, bad: impl FnOnce(String) -> StorageError) -> StorageError {
        match self {
            Self::Error(error) => error,
            Self::Reason(reason) => bad(reason),
        }
    }
}

impl From<StorageError> for Wrong {
    fn from(error: StorageError) -> Self {
        Self::Error(error)
    }
}

impl From<String> for Wrong {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

impl StorageState {
    /// A URI with its path in full, its server, and the name of that server's endpoint.
    fn resolve(&self, uri: Uri) -> Result<(Uri, String, String), Wrong> {
        let uri = uri.at_home(self.config.hadoop_user.as_deref())?;
        let (authority, endpoint) = self.endpoint(&uri)?;
        Ok((uri, authority, endpoint))
    }

    /// The server, and the name that all URIs of the same server share.
    fn endpoint(&self, uri: &Uri) -> Result<(String, String), Wrong> {
        let name = uri.scheme.name();
        match uri.scheme {
            #[cfg(feature = "hdfs")]
            Scheme::Hdfs => {
                let properties = self.properties()?;
                let default = || properties.default_authority(name);
                let authority = if uri.authority.is_empty() { default()? } else { uri.authority.clone() };
                // Hadoop ignores the user there, so that two users share one endpoint.
                let authority = authority.rsplit_once('@').map_or(authority.as_str(), |(_, server)| server).to_owned();
                let endpoint = hdfs::endpoint_of(&authority, &properties)?;
                Ok((authority, endpoint))
            }
            _ => Ok((uri.authority.clone(), format!("{name}://{}", uri.authority))),
        }
    }

    fn open(&self, scheme: Scheme, authority: &str, endpoint: &str) -> Result<Arc<dyn FileSystem>, Wrong> {
        let config = &self.config;
        Ok(match scheme {
            Scheme::File => Arc::new(LocalFiles),
            #[cfg(feature = "hdfs")]
            Scheme::Hdfs => {
                let user = config.hadoop_user.as_deref();
                Arc::new(hdfs::open(authority, self.properties()?, &config.kerberos, user)?)
            }
            #[cfg(feature = "web")]
            Scheme::WebHdfs | Scheme::SWebHdfs => Arc::new(self.webhdfs(scheme, authority, endpoint)?),
            #[cfg(feature = "objects")]
            Scheme::S3 => Arc::new(objects::s3(authority, &config.s3, self.web()?.following)?),
            #[cfg(feature = "objects")]
            Scheme::Gs => Arc::new(objects::gcs(authority, &config.gcs, self.web()?.following)?),
            #[cfg(feature = "objects")]
            Scheme::Abfs => Arc::new(objects::azure(authority, &config.azure, self.web()?.following)?),
            #[cfg(feature = "web")]
            Scheme::Http | Scheme::Https => Arc::new(HttpFiles::new(endpoint.to_owned(), self.web()?.following)),
            #[cfg(feature = "sftp")]
            Scheme::Sftp => Arc::new(sftp::open(authority, &config.ssh)?),
            #[cfg(not(all(feature = "hdfs", feature = "objects", feature = "sftp", feature = "web")))]
            other => return Err(Wrong::Reason(left_out(other))),
        })
    }

    #[cfg(feature = "web")]
    fn webhdfs(&self, scheme: Scheme, authority: &str, endpoint: &str) -> Result<WebHdfsFiles, Wrong> {
        let is_secure = scheme == Scheme::SWebHdfs;
        let (protocol, config) = (if is_secure { "https" } else { "http" }, &self.config);
        let addresses = self.properties()?.web_addresses(authority, is_secure);
        let servers = addresses.iter().map(|address| format!("{protocol}://{address}")).collect();
        let token = config.webhdfs_token.as_ref().map(|token| token.0.clone());
        let identity = Identity { user: config.hadoop_user.clone(), token };
        Ok(WebHdfsFiles::new(endpoint.to_owned(), servers, identity, self.web()?.plain))
    }

    /// Keeps an opened endpoint, unless another thread was faster.
    fn keep(&self, files: GuardedStore) -> Arc<GuardedStore> {
        let endpoint = files.health().endpoint;
        let mut opened = self.opened();
        if opened.len() >= MOST_ENDPOINTS {
            opened.pop_first();
        }
        opened.entry(endpoint).or_insert_with(|| Arc::new(files)).clone()
    }

    #[cfg(feature = "web")]
    fn web(&self) -> Result<Web, String> {
        self.web.get_or_init(|| Web::new(&self.config.trust)).clone()
    }

    fn properties(&self) -> Result<Arc<Properties>, StorageError> {
        let mut known = self.properties.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(properties) = &*known {
            return Ok(properties.clone());
        }
        let read = Arc::new(Properties::read(self.config.hadoop.as_ref())?);
        *known = Some(read.clone());
        Ok(read)
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<String, Arc<GuardedStore>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a scheme whose connector was left out of this program.
fn connector(scheme: Scheme) -> Result<(), String> {
    let is_built = match scheme {
        Scheme::File => true,
        Scheme::Hdfs => cfg!(feature = "hdfs"),
        Scheme::S3 | Scheme::Gs | Scheme::Abfs => cfg!(feature = "objects"),
        Scheme::Sftp => cfg!(feature = "sftp"),
        Scheme::WebHdfs | Scheme::SWebHdfs | Scheme::Http | Scheme::Https => cfg!(feature = "web"),
    };
    if is_built { Ok(()) } else { Err(left_out(scheme)) }
}

/// The message about such a scheme.
fn left_out(scheme: Scheme) -> String {
    let feature = match scheme {
        Scheme::Hdfs => "hdfs",
        Scheme::S3 | Scheme::Gs | Scheme::Abfs => "objects",
        Scheme::Sftp => "sftp",
        Scheme::File | Scheme::WebHdfs | Scheme::SWebHdfs | Scheme::Http | Scheme::Https => "web",
    };
    format!("this program was built without the connector of {}:, the feature `{feature}`", scheme.name())
}
