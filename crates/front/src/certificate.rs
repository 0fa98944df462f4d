//! The certificate that a client has shown: a fact of its connection. The meaning of its names is for others to say.

use std::sync::Arc;

use kelos_tls::{Certificate, Fingerprint};

/// A client certificate that one of the server's authorities has signed, in the extensions of each request of its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Its names: DNS names, URIs, email addresses and IP addresses of its subject, and the common name.
    pub names: Arc<[String]>,
    /// The SHA-256 fingerprint of the certificate.
    pub fingerprint: Fingerprint,
}

impl ClientCertificate {
    /// Reads a verified certificate in DER; none if it can't be read.
    #[must_use]
    pub fn read(der: &[u8]) -> Option<ClientCertificate> {
        let Certificate { names, fingerprint, .. } = Certificate::read(der)?;
        Some(ClientCertificate { names: names.into(), fingerprint })
    }
}
