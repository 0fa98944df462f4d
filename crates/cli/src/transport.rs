//! Options of a server that are about how it is reached: its certificate, and who may see it.

use std::path::{Path, PathBuf};

use kelos_tls::{ServerCertificate, ServerFiles};

use crate::failure::Failure;

/// How a server is reached.
#[derive(Default, clap::Args)]
#[command(next_help_heading = "Transport")]
pub(crate) struct TransportOptions {
    /// File of the certificate to show, with those up to its authority, in PEM; the server speaks HTTPS then. The file
    /// is read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = clap::ValueHint::FilePath)]
    tls_cert: Option<PathBuf>,
    /// File of the certificate's private key
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = clap::ValueHint::FilePath)]
    tls_key: Option<PathBuf>,
    /// File of authorities whose client certificates are accepted; a client may come without one
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = clap::ValueHint::FilePath)]
    tls_client_ca: Option<PathBuf>,
}

impl TransportOptions {
    /// Reads the certificate, if the server is to have one.
    pub(crate) fn certificate(&self) -> Result<Option<ServerCertificate>, Failure> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let files = ServerFiles {
            certificate: whole(certificate)?,
            key: whole(key)?,
            client_authorities: self.tls_client_ca.as_deref().map(whole).transpose()?,
        };
        ServerCertificate::open(files).map(Some).map_err(Failure::usage)
    }
}

/// The whole path of a file, because it is read again when this process is in another folder.
fn whole(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::usage(format!("find {}: {error}", path.display())))
}
