//! TLS for both ends: the certificate that a server shows, read again when its files change, and what a client trusts.
//!
//! Every client of Kelos has its trust from here, and every reason for which there is none is told in the same words. What is
//! *absent*: connections, and any meaning of the names in a certificate.

mod certificate;
mod distrust;
mod files;
mod fingerprint;
mod server;
mod trust;

pub use certificate::Certificate;
pub use distrust::{Distrust, explain};
pub use fingerprint::Fingerprint;
pub use rustls::{ClientConfig, ClientConnection, ServerConfig, StreamOwned, pki_types};
pub use server::{Change, ServerCertificate, ServerFiles};
pub use trust::{Trust, TrustSettings};
