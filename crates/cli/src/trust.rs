//! Options of commands that reach a server over TLS: what they trust, and what they show of themselves.

use std::path::PathBuf;

use kelos_storage::StorageConfig;
use kelos_tls::{Fingerprint, Trust, TrustSettings};

use crate::credential::TokenOptions;
use crate::failure::Failure;

/// The trust in a server.
#[derive(Clone, Default, clap::Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TrustOptions {
    /// File of authorities to trust beside those of this machine, in PEM
    #[arg(long, env = "KELOS_CA", value_name = "FILE", hide_env_values = true, value_delimiter = ':', value_hint = clap::ValueHint::FilePath)]
    ca: Vec<PathBuf>,
    /// Fingerprint that the server's certificate or its public key must have: sha256: and 64 hexadecimal digits. It
    /// counts in place of authority, name and dates
    #[arg(long, env = "KELOS_PIN", value_name = "FINGERPRINT", hide_env_values = true)]
    pin: Option<Fingerprint>,
    /// File of the client certificate to show, in PEM
    #[arg(long, env = "KELOS_CLIENT_CERT", value_name = "FILE", hide_env_values = true, value_hint = clap::ValueHint::FilePath)]
    client_cert: Option<PathBuf>,
    /// File of its private key [default: the file of --client-cert]
    #[arg(long, env = "KELOS_CLIENT_KEY", value_name = "FILE", hide_env_values = true, requires = "client_cert", value_hint = clap::ValueHint::FilePath)]
    client_key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) token: TokenOptions,
}

/// The settings of storage by the environment, with the trust in its servers.
pub(crate) fn storage_config() -> Result<StorageConfig, Failure> {
    let trust = Trust::new(TrustSettings::of_environment()).map_err(Failure::usage)?;
    Ok(StorageConfig { trust, ..StorageConfig::from_env() })
}

impl TrustOptions {
    /// The same options, by the environment alone.
    pub(crate) fn of_environment() -> Result<TrustOptions, Failure> {
        let TrustSettings { authorities: ca, pin, own, .. } =
            TrustSettings::of_client_environment().map_err(Failure::usage)?;
        let (client_cert, client_key) = own.unzip();
        Ok(TrustOptions { ca, pin, client_cert, client_key, token: TokenOptions::of_environment() })
    }

    /// The same, for a server whose certificate is known; a pin that was given counts more.
    pub(crate) fn or_pin(&self, pin: Option<Fingerprint>) -> TrustOptions {
        TrustOptions { pin: self.pin.or(pin), ..self.clone() }
    }

    pub(crate) fn has_pin(&self) -> bool {
        self.pin.is_some()
    }

    /// Reads the files.
    pub(crate) fn read(&self) -> Result<Trust, Failure> {
        let own = self.client_cert.clone().map(|cert| (cert.clone(), self.client_key.clone().unwrap_or(cert)));
        let settings = TrustSettings { authorities: self.ca.clone(), pin: self.pin, own, ..TrustSettings::default() };
        Trust::new(settings).map_err(Failure::usage)
    }
}
