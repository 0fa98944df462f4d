//! Settings of file systems, and where they are found.

use std::path::PathBuf;

#[cfg(feature = "web")]
use kelos_tls::Trust;

use crate::environment::{first, text};
use crate::hadoop::HadoopConf;
use crate::kerberos::Kerberos;
#[cfg(feature = "objects")]
use crate::objects::{AzureSettings, GcsSettings, S3Settings};
use crate::secret::Secret;
#[cfg(feature = "sftp")]
use crate::sftp::SshSettings;

/// The settings of all file systems. [`StorageConfig::from_env`] reads them from the places where each system's own tools do.
#[derive(Debug, Clone, Default)]
pub struct StorageConfig {
    /// Hadoop's configuration: `HADOOP_CONF_DIR`, else `HADOOP_HOME/etc/hadoop`.
    pub hadoop: Option<HadoopConf>,
    /// The user for clusters without Kerberos: `HADOOP_USER_NAME`, else `USER`.
    pub hadoop_user: Option<String>,
    /// The credentials for clusters with Kerberos.
    pub kerberos: Kerberos,
    /// A delegation token for WebHDFS: `KELOS_WEBHDFS_TOKEN`.
    pub webhdfs_token: Option<Secret>,
    /// The settings of `s3:`.
    #[cfg(feature = "objects")]
    pub s3: S3Settings,
    /// The settings of `gs:`.
    #[cfg(feature = "objects")]
    pub gcs: GcsSettings,
    /// The settings of `abfs:`.
    #[cfg(feature = "objects")]
    pub azure: AzureSettings,
    /// The settings of `sftp:`.
    #[cfg(feature = "sftp")]
    pub ssh: SshSettings,
    /// The trust in servers that are reached over TLS: by default in the authorities of the system.
    #[cfg(feature = "web")]
    pub trust: Trust,
}

impl StorageConfig {
    /// Reads the settings from the environment.
    #[must_use]
    pub fn from_env() -> Self {
        let folder = text("HADOOP_CONF_DIR").map(PathBuf::from);
        let folder = folder.or_else(|| Some(PathBuf::from(text("HADOOP_HOME")?).join("etc/hadoop")));
        Self {
            hadoop: folder.map(HadoopConf::Folder),
            hadoop_user: first(&["HADOOP_USER_NAME", "USER"]),
            kerberos: Kerberos { principal: text("KELOS_KERBEROS_PRINCIPAL"), keytab: text("KELOS_KERBEROS_KEYTAB") },
            webhdfs_token: text("KELOS_WEBHDFS_TOKEN").map(Secret),
            #[cfg(feature = "objects")]
            s3: S3Settings::from_env(),
            #[cfg(feature = "objects")]
            gcs: GcsSettings { emulator: text("STORAGE_EMULATOR_HOST") },
            #[cfg(feature = "objects")]
            azure: AzureSettings::from_env(),
            #[cfg(feature = "sftp")]
            ssh: SshSettings::from_env(),
            #[cfg(feature = "web")]
            trust: Trust::default(),
        }
    }
}
